"""What mends what a look found: keys of a programme, each with its line and its reason.

Lines and examples stay on the private page. What a terminal shows of a decision is its key and a
constant sentence. A line names only words that twenty cards or more have; whoever copies it makes
them public.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from turnstile.duckdb_engine import number_of, one_file
from turnstile.look.asked import Asked
from turnstile.look.fields_found import (
    OF_INSTANTS,
    OWN_DATES,
    Word,
    action_like,
    asks_for_action,
    asks_for_status,
    date_form,
    form_of_ids,
    spellings_that_merge,
    words_of,
)
from turnstile.look.file_form import FoundForm, yaml_of
from turnstile.look.left_out import LeftOut
from turnstile.privacy.units import Subject
from turnstile.programme.rules import DATED_BY_STANDARD
from turnstile.programme.source_spec import (
    Encoding,
    Feed,
    FileSpec,
    RowShape,
    SourceSpec,
    SpeedUnit,
    TimeForm,
    WithoutCard,
)
from turnstile.programme.spec import Programme
from turnstile.quality.findings import QualityReport
from turnstile.quality.kinds_set_aside import CARDS_AT_LEAST
from turnstile.quality.plausible import (
    DATED,
    STRAIGHT_WAY,
    said_by_covered,
    vehicles_of_another_unit,
)
from turnstile.quality.rules import shares_at_most, shown_by
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.layout import names_in_source
from turnstile.sources.feeds.registry import layout_of
from turnstile.sources.ingest.snapshot import Snapshot, counts_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MODES = "source.modes"
_ABOVE = "examples stand on the page of this look, under Rules"
_CLOCK, _ZONE = "clock", "time.zone"
_SHARES_KEY = "source.set_aside_at_most"
_NEAR = 0.15  # of the ratio of two units
_MOST = 0.8  # of the pairs of positions of all vehicles
_SINGLE_BYTE = (Encoding.LATIN_1, Encoding.WINDOWS_1252)
_SHARES = ("1/50", "1/20", "1/10", "1/5", "1/3", "1/2", "2/3", "3/4", "9/10", "1")
_PUBLIC = "its words become public; it names none that fewer than "
_PUBLIC += f"{CARDS_AT_LEAST} cards or vehicles have"
_RARE = (
    f"words of fewer than {CARDS_AT_LEAST} cards are left: a person in the private zone decides "
    "what they are, and asks the sender; do not write them anywhere public"
)
# rule of validation: key that mends it, and what to write there
_MENDS = {
    "days_present": (
        "source.missing_day",
        "missing_day: publish_with_gap   # or absent_days: [...]",
    ),
    "days_complete": ("source.rows_per_day_at_least", ""),
    _CLOCK: ("source.file.zone", "file: {zone: UTC}   # or quiet_hours, or another time.zone"),
    "dates": ("source.date_form", ""),
    "numbers": (
        "source.feed",
        "feed: gate_counters   # of numbers that go on; gate_counts: of an interval",
    ),
    "coordinates_swapped_many": (
        "source.columns",
        "columns: {latitude: ..., longitude: ...}   # exchanged",
    ),
    "unlisted_words": (
        "domain.lists",
        "set_aside_at_most: {unknown_direction: ...}   # or a longer list",
    ),
    "unlisted_places": (
        "source.columns",
        'set_aside_at_most: {unknown_place: "..."}   # or other columns, or a longer list',
    ),
    "quarantine_small": (_SHARES_KEY, ""),
    "delay_unit": (
        "source.delay_unit",
        "delay_unit: min   # or s; s_reversed, min_reversed if early vehicles are above 0",
    ),
    "on_board": ("source.columns", "columns: {passengers: ...}   # how many board or alight"),
    "ids": ("source.columns", ""),
    "delivered_twice": (_SHARES_KEY, ""),
    "trips_of_no_card": ("source.without_card", ""),
    "duplicates_without_id": ("source.columns", ""),
    "malformed_line_many": ("source.file", ""),
    "unparsable_timestamp_many": ("source.file.times", ""),
    "speeds": ("source.speed_at_most_kmh", ""),
}
_SAID_BY_OTHERS = frozenset({"speed_unit", "unknown_action_many", "unknown_mode_many"})
# Of records that a rule set aside there is no row: whoever mends that one looks again.
_CONSEQUENCES = frozenset({"rows_present", "days_present", "days_complete", "quarantine_small"})
_OPEN = {
    "source.feed": "what one row is: the feed that the files are of",
    "mechanism.unit": "who is protected",
    _ZONE: "the agency's time zone",
    "source.speed_unit": "the unit of speeds",
    "source.date_form": "how dates are written",
    "typical_volume": "tap-ons a week of the mode with the most places, or vehicles a day",
    "accept_no_gain": "why to release what naive tables tell as well",
    "source.columns.action": "which column says whether a tap enters or leaves",
    "source.without_count": "how many passengers an event is that states no number; or name the "
    "column of it: columns: {passengers: ...}",
    "source.columns.mode": "which column names the mode",
    "source.without_mode": "whether all vehicles are of one mode",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing that somebody has to decide.

    Args:
        key: of the programme, or a part of the files.
        line: of YAML that would do; private until somebody writes it down. Empty for none.
        why: what is wrong; holds no value.
        must: True if a release stops without it.
    """

    key: str
    line: str
    why: str
    must: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """What was made of the files of a week.

    Args:
        connection: engine with `rows_read`, and `said` if fields could be read.
        programme: under which they were read.
        snapshot: rows and quarantine.
        report: findings on it; None where a release judges it later.
        unread: pairs (field, column that nobody reads and that may say it).
        has_fields: True if there is `said`.
    """

    connection: DuckDBPyConnection
    programme: Programme
    snapshot: Snapshot
    report: QualityReport | None
    unread: tuple[tuple[str, str], ...]
    has_fields: bool

    def stops(self, rule: str) -> bool:
        """Return whether a rule stops the week."""
        findings = () if self.report is None else self.report.findings
        return any(finding.rule == rule and finding.stops for finding in findings)


def needs(programme: Programme, names: Mapping[str, str], columns: Iterable[str]) -> set[str]:
    """Return what of action, status and mode nobody has said how these columns tell it.

    Args:
        programme: says what is read.
        names: column of each of its fields.
        columns: of a file.
    """
    source, there = programme.source, {*columns}
    asked: dict[str, str | None] = {"mode": source.without_mode}
    if asks_for_action(source.feed):
        asked["action"] = source.without_action
    if asks_for_status(source.feed):
        asked["status"] = None
    return {
        field for field, said in asked.items() if said is None and names.get(field) not in there
    }


def encoding_of(written: FileSpec, detected: FileSpec) -> Encoding:
    """Return the encoding to state: one byte a character is told apart by people alone."""
    if written.encoding in _SINGLE_BYTE and detected.encoding in _SINGLE_BYTE:
        return written.encoding
    return detected.encoding


def unit_of(programme: Programme) -> str:
    """Return the field that names card or vehicle; where nobody is named, the event or its gate."""
    source = programme.source
    if not source.feed.names_nobody:
        return source.id_field
    return "tap_id" if source.feed is Feed.TIDES_PASSENGER_EVENTS else "gate"


def as_said(
    connection: DuckDBPyConnection, asked: Asked, programme: Programme, week: ServicePeriod | None
) -> Programme:
    """Return a programme with the form of dates, and modes that nobody named, of its files.

    Args:
        connection: engine with `said`.
        asked: says what is undecided.
        programme: under which its fields were read.
        week: whose dates they are, if that is known.
    """
    source = programme.source
    columns = {str(row[0]) for row in connection.execute("DESCRIBE said").fetchall()}
    days = () if week is None or source.feed in OWN_DATES else week.days
    for field in columns & {*DATED} if days else ():
        source = replace(source, date_form=date_form(connection, field, days) or source.date_form)
    if _MODES in asked.undecided and "mode" in columns:
        words = words_of(connection, "said", "mode", unit_of(programme))
        modes = tuple(word.text for word in words if word.may_be_named)
        source = replace(source, modes=modes or source.modes)
    return replace(programme, source=source)


def for_page(report: QualityReport, asked: Asked) -> QualityReport:
    """Return findings as a page of a look says them: examples stand on it.

    Without that of the clock, where nobody has decided of which zone it is.
    """
    shown, is_open = shown_by(report.programme, report.period), _ZONE in asked.undecided
    said = (
        replace(finding, sentence=finding.sentence.replace(shown, _ABOVE))
        for finding in report.findings
        if not (is_open and finding.rule == _CLOCK)
    )
    return replace(report, findings=tuple(said))


def of_form(
    asked: Asked, detected: FileSpec, forms: Mapping[str, FoundForm | None]
) -> Iterator[Decision]:
    """Yield what has to be stated of how files are written."""
    written = asked.programme.source.written
    yield from _of_encodings(asked, detected, forms)
    if not any(form is not None for form in forms.values()):
        return
    if written.delimiter is not None and detected.delimiter is None:
        detected = replace(detected, delimiter=written.delimiter)
    if written.times is not TimeForm.WRITTEN and detected.times is TimeForm.WRITTEN:
        detected = replace(detected, times=written.times)
    if detected != written:
        is_read = any(_beyond_ascii(asked, form) for form in forms.values())
        must = is_read or replace(detected, encoding=written.encoding) != written
        why = "files are not written as source.file says; they would not be read, or not rightly"
        yield Decision("source.file", f"file: {yaml_of(detected)}", why, must=must)


def _beyond_ascii(asked: Asked, form: FoundForm | None) -> tuple[str, ...]:
    """Return the columns that are read and have characters by which encodings of bytes differ."""
    names = names_in_source(layout_of(asked.programme.source.feed), asked.programme)
    if form is None or form.has_mark:
        return ()
    return tuple(
        beyond_ascii for beyond_ascii in form.beyond_ascii if beyond_ascii in names.values()
    )


def _of_encodings(
    asked: Asked, spec: FileSpec, forms: Mapping[str, FoundForm | None]
) -> Iterator[Decision]:
    """Yield the files that no one line reads with the others, with their columns."""
    for file, form in forms.items():
        columns = _beyond_ascii(asked, form)
        if form and columns and encoding_of(spec, form.spec) is not spec.encoding:
            is_read = spec.encoding is asked.programme.source.written.encoding
            why = (
                f"{file} is written in {form.spec.encoding}, "
                f"{'the programme reads' if is_read else 'others are in'} {spec.encoding}, and "
                f"column {', '.join(columns)} has characters that differ: no line reads both; "
                f"deliver that file again in {spec.encoding}"
            )
            yield Decision("source.file.encoding", "", why, must=True)


def of_rows(asked: Asked, seen: Seen) -> Iterator[Decision]:
    """Yield what has to be decided of rows, and of what was set aside."""
    yield from _of_units(asked, seen)
    yield from _of_ids(asked, seen)
    yield from _of_unread(seen)
    yield from _of_words(seen, "unknown_action", "action", "source.action_names")
    yield from _of_blanks(seen)
    yield from _of_words(seen, "unknown_status", "status", "source.status_names")
    if _MODES not in asked.undecided:
        yield from _of_words(seen, "unknown_mode", "mode", "source.mode_names")
    else:
        line = f"modes: {json.dumps(seen.programme.source.modes, ensure_ascii=False)}"
        why = f"the public list of modes, and what each word stands for; {_PUBLIC}"
        yield Decision(_MODES, line, why, must=True)
    yield from _of_dates(asked, seen)
    yield from _of_findings(seen)


def of_bounds(bounds: Iterable[LeftOut]) -> Iterator[Decision]:
    """Yield the keys of bounds that leave out much; a person may want it so."""
    for bound in bounds:
        if bound.is_large:
            why = "the bound leaves out more than a tenth, and counts are so much too low: "
            why += "a larger one keeps more and needs more noise"
            if bound.rule.limits:
                why += "; once_per_cell, once_per_finest_cell or per_cell_at_most may do it too"
            if bound.rule.unit.subject is Subject.BUS:
                why += "; turnstile itms report compares bounds"
            yield Decision(bound.key, "", why, must=False)


def left_open(asked: Asked) -> Iterator[Decision]:
    """Yield the keys that stand as `decide`, of which files say nothing."""
    for key in sorted(asked.undecided):
        yield Decision(key, "", f"is not decided yet: {_OPEN.get(key, 'see the page')}", must=True)


def _of_dates(asked: Asked, seen: Seen) -> Iterator[Decision]:
    """Yield the form of dates, where nobody has decided it or files have another one."""
    form, is_open = seen.programme.source.date_form, "source.date_form" in asked.undecided
    why = "nobody has decided how dates are written; the files tell"
    if is_open or form is not asked.programme.source.date_form:
        why = why if is_open else "dates are written in another form"
        yield Decision("source.date_form", f"date_form: {form}", why, must=True)


def _of_units(asked: Asked, seen: Seen) -> Iterator[Decision]:
    """Yield the unit of speeds that positions tell, where it is another than the stated one."""
    source = seen.programme.source
    if source.feed.shape is not RowShape.TELEMETRY or not seen.snapshot.days:
        return
    ratio = said_by_covered(seen.connection, counts_of(seen.snapshot)["rows_out"])
    is_open = "source.speed_unit" in asked.undecided
    stops = seen.stops("speed_unit")
    near = source.speed_unit
    if ratio is not None:
        told = source.speed_unit.milli_kmh / ratio_of(ratio)
        near = min(SpeedUnit, key=lambda unit: abs(unit.milli_kmh / told - 1))
    # knots under miles an hour are near the stated unit too, and nearer to their own
    if stops and near is source.speed_unit and (ratio is None or abs(ratio - 1) < _NEAR):
        line = _of_most(seen) if ratio is None else ""
        why = "vehicles do not say what their positions tell; the page names those of another unit"
        if line:
            why = "most vehicles do not say what their positions tell, but would in one other unit"
        yield Decision("source.speed_unit", line, f"{why}: ask who delivers them", must=True)
        return
    if ratio is None:
        if is_open:
            why = "positions are too far apart to tell the unit of speeds; ask who delivers them"
            yield Decision("source.speed_unit", "", why, must=True)
        return
    fits = abs(near.milli_kmh / told - 1) < _NEAR
    if is_open or stops or (fits and near is not source.speed_unit):
        said = f"speed_unit: {near}   # vehicles say {ratio:.3f} of what positions tell"
        line = said if fits else ""
        why = "what vehicles say of their speed is not what their positions tell in the stated unit"
        if is_open and not stops:
            why = "nobody has decided the unit of speeds; positions tell which it is"
        yield Decision("source.speed_unit", line, why, must=is_open or stops)


def _of_most(seen: Seen) -> str:
    """Return the line of the one unit in which most vehicles say the ways that they cover.

    Empty where most say them already, or where several units would do.
    """
    rows, stated = counts_of(seen.snapshot)["rows_out"], seen.programme.source.speed_unit
    share, ratios = vehicles_of_another_unit(seen.connection, rows)
    if share < _MOST:
        return ""
    ratio = median(ratios.values())
    least, most = STRAIGHT_WAY
    units = [
        unit
        for unit in SpeedUnit
        if least <= ratio * float(unit.milli_kmh / stated.milli_kmh) <= most
    ]
    if len(units) != 1:
        return ""
    said = f"most vehicles say {ratio:.2f} of their straight way in {stated}"
    return f"speed_unit: {units[0]}   # {said}"


def ratio_of(ratio: float) -> float:
    """Return a ratio that nothing is divided by zero with."""
    return max(ratio, 1e-6)


def asks_for_form(source: SourceSpec) -> bool:
    """Return whether records have ids of which nobody has said how they are spelt."""
    return source.id_form is None and not source.feed.names_nobody


def _of_ids(asked: Asked, seen: Seen) -> Iterator[Decision]:
    """Yield the form of ids, where several spellings may be one."""
    source = asked.programme.source
    if not (seen.has_fields and asks_for_form(source)):
        return
    if spellings_that_merge(seen.connection, "said", source.id_field):
        key = source.id_field.replace("_id", "_form")
        line = f"{key}: {form_of_ids(seen.connection, source.id_field)}"
        why = (
            "ids differ in nothing but zeros in front, blanks, case or .0 behind: say which are "
            "one, or state {kind: text, case: keep}"
        )
        yield Decision(f"source.{key}", line, why, must=True)


def _of_unread(seen: Seen) -> Iterator[Decision]:
    """Yield what columns that nobody reads may say: enter or leave, and the mode."""
    unread = dict(reversed(seen.unread))  # the first of each
    if "action" in unread:
        line = f"columns: {{action: {json.dumps(unread['action'])}}}   # and action_names"
        why = (
            "a column that nobody reads may say whether a tap enters or leaves: name it, or state "
            "source.without_action"
        )
        yield Decision("source.columns.action", line, why, must=True)
    if "status" in unread:
        column = json.dumps(unread["status"], ensure_ascii=False)
        line = f"columns: {{status: {column}}}   # and status_names: each word counts, or is void"
        why = (
            "a column that nobody reads may say that a tap or trip did not take place: name it, "
            "and say in source.status_names which of its words count"
        )
        yield Decision("source.columns.status", line, why, must=True)
    if "mode" in unread and seen.programme.source.feed.shape is RowShape.TELEMETRY:
        line = f"without_mode: {seen.programme.source.modes[0]}   # or deliver the others apart"
        why = "a column that nobody reads may name the mode, and all vehicles would count as of one"
        yield Decision("source.without_mode", line, why, must=True)
    elif "mode" in unread:
        line = f"columns: {{mode: {json.dumps(unread['mode'])}}}   # and modes, mode_names"
        why = (
            "a column that nobody reads may name the mode, and all records would count as of one: "
            "name it, or state source.without_mode"
        )
        yield Decision("source.columns.mode", line, why, must=True)


def _of_words(seen: Seen, rule: str, field: str, key: str) -> Iterator[Decision]:
    """Yield lines for words that a rule set aside."""
    file = seen.snapshot.folder / "quarantine" / f"{rule}.parquet"
    if not file.exists():
        return
    word, unit = (f"json_extract_string(fields, '$.{name}')" for name in (field, "card_id"))
    source = seen.programme.source
    if source.feed.names_nobody or source.without_card is WithoutCard.OWN_UNIT:
        unit = f"coalesce({unit}, fields)"
    words = words_of(seen.connection, f"read_parquet({one_file(file)})", word, unit)
    must = seen.stops(f"{rule}_many")
    shared = [entry for entry in words if entry.may_be_named]
    if shared:
        name = key.rpartition(".")[2]
        known = dict(getattr(seen.programme.source, name)) | {
            entry.text: "decide" for entry in shared
        }
        pairs = ", ".join(
            f"{json.dumps(w, ensure_ascii=False)}: {said}" for w, said in known.items()
        )
        line = f"{name}: {{{pairs}}}{_hint(field, shared)}"
        yield Decision(key, line, f"words of {field} that nobody explains; {_PUBLIC}", must=must)
    if len(shared) < len(words):
        yield Decision(key, "", f"{field}: {_RARE}", must=must and not shared)
    if must and not words and field == "mode":
        why = "records name no mode: name its column (source.columns), or state it here"
        yield Decision("source.without_mode", "", why, must=True)


def _of_blanks(seen: Seen) -> Iterator[Decision]:
    """Yield that records leave a named column of actions empty."""
    rule, key = "unknown_action", "source.without_action"
    file = seen.snapshot.folder / "quarantine" / f"{rule}.parquet"
    if seen.programme.source.feed is not Feed.TAPS or not file.exists():
        return
    blank = "json_extract_string(fields, '$.action') IS NULL"
    select = f"SELECT count(*) FROM read_parquet({one_file(file)}) WHERE {blank}"
    if number_of(seen.connection, select):
        line = "without_action: enter   # or exit, no_tap"
        why = "records leave the column of actions empty: say what such a tap does"
        yield Decision(key, line, why, must=seen.stops(f"{rule}_many"))


def _hint(field: str, words: list[Word]) -> str:
    """Return a comment on what words seem to say."""
    if field == "status":
        return "   # counts or void"
    if field != "action":
        return "   # each one of source.modes"
    likely = [(entry.text, action_like(entry.text)) for entry in words]
    said = ", ".join(f"{word} looks like {action}" for word, action in likely if action)
    return f"   # enter, exit or no_tap; {said}" if said else "   # enter, exit or no_tap"


def _of_findings(seen: Seen) -> Iterator[Decision]:
    """Yield keys for the rules that stop the week, but for what follows from others of them."""
    stopping = [
        finding for finding in (seen.report.findings if seen.report else ()) if finding.stops
    ]
    are_aside = any(finding.rule.endswith("_many") for finding in stopping)
    said = _SAID_BY_OTHERS | (_CONSEQUENCES if are_aside else frozenset())
    source = seen.programme.source
    is_instant = source.feed in OF_INSTANTS or source.written.times is not TimeForm.WRITTEN
    if asks_for_status(source.feed):
        said |= {"unknown_status_many"}
    for finding in (finding for finding in stopping if finding.rule not in said):
        key, line = _MENDS.get(finding.rule, (finding.rule, ""))
        rule = finding.rule.removesuffix("_many")
        if rule == "unparsable_timestamp" and source.feed in DATED_BY_STANDARD:
            key = "source.columns"
        if rule == _CLOCK and is_instant:  # of such times no zone is stated
            key, line = _ZONE, ""
        if rule in shares_at_most(seen.programme) and finding.rule not in _MENDS:
            key, line = _SHARES_KEY, _share_of(seen, rule)
        yield Decision(key, line, f"{finding.rule}: {finding.sentence}", must=True)


def _share_of(seen: Seen, rule: str) -> str:
    """Return the line of the share that would let through what a rule set aside, if it is right."""
    counts = dict(counts_of(seen.snapshot))
    whole = max(counts["rows_in"] - counts.get("outside_week", 0), 1)
    share = counts.get(rule, 0) / whole
    enough = next((limit for limit in _SHARES if _value(limit) >= share), "1")
    return f'set_aside_at_most: {{{rule}: "{enough}"}}   # if that is right; it becomes public'


def _value(share: str) -> float:
    above, _, below = share.partition("/")
    return int(above) / int(below or 1)
