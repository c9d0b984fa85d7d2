"""What was judged and counted is what is charged: marks, lone steps and edits between do not count.

Airflow runs the steps apart, so that a file may be edited, or a step cleared or marked by itself,
between any two of them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deployment_fixtures import BegunWeek
from retention_days import files_of
from small_deployment import WEEK, Deployment

from turnstile.cli import main
from turnstile.counting import engines
from turnstile.durable_files import exclusively
from turnstile.errors import RefusedError, RevisionNeeded, TurnstileError
from turnstile.ledger.charging import ChargingLedger
from turnstile.pipeline import before_charge
from turnstile.pipeline.context import open_release
from turnstile.pipeline.draw import drawing, planned_release
from turnstile.pipeline.draw.planned_release import COUNTED_AS
from turnstile.pipeline.steps import STEPS, step_named
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.spec import UnitBound
from turnstile.release.zone_copies import SNAPSHOTS
from turnstile_design.private_reports import trip_bounds

BEFORE = STEPS[: STEPS.index("reserve")]


@pytest.fixture
def reserved(begun_week: BegunWeek) -> Deployment:
    return begun_week("opal", "draw")


def _do(*names: str) -> None:
    for name in names:
        step_named(name)("opal", WEEK)


@pytest.mark.parametrize("step", ["reserve", "draw"])
@pytest.mark.parametrize(
    ("old", "new"),
    [("trips_at_most: 6", "trips_at_most: 4"), ('rho: "1/12"', 'rho: "1/13"')],
    ids=["bound", "loss"],
)
def test_a_programme_that_was_edited_after_the_count_charges_and_draws_nothing(
    reserved: Deployment, step: str, old: str, new: str
) -> None:
    before = reserved.ledger.balance()
    reserved.edit("opal", old, new)
    with pytest.raises(RefusedError, match=f"turnstile run opal --week {WEEK}"):
        _do(step)
    assert reserved.ledger.balance() == before
    _do(*BEFORE, "reserve", "draw")  # as the sentence says


@pytest.mark.parametrize("steps", [("reserve",), ("validate", "count", "reserve")])
def test_an_ingest_that_died_between_its_notes_charges_nothing(
    begun_week: BegunWeek, monkeypatch: pytest.MonkeyPatch, steps: tuple[str, ...]
) -> None:
    """Somebody marks it: rows would be charged under the names of files that they are not of."""
    deployment = begun_week("opal", "reserve")
    file = min(deployment.landing("opal").iterdir())
    original = file.read_bytes()
    before, write = deployment.ledger.balance(), before_charge.write_atomically

    def die(path: Path, content: bytes) -> None:
        if path.name == "snapshot":
            raise OSError("killed")
        write(path, content)

    file.write_bytes(original + original.splitlines(keepends=True)[-1])
    with monkeypatch.context() as patches:
        patches.setattr(before_charge, "write_atomically", die)
        with pytest.raises(OSError, match="killed"):
            _do("ingest")
    with pytest.raises(TurnstileError, match="step ingest has not run"):
        _do(*steps)
    assert deployment.ledger.balance() == before
    file.write_bytes(original)
    _do("ingest", "reserve")
    assert deployment.ledger.balance() != before


def _report() -> None:
    """Count as `turnstile report` does."""
    trip_bounds.counts_under(open_release("opal", WEEK), UnitBound(ProtectionUnit.TRIP, 1))


@pytest.mark.parametrize("killed", [partial(_do, "count"), _report], ids=["count", "report"])
@pytest.mark.parametrize("next_one", [partial(_do, "count"), _report], ids=["count", "report"])
def test_what_a_killed_count_spilled_goes_at_the_next_and_with_the_rows(
    reserved: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    killed: Callable[[], None],
    next_one: Callable[[], None],
) -> None:
    week = reserved.home / "private/opal" / WEEK
    before = files_of(reserved, "private")

    def spill(*_: object, work: Path, **__: object) -> None:
        (work / "rows.tmp").write_text("a card")
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patches:
        patches.setattr(engines, "engine_named", lambda _: spill)
        patches.setattr(trip_bounds, "count", spill)
        if (child := os.fork()) == 0:
            try:
                killed()
            finally:
                os._exit(1)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    (left,) = week.rglob("rows.tmp")
    assert left.is_relative_to(week / SNAPSHOTS), "after the days of raw data at the latest"
    assert any(part.startswith(".") for part in left.parts), "and in no store"
    next_one()
    assert {*files_of(reserved, "private")} - {*before} <= {f"opal/{WEEK}/{SNAPSHOTS}/.count.lock"}


@pytest.mark.parametrize("one", [partial(_do, "count"), _report], ids=["count", "report"])
def test_a_count_takes_nothing_from_one_that_goes_on(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch, one: Callable[[], None]
) -> None:
    def other(*_: object, work: Path, **__: object) -> None:
        with (
            pytest.raises(BlockingIOError),
            exclusively(work.parent / ".count.lock", waits=False),
        ):
            pass
        raise TurnstileError("the first is over")

    monkeypatch.setattr(engines, "engine_named", lambda _: other)
    monkeypatch.setattr(trip_bounds, "count", other)
    with pytest.raises(TurnstileError, match="the first is over"):
        one()
    assert not [*(reserved.home / "private/opal" / WEEK / SNAPSHOTS).glob(".count-*")]


@pytest.mark.parametrize("step", ["reserve", "draw"])
def test_counts_of_other_code_are_not_charged(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Code that was mended since, or upgraded: its preflight says nothing of their making."""
    before = reserved.ledger.balance()
    monkeypatch.setattr(planned_release, "code_version", lambda: "mended")
    with pytest.raises(RefusedError, match="bounding key or code are others"):
        _do(step)
    assert reserved.ledger.balance() == before
    _do("count", "draw")


def test_a_charge_before_any_noise_is_taken_up_for_no_other_count(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its process died, code was mended, and the run is cleared from ingest on, as is advised."""

    def die(*_: object) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patches:
        patches.setattr(ChargingLedger, "_start", die)
        with pytest.raises(OSError, match="killed"):
            _do("draw")
    charged = reserved.ledger.balance()
    monkeypatch.setattr(planned_release, "code_version", lambda: "mended")
    _do(*BEFORE)
    burn = f"turnstile ledger burn opal/{WEEK}/r0 --reason TEXT"
    with pytest.raises(RevisionNeeded, match=f"exact count was .* and is .*{burn}"):
        _do("draw")
    assert reserved.ledger.balance() == charged
    assert main([*burn.split()[1:-1], "counted again by mended code", "--person", "ada"]) == 0
    _do("draw")
    assert main(["ledger", "verify", "--private"]) == 0, capsys.readouterr()


def test_a_count_that_ends_between_reservation_and_draw_is_not_drawn(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process began it under another bound; what is charged is the present one."""
    before, ready = reserved.ledger.balance(), drawing.ready_to_draw

    def counted_meanwhile(*release: Any) -> Any:
        reserved.edit("opal", "trips_at_most: 6", "trips_at_most: 12")
        _do("count")
        reserved.edit("opal", "trips_at_most: 12", "trips_at_most: 6")
        return ready(*release)

    with monkeypatch.context() as patches:
        patches.setattr(drawing, "ready_to_draw", counted_meanwhile)
        with pytest.raises(RefusedError, match="planned and counted"):
            _do("draw")
    assert reserved.ledger.balance() == before
    _do("count", "draw")


def test_a_plan_of_before_an_edit_is_not_drawn(reserved: Deployment) -> None:
    reserved.edit("opal", 'rho: "1/12"', 'rho: "1/13"')
    _do("count")  # that alone was cleared
    with pytest.raises(RefusedError, match="planned and counted"):
        _do("reserve")
    plan = reserved.home / f"embargoed/opal/{WEEK}/r0/plan.json"
    plan.write_bytes(plan.read_bytes()[:99])  # as a loss of power does
    with pytest.raises(RefusedError, match="planned and counted"):
        _do("reserve")


def test_a_count_of_before_the_note_goes_on_by_its_plan(reserved: Deployment) -> None:
    """As a week that the version before began; an edit since its plan is refused all the same."""
    (reserved.home / f"private/opal/{WEEK}/r0" / COUNTED_AS).unlink()
    reserved.edit("opal", "trips_at_most: 6", "trips_at_most: 4")
    with pytest.raises(RefusedError, match="planned and counted"):
        _do("draw")
    reserved.edit("opal", "trips_at_most: 4", "trips_at_most: 6")
    _do("draw")


def test_rows_that_were_read_after_the_count_are_not_drawn_by_it(reserved: Deployment) -> None:
    file = min(reserved.landing("opal").iterdir())
    file.write_text("\n".join(file.read_text().splitlines()[:-1]) + "\n")
    _do("ingest")
    with pytest.raises(RefusedError, match="rows, bounding key or code are others"):
        _do("draw")
    with pytest.raises(TurnstileError, match="step validate"):
        _do("count")
    _do(*BEFORE, "draw")


def test_a_count_that_was_stopped_is_nobodys(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables are of the text of then, and everything else is of now."""
    reserved.edit("opal", "trips_at_most: 6", "trips_at_most: 12")
    write = before_charge.write_atomically

    def is_full(path: Path, content: bytes) -> None:
        if path.name == "exact":
            raise OSError(28, "No space left on device")
        write(path, content)

    with monkeypatch.context() as patches:
        patches.setattr(before_charge, "write_atomically", is_full)
        with pytest.raises(TurnstileError, match="disk is full"):
            _do("count")
    reserved.edit("opal", "trips_at_most: 12", "trips_at_most: 6")
    before = reserved.ledger.balance()
    with pytest.raises(TurnstileError):
        _do("reserve", "draw")
    assert reserved.ledger.balance() == before
    _do(*BEFORE, "draw")


def test_counts_under_another_bounding_key_are_not_drawn(begun_week: BegunWeek) -> None:
    place = begun_week("opal", "reserve")
    said = ("--person", "olga", "--reason", "a year is over")
    assert main(["ledger", "rotate-bounding-key", *said]) == 0
    with pytest.raises(RefusedError, match="rows, bounding key or code are others"):
        _do("reserve", "draw")
    assert place.nothing_happened()
    _do(*BEFORE, "reserve", "draw")


def test_an_edit_of_words_alone_needs_the_plan_again_and_no_count(reserved: Deployment) -> None:
    reserved.edit("opal", "title: ", "title: New ")
    _do("plan", "draw")


def test_rows_that_failed_are_not_counted_by_whoever_marks_the_judgement_a_success(
    begun_week: BegunWeek,
) -> None:
    place = begun_week("opal", "reserve")
    place.edit(
        "opal", "missing_day: refuse", "missing_day: refuse\n  rows_per_day_at_least: 10000000"
    )
    with pytest.raises(TurnstileError, match="stops at validation") as judged:
        _do("validate")
    with pytest.raises(type(judged.value), match="stops at validation"):
        _do("count")
    assert place.nothing_happened()
