"""Holds the trusted core to its list: what `trusted_core.txt` names imports nothing else of ours.

Exits 1 if a listed module imports one that is not listed (at its top, within a function, or for
types alone), if the list names what is not there, or if the core is above its budget of code lines.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from code_lines import SOURCES, code_lines

ROOT = Path(__file__).resolve().parents[1]
LIST = ".ci/trusted_core.txt"
# 270 of them for files and dates as they come, 20 for stops without positions, 85 for names, 85 for
# units of delays, words of status, days and numbers in another sense, 45 for one reading of states,
# 1 for the guard, which is asked for objects of buckets too,
# 35 for a witness in a zone, equal counts and files that are written to while they are read,
# 24 for counts that are of another programme, of other cells or rows than what is charged,
# 4 for what a person wrote, which ends no line, 2 for which zones lie in stores,
# 2 for trips that name themselves, 58 for cells of Parquet and Arrow that the engine cannot read,
# 16 for a raw tab or line break within a text of JSON, 47 for bounding keys that are lost,
# 24 for rows that are held against their digests, and a log that a recovery leaves as it is,
# 76 for one account for one unit, whichever programme of a group is charged to it,
# 22 for counts of the code and engine that are charged, and one group at a time for new files,
# 8 for words about a correction that were taken back, and weeks sealed before speeds were left,
# 49 for cards that cannot be read, charges that are of one count, and losses by their files,
# 6 for one column that is named for entries and for exits
LINES_AT_MOST = 9_048
# of modules that only programmes of their own feed rest on, all together
FEEDS_AT_MOST = 900
_OF_A_FEED = "# of its feed"
_OURS = "turnstile"


def listed(text: str) -> tuple[str, ...]:
    """Read one module a line, below `turnstile`; what follows a `#` is for people."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return tuple(line for line in lines if line)


def of_feeds(text: str) -> frozenset[str]:
    """Return the listed modules that only programmes of their own feed rest on."""
    feed_lines = (line for line in text.splitlines() if line.endswith(_OF_A_FEED))
    return frozenset(listed("\n".join(feed_lines)))


def path_of(module: str, root: Path = ROOT) -> Path:
    """Return where a module of ours lies."""
    return root / SOURCES / f"{module.replace('.', '/')}.py"


def imports(source: str, is_module: set[str]) -> Iterator[str]:
    """Yield the modules of ours that a source imports anywhere, by their names below `turnstile`.

    Args:
        source: of a module.
        is_module: every module of ours, by which `from room import module` is told from a name.
    """
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            both = [(f"{origin}.{alias.name}", origin) for alias in node.names]
            names = [whole if _below(whole) in is_module else room for whole, room in both]
        yield from (_below(name) for name in names if name.split(".")[0] == _OURS)


def _below(name: str) -> str:
    """Return a module's name without the package's own."""
    return name.partition(".")[2]


def faults(modules: tuple[str, ...], root: Path = ROOT) -> Iterator[str]:
    """Yield what is wrong with a list."""
    every = {
        ".".join(path.relative_to(root / SOURCES).with_suffix("").parts)
        for path in (root / SOURCES).rglob("*.py")
    }
    for module in sorted({name for name in modules if modules.count(name) > 1}):
        yield f"{module} is listed twice"
    for module in modules:
        if module not in every:
            yield f"{module} is listed and not there"
            continue
        imported = set(imports(path_of(module, root).read_text(encoding="utf-8"), every))
        for other in sorted(imported - set(modules)):
            yield f"{module} imports {other}, which is not of the trusted core"


def main(root: Path = ROOT) -> int:
    """Print the core's size, and what is wrong."""
    text = (root / LIST).read_text(encoding="utf-8")
    modules, feeds = listed(text), of_feeds(text)
    problems = list(faults(modules, root))
    lines = {
        module: code_lines(path_of(module, root))
        for module in modules
        if path_of(module, root).exists()
    }
    feed_lines = sum(size for module, size in lines.items() if module in feeds)
    every = sum(lines.values()) - feed_lines
    if every > LINES_AT_MOST or feed_lines > FEEDS_AT_MOST:
        problems.append("it is above its budget: hand in what it needs from outside, or raise it")
    print(f"trusted core {every:6,} of {LINES_AT_MOST:6,} lines of code, {len(modules)} modules")
    print(f"  and of feeds {feed_lines:6,} of {FEEDS_AT_MOST:6,}")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
