"""A look at the files of a week: what they are, what each rule would do, what mends what is wrong.

Nothing is charged, drawn or kept but the page. Files are read twice: as they come, for the page,
and as a release would read them, into a scratch folder of the private zone.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.duckdb_engine import connect, one_file
from turnstile.errors import InputError, TurnstileError
from turnstile.look import decisions
from turnstile.look.asked import Asked
from turnstile.look.decisions import Decision
from turnstile.look.fields_found import fields_that_may_be, lines_of_fields, week_of, words_of
from turnstile.look.file_form import FoundForm, found_form, instants_and_numbers, yaml_of
from turnstile.look.left_out import left_out
from turnstile.look.places import place_of
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.source_spec import FileSpec, RowShape, SourceSpec
from turnstile.programme.spec import Programme
from turnstile.quality.checks import validate
from turnstile.quality.findings import QualityReport
from turnstile.quality.metrics import open_rows
from turnstile.quality.plausible import (
    ENDS,
    rows_nowhere,
    vehicles_in_two_places,
    vehicles_of_another_unit,
)
from turnstile.service_calendar import ServicePeriod, ServiceWeek
from turnstile.sources.feeds.layout import names_in_source
from turnstile.sources.feeds.registry import layout_of
from turnstile.sources.ingest.canonical import rules_broken
from turnstile.sources.ingest.landing import RawFile, find_files, unpack
from turnstile.sources.ingest.reading import Source, open_source
from turnstile.sources.ingest.snapshot import Snapshot, counts_of
from turnstile.sources.ingest.week import ingest, open_fields

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_EXAMPLES, _PLACES = 3, 20
_KEYS_LOOKED_AT = 100  # names of columns that occur in records of JSON
_LONGEST_EXAMPLE = 400
Section = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Look:
    """What was found; private, but for the keys and reasons of decisions.

    Args:
        sections: pairs (title, lines), with exact figures and examples.
        decisions: what mends what is wrong.
    """

    sections: tuple[Section, ...]
    decisions: tuple[Decision, ...]

    @property
    def is_ready(self) -> bool:
        """True if nothing is left that must be decided before a release."""
        return not any(decision.must for decision in self.decisions)

    @property
    def offers(self) -> str:
        """What the page has for those who decide."""
        has_lines = any(decision.line and decision.must for decision in self.decisions)
        return "the lines that would do" if has_lines else "figures and examples"


def look_at(asked: Asked) -> Look:
    """Look at files.

    Raises:
        InputError: there is no file.
    """
    anywhere = asked.week or ServiceWeek(2016, 1)
    files = find_files(asked.landing, asked.programme.source.landing, anywhere)
    asked.private.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=".look-", dir=asked.private) as folder:
        looking = _Looking(asked, Path(folder))
        try:
            return looking.of(files)
        finally:
            looking.connection.close()


class _Looking:
    """One look; adds up sections and decisions."""

    def __init__(self, asked: Asked, folder: Path) -> None:
        self.asked, self.folder = asked, folder
        self.connection = connect(folder, memory=asked.memory)
        self.sections: list[tuple[str, Callable[[], Iterable[str]]]] = []
        self.decisions: list[Decision] = []
        self.fields: tuple[str, ...] = ()
        self.unread: dict[tuple[str, str], None] = {}

    def of(self, files: tuple[RawFile, ...]) -> Look:
        """Look at files."""
        members = [member for file in files for member in self._unpacked(file)]
        forms = {file.name: self._form(file) for file in members}
        programme, week = self._as_found(forms), self.asked.week
        self.sections.append(("Files", lambda: _lines_of_forms(members, forms)))
        source, is_of_release = programme.source, self.asked.snapshot is not None
        of_ids = source.id_field if decisions.asks_for_form(source) else "NULL AS nobody"
        self._stage(programme, members, of_ids if is_of_release else "*")
        if self.fields:
            self.sections.append(("Fields", partial(self._lines_of_fields, programme, members)))
            if week is None and (monday := week_of(self.connection, self.fields)) is not None:
                week = ServiceWeek.containing(monday)
            if not is_of_release:
                programme = decisions.as_said(self.connection, self.asked, programme, week)
        if week is not None:
            self._rules(programme, week, {file.name: file for file in members})
        if not is_of_release:
            mended = decisions.of_form(self.asked, programme.source.written, forms)
            self.decisions = [*mended, *self.decisions]
        known = {decision.key for decision in self.decisions}
        self.decisions += [
            decision for decision in decisions.left_open(self.asked) if decision.key not in known
        ]
        look = Look((), tuple(self.decisions))
        if is_of_release and look.is_ready:  # nobody is shown a page
            return look
        written = [(title, tuple(lines())) for title, lines in self.sections]
        return replace(look, sections=tuple(section for section in written if section[1]))

    def _unpacked(self, file: RawFile) -> tuple[RawFile, ...]:
        """Return the files within a delivered one; none where it cannot be unpacked."""
        inside = self.folder / f"unpacked-{len(list(self.folder.iterdir()))}"
        inside.mkdir()
        try:
            return unpack(file, inside)
        except InputError as error:
            self._refused(error)
            return ()

    def _form(self, file: RawFile) -> FoundForm | None:
        """Return how a file is written; None where that cannot be told."""
        layout = layout_of(self.asked.programme.source.feed)
        wanted = names_in_source(layout, self.asked.programme).values()
        try:
            return found_form(file, wanted)
        except (OSError, EOFError, ValueError):
            return None  # whoever reads it says what is wrong

    def _as_found(self, forms: Mapping[str, FoundForm | None]) -> Programme:
        """Return the programme as its files are mostly written."""
        programme = self.asked.programme
        if self.asked.snapshot is not None:
            return programme
        names = names_in_source(layout_of(programme.source.feed), programme)
        columns = instants_and_numbers(programme.source.feed, names)
        known = [form for form in forms.values() if form is not None]
        texts = [form for form in known if form.is_text]  # others are read as they are typed
        specs = Counter(form.stated(*columns) for form in texts or known)
        if not specs:
            return programme
        (spec, _), *_ = specs.most_common(1)
        written = programme.source.written
        # a text in ASCII alone says nothing of encodings, and reads alike in all
        told = Counter(
            decisions.encoding_of(written, form.stated()) for form in texts if not form.is_ascii
        )
        stated = written.encoding  # decides where a file is written so; what is usual, of as many
        is_stated = stated is not FileSpec().encoding
        encoding = max(
            told,
            key=lambda other: (is_stated and other is stated, told[other], other is stated),
            default=stated,
        )
        spec = replace(spec, encoding=encoding)
        # the short name of a zone is read as one of the stated zone's, if it is one
        is_named = any({*columns[0]} & {*form.named} for form in known)
        zone = written.zone or (programme.time.zone if is_named else None)
        spec = replace(spec, zone=zone, encoding=decisions.encoding_of(written, spec))
        return replace(programme, source=replace(programme.source, file=spec))

    def _lines_of_fields(self, programme: Programme, members: list[RawFile]) -> Iterator[str]:
        """Yield what stands in each field, of which a release has read the ids alone."""
        if self.asked.snapshot is not None:
            self._stage(programme, members, "*")
        yield from lines_of_fields(self.connection, self.fields, decisions.unit_of(programme))

    def _stage(self, programme: Programme, members: list[RawFile], fields: str) -> None:
        """Put fields of all records, or `*`, into the relation `said`."""
        staged = Path(tempfile.mkdtemp(prefix="said-", dir=self.folder))
        for number, file in enumerate(members):
            try:
                source, relations = open_fields(
                    self.connection, programme, file, staged.with_name(f"{staged.name}-{number}")
                )
                target = one_file(staged / f"{number:06d}.parquet")
                select = f"WITH {relations} SELECT {fields} FROM taken"
                self.connection.execute(f"COPY ({select}) TO {target} (FORMAT parquet)")
                self._unread(programme, file, source, relations)
            except InputError as error:
                self._refused(error)
            except Exception as error:  # noqa: BLE001 - an engine's message quotes a line
                rule = f"cannot be read ({type(error).__name__}); deliver it again"
                self._refused(InputError(where=file.name, field="file", rule=rule))
        if any(staged.iterdir()):
            every = f"read_parquet('{staged}/*', union_by_name=true)"
            self.connection.execute(f"CREATE OR REPLACE VIEW said AS SELECT * FROM {every}")
            described = self.connection.execute("DESCRIBE said").fetchall()
            self.fields = tuple(str(row[0]) for row in described)

    def _unread(self, programme: Programme, file: RawFile, source: Source, relations: str) -> None:
        """Remember columns that may name the mode, or enter and leave, where none is read."""
        columns, relation = source.columns, f"WITH {relations} SELECT * FROM texts"
        if source.keys is not None:  # of JSON only what a feed may have was read
            execute = self.connection.execute(source.keys).fetchall()
            columns = tuple(sorted(str(row[0]) for row in execute)[:_KEYS_LOOKED_AT])
            apart = self.folder / f"keys-{len(list(self.folder.iterdir()))}"
            relation = open_source(self.connection, file, columns, apart).relation
        names = names_in_source(layout_of(programme.source.feed), programme)
        asked = decisions.needs(programme, names, columns)
        if asked and source.kinds:  # cells that cannot be read are empty in what is read alone
            apart = self.folder / f"kinds-{len(list(self.folder.iterdir()))}"
            relation = open_source(self.connection, file, columns, apart).relation
        others = [column for column in columns if column not in {*names.values()}]
        for field, column in fields_that_may_be(self.connection, relation, others if asked else ()):
            if field in asked:
                self.unread[field, column] = None

    def _rules(
        self, programme: Programme, week: ServicePeriod, files: Mapping[str, RawFile]
    ) -> None:
        """Read the week as a release would, and judge it, where a release has not."""
        try:
            snapshot, report = self._judged(programme, week)
        except TurnstileError as error:
            self._refused(error)
            return
        open_rows(self.connection, snapshot, programme)
        connection, domain = self.connection, self.asked.domain
        rules = partial(_lines_of_rules, connection, programme, snapshot, files)
        self.sections.append(("Rules", rules))
        if domain is not None and programme.source.feed.shape is RowShape.TRIPS:
            places = partial(_lines_of_places, connection, domain)
            self.sections.append(("Places that the list does not have", places))
        self.sections.append(("Days", partial(_lines_of_days, connection, week)))
        if report is not None:
            self.sections.append(("Judgement", partial(_lines_of_findings, report)))
            self._bounds(programme, week, snapshot)
        seen = decisions.Seen(
            connection, programme, snapshot, report, tuple(self.unread), bool(self.fields)
        )
        self.decisions += decisions.of_rows(self.asked, seen)
        if programme.source.feed.shape is RowShape.TELEMETRY and snapshot.days:
            rows = counts_of(snapshot)["rows_out"]
            title = "Vehicles of another unit: what they say of what their positions tell"
            self.sections.append((title, partial(_lines_of_units, connection, rows)))
            several = partial(_lines_of_several, connection, rows, programme.source)
            self.sections.append(("Ids of several vehicles: in two places at once", several))

    def _bounds(self, programme: Programme, week: ServicePeriod, snapshot: Snapshot) -> None:
        """Say what the bounds leave out, and which of them leave out much."""
        work = self.folder / "bounds"
        bounds = tuple(left_out(self.asked, programme, week, snapshot, work))
        lines = [f"- {bound.line}: {bound.left} of {bound.records}" for bound in bounds]
        self.sections.append(("What the bounds leave out", lambda: lines))
        self.decisions += decisions.of_bounds(bounds)

    def _judged(
        self, programme: Programme, week: ServicePeriod
    ) -> tuple[Snapshot, QualityReport | None]:
        """Return rows and findings; a release that looks judges later."""
        if self.asked.snapshot is not None:
            return self.asked.snapshot, None
        private, memory = self.folder / "private", self.asked.memory
        snapshot = ingest(
            programme,
            week,
            landing=self.asked.landing,
            private=private,
            progress=lambda _: None,
            memory=memory,
            timetable=self.asked.timetable,
        )
        domain = self.asked.domain
        report = validate(programme, week, snapshot, private=private, domain=domain, memory=memory)
        return snapshot, decisions.for_page(report, self.asked)

    def _refused(self, error: TurnstileError) -> None:
        """Remember why files cannot be read; the sentence holds no value."""
        key = error.field if isinstance(error, InputError) else "files"
        if all(decision.why != str(error) for decision in self.decisions):
            self.decisions.append(Decision(key, "", str(error), must=True))


def _lines_of_forms(members: list[RawFile], forms: Mapping[str, FoundForm | None]) -> Iterator[str]:
    """Yield how each file is written."""
    for file in members:
        form = forms[file.name]
        epochs = "".join(f", {column} as {times}" for column, times in form.epochs) if form else ""
        if form is None or not form.is_text:
            yield f"- {file.name}: {file.form}{epochs}"
            continue
        spec = form.spec
        told = "by its header's line" if spec.delimiter is None else str(spec.delimiter)
        mark = " with a byte order mark" if form.has_mark else ""
        yield (
            f"- {file.name}: {file.form}, {spec.encoding}{mark}, delimiter {told}, quotes "
            f"{spec.quote}, header in line {spec.header_row}, decimals behind a {spec.decimal}"
            f"{epochs}; columns {', '.join(form.columns)}"
        )
    stated = Counter(yaml_of(form.stated()) for form in forms.values() if form is not None)
    if len(stated) > 1:
        yield "- These files are written in different ways; one programme reads one of them."


def _lines_of_rules(
    connection: DuckDBPyConnection,
    programme: Programme,
    snapshot: Snapshot,
    files: Mapping[str, RawFile],
) -> Iterator[str]:
    """Yield what each rule would keep and set aside, with examples of both."""
    counts = dict(counts_of(snapshot))
    left = counts["rows_in"]
    yield f"- records read {left}, rows {counts['rows_out']}, duplicates {counts['duplicates']}, "
    yield f"  joined to another record's row {counts['joined']}"
    for rule in rules_broken(programme.source.feed):
        aside = counts.get(rule, 0)
        left -= aside
        yield f"- `{rule}`: {aside} set aside, {left} go on"
        if aside:
            kept = one_file(snapshot.folder / "quarantine" / f"{rule}.parquet")
            select = f"SELECT file, fields FROM read_parquet({kept}) LIMIT {_EXAMPLES}"
            for file, record in connection.execute(select).fetchall():
                at = place_of(connection, files.get(file), programme.source.written, str(record))
                yield f"  - set aside, {file}{at}: {str(record)[:_LONGEST_EXAMPLE]}"
    if snapshot.days:
        rows = connection.execute(f"SELECT * FROM rows_read LIMIT {_EXAMPLES}")
        names = [column[0] for column in rows.description or ()]
        for row in rows.fetchall():
            shown = ", ".join(f"{name} {value}" for name, value in zip(names, row, strict=True))
            yield f"  - kept: {shown}"


def _lines_of_places(connection: DuckDBPyConnection, domain: PublicDomain) -> Iterator[str]:
    """Yield the places of trips that the public list does not have, the most frequent first."""
    for end in ENDS:
        _, nowhere = rows_nowhere(connection, end, domain)
        place = f"concat(mode, ' ', {end}_location)"
        for word in words_of(connection, nowhere, place, "card_id")[:_PLACES]:
            yield f"- {end}: {word.text!r}: {word.records} records"


def _lines_of_days(connection: DuckDBPyConnection, week: ServicePeriod) -> Iterator[str]:
    """Yield the rows of each day, and the days that have none."""
    select = "SELECT service_date, count(*) FROM rows_read GROUP BY 1"
    counts = {str(day): count for day, count in connection.execute(select).fetchall()}
    for day in week.days:
        rows = counts.get(str(day), 0)
        yield f"- {day}: {f'{rows} rows' if rows else 'no row: a gap'}"


def _lines_of_units(connection: DuckDBPyConnection, rows: int) -> Iterator[str]:
    """Yield vehicles that speak in another unit than most, with the ratio of each."""
    _, off = vehicles_of_another_unit(connection, rows)
    yield from (f"- {vehicle}: {ratio:.3f}" for vehicle, ratio in off.items())


def _lines_of_several(
    connection: DuckDBPyConnection, rows: int, source: SourceSpec
) -> Iterator[str]:
    """Yield ids that are in two places at once."""
    _, several = vehicles_in_two_places(connection, rows, source)
    yield from (f"- {unit}" for unit in several)


def _lines_of_findings(report: QualityReport) -> Iterator[str]:
    """Yield what validation says."""
    broken = [finding for finding in report.findings if not finding.passed]
    for finding in broken:
        verdict = "stops the week" if finding.stops else "warns"
        yield f"- `{finding.rule}` {verdict}: {finding.sentence}"
    if not broken:
        yield "- every rule is kept"
