"""Every rule has a week that keeps it and a week that does not: no check is blind."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

from turnstile.errors import ProgrammeError
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.quality.expectations import Outcome, judge
from turnstile.quality.findings import Severity
from turnstile.quality.rules import Frame, Rule, rules_of
from turnstile.sources.ingest.canonical import RULES, columns_of

_SHAPES = {"opal": RowShape.TRIPS, "itms": RowShape.TELEMETRY}


def _good(name: str, programme: Programme) -> dict[Frame, pd.DataFrame]:
    """Figures of a week that keeps every rule."""
    shape = _SHAPES[name]
    columns = [(column, f"{column} {kind}") for column, kind in columns_of(shape, ())]
    day = {
        "rows": 1000,
        "rows_of_an_expected_day": 1000,
        "nulls": 0,
        "minute_least": 0,
        "minute_most": 1439,
        "minutes_late": 0.0,
        "minutes_early": 0.0,
        "latitude_least": 21.1,
        "latitude_most": 21.3,
        "longitude_least": 72.7,
        "longitude_most": 72.9,
        "speed_kmh_least": 0.0,
        "speed_kmh_most": 65.0,
        "moving_speed_kmh_median": 24.0,
        "speed_off_unit": float("nan"),
    }
    week = {
        "rows": 7000,
        "rows_lost": 0,
        "rows_unaccounted": 0,
        "share_duplicates": 0.0,
        "share_repeated_keys": 0.0,
        "share_quarantined": 0.0,
        "share_unknown_taps": 0.02,
        "volume_ratio": 1.0,
        "clock_off": 0.3,
        "files_off": 0.0,
        "dates_off": 0.0,
        "units_off": 0.0,
        "words_off": 0.0,
        "places_off": 0.0,
        "cards_off": 0.0,
        "ids_off": 0.0,
        "day_twice": 0.0,
        "delays_off": float("nan"),
    } | {f"share_{rule}": 0.0 for rule in RULES[shape]}
    return {
        Frame.COLUMNS: pd.DataFrame(columns, columns=["name", "type"]),
        Frame.MODES: pd.DataFrame({"mode": list(programme.source.modes)}),
        Frame.DAYS: pd.DataFrame([day] * 7),
        Frame.WEEK: pd.DataFrame([week]),
    }


Spoil = Callable[[dict[Frame, pd.DataFrame]], None]


def _set(frame: Frame, column: str, value: Any, *, row: int = 0) -> Spoil:
    def spoil(frames: dict[Frame, pd.DataFrame]) -> None:
        frames[frame] = frames[frame].astype({column: "object"})
        frames[frame].loc[row, column] = value
        frames[frame][column] = frames[frame][column].infer_objects()

    return spoil


def _cut(frame: Frame, rows: int) -> Spoil:
    def spoil(frames: dict[Frame, pd.DataFrame]) -> None:
        frames[frame] = frames[frame].head(rows)

    return spoil


_BOTH = [
    ("schema_columns", _set(Frame.COLUMNS, "name", "card")),
    ("schema_types", _set(Frame.COLUMNS, "type", "card_id BIGINT")),
    ("schema_columns", _cut(Frame.COLUMNS, 8)),
    ("modes_legal", _set(Frame.MODES, "mode", "monorail")),
    ("modes_all_present", _cut(Frame.MODES, 0)),
    ("days_of_this_week", _cut(Frame.DAYS, 6)),
    ("days_present", _set(Frame.DAYS, "rows", 0, row=3)),
    ("days_complete", _set(Frame.DAYS, "rows_of_an_expected_day", 99, row=3)),
    ("nulls", _set(Frame.DAYS, "nulls", 1, row=6)),
    ("minutes", _set(Frame.DAYS, "minute_least", -1)),
    ("minutes", _set(Frame.DAYS, "minute_most", 1440)),
    ("rows_present", _set(Frame.WEEK, "rows", 0)),
    ("rows_reconciled", _set(Frame.WEEK, "rows_lost", 1)),
    ("rows_reconciled", _set(Frame.WEEK, "rows_unaccounted", -1)),
    ("clock", _set(Frame.WEEK, "clock_off", 1.01)),
    ("clock", _set(Frame.WEEK, "files_off", 1.01)),
    ("dates", _set(Frame.WEEK, "dates_off", 1.01)),
    ("unlisted_words", _set(Frame.WEEK, "words_off", 1.01)),
    ("unlisted_places", _set(Frame.WEEK, "places_off", 1.01)),
    ("ids", _set(Frame.WEEK, "ids_off", 1.01)),
    ("duplicates", _set(Frame.WEEK, "share_duplicates", 0.011)),
    ("repeated_keys", _set(Frame.WEEK, "share_repeated_keys", 0.011)),
    ("volume_usual", _set(Frame.WEEK, "volume_ratio", 0.49)),
    ("volume_usual", _set(Frame.WEEK, "volume_ratio", 2.01)),
    ("malformed_line", _set(Frame.WEEK, "share_malformed_line", 1e-9)),
    ("malformed_line_many", _set(Frame.WEEK, "share_malformed_line", 0.011)),
    ("unparsable_timestamp", _set(Frame.WEEK, "share_unparsable_timestamp", 1e-9)),
    ("unparsable_timestamp_many", _set(Frame.WEEK, "share_unparsable_timestamp", 0.011)),
    ("future_date", _set(Frame.WEEK, "share_future_date", 1e-9)),
    ("outside_week", _set(Frame.WEEK, "share_outside_week", 1e-9)),
    ("quarantine_small", _set(Frame.WEEK, "share_quarantined", 0.21)),
]
_ABOVE = {
    "card_id_missing": 0.21,
    "tap_off_without_tap_on": 0.11,
}  # of which a rule sets more aside than it may; else one in fifty
_OWN = {
    "opal": [
        ("unknown_taps", _set(Frame.WEEK, "share_unknown_taps", 0.11)),
        ("days_whole", _set(Frame.DAYS, "minutes_late", 241, row=2)),
        ("days_whole", _set(Frame.DAYS, "minutes_early", 241, row=6)),
        ("trips_of_no_card", _set(Frame.WEEK, "cards_off", 1.01)),
        ("delivered_twice", _set(Frame.WEEK, "day_twice", 0.41)),
        ("card_id_missing", _set(Frame.WEEK, "share_card_id_missing", 1e-9)),
        ("card_id_of_another_form", _set(Frame.WEEK, "share_card_id_of_another_form", 1e-9)),
        ("unknown_mode", _set(Frame.WEEK, "share_unknown_mode", 1e-9)),
        ("unknown_mode_many", _set(Frame.WEEK, "share_unknown_mode", 0.0011)),
        ("null_location", _set(Frame.WEEK, "share_null_location", 1e-9)),
        ("tap_off_before_tap_on", _set(Frame.WEEK, "share_tap_off_before_tap_on", 1e-9)),
        ("tap_off_without_tap_on", _set(Frame.WEEK, "share_tap_off_without_tap_on", 1e-9)),
        ("other_action", _set(Frame.WEEK, "share_other_action", 1e-9)),
        ("unknown_action", _set(Frame.WEEK, "share_unknown_action", 1e-9)),
        ("unknown_action_many", _set(Frame.WEEK, "share_unknown_action", 0.0011)),
        ("no_riders", _set(Frame.WEEK, "share_no_riders", 1e-9)),
    ],
    "itms": [
        ("coordinates", _set(Frame.DAYS, "latitude_least", -90.1)),
        ("coordinates", _set(Frame.DAYS, "latitude_most", 90.1)),
        ("coordinates", _set(Frame.DAYS, "longitude_least", -180.1)),
        ("coordinates", _set(Frame.DAYS, "longitude_most", 180.1)),
        ("speeds", _set(Frame.DAYS, "speed_kmh_least", -0.1)),
        ("speeds", _set(Frame.DAYS, "speed_kmh_most", 130.1)),
        ("speed_unit", _set(Frame.DAYS, "moving_speed_kmh_median", 6.7, row=5)),
        ("speed_unit", _set(Frame.DAYS, "moving_speed_kmh_median", 86.4, row=5)),
        ("speed_unit", _set(Frame.DAYS, "speed_off_unit", 1.01, row=5)),
        ("speed_unit", _set(Frame.WEEK, "units_off", 1.01)),
        ("delay_unit", _set(Frame.WEEK, "delays_off", 1.01)),
        ("unknown_status", _set(Frame.WEEK, "share_unknown_status", 1e-9)),
        ("unknown_status_many", _set(Frame.WEEK, "share_unknown_status", 0.0011)),
        ("null_vehicle", _set(Frame.WEEK, "share_null_vehicle", 1e-9)),
        ("vehicle_id_of_another_form", _set(Frame.WEEK, "share_vehicle_id_of_another_form", 1e-9)),
        ("null_coordinates", _set(Frame.WEEK, "share_null_coordinates", 1e-9)),
        ("coordinates_out_of_range", _set(Frame.WEEK, "share_coordinates_out_of_range", 1e-9)),
        ("coordinates_swapped", _set(Frame.WEEK, "share_coordinates_swapped", 1e-9)),
        ("coordinates_swapped_many", _set(Frame.WEEK, "share_coordinates_swapped", 0.011)),
        ("null_speed", _set(Frame.WEEK, "share_null_speed", 1e-9)),
        ("speed_out_of_range", _set(Frame.WEEK, "share_speed_out_of_range", 1e-9)),
    ],
}
_LARGE = {
    name: [
        rule
        for rule in (*RULES[shape], "duplicates")
        if rule not in {"outside_week", "other_action", "duplicates"}
        and f"{rule}_many" not in {covered_rule for covered_rule, _ in [*_BOTH, *_OWN[name]]}
    ]
    for name, shape in _SHAPES.items()
}
_NEVER = {"outside_week_many", "other_action_many", "duplicates_many"}  # unless a share is stated
_CASES = [(name, rule, spoil) for name, cases in _OWN.items() for rule, spoil in [*_BOTH, *cases]]


@pytest.mark.parametrize("name", ["opal", "itms"])
def test_a_week_without_a_fault_keeps_every_rule(
    programme_of: Callable[..., Programme], name: str
) -> None:
    programme = programme_of(name, rows_per_day_at_least=100)
    assert set(judge(rules_of(programme), _good(name, programme))) == {Outcome.KEPT}


@pytest.mark.parametrize(("name", "rule", "spoil"), _CASES)
def test_a_week_that_breaks_a_rule_is_seen_by_that_rule(
    programme_of: Callable[..., Programme], name: str, rule: str, spoil: Spoil
) -> None:
    programme = programme_of(name, rows_per_day_at_least=100)
    frames = _good(name, programme)
    whole = dict(frames)
    spoil(frames)
    spoiled = {frame: figures for frame, figures in frames.items() if figures is not whole[frame]}
    rules = tuple(check for check in rules_of(programme) if check.frame in spoiled)
    outcomes = judge(rules, spoiled)
    assert Outcome.BROKEN_CHECK not in outcomes
    pairs = zip(rules, outcomes, strict=True)
    broken = {check.name for check, outcome in pairs if outcome is Outcome.NOT_KEPT}
    # a short frame breaks its types too, a wrong mode is one that lacks, many are also some
    also = {"schema_types", "modes_all_present", rule.removesuffix("_many")}
    assert rule in broken <= {rule} | also


@pytest.mark.parametrize("name", ["opal", "itms"])
def test_every_rule_has_a_week_that_breaks_it(
    programme_of: Callable[..., Programme], name: str
) -> None:
    names = {rule.name for rule in rules_of(programme_of(name))}
    large = {f"{rule}_many" for rule in _LARGE[name]}
    never = _NEVER - ({"other_action_many"} if name == "itms" else set())
    assert {*large, *never, *(rule for rule, _ in [*_BOTH, *_OWN[name]])} == names


@pytest.mark.parametrize("rule", ["outside_week", "other_action", "duplicates"])
def test_what_may_be_set_aside_without_limit_has_one_where_it_is_stated(
    programme_of: Callable[..., Programme], rule: str
) -> None:
    for stated, stops in (((), False), (((rule, Fraction(1, 4)),), True)):
        programme = programme_of("opal", set_aside_at_most=stated)
        frames = _good("opal", programme)
        _set(Frame.WEEK, f"share_{rule}", 0.3)(frames)
        outcomes = zip(rules_of(programme), judge(rules_of(programme), frames), strict=True)
        broken = {check.name for check, outcome in outcomes if outcome is not Outcome.KEPT}
        assert (f"{rule}_many" in broken) is stops


@pytest.mark.parametrize(
    ("name", "rule"), [(name, rule) for name, large in _LARGE.items() for rule in large]
)
def test_no_rule_sets_aside_more_than_its_share_with_a_warning_alone(
    programme_of: Callable[..., Programme], name: str, rule: str
) -> None:
    share = _ABOVE.get(rule, 0.021)
    for programme, stops in (
        (programme_of(name), True),
        (programme_of(name, set_aside_at_most=((rule, Fraction(1, 4)),)), False),
    ):
        frames = _good(name, programme)
        _set(Frame.WEEK, f"share_{rule}", share)(frames)
        outcomes = zip(rules_of(programme), judge(rules_of(programme), frames), strict=True)
        broken = {check.name for check, outcome in outcomes if outcome is not Outcome.KEPT}
        assert broken == {rule, *([f"{rule}_many"] if stops else [])}
        many = next(check for check in rules_of(programme) if check.name == f"{rule}_many")
        assert f"source.set_aside_at_most.{rule}" in many.sentence


def test_a_share_of_no_rule_names_the_nearest(programme_of: Callable[..., Programme]) -> None:
    with pytest.raises(ProgrammeError, match="did you mean null_location"):
        rules_of(programme_of("opal", set_aside_at_most=(("nul_location", Fraction(1, 4)),)))


@pytest.mark.parametrize("name", ["opal", "itms"])
def test_a_check_that_cannot_run_is_no_verdict_on_the_data(
    programme_of: Callable[..., Programme], name: str
) -> None:
    programme = programme_of(name)
    rules = rules_of(programme)
    frames = _good(name, programme)
    frames[Frame.DAYS] = frames[Frame.DAYS].drop(columns="nulls")
    frames[Frame.WEEK]["volume_ratio"] = "SECRET9"
    outcomes = dict(zip((rule.name for rule in rules), judge(rules, frames), strict=True))
    assert outcomes.pop("nulls") is Outcome.BROKEN_CHECK
    assert outcomes.pop("volume_usual") is Outcome.BROKEN_CHECK
    assert set(outcomes.values()) == {Outcome.KEPT}


def test_a_frame_that_was_not_made_is_a_broken_check(
    programme_of: Callable[..., Programme],
) -> None:
    rules = rules_of(programme_of("opal"))
    assert set(judge(rules, {})) == {Outcome.BROKEN_CHECK}


def test_the_rules_that_stop_a_week_are_these(programme_of: Callable[..., Programme]) -> None:
    rules = [*rules_of(programme_of("opal")), *rules_of(programme_of("itms"))]
    assert {rule.name for rule in rules if rule.severity is Severity.ERROR} == {
        *(rule.name for rule in rules if rule.name.endswith("_many")),
        "schema_columns",
        "schema_types",
        "modes_legal",
        "days_of_this_week",
        "days_present",
        "days_complete",
        "nulls",
        "minutes",
        "coordinates",
        "speeds",
        "speed_unit",
        "delay_unit",
        "trips_of_no_card",
        "ids",
        "delivered_twice",
        "clock",
        "dates",
        "unlisted_places",
        "unlisted_words",
        "rows_present",
        "rows_reconciled",
        "quarantine_small",
    }


def test_each_frame_is_judged_by_its_own_figures() -> None:
    most = {"column": "rows", "min_value": 0, "max_value": 5}
    rules = tuple(
        Rule(frame.value, Severity.ERROR, frame, "ColumnMaxToBeBetween", "", most)
        for frame in Frame
    )
    frames = {frame: pd.DataFrame({"rows": [number % 2 * 9]}) for number, frame in enumerate(Frame)}
    kept = [outcome is Outcome.KEPT for outcome in judge(rules, frames)]
    assert kept == [number % 2 == 0 for number in range(len(Frame))]
