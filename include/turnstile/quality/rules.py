"""The rules of each shape of rows: what is judged, how gravely, in which words.

A rule may need several expectations; it is kept if all are. Thresholds are public constants of the
program; the figures that they are held against are exact and stay private.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum

from turnstile.errors import ProgrammeError
from turnstile.programme.fields import OF_OFF, STOP
from turnstile.programme.rules import DATED_BY_STANDARD
from turnstile.programme.source_spec import Feed, MissingDay, RowShape, TapAction
from turnstile.programme.spec import Programme
from turnstile.quality.findings import Severity
from turnstile.quality.plausible import moving_range
from turnstile.sources.ingest.canonical import DUPLICATES, columns_of, rules_broken

_MANY_UNKNOWN = 0.001
_MANY_UNREADABLE = 0.01
_MANY_QUARANTINED = 0.2
_MANY_OF_A_RULE = 0.02
_DIRECTION = "direction"
MEANINGS = ("place", "clock", "dates", "unit", "numbers", "card", "vehicle")
"""Of the public cells that rows lie in, whatever the feed; a file's times; a vehicle's speeds; the
numbers of gates and events; ids of no card, or no vehicle, alone."""
PLACE, CLOCK, DATES, UNIT, NUMBERS, CARD, VEHICLE = MEANINGS
# What no sender can help, or what is delivered so by design: it has shares of its own.
_MANY_OF_THESE = {
    "card_id_missing": 0.2,
    "tap_off_without_tap_on": 0.1,  # a rider forgot
    "other_action": 1.0,
    "outside_week": 1.0,
    "not_observed": 1.0,
    DUPLICATES: 1.0,
}
_FEW = 0.01
_DELIVERED_TWICE = 0.4  # of a day; where hours are all that is told a fifth (Buenos Aires)
_MANY_UNKNOWN_TAPS = 0.1
_CUT_MINUTES = 240
_USUAL_VOLUME = (0.5, 2.0)
RANGE = "ColumnValuesToBeBetween"


class Frame(StrEnum):
    """The small frames of `Metrics` that expectations are held against."""

    COLUMNS = "columns"
    MODES = "modes"
    DAYS = "days"
    WEEK = "week"
    USUAL_COUNTS = "usual_counts"  # the last three: figures beside the ranges learned for them
    USUAL_SPEEDS = "usual_speeds"
    USUAL_SHARES = "usual_shares"


@dataclass(frozen=True, slots=True)
class Rule:
    """One expectation on one frame, under the name of a rule.

    Args:
        name: name of the finding.
        severity: what breaking it means.
        frame: frame that it is held against.
        expectation: class of Great Expectations, without the leading `Expect`.
        arguments: of that class.
        sentence: what holds, and what to do; no number of the data.
    """

    name: str
    severity: Severity
    frame: Frame
    expectation: str
    sentence: str
    arguments: Mapping[str, object] = field(default_factory=dict)


def rules_of(
    programme: Programme, service_days: int | None = None, week: str = "WEEK"
) -> tuple[Rule, ...]:
    """Return every rule that a week of a programme is held to.

    Args:
        programme: says what is right.
        service_days: of the week, those without service left out; None: all days of a period.
        week: whose rows are judged, as commands name it.
    """
    shape = programme.source.feed.shape
    shape_rules = _trip_rules(programme) if shape is RowShape.TRIPS else _telemetry_rules(programme)
    return (
        *_schema_rules(programme),
        *_mode_rules(programme),
        *_day_rules(programme, service_days or programme.schedule.period_days),
        *_volume_rules(),
        *_rules_of_feed(programme),
        *_meaning_rules(),
        *shape_rules,
        *_quarantine_rules(programme, week),
    )


def learned_rules() -> tuple[Rule, ...]:
    """Return the rules that hold a week in the range of the weeks before it."""
    counts = "a day has unusually few or many rows of a mode or kind for its weekday; look at it"
    speeds = "the typical speed of a day is unusual for its weekday; look at it"
    shares = "unusually many records were rejected or came twice; ask the sender"
    return (
        *between("counts_of_weekday_usual", Frame.USUAL_COUNTS, counts),
        *between("speeds_of_weekday_usual", Frame.USUAL_SPEEDS, speeds),
        *between("rejected_usual", Frame.USUAL_SHARES, shares),
    )


def between(name: str, frame: Frame, sentence: str) -> tuple[Rule, Rule]:
    """Hold the figures of a frame between its columns of the least and the most, both allowed."""
    expectation = "ColumnPairValuesAToBeGreaterThanB"
    above = {"column_A": "figure", "column_B": "least", "or_equal": True}
    below = {"column_A": "most", "column_B": "figure", "or_equal": True}
    return (
        Rule(name, Severity.WARN, frame, expectation, sentence, above),
        Rule(name, Severity.WARN, frame, expectation, sentence, below),
    )


# A column of figures with its least and its most value, both allowed; None is no limit.
_Span = tuple[str, float | None, float | None]


def _ranged(name: str, severity: Severity, frame: Frame, span: _Span, sentence: str) -> Rule:
    """Hold a column of figures in a range."""
    column, least, most = span
    arguments = {"column": column, "min_value": least, "max_value": most}
    return Rule(name, severity, frame, RANGE, sentence, arguments)


def _schema_rules(programme: Programme) -> tuple[Rule, ...]:
    """Columns and types of the canonical rows."""
    equal = "ColumnDistinctValuesToEqualSet"
    columns = columns_of(programme.source.feed.shape, programme.carried)
    names = {"column": "name", "value_set": [column for column, _ in columns]}
    types = {"column": "type", "value_set": [f"{column} {kind}" for column, kind in columns]}
    sentence = "the ingested rows are not canonical; ingest the week again"
    return (
        Rule("schema_columns", Severity.ERROR, Frame.COLUMNS, equal, sentence, names),
        Rule("schema_types", Severity.ERROR, Frame.COLUMNS, equal, sentence, types),
    )


def _mode_rules(programme: Programme) -> tuple[Rule, ...]:
    """Which modes may occur, and that each does."""
    modes = {"column": "mode", "value_set": list(programme.source.modes)}
    return (
        Rule(
            "modes_legal",
            Severity.ERROR,
            Frame.MODES,
            "ColumnValuesToBeInSet",
            "a mode is not in source.modes; ingest the week again",
            modes,
        ),
        Rule(
            "modes_all_present",
            Severity.WARN,
            Frame.MODES,
            "ColumnDistinctValuesToContainSet",
            "a mode of source.modes has no row this week",
            modes,
        ),
    )


def _day_rules(programme: Programme, service_days: int) -> tuple[Rule, ...]:
    """Each service day: there, complete, and within the clock."""
    days, error = Frame.DAYS, Severity.ERROR
    gap, floor = error, programme.source.rows_per_day_at_least
    present: _Span = ("rows", 1, None)
    missing = "a service day of the week has no rows; deliver it, or let the programme say that a "
    missing += "missing day is published with a gap"
    if programme.source.missing_day is not MissingDay.REFUSE:
        # A gap is what names of files say; a floor of one row would tell by rows what they do not.
        gap, present, floor = Severity.WARN, ("gap", None, 0), floor if floor > 1 else 0
        missing = "a service day has no file; it is published as a gap"
    few = "a service day has fewer rows than the programme's floor; deliver the rest of it"
    clock = "a minute lies outside the day; ingest the week again"
    other = "rows of another week are among the rows; ingest the week again"
    days_count = {"value": service_days}
    return (
        Rule("days_of_this_week", error, days, "TableRowCountToEqual", other, days_count),
        _ranged("days_present", gap, days, present, missing),
        _ranged("days_complete", gap, days, ("rows_of_an_expected_day", floor, None), few),
        _ranged("nulls", error, days, ("nulls", 0, 0), "a needed value is missing; ingest again"),
        _ranged("minutes", error, days, ("minute_least", 0, None), clock),
        _ranged("minutes", error, days, ("minute_most", None, programme.time.day_ends - 1), clock),
    )


def _volume_rules() -> tuple[Rule, ...]:
    """The week as a whole: rows there, none lost, as many as usual, each once."""
    week, error, warn = Frame.WEEK, Severity.ERROR, Severity.WARN
    lost = "records read and records kept do not agree; ingest the week again"
    doubles = "more than one record in a hundred came twice; ask the sender"
    repeated = "more than one row in a hundred repeats a card and minute, or a vehicle and time"
    volume = "the week has less than half or more than twice the usual rows; look before it goes on"
    return (
        _ranged("rows_present", error, week, ("rows", 1, None), "the week has no rows; deliver it"),
        _ranged("rows_reconciled", error, week, ("rows_lost", 0, 0), lost),
        _ranged("rows_reconciled", error, week, ("rows_unaccounted", 0, 0), lost),
        _ranged("duplicates", warn, week, ("share_duplicates", None, _FEW), doubles),
        _ranged("repeated_keys", warn, week, ("share_repeated_keys", None, _FEW), repeated),
        _ranged("volume_usual", warn, week, ("volume_ratio", *_USUAL_VOLUME), volume),
    )


def _rules_of_feed(programme: Programme) -> tuple[Rule, ...]:
    """What would be read in another sense in some feeds: numbers of gates, cards, equal records."""
    week, error, feed = Frame.WEEK, Severity.ERROR, programme.source.feed
    stated = dict(programme.source.set_aside_at_most)
    most = float(stated.get(DUPLICATES, _MANY_OF_A_RULE))
    unnamed = (
        "records that are equal in all fields, and have no id of their own, count once, and may be "
        "several at a time that is rounded: name the column of ids in source.columns (tap_id, "
        "trip_id), deliver finer times, or state in source.set_aside_at_most.duplicates what share "
        "of the records came twice"
    )
    numbers = (
        "gates have numbers that go on and on where those of an interval are meant (gate_counts), "
        "that begin anew where a counter is meant (gate_counters), that are the sum of all others "
        "of their place, or two at one time, as of several gates in one: correct source.feed, name "
        "what tells gates apart in source.columns (gate, place, of counters booth), leave totals "
        "out, or state in source.set_aside_at_most.unknown_numbers what share of the records such "
        "gates have"
    )
    on_board = (
        "events say how many passengers are on board, not how many board or alight: name the "
        "column of these in source.columns (passengers), or state in "
        "source.set_aside_at_most.unknown_numbers that they are right (1)"
    )
    card = (
        "a card has more trips on a day than anybody makes, as a word for no card has (0, NULL): "
        "deliver such records without a card (source.without_card says what becomes of them), or "
        "state in source.set_aside_at_most.unknown_card what share of the rows such cards have"
    )
    twice = (
        "many records of a day differ from another one in their id alone, as where a day is "
        "delivered twice under ids of its own: leave one of them out, or state in "
        "source.set_aside_at_most.duplicates what share of the records may be so"
    )
    ids = (
        "ids are cut short (****1234, 3.08E+17) or of several vehicles at once, so that one has "
        "what many do, or new with each record, or with each day where more is bounded, so that "
        f"nothing is: name what tells them apart in source.columns ({programme.source.id_field}), "
        "protect what it tells (units), or state in source.set_aside_at_most.UNKNOWN what share "
        "such ids have"
    )
    is_vehicle = feed.shape is RowShape.TELEMETRY
    ids = ids.replace("UNKNOWN", f"unknown_{VEHICLE if is_vehicle else CARD}")
    if feed.names_nobody:
        is_event = feed is Feed.TIDES_PASSENGER_EVENTS
        rule, sentence = ("on_board", on_board) if is_event else ("numbers", numbers)
        return (_ranged(rule, error, week, ("numbers_off", None, 1), sentence),)
    rule_of_ids = _ranged("ids", error, week, ("ids_off", None, 1), ids)
    if is_vehicle:
        return (rule_of_ids,)
    most_twice = max(float(stated.get(DUPLICATES, 0)), _DELIVERED_TWICE)
    rules = (
        rule_of_ids,
        _ranged("trips_of_no_card", error, week, ("cards_off", None, 1), card),
        _ranged("delivered_twice", error, week, ("day_twice", None, most_twice), twice),
    )
    if feed is Feed.OPAL_TRIPS:
        return rules
    span = ("share_unnamed", None, most)
    return (*rules, _ranged("duplicates_without_id", error, week, span, unnamed))


def _meaning_rules() -> tuple[Rule, ...]:
    """What would be read in another sense than it has: times of another clock, unknown words."""
    week, error = Frame.WEEK, Severity.ERROR
    clock = (
        "the quietest hours of the week are not those of a night, or most times are midnight, as "
        "of dates alone: the times are probably of another zone or column, or of twelve hours "
        "without AM and PM; correct source.columns, the files or time.zone, state "
        "source.file.zone, or say in source.quiet_hours when it is quietest; if it is one file of "
        "many, deliver it in the clock of the others, or state in "
        "source.set_aside_at_most.unknown_clock what share of the rows such files have"
    )
    dates = (
        "files have dates that lie in the week the other way round, day and month exchanged, and "
        "were set aside as outside_week: correct source.date_form, deliver all files in one form, "
        "or state in source.set_aside_at_most.unknown_dates what share of the records they have"
    )
    words = (
        "rows name directions, routes, fare products, trips or visits that no public list has "
        "(domain.lists); add them, or state the share that is right in source.set_aside_at_most "
        "(unknown_direction and so on)"
    )
    places = (
        "rows lie at places that the public list or area does not have (domain.locations, "
        "service_area, lists.stop), so that no table shows them: correct source.columns (latitude "
        "and longitude exchanged? ids of another list?) or the list, or state the share that is "
        "right in source.set_aside_at_most.unknown_place"
    )
    return (
        _ranged("clock", error, week, ("clock_off", None, 1), clock),
        _ranged("clock", error, week, ("files_off", None, 1), clock),
        _ranged("dates", error, week, ("dates_off", None, 1), dates),
        _ranged("unlisted_words", error, week, ("words_off", None, 1), words),
        _ranged("unlisted_places", error, week, ("places_off", None, 1), places),
    )


def _trip_rules(programme: Programme) -> tuple[Rule, ...]:
    """What holds for trips only; of tap-offs, where some may be known."""
    source = programme.source
    no_action = source.without_action is TapAction.ENTER and "action" not in dict(source.columns)
    names_off = any({*OF_OFF} & {*table.by} for table in programme.tables)
    has_off = not source.feed.names_nobody and (names_off or not no_action)
    unknown = "more than a tenth of the tap-offs are UNKNOWN; ask the sender"
    span = ("share_unknown_taps", None, _MANY_UNKNOWN_TAPS)
    cut = (
        "the taps of a day begin hours later, or end hours earlier, than those of the other days, "
        "as in a file that was cut; see whether all of it was delivered"
    )
    warn, days = Severity.WARN, Frame.DAYS
    return (
        *((_ranged("unknown_taps", warn, Frame.WEEK, span, unknown),) * has_off),
        _ranged("days_whole", warn, days, ("minutes_late", None, _CUT_MINUTES), cut),
        _ranged("days_whole", warn, days, ("minutes_early", None, _CUT_MINUTES), cut),
    )


def _telemetry_rules(programme: Programme) -> tuple[Rule, ...]:
    """What holds for telemetry only: places on earth, speeds possible and in the right unit."""
    days, error = Frame.DAYS, Severity.ERROR
    earth = "a coordinate is not on earth; ingest the week again"
    fast = "a speed is out of the programme's range; ingest the week again"
    unit = (
        "the speeds of a day are not those that its vehicles have, or not those that their "
        f"positions tell: the source's unit is probably not {programme.source.speed_unit}; correct "
        "source.speed_unit or the files, or, if some vehicles speak another one, state in "
        "source.set_aside_at_most.unknown_unit what share they have"
    )
    delay = (
        "nearly all stated delays are below a minute, as minutes would be that are read as "
        "seconds, many are above two hours, or vehicles are far early more often than far late, as "
        "where the sign is reversed: state source.delay_unit (s, min, s_reversed or min_reversed), "
        "also if it is s, or correct the files"
    )
    delays = [_ranged("delay_unit", error, Frame.WEEK, ("delays_off", None, 1), delay)]
    moving = moving_range(programme.source)
    most = programme.source.speed_at_most_kmh
    return (
        _ranged("coordinates", error, days, ("latitude_least", -90, None), earth),
        _ranged("coordinates", error, days, ("latitude_most", None, 90), earth),
        _ranged("coordinates", error, days, ("longitude_least", -180, None), earth),
        _ranged("coordinates", error, days, ("longitude_most", None, 180), earth),
        _ranged("speeds", error, days, ("speed_kmh_least", 0, None), fast),
        _ranged("speeds", error, days, ("speed_kmh_most", None, most), fast),
        _ranged("speed_unit", error, days, ("moving_speed_kmh_median", *moving), unit),
        _ranged("speed_unit", error, days, ("speed_off_unit", None, 1), unit),
        _ranged("speed_unit", error, Frame.WEEK, ("units_off", None, 1), unit),
        *(delays if programme.source.feed.has_delays_of_a_unit else ()),
    )


_MANY = {
    "coordinates_swapped": (
        _MANY_UNREADABLE,
        "latitude and longitude are swapped in many rows; correct source.columns or the files",
    ),
    "unknown_mode": (
        _MANY_UNKNOWN,
        "rows have a mode that source.modes does not list; add it to source.mode_names",
    ),
    "unknown_action": (
        _MANY_UNKNOWN,
        (
            "rows have an action that nobody explains, or none: say in source.action_names what "
            "each word does, and of taps in source.without_action what one does that has none"
        ),
    ),
    "unknown_status": (
        _MANY_UNKNOWN,
        (
            "rows say how full a vehicle is, or whether a call or tap took place, in a word that "
            "the feed's standard and source.status_names lack; add it there, or correct the files"
        ),
    ),
    "unparsable_timestamp": (
        _MANY_UNREADABLE,
        (
            "many times cannot be read; state source.file.times (of numbers), source.date_form (of "
            "03/04/2026), or source.file.zone (of a zone's short name, as PDT), or correct columns"
        ),
    ),
    "future_date": (
        _MANY_OF_A_RULE,
        (
            "many rows are dated long after the week, as by a wrong clock; correct the files, or "
            "state in source.set_aside_at_most.future_date the share that is right"
        ),
    ),
    "malformed_line": (
        _MANY_UNREADABLE,
        "many lines cannot be read; state source.file (encoding, delimiter, quote, header_row)",
    ),
}


def shares_at_most(programme: Programme) -> dict[str, float]:
    """Return what share of a week's records each rule may set aside, at most.

    Raises:
        ProgrammeError: `source.set_aside_at_most` names a rule that there is not.
    """
    stated, rules = (
        programme.source.set_aside_at_most,
        (*rules_broken(programme.source.feed), DUPLICATES),
    )
    usual = dict.fromkeys(rules, _MANY_OF_A_RULE) | _MANY_OF_THESE
    usual |= {rule: most for rule, (most, _) in _MANY.items()}
    if programme.source.feed in (Feed.GATE_COUNTS, Feed.GATE_COUNTERS):
        usual["no_riders"] = _MANY_UNKNOWN  # what is no number: the largest are written so
    stated_shares = {rule: float(most) for rule, most in stated if rule in rules}
    others = {f"unknown_{category}" for category in unlisted_at_most(programme)}
    if unknown := next((rule for rule, _ in stated if rule not in {*rules, *others}), None):
        near = get_close_matches(unknown, [*rules, *others], 1)
        rule = f"{unknown!r} is no rule of {programme.source.feed}; "
        rule += f"did you mean {near[0]}?" if near else f"it has {', '.join(rules)}"
        raise ProgrammeError(where="programme", field="source.set_aside_at_most", rule=rule)
    return {rule: usual[rule] for rule in rules} | stated_shares


def unlisted_at_most(programme: Programme) -> dict[str, float]:
    """Return what share of the rows may name none of a list, no place, or have another meaning."""
    usual = dict.fromkeys({*programme.listed, *MEANINGS} - {STOP}, _MANY_OF_A_RULE)
    if _DIRECTION in usual:
        usual[_DIRECTION] = _MANY_UNKNOWN
    stated = dict(programme.source.set_aside_at_most)
    return {name: float(stated.get(f"unknown_{name}", most)) for name, most in usual.items()}


def shown_by(programme: str, week: str) -> str:
    """Say which command shows rows that were set aside."""
    return f"turnstile look {programme} --week {week} shows them in the private zone"


def _quarantine_rules(programme: Programme, period: str) -> tuple[Rule, ...]:
    """One rule for each that rows may break, under the same name, and limits on how many may."""
    week, at_most, rules = Frame.WEEK, shares_at_most(programme), []
    look = shown_by(programme.name, period)
    for rule in rules_broken(programme.source.feed):
        sentence = f"rows went to quarantine as {rule}; {look}"
        rules.append(_ranged(rule, Severity.WARN, week, (f"share_{rule}", None, 0), sentence))
    for rule, most in at_most.items():
        sentence = _MANY[rule][1] if rule in _MANY else _large(rule)
        if rule == "unparsable_timestamp" and programme.source.feed in DATED_BY_STANDARD:
            sentence = "many dates or times are not in the form of the feed (docs/FEEDS.md): "
            sentence += "correct source.columns or the files"
        span = (f"share_{rule}", None, most)
        rules.append(_ranged(f"{rule}_many", Severity.ERROR, week, span, sentence))
    sentence = f"more than a fifth of the week's rows went to quarantine; {look}"
    span = ("share_quarantined", None, _MANY_QUARANTINED)
    rules.append(_ranged("quarantine_small", Severity.ERROR, week, span, sentence))
    return tuple(rules)


def _large(rule: str) -> str:
    """Say that a rule takes more than its share."""
    return (
        f"{rule} sets aside more of the records than it may (source.set_aside_at_most.{rule}; "
        "what holds where nothing is stated: docs/FEEDS.md): correct mapping or files, or state "
        "the share that is right"
    )
