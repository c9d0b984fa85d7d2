"""The copy of the pipeline is the product's own code; a fault put into that code is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trials_once import trials_once

from turnstile.assessment.audits import release_audit
from turnstile.assessment.audits.pipeline_copy import Draw, ObservedSensitivity, PipelineCopy
from turnstile.assessment.audits.release_audit import DrawAudit, audit_release
from turnstile.counting import exact_tables, telemetry, trips
from turnstile.counting.bounding import Bounding, keep_at_most
from turnstile.counting.engine import Connection
from turnstile.pipeline.trials import canaries
from turnstile.pipeline.trials.canaries import observed_sensitivities
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.mechanisms.registry import MechanismKind
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import Programme
from turnstile.release.plan import ReleasePlan, make_plan
from turnstile.service_calendar import ServiceWeek

INCLUDE = Path(__file__).parents[2] / "include"
DAYS_AT_MOST = 30  # of files of `opal`; it was 27 when this was written: half a second of its audit
LAPLACE = "opal with Laplace noise"
CASES = ("opal", LAPLACE, "itms")
COUNTED_ALIKE = {"opal": (LAPLACE,)}


@pytest.fixture(scope="module", autouse=True)
def files_read_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All faults here are in what is counted and drawn."""
    with trials_once(tmp_path_factory.mktemp("read")):
        yield


@cache
def case(name: str) -> tuple[Programme, PublicDomain, ReleasePlan]:
    """A programme of this repository; `opal` with Laplace noise as well."""
    programme = load_programme(name.split(maxsplit=1)[0], INCLUDE)
    if "Laplace" in name:
        amount = Fraction(6)
        mechanism = replace(programme.mechanism, kind=MechanismKind.DENSE_LAPLACE, amount=amount)
        programme = replace(programme, mechanism=mechanism, caps=())
    domain = load_domain(programme, INCLUDE)
    return programme, domain, make_plan(programme, domain, ServiceWeek(2016, 30))


@cache
def true_moves(counted: str) -> Mapping[tuple[str, ProtectionUnit], ObservedSensitivity]:
    """What the product's own code lets units do; for tests that leave that code alone."""
    programme, domain, _ = case(counted)
    return observed_sensitivities(programme, domain, seed=1)


def audits(name: str, draws: Draw | None = None) -> tuple[DrawAudit, ...]:
    """Audit a programme on the product's code; the draw may be another."""
    programme, _, plan = case(name)
    moves = true_moves(name.split(maxsplit=1)[0])
    copy = PipelineCopy(moves) if draws is None else PipelineCopy(moves, draws)
    return some(audit_release(plan.events, programme.mechanism.unit, copy=copy))


def audits_of_now(name: str, *counted_alike: str) -> tuple[DrawAudit, ...]:
    """Audit programmes on the code as it is now, faults included."""
    programme, domain, _ = case(name)
    copy = PipelineCopy(observed_sensitivities(programme, domain, seed=1))
    unit, plans = (
        programme.mechanism.unit,
        [case(programme_name)[2] for programme_name in (name, *counted_alike)],
    )
    return some(audit for plan in plans for audit in audit_release(plan.events, unit, copy=copy))


def some(audited: Iterable[DrawAudit]) -> tuple[DrawAudit, ...]:
    """All audits, of which there are some: of none, everything would be true."""
    draw_audits = tuple(audited)
    assert draw_audits
    return draw_audits


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "name",
    [
        *("opal", "itms", "opal_trip", "opal_2017", "itms_delays", "opal_year"),
        pytest.param("itms_survey", marks=pytest.mark.long),  # as `itms` in fewer cells
    ],
)
def test_units_reach_what_is_declared_and_never_pass_it(name: str) -> None:
    programme, _, plan = case(name)
    moves = true_moves(name)
    unit = programme.mechanism.unit
    for event in {event.label: event for event in plan.events}.values():
        declared = dict(event.sensitivities)[unit]
        assert declared is not None
        move = moves[event.label, unit]
        assert move.is_within(declared)
        assert (move.l1, move.l2_squared) == (declared.l1, declared.l2_squared)
        for other, bound in event.sensitivities:
            other_move = moves.get((event.label, other))
            assert other_move is None or bound is None or other_move.is_within(bound)


@pytest.mark.parametrize("trips_at_most", [1, 3])
def test_a_bound_below_the_number_of_modes_is_not_called_passed(trips_at_most: int) -> None:
    """Others have more taps on some days than it lets count; that is no unit's doing."""
    programme, domain, _ = case("opal")
    (bound,) = programme.units
    few = replace(programme, units=(replace(bound, contributions_max=trips_at_most),))
    assert trips_at_most < len(domain.modes)
    moves = observed_sensitivities(few, domain, seed=1)
    for event in make_plan(few, domain, ServiceWeek(2016, 30)).events:
        declared = dict(event.sensitivities)[few.mechanism.unit]
        assert declared is not None
        assert moves[event.label, few.mechanism.unit].is_within(declared)


def test_flows_never_pass_what_is_declared() -> None:
    """Units of theirs are not full in every cell, so what is declared is not always reached."""
    programme, _, plan = case("opal_flows")
    moves = true_moves("opal_flows")
    for event in {event.label: event for event in plan.events}.values():
        declared = dict(event.sensitivities)[programme.mechanism.unit]
        move = moves[event.label, programme.mechanism.unit]
        assert declared is not None
        assert move.is_within(declared)
        assert move.l1 == declared.l1
        if declared.linf > 1:
            assert move.l2_squared > move.l1  # some of its trips share a cell


def cells_drawn(name: str) -> int:
    """How many cells the audit of a programme draws."""
    drawn: list[int] = []

    def counted_draw(event: DrawEvent, exact: np.ndarray) -> tuple[np.ndarray, ...]:
        drawn.append(exact.size)
        return (draw(event, exact),)

    audits(name, counted_draw)
    return sum(drawn)


def days_counted(name: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Days of made-up files that the observation of a programme reads and counts."""
    programme, domain, plan = case(name)
    labels = {event.label for event in plan.events}
    counted_days: list[date] = []

    def nothing(
        _programme: object, _domain: object, _trial: object, days: list[date], *_: Any
    ) -> Any:
        counted_days.extend(days)
        return {(label, day): np.zeros(1, dtype=np.int64) for label in labels for day in days}

    monkeypatch.setattr(canaries, "counted", nothing)
    observed_sensitivities(programme, domain, seed=1)
    return len(counted_days)


def test_the_audit_of_a_release_costs_little_more_than_the_noise_of_its_canaries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted, not timed: noise for its canaries once a kind of draw, and few days of files."""
    kinds = {(event.noise, event.scale) for event in case("opal")[2].events}
    assert cells_drawn("opal") == release_audit.CANARIES * len(kinds)
    assert days_counted("opal", monkeypatch) <= DAYS_AT_MOST


def test_an_audit_that_draws_many_times_over_is_seen_as_dear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = {(event.noise, event.scale) for event in case("opal")[2].events}
    run = release_audit.run_canaries
    monkeypatch.setattr(
        release_audit, "run_canaries", lambda *of, **n: (run(*of, **n), run(*of, **n))[0]
    )
    assert cells_drawn("opal") > release_audit.CANARIES * len(kinds)
    once = canaries.trials_of
    monkeypatch.setattr(canaries, "trials_of", lambda *known: once(*known) * 2)
    assert days_counted("opal", monkeypatch) > DAYS_AT_MOST


@pytest.fixture
def without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting that calls the bounding, which keeps everything."""

    def keep_all(
        connection: Connection, records: str, kept: str, *, bounding: Bounding, scope: str
    ) -> None:
        loose = replace(bounding, at_most=10**3, limits=())  # far more than a unit has
        keep_at_most(connection, records, kept, bounding=loose, scope=scope)

    monkeypatch.setattr(trips, "keep_at_most", keep_all)
    monkeypatch.setattr(telemetry, "keep_at_most", keep_all)


@pytest.fixture
def counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting in which each record moves its cell by two: the sensitivity is wrong."""

    def doubled(laid_out: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        return lambda *arguments: 2 * laid_out(*arguments)

    monkeypatch.setattr(trips, "_vector", doubled(trips._vector))
    monkeypatch.setattr(telemetry, "_vector", doubled(telemetry._vector))


@pytest.fixture
def week_bounded_by_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting that keeps the bound of a week on each of its days."""
    of_scope = exact_tables.count_trips

    def by_day(*known: Any) -> Any:
        *others, days = known
        return [of_day for day in days for of_day in of_scope(*others, [day])]

    monkeypatch.setattr(exact_tables, "count_trips", by_day)


@pytest.mark.usefixtures("week_bounded_by_day")
def test_a_weekly_bound_that_is_applied_by_day_is_refuted() -> None:
    assert all(audit.is_refuted for audit in audits_of_now("opal_year"))


@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["opal", "itms", "opal_year", "opal_flows", "itms_delays"])
@pytest.mark.usefixtures("without_bound")
def test_a_skipped_bound_is_refuted(name: str) -> None:
    assert all(audit.is_refuted for audit in audits_of_now(name, *COUNTED_ALIKE.get(name, ())))


@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["opal", "itms", "opal_trip", "opal_flows", "itms_delays"])
@pytest.mark.usefixtures("counted_twice")
def test_a_wrong_sensitivity_is_refuted(name: str) -> None:
    assert all(audit.is_refuted for audit in audits_of_now(name, *COUNTED_ALIKE.get(name, ())))


@pytest.mark.parametrize("name", [*CASES, "opal_trip", "opal_2017"])
def test_a_halved_scale_is_refuted(name: str) -> None:
    draw_audits = audits(name, lambda e, x: (draw(replace(e, scale=e.scale / 2), x),))
    assert all(audit.is_refuted for audit in draw_audits)


@pytest.mark.some(2)
@pytest.mark.parametrize("name", [*CASES, "opal_trip"])
def test_a_table_drawn_twice_is_refuted(name: str) -> None:
    draw_audits = audits(name, lambda e, x: (draw(e, x), draw(e, x)))
    assert all(audit.is_refuted for audit in draw_audits)


@pytest.mark.some(2)
@pytest.mark.parametrize("name", [*CASES, "opal_trip", "opal_2017", "opal_year"])
def test_the_code_as_it_is_is_not_refuted_and_measured_near_its_claim(name: str) -> None:
    for audit in audits(name):
        assert not audit.is_refuted
        # Closest where scale is 2 for one trip: there it is 6.6 standard deviations from the mean.
        assert audit.bound.epsilon >= 0.8 * audit.claimed
