"""The trusted core is closed, small, and described: list, imports and page agree."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest
import trusted_core

from turnstile.privacy.mechanisms.registry import MechanismKind
from turnstile.programme.source_spec import Feed

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/TRUSTED_CORE.md"
MODULES = trusted_core.listed((ROOT / trusted_core.LIST).read_text(encoding="utf-8"))


def rows(page: str) -> list[list[str]]:
    """Cells of the page's tables: modules, duty, proof, test."""
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def described(page: str) -> list[str]:
    return [name for row in rows(page) for name in re.findall(r"`([a-z0-9_.]+)`", row[0])]


def missing_tests(page: str) -> list[str]:
    """Tests that a page names and that are not there."""
    missing = []
    for named in re.findall(r"`(tests/[^`]+)`", page):
        file, _, function = named.partition("::")
        path = ROOT / file
        nodes = ast.walk(ast.parse(path.read_text())) if path.exists() else ()
        names = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        is_there = function in names if function else any(n.startswith("test_") for n in names)
        if not is_there:
            missing.append(named)
    return missing


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "include/turnstile", tmp_path / "include/turnstile")
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / trusted_core.LIST, tmp_path / trusted_core.LIST)
    return tmp_path


def test_the_core_imports_nothing_else_of_ours(copy: Path) -> None:
    assert trusted_core.main(copy) == 0


@pytest.mark.parametrize(
    "line",
    [
        "import turnstile.publishing.card",
        "from turnstile.publishing import card",
        "def late() -> None:\n    from turnstile.publishing.card import release_card",
        "if TYPE_CHECKING:\n    from turnstile.publishing.card import release_card",
    ],
)
def test_an_import_from_outside_of_the_core_is_seen(
    copy: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    module = trusted_core.path_of("ledger.admission", copy)
    module.write_text(f"{module.read_text()}\n{line}\n")
    assert trusted_core.main(copy) == 1
    assert "ledger.admission imports publishing.card" in capsys.readouterr().out


def test_a_name_twice_a_name_of_nothing_and_a_large_core_are_seen(
    copy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (copy / trusted_core.LIST).open("a") as file:
        file.write("errors\nledger.nothing\n")
    monkeypatch.setattr(trusted_core, "LINES_AT_MOST", 100)
    assert trusted_core.main(copy) == 1
    said = capsys.readouterr().out
    assert all(
        phrase in said for phrase in ("errors is listed twice", "nothing is listed", "above its")
    )


def test_what_is_imported_by_name_belongs_to_the_core_too() -> None:
    feeds = {f"sources.feeds.{feed}" for feed in Feed}
    mechanisms = {f"privacy.mechanisms.{kind.drawn_by}" for kind in MechanismKind}
    assert feeds | mechanisms <= set(MODULES)


def test_the_page_describes_what_the_list_names() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert sorted(described(page)) == sorted(MODULES)
    assert sorted(described(page.replace("`ledger.charging`", "`ledger.other`"))) != sorted(MODULES)


def test_each_test_that_the_page_names_is_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert all(re.search(r"`tests/[^`]+`$", row[-1]) for row in rows(page))
    assert not missing_tests(page)
    assert missing_tests(page.replace("test_one_card_in_all", "test_no_card_in_all"))
    assert missing_tests(page.replace("tests/test_durable_files.py", "tests/test_no_files.py"))
