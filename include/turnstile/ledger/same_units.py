"""One unit, one account: programmes of a budget group tell days, cards and modes apart alike.

Accounts are kept by names: of days, of modes, of units (PRIVACY 1.3). Where the day of one begins
at 04:00, and that of another at midnight, what a card did on one of these days lies in two of the
other; where one calls a mode `rail` that another calls `train`, a trip is in two accounts.
Each would say half of what was lost, and no cap would be reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlalchemy import select
from sqlalchemy.engine import Connection

from turnstile.errors import RefusedError
from turnstile.ledger import facts
from turnstile.ledger.balances import accounts
from turnstile.ledger.database.database_tables import ATTEMPT
from turnstile.ledger.records import Difference, ReleaseKey, Request
from turnstile.ledger.states import ReleaseState
from turnstile.privacy.units import ProtectionUnit

_UNIT = "mechanism.unit"
_DAYS = ("time.zone", "time.day_starts")
_FORMS = ("source.card_form.", "source.vehicle_form.")
_COLUMNS, _WORDS, _LABELS = "source.columns.", "source.mode_names.", "source.modes."
_ID_COLUMNS = tuple(f"{_COLUMNS}{field}" for field in ("card_id", "vehicle_id"))
_MODES = ("source.without_mode", f"{_COLUMNS}mode")


def unit_refusal(connection: Connection, request: Request) -> RefusedError | None:
    """Return why a request may not be added to the accounts of its budget group, or None.

    It is held against the newest charge of each programme of the group; of version 0.1.0 none says
    what it was reserved with.
    """
    caps = accounts.family_caps(connection, request.family, request)
    by_mode = any(cap.unit is ProtectionUnit.TRIP for cap in caps)
    for key, stated in _charged_last(connection, request.family):
        if others := unit_differences(stated, request.terms, by_mode=by_mode):
            listed = "; ".join(f"{o.name} was {o.old!r} and is {o.new!r}" for o in others)
            return RefusedError(
                f"{request.key} tells days, cards or modes apart otherwise than {key}, whose "
                f"losses are in the same budget group {request.family!r}: {listed}; what one unit "
                "lost would stand in two accounts, and nobody would add it up. Put that back, or "
                "release it as a programme of another name and group, which a person lets read "
                "these files (turnstile ledger admit-family GROUP --landing PATTERN --reason TEXT)"
            )
    return None


def unit_differences(
    earlier: Mapping[str, str], terms: Mapping[str, str], *, by_mode: bool
) -> tuple[Difference, ...]:
    """Return by what two programmes tell units apart otherwise; pure.

    Args:
        earlier: terms that were charged, as `programme.terms.binding_terms` gives them.
        terms: of what is asked for.
        by_mode: whether a cap is on trips, whose accounts are kept by mode.
    """
    if _UNIT not in earlier or _UNIT not in terms:
        return ()
    units = ProtectionUnit(earlier[_UNIT]), ProtectionUnit(terms[_UNIT])
    if units[0].subject is not units[1].subject:
        return ()  # no account of one is the other's
    prefixes = _DAYS + (_MODES if by_mode else ())
    if not any(unit.is_record for unit in units):  # whose a trip is does not matter to it
        prefixes += _FORMS + _ID_COLUMNS
    was, now = _by_name(earlier), _by_name(terms)
    names = sorted(name for name in {*was, *now} if name.startswith(prefixes))
    if was["source.feed"] != now["source.feed"]:  # their columns are others anyway
        names = [name for name in names if not name.startswith(_COLUMNS)]
    pairs = ((name, was.get(name, ""), now.get(name, "")) for name in names)
    others = tuple(Difference(*pair) for pair in pairs if pair[1] != pair[2])
    return others + (tuple(_relabelled(was, now)) if by_mode else ())


def _relabelled(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Difference]:
    """Yield the source's names of modes that both count, under other labels.

    A name that one of them does not know is set aside there, and may be counted here.
    """
    labels = [{v for name, v in of.items() if name.startswith(_LABELS)} for of in (was, now)]
    words = {name.removeprefix(_WORDS) for name in {*was, *now} if name.startswith(_WORDS)}
    for word in sorted(words.union(*labels)):
        name = f"{_WORDS}{word}"
        old, new = was.get(name, word), now.get(name, word)
        if old != new and old in labels[0] and new in labels[1]:
            yield Difference(name, old, new)


def _by_name(terms: Mapping[str, str]) -> dict[str, str]:
    """Return terms with columns and words by what they name: `source.columns.card_id`."""
    named = {}
    for name, value in terms.items():
        if not name.startswith((_COLUMNS, _WORDS)):
            named[name] = value
        elif name.endswith(".0"):
            kind = _COLUMNS if name.startswith(_COLUMNS) else _WORDS
            named[f"{kind}{value}"] = terms[f"{name.removesuffix('0')}1"]
    return named


def _charged_last(
    connection: Connection, family: str
) -> Iterator[tuple[ReleaseKey, Mapping[str, str]]]:
    """Yield the newest attempt of each programme of a group that holds or spent something."""
    query = select(ATTEMPT.c.release_key, ATTEMPT.c.reserved_sequence).where(
        ATTEMPT.c.family == family, ATTEMPT.c.state != ReleaseState.VOID.value
    )
    newest: dict[str, tuple[int, ReleaseKey]] = {}
    for row in connection.execute(query):
        key = ReleaseKey.parse(row.release_key)
        if row.reserved_sequence > newest.get(key.programme, (0, key))[0]:
            newest[key.programme] = (row.reserved_sequence, key)
    for sequence, key in newest.values():
        if entry := facts.entry_at(connection, sequence):
            yield key, entry.body.get("terms", {})
