"""What a table counts, in words and as a rule: from the programme's bounds alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from turnstile.privacy.stability import CellLimit
from turnstile.programme.bounding_rule import rule_of
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.publishing.card import _guarantee
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

INCLUDE = Path(__file__).parents[2] / "include"


def test_the_card_says_of_each_table_what_is_counted_and_that_the_rest_is_in_no_error_bar() -> None:
    programme = load_programme("opal_year", INCLUDE)
    plan = make_plan(programme, load_domain(programme, INCLUDE), ServiceWeek(2016, 30))
    said = _guarantee(programme, plan)
    assert said["counted"]["totals"] == (
        "trips counted, at most 40 of a card_week, at most 8 of a mode and day"
    )
    assert said["counted"]["on_time_location"].startswith("trips counted, at most 20 of a card_we")
    assert "in no table" in said["not_counted"]


def test_a_programme_without_a_bound_counts_every_record() -> None:
    programme = load_programme("opal_2017", INCLUDE)
    assert {rule_of(programme, table) for table in programme.tables} == {None}


def test_limits_of_coarse_cells_stand_beside_those_of_the_finest() -> None:
    programme = load_programme("opal", INCLUDE)
    bound = replace(programme.units[0], coarse_cell_max=2)
    rule = rule_of(replace(programme, units=(bound,)), programme.tables[0])
    assert rule is not None
    pair = ("tap_on_slot", "tap_on_location")
    assert CellLimit(("tap_on_slot",), 2) in rule.limits
    assert CellLimit(tuple(sorted(pair)), 1) in rule.limits
    plain = rule_of(programme, programme.tables[0])
    assert plain is not None
    assert CellLimit(tuple(sorted(pair)), 1) in plain.limits
    assert all(limit.by != ("tap_on_slot",) for limit in plain.limits)
