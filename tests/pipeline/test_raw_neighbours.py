"""A search for neighbours over raw files: no unit moves a table farther than is declared.

Each run puts one unit on each of 24 service days, or of four weeks, into files of every form, and
compares every table of every day: so many pairs a run. On four days more nothing may move.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raw_lab import BY_NIGHT, Form, Lab, Texts, lab, without_card_bound
from raw_neighbours import violations
from row_table import SEEDS

from turnstile.counting import telemetry, trips
from turnstile.counting.bounding import Bounding, keep_at_most
from turnstile.errors import InputError
from turnstile.pipeline.canaries import observed_sensitivities
from turnstile.privacy import stability
from turnstile.privacy.sensitivities import records_at_most
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.source_spec import Feed
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek
from turnstile.sources import ingest as ingest_module
from turnstile.sources import itms, lines, reading, tap_trips

CaseOf = Callable[[Path], Lab]
# Slots and places of a tap as one vector, and at most two of six trips in a coarse cell.
COARSE: Texts = (
    ("once_per_finest_cell: true}", "once_per_finest_cell: true, coarse_cell_at_most: 2}"),
    ('rho: "1/8"', 'rho: "1/8"\n  joint_marginals: true'),
)
FEW_OF_WEEK: Texts = (("trips_at_most: 20", "trips_at_most: 5"),)
# Taps by place and line, of a bound of their own.
LINES = "  lines: {by: [tap_on_location, route], trips_at_most: 4, per_cell_at_most: 2}"
BY_LINE: Texts = (
    ("domain:\n", "domain:\n  lists: {route: domains/lines.csv}\n"),
    ("tables:  ", f"tables:\n{LINES}\n  #"),
    ('    on_time: "1/8"', '    on_time: "1/16"\n    lines: "1/16"'),
)
# Boardings and alightings by place, line and visit, of rides that nobody joins.
_OF_ENDS = """
  boardings: {by: [boarding_visit]}
  alightings: {by: [alighting_visit]}
  lines: {by: [route, tap_off_location], trips_at_most: 1}"""
_LISTS = ", ".join(
    f"{name}: domains/{file}.csv"
    for name, file in {
        "boarding_visit": "visits",
        "alighting_visit": "visits",
        "route": "lines",
    }.items()
)
EVENTS: Texts = (
    ("feed: opal_trips", "feed: tides_passenger_events"),
    ("outside: unknown", "outside: drop"),
    (
        "domain:\n",
        f"domain:\n  lists: {{{_LISTS}}}\n",
    ),
    ("tables:  ", f"tables:{_OF_ENDS}\n  #"),
    (
        'on_time_location: "1/4"',
        "".join(f'{name}: "1/16"\n    ' for name in ("boardings", "alightings", "lines"))
        + 'on_time_location: "1/16"',
    ),
)
# Buses by how full they say they are.
FULL_BUSES: Texts = (
    ("feed: itms", "feed: gtfs_vehicle_positions"),
    ("measure: buses_over, limits_kmh: [40, 60]", "measure: occupancy, at_least: [FULL]"),
    ('speeding/over_40: "1/5"\n', 'speeding/class_5: "2/5"\n'),
    ('    speeding/over_60: "1/5"\n', ""),
)
# Delays by route and direction, with and without hexagons.
BY_ROUTE: Texts = (
    ("[slot, cell]", "[slot, cell, route, direction]"),
    (
        "domain:\n",
        "domain:\n  lists: {route: domains/lines.csv, direction: domains/lines.csv}\n",
    ),
)
ROUTES_ALONE: Texts = (*BY_ROUTE, ("[slot, cell, route, direction]", "[slot, route, direction]"))
# Delays at stops, by a timetable.
AT_STOPS: Texts = (
    ("feed: itms", "feed: itms\n  timetable: domains/gtfs.zip"),
    ("[slot, cell]", "[slot, stop]"),
    ("domain:\n", "domain:\n  lists: {stop: domains/lines.csv}\n"),
)
# Ids that come in many spellings.
_STATED = "  missing_day: refuse\n"
CARDS: Texts = ((_STATED, f"{_STATED}  card_form: {{kind: text, case: upper}}\n"),)
CARDS_OF_DIGITS: Texts = ((_STATED, f"{_STATED}  card_form: {{kind: digits, length: 6}}\n"),)
BUSES_OF_DIGITS: Texts = ((_STATED, f"{_STATED}  vehicle_form: {{kind: digits, length: 4}}\n"),)
FEW_FLOWS: Texts = (("trips_at_most: 20", "trips_at_most: 5"),)
OF_DAY: Texts = (("card_week: {", "card_day: {"), ("unit: card_week", "unit: card_day"))
BUS_WEEK: Texts = (("bus_day: {", "bus_week: {"), ("unit: bus_day", "unit: bus_week"))


def one_trip(case: CaseOf) -> CaseOf:
    """The same for one trip among those of a bounded card."""
    return lambda folder: replace(case(folder), unit=ProtectionUnit.TRIP)


def of(name: str, feed: Feed, *texts: tuple[str, str], form: Form = Form.PLAIN) -> CaseOf:
    """A case of the search."""
    return lambda folder: replace(lab(name, feed, folder, *texts), form=form)


CASES: dict[str, CaseOf] = {
    "opal": of("opal", Feed.OPAL_TRIPS),
    "opal, packed": of("opal", Feed.OPAL_TRIPS, form=Form.PACKED),
    "opal, coarse cells, Parquet": of("opal", Feed.OPAL_TRIPS, *COARSE, form=Form.WHOLE),
    "opal, one trip of a bounded day": one_trip(of("opal", Feed.OPAL_TRIPS)),
    "opal, week": of("opal_year", Feed.OPAL_TRIPS, *FEW_OF_WEEK),
    "opal, lines": of("opal", Feed.OPAL_TRIPS, *BY_LINE),
    "flows, week": of("opal_flows", Feed.OPAL_TRIPS, *FEW_FLOWS),
    "flows, one trip of a bounded day": one_trip(
        of("opal_flows", Feed.OPAL_TRIPS, *FEW_FLOWS, *OF_DAY)
    ),
    "flows of taps, one trip": lambda folder: without_card_bound(
        lab("opal_flows", Feed.TAPS, folder)
    ),
    "tides, lines, Parquet": of("opal", Feed.TIDES_FARE_TRANSACTIONS, *BY_LINE, form=Form.WHOLE),
    "taps": of("opal", Feed.TAPS),
    "taps by night, Parquet": of("opal", Feed.TAPS, *BY_NIGHT, form=Form.WHOLE),
    "taps, one trip": lambda folder: without_card_bound(lab("opal", Feed.TAPS, folder)),
    "taps, week by night, packed": of(
        "opal_year", Feed.TAPS, *FEW_OF_WEEK, *BY_NIGHT, form=Form.PACKED
    ),
    "tides": of("opal", Feed.TIDES_FARE_TRANSACTIONS),
    "tides, Parquet": of("opal", Feed.TIDES_FARE_TRANSACTIONS, form=Form.WHOLE),
    "passenger events": of("opal_trip", Feed.TIDES_PASSENGER_EVENTS, *EVENTS),
    "passenger events, packed": of(
        "opal_trip", Feed.TIDES_PASSENGER_EVENTS, *EVENTS, form=Form.PACKED
    ),
    "itms": of("itms", Feed.ITMS),
    "itms, week, Parquet": of("itms", Feed.ITMS, *BUS_WEEK, form=Form.WHOLE),
    "delays": of("itms_delays", Feed.ITMS),
    "delays of vehicle locations, packed": of(
        "itms_delays", Feed.TIDES_VEHICLE_LOCATIONS, form=Form.PACKED
    ),
    "delays at stops by a timetable": of("itms_delays", Feed.GTFS_VEHICLE_POSITIONS, *AT_STOPS),
    "delays by route": of("itms_delays", Feed.ITMS, *BY_ROUTE),
    "delays by route, week, Parquet": of(
        "itms_delays", Feed.ITMS, *BY_ROUTE, *BUS_WEEK, form=Form.WHOLE
    ),
    "buses by route alone": of("itms", Feed.GTFS_VEHICLE_POSITIONS, *ROUTES_ALONE),
    "occupancy": of("itms", Feed.GTFS_VEHICLE_POSITIONS, *FULL_BUSES),
    "gtfs": of("itms", Feed.GTFS_VEHICLE_POSITIONS),
    "gtfs, Parquet": of("itms", Feed.GTFS_VEHICLE_POSITIONS, form=Form.WHOLE),
    "opal, cards in many spellings": of("opal", Feed.OPAL_TRIPS, *CARDS),
    "taps, cards of digits, Parquet": of("opal", Feed.TAPS, *CARDS_OF_DIGITS, form=Form.WHOLE),
    "gtfs, buses of digits": of("itms", Feed.GTFS_VEHICLE_POSITIONS, *BUSES_OF_DIGITS),
    "vehicle locations, packed": of("itms", Feed.TIDES_VEHICLE_LOCATIONS, form=Form.PACKED),
    "vehicle locations, Parquet": of("itms", Feed.TIDES_VEHICLE_LOCATIONS, form=Form.WHOLE),
}
# One of each feed and form of files in every run of the tests; the others, of further bounds and
# tables, when there is time.
OF_FEED_AND_FORM = frozenset(
    {
        "opal",
        "opal, packed",
        "opal, coarse cells, Parquet",
        "taps",
        "taps, week by night, packed",
        "taps by night, Parquet",
        "tides",
        "tides, Parquet",
        "passenger events",
        "passenger events, packed",
        "itms",
        "itms, week, Parquet",
        "delays of vehicle locations, packed",
        "vehicle locations, Parquet",
        "gtfs",
        "gtfs, Parquet",
        "opal, cards in many spellings",
    }
)
BY_BUDGET = [
    pytest.param(case, marks=() if case in OF_FEED_AND_FORM else pytest.mark.long) for case in CASES
]
RUNS = 3  # of 24 pairs, or of four
LONG_RUNS = 58  # 20,184 pairs


def test_each_feed_and_form_has_a_case_in_every_run(tmp_path: Path) -> None:
    """Feeds and forms that only the long search knows would go unseen for long."""

    def kinds(names: Iterable[str]) -> set[tuple[Feed, Form]]:
        labs = [CASES[name](tmp_path) for name in names]
        return {(one.programme.source.feed, one.form) for one in labs}

    assert kinds(OF_FEED_AND_FORM) == kinds(CASES)


@pytest.mark.parametrize("case", BY_BUDGET)
def test_no_unit_moves_a_table_farther_than_is_declared(case: str, tmp_path: Path) -> None:
    assert next(violations(CASES[case](tmp_path), RUNS, seed=1), None) is None


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_no_unit_moves_a_table_farther_than_is_declared_for_long(
    case: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    seed = secrets.randbelow(10**6)
    record_property(SEEDS, (case, str(seed)))
    found = next(violations(CASES[case](tmp_path), LONG_RUNS, seed=seed), None)
    assert found is None, f"seed {seed}: {found}"


# ------------------------------------------------------------ each fault put back, and found

Patch = Callable[[pytest.MonkeyPatch], None]
Keep = Callable[..., None]


def swallowed_line(patch: pytest.MonkeyPatch) -> None:
    """Quotes reach over line ends, and nobody counts the lines."""
    patch.setattr(lines, "_mark_unbalanced", lambda *_: None)
    opened = reading.open_source
    patch.setattr(
        ingest_module, "open_source", lambda *given: replace(opened(*given), records=None)
    )


def shape_switch(patch: pytest.MonkeyPatch) -> None:
    """The keys of all records decide in which one shape every record is read."""
    opened, shapes = reading.open_source, itms._shapes

    def by_keys(connection: Any, file: Any, wanted: Any, folder: Any) -> Any:
        source = opened(connection, file, wanted, folder)
        if source.keys is None:
            return source
        keys = {str(row[0]) for row in connection.execute(source.keys).fetchall()}
        return replace(source, columns=tuple(c for c in source.columns if c in keys))

    patch.setattr(ingest_module, "open_source", by_keys)
    patch.setattr(itms, "_shapes", lambda *found: list(shapes(*found))[:1])


def join_over_the_day(patch: pytest.MonkeyPatch) -> None:
    """A tap-off ends a trip of the day before."""
    join = tap_trips.JOIN_OF_TAPS
    patch.setattr(tap_trips, "JOIN_OF_TAPS", replace(join, within=("card_id", "mode")))


def bounding_by(change: Callable[[Any, str, str, Bounding, str], None]) -> Patch:
    """Counting with another bounding."""

    def put(patch: pytest.MonkeyPatch) -> None:
        def keep(
            connection: Any, records: str, kept: str, *, bounding: Bounding, scope: str
        ) -> None:
            change(connection, records, kept, bounding, scope)

        patch.setattr(trips, "keep_at_most", keep)

    return put


def cap_per_mode(connection: Any, records: str, kept: str, bounding: Bounding, scope: str) -> None:
    """A card may have its bound in each mode."""
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE by_mode AS SELECT * REPLACE "
        f"({bounding.unit} || ' ' || mode_index AS {bounding.unit}) FROM {records}"
    )
    keep_at_most(connection, "by_mode", kept, bounding=bounding, scope=scope)


def first_mode_only(
    connection: Any, records: str, kept: str, bounding: Bounding, scope: str
) -> None:
    """Other modes than the first have no bound."""
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE first AS SELECT * FROM {records} WHERE mode_index = 0"
    )
    keep_at_most(connection, "first", "kept_first", bounding=bounding, scope=scope)
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW {kept} AS SELECT * FROM kept_first "
        f"UNION ALL SELECT * FROM {records} WHERE mode_index <> 0"
    )


def none_at_weekends(
    connection: Any, records: str, kept: str, bounding: Bounding, scope: str
) -> None:
    """On Saturday and Sunday there is no bound."""
    loose = replace(bounding, at_most=10**3, limits=())  # far more than a unit has
    is_weekend = scope in {str(day) for day in ServiceWeek(2016, 30).days[5:]}
    own = loose if is_weekend else bounding
    keep_at_most(connection, records, kept, bounding=own, scope=scope)


def trip_of_one_record(patch: pytest.MonkeyPatch) -> None:
    """A pair of taps is declared as if it could part no other."""
    patch.setattr(stability, "_parted", lambda *_: records_at_most(1))


def delays_as_they_come(patch: pytest.MonkeyPatch) -> None:
    """A day's delay is added up as it is, without its clamp."""
    patch.setattr(
        telemetry, "centered_delays", lambda sums, numbers, _: np.asarray(sums // (6 * numbers))
    )


def full_at_any_time(patch: pytest.MonkeyPatch) -> None:
    """Readings of a full bus are counted, not buses."""
    laid = telemetry._contributions
    patch.setattr(telemetry, "_contributions", lambda *given: laid(*given) * given[2]["readings"])


def ids_as_they_come(patch: pytest.MonkeyPatch) -> None:
    """Each spelling of a card is a card."""
    patch.setattr(
        ingest_module, "in_form", lambda taken, _: f"SELECT *, true AS id_is_plain FROM {taken}"
    )


FAULTS: dict[str, tuple[str, Patch]] = {
    "swallowed line": ("opal", swallowed_line),
    "shape switch": ("itms", shape_switch),
    "join over the day": ("taps", join_over_the_day),
    "cap per mode": ("opal", bounding_by(cap_per_mode)),
    "no bound on other modes": ("opal", bounding_by(first_mode_only)),
    "no bound at weekends": ("opal", bounding_by(none_at_weekends)),
    "readings of full buses": ("occupancy", full_at_any_time),
    "delays without a clamp": ("delays", delays_as_they_come),
    "each spelling is a card": ("opal, cards in many spellings", ids_as_they_come),
    "a pair of taps is one record": ("taps, one trip", trip_of_one_record),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_search_finds_a_fault(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, put = FAULTS[fault]
    put(monkeypatch)
    try:
        found = next(violations(CASES[case](tmp_path), RUNS, seed=1), None)
    except InputError:  # what one unit's lines did stopped the week
        found = "stopped"
    assert found is not None


@pytest.mark.parametrize(
    "fault", [name for name in FAULTS if name != "a pair of taps is one record"]
)
@pytest.mark.parametrize("seed", [0, 3])
def test_the_canaries_of_a_release_find_a_fault(
    fault: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gate 8.3 with the fault in the product's own code: some table moves beyond its bound."""
    case, put = FAULTS[fault]
    put(monkeypatch)
    assert moved_too_far(CASES[case](tmp_path), seed)


@pytest.mark.parametrize("case", BY_BUDGET)
def test_the_canaries_of_a_release_stay_within_what_is_declared(case: str, tmp_path: Path) -> None:
    assert not moved_too_far(CASES[case](tmp_path), seed=5)


def moved_too_far(own: Lab, seed: int) -> bool:
    """Whether some unit moved a draw's vector farther than is declared, or stopped the week."""
    events = make_plan(own.programme, own.domain, ServiceWeek(2016, 30)).events
    try:
        found = observed_sensitivities(own.programme, own.domain, seed=seed)
    except InputError:
        return True
    declared = {(e.label, unit): bound for e in events for unit, bound in e.sensitivities}
    return any(
        not moved.is_within(bound)
        for key, moved in found.items()
        if (bound := declared[key]) is not None
    )
