"""Ledger accounts in the database: caps in force, rows touched in sorted order under a CHECK.

Every function works inside the caller's transaction, which locks the family's row first: so rolling
windows can be summed safely, and transactions wait for each other but never in a circle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Select, and_, bindparam, insert, select, text, union_all, update
from sqlalchemy.engine import Connection

from turnstile.errors import InputError, RefusedError
from turnstile.ledger.admission import Excess, binding_caps, cap_figures, first_excess
from turnstile.ledger.balances.amounts import COORDINATES, Cap, is_lifetime_unit
from turnstile.ledger.balances.changes import (
    ALL_WEEKS,
    NOTHING,
    AccountRow,
    Amount,
    Change,
    amounts_by_row,
    week_names,
)
from turnstile.ledger.database.database_tables import ACCOUNT, AMOUNTS, CAPS
from turnstile.ledger.encoding import canonical, decode_cap, encode_cap
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.facts import append
from turnstile.ledger.records import Request
from turnstile.privacy.units import ProtectionUnit
from turnstile.service_calendar import ServiceWeek

_ROW = ("unit", "scope", "week")
_SIDES = [f"{side}_{name}" for side in ("spent", "held") for name in AMOUNTS]
_INSERT_ROW = text(
    f"INSERT INTO account (family, unit, scope, week, {', '.join(_SIDES)}) "  # noqa: S608 - names
    f"VALUES (:family, :unit, :scope, :week, {', '.join('0' for _ in _SIDES)}) "
    "ON CONFLICT (family, unit, scope, week) DO NOTHING"
)
_TAKE_TURN = text(
    "INSERT INTO family (family, turns) VALUES (:family, 1) "
    "ON CONFLICT (family) DO UPDATE SET turns = family.turns + 1"
)
_THIS_ROW = [ACCOUNT.c[name] == bindparam(f"b_{name}") for name in ("family", *_ROW)]
_ADDED = {name: ACCOUNT.c[name] + bindparam(f"b_{name}") for name in _SIDES}
_ADD = update(ACCOUNT).where(*_THIS_ROW).values(_ADDED)
_ADD_UNDER = _ADD.values({f"cap_{name}": bindparam(f"b_cap_{name}") for name in COORDINATES})
_OF_FAMILY = select(CAPS).where(CAPS.c.family == bindparam("of"))
_OF_PROGRAMME = select(CAPS).where(CAPS.c.programme == bindparam("of"))


def lock_family(connection: Connection, family: str) -> None:
    """Wait for this family's turn; everything read afterwards stays true until the commit."""
    connection.execute(_TAKE_TURN, {"family": family})


def families(connection: Connection) -> tuple[str, ...]:
    """Return the families that have accounts, sorted."""
    rows = connection.execute(text("SELECT family FROM family ORDER BY family"))
    return tuple(row.family for row in rows)


def family_caps(
    connection: Connection, family: str, request: Request | None = None
) -> tuple[Cap, ...]:
    """Return the caps in force in a family: the smallest of all its programmes.

    Args:
        connection: of the caller's transaction.
        family: whose caps.
        request: whose programme's caps to take in place of those that the ledger holds.
    """
    stated = caps_by_programme(connection, family)
    if request is not None:
        stated = {**stated, request.key.programme: request.caps}
    return binding_caps(cap for caps in stated.values() for cap in caps)


def caps_by_programme(connection: Connection, family: str) -> dict[str, tuple[Cap, ...]]:
    """Return the caps that each programme of a family states."""
    rows = connection.execute(_OF_FAMILY, {"of": family})
    return {row.programme: tuple(map(decode_cap, json.loads(row.caps))) for row in rows}


def family_refusal(connection: Connection, request: Request) -> RefusedError | None:
    """Return why a programme may not begin anew in another family, or None.

    Raises:
        InputError: the programme states no cap.
    """
    programme = request.key.programme
    if not request.caps:
        rule = "a programme without a cap may not spend; state caps in its file"
        raise InputError(where=programme, field="caps", rule=rule)
    known = family_of(connection, programme)
    if known in (None, request.family):
        return None
    return RefusedError(
        f"{programme}: its losses are kept in family {known}, not {request.family}; new accounts "
        f"would forget them: write family: {known} in its file again"
    )


def family_of(connection: Connection, programme: str) -> str | None:
    """Return the budget group that a programme's losses are kept in, None if it has none yet."""
    known = connection.execute(_OF_PROGRAMME, {"of": programme}).one_or_none()
    return None if known is None else known.family


def record_caps(connection: Connection, at: str, request: Request) -> None:
    """Write the caps of a programme that is let in, if they are not what the ledger holds."""
    programme, written = request.key.programme, [encode_cap(cap) for cap in request.caps]
    known = connection.execute(_OF_PROGRAMME, {"of": programme}).one_or_none()
    if known is not None and known.caps == canonical(written):
        return
    body = {"family": request.family, "programme": programme, "caps": written}
    append(connection, at, EntryKind.CAP_SET, body)
    store_caps(connection, body)


def store_caps(connection: Connection, body: Mapping[str, Any]) -> None:
    """Let the table of caps say what a `cap_set` entry says, in the turn of its family."""
    this = CAPS.c.programme == body["programme"]
    values = {"family": body["family"], "caps": canonical(body["caps"])}
    if connection.execute(update(CAPS).where(this).values(values)).rowcount == 0:
        connection.execute(insert(CAPS), {"programme": body["programme"], **values})


def change_accounts(
    connection: Connection,
    family: str,
    changes: Sequence[Change],
    caps: Sequence[Cap] | None = None,
) -> None:
    """Add changes to account rows, in sorted order, under the CHECK of each row.

    Args:
        connection: of the transaction that holds the family's lock.
        family: whose accounts.
        changes: what to add to which row.
        caps: caps to hold each row against from now on; None leaves the row's own.
    """
    if not changes:
        return
    ordered = in_lock_order(changes)
    figures = [
        {
            "b_family": family,
            **{f"b_{name}": value for name, value in zip(_ROW, change.row, strict=True)},
            **dict(zip([f"b_{s}" for s in _SIDES], (*change.spent, *change.held), strict=True)),
            **(_named_caps(change.row, caps) if caps is not None else {}),
        }
        for change in ordered
    ]
    if caps is not None:
        made = [{"family": family, **change.row._asdict()} for change in ordered]
        connection.execute(_INSERT_ROW, made)
    connection.execute(_ADD if caps is None else _ADD_UNDER, figures)


def in_lock_order(changes: Sequence[Change]) -> list[Change]:
    """Return changes in the one order in which every transaction locks rows."""
    return sorted(changes, key=lambda change: change.row)


def _named_caps(row: AccountRow, caps: Sequence[Cap]) -> dict[str, int | None]:
    """Return the caps on a row as parameters of an update."""
    names = (f"b_cap_{name}" for name in COORDINATES)
    return dict(zip(names, cap_figures(row, caps), strict=True))


def amount_columns() -> list[Any]:
    """Return the columns of a row, its key first, then spent and held figures."""
    return [*(ACCOUNT.c[name] for name in _ROW), *(ACCOUNT.c[name] for name in _SIDES)]


def taken_by_row(
    connection: Connection, request: Request, caps: Sequence[Cap]
) -> dict[AccountRow, Amount]:
    """Return what the rows that a request touches, and the weeks around it, have taken."""
    reach = max((cap.window_weeks or 1 for cap in caps), default=1) - 1
    names = week_names(request.weeks)
    first, last = ServiceWeek.parse(names[0]), ServiceWeek.parse(names[-1])
    scopes = {posting.scope for posting in request.postings}
    units = {posting.unit for posting in request.postings}
    lifetime = and_(ACCOUNT.c.scope.in_(scopes), ACCOUNT.c.week == ALL_WEEKS)
    weeks = ACCOUNT.c.week.between(str(first.plus(-reach)), str(last.plus(reach)))
    # Two queries, each led by the full index: one with OR reads every row of the family.
    query = union_all(
        _rows_of(request.family, units).where(lifetime),
        _rows_of(request.family, set(filter(is_lifetime_unit, units))).where(weeks),
    )
    size = len(AMOUNTS)
    return {
        AccountRow(*row[:3]): Amount(*row[3 : 3 + size]).plus(Amount(*row[3 + size :]))
        for row in connection.execute(query)
    }


def _rows_of(family: str, units: Iterable[ProtectionUnit]) -> Select[Any]:
    """Return the query of some units' rows."""
    names = [unit.value for unit in units]
    return select(*amount_columns()).where(ACCOUNT.c.family == family, ACCOUNT.c.unit.in_(names))


def excess_of(connection: Connection, request: Request) -> Excess | None:
    """Return the first cap that a request would pass, or None.

    Judged are the caps that the request's programme states now, beside those of the others.
    """
    caps = family_caps(connection, request.family, request)
    taken = taken_by_row(connection, request, caps)
    asked = amounts_by_row(request.postings, request.weeks)
    return first_excess(caps, asked, request.weeks, lambda row: taken.get(row, NOTHING))
