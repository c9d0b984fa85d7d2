"""The version before this one and this one share a ledger, through an upgrade and back.

The version before runs from its own files, in processes of its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from small_deployment import Deployment
from version_before import version_before, version_of_fewer_kinds

from turnstile.ledger.of_deployment import open_ledger
from turnstile.pipeline.steps import STEPS
from turnstile.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
WEEKS = ("2016-W30", "2016-W31", "2016-W32", "2016-W33")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `include` folder of the code of a day ago."""
    return _included(tmp_path_factory.mktemp("before"), version_before)


def _included(folder: Path, unpack: Callable[[Path], bool]) -> Path:
    if not unpack(folder):
        pytest.skip("this checkout has no history to take the version before from")
    return folder / "include"


def _turnstile(include: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command by the code in a folder, in the deployment of this test."""
    return _python(include, "-m", "turnstile.cli", *arguments)


def _steps(include: Path, week: str, steps: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Do some steps of a week by that code, as tasks of Airflow do."""
    done = f"for step in {tuple(steps)}: step_named(step)('opal', '{week}', 0)"
    return _python(include, "-c", f"from turnstile.pipeline.steps import step_named\n{done}")


def _python(include: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = (include, *sorted(include.with_name("extensions").iterdir()))
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, code))},  # noqa: TID251 - handed on
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def _bytes_of(deployment: Deployment) -> dict[str, str]:
    files = (path for path in deployment.public.glob("opal/*/r*/**/*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _deliver(before: Path, deployment: Deployment) -> None:
    # Programmes that both read: keys of the newer version wait until nobody goes back.
    shutil.rmtree(deployment.include / "programmes")
    shutil.copytree(before / "programmes", deployment.include / "programmes")
    deployment.edit("opal", "slot_minutes: 15", "slot_minutes: 240")
    made = ("sample", "opal", "--weeks", f"{WEEKS[0]}:{WEEKS[-1]}", "--rows", "2000", "--seed", "3")
    assert _turnstile(before, *made).returncode == 0


def test_a_week_that_the_version_before_began_is_ended_by_this_one(
    before: Path, deployment: Deployment
) -> None:
    now = ROOT / "include"
    _deliver(before, deployment)
    for last, week in zip(("count", "draw", "assess", "approve"), WEEKS, strict=True):
        at = STEPS.index(last) + 1
        done = _steps(before, week, STEPS[:at])
        assert done.returncode == 0, done.stderr
        assert not (deployment.public / "opal" / week / "r0").exists()
        done = _steps(now, week, STEPS[at:])
        if last == "count" and done.returncode:  # nothing is charged for what other code counted
            assert "clear its run from ingest on" in done.stderr
            done = _steps(now, week, STEPS)
        assert done.returncode == 0, done.stderr
        for command in (
            ("ledger", "verify"),
            ("package", "verify", f"{deployment.public}/opal/{week}/r0"),
        ):
            done = _turnstile(now, *command)
            assert done.returncode == 0, done.stdout + done.stderr


def test_both_versions_share_a_ledger_until_an_entry_that_one_does_not_know(
    before: Path, deployment: Deployment, tmp_path: Path
) -> None:
    now = ROOT / "include"
    _deliver(before, deployment)
    public: dict[str, str] = {}
    spent = -1
    for include, week in zip((before, now, before, now), WEEKS, strict=True):
        done = _turnstile(include, "run", "opal", "--week", week)
        assert done.returncode == 0, done.stderr
        for other in (before, now):
            done = _turnstile(other, "ledger", "verify")
            assert done.returncode == 0, done.stdout + done.stderr
            done = _turnstile(other, "run", "opal", "--week", WEEKS[0])
            assert "0 charged" in done.stderr
        after = _bytes_of(deployment)
        assert public.items() < after.items(), "nothing that was public changed"
        public = after
        card = next(value for name, value in deployment.spent().items() if name.startswith("card:"))
        assert card is not None
        assert card > spent
        spent = card

    # The control: code that does not know all kinds of entries refuses, and changes nothing.
    ledger = open_ledger(Settings.from_environment())
    head, kinds = ledger.head(), {entry.kind.value for entry in ledger.entries()}
    older = _included(tmp_path / "older", partial(version_of_fewer_kinds, kinds=kinds))
    assert _turnstile(older, "ledger", "verify").returncode == 4
    assert _turnstile(older, "run", "opal", "--week", WEEKS[-1]).returncode != 0
    assert _turnstile(now, "ledger", "verify").returncode == 0
    assert _bytes_of(deployment) == public
    assert open_ledger(Settings.from_environment()).head() == head
