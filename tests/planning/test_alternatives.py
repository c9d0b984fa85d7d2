"""Planning before any data: alternatives at the same loss, and the cost of many weeks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from small_deployment import INCLUDE, Deployment

from turnstile.privacy.accounts import loss_by_unit
from turnstile.privacy.guarantees import SHOWN_AT_DELTA, Zcdp, epsilon_tight
from turnstile.privacy.mechanisms.registry import MechanismKind
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.loading import load_programme
from turnstile.programme.mechanism_spec import MechanismSpec
from turnstile.programme.spec import Programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek
from turnstile_design.compared_designs.designs import at_same_loss
from turnstile_design.compared_designs.noise_errors import DesignErrors, compared

Cli = Callable[..., int]
WEEK = ServiceWeek(2016, 30)
_AS_WRITTEN = "a quarter each on slots and places"  # of what opal_sums has for its cells


def domain_of(programme: Programme) -> PublicDomain:
    return load_domain(programme, INCLUDE)


@pytest.fixture(scope="module")
def designs() -> dict[tuple[str, str], DesignErrors]:
    rows = compared(load_programme("opal", INCLUDE), domain_of, INCLUDE, mode="train")
    return {(row.varied, row.design): row for row in rows}


@pytest.mark.long
def test_every_choice_has_an_alternative(designs: dict[tuple[str, str], DesignErrors]) -> None:
    assert {varied for varied, _ in designs} == {
        "as written", "split", "bound", "mechanism", "unit", "slots", "places"
    }  # fmt: skip


@pytest.mark.long
def test_more_for_the_cells_makes_cells_better_and_days_worse(
    designs: dict[tuple[str, str], DesignErrors],
) -> None:
    written, heavy = (
        designs["as written", "opal"],
        designs["split", "an eighth each on slots and places"],
    )
    assert heavy.cell < written.cell
    assert heavy.day > written.day


def test_a_card_day_of_more_trips_costs_the_root_of_their_number(
    designs: dict[tuple[str, str], DesignErrors],
) -> None:
    four, twenty = designs["bound", "card-day of 4"], designs["bound", "card-day of 20"]
    assert twenty.cell / four.cell == pytest.approx(5**0.5, rel=1e-2)
    assert twenty.time / four.time == pytest.approx(5, rel=0.15)  # all in one slot
    every = designs["bound", "card-day of 6, once in every table"]
    assert every.time < designs["as written", "opal"].time / 2


def test_a_card_day_under_a_threshold_costs_noise_and_threshold_in_proportion() -> None:
    rows = compared(load_programme("opal_2017", INCLUDE), domain_of, INCLUDE, mode="train")
    by_design = {row.design: row for row in rows if row.varied in ("as written", "unit")}
    trip, two, ten = (by_design[name] for name in ("opal_2017", "card-day of 2", "card-day of 10"))
    assert trip.cell < two.cell
    assert ten.cell == pytest.approx(5 * two.cell, rel=0.02)
    assert ten.threshold is not None
    assert two.threshold is not None
    assert ten.threshold > 4 * two.threshold


def test_an_hour_at_a_place_is_better_drawn_as_an_hour(
    designs: dict[tuple[str, str], DesignErrors],
) -> None:
    quarter, hour = designs["as written", "opal"], designs["slots", "60 minutes"]
    assert hour.location_hour < 0.6 * quarter.location_hour


@pytest.mark.parametrize("kind", list(MechanismKind))
def test_another_mechanism_loses_no_more(kind: MechanismKind) -> None:
    programme = load_programme("opal", INCLUDE)
    other = replace(programme, mechanism=at_same_loss(programme.mechanism, kind), caps=())
    losses = [
        loss_by_unit(make_plan(variant, domain_of(variant), WEEK).events)[ProtectionUnit.CARD_DAY]
        for variant in (programme, other)
    ]
    shown = []
    for loss in losses:
        assert loss.rho is not None
        shown.append(loss.epsilon or epsilon_tight(Zcdp(loss.rho), SHOWN_AT_DELTA))
    assert shown[0] is not None
    assert shown[1] is not None
    assert shown[1] <= shown[0] + Fraction(1, 10**4)
    assert losses[1].delta <= SHOWN_AT_DELTA


def test_a_mechanism_is_its_own_alternative() -> None:
    mechanism = MechanismSpec(MechanismKind.DENSE_LAPLACE, ProtectionUnit.TRIP, Fraction(4), ())
    assert at_same_loss(mechanism, MechanismKind.DENSE_LAPLACE) is mechanism


def test_the_command_prints_losses_and_alternatives_and_touches_no_data(
    deployment: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("plan", "opal", "--compare") == 0
    out = capsys.readouterr().out
    assert "| opal | 0.97 | 1.94 | 5.70 | 69.60 |" in out
    assert "| opal_2017 | 4.00 (of it delta 1.6e-07) | not bounded | not bounded |" in out
    assert "card-day of 20" in out
    assert deployment.nothing_happened()
    assert not Path(deployment.home / "private").exists()


def test_the_command_says_what_a_year_costs_and_what_fits(
    deployment: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("plan", "opal", "--weeks", 52) == 0
    assert "fits under the cap" in capsys.readouterr().out
    assert turnstile("plan", "opal", "--weeks", 104) == 0
    assert "does not fit under the cap" in capsys.readouterr().out
    assert deployment.nothing_happened()


def test_planning_tables_refuse_what_they_cannot_say(
    turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    for programme in ("itms", "opal_flows"):
        assert turnstile("plan", programme, "--compare") == 2
    for option in ("--weeks", "--trips", "--buses"):
        with pytest.raises(SystemExit) as refused:
            turnstile("plan", "opal", "--grains", option, 0)
        assert refused.value.code == 2
    assert turnstile("plan", "opal") == 2
    assert "--week" in capsys.readouterr().err


def test_grains_are_held_against_the_volume_that_the_programme_plans_for(
    turnstile: Cli, deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    """What refuses a release for its volume sends people there."""

    def buses(*asked: object) -> str:
        assert turnstile("plan", "itms", "--grains", *asked) == 0
        return capsys.readouterr().out.partition(";")[0]

    assert buses() == "A made city of 150 vehicles a day"
    deployment.edit("itms", "\ntitle:", "\ntypical_volume: 40\ntitle:")
    assert buses() == "A made city of 40 vehicles a day"
    assert buses("--buses", 30) == "A made city of 30 vehicles a day"
    capsys.readouterr()
    assert turnstile("plan", "itms", "--week", "2020-W10") == 0
    assert "A city of 40 vehicles (another: turnstile plan itms" in capsys.readouterr().out


def test_a_smaller_bound_has_less_noise_and_leaves_out_more(
    designs: dict[tuple[str, str], DesignErrors],
) -> None:
    rows = [designs["bound", f"card-day of {k}"] for k in (2, 4, 10)]
    assert [row.cell for row in rows] == sorted(row.cell for row in rows)
    shares = [row.left_out for row in rows]
    assert shares == sorted((share for share in shares if share is not None), reverse=True)
    assert 0.1 < (shares[0] or 0) < 0.4
    assert designs["unit", "one trip"].left_out == 0


def test_two_in_a_slot_and_a_joint_bound_make_slots_and_places_better(
    designs: dict[tuple[str, str], DesignErrors],
) -> None:
    written = designs["as written", "opal"]
    two, joint = (
        designs["bound", "card-day of 6, two in a slot or place"],
        designs["bound", "slots and places jointly"],
    )
    assert two.cell == pytest.approx(written.cell, rel=0.02)
    assert two.time < 0.7 * written.time
    assert (two.left_out or 0) > (written.left_out or 0)
    assert joint.left_out == written.left_out
    assert joint.time < 0.8 * written.time


@pytest.mark.long
def test_a_programme_of_a_year_has_alternatives_too() -> None:
    rows = compared(load_programme("opal_year", INCLUDE), domain_of, INCLUDE, mode="ferry")
    assert {"card-week of 10", "card-week of 40"} <= {row.design for row in rows}
    assert rows[0].cell == pytest.approx(33.2, abs=0.1)


def test_sums_of_the_year_are_not_compared_with_noise_that_they_cannot_have() -> None:
    programme = load_programme("opal_sums", INCLUDE)
    rows = compared(programme, domain_of, INCLUDE, mode="ferry")
    assert "mechanism" not in {row.varied for row in rows}
    assert len(rows) > 5
    written, *alike = (row for row in rows if row.design in {"opal_sums", _AS_WRITTEN})
    assert [replace(row, varied=written.varied, design=written.design) for row in alike] == [
        written
    ]  # what the year costs is split no other way
