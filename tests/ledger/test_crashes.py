"""Real deaths: SIGKILL at every commit, a full disk, a read-only file. Never an under-count."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from ledger_asks import (
    BINDINGS,
    LOSS_MICRO,
    Task,
    ask,
    drawn,
    in_child,
    killed_at_commit,
    noon,
    spent_micro,
    week_number,
)
from sqlalchemy.engine import make_url

from conftest import Stores
from turnstile.errors import InputError, RefusedError
from turnstile.ledger import attempts
from turnstile.ledger.custody.space import require_space
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.states import ReleaseState

COMMITS = {1: "reserve", 2: "begin_draw", 3: "seal", 4: "publish"}
KILLED = -9
POINTS = [(n, when) for n in COMMITS for when in ("before", "after")]


def run_and_die(url: str, zone: Path, number: int, *, before: bool) -> None:
    """Run the release in a child that is killed at one commit."""

    def act() -> int:
        ledger = Ledger.open(url, clock=noon)
        with killed_at_commit(ledger, number, before=before):
            Task(ledger, zone).run(ask())
        return 0

    assert in_child(act) == KILLED


def check_after_rerun(url: str, zone: Path, *, draws_before: int, was_sealed: bool) -> None:
    """Run the release again, alive, and compare the ledger with what was truly drawn."""
    ledger = Ledger.open(url, clock=noon)
    assert (spent_micro(ledger) or 0) >= draws_before * LOSS_MICRO
    assert ledger.verify() == ()
    task = Task(ledger, zone)
    artefact = task.run(ask())
    assert (spent_micro(ledger) or 0) >= task.draws() * LOSS_MICRO
    if was_sealed:
        assert task.draws() == draws_before, "a sealed key drew again"
    attempt = ledger.find(ask().key)
    assert attempt is not None
    assert (attempt.state, attempt.artefact_digest) == (ReleaseState.PUBLISHED, artefact)
    assert task.run(ask()) == artefact
    assert ledger.verify() == ()


@pytest.mark.parametrize(
    ("number", "when"),
    POINTS,
    ids=[f"{when}-{COMMITS[n]}" for n, when in POINTS],
)
def test_a_task_killed_at_any_commit_never_undercounts(
    url: str, tmp_path: Path, number: int, when: str
) -> None:
    run_and_die(url, tmp_path, number, before=when == "before")
    sealed = number > 3 or (number == 3 and when == "after")
    draws = len(list(tmp_path.iterdir()))
    assert draws == (1 if number > 2 else 0)
    check_after_rerun(url, tmp_path, draws_before=draws, was_sealed=sealed)


def test_a_ledger_that_spends_at_the_seal_is_caught_by_a_kill(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from test_mutants import spend_after_the_draw

    spend_after_the_draw(monkeypatch)
    assert attempts.changes_of.__name__ == "late"
    run_and_die(url, tmp_path, 3, before=True)
    with pytest.raises(AssertionError):
        check_after_rerun(url, tmp_path, draws_before=1, was_sealed=False)


@pytest.mark.long
@pytest.mark.parametrize("delay_ms", range(2, 122, 3))
def test_a_task_killed_at_any_moment_never_undercounts(
    url: str, tmp_path: Path, delay_ms: int
) -> None:
    import signal
    import time

    child = os.fork()
    if child == 0:
        try:
            Task(Ledger.open(url, clock=noon), tmp_path).run(ask())
        finally:
            os._exit(0)
    time.sleep(delay_ms / 1000)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    attempt = Ledger.open(url, clock=noon).find(ask().key)
    check_after_rerun(
        url,
        tmp_path,
        draws_before=len(list(tmp_path.iterdir())),
        was_sealed=attempt is not None and attempt.is_sealed,
    )


def refusal_of(act: Callable[[], object]) -> int:
    """Run in a child: 2 if it was refused with a sentence that says what to do, else 0 or 99."""

    def child() -> int:
        try:
            act()
        except InputError as error:
            return 2 if "nothing was done" in str(error) else 98
        return 0

    return in_child(child)


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
class TestAFileThatCannotBeWritten:
    """SQLite only: the disk of a PostgreSQL server is the server's."""

    def test_because_the_disk_is_full_leaves_a_state_to_go_on_from(
        self, url: str, stores: Stores
    ) -> None:
        assert stores.kind == "sqlite"
        ledger = Ledger.open(url, clock=noon)
        attempt = drawn(ledger, ask())

        def seal_without_space() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            ledger.seal(attempt.attempt_id, "artefact-1")

        assert refusal_of(seal_without_space) == 2
        assert ledger.find(attempt.key) == attempt
        assert ledger.verify() == ()
        assert ledger.seal(attempt.attempt_id, "artefact-1").is_sealed

    def test_because_it_is_read_only_leaves_a_state_to_go_on_from(self, url: str) -> None:
        ledger = Ledger.open(url, clock=noon)
        attempt = drawn(ledger, ask())
        folder = Path(str(make_url(url).database)).parent
        modes = {path: path.stat().st_mode for path in (folder, *folder.iterdir())}

        def seal_as_a_stranger() -> None:
            if os.geteuid() == 0:
                os.setuid(65_534)
            ledger.seal(attempt.attempt_id, "artefact-1")

        for path in modes:
            path.chmod(0o555 if path.is_dir() else 0o444)
        above = [p for p in folder.parents if p.stat().st_mode & 0o1 == 0]
        widened = {path: path.stat().st_mode for path in above}
        for path in widened:
            path.chmod(0o755)
        try:
            assert refusal_of(seal_as_a_stranger) == 2
        finally:
            for path, mode in (modes | widened).items():
                path.chmod(mode)
        assert ledger.seal(attempt.attempt_id, "artefact-1").is_sealed


def test_a_witness_that_cannot_be_written_stops_the_draw_before_the_charge(
    url: str, tmp_path: Path
) -> None:
    (tmp_path / "second").write_text("a file where a folder should be")
    ledger = Ledger.open(url, clock=noon, witnesses=[tmp_path / "second"], key=tmp_path / "k.pem")
    attempt = ledger.reserve(ask())
    with pytest.raises(InputError, match="second"):
        ledger.begin_draw(attempt.attempt_id, BINDINGS)
    assert spent_micro(ledger) == 0
    (tmp_path / "second").unlink()
    assert ledger.begin_draw(attempt.attempt_id, BINDINGS).state is ReleaseState.DRAWING


def test_a_witness_that_fails_after_the_charge_costs_no_second_one(
    url: str, tmp_path: Path
) -> None:
    ledger = Ledger.open(url, clock=noon, witnesses=[tmp_path / "second"], key=tmp_path / "k.pem")
    (tmp_path / "second").mkdir()
    (tmp_path / "second/checkpoints").touch()
    attempt = ledger.reserve(ask())
    with pytest.raises(InputError, match="witness"):
        ledger.begin_draw(attempt.attempt_id, BINDINGS)
    (tmp_path / "second/checkpoints").unlink()
    again = ledger.reserve(ask())
    assert again.attempt_id == attempt.attempt_id
    assert ledger.begin_draw(again.attempt_id, BINDINGS).state is ReleaseState.DRAWING
    assert spent_micro(ledger) == LOSS_MICRO
    with pytest.raises(RefusedError):  # this one started: noise may exist
        ledger.begin_draw(again.attempt_id, BINDINGS)
    assert ledger.reserve(ask()).attempt_id != attempt.attempt_id


@pytest.mark.parametrize("is_left", [True, False])
def test_bytes_that_a_dead_draw_left_end_a_charge_that_no_process_began_to_use(
    url: str, tmp_path: Path, *, is_left: bool
) -> None:
    """Whose bytes lie there cannot be told, so that the charge is not used; nothing loops."""
    second, embargoed = tmp_path / "second", tmp_path / "embargoed"
    ledger = Ledger.open(
        url, clock=noon, witnesses=[second], key=tmp_path / "k.pem", embargoed=embargoed
    )
    drawn(ledger, ask())
    if is_left:
        left = embargoed / str(ask().key) / f"sealed-{'0' * 16}.parquet"
        left.parent.mkdir(parents=True)
        left.write_bytes(b"noise")
    attempt = ledger.reserve(ask())
    notes = second / "checkpoints"
    notes.rename(tmp_path / "away")
    notes.touch()
    with pytest.raises(InputError, match="witness"):
        ledger.begin_draw(attempt.attempt_id, BINDINGS)
    notes.unlink()
    (tmp_path / "away").rename(notes)
    if is_left:
        with pytest.raises(RefusedError, match="is drawing"):
            ledger.begin_draw(attempt.attempt_id, BINDINGS)
        with pytest.raises(RefusedError, match="needs a person"):
            ledger.reserve(ask())
    else:
        assert ledger.reserve(ask()).attempt_id == attempt.attempt_id
    assert spent_micro(ledger) == 2 * LOSS_MICRO


def test_a_draw_for_which_there_is_no_space_is_not_charged(url: str, tmp_path: Path) -> None:
    places = {"witnesses": [tmp_path / "second"], "key": tmp_path / "k.pem"}
    ledger = Ledger.open(url, clock=noon, **places)  # type: ignore[arg-type]
    attempt = ledger.reserve(ask())
    with pytest.raises(InputError, match="have to be free before a draw"):
        ledger.begin_draw(attempt.attempt_id, BINDINGS, space={tmp_path: 2**62})
    assert spent_micro(ledger) == 0
    assert ledger.begin_draw(attempt.attempt_id, BINDINGS, space={tmp_path: 1}).is_drawing


def test_holds_time_out_and_draws_do_not(ledger: Ledger, url: str) -> None:
    held, drawing = ledger.reserve(ask()), drawn(ledger, ask(week_number(1)))
    later = Ledger.open(url, clock=lambda: noon() + timedelta(hours=3))
    assert later.void_stale(timedelta(hours=4)) == ()
    (voided,) = later.void_stale(timedelta(hours=2))
    assert (voided.attempt_id, voided.state) == (held.attempt_id, ReleaseState.VOID)
    assert later.find(drawing.key) == drawing


@pytest.mark.parametrize(("size", "said"), [(2**21, "2 MiB"), (2**21 + 1, "3 MiB")])
def test_a_folder_that_holds_no_draw_says_how_much_has_to_be_free(
    tmp_path: Path, size: int, said: str
) -> None:
    (tmp_path / "embargoed").write_bytes(b"a file where a folder should be")
    with pytest.raises(InputError, match=f"{said} have to be free before a draw"):
        require_space({tmp_path / "embargoed": size})
