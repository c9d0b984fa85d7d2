"""The three Opal programmes as plans: the paper's arithmetic, and what each unit loses."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest

from turnstile.errors import ProgrammeError
from turnstile.privacy.accounts import Loss, loss_by_unit
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms.dense import agree
from turnstile.privacy.mechanisms.registry import Calibration
from turnstile.privacy.mechanisms.thresholds import source_threshold
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import parse_programme
from turnstile.publishing.card import loss_figures
from turnstile.release.plan import ReleasePlan, make_plan
from turnstile.service_calendar import ServiceWeek

INCLUDE = Path(__file__).parents[2] / "include"
TABLES = 6


def text_of(name: str) -> str:
    return (INCLUDE / f"programmes/{name}.yaml").read_text()


def planned(name: str, text: str | None = None) -> ReleasePlan:
    programme = parse_programme(text or text_of(name), f"{name}.yaml")
    return make_plan(programme, load_domain(programme, INCLUDE), ServiceWeek(2016, 30))


def kinds(plan: ReleasePlan) -> dict[str, DrawEvent]:
    return {event.table: event for event in plan.events}


def loss(plan: ReleasePlan, unit: ProtectionUnit) -> Loss:
    return loss_by_unit(plan.events)[unit]


def test_the_release_of_2017_has_28_partitions_of_six_thresholded_tables() -> None:
    plan = planned("opal_2017")
    partitions = {block for event in plan.events for block in event.blocks}
    assert len(partitions) == 28
    assert len(kinds(plan)) == TABLES
    assert all(event.threshold is not None for event in plan.events)


def test_the_release_of_2017_has_the_papers_scales_and_thresholds() -> None:
    drawn = {
        name: (event.scale, event.threshold) for name, event in kinds(planned("opal_2017")).items()
    }
    coarse, fine = (2, 35), (1, 18)
    assert drawn == {
        "on_time": coarse,
        "on_location": coarse,
        "off_time": coarse,
        "off_location": coarse,
        "on_time_location": fine,
        "off_time_location": fine,
    }
    stated = [source_threshold(Fraction(budget), Fraction(1, 8_000_000)) for budget in (1, 2)]
    assert stated == pytest.approx([34.176, 17.588], abs=5e-4)
    assert [math.ceil(threshold) for threshold in stated] == [35, 18]


def test_the_release_of_2017_costs_what_the_paper_claims_and_no_more() -> None:
    trip_loss = loss(planned("opal_2017"), ProtectionUnit.TRIP)
    assert trip_loss.epsilon == 4  # adding or removing a trip
    claimed = TABLES * Fraction(1, 8_000_000)
    assert claimed == Fraction(75, 10**8)
    assert loss_figures(trip_loss)["epsilon_replace"] == "8"
    assert 0 < trip_loss.delta <= claimed < Fraction(1, 2**20)


def test_the_paper_bounds_no_card() -> None:
    for name in ("opal_2017", "opal_trip"):
        plan = planned(name)
        assert loss(plan, ProtectionUnit.CARD_DAY).rho is None
        assert loss(plan, ProtectionUnit.CARD).epsilon is None


def test_the_trip_programme_has_the_papers_scales_without_a_threshold() -> None:
    plan = planned("opal_trip")
    assert [event.scale for event in kinds(plan).values()] == [2, 2, 2, 2, 1, 1]
    assert {event.threshold for event in plan.events} == {None}
    assert loss(plan, ProtectionUnit.TRIP) == Loss(Fraction(4), Fraction(3, 2))


def test_the_recommended_programme_bounds_every_unit_up_to_a_card() -> None:
    plan = planned("opal")
    assert {event.noise for event in plan.events} == {NoiseFamily.DISCRETE_GAUSSIAN}
    day = loss(plan, ProtectionUnit.CARD_DAY).rho
    assert day is not None
    assert Fraction(1, 12) - Fraction(1, 10**7) < day <= Fraction(1, 12)
    assert loss(plan, ProtectionUnit.CARD_WEEK).rho == 7 * day
    trip = loss(plan, ProtectionUnit.TRIP).rho
    assert trip is not None
    assert day / 36 < trip < day  # a trip can displace others (PRIVACY 4.5)


def test_where_no_table_has_two_trips_of_a_card_in_a_cell_a_trip_may_displace_four() -> None:
    text = text_of("opal").replace("once_per_finest_cell", "once_per_cell")
    plan = planned("opal", text)
    sensitivities = {name: dict(event.sensitivities) for name, event in kinds(plan).items()}
    fine, coarse = sensitivities["on_time_location"], sensitivities["on_time"]
    trips = [table[ProtectionUnit.TRIP] for table in (fine, coarse)]
    days = [table[ProtectionUnit.CARD_DAY] for table in (fine, coarse)]
    assert [(s.l1, s.l2_squared, s.linf) for s in trips if s] == [(8, 8, 1), (6, 6, 1)]
    assert [(s.l1, s.l2_squared, s.linf) for s in days if s] == [(6, 6, 1), (6, 6, 1)]


def test_where_only_finest_cells_are_guarded_coarser_ones_may_hold_all_trips() -> None:
    sensitivities = {
        name: dict(event.sensitivities) for name, event in kinds(planned("opal")).items()
    }
    fine, coarse = sensitivities["on_time_location"], sensitivities["on_time"]
    trips = [table[ProtectionUnit.TRIP] for table in (fine, coarse)]
    days = [table[ProtectionUnit.CARD_DAY] for table in (fine, coarse)]
    assert [(s.l1, s.l2_squared, s.linf) for s in trips if s] == [(2, 2, 1), (4, 8, 2)]
    assert [(s.l1, s.l2_squared, s.linf) for s in days if s] == [(6, 6, 1), (6, 36, 6)]


def test_a_year_with_a_dead_draw_and_a_correction_fits_under_the_card_cap_and_two_do_not() -> None:
    programme = parse_programme(text_of("opal"), "opal.yaml")
    weekly = loss(planned("opal"), ProtectionUnit.CARD).rho
    cap = programme.caps[1].rho
    assert weekly is not None
    assert cap is not None
    assert 54 * weekly <= cap < 104 * weekly


@pytest.mark.parametrize("name", ["opal", "opal_trip", "opal_2017"])
def test_plan_and_mechanism_agree_on_every_loss(name: str) -> None:
    for event in kinds(planned(name)).values():
        agree(event)


def tight() -> str:
    text = text_of("opal_2017").replace("calibration: source", "calibration: tight")
    i, j = text.index("  budgets:"), text.index("caps:")
    shares = "".join(f'    {name}: "1/6"\n' for name in kinds(planned("opal_2017")))
    return text[:i] + '  epsilon: "4"\n  split:\n' + shares + "\n" + text[j:]


def test_a_tight_calibration_spends_what_it_may_and_has_a_lower_threshold_for_the_same_noise() -> (
    None
):
    plan = planned("opal_2017", tight())
    trip_loss = loss(plan, ProtectionUnit.TRIP)
    assert trip_loss.epsilon is not None
    assert trip_loss.epsilon <= 4
    assert trip_loss.delta <= TABLES * Fraction(1, 8_000_000)
    event = kinds(plan)["on_time"]
    assert event.scale == Fraction(3, 2)
    assert event.threshold is not None
    assert event.threshold < source_threshold(Fraction(4, 3), Fraction(1, 8_000_000))


@pytest.mark.parametrize(
    ("old", "new", "field", "rule"),
    [
        ('"7.5e-7"', '"1e-8"', "caps[0]", "delta .* above the cap"),
        (', delta: "7.5e-7"', "", "caps[0]", "delta .* above the cap"),
        ('delta: "1/8000000"', 'delta: "2"', "mechanism.delta", "no probability"),
        ('    on_time: "1"\n', "", "mechanism.budgets.on_time", "is missing"),
        ("calibration: source", "calibration: sauce", "mechanism.calibration", "is unknown"),
        ("  budgets:", "  split:", "mechanism.budgets", "is missing"),
        ("[top_stations_by_hour,", "[top_of_the_pops,", "meant_for", "is unknown"),
    ],
)
def test_a_thresholded_programme_is_read_strictly(
    old: str, new: str, field: str, rule: str
) -> None:
    text = text_of("opal_2017")
    assert old in text
    with pytest.raises(ProgrammeError, match=f"{rule}") as error:
        planned("opal_2017", text.replace(old, new, 1))
    assert error.value.field == field


def test_the_sources_calibration_protects_no_card_day() -> None:
    text = text_of("opal_2017").replace("trip: {contributes: 1}", "card_day: {trips_at_most: 4}")
    text = text.replace("unit: trip\n", "unit: card_day\n")
    with pytest.raises(ProgrammeError, match="must be trip"):
        planned("opal_2017", text)
    assert Calibration.SOURCE in set(Calibration)
