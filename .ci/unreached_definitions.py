"""Lists public definitions that no production path reaches; exits 1 if there are any.

A definition (function, class, method, module constant) is reached when its name occurs in a part of
the code that is itself reached: the statements of a module, or the body of a reached definition.
Imports alone reach nothing, and tests are not production. Names stand for all definitions of that
name, so what this lists is dead for certain; it may miss some.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PRODUCTION = ("include/turnstile", "extensions", "dags", "plugins", "docker")
LISTED = ("include/turnstile", "extensions")
# Called by frameworks under these names.
ENTRY_POINTS = frozenset({"main"})
FRAMEWORK_MODULES = "/migrations/versions/"  # Alembic reads these by its own rules
_WORD = re.compile(r"[A-Za-z_]\w*")  # of a Jinja template
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition and the names that its body mentions."""

    path: str
    line: int
    name: str
    owner: str | None
    mentions: frozenset[str]


def unreached(root: Path) -> list[Definition]:
    """Return the public definitions under `LISTED` that nothing in production reaches."""
    definitions: list[Definition] = []
    mentioned: set[str] = set(ENTRY_POINTS)
    for folder in PRODUCTION:
        for path in sorted((root / folder).rglob("*.py")):
            tree = ast.parse(path.read_text())
            if folder not in LISTED:  # Airflow calls what stands there
                mentioned |= set(_names(tree.body))
                continue
            file_definitions, names = _read(tree.body, path.relative_to(root).as_posix(), None)
            definitions += file_definitions
            mentioned |= names
        for stated in (root / folder).glob("*/pyproject.toml"):  # entry points of extensions
            mentioned |= set(_WORD.findall(stated.read_text()))
        for template in (root / folder).rglob("*.html"):
            mentioned |= set(_WORD.findall(template.read_text()))
    by_name = defaultdict(list)
    for definition in definitions:
        by_name[definition.name].append(definition)
    reached: set[Definition] = set()
    frontier = list(mentioned)
    while frontier:
        for definition in by_name.pop(frontier.pop(), ()):
            reached.add(definition)
            frontier += [name for name in definition.mentions if name in by_name]
    return [
        candidate
        for candidate in definitions
        if candidate not in reached
        and FRAMEWORK_MODULES not in candidate.path
        and not candidate.name.startswith("_")
    ]


def _read(
    body: Iterable[ast.stmt], path: str, owner: str | None
) -> tuple[list[Definition], set[str]]:
    """Return the definitions of a block and the names that its other statements mention."""
    definitions: list[Definition] = []
    mentioned: set[str] = set()
    for statement in body:
        if isinstance(statement, _DEFINITIONS):
            definitions += _definition(statement, path, owner)
        elif owner is None and (name := _constant(statement)) is not None and not _calls(statement):
            names = frozenset(_names([statement]))
            definitions.append(Definition(path, statement.lineno, name, None, names - {name}))
        elif not isinstance(statement, ast.Import | ast.ImportFrom):
            mentioned |= set(_names([statement]))
    return definitions, mentioned


def _definition(statement: ast.stmt, path: str, owner: str | None) -> Iterator[Definition]:
    """Yield a definition, and the methods of a class, which are reached by their own names."""
    assert isinstance(statement, _DEFINITIONS)
    mentions: set[str] = set()
    if isinstance(statement, ast.ClassDef):
        methods, mentions = _read(statement.body, path, statement.name)
        for method in methods:
            if method.name.startswith("__") or _is_override(statement):
                mentions |= method.mentions | {method.name}
        yield from methods
        mentions |= set(_names([*statement.bases, *statement.decorator_list]))
    else:
        mentions = set(_names([statement])) - {statement.name}
    yield Definition(path, statement.lineno, statement.name, owner, frozenset(mentions))


def _is_override(statement: ast.ClassDef) -> bool:
    """Tell whether a class has bases, whose callers may call its methods."""
    return any(not _is_plain(base) for base in statement.bases)


def _is_plain(base: ast.expr) -> bool:
    """Tell whether a base calls no methods of ours."""
    return isinstance(base, ast.Name) and base.id in {"StrEnum", "Enum", "NamedTuple", "Exception"}


def _calls(statement: ast.stmt) -> bool:
    """Tell whether a constant is made by a call, which may act where it stands (a table)."""
    return isinstance(getattr(statement, "value", None), ast.Call)


def _constant(statement: ast.stmt) -> str | None:
    """Return the name that a statement of a module binds, or None."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    if (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
    ):
        return statement.targets[0].id
    return None


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield every name and attribute that code mentions, those in text annotations too."""
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield node.attr
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                if node.value.isidentifier():
                    yield node.value
            elif isinstance(node, ast.ImportFrom):
                yield from (alias.name for alias in node.names)


def main() -> int:
    """Print what is unreached."""
    symbols = unreached(Path(__file__).resolve().parents[1])
    for symbol in symbols:
        owner = f"{symbol.owner}." if symbol.owner else ""
        print(f"{symbol.path}:{symbol.line}: {owner}{symbol.name} is reached by no production path")
    return 1 if symbols else 0


if __name__ == "__main__":
    sys.exit(main())
