"""A draw outlives the task that asked for it; only the death of its own process costs a charge."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from deployment_fixtures import BegunWeek
from row_table import MOMENTS, Row, keep
from small_deployment import WEEK, Deployment

from turnstile.errors import BudgetExceeded, DrawDied, RefusedError, TurnstileError
from turnstile.ledger.charging import ChargingLedger
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.records import AccountBalance, ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.pipeline.context import open_release
from turnstile.pipeline.draw import charged_draw, drawing, drawing_apart
from turnstile.pipeline.draw.drawing import report_death
from turnstile.pipeline.draw.drawing_apart import draw_apart
from turnstile.pipeline.steps import step_named

KEY = ReleaseKey("opal", WEEK)
ASK = f"from turnstile.pipeline.draw.drawing_apart import draw_apart; draw_apart('opal', '{WEEK}')"


@pytest.fixture
def reserved(begun_week: BegunWeek) -> Deployment:
    return begun_week("opal", "draw")


def _states(place: Deployment) -> list[ReleaseState]:
    return [attempt.state for attempt in place.ledger.attempts(KEY)]


def _wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.long
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
        "    from turnstile.pipeline.draw import charged_draw\n"
        f"{begin}"
    )
    patch.setenv("PYTHONPATH", str(folder))


@pytest.mark.some(1)
@pytest.mark.parametrize("tenths", [3, 12, 20])
def test_a_task_that_is_killed_burns_nothing_and_the_next_one_waits_for_the_seal(
    reserved: Deployment, tenths: int
) -> None:
    with subprocess.Popen([sys.executable, "-c", ASK], start_new_session=True) as task:  # noqa: S603 - our own words
        time.sleep(tenths / 10)
        task.send_signal(signal.SIGKILL)
    digest = draw_apart("opal", WEEK)
    assert _states(reserved) == [ReleaseState.SEALED]
    assert reserved.ledger.attempts(KEY)[0].artefact_digest == digest


@dataclass(frozen=True)
class Moment:
    """A week whose draw lost a process at one moment.

    Args:
        then: its attempts.
        has_begun: whether noise may have existed then.
        sealed: its attempts once it was sealed.
        charges: all draws together, in draws.
    """

    then: tuple[ReleaseState, ...]
    has_begun: bool
    sealed: tuple[ReleaseState, ...]
    charges: int


def _killed_ever_later(
    place: Deployment,
    patch: pytest.MonkeyPatch,
    kill: Callable[[psutil.Process], None],
    since: str,
    apart_s: float = 0.1,
) -> list[Moment]:
    """Ask for a draw again and again, and kill later each time, until its charge or its end.

    Args:
        place: with a reservation; each draw has a copy of it.
        patch: of the environment.
        kill: is handed the process that asked, as a task does.
        since: `start` or `charge`: from when on moments count; those since its start end when one
            has charged, those since its charge when one ends by itself.
        apart_s: between the moments of two kills.
    """
    moments: list[Moment] = []
    once = _price(place)
    is_over = False
    while not is_over:
        home = place.home.with_name(f"killed, {len(moments)}")
        shutil.copytree(place.home, home)
        with patch.context() as there:
            there.setenv("TURNSTILE_HOME", str(home))
            with subprocess.Popen([sys.executable, "-c", ASK], start_new_session=True) as task:  # noqa: S603 - our own words
                if since == "charge":
                    _wait_for(place.ledger.living_draws, 300)
                time.sleep(len(moments) * apart_s)
                is_over = task.poll() is not None
                if not is_over:
                    kill(psutil.Process(task.pid))
            then = tuple(_states(place))
            kinds = {entry.kind for entry in place.ledger.entries_of(KEY)}
            is_over = is_over or (since == "start" and then != (ReleaseState.RESERVED,))
            step_named("draw")("opal", WEEK)
            charges, rest = divmod(sum(map(_rho_nano, place.ledger.balance())), once)
            assert rest == 0
            begun = EntryKind.DRAW_STARTED in kinds
            moments.append(Moment(then, begun, tuple(_states(place)), charges))
        shutil.rmtree(home, ignore_errors=True)  # a process that nobody waits for may still look in
    return moments


BETWEEN_S = 2
"""What a draw takes from its noise to its seal at least, so that many moments fall in between."""


def _price(place: Deployment) -> int:
    """Return what one draw of a reserved week charges all accounts together."""
    return sum(account.held.rho_nano or 0 for account in place.ledger.balance())


def _rho_nano(account: AccountBalance) -> int:
    assert account.held.rho_nano == 0
    return account.spent.rho_nano or 0


def _row(what: str, moments: list[Moment]) -> Row:
    """Return what is printed of the moments of a draw."""
    charged = sum(moment.then == (ReleaseState.DRAWING,) for moment in moments)
    burned = sum(ReleaseState.BURNED in moment.sealed for moment in moments)
    return (what, str(len(moments)), str(charged), str(burned))


def _sealing_takes(patch: pytest.MonkeyPatch, folder: Path, seconds: float) -> None:
    """Let every draw take its time between charge and seal."""
    _begin_drawing_with(
        patch,
        folder,
        "import time",
        "write_once = charged_draw.write_once",
        f"charged_draw.write_once = lambda *its: (time.sleep({seconds}), write_once(*its))",
    )


@pytest.mark.long
@pytest.mark.parametrize("since", ["start", "charge"])
def test_a_task_that_is_killed_in_any_tenth_of_a_second_burns_nothing(
    reserved: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    since: str,
) -> None:
    _sealing_takes(monkeypatch, tmp_path, BETWEEN_S)
    moments = _killed_ever_later(reserved, monkeypatch, psutil.Process.kill, since)
    keep(request.node, MOMENTS, [_row(f"the task, every 0.1 s since its {since}", moments)])
    assert {(moment.sealed, moment.charges) for moment in moments} == {((ReleaseState.SEALED,), 1)}
    then = [moment.then for moment in moments]
    if since == "start":
        assert set(then[:-1]) == {(ReleaseState.RESERVED,)}
    else:
        assert set(then) == {(ReleaseState.DRAWING,), (ReleaseState.SEALED,)}
        assert then.count((ReleaseState.DRAWING,)) >= 10


@pytest.mark.long
@pytest.mark.parametrize(("since", "apart_s"), [("start", 1.0), ("charge", 0.3)])
def test_a_drawing_process_that_is_killed_is_burned_between_its_beginning_and_its_seal_alone(
    reserved: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    since: str,
    apart_s: float,
) -> None:
    # Negative control of the test before.
    def kill_drawing(task: psutil.Process) -> None:
        _wait_for(lambda: task.children() or task.status() == psutil.STATUS_ZOMBIE, 300)
        drawing_processes = task.children()
        for process in drawing_processes:
            process.kill()
        psutil.wait_procs(drawing_processes, timeout=60)

    _sealing_takes(monkeypatch, tmp_path, BETWEEN_S)
    moments = _killed_ever_later(reserved, monkeypatch, kill_drawing, since, apart_s)
    what = f"the drawing process, every {apart_s} s since its {since}"
    keep(request.node, MOMENTS, [_row(what, moments)])
    for kill_moment in moments:
        is_burned = kill_moment.then == (ReleaseState.DRAWING,) and kill_moment.has_begun
        burned = (ReleaseState.BURNED,) if is_burned else ()
        assert (kill_moment.sealed, kill_moment.charges) == (
            (*burned, ReleaseState.SEALED),
            1 + is_burned,
        )
    assert {len(moment.then) for moment in moments} == {1}
    assert sum(moment.charges == 2 for moment in moments) >= (5 if since == "charge" else 0)


@pytest.mark.long
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


@pytest.mark.long
def test_a_task_that_is_interrupted_or_timed_out_leaves_its_draw_alone(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _sealing_takes(monkeypatch, tmp_path, 8)
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # if ignored
    asked = [sys.executable, "-c", f"{heard}; {ASK}"]
    with subprocess.Popen(asked, start_new_session=True) as task:  # noqa: S603 - our own words
        _wait_for(reserved.ledger.living_draws)
        task.send_signal(signal.SIGINT)  # raises inside the task, as Airflow's timeout does
    assert task.returncode != 0
    _wait_for(lambda: _states(reserved) == [ReleaseState.SEALED])


@pytest.mark.parametrize("is_charged", [True, False])
def test_a_drawing_process_that_is_stopped_burns_nothing(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_charged: bool
) -> None:
    """A machine that is shut down, or Ctrl-C of `make ui`, sends SIGTERM to every process."""
    place = "charged_draw.write_once" if is_charged else "drawing.ready_to_draw"
    _begin_drawing_with(
        monkeypatch,
        tmp_path,
        "import os, signal",
        "from turnstile.pipeline.draw import drawing",
        f"real = {place}",
        "stop = lambda: os.kill(os.getpid(), signal.SIGTERM)",
        f"{place} = lambda *given: (stop(), real(*given))[1]",
    )
    if is_charged:
        digest = draw_apart("opal", WEEK)
        assert reserved.ledger.attempts(KEY)[0].artefact_digest == digest
    else:
        with pytest.raises(DrawDied, match="stopped before its charge; nothing was charged"):
            draw_apart("opal", WEEK)
    assert _states(reserved) == [ReleaseState.SEALED if is_charged else ReleaseState.RESERVED]


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


def test_a_refusal_comes_back_as_what_it_was(
    begun_week: BegunWeek,
) -> None:
    begun_week("opal", "reserve").edit("opal", 'rho: "1/4"', 'rho: "1/20"')
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


def test_a_hold_whose_inputs_changed_is_let_go_and_costs_nothing(reserved: Deployment) -> None:
    held = reserved.ledger.balance()
    reserved.edit("opal", "title: ", "title: New ")
    for name in ("plan", "reserve"):
        step_named(name)("opal", WEEK)
    assert _states(reserved) == [ReleaseState.VOID, ReleaseState.RESERVED]
    assert reserved.ledger.balance() == held
    step_named("draw")("opal", WEEK)
    assert _states(reserved) == [ReleaseState.VOID, ReleaseState.SEALED]


def test_a_draw_that_was_burned_before_it_drew_touches_nothing_of_the_other(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped for so long that its lease ended, and somebody drew meanwhile."""
    real = ChargingLedger.begin_draw
    other = reserved.home / f"embargoed/opal/{WEEK}/r0/sealed-0000.parquet"

    def begin(ledger: ChargingLedger, attempt_id: str, *given: object, **more: object) -> object:
        begun = real(ledger, attempt_id, *given, **more)  # type: ignore[arg-type]
        ledger.end_lease(str(more["holder"]))
        reserved.ledger.burn(attempt_id, "it looks dead", person="ada")
        release = open_release("opal", WEEK)
        release.ledger.reserve(release.request(release.statement))
        other.write_bytes(b"of the other draw")
        return begun

    monkeypatch.setattr(ChargingLedger, "begin_draw", begin)
    with pytest.raises(RefusedError, match="was burned before it drew; another draw has it"):
        step_named("draw")("opal", WEEK)
    assert other.read_bytes() == b"of the other draw"
    assert _states(reserved) == [ReleaseState.BURNED, ReleaseState.RESERVED]
