"""What a group of programmes was charged for: every draw that was begun, with its exact events.

The entries say it, so risks are worked out from the draws themselves, not from a sum that several
programmes share.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.engine import Connection

from turnstile.ledger.database.database_tables import ATTEMPT, ENTRY
from turnstile.ledger.encoding import decode_event
from turnstile.ledger.entries import read_entry
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.states import CHARGED_STATES
from turnstile.privacy.events import DrawEvent


@dataclass(frozen=True, slots=True)
class ChargedRelease:
    """One attempt that was charged: sealed, withdrawn or burned.

    Args:
        key: of the release.
        events: its draws.
        times: how often they were charged; a loss that was declared later may be of several draws.
    """

    key: ReleaseKey
    events: tuple[DrawEvent, ...]
    times: int = 1


def charged_releases(connection: Connection, family: str) -> tuple[ChargedRelease, ...]:
    """Return every charged attempt of a group, in the order of their reservation."""
    query = (
        select(ENTRY.c.record, ENTRY.c.hash)
        .join(ATTEMPT, ATTEMPT.c.reserved_sequence == ENTRY.c.sequence)
        .where(ATTEMPT.c.family == family)
        .where(ATTEMPT.c.state.in_([state.value for state in CHARGED_STATES]))
        .order_by(ENTRY.c.sequence)
    )
    bodies = (read_entry(row.record, row.hash).body for row in connection.execute(query))
    return tuple(
        ChargedRelease(
            ReleaseKey.parse(body["key"]),
            tuple(decode_event(event) for event in body["events"]),
            body.get("draws", 1),
        )
        for body in bodies
    )
