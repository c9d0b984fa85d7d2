"""A draw outlives the task that asked for it; only the death of its own process costs a charge."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from small_deployment import WEEK, Deployment

from turnstile.errors import BudgetExceeded, DrawDied, TurnstileError
from turnstile.ledger.charging import ChargingLedger
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.pipeline import charged_draw, drawing, drawing_apart
from turnstile.pipeline.context import open_release
from turnstile.pipeline.drawing import report_death
from turnstile.pipeline.drawing_apart import draw_apart
from turnstile.pipeline.steps import step_named

KEY = ReleaseKey("opal", WEEK)
ASK = f"from turnstile.pipeline.drawing_apart import draw_apart; draw_apart('opal', '{WEEK}')"


@pytest.fixture
def reserved(landed: Deployment) -> Deployment:
    for step in ("ingest", "validate", "plan", "count", "reserve"):
        step_named(step)("opal", WEEK)
    return landed


def _states(place: Deployment) -> list[ReleaseState]:
    return [one.state for one in place.ledger.attempts(KEY)]


def _drawing_processes(home: Path) -> list[psutil.Process]:
    """Return the processes that draw for a home."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if drawing_apart.__name__ in (process.info["cmdline"] or [])
        and str(home) in " ".join(process.info["cmdline"])
    ]


def _wait_for(found: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_it_answers_with_the_digest_that_is_sealed_and_leaves_nothing(reserved: Deployment) -> None:
    digest = draw_apart("opal", WEEK)
    assert _states(reserved) == [ReleaseState.SEALED]
    assert reserved.ledger.attempts(KEY)[0].artefact_digest == digest
    assert draw_apart("opal", WEEK) == digest
    assert list((reserved.home / "private/draws").iterdir()) == []


def _begin_drawing_with(patch: pytest.MonkeyPatch, folder: Path, *lines: str) -> None:
    """Let every process that draws run some lines first, which find `charged_draw`."""
    begin = "".join(f"    {line}\n" for line in lines)
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        f"if {drawing_apart.__name__!r} in sys.orig_argv:\n"
        "    from turnstile.pipeline import charged_draw\n"
        f"{begin}"
    )
    patch.setenv("PYTHONPATH", str(folder))


# How long the task lives, in tenths of a second: with the start of Python about 40 to its seal.
LIVES = [3, 12, 20, *(pytest.param(n, marks=pytest.mark.long) for n in range(60))]


@pytest.mark.parametrize("tenths", LIVES)
def test_a_task_that_is_killed_burns_nothing_and_the_next_one_waits_for_the_seal(
    reserved: Deployment, tenths: int
) -> None:
    with subprocess.Popen([sys.executable, "-c", ASK], start_new_session=True) as task:  # noqa: S603 - our own words
        time.sleep(tenths / 10)
        task.send_signal(signal.SIGKILL)
    digest = draw_apart("opal", WEEK)
    assert _states(reserved) == [ReleaseState.SEALED]
    assert reserved.ledger.attempts(KEY)[0].artefact_digest == digest


def test_a_draw_that_nobody_waits_for_any_more_charges_nothing_and_burns_nothing(
    reserved: Deployment,
) -> None:
    begun = reserved.ledger.find(KEY)
    assert begun is not None
    gone = psutil.Process().pid  # not the parent of the process that is started below
    command = (sys.executable, "-m", drawing_apart.__name__, "opal", WEEK, "0")
    for state in (ReleaseState.RESERVED, ReleaseState.DRAWING):
        folder = reserved.home / f"private/asked-{state}"
        folder.mkdir()
        shell = f"{' '.join(command)} {folder} {gone}; exit 0"  # sh is the parent
        subprocess.run(["/bin/sh", "-c", shell], check=True)  # noqa: S603 - our own words
        assert _states(reserved) == [state]
        assert not folder.exists()
        if state is ReleaseState.RESERVED:  # and of a draw that died meanwhile
            reserved.ledger.begin_draw(begun.attempt_id, begun.bindings)


def test_a_task_that_is_interrupted_or_timed_out_leaves_its_draw_alone(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _begin_drawing_with(
        monkeypatch,
        tmp_path,
        "import time",
        "write_once = charged_draw.write_once",
        "charged_draw.write_once = lambda *its: (time.sleep(8), write_once(*its))",
    )
    with subprocess.Popen([sys.executable, "-c", ASK], start_new_session=True) as task:  # noqa: S603 - our own words
        _wait_for(reserved.ledger.living_draws)
        task.send_signal(signal.SIGINT)  # raises inside the task, as Airflow's timeout does
    assert task.returncode != 0
    _wait_for(lambda: _states(reserved) == [ReleaseState.SEALED])


def test_only_a_drawing_process_that_dies_itself_is_burned(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Negative control of the test before.
    with monkeypatch.context() as deadly:
        _begin_drawing_with(  # when the noise is drawn and nothing is stored
            deadly,
            tmp_path,
            "import os, signal",
            "charged_draw.write_once = lambda *_: os.kill(os.getpid(), signal.SIGKILL)",
        )
        with pytest.raises(DrawDied, match="process died .SIGKILL.*stays charged"):
            draw_apart("opal", WEEK)
    assert _states(reserved) == [ReleaseState.DRAWING]
    assert reserved.ledger.living_draws() == frozenset()  # its task knows that it died
    began = time.monotonic()
    draw_apart("opal", WEEK)
    assert time.monotonic() - began < 30  # under the same lock: no lease is waited for
    assert _states(reserved) == [ReleaseState.BURNED, ReleaseState.SEALED]


def test_the_death_of_one_that_waits_ends_no_lease_of_one_that_draws(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = open_release("opal", WEEK)
    monkeypatch.setattr(charged_draw, "write_once", lambda *_: report_death(release))
    monkeypatch.setattr(ChargingLedger, "seal", lambda *_: None)
    drawing.draw(release)
    assert reserved.ledger.living_draws() == {"opal/2016-W30/r0#1"}
    report_death(release)  # now nobody draws
    assert reserved.ledger.living_draws() == frozenset()


def test_a_refusal_comes_back_as_what_it_was(landed: Deployment) -> None:
    for step in ("ingest", "validate", "plan", "count"):
        step_named(step)("opal", WEEK)
    landed.edit("opal", 'rho: "1/4"', 'rho: "1/20"')
    with pytest.raises(TurnstileError) as told:
        draw_apart("opal", WEEK)
    with pytest.raises(type(told.value)) as direct:
        step_named("draw")("opal", WEEK)
    assert (type(told.value), str(told.value)) == (type(direct.value), str(direct.value))
    error = drawing_apart._raised("BudgetExceeded", "asks for 2, 1 is left")
    assert (type(error), str(error)) == (BudgetExceeded, "asks for 2, 1 is left")


def test_what_nobody_foresaw_is_kept_in_the_private_zone_alone(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fault = "charged_draw.digest_of = lambda *_: int('card 3085220012345678')"
    _begin_drawing_with(monkeypatch, tmp_path, fault)
    with pytest.raises(TurnstileError, match="exit 1") as told:
        draw_apart("opal", WEEK)
    assert "3085220012345678" not in str(told.value)
    (report,) = (reserved.home / "private/failures").iterdir()  # where retention deletes
    assert report.name.startswith("opal-draw-")
    assert "3085220012345678" in report.read_text()
    assert report.name in str(told.value)
    assert list((reserved.home / "private/draws").iterdir()) == []


def test_a_living_draw_of_a_home_is_seen_by_the_page(reserved: Deployment) -> None:
    with subprocess.Popen([sys.executable, "-c", ASK], start_new_session=True) as task:  # noqa: S603 - our own words
        _wait_for(lambda: reserved.ledger.living_draws() or task.poll() is not None)
        living = reserved.ledger.living_draws()
        task.wait()
    assert living in ({"opal/2016-W30/r0#1"}, frozenset())
    assert reserved.ledger.living_draws() == frozenset()
    assert _drawing_processes(reserved.home) == []
