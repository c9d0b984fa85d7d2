"""The core without extensions: it plans a week, and says which extension something needs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import core_alone
import pytest

CORE_COMMANDS = {"check", "plan", "run", "domain", "ledger", "retention", "package"}
ROOT = core_alone.ROOT
S3 = "s3://bucket/private"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return core_alone.make(tmp_path_factory.mktemp("core") / "venv")


def turnstile(python: Path, home: Path, *words: str, **settings: str) -> tuple[int, str]:
    """Exit code of a command in the core alone, and what it says."""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [python, "-m", "turnstile.cli", *words],
        env={"PATH": "/usr/bin:/bin", "TURNSTILE_HOME": str(home), **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_help_lists_the_commands_that_are_there(python: Path, tmp_path: Path) -> None:
    code, said = turnstile(python, tmp_path, "--help")
    assert code == 0
    listed = {line.split()[0] for line in said.splitlines() if line.startswith("    ")}
    assert listed >= CORE_COMMANDS
    assert not listed & {"new", "sample", "lab", "stores", "portal", "report", "itms"}


@pytest.mark.long
def test_a_week_is_planned_without_extensions(python: Path, tmp_path: Path) -> None:
    code, said = turnstile(python, tmp_path, "plan", "opal", "--week", "2016-W30")
    assert (code, "loss of one" in said) == (0, True), said


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("words", "settings", "extension", "asked_by"),
    [
        (("sample", "opal"), {}, "samples", "the command sample"),
        (("new", "x.csv"), {}, "design", "the command new"),
        (("portal", "list", "opal"), {}, "stores", "the command portal"),
        (("plan", "opal", "--compare"), {}, "design", "--compare"),
        (("assess", "counts.csv"), {}, "lab", "assess"),
        (
            ("run", "opal", "--week", "2016-W30"),
            {f"TURNSTILE_{zone}_STORE": S3 for zone in ("PRIVATE", "EMBARGOED", "PUBLIC")},
            "stores",
            "TURNSTILE_PRIVATE_STORE",
        ),
        (("check", "portal"), {}, "stores", "publish.to"),
    ],
)
def test_what_needs_a_missing_extension_names_it(
    python: Path,
    tmp_path: Path,
    words: tuple[str, ...],
    settings: dict[str, str],
    extension: str,
    asked_by: str,
) -> None:
    include = tmp_path / "include"
    (include / "programmes").mkdir(parents=True)
    shutil.copytree(ROOT / "include/domains", include / "domains")
    text = (ROOT / "include/programmes/opal.yaml").read_text()
    (include / "programmes/opal.yaml").write_text(text)
    address = "publish:\n  to: [file:///srv/open]\n"
    assert "\npublish:\n" in text
    sent = text.replace("name: opal", "name: portal").replace("\npublish:\n", f"\n{address}")
    (include / "programmes/portal.yaml").write_text(sent)
    asked = {"TURNSTILE_INCLUDE": str(include), **settings}
    code, said = turnstile(python, tmp_path / "home", *words, **asked)
    assert code == 2, said
    assert f"needs the extension {extension}; install it" in said
    assert asked_by in said


def test_tests_of_a_missing_extension_are_known(tmp_path: Path) -> None:
    names = {
        path.name
        for path in (ROOT / "tests/stores").glob("test_*.py")
        if "stores" in core_alone.extensions_of(path)
    }
    assert "test_unit_zone.py" in names
    worlds = ROOT / "tests/simulation"
    assert "stores" in core_alone.extensions_of(worlds / "test_simulated_world.py")  # its support
    assert "native" in core_alone.extensions_of(ROOT / "tests/dags/backfill_matrix/conftest.py")
    of_core = tmp_path / "test_of_core.py"
    of_core.write_text("from turnstile.ledger import entries\n")
    assert not core_alone.extensions_of(of_core)
    of_core.write_text('def test() -> None:\n    pytest.importorskip("turnstile_design")\n')
    assert not core_alone.extensions_of(of_core)  # but for that test
