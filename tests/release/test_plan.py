"""The plan of a week comes from programme and calendar alone, and prices every unit."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from turnstile.errors import ProgrammeError
from turnstile.privacy.accounts import loss_by_unit
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.loading import parse_programme
from turnstile.release.plan import ReleasePlan, make_plan
from turnstile.service_calendar import ServiceWeek

INCLUDE = Path(__file__).parents[2] / "include"
WEEK = ServiceWeek(2016, 30)


def text_of(name: str) -> str:
    folder = Path(__file__).parents[1] / "support" if name == "opal" else INCLUDE
    return (folder / f"programmes/{name}.yaml").read_text()


def planned(text: str, name: str = "opal", week: ServiceWeek = WEEK) -> ReleasePlan:
    programme = parse_programme(text, f"{name}.yaml")
    return make_plan(programme, domain_of(name), week)


def domain_of(name: str) -> PublicDomain:
    return load_domain(parse_programme(text_of(name), f"{name}.yaml"), INCLUDE)


def test_a_trip_under_a_card_day_bound_is_charged_for_the_trip_that_it_displaces() -> None:
    event = planned(text_of("opal")).events[0]
    trip = dict(event.sensitivities)[ProtectionUnit.TRIP]
    assert trip is not None
    assert trip.l1 == 2
    assert event.scale == 4  # 2 / (4 * 1/8)


def test_the_split_adds_up_to_the_amount_for_the_programmes_unit() -> None:
    losses = loss_by_unit(planned(text_of("opal")).events)
    assert losses[ProtectionUnit.TRIP].epsilon == 4
    assert losses[ProtectionUnit.CARD_DAY].epsilon == 20
    assert losses[ProtectionUnit.CARD_WEEK].epsilon == 7 * 20
    losses = loss_by_unit(planned(text_of("itms"), "itms").events)
    bus_day, bus = (losses[unit].rho for unit in (ProtectionUnit.BUS_DAY, ProtectionUnit.BUS))
    assert bus_day is not None
    assert Fraction(1, 10) - Fraction(1, 10**7) < bus_day <= Fraction(1, 10)
    assert bus == 49 * bus_day  # seven days in one draw: seven times the change, squared


def test_the_papers_trip_unit_costs_four_without_a_card_bound() -> None:
    text = text_of("opal").replace("  card_day: {trips_at_most: 10}\n", "")
    text = text.replace('  - {unit: card_day, relation: add_remove, epsilon: "20"}\n', "")
    plan = planned(text)
    assert plan.events[0].scale == 2  # the paper's Lap(2 / epsilon_j), epsilon_j = 1 replace-one
    assert loss_by_unit(plan.events)[ProtectionUnit.TRIP].epsilon == 4
    assert loss_by_unit(plan.events)[ProtectionUnit.CARD_DAY].rho is None


def test_gaussian_noise_with_one_count_a_cell_costs_the_root_of_k() -> None:
    text = text_of("opal").replace("kind: dense_laplace", "kind: dense_gaussian")
    text = text.replace('unit: trip\n  epsilon: "4"', 'unit: card_day\n  rho: "1/2"')
    text = text.replace("{trips_at_most: 10}", "{trips_at_most: 10, once_per_cell: true}")
    text = text.replace('trip, relation: add_remove, epsilon: "4"', 'trip, rho: "10"')
    text = text.replace('card_day, relation: add_remove, epsilon: "20"', 'card_day, rho: "1/2"')
    plan = planned(text)
    assert plan.events[0].noise is NoiseFamily.DISCRETE_GAUSSIAN
    loss = loss_by_unit(plan.events)[ProtectionUnit.CARD_DAY]
    assert loss.epsilon is None
    assert loss.rho is not None
    assert Fraction(1, 2) - Fraction(1, 10**5) < loss.rho <= Fraction(1, 2)


def test_telemetry_is_drawn_once_over_the_days_of_the_week() -> None:
    events = planned(text_of("itms"), "itms").events
    speeds, speeding = ["speed/sum", "speed/buses"], ["speeding/over_40", "speeding/over_60"]
    assert [event.label for event in events] == [*speeds, *speeding]
    assert {len(event.blocks) for event in events} == {7}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('trip, relation: add_remove, epsilon: "4"', 'trip, relation: add_remove, epsilon: "3.9"'),
        ('trip, relation: add_remove, epsilon: "4"', 'trip, relation: replace, epsilon: "7.9"'),
        ('trip, relation: add_remove, epsilon: "4"', 'trip, relation: add_remove, rho: "1.4"'),
        ('trip, relation: add_remove, epsilon: "4"', 'trip, relation: replace, rho: "5.9"'),
        ('card_day, relation: add_remove, epsilon: "20"', 'card, epsilon: "139"'),
    ],
)
def test_a_cap_below_one_week_is_refused_before_any_data(old: str, new: str) -> None:
    with pytest.raises(ProgrammeError, match=r"opal.yaml:\d+.*caps\[\d\].*above the cap"):
        planned(text_of("opal").replace(old, new))


def test_a_cap_of_exactly_one_week_is_accepted() -> None:
    old = 'trip, relation: add_remove, epsilon: "4"'
    planned(text_of("opal").replace(old, 'trip, relation: replace, epsilon: "8"'))
    planned(text_of("opal").replace(old, 'trip, relation: replace, rho: "6"'))


def test_the_digest_binds_programme_week_and_domain() -> None:
    plan = planned(text_of("opal"))
    assert plan.digest == planned(text_of("opal")).digest
    assert plan.digest != planned(text_of("opal"), week=WEEK.plus(1)).digest
    assert plan.digest != planned(text_of("opal").replace('"20"', '"21"')).digest


def test_an_amount_that_buys_no_noise_is_refused_before_any_data() -> None:
    """A table's share of 64 is 8 or 16 for a trip that moves two counts: scales 1/4 and 1/8."""
    most, more = (
        text_of("opal").replace('epsilon: "4"', f'epsilon: "{amount}"').replace('"20"', '"1000"')
        for amount in ("64", "65")
    )
    assert min(event.scale for event in planned(most).events) == Fraction(1, 8)
    with pytest.raises(ProgrammeError, match=r"mechanism\.epsilon: .*leaves nearly every number"):
        planned(more)


def test_an_amount_that_buys_only_noise_is_refused_before_any_data() -> None:
    """A table's share of an eighth, for a trip that moves two counts: scale 2 / (epsilon / 8)."""
    least, less = (
        text_of("opal").replace('epsilon: "4"', f'epsilon: "{amount}"')
        for amount in ("1/10000", "1/20000")
    )
    assert max(event.scale for event in planned(least).events) == 160_000
    with pytest.raises(ProgrammeError, match=r"mechanism\.epsilon: .*hides every number"):
        planned(less)
