"""How far a unit moves each drawn vector by the product's own code, tried on synthetic units.

A trial writes the raw files of made-up days in the programme's own feed, with and without units,
and puts them through landing, ingest, bounding and counting: a declared sensitivity must bound what
the exact vectors do (PRIVACY 8.3). Units have service days of their own, and on the same days modes
of their own, so that one run is a trial of each: every case of `canary_grammar`. Their records are
spread over CSV and JSON, some in both, in every spelling of their ids and every shape of the feed,
and with them come lines that try to reach others: open quotes, line breaks, other shapes of JSON,
the same rows again, taps on either side of the day's end. Files, key and folder are thrown away.
"""

from __future__ import annotations

import secrets
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.audits.pipeline_copy import ObservedSensitivity
from turnstile.pipeline.trials.canary_grammar import Modes
from turnstile.pipeline.trials.canary_units import Rows, Trial, trials_of
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.public_domain import PublicDomain, layout
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServiceDays, ServiceWeek
from turnstile.sources.feeds.made_records import MadeReading, MadeTrip, Record
from turnstile.sources.feeds.raw_records import as_delivered, csv_lines, json_lines, records_of

Spoil = Callable[[bytes], bytes]
Vectors = dict[tuple[str, date], NDArray[np.int64]]
Change = dict[str, list[NDArray[np.int64]]]
# Which of five records in a row come in CSV and which in JSON; one comes in both, and of the two
# taps of a trip each has any of these places.
_IN_TURNS = 5
_IN_CSV, _IN_JSON = (0, 1, 3), (0, 2, 4)


def observed_sensitivities(
    programme: Programme, domain: PublicDomain, *, seed: int | None = None
) -> Mapping[tuple[str, ProtectionUnit], ObservedSensitivity]:
    """Return, by label of a draw and unit, the farthest that any unit moved the vector.

    The vector of a draw that is a piece of a joint one is the joint one.

    Args:
        programme: tables and bounds.
        domain: public cells.
        seed: decides at which slot, place and spelling each unit begins; None draws one.
    """
    turn = secrets.randbelow(1 << 16) if seed is None else seed
    pieces = _pieces_of(programme, domain)
    sensitivities: dict[tuple[str, ProtectionUnit], ObservedSensitivity] = {}
    without: dict[object, Vectors] = {}  # by what else there is, which trials share
    for trial in trials_of(programme, domain, turn):
        if trial.others not in without:
            days = trial.days[:1] if trial.are_alike else trial.days
            without[trial.others] = counted(programme, domain, trial, days, [], turn)
        with_own = counted(programme, domain, trial, trial.days, trial.records, turn)
        for change in changes(programme, domain, trial, without[trial.others], with_own):
            for label, labels in pieces.items():
                moved = np.concatenate(
                    [piece for piece_label in labels for piece in change[piece_label]]
                )
                before = sensitivities.get((label, trial.unit), ObservedSensitivity(0, 0))
                sensitivities[label, trial.unit] = ObservedSensitivity(
                    max(int(np.abs(moved).sum()), before.l1),
                    max(int((moved**2).sum()), before.l2_squared),
                )
    return sensitivities


def _pieces_of(programme: Programme, domain: PublicDomain) -> dict[str, tuple[str, ...]]:
    """Return the labels of the draws that are one vector with each draw, itself among them."""
    from turnstile.release.plan import make_plan

    events = make_plan(programme, domain, ServiceWeek(2016, 30)).events
    groups: dict[str, set[str]] = defaultdict(set)
    for event in events:
        groups[event.joint or event.label].add(event.label)
    return {label: tuple(sorted(labels)) for labels in groups.values() for label in labels}


def changes(
    programme: Programme, domain: PublicDomain, trial: Trial, before: Vectors, after: Vectors
) -> Iterator[Change]:
    """Yield how each unit changed each draw's vector: one array for each day, or its scope.

    Units that share days have the cells of their modes each, which are all cells together; a unit
    that has its days to itself has every cell.

    Args:
        programme: whose tables.
        domain: public cells.
        trial: whose units.
        before: vectors without the units; of one day if all are alike.
        after: vectors with the units, and those of no other day.
    """
    is_added_up = programme.source.feed.shape is RowShape.TELEMETRY
    labels = {label for label, _ in after}
    (first_known, *_) = sorted(day for _, day in before)
    for first, days in trial.scopes.items():
        group = trial.groups[first]
        change: Change = {}
        for label in labels:
            if is_added_up:
                change[label] = [after[label, days[0]] - len(days) * before[label, first_known]]
                continue
            base = (first_known if trial.are_alike else day for day in days)
            pairs = zip(days, base, strict=True)
            change[label] = [after[label, day] - before[label, known] for day, known in pairs]
        for case in group:
            yield change if len(group) == 1 else _of_modes(programme, domain, change, case.modes)


def _of_modes(programme: Programme, domain: PublicDomain, change: Change, modes: Modes) -> Change:
    """Return a change in the cells of some modes."""
    mode_change: Change = {}
    for table in programme.tables:
        segments = [segment for segment in layout(domain, table) if segment.mode in modes]
        label = f"{table.name}/count"
        mode_change[label] = [
            vector[segment.offset : segment.offset + segment.cells]
            for vector in change[label]
            for segment in segments
        ]
    return mode_change


def counted(  # noqa: PLR0913, PLR0917 - files, and what they are read and counted by
    programme: Programme,
    domain: PublicDomain,
    trial: Trial,
    days: Sequence[date],
    unit_rows: Rows,
    seed: int,
) -> Vectors:
    """Write the files of some days of a trial, and read and count them as a release's are."""
    from turnstile.counting.exact_tables import count_scopes
    from turnstile.sources.feeds.made_timetable import made_timetable, on_trips
    from turnstile.sources.ingest.week import ingest

    timetable = None
    others: Rows = [row for day in days for row in trial.others(day)]
    if programme.source.timetable is not None:
        unit_rows, others = (on_trips(_readings(rows)) for rows in (unit_rows, others))
        timetable = made_timetable(programme, [*unit_rows, *others], days)
    period = ServiceDays(days[0], days[-1])
    with tempfile.TemporaryDirectory(prefix="canaries-") as folder:
        root = Path(folder)
        landing = root / "landing" / str(period.weeks[0])
        landing.mkdir(parents=True)
        for name, content in raw_files(programme, others, unit_rows, hostile=trial.hostile).items():
            (landing / name).write_bytes(content)
        source = replace(programme.source, landing="{week}/*", absent_days=())
        snapshot = ingest(
            replace(programme, source=source),
            period,
            landing=root / "landing",
            private=root,
            progress=lambda _: None,
            timetable=timetable,
        )
        tables = count_scopes(
            programme,
            domain,
            days,
            snapshot.folder / "rows",
            secret=seed.to_bytes(8, "big"),  # the same with and without a unit
            work=root / "work",
        )
        return {
            (f"{t.table}/{t.statistic}", t.service_date): t.reveal_to_mechanism()
            for t in tables
            if t.service_date is not None
        }


def _readings(rows: Rows) -> list[MadeReading]:
    """Return the rows that are readings of vehicles."""
    return [row for row in rows if isinstance(row, MadeReading)]


def raw_files(
    programme: Programme, others: Rows, unit_rows: Rows, *, hostile: bool
) -> dict[str, bytes]:
    """Return files: units' records amid those of others, as CSV and as JSON."""
    theirs = records_of(programme, others)
    of_csv = _in_turns(records_of(programme, unit_rows), _IN_CSV)
    of_json = _in_turns(records_of(programme, [_respelt(row) for row in unit_rows]), _IN_JSON)
    header, lines = csv_lines([*theirs[::2], *of_csv], programme.source.written)
    split = len(theirs[::2])
    table = _amid(lines[:split], lines[split:], hostile=hostile, spoil=_SPOILED_CSV)
    objects = json_lines(theirs[1::2]), json_lines(of_json)
    records = _amid(*objects, hostile=hostile, spoil=_SPOILED_JSON)
    return {
        "a.csv": as_delivered(b"\n".join([header.encode(), *table, b""]), programme.source.written),
        "b.ndjson": b"\n".join(records) + b"\n",
    }


def _in_turns(records: list[Record], places: Sequence[int]) -> list[Record]:
    """Return the records whose turn it is."""
    return [record for n, record in enumerate(records) if n % _IN_TURNS in places]


def _respelt(row: MadeTrip | MadeReading) -> MadeTrip | MadeReading:
    """Return the same row under another spelling of its card or vehicle."""
    return replace(row, spelling=row.spelling + 1)


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
    others: list[str], unit_lines: list[str], *, hostile: bool, spoil: Sequence[Spoil]
) -> list[bytes]:
    """Lines of a unit amid those of others: some first, the most in the middle, some last."""
    mine, theirs = ([line.encode() for line in lines] for lines in (unit_lines, others))
    if not mine:
        return theirs
    spoilt = dict.fromkeys((mine[0], mine[len(mine) // 2])) if hostile else ()
    bad = [make(line) for line in spoilt for make in spoil]
    half = len(theirs) // 2
    middle = [*mine, *bad, *mine]  # every row of it a second time
    return [*bad, *theirs[:half], *middle, *theirs[half:], *bad[::-1]]
