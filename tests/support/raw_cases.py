"""What is searched for neighbours: programmes, feeds, units, forms of files; and draws of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from raw_lab import BUSES_BY_NIGHT, BY_NIGHT, Form, Lab, Texts, lab, without_card_bound

from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.source_spec import Feed

CaseOf = Callable[[Path], Lab]
# Slots and places of a tap as one vector, and at most two of six trips in a coarse cell.
COARSE: Texts = (
    ("once_per_finest_cell: true}", "once_per_finest_cell: true, coarse_cell_at_most: 2}"),
    ('rho: "1/12"', 'rho: "1/12"\n  joint_marginals: true'),
)
FEW_OF_WEEK: Texts = (("trips_at_most: 20", "trips_at_most: 5"),)
# Taps by place and line, of a bound of their own.
LINES = "  lines: {by: [tap_on_location, route], trips_at_most: 4, per_cell_at_most: 2}"
BY_LINE: Texts = (
    ("domain:\n", "domain:\n  lists: {route: domains/lines.csv}\n"),
    ("tables:  ", f"tables:\n{LINES}\n  #"),
    ('    on_time: "1/8"', '    on_time: "1/16"\n    lines: "1/16"'),
)
# Ids that come in other spellings than the shipped programmes state.
_CARD, _BUS = "card_form: {kind: text, case: lower}\n", "vehicle_form: {kind: text, case: keep}\n"
_DIGITS = "_form: {kind: digits, length: %s}\n"
CARDS: Texts = ((_CARD, "card_form: {kind: text, case: upper}\n"),)
CARDS_OF_DIGITS: Texts = ((_CARD, f"card{_DIGITS % 6}"),)
BUSES_OF_DIGITS: Texts = ((_BUS, f"vehicle{_DIGITS % 4}"),)
NO_CARDS: Texts = ((f"  {_CARD}", ""),)
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
    *NO_CARDS,
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
# Gates that name nobody, by the tables of taps.
GATES: Texts = (*NO_CARDS, ("outside: unknown", "outside: drop"))
OWN_UNIT: Texts = ((f"  {_CARD}", "  without_card: own_unit\n"),)
# Buses by how full they say they are.
FULL_BUSES: Texts = (
    ("feed: itms", "feed: gtfs_vehicle_positions"),
    ("measure: buses_over, limits_kmh: [40, 60]", "measure: occupancy, at_least: [FULL]"),
    ('speeding/over_40: "1/10"\n', 'speeding/class_5: "1/5"\n'),
    ('    speeding/over_60: "1/10"\n', ""),
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
# Calls at stops, which records name.
CALLS: Texts = (
    ("feed: itms", "feed: ist_daten"),
    ("[slot, cell]", "[slot, stop]"),
    ("domain:\n", "domain:\n  lists: {stop: domains/lines.csv}\n"),
)
# Files in another hand.
_HAND = "  file: {encoding: %s, delimiter: %s, quote: %s, header_row: 3%s}\n  modes: ["
IN_UTF_16: Texts = (("  modes: [", _HAND % ("utf-16", "semicolon", "double", ", times: epoch_ms")),)
IN_MILES: Texts = (
    ("  modes: [", _HAND % ("windows-1252", "tab", "single", ", decimal: comma")),
    ("speed_unit: km/h", "speed_unit: mph"),
)
FEW_FLOWS: Texts = (("trips_at_most: 20", "trips_at_most: 5"),)
OF_DAY: Texts = (("card_week: {", "card_day: {"), ("unit: card_week", "unit: card_day"))
ALL_DAY: Texts = (('slots: "09:00-21:00"', "slots: all_day"),)
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
    "opal by night": of("opal", Feed.OPAL_TRIPS, *BY_NIGHT),
    "opal, week by night": of("opal_year", Feed.OPAL_TRIPS, *FEW_OF_WEEK, *BY_NIGHT),
    "opal, one trip": of("opal_trip", Feed.OPAL_TRIPS),
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
    "taps in UTF-16": of("opal", Feed.TAPS, *IN_UTF_16),
    "tides": of("opal", Feed.TIDES_FARE_TRANSACTIONS),
    "tides, Parquet": of("opal", Feed.TIDES_FARE_TRANSACTIONS, form=Form.WHOLE),
    "passenger events": of("opal_trip", Feed.TIDES_PASSENGER_EVENTS, *EVENTS),
    "passenger events, packed": of(
        "opal_trip", Feed.TIDES_PASSENGER_EVENTS, *EVENTS, form=Form.PACKED
    ),
    "hired trips": of("opal", Feed.HIRED_TRIPS),
    "hired trips, each a unit, packed": of(
        "opal_trip", Feed.HIRED_TRIPS, *OWN_UNIT, form=Form.PACKED
    ),
    "hired trips, week by night": of("opal_year", Feed.HIRED_TRIPS, *FEW_OF_WEEK, *BY_NIGHT),
    "gates": of("opal_trip", Feed.GATE_COUNTS, *GATES),
    "gates, Parquet": of("opal_trip", Feed.GATE_COUNTS, *GATES, form=Form.WHOLE),
    "counters of gates": of("opal_trip", Feed.GATE_COUNTERS, *GATES),
    "counters of gates, packed": of("opal_trip", Feed.GATE_COUNTERS, *GATES, form=Form.PACKED),
    "itms": of("itms", Feed.ITMS),
    "itms in miles, packed": of("itms", Feed.ITMS, *IN_MILES, form=Form.PACKED),
    "itms by night": of("itms", Feed.ITMS, *BUSES_BY_NIGHT, *ALL_DAY),
    "itms, week by night": of("itms", Feed.ITMS, *BUSES_BY_NIGHT, *ALL_DAY, *BUS_WEEK),
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
    "hfp": of("itms", Feed.HFP),
    "hfp, buses of digits": of("itms", Feed.HFP, *BUSES_OF_DIGITS),
    "hfp, delays by route, Parquet": of("itms_delays", Feed.HFP, *BY_ROUTE, form=Form.WHOLE),
    "siri, delays by route": of("itms_delays", Feed.SIRI_VM, *BY_ROUTE),
    "siri, packed": of("itms", Feed.SIRI_VM, form=Form.PACKED),
    "calls of trip updates": of("itms_delays", Feed.GTFS_TRIP_UPDATES, *CALLS),
    "calls of ist-daten, packed": of("itms_delays", Feed.IST_DATEN, *CALLS, form=Form.PACKED),
    "calls of ist-daten by night": of("itms_delays", Feed.IST_DATEN, *CALLS, *BUSES_BY_NIGHT),
    "vehicle locations, Parquet": of("itms", Feed.TIDES_VEHICLE_LOCATIONS, form=Form.WHOLE),
    "gtfs, protobuf": of("itms", Feed.GTFS_VEHICLE_POSITIONS, form=Form.DOCUMENTS),
    "calls of trip updates, protobuf": of(
        "itms_delays", Feed.GTFS_TRIP_UPDATES, *CALLS, form=Form.DOCUMENTS
    ),
    "siri, XML": of("itms_delays", Feed.SIRI_VM, *BY_ROUTE, form=Form.DOCUMENTS),
    "taps, workbook and Arrow": of("opal", Feed.TAPS, form=Form.TABLES),
    "gates, workbook and Arrow": of("opal_trip", Feed.GATE_COUNTS, *GATES, form=Form.TABLES),
    "hfp, workbook and Arrow": of("itms", Feed.HFP, form=Form.TABLES),
    "calls of ist-daten, workbook and Arrow": of(
        "itms_delays", Feed.IST_DATEN, *CALLS, form=Form.TABLES
    ),
}


# ------------------------------------------------------------ any of them, drawn

_CARDS = (Feed.OPAL_TRIPS, Feed.TAPS, Feed.TIDES_FARE_TRANSACTIONS, Feed.HIRED_TRIPS)
_BUSES = (
    *(Feed.ITMS, Feed.GTFS_VEHICLE_POSITIONS, Feed.TIDES_VEHICLE_LOCATIONS),
    *(Feed.HFP, Feed.SIRI_VM),
)
_OF_DOCUMENTS = (Feed.GTFS_VEHICLE_POSITIONS, Feed.GTFS_TRIP_UPDATES, Feed.SIRI_VM)
_OUTSIDE = ("outside: unknown", "outside: drop")
# programme, feeds, what may be replaced in its text
DRAWN: tuple[tuple[str, tuple[Feed, ...], tuple[Texts, ...]], ...] = (
    ("opal", _CARDS, ((), COARSE, BY_LINE)),
    ("opal_year", _CARDS, (FEW_OF_WEEK,)),
    ("opal_trip", _CARDS, ((),)),
    ("opal_flows", _CARDS, (FEW_FLOWS, (*FEW_FLOWS, *OF_DAY))),
    ("opal_trip", (Feed.TIDES_PASSENGER_EVENTS,), (EVENTS,)),
    ("opal_trip", (Feed.GATE_COUNTS, Feed.GATE_COUNTERS), (GATES,)),
    ("itms", _BUSES, ((), BUS_WEEK, ALL_DAY)),
    ("itms", (Feed.GTFS_VEHICLE_POSITIONS,), (FULL_BUSES, ROUTES_ALONE)),
    ("itms_delays", (Feed.ITMS, Feed.HFP, Feed.SIRI_VM), ((), BY_ROUTE, (*BY_ROUTE, *BUS_WEEK))),
    ("itms_delays", (Feed.TIDES_VEHICLE_LOCATIONS,), ((), BUS_WEEK)),
    ("itms_delays", (Feed.GTFS_VEHICLE_POSITIONS,), (AT_STOPS,)),
    ("itms_delays", (Feed.GTFS_TRIP_UPDATES, Feed.IST_DATEN), (CALLS,)),
)
_FORMS = (
    "{kind: text, case: upper}",
    "{kind: text, case: keep}",
    "{kind: digits, length: 6}",
)


def drawn(seed: str, folder: Path) -> tuple[str, Lab]:
    """Return any lab, and what it is: feed, unit, form of files and of ids, day and outside."""
    chance = random.Random(seed)  # noqa: S311 - made-up programmes
    name, feeds, changes = chance.choice(DRAWN)
    feed, texts = chance.choice(feeds), chance.choice(changes)
    forms = [form for form in Form if form is not Form.DOCUMENTS or feed in _OF_DOCUMENTS]
    form = chance.choice(forms)
    outside = "outside: drop" if feed.names_nobody else chance.choice(_OUTSIDE)
    night = chance.choice(((), BUSES_BY_NIGHT if name == "itms" else BY_NIGHT))
    key = "card_form" if feed in _CARDS else "vehicle_form"
    ids = "" if feed.names_nobody else chance.choice(("", *_FORMS))
    stated = f"  {key}: {ids}\n" if ids else ""
    shipped = f"  {_CARD if feed in _CARDS else _BUS}"
    changed = ((shipped, stated), *night, *((old, outside) for old in _OUTSIDE))
    made_lab = replace(lab(name, feed, folder, *texts, *changed), form=form)
    if (
        made_lab.programme.units
        and made_lab.unit is ProtectionUnit.CARD_DAY
        and chance.random() < 0.2
    ):
        made_lab = replace(made_lab, unit=ProtectionUnit.TRIP)
    what = f"{name} {feed} {made_lab.unit} {form.name} {ids} {outside} {'04:00' if night else ''}"
    return f"{what} {changes.index(texts)}", made_lab
