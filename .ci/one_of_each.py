"""Holds what one room decides to that room; exits 1 if another module decides it again.

States of attempts are read by the ledger and the trusted core: others ask `ledger/weeks.py` what
became of a week. One pattern says which folder is a revision's, and a release key what it is
called. A key of the programme file of two words or more (`unit` and `delta` stand in several
sections) is declared by one record.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from code_lines import SOURCES
from trusted_core import LIST, listed

ROOT = Path(__file__).resolve().parents[1]
LEDGER, PROGRAMME = "ledger", "programme"
SCHEMA = "include/programmes/programme.schema.json"
STATES = {"is_sealed", "is_held", "is_drawing", "is_charged", "is_public", "is_withdrawn"}
SETS_OF_STATES = {"ReleaseState", "SEALED_STATES", "OPEN_STATES", "CHARGED_STATES"}
SPELLS_REVISION = re.compile(r"\br\(?(\?:|\?P<\w+>)?(0\||\[[01]-9\]|\\d)")
MAY_SPELL_REVISIONS = {
    "ledger/records.py": "the one pattern, and `revision_of`",
    "publishing/carried/sums.py": "carried by packages: it imports nothing of ours",
    "publishing/carried/verify_package.py": "the same",
}


def modules(root: Path) -> Mapping[str, ast.Module]:
    """Return the sources by path below `include/turnstile`; those beside it by their folder."""
    paths = {path: path.relative_to(root / SOURCES) for path in (root / SOURCES).rglob("*.py")}
    for folder in ("plugins", "dags", "extensions"):
        paths |= {path: path.relative_to(root) for path in (root / folder).rglob("*.py")}
    return {
        name.as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path, name in sorted(paths.items())
    }


def of_states(trees: Mapping[str, ast.Module], may_read: frozenset[str]) -> Iterator[str]:
    """Yield who reads the state of an attempt and may not."""
    for path, tree in trees.items():
        if path.split("/")[0] == LEDGER or path in may_read:
            continue
        read = set(_read_of_records(tree)) & STATES
        read |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & SETS_OF_STATES
        if read:
            yield f"{path} reads {', '.join(sorted(read))}: ask the ledger's week (ledger/weeks.py)"


def _read_of_records(tree: ast.Module) -> Iterator[str]:
    """Yield the fields that a module reads of records: by a dot, by `getattr`, by `match`."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in called:
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.MatchClass):
            yield from node.kwd_attrs


def of_revisions(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    """Yield who spells the pattern or the name of a revision's folder again."""
    for path, tree in trees.items():
        texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        spells = any(SPELLS_REVISION.search(text) for text in texts if isinstance(text, str))
        spells = spells or _names_revision(tree)
        if spells and path not in MAY_SPELL_REVISIONS:
            ask = "ask ledger/records.py (revision_of, ReleaseKey)"
            yield f"{path} spells folders of revisions: {ask}"
        if path in MAY_SPELL_REVISIONS and not spells:
            yield f"{path} spells no folder of a revision: take it off .ci/one_of_each.py"


def _names_revision(tree: ast.Module) -> bool:
    """Tell whether an f-string names a revision's folder: `a/r{revision}`, or that behind a `/`."""
    divided = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp)]
    parts = {id(node.right) for node in divided if isinstance(node.op, ast.Div)}
    return any(
        isinstance(before, ast.Constant)
        and isinstance(value, ast.FormattedValue)
        and ("/" * (id(text) in parts) + str(before.value)).endswith("/r")
        and ast.unparse(value.value).endswith("revision")
        for text in ast.walk(tree)
        if isinstance(text, ast.JoinedStr)
        for before, value in pairwise(text.values)
    )


def keys_of(schema: object) -> Iterator[str]:
    """Yield the keys of two words or more that a JSON Schema knows, at any depth."""
    if isinstance(schema, Mapping):
        yield from (key for key in schema.get("properties", ()) if "_" in key)
    for part in schema.values() if isinstance(schema, Mapping) else ():
        for child in part if isinstance(part, list) else [part]:
            yield from keys_of(child)


def of_keys(trees: Mapping[str, ast.Module], keys: frozenset[str]) -> Iterator[str]:
    """Yield the keys that two records of a programme declare."""
    declared: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for record in ast.walk(tree) if path.startswith(f"{PROGRAMME}/") else ():
            for line in record.body if isinstance(record, ast.ClassDef) else ():
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    declared[line.target.id].append(f"{path}:{record.name}")
    for key, records in declared.items():
        if key in keys and len(records) > 1:
            yield f"{key} is declared by {' and '.join(records)}: one record says what a key is"


def faults(trees: Mapping[str, ast.Module], root: Path = ROOT) -> Iterator[str]:
    """Yield everything that sources decide twice."""
    names = listed((root / LIST).read_text(encoding="utf-8"))
    trusted = frozenset(f"{name.replace('.', '/')}.py" for name in names)
    yield from of_states(trees, trusted)
    yield from of_revisions(trees)
    yield from of_keys(trees, frozenset(keys_of(json.loads((root / SCHEMA).read_bytes()))))


def main() -> int:
    """Print what is wrong."""
    wrong = list(faults(modules(ROOT)))
    print(*wrong or ["states, folders of revisions and keys are decided once"], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
