"""A way back after a disaster: entries from witnesses, and declared losses from what files prove.

1. Every witness's entries are read, and what a damaged database still holds; the longest chain that
   continues the ledger's own is appended bit by bit. Draws of which only what is left behind a hole
   tells are charged, too.
2. What a public package, a staged one or a sealed file proves and no entry holds is charged in
   full, as a loss that a person declares.
3. A sealed release whose package is public is published again, with that package.
4. Attempts that were open are ended: nobody knows any more whether they drew. A draw is burned.
5. A fact says who recovered, why, which entries are lost for good and which files are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection

from turnstile.durable_files import sealed_name, set_aside
from turnstile.errors import InputError, IntegrityError, RefusedError
from turnstile.ledger import attempts, facts, leases
from turnstile.ledger.balances import accounts
from turnstile.ledger.custody.behind_a_hole import Behind, lost_draws
from turnstile.ledger.custody.custody import Custody
from turnstile.ledger.custody.evidence_of_draws import (
    CHARGING,
    Proof,
    charged_by,
    names_of,
    plan_on,
    proofs,
    stated_by,
)
from turnstile.ledger.custody.known_history import (
    DeclaredDraws,
    History,
    declared_draws,
    parties_in,
    read_history,
)
from turnstile.ledger.custody.package_files import file_problems
from turnstile.ledger.custody.replay import replay, store
from turnstile.ledger.custody.shipped import last_shipped, shipped_entries, shipped_entry
from turnstile.ledger.custody.shown_age import shown_age
from turnstile.ledger.custody.traces import FILES, Trace, TraceKind, by_key, sealed_file, traces
from turnstile.ledger.database.damaged_database import Remains
from turnstile.ledger.entries import Entry, EntryKind, instant
from turnstile.ledger.fold import Fold
from turnstile.ledger.landing_paths import note_landing
from turnstile.ledger.parties import is_overlooked
from turnstile.ledger.records import Attempt, ReleaseKey
from turnstile.ledger.states import (
    CHARGED_STATES,
    SEALED_STATES,
    ReleaseState,
    Transition,
    is_allowed,
)

_MOVES = (
    (Transition.BEGIN_DRAW, ""),
    (Transition.SEAL, "artefact_digest"),
    (Transition.PUBLISH, "manifest_digest"),
)
"""What happens to an attempt, and what has to be known of it."""
_RESTORE = (
    "restore the witness, or where nobody can, take away its entries from the one that verify "
    "names on: they are lost"
)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a deployment still knows of the files of releases whose entries are lost.

    Args:
        landing: pattern of the landing files of each programme, as its file says now.
        files: returns commitments to the files that a release was read from; none if they are gone.
    """

    landing: Mapping[str, str] = field(default_factory=dict)
    files: Callable[[ReleaseKey], tuple[str, ...]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a recovery did.

    Args:
        entries: how many came back from a witness.
        declared: releases whose loss was declared from files.
        published: sealed releases whose package is public, and whose publication was lost.
        ended: attempts that were burned or voided.
        superseded: how many entries are known by their hash alone.
        lost: files that are gone for good.
        aside: files beside the sealed ones of their releases; they were set aside.
        sealed: digests of the sealed bytes that keys have, by release.
        unknown: draws of which nothing that is left states the cost, and weeks that were planned
            where entries are lost, and may have drawn.
    """

    entries: int
    declared: tuple[str, ...]
    published: tuple[str, ...]
    ended: tuple[str, ...]
    superseded: int
    lost: tuple[str, ...]
    aside: tuple[Path, ...]
    sealed: Mapping[str, str]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """What losses are declared from, beside entries.

    Args:
        custody: second places and zones, and the clock.
        traces: of every release.
        families: budget group of a programme, where neither ledger nor card names it.
        said: person and reason.
        delivered: of which files releases are.
    """

    custody: Custody
    traces: tuple[Trace, ...]
    families: Mapping[str, str]
    said: tuple[str, str]
    delivered: Delivered


def recover(  # noqa: PLR0913 - each a thing that a person says or that is left
    custody: Custody,
    families: dict[str, str],
    said: tuple[str, str],
    remains: Remains,
    delivered: Delivered | None = None,
    *,
    ends_draws: bool = False,
) -> Recovery:
    """Bring the ledger back to what its traces prove; a repeat finds nothing to do but say so.

    Args:
        custody: second places and zones.
        families: budget group of a programme, where neither ledger nor card names it.
        said: person and reason.
        remains: of a damaged database.
        delivered: of which files releases are, so that no second group gets a budget for them.
        ends_draws: whether draws that a process works on at this moment are ended too.

    Raises:
        RefusedError: a process draws.
        InputError: a trace cannot be read, or a budget group is not known.
        IntegrityError: a witness holds another history than the ledger.
    """
    public = custody.witnesses.public
    all_traces = traces(public, custody.embargoed)
    heads = tuple(_heads(custody, all_traces))
    known = _Known(custody, all_traces, families, said, delivered or Delivered())

    def act(connection: Connection) -> Recovery:
        facts.head(connection, locked=True)
        if not ends_draws:
            _require_no_draw(connection)
        returned, behind = _bring_back(connection, custody, remains, heads)
        declared, unknown, counted = _charge_behind(connection, known, behind)
        for _ in range(2):  # of a key that has bytes now, a staged package is another draw
            declared += _declare(connection, known, counted)
        published = _publish(connection, custody, all_traces, said)
        ended = _end_open(connection, custody, said)
        history = read_history(connection)
        superseded = sorted({head for head in heads if history.card_hash_at(head) != head[1]})
        lost = tuple(_lost(history, custody))
        parties, shown = history.parties, sorted(_shown(public).items())
        ours = (parties.recoveries, max(history.hashes))
        is_behind = any(
            seen > ours or is_overlooked(seen, parties.recoveries, parties.recovered_over)
            for seen in shown
        )
        done = (remains.entries, returned, declared, unknown, published, ended, superseded, lost)
        if any(done) or is_behind:
            body = {
                "recoveries": 1 + max(parties.recoveries, *(count for count, _ in shown)),
                "over": list(map(list, shown)),
                "person": said[0],
                "reason": said[1],
                "superseded": [list(head) for head in superseded],
                "lost": list(lost),
            }
            if leftovers := _unnamed(all_traces, history, declared_draws(connection)):
                body["leftovers"] = leftovers  # another machine may have others
            facts.append(connection, instant(custody.clock()), EntryKind.RECOVERED, body)
        sealed = {
            key: str(attempt.artefact_digest)
            for key, past in history.attempts.items()
            for attempt in past
            if attempt.is_sealed
        }
        aside, named = tuple(_beside_sealed(sealed, all_traces)), tuple(dict.fromkeys(declared))
        return Recovery(
            returned, named, published, ended, len(superseded), lost, aside, sealed, unknown
        )

    done = custody.store.write(act)
    for leftover in done.aside:
        set_aside(leftover)
    return done


def _require_no_draw(connection: Connection) -> None:
    """Refuse to end draws that a process works on, which may still become public.

    Raises:
        RefusedError: there are some.
    """
    if living := ", ".join(sorted(leases.living(connection))):
        raise RefusedError(
            f"a process draws {living} at this moment; to recover ends it for good, its charge "
            "stays and another draw costs the same again: wait for its seal, or where that process "
            f"is dead {leases.LEASE_S} seconds; or say --end-draws; nothing was recovered"
        )


def _shown(public: Path | None) -> dict[int, int]:
    """Return the last entry that series show, of each number of recoveries that they say.

    It may be lost for good; a later ledger has to count as the newer one all the same.
    """
    shown = {0: 0}
    for path in () if public is None else public.glob("*/series/index.json"):
        with suppress(OSError):
            count, last = shown_age(path.read_bytes())
            shown[count] = max(last, shown.get(count, 0))
    return shown


def _heads(custody: Custody, all_traces: tuple[Trace, ...]) -> Iterator[tuple[int, str]]:
    """Yield every entry that a note or a card names."""
    for note in custody.witnesses.notes():
        seen = note.checkpoint
        if seen is not None:
            yield seen.sequence, seen.hash
    for trace in all_traces:
        if trace.head is not None:
            yield trace.head


def _bring_back(
    connection: Connection, custody: Custody, remains: Remains, heads: Iterable[tuple[int, str]]
) -> tuple[int, Behind]:
    """Append what witnesses and a damaged database hold beyond the head.

    Args:
        connection: of a writing transaction.
        custody: whose witnesses they are.
        remains: of a damaged database.
        heads: every entry that a note or a card names.

    Returns:
        How many, and what is left of the damaged database behind the first that nobody holds.

    Raises:
        IntegrityError: they hold two histories.
    """
    history, salvaged = read_history(connection), remains.entries
    head, hashes = max(history.hashes), dict(history.hashes)
    sound = {entry.sequence: entry for entry in _sound(salvaged)}
    left = {entry.sequence: entry for entry in salvaged} | sound
    tails = [_tail(connection, folder, history, left) for folder in custody.witnesses.folders]
    tails.append([entry for number, entry in sound.items() if number > head])
    best = max(tails, key=len)
    hashes |= {entry.sequence: entry.hash for entry in best}
    if any(hashes.get(e.sequence, e.hash) != e.hash for e in (*chain(*tails), *left.values())):
        raise IntegrityError(
            "two witnesses, or a witness and a damaged database, hold two histories; find out "
            "which ledger wrote each, take the wrong one out of TURNSTILE_WITNESS, or move away "
            "what earlier recoveries set aside beside the ledger (.damaged-), then recover again"
        )
    for entry in best:
        replay(connection, entry)
    behind = [entry for entry in salvaged if hashes.get(entry.sequence) != entry.hash]
    last = max(*hashes, *(entry.sequence for entry in salvaged), 1)
    is_cut = remains.last is not None and remains.last > last
    if remains.last is None:  # a witness has every charge before its draw, unless it lags
        parties = parties_in(connection)
        last = max(last, *(head[0] for head in heads if not parties.is_superseded(*head)), 0)
        is_cut = all(last_shipped(folder) < last for folder in custody.witnesses.folders)
    return len(best), Behind(behind, is_cut, remains.attempts if behind or is_cut else ())


def _charge_behind(
    connection: Connection, known: _Known, behind: Behind
) -> tuple[tuple[str, ...], tuple[str, ...], list[Entry]]:
    """Charge draws of which only what lies behind a hole tells.

    Returns:
        Releases whose loss was declared; draws that nothing charges; what charged the rest.
    """
    history, declared, unknown, counted = read_history(connection), list[str](), list[str](), []
    groups, of_key = {**known.families, **_group_by_programme(history)}, Counter[str]()
    for draw in lost_draws(history, behind, known.traces, known.custody.embargoed):
        if draw.attempt is not None:
            _move_on(connection, known.custody, draw.attempt, draw.stated)
        elif draw.proof is not None:
            key = str(draw.proof.key)
            of_key[key] += 1
            number = len(history.attempts.get(key, [])) + of_key[key]
            body = draw.proof.body(_family(connection, draw.proof, groups), number, known.said)
            body |= {"stands_for": sorted(names_of(draw.entry))} if draw.entry else {}
            _declare_loss(connection, known, body)
            declared.append(key)
        else:
            unknown.append(draw.attempt_id)
            continue
        counted += [draw.entry] if draw.entry else []
    return tuple(declared), tuple(unknown), counted


def _move_on(
    connection: Connection, custody: Custody, attempt: Attempt, stated: Mapping[str, str]
) -> None:
    """Charge an attempt that may have drawn behind a hole; it has the bytes that are stated there.

    Args:
        connection: of a writing transaction.
        custody: whose clock it is.
        attempt: as the entries before the hole have it.
        stated: digests of its sealed bytes and its manifest, as far as they are.
    """
    accounts.lock_family(connection, attempt.family)
    for move, word in _MOVES:
        now = attempts.attempt(connection, attempt.attempt_id)
        if is_allowed(move, now.state) and word in {"", *stated}:
            words = {word: stated[word]} if word else {}
            attempts.make_transition(connection, instant(custody.clock()), now, move, **words)


def _sound(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the entries of a damaged database as far as they follow each other."""
    fold = Fold()
    for entry in entries:
        if (entry.sequence - 1, entry.previous) == fold.chain.head:
            if any(fold.follow(entry)):
                return
            yield entry


def _tail(
    connection: Connection, folder: Path, history: History, left: Mapping[int, Entry]
) -> list[Entry]:
    """Return the entries of a witness after the ledger's head, checked against its own.

    One that is gone or cannot be read there is not needed where the ledger, or what is left of a
    damaged one, holds it.

    Raises:
        IntegrityError: they are another history, or do not follow each other.
    """
    head = max(history.hashes)
    for sequence in range(1, head + 1):
        with suppress(OSError, ValueError):
            if shipped_entry(folder, sequence).hash != history.hash_at(sequence):
                raise IntegrityError(
                    f"entry {sequence} of {folder} is not the ledger's: two copies lived on, or "
                    "one was replaced; nothing was recovered: keep both and find out which is "
                    "true; if the ledger is an old copy, move it away, and if the witness is, take "
                    "its folder out of TURNSTILE_WITNESS; then recover again"
                )
    try:
        tail = list(shipped_entries(folder, after=head, left=left))
    except (OSError, ValueError) as error:
        kind = type(error).__name__
        rule = f"an entry cannot be read ({kind}); recover again, and if it stays so, {_RESTORE}"
        raise InputError(where=str(folder), field="witness", rule=rule) from error
    if head + len(tail) < last_shipped(folder):
        raise IntegrityError(f"{folder} holds entries after a gap; {_RESTORE}; then recover again")
    fold = Fold()
    for entry in (*facts.entries_after(connection, 0), *tail):
        for finding in fold.follow(entry):
            raise IntegrityError(f"{folder}: {finding}; nothing was recovered")
    return tail


def _declare(connection: Connection, known: _Known, counted: Sequence[Entry]) -> tuple[str, ...]:
    """Charge what files prove and entries do not hold; return the releases."""
    history, declared = read_history(connection), []
    charged: dict[str, str] = {}
    held, of_key = cache(partial(_held, connection, counted)), Counter[str]()
    unknown = _unknown(known.traces, history, declared_draws(connection), held)
    for proof in proofs(unknown, held):
        past_attempts = history.attempts.get(str(proof.key), [])
        is_sealed = any(attempt.state in SEALED_STATES for attempt in past_attempts)
        groups = {**known.families, **_group_by_programme(history), **charged}
        family = _family(connection, proof, groups)
        charged[proof.key.programme] = family
        of_key[str(proof.key)] += 1
        body = proof.body(family, len(past_attempts) + of_key[str(proof.key)], known.said)
        if is_sealed:  # the key has its bytes: these are others, drawn and charged, never its own
            body |= {"state": "burned", "artefact_digest": None, "manifest_digest": None}
            body |= {"proven_by": proof.sealed} if proof.sealed else {}
        _declare_loss(connection, known, body)
        declared.append(str(proof.key))
    return tuple(declared)


def _declare_loss(connection: Connection, known: _Known, body: dict[str, Any]) -> None:
    """Charge a loss, and say whose files it was counted from."""
    key, at = ReleaseKey.parse(body["key"]), instant(known.custody.clock())
    if files := known.delivered.files(key):
        body["files"] = list(files)
    accounts.lock_family(connection, body["family"])
    store(connection, facts.append(connection, at, EntryKind.LOSS_DECLARED, body))
    if landing := known.delivered.landing.get(key.programme):
        note_landing(connection, at, (landing, body["family"], key.programme))


def _unknown(
    all_traces: Iterable[Trace],
    history: History,
    declared: DeclaredDraws,
    held: Callable[[Trace], Mapping[str, int]],
) -> Iterator[Trace]:
    """Yield the traces of draws that the ledger does not hold: packages, then files beyond them.

    A draw leaves one sealed file, or died before it: which file is whose nobody knows but of sealed
    draws and of those that a recovery named, on this machine or another. So there are as many
    unknown ones as other files beyond the other draws that were charged.
    """
    for key, of_key in by_key(all_traces).items():
        past = history.attempts.get(key, [])
        own = _own(key, past, declared)
        packages = [trace for trace in of_key if trace.kind not in FILES]
        yield from (unknown := [trace for trace in packages if trace.sealed not in own])
        is_own = set(map(sealed_file, own))
        named = declared.leftovers.get(key, set()) - is_own
        of_package = {sealed_file(trace.sealed) for trace in unknown[:1]}
        others = _files(of_key, beside=is_own | named | of_package)
        others.sort(key=lambda trace: trace.kind is not TraceKind.SEALED)  # it may be published
        charged = sum(attempt.state in CHARGED_STATES for attempt in past)
        charged += declared.beyond.get(key, 0) - len(named)
        beyond = max(len(others) - charged + len(own), 0)
        if unknown and not own:  # no file is of another draw than the card states
            beyond = max(len(others) - max(sum(held(unknown[0]).values()) - len(named), 0), 0)
        yield from others[:beyond]


def _held(connection: Connection, counted: Sequence[Entry], package: Trace) -> dict[str, int]:
    """Return the draws that the ledger charged and the card of a package states, too, by entry.

    A declared loss stands for the entry that charged its draw in a ledger that is lost, if both are
    of the package's own plan: what it takes away it has cost.
    """
    stated, key = stated_by(package.path), ReleaseKey.parse(package.key)
    entries = charged_by(facts.facts(connection, key, *CHARGING)).values()
    held = {
        entry.hash: int(entry.body.get("draws", 1))
        for entry in (*counted, *entries)
        if entry.hash in stated.entries
    }
    of_its_plan = stated.entries - {other.entry for other in stated.others}
    for entry in entries:
        named = names_of(entry) & (of_its_plan - held.keys())
        if named and entry.body.get("plan_digest") == plan_on(package):
            held[min(named)] = 1
    return held


def _unnamed(
    all_traces: Iterable[Trace], history: History, declared: DeclaredDraws
) -> dict[str, list[str]]:
    """Return files of draws that died and were charged, which no entry names, by release key."""
    unnamed = {}
    for key, of_key in by_key(all_traces).items():
        own = _own(key, history.attempts.get(key, []), declared)
        known = set(map(sealed_file, own)) | declared.leftovers.get(key, set())
        if others := _files(of_key, beside=known):
            unnamed[key] = sorted(trace.file for trace in others)
    return unnamed


def _own(key: str, past: Sequence[Attempt], declared: DeclaredDraws) -> set[str | None]:
    """Return the digests of the bytes of a key, and of packages at it that have others."""
    own = {attempt.artefact_digest for attempt in past if attempt.state in SEALED_STATES}
    return own | declared.proven.get(key, set())


def _files(of_key: Sequence[Trace], *, beside: AbstractSet[str]) -> list[Trace]:
    """Return the files of draws of a key, one of each name, beside those of some names."""
    files = {trace.file: trace for trace in of_key if trace.kind is TraceKind.ASIDE}
    files |= {trace.file: trace for trace in of_key if trace.kind is TraceKind.SEALED}
    return [trace for name, trace in files.items() if name not in beside]


def _group_by_programme(history: History) -> dict[str, str]:
    """Return the budget group of every programme that has an attempt."""
    return {
        attempt.key.programme: attempt.family
        for key_attempts in history.attempts.values()
        for attempt in key_attempts
    }


def _family(connection: Connection, proof: Proof, families: dict[str, str]) -> str:
    """Return the budget group to charge: the ledger's, the card's, or the one that a person names.

    Raises:
        InputError: none of them names it.
    """
    programme = proof.key.programme
    known = accounts.family_of(connection, programme) or proof.family or families.get(programme)
    if known is None:
        rule = f"its budget group is not known; name it: --family {programme}=GROUP"
        raise InputError(where=str(proof.key), field="family", rule=rule)
    return known


def _publish(
    connection: Connection, custody: Custody, all_traces: tuple[Trace, ...], said: tuple[str, str]
) -> tuple[str, ...]:
    """Say again that a sealed release is public, where its package proves it."""
    history, published = read_history(connection), []
    for trace in all_traces:
        past = history.attempts.get(trace.key, [])
        sealed = next((attempt for attempt in past if attempt.state is ReleaseState.SEALED), None)
        if trace.kind is not TraceKind.PACKAGE or sealed is None:
            continue
        if trace.sealed != sealed.artefact_digest or file_problems(trace.path):
            continue
        accounts.lock_family(connection, sealed.family)
        words = {"person": said[0], "reason": said[1], "manifest_digest": str(trace.manifest)}
        at = instant(custody.clock())
        attempts.make_transition(connection, at, sealed, Transition.PUBLISH, **words)
        published.append(trace.key)
    return tuple(published)


def _end_open(connection: Connection, custody: Custody, said: tuple[str, str]) -> tuple[str, ...]:
    """Burn draws under way and let holds go: whoever held them worked on a lost history."""
    ended = []
    for key_attempts in read_history(connection).attempts.values():
        for attempt in key_attempts:
            if not attempt.is_open:
                continue
            move = Transition.VOID if attempt.state is ReleaseState.RESERVED else Transition.BURN
            accounts.lock_family(connection, attempt.family)
            words = {"person": said[0], "reason": f"recovery: {said[1]}"}
            at = instant(custody.clock())
            attempts.make_transition(connection, at, attempt, move, **words)
            ended.append(attempt.attempt_id)
    return tuple(ended)


def _lost(history: History, custody: Custody) -> Iterator[str]:
    """Yield the sealed files and packages that are gone, and were not declared so before."""
    public = custody.witnesses.public
    for key_attempts in history.attempts.values():
        for attempt in key_attempts:
            if not attempt.is_sealed:
                continue
            name = str(attempt.key)
            sealed = sealed_name(attempt.artefact_digest or "")
            stored = []
            if custody.embargoed is not None:
                stored.append((f"{name} sealed", custody.embargoed / name / sealed))
            if (
                public is not None
                and attempt.state is ReleaseState.PUBLISHED
                and not attempt.is_withdrawn
            ):
                stored.append((f"{name} package", public / name))
            for what, path in stored:
                if not path.exists() and what not in history.parties.lost:
                    yield what


def _beside_sealed(sealed: Mapping[str, str], all_traces: Iterable[Trace]) -> Iterator[Path]:
    """Yield files that are named as sealed bytes of releases that have others.

    A draw that died wrote them, and a loss of power put them back. Once the ledger is lost, too,
    nothing tells them from the sealed ones.
    """
    for trace in all_traces:
        digest = sealed.get(trace.key)
        if trace.kind is TraceKind.SEALED and digest and trace.file != sealed_file(digest):
            yield trace.path
