"""Things are called by their names: words that could be anything name next to nothing."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("include", "extensions", "plugins", "dags")
VAGUE = {"one", "found", "own", "alike", "together", "looks"}
USES_AT_MOST = 40  # of 167,000: `one` beside `other`, a number, what a library calls so


def names_in(source: str) -> Iterator[str]:
    """Yield each use of a name: variables, parameters, attributes, functions, keywords."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def test_words_that_could_be_anything_name_next_to_nothing() -> None:
    paths = [path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")]
    uses = Counter(name for path in paths for name in names_in(path.read_text()) if name in VAGUE)
    assert uses.total() <= USES_AT_MOST, uses


def test_each_kind_of_name_would_be_seen() -> None:
    source = "def found(own):\n    return [one.looks for one in own.f(alike=1)]\n"
    assert Counter(name for name in names_in(source) if name in VAGUE) == Counter(
        found=1, own=2, one=2, looks=1, alike=1
    )
