"""Draws that a damaged ledger may have made behind the first entry that is lost. Decides, no more.

Nobody can append what lies behind a hole, as the entry before it is gone; but who drew there drew.
What these entries, the table of attempts and the head state is charged: they continue no chain, so
that whoever put one there may add a loss, and takes none away but that of a hold or a plan. A draw
whose cost nothing states is named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from turnstile.errors import InputError
from turnstile.ledger.custody.evidence_of_draws import (
    CHARGING,
    DIED_AT_MOST,
    DIGEST,
    MALFORMED,
    PLAN,
    Proof,
    by_plan,
    charged_by,
    proof_in_entries,
    stated_by,
)
from turnstile.ledger.custody.folders import release_folders
from turnstile.ledger.custody.known_history import History
from turnstile.ledger.custody.made_behind import MadeBehind, key_of, made_behind
from turnstile.ledger.custody.traces import Trace, TraceKind
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.records import Attempt, ReleaseKey
from turnstile.ledger.states import CHARGED_STATES, ReleaseState
from turnstile.service_calendar import parse_period

_BYTES, _MANIFEST = "artefact_digest", "manifest_digest"
_AFTER_A_CHARGE = {*CHARGING, EntryKind.SEALED, EntryKind.BURNED, EntryKind.PUBLISHED}


@dataclass(frozen=True, slots=True)
class Behind:
    """What is left of a ledger behind the first entry that nobody holds.

    Args:
        entries: by number; there may be holes between them.
        is_cut: whether there were others after the last of them, or nobody knows.
        attempts: rows of the table of attempts, which holds them as they were when it was damaged.
    """

    entries: Sequence[Entry]
    is_cut: bool
    attempts: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class LostDraw:
    """An attempt that may have drawn there.

    Args:
        attempt_id: its name; the release key where nothing but its plan is left.
        entry: the last there that charged it; None if that is lost.
        attempt: as the entries before the hole have it; None if they do not.
        stated: digests of its sealed bytes and its manifest, as far as they are known.
        proof: what it cost; None of an attempt that is known, and where nothing states it.
    """

    attempt_id: str
    entry: Entry | None
    attempt: Attempt | None
    stated: Mapping[str, str]
    proof: Proof | None


def lost_draws(
    history: History, behind: Behind, traces: Collection[Trace], embargoed: Path | None
) -> Iterator[LostDraw]:
    """Yield the draws to charge, but those whose cost a package states: its card is charged.

    Last come weeks that were planned, have no bytes, and whose later entries may be lost: they may
    have drawn, again perhaps.

    Args:
        history: up to the hole.
        behind: what is left behind it.
        traces: of every release.
        embargoed: zone with plans, if there is one.

    Raises:
        InputError: a package or a plan is not what it says, so that a loss is not known.
    """
    before = {past.attempt_id: past for of_key in history.attempts.values() for past in of_key}
    has_bytes = {str(past.key) for past in before.values() if past.is_sealed}
    public_last = sorted(traces, key=lambda trace: trace.kind is TraceKind.PACKAGE)
    packages = {(t.key, t.sealed): t for t in public_last if t.sealed and t.manifest}
    of_manifest = {trace.manifest: trace.sealed for trace in packages.values()}
    last, said = charged_by(behind.entries), _said(behind)
    ours = {entry.hash for entry in behind.entries}
    ours |= {str(b.get(_BYTES)) for name in said.keys() - before.keys() for b in said[name]}
    made = made_behind(history, behind.entries, packages.values())
    for draw in _under_way(history, {key_of(name) for name in said}, made):
        has_bytes.add(key_of(draw.attempt_id))
        yield draw
    for name in _that_may_have_drawn(behind, said, before):
        key, entry, attempt = key_of(name), last.get(name), before.get(name)
        stated = _digests_in(said.get(name, ()), of_manifest)
        if key in has_bytes and not (attempt and attempt.is_sealed):
            stated = {}  # somebody put it there
        proof = proof_in_entries(key, said.get(name, ()))
        cards = _charges_on_cards(ours, (t for (of, _), t in packages.items() if of == key))
        is_on = _is_on(cards, entry, is_known=bool(proof or attempt))
        if not (attempt and attempt.is_charged) and (
            is_on or made.has(name, entry, attempt, stated, said.get(name, ()))
        ):
            continue
        if attempt is None:
            if (key, stated.get(_BYTES)) in packages:
                continue  # its card says what else was drawn
            if proof := proof or by_plan(embargoed, key):
                proof = _as_said(proof, said.get(name, ()), stated)
        has_bytes |= {key} if _BYTES in stated and (attempt or proof) else set()
        yield LostDraw(name, entry, attempt, stated, None if attempt else proof)
    if embargoed is not None and (behind.entries or behind.is_cut):
        known = has_bytes | {trace.key for trace in traces} | _keys_of_which_all_is_left(behind)
        planned = (key for key, path in release_folders(embargoed) if (path / PLAN).exists())
        yield from (LostDraw(key, None, None, {}, None) for key in planned if key not in known)


def _under_way(history: History, named: AbstractSet[str], made: MadeBehind) -> Iterator[LostDraw]:
    """Yield draws whose seal is lost, with the bytes of the packages that are known to be theirs.

    Args:
        history: up to the hole.
        named: releases of which something is left behind it: what it says goes first.
        made: packages made behind it.
    """
    for key, of_key in history.attempts.items():
        past = [attempt for attempt in of_key if attempt.is_charged]
        if key in named or not past or not past[-1].is_drawing:
            continue
        if (sealed := made.bytes_of(past[-1], len(past))) is not None:
            yield LostDraw(past[-1].attempt_id, None, past[-1], {_BYTES: sealed}, None)


def _is_on(cards: AbstractSet[str], entry: Entry | None, *, is_known: bool) -> bool:
    """Return whether cards say what a draw cost that nothing else tells of.

    Args:
        cards: charges that they name.
        entry: the last that charged the draw; cards name its start, if it was begun.
        is_known: whether entries tell what it cost.
    """
    if entry is not None and entry.hash in cards:
        return not is_known
    return bool(cards) and (entry is None or entry.kind is EntryKind.DRAW_BEGUN)


def _keys_of_which_all_is_left(behind: Behind) -> set[str]:
    """Return the releases of which the table tells, or an entry after the last hole."""
    last = 0 if behind.is_cut or not behind.entries else behind.entries[-1].sequence
    unbroken = [e for at, e in enumerate(reversed(behind.entries)) if e.sequence == last - at]
    names = map(_attempt_of, (*(entry.body for entry in unbroken), *behind.attempts))
    return {key_of(name) for name in names if name is not None}


def _said(behind: Behind) -> dict[str, list[Mapping[str, Any]]]:
    """Return what is said behind a hole of each attempt, by attempt; the table speaks last."""
    said: dict[str, list[Mapping[str, Any]]] = {}
    for entry in behind.entries:
        if (name := _attempt_of(entry.body)) is not None:
            said.setdefault(name, []).append({**entry.body, "reserved_sequence": entry.sequence})
    for row in behind.attempts:
        if (name := _attempt_of(row)) is not None:
            said.setdefault(name, []).append(row)
    return said


def _that_may_have_drawn(
    behind: Behind, said: Iterable[str], before: Mapping[str, Attempt]
) -> list[str]:
    """Return the attempts that may have drawn behind a hole.

    Those that are charged there; of those before, whose end is lost, and of those that are lost
    whole, nobody knows whether they drew.

    Args:
        behind: what is left there.
        said: attempts of which something is.
        before: those of the entries before the first hole.
    """
    reserved = {name for name, attempt in before.items() if attempt.is_held}
    charged, doubtful, voided, last = set[str](), set[str](), set[str](), 0
    for entry in behind.entries:
        doubtful |= reserved if entry.sequence != last + 1 else set()
        last = entry.sequence
        if (name := _attempt_of(entry.body)) is not None:
            reserved |= {name} if entry.kind is EntryKind.RESERVED else set()
            voided |= {name} if entry.kind is EntryKind.VOIDED else set()
            charged |= {name} if entry.kind in _AFTER_A_CHARGE else set()
    doubtful |= reserved if behind.is_cut else set()
    known = reserved | voided | charged | before.keys()
    for name, state in ((_attempt_of(row), row["state"]) for row in behind.attempts):
        if name is None or (name in before and before[name].state == state):
            continue
        voided |= {name} if state == ReleaseState.VOID else set()
        charged |= {name} if state in CHARGED_STATES else set()
        doubtful |= {name} - known
    for name in said:
        key, _, number = name.rpartition("#")
        earlier = {f"{key}#{n}" for n in range(1, min(int(number), DIED_AT_MOST))}
        doubtful |= earlier - known - {*said}
    return sorted(charged | (doubtful - voided))


def _attempt_of(body: Mapping[str, Any]) -> str | None:
    """Return the attempt that an entry is about; None if it is none of a release of ours."""
    try:
        name, key = str(body["attempt"]), ReleaseKey.parse(body["key"])
        _ = parse_period(key.period)
        number = int(name.removeprefix(f"{key}#"))
    except (InputError, *MALFORMED):
        return None
    return name if name == f"{key}#{number}" else None


def _digests_in(
    bodies: Iterable[Mapping[str, Any]], of_manifest: Mapping[str | None, str | None]
) -> dict[str, str]:
    """Return the digests of sealed bytes and manifest that entries state of an attempt.

    Args:
        bodies: of the entries.
        of_manifest: digest of the sealed bytes of packages, by that of their manifest.
    """
    stated: dict[str, str] = {}
    for body, word in product(bodies, (_MANIFEST, _BYTES)):
        if DIGEST.fullmatch(str(body.get(word))):
            stated.setdefault(word, str(body[word]))
    if sealed := of_manifest.get(stated.get(_MANIFEST)):
        stated.setdefault(_BYTES, sealed)
    return stated


def _as_said(proof: Proof, bodies: Iterable[Mapping[str, Any]], stated: Mapping[str, str]) -> Proof:
    """Return a draw with the budget group and the bytes that it is said to have, if it is."""
    groups = (body["family"] for body in bodies if body.get("family"))
    family = proof.family or next((group for group in groups if isinstance(group, str)), None)
    sealed, manifest = stated.get(_BYTES), stated.get(_MANIFEST)
    state = ReleaseState.PUBLISHED if manifest else ReleaseState.SEALED
    state = state if sealed else proof.state
    return replace(proof, family=family, state=state, sealed=sealed, manifest=manifest)


def _charges_on_cards(ours: AbstractSet[str], packages: Iterable[Trace]) -> set[str]:
    """Return the charges of a release that its cards state, of packages that this ledger made.

    Args:
        ours: digests of entries and of sealed bytes.
        packages: of the release.
    """
    stated = [(stated_by(trace.path).entries, trace.sealed) for trace in packages]
    return {c for charges, sealed in stated if ours & {sealed, *charges} for c in charges}
