"""Leases of draws: which process draws at this moment, by the database's own clock (PRIVACY 6).

A lease is no fact and moves no loss. It delays a burn: while it runs, nobody takes the draw for
dead; once it has run out, the next draw burns it and charges in full; its late seal is refused.
Whoever holds the very lock that a drawing process held knows that it is dead and waits for nothing.
"""

from __future__ import annotations

from sqlalchemy import insert, select, text, update
from sqlalchemy.engine import Connection
from sqlalchemy.sql.elements import ColumnElement

from turnstile.ledger.database.database_tables import ATTEMPT, LEASE
from turnstile.ledger.states import ReleaseState

LEASE_S = 60
BEAT_S = 10
"""How often a living draw renews its lease."""


def take(connection: Connection, attempt_id: str, holder: str) -> None:
    """Write that a process draws."""
    row = {"holder": holder, "ends_s": _now_s(connection) + LEASE_S}
    taken = update(LEASE).where(LEASE.c.attempt_id == attempt_id).values(row)
    if not connection.execute(taken).rowcount:
        connection.execute(insert(LEASE).values(attempt_id=attempt_id, **row))


def renew(connection: Connection, attempt_id: str, holder: str) -> None:
    """Write that it still does; nothing if another process has taken the draw over."""
    mine = (LEASE.c.attempt_id == attempt_id) & (LEASE.c.holder == holder)
    connection.execute(update(LEASE).where(mine).values(ends_s=_now_s(connection) + LEASE_S))


def end(connection: Connection, holder: str) -> None:
    """Let the draws under a lock be dead; for whoever holds that very lock."""
    connection.execute(update(LEASE).where(LEASE.c.holder == holder).values(ends_s=0))


def holder_of(connection: Connection, attempt_id: str) -> str | None:
    """Return who draws under a lease that runs, or None."""
    query = select(LEASE.c.holder).where(LEASE.c.attempt_id == attempt_id, _runs(connection))
    return connection.execute(query).scalar()


def living(connection: Connection) -> frozenset[str]:
    """Return the attempts whose draw is under way and has a lease that runs."""
    query = (
        select(LEASE.c.attempt_id)
        .join(ATTEMPT, ATTEMPT.c.attempt_id == LEASE.c.attempt_id)
        .where(ATTEMPT.c.state == ReleaseState.DRAWING.value, _runs(connection))
    )
    return frozenset(connection.execute(query).scalars())


def _runs(connection: Connection) -> ColumnElement[bool]:
    """Tell in SQL whether a lease runs; one that ends later than any can had a wrong clock."""
    now_s = _now_s(connection)
    return LEASE.c.ends_s.between(now_s + 1, now_s + LEASE_S)


def _now_s(connection: Connection) -> int:
    """Return the database's present instant, in seconds since 1970."""
    is_sqlite = connection.dialect.name == "sqlite"
    clock = "strftime('%s', 'now')" if is_sqlite else "extract(epoch FROM clock_timestamp())"
    return int(connection.execute(text(f"SELECT {clock}")).scalar_one())
