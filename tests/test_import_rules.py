"""The import rules of pyproject.toml are kept, and a breach of them is seen."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINT = Path(sys.executable).parent / "lint-imports"


def _lint(project: Path) -> str:
    """Check a copy of the project, and return what is said of its contracts."""
    places = [project / "include", *sorted((project / "extensions").iterdir())]
    environment = {"PATH": os.defpath, "PYTHONPATH": ":".join(map(str, places))}
    return subprocess.run(  # noqa: S603 - our own tool
        [LINT, "--config", project / "pyproject.toml", "--cache-dir", project / "cache"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    ).stdout


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "include/turnstile", tmp_path / "include/turnstile", ignore=ignored)
    shutil.copytree(ROOT / "extensions", tmp_path / "extensions", ignore=ignored)
    return tmp_path


def test_the_import_rules_are_kept_and_every_breach_is_seen(copy: Path) -> None:
    assert " 0 broken" in _lint(copy)
    code = copy / "include/turnstile"
    lazy = "def _late() -> None:\n    import airflow\n    import turnstile.counting.exact\n"
    for path, breach in (
        ("publishing/__init__.py", lazy),
        ("privacy/units.py", "import turnstile.release.plan\n"),
    ):
        with (code / path).open("a", encoding="utf-8") as module:
            module.write(f"\n\n{breach}")
    said = " ".join(_lint(copy).split())  # a long name is wrapped
    assert "Nothing under include/turnstile imports Airflow BROKEN" in said
    assert "Assessment, publishing and operations cannot reach the private zone BROKEN" in said
    assert "Data flows one way: a room imports only rooms below it BROKEN" in said


def test_the_architecture_page_lists_the_rooms_as_the_contract_has_them() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [
        contract["layers"] for contract in contracts["contracts"] if contract["type"] == "layers"
    ]
    page = (ROOT / "docs/ARCHITECTURE.md").read_text()
    drawn = page.partition("## Rooms, from the top down")[2].split("```")[1].strip().splitlines()
    rooms = [" | ".join(part for part in line.split("  ")[0].split(" | ")) for line in drawn]
    assert rooms == layers
    for line in drawn:
        within = {*re.findall(r"(\w+)/", line)}
        folders = (ROOT / "include/turnstile" / line.split()[0]).glob("*/*.py")
        assert within == {path.parent.name for path in folders}


def test_where_a_change_goes_names_files_that_are_there() -> None:
    page = (ROOT / "docs/ARCHITECTURE.md").read_text()
    table = page.partition("## Where a change goes")[2]
    named = set(re.findall(r"`([a-z_/]+(?:\.py|/))`", table))
    assert len(named) > 10
    folders = (ROOT / "include/turnstile", ROOT)
    assert [
        path for path in sorted(named) if not any((folder / path).exists() for folder in folders)
    ] == []
