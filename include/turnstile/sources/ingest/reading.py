"""Raw files as relations of text columns, whatever their form; each record is read by itself.

Nothing about a record is learned from another one: no dialect, key or type is sniffed. The columns
of CSV and Parquet are those of the header and the schema; of a JSON record every column that the
feed may have is asked for. Faults of a file become an `InputError` that names the file, the column
and the rule: the engine's own messages quote the line at fault, so none of them is passed on.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.duckdb_engine import name, one_file, text
from turnstile.durable_files import refuse_if_full
from turnstile.errors import InputError
from turnstile.programme.source_spec import FileSpec
from turnstile.sources.ingest.landing import BY_LINE, FileForm, RawFile, packing_of
from turnstile.sources.ingest.lines import (
    AS_IT_STANDS,
    UNREADABLE,
    PhysicalLines,
    first_character,
    sort_lines,
    with_marks,
)
from turnstile.sources.ingest.plain_text import PlainText
from turnstile.sources.ingest.worksheet import as_parquet

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

GEOMETRY = {
    "geometry.longitude": "$.geometry.coordinates[0]",
    "geometry.latitude": "$.geometry.coordinates[1]",
    "location": "$.geometry",
}
"""What a feature of GeoJSON says beside its properties, by the names that columns have for it."""
_DOCUMENTS = (FileForm.PROTOBUF, FileForm.XML)
# By its name, as feeds are: a programme rests on it if its files are such (docs/TRUSTED_CORE.md).
_READER_OF_DOCUMENTS = "turnstile.sources.ingest.documents"
_LONGEST_NAME = 80
_DEEPEST = 12  # levels of a type; the engine takes minutes for sixty
# A character that cannot be in JSON text stands where a delimiter must: a line is one column.
_ONE_COLUMN = (
    "auto_detect=false, columns={'record': 'VARCHAR'}, header=false, delim='\x01', quote='', "
    "escape='', store_rejects=true, rejects_limit=0"
)
_IS_OBJECT = "CASE WHEN json_valid(record) THEN json_type(record) = 'OBJECT' ELSE false END"


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is ready to be read.

    Args:
        columns: its columns, or, for JSON, those that its records may have.
        relation: SQL that selects them as text; nested values are JSON.
        records: how many records `relation` and the two kinds of rejected lines are in all, counted
            without the engine's reader; None for a JSON array, which only that reader
            parts.
        rejected: Parquet file of the lines that no reader sees; None if there is none.
        is_by_line: True if the engine puts lines that it cannot split into `reject_errors`.
        malformed: SQL that selects the text of lines that it can split, but that are no record.
        keys: SQL that selects the columns that occur, for JSON.
        kinds: type of each column, for Parquet.
        may_have_margins: False if no text begins or ends with a blank, so that none is trimmed.
        text: what was exchanged in a file of CSV, and is exchanged back in every text.
    """

    columns: tuple[str, ...]
    relation: str
    records: int | None
    rejected: Path | None = None
    is_by_line: bool = False
    malformed: str | None = None
    keys: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    may_have_margins: bool = True
    text: PlainText | None = None

    def as_text(self, column: str) -> str:
        """Return SQL for a column as trimmed text, empty text as NULL."""
        untrimmed = self.as_it_came(name(column))
        return f"nullif({f'trim({untrimmed})' if self.may_have_margins else untrimmed}, '')"

    def as_it_came(self, sql: str) -> str:
        """Return SQL of a text in the file's own characters."""
        if self.text is None or not self.text.exchanged:
            return sql
        return f"translate({sql}, {text(self.text.exchanged)}, {text(self.text.instead)})"


@contextmanager
def raised_as_input_error(file: RawFile) -> Iterator[None]:
    """Turn a fault of a file into one sentence without any of its content.

    Raises:
        InputError: the file cannot be read to its end, or there is too little memory or disk.
    """
    import duckdb
    import pyarrow as pa

    try:
        yield
    except duckdb.OutOfMemoryException:
        rule = f"{file.name} does not fit into what the engine may take; allow it more, or disk"
        raise InputError(where="environment", field="TURNSTILE_MEMORY_LIMIT", rule=rule) from None
    except (
        *(duckdb.Error, pa.ArrowException, OSError, EOFError, UnicodeError, zlib.error),
    ) as error:
        refuse_if_full(error)
        rule = f"cut off or damaged: it does not read as {file.form} to its end"
        rule += f"{_unreadable_part(file)}; deliver it again"
        raise InputError(where=file.name, field="file", rule=rule) from None


def _unreadable_part(file: RawFile) -> str:
    """Return the row group and column of Parquet that do not read; empty of other files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file.form is not FileForm.PARQUET:
        return ""
    with suppress(pa.ArrowException, OSError, ValueError), pq.ParquetFile(file.path) as parquet:
        for group, column in product(range(parquet.num_row_groups), parquet.schema_arrow.names):
            try:
                sum(
                    batch.num_rows
                    for batch in parquet.iter_batches(row_groups=[group], columns=[column])
                )
            except (pa.ArrowException, OSError, ValueError):
                return f" (row group {group}, column {column[:_LONGEST_NAME]!r})"
    return ""


def open_source(
    connection: DuckDBPyConnection,
    file: RawFile,
    wanted: tuple[str, ...],
    folder: Path,
    spec: FileSpec = AS_IT_STANDS,
) -> Source:
    """Make a file ready to be read.

    Args:
        connection: engine.
        file: one file, no archive.
        wanted: columns that are read, if they are there.
        folder: scratch folder that does not exist yet, of the private zone.
        spec: how a file of CSV is written.

    Raises:
        InputError: damaged file, another delimiter, or a column named twice.
    """
    with raised_as_input_error(file):
        if file.form is FileForm.CSV:
            source = _csv(file, wanted, folder, spec)
        elif file.form is FileForm.JSON:
            source = _json(file, wanted, folder)
        elif file.form in _DOCUMENTS:
            table = import_module(_READER_OF_DOCUMENTS).as_table(file, wanted, folder)
            made = replace(file, path=table.path)
            source = _parquet(connection, made, _kinds(connection, made))
            source = replace(source, records=table.records, rejected=table.rejected)
        else:
            made = _as_parquet(file, wanted, folder, spec)
            if file.form is FileForm.PARQUET and made != file:
                source = _of_copy(connection, file, made)
            else:
                source = _parquet(connection, made, _kinds(connection, made))
            if made != file:
                source = _without_marked(source, wanted)
    names = {column.lower() for column in source.columns}  # the engine's, whatever the case
    if file.form is not FileForm.JSON and len(names) < len(source.columns):
        rule = "a column is named twice, or two differ in capitals alone; name each column once"
        raise InputError(where=file.name, field="header", rule=rule)
    return source


def _csv(file: RawFile, wanted: tuple[str, ...], folder: Path, spec: FileSpec) -> Source:
    """A CSV file; lines with another number of fields than the header's are left to the engine.

    A character that cannot be decoded costs its record if it stands in a column that is read.
    """
    lines = sort_lines(file, folder, has_quotes=True, spec=spec)
    columns = _header(file, lines)
    _refuse_cut_off_line(file, lines, fields=len(columns))
    types = ", ".join(f"{name(column)}: 'VARCHAR'" for column in columns)
    options = (
        f"auto_detect=false, columns={{{types}}}, header=true, delim=',', quote='\"', "
        "escape='\"', nullstr='', compression='none', store_rejects=true, rejects_limit=0, "
        "hive_partitioning=false"
    )
    source = Source(
        columns=columns,
        relation=f"SELECT * FROM read_csv({one_file(lines.clean)}, {options})",
        records=lines.count - 1,
        rejected=lines.rejected if lines.rejected_count else None,
        is_by_line=True,
        may_have_margins=lines.may_have_margins,
        text=lines.text,
    )
    return _without_marked(source, wanted) if lines.is_mended else source


def _may_be_text(kind: str) -> bool:
    """Return whether a column may hold what cannot be read; of CSV no type is known."""
    return not kind or any(word in kind for word in ("VARCHAR", "JSON"))


def _without_marked(source: Source, wanted: tuple[str, ...]) -> Source:
    """Take out the records that have what cannot be read in a column that is read."""
    read = source.relation
    texts = (c for c in source.columns if c in wanted and _may_be_text(source.kinds.get(c, "")))
    marks = (f"coalesce(contains({name(c)}, {text(UNREADABLE)}), false)" for c in texts)
    is_marked = " OR ".join(("false", *marks))
    every = ", ".join(f"coalesce({name(column)}, '')" for column in source.columns)
    kept = f"replace(concat_ws(',', {every}), {text(UNREADABLE)}, '\\')"
    return replace(
        source,
        relation=f"SELECT * FROM ({read}) WHERE NOT ({is_marked})",
        malformed=f"SELECT {kept} AS fields FROM ({read}) WHERE {is_marked}",
    )


def _header(file: RawFile, lines: PhysicalLines) -> tuple[str, ...]:
    """Names in the first line.

    Raises:
        InputError: it is no header.
    """
    if not lines.is_first_clean or UNREADABLE in lines.first.decode(errors="replace"):
        rule = (
            "the first line is no header: it is empty, or no line of CSV in the encoding that is "
            "read; state source.file (encoding, header_row, delimiter, quote)"
        )
        raise InputError(where=file.name, field="header", rule=rule)
    first = next(csv.reader([lines.first.decode()]), [])
    translation = str.maketrans(lines.text.exchanged, lines.text.instead)
    return tuple(
        column.translate(translation).strip() or f"column_{n}" for n, column in enumerate(first)
    )


def _refuse_cut_off_line(file: RawFile, lines: PhysicalLines, *, fields: int) -> None:
    """Refuse a plain file that ends inside a line; a compressed one has a checksum.

    Raises:
        InputError: the last line has no end and fewer fields than the header.
    """
    if packing_of(file.path.name) == ".gz" or lines.last_unfinished is None:
        return
    last = lines.last_unfinished.decode(errors="replace")
    if last.strip() and last.count(",") + 1 < fields:
        rule = "cut off: its last line is not complete; deliver it again"
        raise InputError(where=file.name, field="file", rule=rule)


def _json(file: RawFile, wanted: tuple[str, ...], folder: Path) -> Source:
    """A JSON array, or one record a line; the first character says which.

    Raises:
        InputError: a file that promises JSON begins with something else.
    """
    begin, by_line = first_character(file), file.name.lower().endswith(BY_LINE)
    if begin == "[" and not by_line:
        path, malformed = with_marks(file, folder), None
        records = f"read_json_objects({one_file(path)}, format='array', hive_partitioning=false)"
        if path != file.path:
            is_marked = f"contains(CAST(json AS VARCHAR), {text(UNREADABLE)})"
            kept = f"replace(CAST(json AS VARCHAR), {text(UNREADABLE)}, '\\')"
            malformed = f"SELECT {kept} AS fields FROM {records} WHERE {is_marked}"
            records = f"(SELECT json FROM {records} WHERE NOT {is_marked})"
        relation, keys = _extracted(wanted, "json", records, file), _keys("json", records, file)
        return Source(wanted, relation, None, malformed=malformed, keys=keys)
    if begin != "{" and not by_line:
        rule = "is no JSON: it begins with neither '[' nor '{'; deliver it again"
        raise InputError(where=file.name, field="file", rule=rule)
    lines = sort_lines(file, folder, has_quotes=False)
    options = f"{_ONE_COLUMN}, compression='none', hive_partitioning=false"
    read = f"read_csv({one_file(lines.clean)}, {options})"
    objects = f"(SELECT record FROM {read} WHERE {_IS_OBJECT})"
    return Source(
        columns=wanted,
        relation=_extracted(wanted, "record", objects, file),
        records=lines.count,
        rejected=lines.rejected if lines.rejected_count else None,
        is_by_line=True,
        malformed=f"SELECT record AS fields FROM {read} WHERE NOT ({_IS_OBJECT})",
        keys=_keys("record", objects, file),
    )


def _keys(column: str, records: str, file: RawFile) -> str:
    """SQL of the names of columns that occur."""
    if not _is_geojson(file):
        return f"SELECT DISTINCT unnest(json_keys({column})) FROM {records}"
    property_keys = f"SELECT DISTINCT unnest(json_keys({column}, '$.properties')) FROM {records}"
    return f"{property_keys} UNION VALUES {', '.join(f'({text(key)})' for key in GEOMETRY)}"


def _is_geojson(file: RawFile) -> bool:
    """Return whether records are features of GeoJSON (RFC 7946)."""
    return ".geojson" in file.name.lower()


def _extracted(wanted: tuple[str, ...], column: str, records: str, file: RawFile) -> str:
    """SQL of the wanted columns of each JSON record; NULL where it has none."""
    escaped = (key.replace("\\", "\\\\").replace('"', '\\"') for key in wanted)
    above, geometry = ("$.properties", GEOMETRY) if _is_geojson(file) else ("$", {})
    paths = ", ".join(text(geometry.get(key, f'{above}."{key}"')) for key in escaped)
    named = ", ".join(f"found[{n}] AS {name(key)}" for n, key in enumerate(wanted, start=1))
    subquery = f"SELECT json_extract_string({column}, [{paths}]) AS found FROM {records}"
    return f"SELECT {named} FROM ({subquery})"


def _levels(kind: str) -> int:
    """Return at most how deep a type of DuckDB's is, from the way that it is written.

    Examples:
        >>> _levels("VARCHAR"), _levels("STRUCT(a VARCHAR, b INTEGER[])[]")
        (0, 3)
    """
    return kind.count("(") + kind.count("[")


def _as_parquet(file: RawFile, wanted: tuple[str, ...], folder: Path, spec: FileSpec) -> RawFile:
    """Return a file of Arrow (feather) or a workbook as one of Parquet that the engine reads."""
    made = folder / "readable.parquet"
    folder.mkdir(parents=True)
    if file.form is FileForm.WORKBOOK:
        return replace(file, path=as_parquet(file, made, spec.header_row))
    from turnstile.sources.ingest.typed_cells import as_readable, write_readable

    if file.form is not FileForm.ARROW:
        return replace(file, path=as_readable(file.path, made, wanted))
    import pyarrow as pa

    with pa.memory_map(str(file.path)) as stream, pa.ipc.open_file(stream) as batches:
        numbers = range(batches.num_record_batches)
        write_readable(batches.schema, (batches.get_batch(n) for n in numbers), made)
    return replace(file, path=made)


def _read_parquet(file: RawFile) -> str:
    return f"read_parquet({one_file(file.path)}, hive_partitioning=false)"


def _kinds(connection: DuckDBPyConnection, file: RawFile) -> list[tuple[str, str]]:
    """Return the columns of a Parquet file, with their types."""
    schema = connection.execute(f"DESCRIBE SELECT * FROM {_read_parquet(file)}").fetchall()
    return [(str(row[0]), str(row[1])) for row in schema]


def _of_copy(connection: DuckDBPyConnection, file: RawFile, copy: RawFile) -> Source:
    """A copy of a Parquet file, which loses types of old writers and that times are of UTC."""
    kinds, of_copy = _kinds(connection, file), _kinds(connection, copy)
    if _without_zones(kinds) != _without_zones(of_copy):
        return _parquet(connection, file, kinds)
    changed = [was for was, now in zip(kinds, of_copy, strict=True) if was != now]
    return _parquet(connection, copy, kinds, dict(changed))


def _without_zones(kinds: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(column, kind.replace(" WITH TIME ZONE", "")) for column, kind in kinds]


def _parquet(
    connection: DuckDBPyConnection,
    file: RawFile,
    schema: list[tuple[str, str]],
    changed: Mapping[str, str] | None = None,
) -> Source:
    """A Parquet file; its footer says how many records there are.

    Args:
        connection: engine.
        file: of Parquet.
        schema: its columns with their types.
        changed: of these the ones that are of another type in this file.
    """
    footer = f"SELECT num_rows FROM parquet_file_metadata({one_file(file.path)})"
    rows = connection.execute(footer).fetchone()
    columns = tuple(column for column, _ in schema)
    if deep := next((column for column, kind in schema if _levels(kind) > _DEEPEST), None):
        rule = f"column {deep[:_LONGEST_NAME]!r} is more than {_DEEPEST} levels deep; "
        rule += "deliver plain columns"
        raise InputError(where=file.name, field="schema", rule=rule)
    values = {column: f"CAST({name(column)} AS {kind})" for column, kind in (changed or {}).items()}
    texts = ", ".join(
        f"{_printed(values.get(column, name(column)), kind)} AS {name(column)}"
        for column, kind in schema
    )
    records = None if rows is None else int(rows[0])
    read = f"SELECT {texts} FROM {_read_parquet(file)}"
    return Source(columns, read, records, kinds=dict(schema))


def _printed(value: str, kind: str) -> str:
    """SQL of a value of Parquet as it prints; a struct as JSON, which can be read."""
    return f"CAST({f'to_json({value})' if kind.startswith('STRUCT') else value} AS VARCHAR)"
