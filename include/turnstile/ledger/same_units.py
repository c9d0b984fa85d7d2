"""One unit, one account: what a budget group is charged for tells days and modes apart alike.

Accounts are kept by names of days and modes (PRIVACY 1.3). Where the day of one programme begins at
04:00, and that of another at midnight, what a card did on one of these days lies in two of the
other; where one calls a mode `rail` that another calls `train`, a trip is in two accounts. Each
would say half of what was lost, and no cap would be reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlalchemy import select
from sqlalchemy.engine import Connection

from turnstile.errors import RefusedError
from turnstile.ledger.balances import accounts
from turnstile.ledger.balances.changes import week_names, weeks_in
from turnstile.ledger.database.database_tables import ATTEMPT, ENTRY
from turnstile.ledger.entries import Entry, read_entry
from turnstile.ledger.records import Difference, Request
from turnstile.ledger.states import ReleaseState
from turnstile.privacy.units import ProtectionUnit
from turnstile.service_calendar import ServiceWeek

_UNIT, _ZONE, _FILE_ZONE = "mechanism.unit", "time.zone", "source.file.zone"
_STATED = "source.feed"
_DAYS = ("time.day_starts", _ZONE, _FILE_ZONE, _STATED)
STATES_ITS_DAY = frozenset({"tides_fare_transactions", "tides_passenger_events"})
"""Feeds whose records say of which service day they are, whenever it begins."""
_WORDS, _LABELS, _COLUMNS = "source.mode_names.", "source.modes.", "source.columns."
_WITHOUT_MODE = "source.without_mode"
_PUT_BACK = "Put that back, which is the only way of a correction; later periods may change it"
_ONE_GOES_ON = (
    "No text of either programme changes that, and these weeks have no correction: one of the two "
    "goes on in the group, in a later period,"
)


def unit_refusal(connection: Connection, request: Request) -> RefusedError | None:
    """Return why a request may not be added to the accounts of its budget group, or None.

    It is held against all that holds or spent something in its weeks; where days are told apart, in
    the weeks beside them, too. Of what states no terms (version 0.1.0, a loss that a recovery
    declared) nobody can say.
    """
    if _UNIT not in request.terms:
        return None
    caps = accounts.family_caps(connection, request.family, request)
    by_mode = any(cap.unit is ProtectionUnit.TRIP for cap in caps)
    weeks = {*week_names(request.weeks)}
    beside = {*_beside(weeks)}
    for entry in _charged_in(connection, request.family, weeks | beside):
        stated, charged = entry.body.get("terms", {}), {*week_names(weeks_in(entry.body))}
        if charged.isdisjoint(weeks | beside) or not _shares_accounts(stated, request.terms):
            continue
        others = day_differences(stated, request.terms)
        if by_mode and not charged.isdisjoint(weeks):
            same_files = not {*request.files}.isdisjoint(entry.body.get("files", ()))
            others += mode_differences(stated, request.terms, same_files=same_files)
        if others:
            way = _ONE_GOES_ON if any(o.name == _STATED for o in others) else _PUT_BACK
            listed = "; ".join(f"{o.name} is {o.old!r} there and {o.new!r} here" for o in others)
            return RefusedError(
                f"{request.key} tells days or modes apart otherwise than {entry.key}, whose losses "
                f"are in the same budget group {request.family!r}: {listed}; what one unit lost "
                f"would stand in two accounts, and nobody would add it up. {way} after one in "
                "which no programme of the group released anything, with no week in common or side "
                "by side"
            )
    return None


def day_differences(earlier: Mapping[str, str], terms: Mapping[str, str]) -> tuple[Difference, ...]:
    """Return by what two programmes put an instant on days of other names; pure.

    Args:
        earlier: terms that were charged, as `programme.terms.binding_terms` gives them.
        terms: of what is asked for.
    """
    was, now = ({_FILE_ZONE: of.get(_ZONE, "")} | dict(of) for of in (earlier, terms))
    if (was.get(_STATED) in STATES_ITS_DAY) == (now.get(_STATED) in STATES_ITS_DAY):
        was[_STATED] = now[_STATED] = ""  # both state their days, or both work them out
    pairs = ((name, was.get(name, ""), now.get(name, "")) for name in _DAYS)
    return tuple(Difference(*pair) for pair in pairs if pair[1] != pair[2])


def mode_differences(
    earlier: Mapping[str, str], terms: Mapping[str, str], *, same_files: bool
) -> tuple[Difference, ...]:
    """Return the source's words for modes that both count, under other labels; pure.

    A word that one of them does not know is set aside there, and may be counted here.

    Args:
        earlier: terms that were charged.
        terms: of what is asked for.
        same_files: whether both read one file: then a record that names no mode has one label, and
            the words stand in one column.
    """
    words: list[dict[str, str]] = []
    for of in (earlier, terms):
        labels = {value for name, value in of.items() if name.startswith(_LABELS)}
        named = {
            word: of[f"{name.removesuffix('0')}1"]
            for name, word in of.items()
            if name.startswith(_WORDS) and name.endswith(".0")
        }
        known = {label: label for label in labels} | named
        named = {f"{_WORDS}{word}": label for word, label in known.items() if label in labels}
        usual = of.get(_WITHOUT_MODE) or (min(labels) if len(labels) == 1 else "")
        if same_files:
            named[f"{_COLUMNS}mode"] = _column_of_mode(of)
            named |= {_WITHOUT_MODE: usual} if usual else {}
        words.append(named)
    was, now = words
    both = sorted(was.keys() & now.keys())
    return tuple(Difference(name, was[name], now[name]) for name in both if was[name] != now[name])


def _column_of_mode(terms: Mapping[str, str]) -> str:
    """Return which column of the source names the mode; empty for that of the feed."""
    fields = {
        name for name, field in terms.items() if name.startswith(_COLUMNS) and field == "mode"
    }
    columns = (terms[f"{name.removesuffix('0')}1"] for name in fields if name.endswith(".0"))
    return next(columns, "")


def _shares_accounts(earlier: Mapping[str, str], terms: Mapping[str, str]) -> bool:
    """Return whether both are of cards, or both of vehicles."""
    units = [ProtectionUnit(of[_UNIT]) for of in (earlier, terms) if _UNIT in of]
    return len({unit.subject for unit in units}) == 1 and len(units) > 1


def _beside(weeks: set[str]) -> Iterator[str]:
    for week in (min(weeks), max(weeks)):
        for step in (-1, 1):
            yield str(ServiceWeek.parse(week).plus(step))


def _charged_in(connection: Connection, family: str, weeks: set[str]) -> Iterator[Entry]:
    """Yield reservations of a group that hold or spent something about some weeks."""
    query = (
        select(ENTRY.c.record, ENTRY.c.hash)
        .join(ATTEMPT, ENTRY.c.sequence == ATTEMPT.c.reserved_sequence)
        .where(ATTEMPT.c.family == family, ATTEMPT.c.state != ReleaseState.VOID.value)
        .where(ATTEMPT.c.week >= min(weeks))  # its last one
    )
    for row in connection.execute(query):
        yield read_entry(row.record, row.hash)
