"""Counts lines of code by room and holds them to `size.txt`; exits 1 if a room is above its budget.

A line of code is one that is neither blank nor comment, docstring or import. A change that needs
more raises the number in the same commit, and says in one line what a user gets for it.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = "include/turnstile"
EXTENSIONS = "extensions"
CORE_AT_MOST, EXTENSIONS_AT_MOST = 37_495, 8_380
_SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(path: Path) -> int:
    """Return how many lines of a file are code."""
    with path.open("rb") as file:
        lines = {
            number
            for token in tokenize.tokenize(file.readline)
            if token.type not in _SILENT
            for number in range(token.start[0], token.end[0] + 1)
        }
    return len(lines - set(_said_or_imported(ast.parse(path.read_bytes()))))


def _said_or_imported(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of docstrings and imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def by_room(root: Path) -> Counter[str]:
    """Return the lines of each room: a folder of the sources, or the modules beside them."""
    rooms: Counter[str] = Counter()
    for path in sorted((root / SOURCES).rglob("*.py")):
        room, *rest = path.relative_to(root / SOURCES).parts
        rooms[room if rest else "."] += code_lines(path)
    for path in sorted((root / EXTENSIONS).rglob("*.py")):
        name = path.relative_to(root / EXTENSIONS).parts[0]
        rooms[f"{EXTENSIONS}/{name}"] += code_lines(path)
    return rooms


def budgets(text: str) -> dict[str, int]:
    """Read `room lines` a line; what follows is for people."""
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {room: int(most.replace(",", "")) for room, most, *_ in lines}


def main(root: Path = ROOT) -> int:
    """Print each room beside its budget."""
    counted, allowed = by_room(root), budgets((root / ".ci/size.txt").read_text())
    for room in sorted(counted | Counter(allowed)):
        most = allowed.get(room, 0)
        above = "" if counted[room] <= most else "  above its budget: raise it, and say why"
        print(f"{room:20} {counted[room]:6,} of {most:6,}{above}")
    beside = sum(lines for room, lines in counted.items() if room.startswith(EXTENSIONS))
    core = counted.total() - beside
    print(f"{'core':20} {core:6,} of {CORE_AT_MOST:6,} lines of code")
    print(f"{EXTENSIONS:20} {beside:6,} of {EXTENSIONS_AT_MOST:6,}")
    is_above = any(lines > allowed.get(room, 0) for room, lines in counted.items())
    return 1 if is_above or core > CORE_AT_MOST or beside > EXTENSIONS_AT_MOST else 0


if __name__ == "__main__":
    sys.exit(main())
