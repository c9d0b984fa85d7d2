"""Whether units, clock and words are what they are taken for, told by the rows themselves.

A vehicle that says how fast it is, and where it is a minute later, says in which unit it speaks.
A city is quietest at night: where it is quietest at noon the clock is another one. A word that no
public list has is nobody's route, and a place that it lacks is in no table. All figures are exact
and stay in the private zone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from math import nan
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import h3
import numpy as np

from turnstile.duckdb_engine import name, number_of, one_file, text
from turnstile.programme.domain.public_domain import UNKNOWN, PublicDomain
from turnstile.programme.fields import STOP
from turnstile.programme.source_spec import Feed, RowShape, SourceSpec
from turnstile.programme.spec import Programme
from turnstile.service_calendar import MINUTES_PER_DAY
from turnstile.sources.feeds.layout import INSTANTS
from turnstile.sources.feeds.zoned import ORDERS, day_sql
from turnstile.sources.ingest.canonical import MINUTE, SPEED_SCALE
from turnstile.sources.ingest.snapshot import HOURS_FILE, Snapshot, counts_of

if TYPE_CHECKING:
    import pandas as pd
    from duckdb import DuckDBPyConnection

MOVING_KMH = {  # daily medians of what moves; a bus where nothing else is said
    "bus": (14.0, 60.0),
    "tram": (8.0, 50.0),
    "light_rail": (8.0, 60.0),
    "subway": (15.0, 80.0),
    "metro": (15.0, 80.0),
    "train": (20.0, 160.0),
    "rail": (20.0, 160.0),
    "ferry": (6.0, 70.0),
}
"""Buses of Surat have 22 to 25 km/h and those of Austin 33 to 46; the same in m/s is below 13."""
_PAIRS_AT_LEAST = 100  # of a day; fewer say nothing
_ROWS_LOOKED_AT = 500_000  # of those vehicles alone that a week needs
_TIGHT = 1.6  # upper by lower quartile of speed said by speed covered: above, positions say nothing
_BY_CHANCE = 3.5  # of a spread: 3 times 1.17, its deviation by the root of the number of pairs
_OFF = 1.06  # what noise of positions may add to the square root of that
_PAIRS_OF_A_VEHICLE = 20  # of a week
_OFF_OF_A_VEHICLE = 1.25  # each one of Surat has 0.91 to 1.02; mph are 1.61 km/h
STRAIGHT_WAY = 0.87, 1.8
"""What a vehicle says on the whole of the straight way that it covers, in the right unit."""
_NO_UNIT = 0.2  # m/s under km/h are 0.28
_SLOWER = 0.8  # at any interval nobody covers more ground than speed allows
# km/h that nobody drives, over more than noise of positions; of a vehicle of Austin or Surat less
# than one pair in a hundred is so, of two under one id a sixth to a half
_NOBODY_KMH, _APART_KM, _IN_TWO_PLACES, _AS_SEVERAL = 150, 0.5, 0.05, 1.75
_HOURS = 24
_QUIET = 0.4  # of an hour's share of a flat day
# of a day: files of some hours, or of a city that never sleeps, say less
_QUIET_HOURS_AT_LEAST, _QUIET_HOURS_AT_MOST, _QUIET_HOURS_OF_A_FILE = 3, 16, 11
_AT_MIDNIGHT = 0.5  # of the rows
_NIGHT, _APART = 2.5, 4.25  # hours: the middle of a night, and how far it may be from there
_RECORDS_AT_LEAST = 500
_A_MINUTE, _TOO_LATE, _EARLIER = 60, 7200, 1.2  # s, of all delays but one in twenty; early by late
_CHANGES_AT_LEAST, _OF_A_DAY = 8, 5  # of the numbers of a gate in a week; records of a day
# of the changes; intervals of a day with one peak have a third or more
_FALLS_OF_INTERVALS, _FALLS_OF_COUNTER, _REPEATED, _SUMS = 0.05, 0.1, 0.05, 0.9
_LOADED, _PAIRS_OF_LOADS, _OF_LOADS = 3, 100, 0.95  # passengers; stops of a minute, of a week
ENDS = ("tap_on", "tap_off")
DATED = ("tap_date", "tap_on_date", *INSTANTS)
"""Fields whose dates are written as `source.date_form` says, where no year comes first."""

_BESIDE = f"""
    WITH looked AS (
        SELECT service_date, vehicle_id, epoch(observed_at_utc) AS second,
            speed_milli_kmh / {SPEED_SCALE} AS kmh, latitude, longitude
        FROM rows_read WHERE hash(vehicle_id) % CAST($parts AS UBIGINT) = 0
    ), beside AS (
        SELECT *, lag(second) OVER w AS second0, lag(kmh) OVER w AS kmh0,
            lag(latitude) OVER w AS latitude0, lag(longitude) OVER w AS longitude0
        FROM looked
        WINDOW w AS (
            PARTITION BY service_date, vehicle_id ORDER BY second, kmh, latitude, longitude)
    )"""
_KM = """111.195 * sqrt((latitude - latitude0) ** 2
        + ((longitude - longitude0) * cos(radians(latitude))) ** 2)"""
# A pair is two positions of a vehicle, 5 s to 3 minutes and more than 100 m apart, between which
# it moved at about the same speed: then what it covered is what it said, in the right unit.
_SAID_BY_COVERED = f"""{_BESIDE}, pair AS (
        SELECT service_date, vehicle_id, (kmh + kmh0) / 2 AS said, second - second0 AS seconds,
            kmh, kmh0, {_KM} AS km
        FROM beside WHERE second - second0 BETWEEN 5 AND 180 AND kmh > 0 AND kmh0 > 0
    ), ratio AS (
        SELECT service_date, vehicle_id, said / (3600 * km / seconds) AS ratio FROM pair
        WHERE km > 0.1 AND 3600 * km / seconds < 300 AND abs(kmh - kmh0) < 0.25 * said
    )
    SELECT {{of}}, count(*) AS pairs, quantile_cont(ratio, [0.25, 0.5, 0.75]) AS quartiles
    FROM ratio GROUP BY 1
"""
_OF_DAYS, _OF_VEHICLES = (
    _SAID_BY_COVERED.replace("{of}", of) for of in ("service_date", "vehicle_id")
)
# Of positions minutes apart a vehicle says on the whole at least the straight way that it covers:
# each one of Austin says 0.92 to 1.8 of it, those of Surat that say next to nothing have no unit.
_FAR_APART = f"""{_BESIDE}, far AS (
        SELECT vehicle_id, kmh, second - second0 AS seconds, {_KM} AS km
        FROM beside WHERE second - second0 BETWEEN 60 AND 1200
    )
    SELECT vehicle_id, count(*), avg(kmh) / nullif(3600 * sum(km) / sum(seconds), 0) AS ratio
    FROM far WHERE 3600 * km / seconds < 150 GROUP BY 1
"""
# Two positions of one id, of which the vehicle cannot have come from one to the other.
_JUMPS = f"""{_BESIDE}
    SELECT vehicle_id, count(*) AS pairs,
        count_if(km > {_APART_KM} AND 3600 * km > $most * seconds) > {_IN_TWO_PLACES} * pairs
    FROM (
        SELECT vehicle_id, second - second0 + CASE WHEN (SELECT count_if(second % 60 <> 0) = 0
            FROM looked) THEN 60 ELSE 1 END AS seconds, {_KM} AS km
        FROM beside)  -- times that are cut to minutes, or seconds, may be so much farther apart
    WHERE seconds <= 1200 GROUP BY 1 HAVING pairs >= {_PAIRS_OF_A_VEHICLE}
"""


def moving_range(source: SourceSpec) -> tuple[float, float]:
    """Return between what the typical speed of what moves lies, km/h, by mode."""
    known = [MOVING_KMH.get(mode, MOVING_KMH["bus"]) for mode in source.modes]
    return min(low for low, _ in known), max(high for _, high in known)


def speeds_off_unit(connection: DuckDBPyConnection, days: pd.DataFrame) -> list[float]:
    """Return for each day how far speeds are from those that positions tell; above 1 is too far.

    Args:
        connection: engine with `rows_read`.
        days: of `service_date` and `rows`.

    Returns:
        One number a day, NaN where positions tell nothing.
    """
    parts = int(days["rows"].sum()) // _ROWS_LOOKED_AT + 1
    ratios = connection.execute(_OF_DAYS, {"parts": parts}).fetchall()
    off = {str(day)[:10]: _off_unit(pairs, *quartiles) for day, pairs, quartiles in ratios}
    return [off.get(str(day)[:10], nan) for day in days["service_date"]]


def said_by_covered(connection: DuckDBPyConnection, rows: int) -> float | None:
    """Return what vehicles say of their speed by what their positions say; None where they do not.

    Args:
        connection: engine with `rows_read`.
        rows: how many it has.
    """
    ratios = connection.execute(_OF_DAYS, {"parts": rows // _ROWS_LOOKED_AT + 1}).fetchall()
    tight = [
        float(middle)
        for _, pairs, (low, middle, high) in ratios
        if pairs >= _PAIRS_AT_LEAST and _is_tight(pairs, low, high)
    ]
    return median(tight) if tight else None


def delays_off(connection: DuckDBPyConnection, programme: Programme) -> float:
    """Return how far stated delays are from seconds, late above 0; above 1 is too far.

    In minutes nearly all are below 60 seconds, in thousandths many are above two hours. A fleet is
    late more often than early, and far late more often than far early.

    Args:
        connection: engine with `rows_read`.
        programme: says the unit, or leaves it to the standard.

    Returns:
        NaN where none are read, or few.
    """
    source, is_read = programme.source, "delay_s" in programme.carried
    if not is_read or not source.feed.has_delays_of_a_unit or source.timetable is not None:
        return nan
    select = """SELECT count(*), quantile_disc(abs(delay_s), 0.95), count(DISTINCT abs(delay_s)),
        -quantile_disc(delay_s, 0.05), quantile_disc(delay_s, 0.95), median(delay_s)
        FROM rows_read WHERE delay_s <> 0"""
    records, most, words, early, late, usual = connection.execute(select).fetchone() or (0,) * 6
    if records < _RECORDS_AT_LEAST:
        return nan
    is_small = bool(most < _A_MINUTE) and words > 1
    is_early = usual < 0 and early > max(_EARLIER * late, _A_MINUTE)  # not who waits at an end
    is_asked = (is_small or is_early) and source.delay_unit is None
    return max(2.0 * is_asked, float(most) / _TOO_LATE)


def vehicles_in_two_places(
    connection: DuckDBPyConnection, rows: int, source: SourceSpec
) -> tuple[float, tuple[str, ...]]:
    """Return the ids that several vehicles have, and their share of those that can be told.

    Each is told by its own records alone; how many there are decides, not how much they say.

    Args:
        connection: engine with `rows_read`.
        rows: how many it has.
        source: says how fast vehicles are.
    """
    most = max(_NOBODY_KMH, source.speed_at_most_kmh)
    asked = {"parts": rows // _ROWS_LOOKED_AT + 1, "most": most}
    told = connection.execute(_JUMPS, asked).fetchall()
    several = {str(vehicle): pairs for vehicle, pairs, is_several in told if is_several}
    usual = median(pairs for _, pairs, _ in told) if told else 0
    # A receiver that jumps is no fault of the ids, unless it says as much as several.
    is_one = len(several) == 1 < len(told) and max(several.values()) < _AS_SEVERAL * usual
    return (0.0 if is_one else len(several) / max(len(told), 1)), tuple(several)


def vehicles_of_another_unit(
    connection: DuckDBPyConnection, rows: int
) -> tuple[float, dict[str, float]]:
    """Return the vehicles whose own positions say that they speak another unit, and their share.

    Each is told by its own records alone; of pairs more than three minutes apart only that it says
    too little. The share is of the pairs of all vehicles that can be told.

    Args:
        connection: engine with `rows_read`.
        rows: how many it has.
    """
    parts = {"parts": rows // _ROWS_LOOKED_AT + 1}
    told = {
        str(vehicle): (pairs, ratio, STRAIGHT_WAY[0] > ratio > _NO_UNIT)
        for vehicle, pairs, ratio in connection.execute(_FAR_APART, parts).fetchall()
        if pairs >= _PAIRS_OF_A_VEHICLE and ratio is not None
    }
    for vehicle, pairs, (low, middle, high) in connection.execute(_OF_VEHICLES, parts).fetchall():
        if pairs >= _PAIRS_OF_A_VEHICLE and _is_tight(pairs, low, high):
            told[str(vehicle)] = (pairs, middle, max(middle, 1 / middle) > _OFF_OF_A_VEHICLE)
    total = sum(pairs for pairs, _, _ in told.values())
    off = {vehicle: said for vehicle, said in told.items() if said[2]}
    share = sum(pairs for pairs, _, _ in off.values()) / max(total, 1)
    return share, {vehicle: ratio for vehicle, (_, ratio, _) in off.items()}


def _off_unit(pairs: int, low: float, middle: float, high: float) -> float:
    """Say how far a day's ratios are from 1, in what their own spread allows.

    Examples:
        >>> _off_unit(500, 0.95, 1.0, 1.06) < 1 < _off_unit(500, 0.59, 0.62, 0.66)
        True
        >>> _off_unit(99, 0.59, 0.62, 0.66), _off_unit(500, 0.8, 1.2, 2.4)
        (nan, nan)
    """
    if pairs < _PAIRS_AT_LEAST or low <= 0:
        return nan
    if _is_tight(pairs, low, high):
        return max(middle, 1 / middle) / (_OFF * math.sqrt(high / low))
    return _SLOWER / middle if middle < _SLOWER else nan


def _is_tight(pairs: int, low: float, high: float) -> bool:
    """Say whether quartiles lie so close that positions tell; those of few pairs may by chance.

    Examples:
        >>> _is_tight(500, 1.0, 1.45), _is_tight(40, 1.0, 1.45), _is_tight(40, 1.0, 1.3)
        (True, False, True)
    """
    spread = math.log(high / low) if low > 0 else math.inf
    return spread * (1 + _BY_CHANCE / math.sqrt(pairs)) <= math.log(_TIGHT)


def clock_off(connection: DuckDBPyConnection, source: SourceSpec) -> float:
    """Return how far the middle of the quiet hours is from a night's; above 1 is too far.

    So is a week of which every other row is of midnight to the minute, as dates without a time are.
    Of trips their ends count too: the larger figure.

    Args:
        connection: engine with `rows_read`.
        source: says when it is quietest, where that is not at night.

    Returns:
        NaN where records are few, or too few or too many hours are quiet to tell.
    """
    is_trip = source.feed.shape is RowShape.TRIPS  # whose ends may be of another clock
    off = []
    for minute in (MINUTE[source.feed.shape], *(("tap_off_minute",) if is_trip else ())):
        hours = f"SELECT {minute} // 60 % {_HOURS} AS hour, count(*) FROM rows_read "
        rows = connection.execute(f"{hours} WHERE hour IS NOT NULL GROUP BY 1").fetchall()
        off.append(_off_night(dict(rows), source.quiet_hours))
        midnight = f"SELECT avg(CAST({minute} % 1440 = 0 AS INTEGER)), count(*) FROM rows_read"
        share, records = connection.execute(midnight).fetchone() or (0, 0)
        if source.quiet_hours is None and records >= _RECORDS_AT_LEAST and share is not None:
            off.append(share / _AT_MIDNIGHT)
    return max((figure for figure in off if not math.isnan(figure)), default=nan)


def files_of_another_clock(
    connection: DuckDBPyConnection, hours: Path, source: SourceSpec
) -> float:
    """Return the share of the rows that lie in files whose own quiet hours are not a night's.

    Only of a file of most of a day: a shift, or some hours, are quiet at other times.

    Args:
        connection: engine.
        hours: rows by file and hour, as ingest leaves them; of earlier versions there are none.
        source: says when it is quietest, where that is not at night.
    """
    if not hours.exists():
        return 0.0
    select = f"SELECT file, hour % {_HOURS}, sum(rows)::BIGINT FROM read_parquet({one_file(hours)})"
    by_file: dict[str, dict[int, int]] = {}
    for file, hour, rows in connection.execute(f"{select} GROUP BY ALL").fetchall():
        by_file.setdefault(file, {})[hour] = rows
    total = sum(sum(hourly.values()) for hourly in by_file.values())
    off = (
        sum(hourly.values())
        for hourly in by_file.values()
        if _off_night(hourly, source.quiet_hours, most=_QUIET_HOURS_OF_A_FILE) > 1
    )
    return sum(off) / max(total, 1)


def gates_of_other_numbers(connection: DuckDBPyConnection, numbers: Path, feed: Feed) -> float:
    """Return the share of the records of gates whose numbers are not those of their feed.

    Numbers of an interval rise and fall, a counter goes on; of one that is set back each day the
    steps within a day tell. A gate with two numbers at one time is several; one whose numbers are
    the sum of all others of its place is their total.

    Args:
        connection: engine.
        numbers: how they go on, as ingest leaves it; of earlier versions there is none.
        feed: of the gates.
    """
    if not numbers.exists():
        return 0.0
    often = f"BETWEEN {_FALLS_OF_COUNTER} AND {1 - _FALLS_OF_COUNTER}"  # else it runs backwards
    is_off = f"falls / changes {often}"
    if feed is Feed.GATE_COUNTS:
        is_off = f"""falls <= {_FALLS_OF_INTERVALS} * changes OR (records >= {_OF_A_DAY} * days
            AND falls_of_day <= {_FALLS_OF_INTERVALS} * changes_of_day)"""
    off, told = connection.execute(f"""
        SELECT coalesce(sum(records) FILTER (is_off), 0)::BIGINT, coalesce(sum(records), 0)::BIGINT
        FROM (
            SELECT records, repeated > {_REPEATED} * records OR (filled >= {_CHANGES_AT_LEAST}
                    AND sums > {_SUMS} * filled) AS is_several,
                changes >= {_CHANGES_AT_LEAST} AS is_told,
                is_several OR (is_told AND ({is_off})) AS is_off
            FROM read_parquet({one_file(numbers)})
        ) WHERE is_told OR is_several
    """).fetchone() or (0, 0)
    return int(off) / max(int(told), 1)


def records_of_gates(connection: DuckDBPyConnection, numbers: Path) -> int:
    """Return how many records of gates have numbers; 0 where ingest left no such file.

    Args:
        connection: engine.
        numbers: how they go on, as ingest leaves it: a row a gate and way.
    """
    if not numbers.exists():
        return 0
    select = f"SELECT coalesce(sum(records), 0)::BIGINT FROM read_parquet({one_file(numbers)})"
    (of_ways,) = connection.execute(select).fetchone() or (0,)
    return int(of_ways) // 2


def is_of_passengers_on_board(connection: DuckDBPyConnection) -> bool:
    """Return whether events of a stop say how many are on board, not how many get on or off.

    Who gets off is as often more as fewer than who gets on; on board are after those who get on
    never fewer than before them.

    Args:
        connection: engine with `rows_read`, a row a passenger.
    """
    pairs, more, fewer = connection.execute(f"""
        SELECT count(*), count_if(boarded >= alighted), count_if(boarded <= alighted)
        FROM (
            SELECT count(tap_on_minute) AS boarded, count(tap_off_minute) AS alighted
            FROM rows_read GROUP BY service_date, mode,
                coalesce(tap_on_location, tap_off_location), coalesce(tap_on_minute, tap_off_minute)
        ) WHERE least(boarded, alighted) > 0 AND greatest(boarded, alighted) >= {_LOADED}
    """).fetchone() or (0, 0, 0)
    return bool(pairs >= _PAIRS_OF_LOADS and max(more, fewer) > _OF_LOADS * pairs)


def files_of_other_dates(
    connection: DuckDBPyConnection, snapshot: Snapshot, source: SourceSpec, days: Iterable[object]
) -> float:
    """Return the share of the records that lie in the week with day and month exchanged.

    Only of files that have more of these than rows of the week: of a whole year few days are such.

    Args:
        connection: engine.
        snapshot: what was read, and set aside.
        source: says in which form dates are written.
        days: of the week that have service.
    """
    aside, hours = snapshot.folder / "quarantine/outside_week.parquet", snapshot.folder / HOURS_FILE
    if not (aside.exists() and hours.exists()):
        return 0.0
    listed = ", ".join(f"DATE '{day}'" for day in days)
    said = ", ".join(f"json_extract_string(fields, '$.{field}')" for field in DATED)
    others = [form for form in ORDERS if form is not source.date_form]
    is_other = " OR ".join(f"{day_sql('said', form)} IN ({listed})" for form in others)
    exchanged = number_of(
        connection,
        f"""SELECT coalesce(sum(others), 0)::BIGINT FROM (
            SELECT file, count(*) FILTER ({is_other}) AS others, count(*) AS outside
            FROM (SELECT file, coalesce({said}) AS said FROM read_parquet({one_file(aside)}))
            GROUP BY 1
        ) LEFT JOIN (
            SELECT file, sum(rows) AS inside FROM read_parquet({one_file(hours)}) GROUP BY 1
        ) USING (file) WHERE 2 * others > outside + coalesce(inside, 0)""",
    )
    return exchanged / max(counts_of(snapshot)["rows_in"], 1)


def _off_night(
    by_hour: Mapping[int, int],
    quiet_hours: tuple[int, int] | None,
    *,
    most: int = _QUIET_HOURS_AT_MOST,
) -> float:
    """Return how far the middle of the quiet hours of a day is from that of a night.

    Examples:
        >>> by_day = dict.fromkeys(range(5, 22), 100)
        >>> later = {(hour + 19) % 24: rows for hour, rows in by_day.items()}
        >>> _off_night(by_day, None) < 1 < _off_night(later, None)
        True
        >>> _off_night(dict.fromkeys(range(24), 100), None), _off_night({7: 999}, None)
        (nan, nan)
    """
    total = sum(by_hour.values())
    quiet = [h for h in range(_HOURS) if by_hour.get(h, 0) < _QUIET * total / _HOURS]
    if total < _RECORDS_AT_LEAST or not _QUIET_HOURS_AT_LEAST <= len(quiet) <= most:
        return nan
    turns = [math.tau * (hour + 0.5) / _HOURS for hour in quiet]
    middle = math.atan2(sum(map(math.sin, turns)), sum(map(math.cos, turns))) * _HOURS / math.tau
    night = _NIGHT
    if quiet_hours is not None:
        first, last = quiet_hours
        night = (first + (last - first) % MINUTES_PER_DAY / 2) / 60  # 22:00-02:00 is of midnight
    apart = (middle - night) % _HOURS
    return min(apart, _HOURS - apart) / _APART


def unlisted(
    connection: DuckDBPyConnection, domain: PublicDomain, categories: Iterable[str]
) -> dict[str, float]:
    """Return of each category what share of the rows that name one names none of the list's.

    Args:
        connection: engine with `rows_read`.
        domain: with the lists.
        categories: that rows carry.
    """
    shares = {}
    for category in categories:
        known = (value for name, value, _ in domain.listed if name == category)
        values = ", ".join(map(text, known)) or "NULL"
        named = f"rows_read WHERE {name(category)} IS NOT NULL"
        strange = f"{named} AND coalesce({name(category)} NOT IN ({values}), true)"
        shares[category] = _share(connection, strange, named)
    return shares


def nowhere(connection: DuckDBPyConnection, feed: Feed, domain: PublicDomain) -> float:
    """Return the share of the rows that lie in no public cell: the larger one of both ends.

    Args:
        connection: engine with `rows_read`.
        feed: of the rows.
        domain: their public cells.
    """
    if feed.names_stops:
        return unlisted(connection, domain, [STOP])[STOP]
    if feed.shape is RowShape.TELEMETRY:
        return _outside(connection, domain)
    ends = (rows_nowhere(connection, end, domain) for end in ENDS)
    return max(_share(connection, strange, said) for said, strange in ends)


def rows_nowhere(connection: DuckDBPyConnection, end: str, domain: PublicDomain) -> tuple[str, str]:
    """Return SQL of the trips that say where they begin, or end, and of those nowhere on the list.

    Args:
        connection: engine with `rows_read`; `places` is put into it.
        end: tap_on or tap_off.
        domain: with the list.
    """
    columns = "unnest(?::VARCHAR[]) AS mode, unnest(?::VARCHAR[]) AS location"
    listed = [[place.mode for place in domain.places], [place.location for place in domain.places]]
    connection.execute(f"CREATE OR REPLACE TEMP TABLE places AS SELECT {columns}", listed)
    said = f"(SELECT * FROM rows_read WHERE {end}_location <> {text(UNKNOWN)})"
    same = f"places.mode = said.mode AND location = {end}_location"
    return said, f"(SELECT * FROM {said} AS said ANTI JOIN places ON {same})"


def _outside(connection: DuckDBPyConnection, domain: PublicDomain) -> float:
    """Return the share of positions that lie in no cell, to some ten metres."""
    from h3ronpy.vector import coordinates_to_cells

    positions = connection.execute(
        "SELECT round(latitude, 4) AS latitude, round(longitude, 4) AS longitude, "
        "count(*) AS rows FROM rows_read GROUP BY 1, 2"
    ).fetchnumpy()
    cells = {*domain.dimension(domain.modes[0], "cell").labels} - {UNKNOWN}
    listed = np.array([h3.str_to_int(cell) for cell in cells], dtype=np.uint64)
    inside = np.zeros(len(positions["latitude"]), dtype=bool)
    for resolution in {h3.get_resolution(cell) for cell in cells}:
        coordinates = coordinates_to_cells(
            positions["latitude"], positions["longitude"], resolution
        )
        inside |= np.isin(np.asarray(coordinates).astype(np.uint64), listed)
    rows = np.asarray(positions["rows"])
    return float(rows[~inside].sum() / max(rows.sum(), 1))


def _share(connection: DuckDBPyConnection, such: str, all_of_them: str) -> float:
    """Return the share of such rows of all."""
    some, every = (
        number_of(connection, f"SELECT count(*) FROM {rows}") for rows in (such, all_of_them)
    )
    return some / max(every, 1)
