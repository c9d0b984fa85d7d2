"""Ingest: from the files of a week to a snapshot of canonical rows, nothing lost on the way.

Rows in = rows out + exact duplicates + records joined to another one's row (the tap-off of a
trip) + rows in quarantine; a record that counts several passengers is as many rows in. The same
files under the same mapping make the same digest and are read once; another file makes another
snapshot, and both stay.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.duckdb_engine import connect, name, number_of, one_file, text
from turnstile.durable_files import delete_for_good, sha256_of, sync_folder, sync_tree
from turnstile.errors import InputError, IntegrityError
from turnstile.programme.gtfs.scheduled_calls import ScheduledCalls
from turnstile.programme.source_spec import WithoutCard
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.layout import (
    ColumnMissing,
    FeedLayout,
    Joined,
    as_usual,
    fields_in,
    names_in_source,
    reads_speeds,
)
from turnstile.sources.feeds.registry import layout_of
from turnstile.sources.feeds.stop_approaches import hold_against
from turnstile.sources.ingest.canonical import (
    FROM_TIMETABLE,
    MINUTE,
    carried_names,
    names_of,
    rules_broken,
)
from turnstile.sources.ingest.equal_rows import each_once
from turnstile.sources.ingest.identity import in_form, refuse_inexact
from turnstile.sources.ingest.landing import RawFile, find_files, unpack
from turnstile.sources.ingest.reading import Source, open_source, raised_as_input_error
from turnstile.sources.ingest.snapshot import (
    HOURS_FILE,
    NUMBERS_FILE,
    Snapshot,
    folder_of,
    load_snapshot,
    require_whole,
    write_record,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Raised whenever the same bytes would become other rows: a new version is another snapshot.
PARSER_VERSION = 13
_READS_NO_SPEEDS = 11  # the first that reads none where no table measures them
_KEY_COLUMNS = 4  # card or vehicle, when, where: rows that are equal are equal in these
_GOOD = "FROM staged WHERE broken_rule IS NULL"
# Places, modes and buses by number, and no other column: a dictionary is begun for each, and given
# up where values are many, which is what writing costs most.
_ENCODED = "PARQUET_VERSION V2, DICTIONARY_SIZE_LIMIT 4000"
_FEW = 20_000  # records that stand in memory, because each day asks for its own
_STAGED = f"COMPRESSION uncompressed, {_ENCODED}"  # rows that are read once, and soon
_KEPT = f"COMPRESSION zstd, COMPRESSION_LEVEL 1, {_ENCODED}"


@dataclass(frozen=True, slots=True)
class _Work:
    """What the steps of one ingest share."""

    connection: DuckDBPyConnection
    programme: Programme
    week: ServicePeriod
    layout: FeedLayout
    folder: Path


def ingest(  # noqa: PLR0913 - the keyword-only rest is where it runs
    programme: Programme,
    week: ServicePeriod,
    *,
    landing: Path,
    private: Path,
    progress: Callable[[str], None],
    memory: str | None = None,
    timetable: ScheduledCalls | None = None,
) -> Snapshot:
    """Read the landing files of a week into the private zone, once.

    Args:
        programme: says where the files are and how they are read.
        week: service week; rows of other days go to quarantine.
        landing: landing zone.
        private: private zone.
        progress: notified of what is going on, without any count.
        memory: the most that the engine takes, as `duckdb_engine.connect` takes it.
        timetable: the calls that positions are held against, where the programme names a feed.

    Raises:
        InputError: no file, or one that is damaged or lacks a column; nothing was written.
    """
    layout = layout_of(programme.source.feed)
    raw_files = find_files(landing, programme.source.landing, week)
    before = {file: _written(file) for file in raw_files}
    files = tuple((file.name, sha256_of(file.path)) for file in raw_files)
    if (timetable is None) != (programme.source.timetable is None):
        raise ValueError("a programme with a timetable needs its calls, another one has none")
    held = "" if timetable is None else timetable.sha256
    digest = snapshot_digest(programme, week, files, timetable=held)
    folder = folder_of(private, programme.name, str(week), digest)
    is_damaged = folder.exists()
    with suppress(IntegrityError):  # what a loss of power or somebody else cut is made again
        snapshot = load_snapshot(private, programme.name, str(week), digest)
        require_whole(snapshot)
        progress(f"{programme.name} {week}: these files are ingested already")
        return snapshot
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=".ingest-", dir=folder.parent) as scratch:
        work = _Work(connect(Path(scratch), memory=memory), programme, week, layout, Path(scratch))
        try:
            try:
                records = _stage_all(work, raw_files, progress)
            finally:  # whatever else half a file seems to be
                _refuse_written(before)
            if timetable is not None:
                hold_against(
                    work.connection,
                    timetable,
                    within_m=programme.source.stop_within_m or 0,
                    carried=tuple(name for name in FROM_TIMETABLE if name in programme.carried),
                )
            joined = _join(work, records)
            days, counts = _write(work, records, joined, progress)
        finally:
            work.connection.close()
        snapshot = Snapshot(programme.name, str(week), digest, folder, days, files)
        made = Path(scratch) / "snapshot"
        made.mkdir(exist_ok=True)
        write_record(snapshot, counts, folder=made, unnamed=joined.unnamed)
        sync_tree(made)
        if is_damaged:
            delete_for_good(folder)
        _put_in_place(made, folder)
        sync_folder(folder.parent)
    return snapshot


def _join(work: _Work, records: int) -> Joined:
    """Join what is staged as the layout does; a few records without a join are held in memory."""
    joining = work.layout.joining
    if joining is None:
        if records <= _FEW:
            work.connection.execute("CREATE TABLE few AS FROM staged")
            work.connection.execute("CREATE OR REPLACE VIEW staged AS FROM few")
        return Joined(0, 0)
    if joining.numbers:
        _copy(work, joining.numbers, work.folder / "snapshot" / NUMBERS_FILE)
    return joining.join(work.connection)


def snapshot_digest(
    programme: Programme,
    week: ServicePeriod,
    files: tuple[tuple[str, str], ...],
    *,
    parser: int = PARSER_VERSION,
    timetable: str = "",
) -> str:
    """Return the SHA-256 of everything that decides a snapshot's rows, in hex."""
    source = programme.source
    made_from = {
        "parser": parser,
        "week": str(week),
        "zone": programme.time.zone.key,
        "feed": source.feed,
        "modes": source.modes,
        "columns": sorted(source.columns),
        "mode_names": sorted(source.mode_names),
        "speed": [source.speed_unit, source.speed_at_most_kmh],
        "taps": [source.action_names, source.date_form, source.grid_decimals],
        "extent": [str(side) for side in astuple(source.extent)] if source.extent else [],
        "files": sorted(files),
    }
    carried = carried_names(source.feed.shape, programme.carried)
    since = {  # only where they say something: earlier snapshots keep their names
        "day_starts": programme.time.day_starts,
        "without_card": source.without_card is not WithoutCard.DROP and source.without_card,
        "without_action": source.without_action,
        "without_mode": source.without_mode,
        "without_count": source.without_count,
        "delay_unit": source.delay_unit,
        "status_names": source.status_names,
        "id_form": source.id_form and astuple(source.id_form),
        "file": source.file and [str(setting) for setting in astuple(source.file)],
        "absent_days": [str(day) for day in week.days if day not in programme.days_of(week)],
        "categories": carried,
        "unknown_status": "quarantine" if "occupancy" in carried else "",
        "without_speeds": parser >= _READS_NO_SPEEDS and not reads_speeds(programme),
        "timetable": timetable and [timetable, source.stop_within_m],
    }
    made_from |= {name: value for name, value in since.items() if value}
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()


def _written(file: RawFile) -> tuple[int, ...]:
    """Return which bytes lie at a name, as far as the disk tells without reading them."""
    with suppress(OSError):
        at = file.path.stat()
        return at.st_ino, at.st_size, at.st_mtime_ns
    return ()


def _refuse_written(before: dict[RawFile, tuple[int, ...]]) -> None:
    """Refuse files that were written to since: their rows would go by the digest of others.

    Raises:
        InputError: there is one.
    """
    for file, written in before.items():
        if _written(file) != written:
            rule = "was written to while it was read; run again when the delivery is complete"
            raise InputError(where=file.name, field="file", rule=rule)


def _stage_all(work: _Work, raw_files: tuple[RawFile, ...], progress: Callable[[str], None]) -> int:
    """Read every file into the relation `staged`; return how many records there were."""
    records = 0
    (work.folder / "staged").mkdir()
    for number, delivered in enumerate(raw_files, start=1):
        progress(f"reading {delivered.name} ({number} of {len(raw_files)} files)")
        inside = work.folder / f"unpacked-{number}"
        inside.mkdir()
        for part, file in enumerate(unpack(delivered, inside)):
            records += _stage(work, file, inside / f"lines-{part}")
        shutil.rmtree(inside)
    kind = "TABLE" if work.layout.joining else "VIEW"  # joining changes rows
    every = work.layout.same_for_all(work.programme)
    same = "".join(f", {_same(value)} AS {column}" for column, value in every)
    work.connection.execute(
        f"CREATE {kind} staged AS SELECT *{same} "
        f"FROM read_parquet({text(work.folder / 'staged' / '*')})"
    )
    return records


def _stage(work: _Work, file: RawFile, folder: Path) -> int:
    """Stage one file; return how many records it has, unreadable lines included.

    Raises:
        InputError: the file is damaged, lacks a column, or was not read line by line.
    """
    source, fields = open_fields(work.connection, work.programme, file, folder)
    statement = f"""
        WITH {fields},
            raw AS ({in_form("taken", work.programme.source)}),
            typed AS ({work.layout.typed_sql(work.programme, work.week)})
        SELECT * FROM typed
    """
    with raised_as_input_error(file):
        part = _next_part(work)
        read = _append(work, file, statement)
        malformed = _stage_malformed(work, file, source)
        if read and source.keys is not None:
            _require_a_good_record(work, file, source, part)
    if source.records is not None and read + malformed != source.records:
        rule = (
            "its records and its physical lines do not agree in number; nothing was written; "
            "report this as a fault of the program"
        )
        raise InputError(where=file.name, field="lines", rule=rule)
    return read + malformed


def open_fields(
    connection: DuckDBPyConnection, programme: Programme, file: RawFile, folder: Path
) -> tuple[Source, str]:
    """Make a file ready to be read, and return SQL of the relations `source`, `texts`, `taken`.

    The first has its columns as they come, the last the fields of the feed, as text.

    Args:
        connection: engine.
        programme: says how it is read.
        file: one file, no archive.
        folder: scratch folder that does not exist yet, of the private zone.

    Raises:
        InputError: the file is damaged, lacks a column, or has ids that are not exact.
    """
    layout, spec = layout_of(programme.source.feed), programme.source.written
    names = names_in_source(layout, programme)
    source = open_source(connection, file, layout.columns_of(names), folder, spec)
    fields = _fields(programme, file, frozenset(source.columns))
    id_field = programme.source.id_field
    id_fields = layout.composed.get(id_field, (id_field,))
    paths = [names.get(field, "") for field in id_fields]
    ids = {column: path for path in paths for column in layout.spellings(path)}
    refuse_inexact(programme.source, ids, source.kinds, file.name)
    as_texts = ", ".join(f"{source.as_text(column)} AS {name(column)}" for column in source.columns)
    as_fields = ", ".join(f"{as_usual(field, sql, spec)} AS {field}" for field, sql in fields)
    relations = (
        f"source AS ({source.relation}), texts AS (SELECT {as_texts} FROM source), "
        f"taken AS (SELECT {as_fields} FROM texts)"
    )
    return source, relations


def _append(work: _Work, file: RawFile, select: str) -> int:
    """Stage a selection of canonical columns, `broken_rule` and `fields`; return how many rows.

    Rows wait in plain files, not in the engine's memory, which would be twice the size and spill.
    """
    of_rows = work.layout.staged_columns(work.programme)
    columns = (*of_rows, ("broken_rule", "VARCHAR"), ("fields", "VARCHAR"))
    typed = ", ".join(f"CAST({column} AS {kind}) AS {column}" for column, kind in columns)
    key = ", ".join(name for name, _ in columns[:_KEY_COLUMNS])
    rows = (
        f"SELECT *, {_same(file.name)} AS file, hash({key}) AS key "
        f"FROM (SELECT {typed} FROM ({select}))"
    )
    return _copy(work, rows, _next_part(work), _STAGED)


def _next_part(work: _Work) -> Path:
    """Return where the next rows are staged."""
    staged = work.folder / "staged"
    return staged / f"{len(list(staged.iterdir())):06d}.parquet"


def _fields(
    programme: Programme, file: RawFile, columns: frozenset[str]
) -> tuple[tuple[str, str], ...]:
    """SQL of each field over a file's columns.

    Raises:
        InputError: the file lacks a column.
    """
    layout = layout_of(programme.source.feed)
    try:
        return fields_in(layout, columns, names_in_source(layout, programme), programme)
    except ColumnMissing as missing:
        rule = "the column is missing; deliver a file that has it, or correct source.columns"
        raise InputError(where=file.name, field=str(missing), rule=rule) from None


def _require_a_good_record(work: _Work, file: RawFile, source: Source, staged: Path) -> None:
    """Refuse a JSON file without one good record, if no record has some column.

    Args:
        work: of this ingest.
        file: delivered.
        source: of its records.
        staged: its rows; thousands of files wait beside it.

    Raises:
        InputError: that column, whichever the others' faults.
    """
    rows = f"read_parquet({one_file(staged)})"
    good = f"SELECT 1 FROM {rows} WHERE broken_rule IS NULL LIMIT 1"
    if work.connection.execute(good).fetchone() is None:
        key_rows = work.connection.execute(str(source.keys)).fetchall()
        if source.is_by_line:
            work.connection.execute("DELETE FROM reject_errors")
        _fields(work.programme, file, frozenset(str(row[0]) for row in key_rows))


def _stage_malformed(work: _Work, file: RawFile, source: Source) -> int:
    """Append the lines that are no record, each once; return how many."""
    lines = []
    rejects = "SELECT 1 FROM reject_errors LIMIT 1"
    if source.is_by_line and work.connection.execute(rejects).fetchone():
        lines.append("SELECT any_value(csv_line) AS fields FROM reject_errors GROUP BY line")
    if source.malformed is not None:
        lines.append(source.malformed)
    if source.rejected is not None:
        lines.append(f"SELECT fields FROM read_parquet({one_file(source.rejected)})")
    count = 0
    for select in lines:
        staged = work.layout.staged_columns(work.programme)
        empty = "".join(f"NULL AS {column}, " for column, _ in staged)
        kept = f"'malformed_line' AS broken_rule, {source.as_it_came('fields')} AS fields"
        malformed = f"SELECT {empty} {kept} FROM ({select})"
        count += _append(work, file, malformed)
        if source.is_by_line:
            work.connection.execute("DELETE FROM reject_errors")  # of this read
    return count


def _write(
    work: _Work, records: int, joined: Joined, progress: Callable[[str], None]
) -> tuple[tuple[date, ...], dict[str, int]]:
    """Write rows by day and quarantine by rule below `snapshot`; return days and exact counts."""
    select = f"SELECT service_date, count(*) {_GOOD} GROUP BY 1 ORDER BY 1"
    rows_of_day = dict(work.connection.execute(select).fetchall())
    hours = f"SELECT file, {MINUTE[work.layout.shape]} // 60 AS hour, count(*) AS rows {_GOOD}"
    _copy(work, f"{hours} GROUP BY ALL", work.folder / "snapshot" / HOURS_FILE)
    rows_out = 0
    progress("writing rows by day")  # not by name: which days have one is told by rows
    for day, rows in rows_of_day.items():
        folder = work.folder / "snapshot" / "rows" / f"service_date={day}"
        rows_out += _copy(work, _rows_once(work, day, rows), folder / "part-000.parquet")
    rule_counts = work.connection.execute("SELECT broken_rule, count(*) FROM staged GROUP BY 1")
    by_rule = dict(rule_counts.fetchall())
    kept = by_rule.pop(None, 0)
    for rule in by_rule:
        broken = f"FROM staged WHERE broken_rule = {text(rule)}"
        file = work.folder / "snapshot" / "quarantine" / f"{rule}.parquet"
        _copy(work, f"SELECT file, broken_rule, fields {broken} ORDER BY ALL", file)
    accounted = kept + sum(by_rule.values()) + joined.duplicates + joined.joined
    if records + joined.added != accounted:
        raise IntegrityError(
            f"{work.programme.name} {work.week}: records read and records kept do not agree; "
            "nothing was written; report this as a fault of the program"
        )
    duplicates = joined.duplicates + kept - rows_out
    totals = {"rows_in": records + joined.added, "rows_out": rows_out, "duplicates": duplicates}
    broken_rules = {rule: by_rule.get(rule, 0) for rule in rules_broken(work.programme.source.feed)}
    return tuple(rows_of_day), totals | {"joined": joined.joined} | broken_rules


def _rows_once(work: _Work, day: date, rows: int) -> str:
    """Return the SQL of a day's rows, each once."""
    canonical = ", ".join(names_of(work.layout.shape, work.programme.carried))
    of_day = f"{_GOOD} AND service_date = DATE '{day}'"
    if work.layout.joining:  # joined rows are there once
        return f"SELECT {canonical} {of_day}"
    return each_once(work.connection, canonical, of_day, rows)


def _copy(work: _Work, select: str, path: Path, options: str = _KEPT) -> int:
    """Write a selection as Parquet; return how many rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    statement = f"COPY ({select}) TO {text(path)} (FORMAT parquet, {options})"
    return number_of(work.connection, statement)


def _same(value: str) -> str:
    """Return the SQL of a text that all rows have, of a type that has no other one.

    Written as Parquet it is a text again; but nobody looks it up in a dictionary for each row.
    """
    return f"CAST({text(value)} AS ENUM({text(value)}))"


def _put_in_place(made: Path, target: Path) -> None:
    """Move a finished folder to its place at once; if another run was first, its copy stays."""
    try:
        made.rename(target)
    except OSError:
        if not target.exists():
            raise
