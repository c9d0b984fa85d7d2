"""Which feed a delivered file is, by the names of its columns; no value of a row is looked at."""

from __future__ import annotations

import csv
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from turnstile.errors import InputError
from turnstile.look.fields_found import OF_INSTANTS, OWN_DATES, is_named_as_mode
from turnstile.look.file_form import FoundForm, found_form, instants_and_numbers, yaml_of
from turnstile.programme.fields import categories
from turnstile.programme.source_spec import Feed, FileSpec
from turnstile.sources.feeds.layout import ColumnMissing, FeedLayout, require_two_ends
from turnstile.sources.feeds.registry import LAYOUTS
from turnstile.sources.ingest.landing import FileForm, RawFile, form_of, unpack
from turnstile.sources.ingest.plain_text import opened
from turnstile.sources.ingest.reading import GEOMETRY
from turnstile.sources.ingest.worksheet import as_parquet
from turnstile_design.first_programme.column_roles import NEVER_READ, ROLES

_LOOKED_AT_BYTES = 1 << 20
# A file without a header has a record in its place: what does not look like a name is not repeated.
_NAME = re.compile(r"[A-Za-z][A-Za-z_./ -]{0,47}[0-9]{0,2}")
_HEADER_WITHIN = 10  # rows of a workbook
_NEAR = 2  # fields that a file lacks, and is still thought to be meant as a feed's
_NO_BEGINNING = (
    OSError,
    EOFError,
    ValueError,
    StopIteration,
    csv.Error,
    zlib.error,
    RecursionError,
)
_OFTEN = (Feed.TAPS, Feed.TIDES_VEHICLE_LOCATIONS)
"""What a file of an agency's own columns mostly is."""
_UNNAMED = "(a column whose name is not repeated here)"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivered file as its columns tell it.

    Args:
        feed: layout that it fits.
        fields: pairs (column of the file, field of the layout); the fields that it has.
        others: its other columns, as far as their names may be repeated.
        renamed: pairs (field, column) that differ from the layout's own.
        written: YAML of `source.file`; empty where nothing has to be stated.
        tells_instants: True if its times are instants whatever the zone.
        has_dates: True if `source.date_form` says how some dates are read.
    """

    feed: Feed
    fields: tuple[tuple[str, str], ...]
    others: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    written: str = ""
    tells_instants: bool = False
    has_dates: bool = False

    @property
    def is_plain(self) -> bool:
        """True if its columns have the feed's own names, which say what a row is."""
        feed_names = dict(LAYOUTS[self.feed].names)
        return not any(field in feed_names for field, _ in self.renamed)

    @property
    def has_mode(self) -> bool:
        """True if records name their mode."""
        return any(field == "mode" for _, field in self.fields)

    @property
    def may_name_mode(self) -> bool:
        """True if a column that is not read is called as one of modes may be."""
        return not self.has_mode and any(map(is_named_as_mode, self.others))

    @property
    def names_no_unit(self) -> bool:
        """True if records are trips or rides of whom no column speaks."""
        has_card = any(field == "card_id" for _, field in self.fields)
        return self.feed.names_nobody or (self.feed is Feed.HIRED_TRIPS and not has_card)

    @property
    def has_positions_only(self) -> bool:
        """True if taps name coordinates and no place, so that their places are cells of a grid."""
        fields = {field for _, field in self.fields}
        return self.feed is Feed.TAPS and "latitude" in fields and "place" not in fields

    @property
    def sheet(self) -> tuple[tuple[str, str], ...]:
        """Pairs (column, what becomes of it), every column of the file once."""
        used = tuple((column, ROLES[field]) for column, field in self.fields)
        return (*used, *((column, NEVER_READ) for column in self.others))


def look_at(
    path: Path, renamed: Mapping[str, str], feed: Feed | None = None, *, private: Path
) -> Delivery:
    """Return the feed that a file fits best.

    Args:
        path: of one delivered file.
        renamed: field of a layout to the file's own name of it.
        feed: the only layout to try; None for all.
        private: private zone, where archives are unpacked for the look.

    Raises:
        InputError: it is not there, has no header, or fits no layout.
        ProgrammeError: one column is named for both ends of a gate.
    """
    _require_known(renamed, path.name)
    file, columns, form = _columns(path, renamed, private)
    fits = [
        (len(fields), candidate, fields)
        for candidate, layout in LAYOUTS.items()
        if feed in (None, candidate)
        and (fields := _fields(layout, columns, _by_field(layout, renamed))) is not None
    ]
    fits = [fit for fit in fits if fit[0] or feed]  # a name that may hold all fields tells of none
    if not fits:
        raise _fits_none(file, columns, renamed, feed)
    _, best_feed, fields = max(fits, key=lambda fit: fit[0])
    feed_names = dict(LAYOUTS[best_feed].names)
    require_two_ends(feed_names | _by_field(LAYOUTS[best_feed], renamed))
    used = {column for column, _ in fields}
    field_of = {field: column for column, field in fields}
    instants, numbers = instants_and_numbers(best_feed, field_of)
    dates = {*instants, field_of.get("tap_on_date")}
    is_told = form is not None and bool(instants) and form.tells_instants(instants)
    others = (c if _NAME.fullmatch(c) else _UNNAMED for c in sorted(set(columns) - used))
    return Delivery(
        feed=best_feed,
        fields=fields,
        others=tuple(dict.fromkeys(others)),
        renamed=tuple(
            (f, c)
            for f, c in sorted(_by_field(LAYOUTS[best_feed], renamed).items())
            if feed_names.get(f) != c
        ),
        written="" if form is None else yaml_of(form.stated(instants, numbers)),
        tells_instants=is_told or best_feed in OF_INSTANTS,
        has_dates="tap_date" in field_of
        or (best_feed not in OWN_DATES and form is not None and bool(dates & {*form.dated})),
    )


def _fits_none(
    file: str, columns: Mapping[str, str], renamed: Mapping[str, str], feed: Feed | None
) -> InputError:
    """Return the error of a file that fits no feed: what the nearest would still need."""
    if inner := [c for c in sorted({*renamed.values()}) if columns.get(c, c) != c]:
        rule = f"{', '.join(inner)}: lies within another value, where no feed reads it but "
        rule += "gtfs_vehicle_positions and hfp; deliver it as a column of its own"
        return InputError(where=file, field="--column", rule=rule)
    tried = str(feed) if feed else "any feed"
    rule = f"its columns are not those of {tried}; docs/FEEDS.md lists them. "
    nearest = [candidate for candidate in LAYOUTS if feed in (None, candidate)]
    lacks = {
        candidate: _missing(LAYOUTS[candidate], columns, _by_field(LAYOUTS[candidate], renamed))
        for candidate in nearest
    }
    near = min(nearest, key=lambda candidate: len(lacks[candidate]))
    if not lacks[near]:  # it has all columns, and is asked for a field of another feed
        rule += f"{', '.join(sorted(renamed))}: not all are fields of {near}. "
    elif len(lacks[near]) <= _NEAR:
        rule += f"The nearest is {near}, of which it lacks {', '.join(lacks[near])}. "
    else:
        for field in (near,) if feed else _OFTEN:
            rule += f"As {field} it lacks {', '.join(lacks[field])}. "
    rule += (
        "Name yours with --column, for example --column observed_at=timestamp, or --feed taps "
        "--column card_id=card --column tapped_at=time"
    )
    return InputError(where=file, field="columns", rule=rule)


def _require_known(renamed: Mapping[str, str], file: str) -> None:
    """Refuse a name of a field that no feed has.

    Raises:
        InputError: one is none, with the nearest that is.
    """
    known = {name for layout in LAYOUTS.values() for pair in layout.names for name in pair}
    known |= {category.name for layout in LAYOUTS.values() for category in categories(layout.shape)}
    for unknown in sorted(renamed.keys() - known):
        near = get_close_matches(unknown, known, 1)
        rule = f"{unknown!r} is no field of any feed"
        rule += f"; did you mean {near[0]}?" if near else "; docs/FEEDS.md lists them"
        raise InputError(where=file, field="--column", rule=rule)


def _by_field(layout: FeedLayout, renamed: Mapping[str, str]) -> dict[str, str]:
    """Return what is renamed by field: a feed's own name of a column stands for its field."""
    field_of = {column: field for field, column in layout.names}
    return {field_of.get(name, name): column for name, column in renamed.items()}


def _missing(
    layout: FeedLayout, within: Mapping[str, str], renamed: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the fields, and the feed's columns of them, that a file would still need."""
    names = dict(layout.names) | {f: c for f, c in renamed.items() if f in dict(layout.names)}
    columns = _read(layout, within) - _holders(layout)
    field_of = {column: field for field, column in names.items()}
    missing_columns = dict[str, str]()
    while True:
        try:
            layout.fields_of(columns | {*missing_columns}, names)
        except ColumnMissing as missing:
            column = missing.args[0]
            field = field_of.get(column, column)
            missing_columns[column] = str(missing) if field == column else f"{field} ({missing})"
        else:
            return tuple(missing_columns.values())


def _fields(
    layout: FeedLayout, within: Mapping[str, str], renamed: Mapping[str, str]
) -> tuple[tuple[str, str], ...] | None:
    """Return (column, field) of the fields that are there; None if one is missing that must be."""
    feed_names, columns = dict(layout.names), _read(layout, within)
    listed = {category.name for category in categories(layout.shape) if category.name in ROLES}
    if set(renamed) - {*feed_names, *listed} or not set(renamed.values()) <= columns:
        return None
    names = feed_names | dict(renamed)
    try:
        layout.fields_of(columns, {field: names[field] for field in feed_names})
    except ColumnMissing:
        return None
    plain = columns - _holders(layout)
    there = {
        field: [spelling for spelling in layout.spellings(column) if spelling in plain]
        for field, column in names.items()
    }
    return tuple((spellings[0], field) for field, spellings in there.items() if spellings)


def _read(layout: FeedLayout, within: Mapping[str, str]) -> frozenset[str]:
    """Return the columns that a feed reads, if it reads any: within others few do."""
    return frozenset(c for c, holder in within.items() if holder in layout.spellings(c))


def _holders(layout: FeedLayout) -> frozenset[str]:
    """Return the columns that may hold every field of a feed."""
    return frozenset.intersection(*(frozenset(layout.spellings(c)) for _, c in layout.names))


def renamed_columns(pairs: list[str]) -> dict[str, str]:
    """Read FIELD=NAME.

    Raises:
        InputError: one is no such pair.
    """
    renamed = dict(pair.partition("=")[::2] for pair in pairs)
    if not all(renamed.values()):
        rule = "write FIELD=NAME, for example card_id=id_tarjeta"
        raise InputError(where="turnstile", field="--column", rule=rule)
    return renamed


def _columns(
    path: Path, renamed: Mapping[str, str], private: Path
) -> tuple[str, dict[str, str], FoundForm | None]:
    """Return the name of a file, or of the first one of an archive, its columns and its form.

    Each column stands with the one that holds it: itself, where it is within no other.

    Raises:
        InputError: there is no such file, or it does not begin as its name promises.
    """
    form = form_of(path.name)
    if not path.is_file():
        raise InputError(where=path.name, field="--from", rule="is not there; name a file")
    private.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = {column for layout in LAYOUTS.values() for _, column in layout.names}
    with TemporaryDirectory(prefix=".look-", dir=private) as folder:
        file, *_ = unpack(RawFile(path.name, path, form), Path(folder))
        try:
            wanted = {*known, *renamed.values()}
            is_workbook = file.form is FileForm.WORKBOOK
            workbook_form = _of_workbook(file, wanted, Path(folder)) if is_workbook else None
            file_form = workbook_form or found_form(file, wanted)
            is_header = is_workbook or file.form is FileForm.CSV
            if is_header and file_form:
                return file.name, {column: column for column in file_form.columns}, file_form
            names = sorted(_names(file), key=lambda pair: pair[0] == pair[1])
            return file.name, dict(names), file_form
        except _NO_BEGINNING:
            rule = f"does not begin as {file.form} with a header; check the file"
            raise InputError(where=file.name, field="header", rule=rule) from None


def _of_workbook(file: RawFile, wanted: set[str], folder: Path) -> FoundForm:
    """Return the columns of a workbook under the row that names most of what is known."""
    import pyarrow.parquet as pq

    headers = []
    for row in range(1, _HEADER_WITHIN + 1):
        with suppress(InputError):
            sheet = as_parquet(file, folder / f"sheet-{row}.parquet", row)
            headers.append((row, tuple(pq.read_schema(sheet).names)))
    if not headers:
        raise ValueError
    row, names = max(headers, key=lambda header: (len(wanted & {*header[1]}), -header[0]))
    return FoundForm(FileSpec(header_row=row), names)


def _names(file: RawFile) -> Iterator[tuple[str, str]]:
    """Yield a file's columns, each with the one that holds it; of JSON, of its first record."""
    if file.form in (FileForm.PROTOBUF, FileForm.XML):
        yield from ((name, name) for name in _stated(file))
        return
    if file.form is FileForm.PARQUET:
        import pyarrow.parquet as pq

        record = _members(pq.read_schema(file.path))
    elif file.form is FileForm.ARROW:
        import pyarrow as pa

        with pa.memory_map(str(file.path)) as mapped, pa.ipc.open_file(mapped) as batches:
            record = _members(batches.schema)
    else:
        with opened(file.path) as stream:
            begin = stream.read(_LOOKED_AT_BYTES).decode("utf-8-sig", errors="ignore")
        record, _ = json.JSONDecoder().raw_decode(begin.lstrip("[ \r\n\t"))
    if ".geojson" in file.name.lower():
        yield from ((name, name) for name in GEOMETRY)
        record = record.get("properties", {})
    if isinstance(record, dict) and len(record) == 1:  # an envelope, named by what happened
        ((event, payload),) = record.items()
        yield from _paths(payload, "", event)
    yield from _paths(record)


def _members(fields: Any) -> dict[str, Any]:  # noqa: ANN401 - a schema, or a struct of one
    """Return the names of typed columns, and of what is within each, as a record has them."""
    from pyarrow.types import is_struct

    return {field.name: _members(field.type) if is_struct(field.type) else None for field in fields}


def _stated(file: RawFile) -> Iterator[str]:
    """Yield the columns that some record of a message or document states, of those of any feed."""
    import pyarrow.parquet as pq

    from turnstile.sources.ingest.documents import as_table

    for feed, layout in LAYOUTS.items():
        with TemporaryDirectory() as scratch:
            wanted = layout.columns_of(dict(layout.names))
            table = pq.read_table(as_table(file, wanted, Path(scratch) / str(feed)).path)
        yield from (name for name in wanted if table[name].null_count < len(table))


def _paths(
    value: Any,  # noqa: ANN401 - any JSON
    above: str = "",
    holder: str = "",
) -> Iterator[tuple[str, str]]:
    """Yield each member of a record at any depth, with points between, and what holds it."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield above + key, holder or key
        yield from _paths(inner, f"{above}{key}.", holder or key)
