"""Which budget group reads which landing path, as facts, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlalchemy import select
from sqlalchemy.engine import Connection

from turnstile.errors import InputError, RefusedError
from turnstile.ledger import facts
from turnstile.ledger.database_tables import ENTRY
from turnstile.ledger.entries import Entry, EntryKind, read_entry


def note_landing(connection: Connection, at: str, names: tuple[str, str, str]) -> None:
    """Write which landing path a budget group reads, if it is not written yet.

    Args:
        connection: of the caller's transaction.
        at: instant of the fact.
        names: landing pattern, budget group and programme.
    """
    landing, family, programme = names
    if (landing, family) in _used(entry.body for entry in _landing_facts(connection)):
        return
    body = {"landing": landing, "family": family, "programme": programme}
    facts.append(connection, at, EntryKind.LANDING_USED, body)


def landing_refusal(connection: Connection, names: tuple[str, str, str]) -> RefusedError | None:
    """Return why a budget group may not read a landing path, or None if it may.

    Two groups over the same files are two budgets for the same people, which nobody adds up.

    Args:
        connection: of the caller's transaction.
        names: landing pattern, budget group and programme.
    """
    landing, family, programme = names
    known = [e.body for e in _landing_facts(connection) if _overlap(e.body["landing"], landing)]
    used = _used(known)
    others = sorted({group for _, group in used} - {family})
    is_admitted = any("programme" not in one and one["family"] == family for one in known)
    if not others or is_admitted or (landing, family) in used:
        return None
    return RefusedError(
        f"{programme} would charge the files {landing!r} to the budget group {family!r}, but "
        f"the group {', '.join(others)} has released from them: nobody would add up what the "
        "same people lose; use that group in the programme's file, or decide that they are "
        f"other people: turnstile ledger admit-family {family} --landing {landing!r}"
    )


def admit_family(connection: Connection, at: str, body: Mapping[str, str]) -> Entry:
    """Write that a second group may read a landing path.

    Raises:
        InputError: no other group has used it.
    """
    facts.head(connection, locked=True)
    used = [e.body for e in _landing_facts(connection) if "programme" in e.body]
    if not any(_overlap(o["landing"], body["landing"]) for o in used):
        rule = f"no budget group has released from {body['landing']!r}; nothing to decide"
        raise InputError(where="ledger", field="landing", rule=rule)
    return facts.append(connection, at, EntryKind.FAMILY_ADMITTED, body)


def _used(known: Iterable[Mapping[str, str]]) -> set[tuple[str, str]]:
    """Return landing patterns and the budget groups that have released from them."""
    return {(one["landing"], one["family"]) for one in known if "programme" in one}


def _landing_facts(connection: Connection) -> Iterator[Entry]:
    """Yield which group used which landing path, and what people decided about it."""
    kinds = [EntryKind.LANDING_USED.value, EntryKind.FAMILY_ADMITTED.value]
    query = (
        select(ENTRY.c.record, ENTRY.c.hash)
        .where(ENTRY.c.release_key.is_(None), ENTRY.c.kind.in_(kinds))
        .order_by(ENTRY.c.sequence)
    )
    for row in connection.execute(query):
        yield read_entry(row.record, row.hash)


def _overlap(one: str, other: str) -> bool:
    """Return whether two landing patterns may name the same files: by what is fixed before `{`."""
    first, second = _fixed(one), _fixed(other)
    return first.startswith(second) or second.startswith(first)


def _fixed(landing: str) -> str:
    """Return the part of a landing pattern that is the same in every week."""
    return min((landing.partition(mark)[0] for mark in "{*?["), key=len)
