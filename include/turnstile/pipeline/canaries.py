"""How far a unit moves each drawn vector by the product's own code, tried on synthetic units.

Each trial writes the raw files of a made-up week in the programme's own feed, with and without one
unit, and puts them through landing, ingest, bounding and counting: a declared sensitivity must
bound what the exact vectors do (PRIVACY 8.3). There is a unit on every service day, so that one run
is a trial of each; over the runs they take their turns in all modes. A unit offers three times what
its bound lets count, all in one cell, in one slot, at one place, in one mode or in all of them, and
with it come lines that try to reach others: open quotes, line breaks, other shapes of JSON, the
same rows again, taps on either side of the day's end. Files, key and folder are thrown away.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.audits.pipeline_copy import ObservedSensitivity
from turnstile.pipeline.canary_units import WEEK, Rows, Trial, trials_of
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain import PublicDomain
from turnstile.programme.spec import Programme
from turnstile.sources.raw_records import (
    MadeReading,
    MadeTrip,
    Record,
    csv_lines,
    json_lines,
    reading_records,
    trip_records,
)

Spoil = Callable[[bytes], bytes]
Vectors = dict[tuple[str, date | None], NDArray[np.int64]]


def observed_sensitivities(
    programme: Programme, domain: PublicDomain, *, seed: int | None = None
) -> Mapping[tuple[str, ProtectionUnit], ObservedSensitivity]:
    """Return, by label of a draw and unit, the farthest that any trial moved the vector.

    Args:
        programme: tables and bounds.
        domain: public cells.
        seed: decides in which mode and way each day's unit comes first; None draws one.
    """
    turn = secrets.randbelow(1 << 16) if seed is None else seed
    found: dict[tuple[str, ProtectionUnit], ObservedSensitivity] = {}
    without: dict[int, Vectors] = {}  # by what else there is, which trials share
    for trial in trials_of(programme, domain, turn):
        others = id(trial.others)
        if others not in without:
            without[others] = counted(programme, domain, replace(trial, own=[]), turn)
        with_own = counted(programme, domain, trial, turn)
        for label, observed in changes(trial.unit, without[others], with_own).items():
            before = found.get((label, trial.unit), ObservedSensitivity(0, 0))
            found[label, trial.unit] = ObservedSensitivity(
                max(observed.l1, before.l1), max(observed.l2_squared, before.l2_squared)
            )
    return found


def changes(
    unit: ProtectionUnit, before: Vectors, after: Vectors
) -> dict[str, ObservedSensitivity]:
    """Return how far each draw's vector moved: by the day that moved farthest, or in all days."""
    found: dict[str, ObservedSensitivity] = {}
    by_day = unit.days_max in (0, 1)
    for (label, day), exact in after.items():
        change = exact - before[label, day]
        one = ObservedSensitivity(int(np.abs(change).sum()), int((change**2).sum()))
        had = found.get(label, ObservedSensitivity(0, 0))
        pick = max if by_day else int.__add__
        found[label] = ObservedSensitivity(
            pick(had.l1, one.l1), pick(had.l2_squared, one.l2_squared)
        )
    return found


def counted(programme: Programme, domain: PublicDomain, trial: Trial, seed: int) -> Vectors:
    """Write the files of a trial, and read and count them as a release's are."""
    from turnstile.counting.tables import count
    from turnstile.sources.ingest import ingest
    from turnstile.sources.made_timetable import made_timetable, on_trips

    timetable = None
    if programme.source.timetable is not None:
        own, others = (on_trips(_readings(rows)) for rows in (trial.own, trial.others))
        timetable = made_timetable(programme, [*own, *others], WEEK.days)
        trial = replace(trial, own=own, others=others)
    with tempfile.TemporaryDirectory(prefix="canaries-") as folder:
        root = Path(folder)
        landing = root / "landing" / str(WEEK)
        landing.mkdir(parents=True)
        for name, content in raw_files(programme, trial).items():
            (landing / name).write_bytes(content)
        source = replace(programme.source, landing="{week}/*", absent_days=())
        snapshot = ingest(
            replace(programme, source=source),
            WEEK,
            landing=root / "landing",
            private=root,
            progress=lambda _: None,
            timetable=timetable,
        )
        tables = count(
            programme,
            domain,
            WEEK.days,
            snapshot.folder / "rows",
            secret=seed.to_bytes(8, "big"),  # the same with and without a unit
            work=root / "work",
            progress=lambda _: None,
        )
        return {
            (f"{t.table}/{t.statistic}", t.service_date): t.reveal_to_mechanism() for t in tables
        }


def _readings(rows: Rows) -> list[MadeReading]:
    """Return the rows that are readings of vehicles."""
    return [one for one in rows if isinstance(one, MadeReading)]


def raw_files(programme: Programme, trial: Trial) -> dict[str, bytes]:
    """Return the files of a trial: a unit's records amid those of others, as CSV and as JSON."""
    others, own = _records(programme, trial.others), _records(programme, trial.own)
    header, lines = csv_lines([*others[::2], *own[::2]])
    split = len(others[::2])
    table = _amid(lines[:split], lines[split:], hostile=trial.hostile, spoil=_SPOILED_CSV)
    records = _amid(
        json_lines(others[1::2]),
        json_lines(own[1::2]),
        hostile=trial.hostile,
        spoil=_SPOILED_JSON,
    )
    return {
        "a.csv": b"\n".join([header.encode(), *table]) + b"\n",
        "b.ndjson": b"\n".join(records) + b"\n",
    }


def _records(programme: Programme, rows: Rows) -> list[Record]:
    """The raw records of made-up rows."""
    trips = [row for row in rows if isinstance(row, MadeTrip)]
    readings = [row for row in rows if isinstance(row, MadeReading)]
    return [*trip_records(programme, trips), *reading_records(programme, readings)]


# What a unit's own line becomes, so that it might swallow or stop the lines of others.
_SPOILED_CSV = (
    lambda line: b'"' + line,
    lambda line: line.replace(b",", b',"', 1),
    lambda line: line + b'"',
    lambda line: line.replace(b",", b'\n"', 1),
    lambda line: line.replace(b",", b"\r", 1),
    lambda line: line.replace(b",", b",\0\xff", 1),
    lambda line: line.rpartition(b",")[0],
    lambda line: line + b",x",
)
_SPOILED_JSON = (
    lambda line: b"[" + line,
    lambda line: line[:-1],
    lambda line: line + line,
    lambda line: line.replace(b'"', b'"\n', 1),
    lambda line: line.replace(b'"', b"\0", 1),
    lambda _: b'{"vehicle": {}, "location": [], "latitude": 1, "card_id": {}}',
    lambda _: b'"',
)


def _amid(
    others: list[str], own: list[str], *, hostile: bool, spoil: Sequence[Spoil]
) -> list[bytes]:
    """Lines of a unit amid those of others: some first, the most in the middle, some last."""
    mine, theirs = ([line.encode() for line in lines] for lines in (own, others))
    if not mine:
        return theirs
    bad = [make(mine[0]) for make in spoil] if hostile else []
    half = len(theirs) // 2
    middle = [*mine, *bad, *mine]  # every row of it a second time
    return [*bad, *theirs[:half], *middle, *theirs[half:], *bad[::-1]]
