"""Tampers, counted: by what each is seen, or which line of SECURITY.md says why by nothing.

Each of the first kinds is a test of its own where it is named; those of this file are the rest.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path

import pytest
from test_disasters import TABLE
from test_public_log import COSIGNATURES, PLANTED, UNSIGNED

ROOT = Path(__file__).resolve().parents[2]
PRIVATE = (
    "the record of its exact counts is gone",
    "its exact counts are gone or altered",
    "its exact counts are others than it was reserved with",
    "the record of its rows is gone",
    "its rows are gone or altered",
    "bounding.key is gone",
    "is another one than the ledger names",
)
CARRIED = (
    "loss",
    "noise",
    "sum",
    "type",
    "statement stripped",
    "publication proof of a log of nobody",
    "publication proof of a log of a stranger",
    "note without signature",
    "list removed",
    "log removed",
    "withdrawal forged",
    "foreign file",
    "foreign file in the log",
    "hidden foreign file",
    "foreign file in a folder of no package",
    "foreign file beside copies",
    "manifest removed",
    "series removed",
    "linked folder",
    "proof of another entry",
    "note of another release",
    "list altered",
    "newest checkpoint of before",
    "test_a_rewritten_ledger_is_seen_though_every_folder_is_the_attackers",
    "test_a_package_without_its_proof_is_no_answer_to_who_kept_a_checkpoint",
    "test_no_tree_grows_by_hashes_of_other_lengths",
    "test_a_signature_of_another_key_is_found",
)
NAMED = {
    "ledger, keys and witnesses rewritten by one hand, where nobody kept a checkpoint": (
        "rewritten by one hand"
    ),
    "a package and its note signed anew by whoever holds the key, over proofs that stand": (
        "with proofs of entries that stand in the log"
    ),
    "the newest note replaced by an older one": "its age tells nothing",
    "a cosignature of an unknown cosigner": "under a key that nobody here knows",
    "rows under the name of a draft": "under the name of a lock or of a draft",
    "a staged package and its manifest altered": "altered together with its manifest",
    "everything signed anew under a stranger's key, where the log's alone was kept": (
        "Keep `ledger.pub` too"
    ),
    "everything deleted": "deleting everything: see RUNBOOK",
    "an empty folder among the public ones": "an empty folder: a publication makes",
    "the link to the newest release on another": "the link `latest` on another release",
    "a cosignature removed, and its line": "cosignatures and checkpoints that were removed",
    "an older signed list, for an hour": "an older signed list within an hour",
    "a key planted together with a note that it signed": "together with a note that it signed",
    "rights of files": "rights of files and folders",
    "a stranger's file under embargo or in a witness": "in the embargoed zone or in a witness",
    "a witness's note of what is not public removed": "went with nothing public",
    "a witness's copy of the public key removed": "removed from a witness: the ledger's entries",
    "tables, columns, indexes, constraints beside": "constraints of its tables that were dropped",
    "rows of zeros or of unknown families": "rows that no\n  account asks for",
}
"""Tampers that nothing sees, and words of the line of docs/SECURITY.md that says so."""

SEEN_BY: Mapping[str, str] = {
    **dict.fromkeys(TABLE, "ledger verify"),
    **{f"signed later: {name}": "ledger verify" for name in UNSIGNED},
    **{f"log: {name}": "ledger verify" for name in (*PLANTED, *COSIGNATURES)},
    **{f"private zone: {name}": "ledger verify --private" for name in PRIVATE},
    **{f"package: {name}": "verify_package.py" for name in CARRIED},
    **dict.fromkeys(NAMED, "docs/SECURITY.md"),
}


def test_there_are_sixty_and_each_has_its_answer() -> None:
    gathered = (TABLE, UNSIGNED, PLANTED, COSIGNATURES, PRIVATE, CARRIED, NAMED)
    assert len(SEEN_BY) == sum(map(len, gathered))
    assert len(SEEN_BY) - len(NAMED) >= 120


@pytest.mark.parametrize(
    ("names", "path"),
    [
        (PRIVATE, "tests/pipeline/test_private_verification.py"),
        (CARRIED, "tests/publishing/test_verify_package.py"),
    ],
)
def test_what_is_seen_elsewhere_is_a_test_there(names: tuple[str, ...], path: str) -> None:
    assert {*names} - {*_tried_in(ROOT / path)} == set()


def _tried_in(path: Path) -> Iterator[str]:
    """Yield the names of tests, and what they are parametrised with: names, or those of a table."""
    tree = ast.parse(path.read_bytes())
    tables = {
        ast.unparse(node.target): node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
    }
    for test in ast.walk(tree):
        if isinstance(test, ast.FunctionDef) and test.name.startswith("test_"):
            yield test.name
            for mark in test.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith("parametrize"):
                    values = tables.get(ast.unparse(mark.args[1]), mark.args[1])
                    keys = values.keys if isinstance(values, ast.Dict) else list(ast.walk(values))
                    yield from (str(key.value) for key in keys if isinstance(key, ast.Constant))


@pytest.mark.parametrize("name", NAMED)
def test_what_nothing_sees_is_named_with_its_reason(name: str) -> None:
    assert NAMED[name] in (ROOT / "docs/SECURITY.md").read_text()


@pytest.mark.parametrize(
    ("module", "test", "table"),
    [
        ("test_disasters", "test_verification_finds_it_names_it_and_exits_4", TABLE),
        ("test_public_log", "test_what_is_planted_in_the_log_is_found", PLANTED),
        (
            "test_public_log",
            "TestCosigners.test_a_kept_cosignature_that_is_false_is_found",
            COSIGNATURES,
        ),
        ("test_public_log", "test_what_nobody_wrote_is_signed_by_no_later_signing", UNSIGNED),
    ],
)
def test_a_table_is_parametrised_where_it_stands(
    module: str, test: str, table: Mapping[str, object]
) -> None:
    marks = attrgetter(test)(importlib.import_module(module)).pytestmark
    assert [{*mark.args[1]} for mark in marks if mark.name == "parametrize"] == [{*table}]
