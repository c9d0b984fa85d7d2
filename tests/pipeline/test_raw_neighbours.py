"""A search for neighbours over raw files: no unit moves a table farther than is declared.

Each run puts one unit on each of seven service days, in the lines of a CSV and an NDJSON file, and
compares every table of every day: seven pairs a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from raw_neighbours import Lab, lab, violations, without_card_bound

from turnstile.counting import trips
from turnstile.counting.bounding import Bounding, keep_at_most
from turnstile.errors import InputError
from turnstile.pipeline.canaries import observed_sensitivities
from turnstile.programme.source_spec import Feed
from turnstile.release import sensitivities
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek
from turnstile.sources import ingest as ingest_module
from turnstile.sources import itms, lines, reading, tap_trips

RUNS, LONG_RUNS = 21, 420  # of seven pairs; seven cases: 1,029 and 20,580 pairs
CASES: dict[str, Callable[[Path], Lab]] = {
    "opal": lambda folder: lab("opal", Feed.OPAL_TRIPS, folder),
    "taps": lambda folder: lab("opal", Feed.TAPS, folder),
    "taps by night": lambda folder: lab("opal", Feed.TAPS, folder, day_starts="04:00"),
    "taps, one trip": lambda folder: without_card_bound(lab("opal", Feed.TAPS, folder)),
    "tides": lambda folder: lab("opal", Feed.TIDES_FARE_TRANSACTIONS, folder),
    "itms": lambda folder: lab("itms", Feed.ITMS, folder),
    "gtfs": lambda folder: lab("itms", Feed.GTFS_VEHICLE_POSITIONS, folder),
}


@pytest.mark.parametrize("case", CASES)
def test_no_unit_moves_a_table_farther_than_is_declared(case: str, tmp_path: Path) -> None:
    assert next(violations(CASES[case](tmp_path), RUNS, seed=1), None) is None


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_no_unit_moves_a_table_farther_than_is_declared_for_long(case: str, tmp_path: Path) -> None:
    assert next(violations(CASES[case](tmp_path), LONG_RUNS, seed=2), None) is None


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
    patch.setattr(tap_trips, "_JOINED_WITHIN", "card_id, mode")


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
    loose = replace(bounding, at_most=10**6, limits=())
    is_weekend = scope in {str(day) for day in ServiceWeek(2016, 30).days[5:]}
    own = loose if is_weekend else bounding
    keep_at_most(connection, records, kept, bounding=own, scope=scope)


def trip_of_one_record(patch: pytest.MonkeyPatch) -> None:
    """A pair of taps is declared as if it could part no other."""
    patch.setattr(sensitivities, "_PARTED", sensitivities.records_at_most(1))


FAULTS: dict[str, tuple[str, Patch]] = {
    "swallowed line": ("opal", swallowed_line),
    "shape switch": ("itms", shape_switch),
    "join over the day": ("taps", join_over_the_day),
    "cap per mode": ("opal", bounding_by(cap_per_mode)),
    "no bound on other modes": ("opal", bounding_by(first_mode_only)),
    "no bound at weekends": ("opal", bounding_by(none_at_weekends)),
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


@pytest.mark.parametrize("case", CASES)
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
