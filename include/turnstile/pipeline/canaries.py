"""How far a unit moves each drawn vector by the product's own code, tried on synthetic units.

Each trial counts a few made-up records with and without one unit, by the production's bounding and
counting, and compares the exact vectors: a declared sensitivity must bound what it does (PRIVACY
8.3). The unit offers three times what its bound lets count, in the ways that could do most: all in
one cell, in one slot, at one place, and for a bound over a week on all of its days or on as few as
a table's own limit lets count. Rows, key and folder are made up and thrown away.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from turnstile.assessment.audits.pipeline_copy import ObservedSensitivity
from turnstile.privacy.units import Block, ProtectionUnit
from turnstile.programme.bounding_rule import bound_in_force
from turnstile.programme.domain import PublicDomain
from turnstile.programme.fields import categories
from turnstile.programme.mode_slots import minute_of
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme

_OFFERED_TIMES = 3  # a unit offers so many times its bound
_DAY = date(2016, 7, 25)  # any day: the programme's rules are the same on all
_KEY = b"made up, for made-up rows"  # one for with and without a unit
_STILL, _FAST = 0, 500_000  # milli-km/h: below and above every public bound
Row = dict[str, object]
Vectors = dict[str, NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class _Trial:
    """Records of one unit, and what else its day holds."""

    unit: ProtectionUnit
    own: tuple[Row, ...]
    others: tuple[Row, ...]


def observed_sensitivities(
    programme: Programme, domain: PublicDomain
) -> Mapping[tuple[str, ProtectionUnit], ObservedSensitivity]:
    """Return, by label of a draw and unit, the farthest that any trial moved the vector.

    Args:
        programme: tables and bounds.
        domain: public cells.
    """
    is_trips = programme.source.feed.shape is RowShape.TRIPS
    trials = _trips(programme, domain) if is_trips else _buses(programme, domain)
    found: dict[tuple[str, ProtectionUnit], ObservedSensitivity] = {}
    without: dict[int, Vectors] = {}  # by what else there is, which trials share
    for trial in trials:
        others = id(trial.others)
        if others not in without:
            without[others] = _counted(programme, domain, trial.others)
        for label, exact in _counted(programme, domain, (*trial.others, *trial.own)).items():
            change = exact - without[others][label]
            observed = ObservedSensitivity(int(np.abs(change).sum()), int((change**2).sum()))
            before = found.get((label, trial.unit), ObservedSensitivity(0, 0))
            found[label, trial.unit] = ObservedSensitivity(
                max(observed.l1, before.l1), max(observed.l2_squared, before.l2_squared)
            )
    return found


def _counted(programme: Programme, domain: PublicDomain, rows: Sequence[Row]) -> Vectors:
    """Count rows as a release's are counted."""
    from turnstile.counting.tables import count

    with tempfile.TemporaryDirectory(prefix="canaries-") as folder:
        rows_folder = Path(folder) / "rows"
        days = _days_of(programme)
        for day in days:
            of_day = [row for row in rows if row["service_date"] == day]
            if not of_day:
                continue
            place = rows_folder / f"service_date={day.isoformat()}"
            place.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(of_day), place / "canaries.parquet")
        tables = count(
            programme,
            domain,
            days,
            rows_folder,
            secret=_KEY,
            work=Path(folder) / "work",
            progress=lambda _: None,
        )
    vectors: defaultdict[str, list[NDArray[np.int64]]] = defaultdict(list)
    for table in tables:
        vectors[f"{table.table}/{table.statistic}"].append(table.reveal_to_mechanism())
    return {label: np.concatenate(of_days) for label, of_days in vectors.items()}


def _days_of(programme: Programme) -> tuple[date, ...]:
    """Return the service days of one instance of the bounded unit."""
    bound = bound_in_force(programme)
    if bound is None:
        return (_DAY,)
    most = bound.unit.days_max or 1
    around = (_DAY + timedelta(days=n) for n in range(1 - most, most))
    scope = bound.unit.scope
    return tuple(day for day in around if scope(Block(day, "")) == scope(Block(_DAY, "")))


def _trips(programme: Programme, domain: PublicDomain) -> list[_Trial]:
    """Return trials of the bounded unit of a card, where there is one, and of one trip."""
    bound, days = bound_in_force(programme), _days_of(programme)
    own_bounds = [table.trips_max or 0 for table in programme.tables]
    most = max([1 if bound is None else bound.contributions_max, *own_bounds])
    offered = _OFFERED_TIMES * most
    others = tuple(_trip(domain, f"other {n}", slot=n, place=n) for n in range(20))
    trials = []
    if bound is not None:
        for slots, places in ((0, 0), (0, 1), (1, 0)):  # all alike, in one slot, at one place
            for few in sorted({len(days), *_fewest_days(programme, len(days))}):
                own = (
                    _trip(domain, "canary", slot=n * slots, place=n * places, day=days[n % few])
                    for n in range(offered)
                )
                trials.append(_Trial(bound.unit, tuple(own), others))
    if programme.mechanism.unit.is_record:
        if bound is not None:  # one more trip pushes others out
            full = (_trip(domain, "canary", slot=n, place=n) for n in range(offered))
            others = (*others, *full)
        last = _trip(domain, "canary", slot=offered, place=1)
        trials.append(_Trial(programme.mechanism.unit, (last,), others))
    return trials


def _fewest_days(programme: Programme, most: int) -> Iterator[int]:
    """Yield on how few days a unit can have all trips that a table with its own limit counts."""
    for table in programme.tables:
        if table.trips_max is not None:
            yield min(most, -(-table.trips_max // (table.per_cell_max or table.trips_max)))


def _trip(domain: PublicDomain, card: str, *, slot: int, place: int, day: date = _DAY) -> Row:
    """Return one trip of the first mode, at the n-th slot and the first place of the n-th area."""
    mode = domain.modes[0]
    starts = [label for label in domain.dimension(mode, "tap_on_slot").labels if ":" in label]
    first_of_area = {p.area: p.location for p in reversed(domain.places) if p.mode == mode}
    locations = sorted(first_of_area.values())
    minute, location = minute_of(starts[slot % len(starts)]), locations[place % len(locations)]
    return {
        "card_id": card,
        "mode": mode,
        "service_date": day,
        "tap_on_minute": minute,
        "tap_on_location": location,
        "tap_off_date": day,
        "tap_off_minute": minute,
        "tap_off_location": location,
        **{
            axis.name: axis.labels[slot % len(axis.labels)]
            for axis in domain.dimensions(mode)
            if axis.name in {field.name for field in categories(RowShape.TRIPS)}
        },
        "batch": "b0",
    }


def _buses(programme: Programme, domain: PublicDomain) -> list[_Trial]:
    """Return trials of a bus: standing and racing, with several readings in each cell and day."""
    bound, days = bound_in_force(programme), _days_of(programme)
    slots, cells = (axis.labels for axis in domain.cells_by_mode[0].dimensions)
    pairs = [(s, c) for s in slots if ":" in s for c in cells if c != "UNKNOWN"]
    unit, numbers = ProtectionUnit.BUS_DAY, {len(pairs)}
    if bound is not None:
        unit = bound.unit
        numbers = {_OFFERED_TIMES * bound.contributions_max}
        if len(days) > 1:  # and the same few cells on every day
            numbers.add(-(-bound.contributions_max // len(days)))
    mode = domain.modes[0]
    others = tuple(
        _reading(mode, f"other {n}", pair, n, _STILL) for n, pair in enumerate(pairs[:9])
    )
    return [
        _Trial(
            unit,
            tuple(
                _reading(mode, "canary", pair, 3 * n + again, speed, day)
                for day in days
                for n, pair in enumerate(pairs[:number])
                for again in range(3)
            ),
            others,
        )
        for speed in (_STILL, _FAST)
        for number in sorted(numbers)
    ]


def _reading(  # noqa: PLR0913, PLR0917 - a row is made from its parts
    mode: str, bus: str, pair: tuple[str, str], number: int, speed: int, day: date = _DAY
) -> Row:
    """Return one reading in the middle of a cell, at its slot's start."""
    import h3

    latitude, longitude = h3.cell_to_latlng(pair[1])
    return {
        "vehicle_id": bus,
        "observed_at_utc": datetime.combine(day, time(), UTC) + timedelta(seconds=number),
        "service_date": day,
        "minute_of_day": minute_of(pair[0]),
        "latitude": latitude,
        "longitude": longitude,
        "speed_milli_kmh": speed,
        "mode": mode,
        "batch": "b0",
    }
