"""Whether a release is in force is said by every tool that a reader checks or asks it with."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_deployment import WEEK

from turnstile.cli import main
from turnstile.ledger.of_deployment import open_ledger
from turnstile.publishing.carried import sums
from turnstile.settings import Settings

PERIOD = f"itms/{WEEK}"
TOOLS = {
    "verify_package.py": (),
    "sums.py": ("speed_buses", "--column", "measured"),
    "draws.py": ("speed", "--column", "mean"),
}
FILES = ("r0/manifest.json", "r1/manifest.json", "r10/manifest.json", "withdrawn-r0.json")


def said_of(package: Path) -> dict[str, str]:
    """What each tool of the package says of it."""
    said = {}
    for name, asked in TOOLS.items():
        words = (package,) if name == "verify_package.py" else asked
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-B", package / "tools" / name, *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said[name] = done.stdout + done.stderr
    return said


@pytest.fixture
def package(copied_home: Path) -> Path:
    return copied_home / f"public/{PERIOD}/r0"


@pytest.mark.parametrize("is_taken_down", [True, False])
def test_who_runs_a_withdrawn_week_again_brings_no_package_back(
    package: Path, capsys: pytest.CaptureFixture[str], *, is_taken_down: bool
) -> None:
    """RUNBOOK says to take it down, and a cleared run or a backfill made it public again."""
    assert main(["ledger", "withdraw", f"{PERIOD}/r0", "--person", "ada", "--reason", "x"]) == 0
    if is_taken_down:
        shutil.rmtree(package)
    ledger = open_ledger(Settings.from_environment(), read_only=True)
    before = ledger.balance()
    capsys.readouterr()
    assert main(["run", "itms", "--week", WEEK]) == 0
    said = capsys.readouterr()
    where = "is taken down, and stays so" if is_taken_down else "stays public"
    assert f"withdrawn: its package {where}" in said.out + said.err
    assert package.exists() != is_taken_down
    assert ledger.balance() == before
    assert main(["ledger", "verify"]) == 0


def test_every_tool_says_that_a_release_was_withdrawn(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in said_of(package).values():
        assert " was withdrawn" not in text
    assert main(["ledger", "withdraw", f"{PERIOD}/r0", "--person", "ada", "--reason", "x"]) == 0
    see = f"see {PERIOD}/withdrawn-r0.json"
    note = f"note: {PERIOD}/r0 was withdrawn, {see}; no revision of it is in force"
    assert all(note in text for text in said_of(package).values())
    capsys.readouterr()
    assert main(["package", "verify", str(package)]) == 0
    assert note in capsys.readouterr().out
    assert main(["package", "verify", package.as_uri()]) == 0  # by the signed list alone
    assert note in capsys.readouterr().out


def test_every_tool_says_that_a_release_was_superseded(package: Path, tmp_path: Path) -> None:
    alone = tmp_path / "copies" / PERIOD
    shutil.copytree(package, alone / "r0")
    shutil.copytree(package, alone / "r1")  # what it holds is not asked
    note = f"note: {PERIOD}/r0 was superseded: {PERIOD}/r1 is in force"
    assert all(note in text for text in said_of(alone / "r0").values())
    (alone / "withdrawn-r1.json").write_text("{}")
    assert not any("in force" in text for text in said_of(alone / "r0").values())
    other = tmp_path / "downloads/r0"  # beside what is of other programmes
    shutil.copytree(package, other)
    shutil.copytree(package, other.with_name("r1"))
    assert not any("in force" in text for text in said_of(other).values())


@pytest.mark.parametrize("number", range(2 ** len(FILES)))
def test_what_stands_follows_from_the_names_beside_a_release(number: int) -> None:
    names = {f"{PERIOD}/{name}" for n, name in enumerate(FILES) if number >> n & 1}
    names |= {f"{PERIOD}0/r7/manifest.json", "itms/index.html"}
    of_each = {release: sums.standing(f"{PERIOD}/{release}", names) for release in ("r0", "r1")}
    assert ("withdrawn" in of_each["r0"]) == (f"{PERIOD}/withdrawn-r0.json" in names)
    is_newer = f"{PERIOD}/r10/manifest.json" in names
    newer = f"{PERIOD}/r1 was superseded: {PERIOD}/r10 is in force"
    assert of_each["r1"] == (newer if is_newer else "")


@pytest.mark.parametrize("name", [*TOOLS, "verify_losses.py"])
def test_a_tool_whose_reader_has_enough_ends_quietly(package: Path, name: str) -> None:
    """`| head` ended in a traceback."""
    words = TOOLS.get(name) or (str(package),)
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-B", package / "tools" / name, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as tool:
        assert tool.stdout is not None
        assert tool.stderr is not None
        tool.stdout.close()
        said = tool.stderr.read()
    assert said == ""
    assert tool.returncode == 141  # as a shell reports it


@pytest.mark.usefixtures("copied_home")
def test_the_command_line_ends_quietly_too() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "turnstile.cli", "ledger", "balance"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        assert command.stderr.read() == ""
    assert command.returncode == 141
