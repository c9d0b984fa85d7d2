"""What the fields of delivered records hold, as lines for a person in the private zone.

Every figure here is exact and every word as it came. Nothing of it leaves the private zone, but
words of a closed list that many people share, which somebody writes into a programme.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from turnstile.duckdb_engine import name, number_of
from turnstile.programme.fields import categories
from turnstile.programme.rules import DATED_BY_STANDARD
from turnstile.programme.source_spec import DateForm, Feed, RowShape, TapAction
from turnstile.quality.kinds_set_aside import CARDS_AT_LEAST
from turnstile.quality.plausible import DATED
from turnstile.sources.feeds.zoned import ORDERS, day_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

OF_INSTANTS = (Feed.GTFS_VEHICLE_POSITIONS, Feed.GTFS_TRIP_UPDATES, Feed.HFP, Feed.SIRI_VM)
"""Feeds by whose standard a time is an instant, whatever the zone."""
OWN_DATES = (*OF_INSTANTS, *DATED_BY_STANDARD)
"""Feeds whose standard says how dates are written."""
WORDS = ("action", "mode", "direction", "route", "fare_product", "vehicle_trip", "occupancy")
_BY_LISTS = {category.name for shape in RowShape for category in categories(shape)}
_TIMES = (
    *("tapped_at", "observed_at", "tap_date", "tap_time", "service_date", "start_date"),
    *("tap_on_date", "tap_on_time", "tap_off_date", "tap_off_time"),
)
_NUMBERS = ("latitude", "longitude", "speed", "delay", "passengers", "riders")
_DAYS = ("service_date", *DATED)
_LISTED, _FORMS_LISTED = 60, 6
_FEW_WORDS = 30  # of a column that may say enter or leave, or by what one goes
_LOOKED_AT = 200_000
_BOARDS = re.compile(
    r"\b(check[ -_]?in|tap[ -_]?(on|in)|enter|entry|entrance|entrada|ingreso|on|in|board\w*|subida"
    r"|einstieg|entr[ée]e|mont[ée]e|sube|uso|validaci[oó]n|buy[ -_]?on)\b",
    re.IGNORECASE,
)
_ALIGHTS = re.compile(
    r"\b(check[ -_]?out|tap[ -_]?(off|out)|exit|leave|salida|egreso|off|out|alight\w*|bajada"
    r"|ausstieg|sortie|descente)\b",
    re.IGNORECASE,
)
_NAME_OF_ACTION = re.compile(
    r"action|event|tap.?type|tipo|transac|direction|sentido|in.?out|check|operation|usage|art",
    re.IGNORECASE,
)

_NAME_OF_STATUS = re.compile(
    r"(.*[^a-z])?(status|state|estado|stato|statut|zustand|result(ado|at)?|valid(ity|ez)?)([^a-z].*)?",
    re.IGNORECASE,
)
_VOID = re.compile(
    r"cancel|void|ann?ul|storn|revers|refus|reject|rechaz|denie|declin|fail|error|inv[aá]lid",
    re.IGNORECASE,
)
_NAME_OF_VOID = re.compile(r"cancel|(^|[^a-z])void|ann?ul(ad|l?at)|storn|revers", re.IGNORECASE)
_NAME_OF_MODE = re.compile(
    r"(?!.*pay)(.*[^a-z]|transport|travel|transit|vehicle)?"
    r"(modes?(.?(name|id|code))?|modo|modus|modal|(vehicle|route|transport).?type"
    r"|verkehrsmittel.*|produkt(.?id)?|tipo.*(transporte|veh[ií]culo)|medio.*transporte)",
    re.IGNORECASE,
)
_MODE = re.compile(
    r"\b((auto|trolley|[oó]mni)?b[uú]s+(es)?|coach|(light.?)?rail|trains?|tram(way)?s?|m[eé]tro|subway"
    r"|underground|ferr(y|ies)|funicular|cable.?car|colectivo|tren(es)?|subte|lanchas?|tranv[ií]a"
    r"|zug|[su]-?bahn|stra(ss|ß)enbahn|f[äa]hre|schiff|treno|trem|tog|t-?bane|trikk|f[æe]rge)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a field, with how often it came and of how many cards or vehicles."""

    text: str
    records: int
    cards: int

    @property
    def may_be_named(self) -> bool:
        """True if so many share it that it may stand in a programme."""
        return self.cards >= CARDS_AT_LEAST


def words_of(connection: DuckDBPyConnection, relation: str, field: str, unit: str) -> list[Word]:
    """Return the words of a field, the most frequent first.

    Args:
        connection: engine.
        relation: SQL of records.
        field: SQL of the word.
        unit: SQL of card or vehicle.
    """
    select = (
        f"SELECT {field} AS word, count(*), count(DISTINCT {unit}) FROM {relation} "
        "WHERE word IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1"
    )
    return [Word(*row) for row in connection.execute(select).fetchall()]


def lines_of_fields(
    connection: DuckDBPyConnection, fields: Iterable[str], unit: str
) -> Iterator[str]:
    """Yield what stands in each field of `said`.

    Args:
        connection: engine, with the records of all files as the table `said`.
        fields: its columns.
        unit: the one that names card or vehicle.
    """
    total = number_of(connection, "SELECT count(*) FROM said")
    for field in fields:
        filled = number_of(connection, f"SELECT count({field}) FROM said")
        if not filled:
            continue
        yield f"- `{field}`: {_share(total - filled, total)} empty"
        if field in WORDS:
            words = words_of(connection, "said", field, unit)
            yield from _words(words, filled, unit, is_listed=field in _BY_LISTS)
        elif field in _TIMES or field == unit:
            yield from _forms(connection, field, filled)
        elif field in _NUMBERS:
            yield from _numbers(connection, field, filled)


def _words(words: list[Word], filled: int, unit: str, *, is_listed: bool) -> Iterator[str]:
    """Yield words with their shares, those of few cards too: this is the private zone."""
    units = f"{unit.removesuffix('_id')}s"
    instead = "not from here, by the public list" if is_listed else "name it nowhere"
    for word in words[:_LISTED]:
        few = f", of fewer than {CARDS_AT_LEAST} {units}: {instead}"
        share = _share(word.records, filled)
        rare = "" if word.may_be_named else few
        yield f"  - {word.text!r}: {share} of records, {word.cards} {units}{rare}"
    if len(words) > _LISTED:
        yield f"  - and {len(words) - _LISTED} more"


def _forms(connection: DuckDBPyConnection, field: str, filled: int) -> Iterator[str]:
    """Yield how values are spelt: 9 stands for a digit, A and a for letters, with one example."""
    letters = "regexp_replace(value, '[[:upper:]]', 'A', 'g')"
    shape = f"regexp_replace(regexp_replace({letters}, '[[:lower:]]', 'a', 'g'), '[0-9]', '9', 'g')"
    values = f"SELECT {field} AS value, count(*) AS times FROM said GROUP BY ALL"  # spelt once
    select = (
        f"SELECT {shape}, sum(times), min(value), max(value) FROM ({values}) "
        f"WHERE value IS NOT NULL GROUP BY 1 ORDER BY 2 DESC LIMIT {_FORMS_LISTED}"
    )
    for form, count, least, most in connection.execute(select).fetchall():
        yield f"  - {form!r}: {_share(count, filled)}, from {least!r} to {most!r}"


def _numbers(connection: DuckDBPyConnection, field: str, filled: int) -> Iterator[str]:
    """Yield the range of numbers, and how many values are none."""
    number = f"TRY_CAST({field} AS DOUBLE)"
    select = f"SELECT count({number}), quantile_cont({number}, [0, 0.05, 0.5, 0.95, 1]) FROM said"
    row = connection.execute(select).fetchone()
    count, quantiles = row or (0, None)
    yield f"  - {_share(filled - int(count), filled)} are no numbers"
    if quantiles:
        shown = ", ".join(f"{value:.6g}" for value in quantiles)
        yield f"  - least, 5 %, median, 95 %, most: {shown}"


def spellings_that_merge(connection: DuckDBPyConnection, relation: str, unit: str) -> bool:
    """Return whether ids differ in nothing but zeros in front, case, blanks or `.0` behind."""
    bare = rf"lower(regexp_replace({unit}, '\s+', '', 'g'))"
    bare = rf"ltrim(regexp_replace({bare}, '\.0+$', ''), '0')"
    select = (
        f"SELECT 1 FROM (SELECT DISTINCT {unit} AS id, {bare} AS bare FROM {relation} "
        f"WHERE {unit} IS NOT NULL) GROUP BY bare HAVING count(*) > 1 LIMIT 1"
    )
    return connection.execute(select).fetchone() is not None


def form_of_ids(connection: DuckDBPyConnection, unit: str) -> str:
    """Return the YAML of the form that ids of `said` mostly have."""
    select = (
        f"SELECT avg(CASE WHEN regexp_full_match(trim({unit}), '[0-9 ]+(\\.0+)?') THEN 1 ELSE 0 "
        f"END), max(length(regexp_replace({unit}, '[^0-9]|\\.0+$', '', 'g'))) FROM said"
    )
    row = connection.execute(select).fetchone()
    digits, length = row or (0, 0)
    if (digits or 0) > 0.9:  # noqa: PLR2004 - nearly all
        return f"{{kind: digits, length: {length}}}"
    return "{kind: text, case: upper}"


def date_form(
    connection: DuckDBPyConnection, field: str, days: Iterable[object]
) -> DateForm | None:
    """Return the form under which most dates of `said` are those of the week; None where none is.

    None too where no date needs one, a year comes first.

    Args:
        connection: engine.
        field: of a date, with a time or without.
        days: of the week.
    """
    listed = ", ".join(f"DATE '{day}'" for day in days)
    asked = ", ".join(f"count(*) FILTER ({day_sql(field, form)} IN ({listed}))" for form in ORDERS)
    row = connection.execute(f"SELECT {asked} FROM said").fetchone()
    counts = dict(zip(ORDERS, row or (), strict=False))
    best = max(counts, key=lambda form: counts[form])
    return best if counts[best] > min(counts.values()) else None


def _iso_day_sql(field: str) -> str:
    """SQL of the date with which a text begins, if a year comes first."""
    iso = rf"regexp_replace({field}, '^(\d{{4}})[-/.]?(\d\d?)[-/.]?(\d\d?).*$', '\1-\2-\3')"
    return f"TRY_CAST({iso} AS DATE)"


def week_of(connection: DuckDBPyConnection, fields: Iterable[str]) -> date | None:
    """Return the Monday of the week of which `said` has most records; None of none."""
    told = [field for field in _DAYS if field in set(fields)]
    if not told:
        return None
    days = [_iso_day_sql(field) for field in told]
    days += [day_sql(field, form) for field in told for form in ORDERS]
    # each reading of a date votes: wrong ones are scattered over the weeks of a year
    row = connection.execute(
        f"SELECT date_trunc('week', day) AS monday, count(*) "
        f"FROM (SELECT unnest([{', '.join(days)}]) AS day FROM said) "
        "WHERE day IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1"
    ).fetchone()
    return None if row is None else date.fromisoformat(str(row[0])[:10])


def fields_that_may_be(
    connection: DuckDBPyConnection, relation: str, unread: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield pairs (field, column that may say it): what a tap does, whether it counts, or a mode.

    Args:
        connection: engine.
        relation: SQL of a file's columns, as text.
        unread: those that no field is read from.
    """
    columns = tuple(unread)
    listed = ", ".join(f"{name(column)} AS column_{n}" for n, column in enumerate(columns))
    if columns:  # a file is read once for all of them
        first = f"SELECT {listed} FROM ({relation}) LIMIT {_LOOKED_AT}"
        connection.execute(f"CREATE OR REPLACE TEMP TABLE unread AS {first}")
    for n, column in enumerate(columns):
        words_of_column = f"SELECT DISTINCT column_{n} FROM unread WHERE column_{n} IS NOT NULL"
        select = f"{words_of_column} LIMIT {_FEW_WORDS + 1}"
        words = [str(row[0]) for row in connection.execute(select).fetchall()]
        if 1 < len(words) <= _FEW_WORDS and _says_action(column, words):
            yield "action", column
        if 1 < len(words) <= _FEW_WORDS and _says_status(column, words):
            yield "status", column
        if 0 < len(words) <= _FEW_WORDS and (_says_mode(words) or is_named_as_mode(column)):
            yield "mode", column


def _says_action(column: str, words: Sequence[str]) -> bool:
    """Return whether words of a column seem to tell who enters from who leaves."""
    says = any(map(_BOARDS.search, words)) and any(map(_ALIGHTS.search, words))
    return says or bool(_NAME_OF_ACTION.search(column) and any(map(_ALIGHTS.search, words)))


def _says_status(column: str, words: Sequence[str]) -> bool:
    """Return whether words of a column seem to tell what took place from what did not."""
    void = [bool(_VOID.search(word)) for word in words]
    is_named = _NAME_OF_STATUS.fullmatch(column) or _NAME_OF_VOID.search(column)
    return bool(is_named) or any(void) > all(void)


def _says_mode(words: Sequence[str]) -> bool:
    """Return whether words seem to name two modes, or more, and mostly such."""
    lowers = [match[0].lower() for match in map(_MODE.search, words) if match]
    return len({*lowers}) > 1 and 2 * len(lowers) > len(words)


def is_named_as_mode(column: str) -> bool:
    """Return whether a column is called as one of modes may be.

    Examples:
        >>> [is_named_as_mode(one) for one in ("modo", "mode_name", "payment_mode", "model")]
        [True, True, False, False]
    """
    return bool(_NAME_OF_MODE.fullmatch(column.rpartition(".")[2]))


def action_like(word: str) -> TapAction | None:
    """Return what a word seems to say, for a person to confirm."""
    boards, alights = _BOARDS.search(word), _ALIGHTS.search(word)
    if bool(boards) == bool(alights):
        return None
    return TapAction.ENTER if boards else TapAction.EXIT


def asks_for_action(feed: Feed) -> bool:
    """Return whether a feed has a column of actions that a file may lack."""
    return feed is Feed.TAPS


def asks_for_status(feed: Feed) -> bool:
    """Return whether a feed has a column of what took place that a file may lack."""
    return feed in (Feed.TAPS, Feed.HIRED_TRIPS)


def _share(part: int, whole: int) -> str:
    return f"{part / max(whole, 1):.2%}"
