"""Holds measures to their room: outside `measures/` only the modules listed here name one.

A module names a measure that says `Measure.MEAN_SPEED`, "mean_speed", or reads a key that one
measure alone has. Exits 1 if another module does, or if a listed one does no more.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from code_lines import SOURCES

ROOT = Path(__file__).resolve().parents[1]
MAY_NAME = {
    "programme/spec.py": "what a table of a programme states, and what it measures by default",
    "estimates/week_estimates.py": "what records of estimates hold since version 0.2",
}
OPTIONS = ("clamp_kmh", "clamp_minutes", "limits_kmh")
NAMES = ("mean_speed", "mean_delay", "buses_over", *OPTIONS)


def named(source: str) -> Iterator[str]:
    """Yield each name of a measure, or of its own key, in a source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "Measure":
                yield f"Measure.{node.attr}"
            elif node.attr in OPTIONS:
                yield f".{node.attr}"
        elif isinstance(node, ast.Constant) and node.value in NAMES:
            yield f'"{node.value}"'


def faults(root: Path = ROOT) -> Iterator[str]:
    """Yield which modules name a measure and may not, or may and do not."""
    sources = root / SOURCES
    mentions = {
        path.relative_to(sources).as_posix(): sorted(set(named(path.read_text())))
        for path in sorted(sources.rglob("*.py"))
        if path.parent != sources / "measures"
    }
    for path, names in mentions.items():
        if names and path not in MAY_NAME:
            yield f"{path} names {', '.join(names)}: ask the table's own measure (measures/)"
    for path in MAY_NAME:
        if not mentions.get(path):
            yield f"{path} names no measure: take it off the list in .ci/measures.py"


def main() -> int:
    """Print what is wrong."""
    wrong = list(faults())
    print(*wrong or [f"measures are named in their room and in {len(MAY_NAME)} modules"], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
