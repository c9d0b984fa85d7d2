"""Lists public definitions that no production path reaches; exits 1 if there are any.

A definition (function, class, method, module constant) is reached when its name occurs in a part of
the code that is itself reached: the statements of a module, or the body of a reached definition.
Imports alone reach nothing, and tests are not production. Names stand for all definitions of that
name, so what this lists is dead for certain; it may miss some. A definition of a module has, beside
that, to be mentioned again in its module, or imported from it, or named in a text.

Also lists parameters with a default that no call in the repository passes, tests' calls neither: of
functions that are only called, by their own name (`unpassed`).
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

PRODUCTION = ("include/turnstile", "extensions", "dags", "plugins", "docker")
LISTED = ("include/turnstile", "extensions")
CALLING = (*PRODUCTION, "tests", "benchmarks", ".ci")
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
    mentioned = _named_in_texts(root)
    for folder in PRODUCTION:
        for path in sorted((root / folder).rglob("*.py")):
            tree = _tree(path)
            if folder not in LISTED:  # Airflow calls what stands there
                mentioned |= set(_names(tree.body))
                continue
            file_definitions, names = _read(tree.body, path.relative_to(root).as_posix(), None)
            definitions += file_definitions
            mentioned |= names
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


def unimported(root: Path) -> list[Definition]:
    """Return the public definitions of modules that only others of the same name keep alive."""
    candidates, named, taken = list[tuple[str, Definition]](), _named_in_texts(root), set[str]()
    for path in chain.from_iterable((root / folder).rglob("*.py") for folder in PRODUCTION):
        nodes, imported, used = [*ast.walk(_tree(path))], dict[str, str](), set[str]()
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                of = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                imported |= {a.asname or a.name: f"{of}{a.name}" for a in node.names}
            elif isinstance(node, ast.Constant):
                named.add(str(node.value))
            used.add(str(getattr(node, "id", getattr(node, "attr", ""))))
        taken |= {*imported.values()}
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                taken.add(f"{imported.get(node.value.id, node.value.id)}.{node.attr}")
        place = path.relative_to(root).as_posix()
        for statement in _tree(path).body if place.startswith(LISTED[0]) else ():
            name = getattr(statement, "name", None) or _constant(statement) or "_"
            if name not in used and not name.startswith("_") and FRAMEWORK_MODULES not in place:
                found = Definition(place, statement.lineno, name, None, frozenset())
                candidates.append((f"{_module(place)}.{name}", found))
    return [one for name, one in candidates if name not in taken and one.name not in named]


def unpassed(root: Path) -> list[Definition]:
    """Return the parameters with a default that no call passes; of functions that are only called.

    One that is handed on, imported by another name or named in a text may be called anyhow.
    """
    candidates, calls = list[tuple[Definition, int]](), defaultdict[str, list[ast.Call]](list)
    handed_on = _named_in_texts(root)
    for path in chain.from_iterable((root / folder).rglob("*.py") for folder in CALLING):
        nodes, place = [*ast.walk(_tree(path))], path.relative_to(root).as_posix()
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        for node in nodes:
            if isinstance(node, ast.Call):
                calls[_last_name(node.func)].append(node)
            elif isinstance(node, ast.alias):
                handed_on.add(node.name if node.asname else "")
            elif isinstance(node, ast.Constant):
                handed_on.add(str(node.value).rpartition(".")[2])
            elif id(node) not in called:
                handed_on.add(_last_name(node))
            if isinstance(node, ast.FunctionDef) and place.startswith(LISTED):
                for name, position in () if node.name.startswith("__") else _optional(node.args):
                    found = Definition(place, node.lineno, name, node.name, frozenset())
                    candidates.append((found, position))
    return [
        one
        for one, position in candidates
        if one.owner not in handed_on and "/carried/" not in one.path  # bytes of packages
        if not any(_passes(call, one.name, position) for call in calls[str(one.owner)])
    ]


def _last_name(node: ast.AST) -> str:
    """Return the name that a mention ends with; empty of anything else."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _optional(given: ast.arguments) -> Iterator[tuple[str, int]]:
    """Yield parameters with a default and where calls have them; beyond all if by name alone."""
    placed = [*given.posonlyargs, *given.args]
    for number in range(len(placed) - len(given.defaults), len(placed)):
        yield placed[number].arg, number - (placed[0].arg in {"self", "cls"})
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    yield from ((parameter.arg, sys.maxsize) for parameter, default in named if default)


def _passes(call: ast.Call, name: str, position: int) -> bool:
    """Tell whether a call passes a parameter, or may."""
    is_open = any(isinstance(argument, ast.Starred) for argument in call.args)
    is_named = any(keyword.arg in {name, None} for keyword in call.keywords)
    return is_open or is_named or len(call.args) > position


def _named_in_texts(root: Path) -> set[str]:
    """Return what frameworks, templates and entry points of extensions call by name."""
    texts = chain.from_iterable(
        (root / folder).glob(kind) for folder in PRODUCTION for kind in ("**/*.html", "*/*.toml")
    )
    return set(ENTRY_POINTS).union(*(_WORD.findall(text.read_text()) for text in texts))


@cache
def _tree(path: Path) -> ast.Module:
    """Return what a file holds."""
    return ast.parse(path.read_text())


def _module(path: str) -> str:
    """Return the name under which a file is imported."""
    return path.removeprefix("include/").removesuffix(".py").replace("/", ".")


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
    root = Path(__file__).resolve().parents[1]
    symbols = [*dict.fromkeys([*unreached(root), *unimported(root)])]
    for symbol in symbols:
        owner = f"{symbol.owner}." if symbol.owner else ""
        print(f"{symbol.path}:{symbol.line}: {owner}{symbol.name} is reached by no production path")
    for one in (parameters := unpassed(root)):
        print(f"{one.path}:{one.line}: {one.owner}({one.name}=) is passed by no call: a constant")
    return 1 if symbols or parameters else 0


if __name__ == "__main__":
    sys.exit(main())
