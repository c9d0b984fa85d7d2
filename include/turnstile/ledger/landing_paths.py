"""Which budget group reads which landing path and files, as facts, in the caller's transaction."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping

from sqlalchemy import select
from sqlalchemy.engine import Connection

from turnstile.errors import InputError, RefusedError
from turnstile.ledger import facts
from turnstile.ledger.balances.changes import week_names, weeks_in
from turnstile.ledger.bounding_keys import BoundingKeys, bounding_keys_in
from turnstile.ledger.database.database_tables import ATTEMPT, ENTRY
from turnstile.ledger.entries import Entry, EntryKind, read_entry
from turnstile.ledger.records import Request
from turnstile.ledger.states import ReleaseState

_KINDS = (EntryKind.LANDING_USED, EntryKind.FAMILY_ADMITTED)
_OF_LANDING = facts.of_kinds(_KINDS).where(ENTRY.c.release_key.is_(None))  # by its index


def note_landing(connection: Connection, at: str, names: tuple[str, str, str]) -> None:
    """Write which landing path a programme reads for its budget group, if its last was another.

    Args:
        connection: of the caller's transaction.
        at: instant of the fact.
        names: landing pattern, budget group and programme.
    """
    landing, family, programme = names
    body = {"landing": landing, "family": family, "programme": programme}
    known = [e.body for e in _landing_facts(connection) if e.body.get("programme") == programme]
    if any(body.items() <= last.items() for last in known[-1:]):  # which has a blinding, too
        return
    facts.append(connection, at, EntryKind.LANDING_USED, body)


def landing_refusal(
    connection: Connection, names: tuple[str, str, str], request: Request
) -> RefusedError | None:
    """Return why a budget group may not read a landing path or files, or None if it may.

    Two groups over the same files are two budgets for the same people, which nobody adds up. They
    are the same by their place, or by their bytes wherever they lie.

    Args:
        connection: of the caller's transaction.
        names: landing pattern, budget group and programme.
        request: commitments to the files that were read, and of which week they are.
    """
    landing, family, programme = names
    facts_of_paths = [e.body for e in _landing_facts(connection)]
    known = _at(facts_of_paths, landing)
    used = _used(known)
    is_known = (landing, family) in used or _is_admitted(known, family)
    others = {} if is_known else {group: landing for _, group in used if group != family}
    for group in _groups_with(connection, request):
        theirs = [place for place, other in _used(facts_of_paths) if other == group] or [landing]
        if not any(_is_admitted(_at(facts_of_paths, place), family) for place in theirs):
            others.setdefault(group, min(theirs))
    if not others:
        return None
    admit = (
        f"turnstile ledger admit-family {family} --landing {place!r} --reason TEXT"
        for place in sorted({*others.values()})
    )
    return RefusedError(
        f"{programme} would charge the files {landing!r} to the budget group {family!r}, but "
        f"the group {', '.join(sorted(others))} has released from them, from files of the same "
        "bytes, or of this week from files that were known under keys that are lost: nobody "
        "would add up what the same people lose; use that group in the programme's file, or "
        "decide that they are "
        f"other people: {', and '.join(admit)}"
    )


def _groups_with(connection: Connection, request: Request) -> set[str]:
    """Return the other budget groups that were charged for one of these files.

    And those that were charged for this week from files that were known under bounding keys alone
    that are all lost: whether these are the same nobody can say.
    """
    if not request.files:
        return set()
    query = (
        select(ATTEMPT.c.family, ENTRY.c.record, ENTRY.c.hash)
        .join(ENTRY, ENTRY.c.sequence == ATTEMPT.c.reserved_sequence)
        .where(ATTEMPT.c.family != request.family, ATTEMPT.c.state != ReleaseState.VOID.value)
    )
    charged = [(r.family, read_entry(r.record, r.hash)) for r in connection.execute(query)]
    weeks, files = set(week_names(request.weeks)), set(request.files)
    keys = bounding_keys_in(connection) if charged else BoundingKeys()
    return {
        group
        for group, entry in charged
        if not files.isdisjoint(entry.body.get("files", ()))
        or (
            "files" in entry.body
            and keys.are_lost(entry.sequence)
            and not weeks.isdisjoint(week_names(weeks_in(entry.body)))
        )
    }


def _is_admitted(known: Iterable[Mapping[str, str]], family: str) -> bool:
    """Return whether a person let a group read files of another."""
    return any("programme" not in fact and fact["family"] == family for fact in known)


def _at(known: Iterable[Mapping[str, str]], landing: str) -> list[Mapping[str, str]]:
    return [fact for fact in known if _overlap(fact["landing"], landing)]


def admit_family(connection: Connection, at: str, body: Mapping[str, str]) -> Entry:
    """Write that a second group may read a landing path.

    Raises:
        InputError: no group has used it, and of each it is known what it used.
    """
    facts.head(connection, locked=True)
    used = [e.body for e in _landing_facts(connection) if "programme" in e.body]
    families = connection.execute(select(ATTEMPT.c.family).distinct()).scalars()
    is_any_unknown = not {o["family"] for o in used}.issuperset(families)  # where it reads
    if not (is_any_unknown or any(_overlap(o["landing"], body["landing"]) for o in used)):
        rule = f"no budget group has released from {body['landing']!r}; nothing to decide"
        raise InputError(where="ledger", field="landing", rule=rule)
    return facts.append(connection, at, EntryKind.FAMILY_ADMITTED, body)


def _used(known: Iterable[Mapping[str, str]]) -> set[tuple[str, str]]:
    """Return landing patterns and the budget groups that have released from them."""
    return {(fact["landing"], fact["family"]) for fact in known if "programme" in fact}


def _landing_facts(connection: Connection) -> Iterator[Entry]:
    """Yield which group used which landing path, and what people decided about it."""
    for row in connection.execute(_OF_LANDING):
        yield read_entry(row.record, row.hash)


def _overlap(pattern: str, other: str) -> bool:
    """Return whether two landing patterns may name the same files: by what is fixed before `{`."""
    first, second = _fixed(pattern), _fixed(other)
    return first.startswith(second) or second.startswith(first)


def _fixed(landing: str) -> str:
    """Return the part of a landing pattern that is the same in every week, however it is written.

    Examples:
        >>> _fixed("./opal//{week}/*"), _fixed("{week}/*"), _fixed("opal-{week}.csv")
        ('opal/', '', 'opal-')
    """
    folder, _, name = fixed_part(landing).rpartition("/")
    folder = posixpath.normpath(folder) if folder else "."
    return name if folder == "." else f"{folder}/{name}"


def fixed_part(pattern: str) -> str:
    """Return what every path that a landing pattern finds begins with, whatever the week.

    Examples:
        >>> fixed_part("opal/2016-W30/*.csv"), fixed_part("opal/{week}/*"), fixed_part("*/a.csv")
        ('opal/2016-W30/', 'opal/', '')
    """
    return min((pattern.partition(sign)[0] for sign in "{*?["), key=len)
