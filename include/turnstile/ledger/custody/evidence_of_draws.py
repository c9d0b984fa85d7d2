"""What files outside of the ledger prove that was drawn, as declared losses. Decides nothing.

A package or staged package proves its plan, its sealed digest and its manifest; a sealed file
beside a plan proves that plan. Charged is the plan's own loss, once for every draw that the card
states and the ledger does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from turnstile.durable_files import sealed_name, sha256_of
from turnstile.errors import InputError
from turnstile.ledger.custody.folders import content_of
from turnstile.ledger.custody.package_files import file_problems
from turnstile.ledger.custody.traces import CARD, Trace, TraceKind, sealed_file
from turnstile.ledger.encoding import decode_event, encode_posting
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.promise import plan_digest
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.privacy.accounts import postings
from turnstile.service_calendar import parse_period

PLAN = "plan.json"
UNKNOWN_SNAPSHOT = "unknown"
"""Snapshot digest of a declared loss: which files it was counted from is lost."""
_RESTORE = "restore the package, or move it out of the zone, then recover again"
_MALFORMED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
_DIED_AT_MOST = 1000  # draws of one release; a card that states more is none of ours
CHARGING = (EntryKind.DRAW_BEGUN, EntryKind.DRAW_STARTED, EntryKind.LOSS_DECLARED)


@dataclass(frozen=True, slots=True)
class Proof:
    """One release that files prove.

    Args:
        key: release.
        state: published, sealed or burned.
        draws: how many draws are charged.
        leftovers: names of the files of draws among them whose bytes the key does not have.
        sealed: digest of the sealed bytes, unless burned.
        manifest: digest of the manifest, if published.
        plan: its plan, as published.
        family: budget group that its card names; None without a card.
    """

    key: ReleaseKey
    state: ReleaseState
    draws: int
    leftovers: tuple[str, ...]
    sealed: str | None
    manifest: str | None
    plan: Mapping[str, Any]
    family: str | None

    def body(self, family: str, number: int, said: tuple[str, str]) -> dict[str, Any]:
        """Return the body of the `loss_declared` entry.

        Args:
            family: budget group to charge.
            number: of the attempt at the key.
            said: person and reason.
        """
        events = tuple(decode_event(event) for event in self.plan["events"])
        weeks = [str(week) for week in parse_period(self.key.period).weeks]
        body: dict[str, Any] = {
            "attempt": f"{self.key}#{number}",
            "key": str(self.key),
            "family": family,
            "week": weeks[-1],
            "programme_digest": self.plan["programme_digest"],
            "domain_digest": self.plan["domain_digest"],
            "snapshot_digest": UNKNOWN_SNAPSHOT,
            "plan_digest": self.plan["plan_digest"],
            "events": list(self.plan["events"]),
            "postings": [encode_posting(p) for p in sorted(postings(events))],
            "state": self.state.value,
            "draws": self.draws,
            "artefact_digest": self.sealed,
            "manifest_digest": self.manifest,
            "person": said[0],
            "reason": said[1],
        }
        if self.leftovers:  # another machine may have others
            body["leftovers"] = list(self.leftovers)
        if len(weeks) > 1:
            body["first_week"] = weeks[0]
        return body


@dataclass(frozen=True, slots=True)
class Stated:
    """What the card of a package states of draws.

    Args:
        died: how many, beside the one whose bytes the package has.
        entries: digests of those by which the ledger that made it charged them; none of old cards.
        family: budget group.
    """

    died: int
    entries: frozenset[str]
    family: str | None


def stated_by(package: Path) -> Stated:
    """Read what a card states of draws.

    Raises:
        InputError: it cannot be read, so that the loss is unknown.
    """
    try:
        card = json.loads(content_of(package / CARD))
        died, charges = int(card.get("burned_draws") or 0), card.get("charges", ())
        entries = frozenset(str(c["entry_sha256"]) for c in charges if "entry_sha256" in c)
        family = next((str(line["family"]) for line in card.get("cumulative", ())), None)
        if not 0 <= died <= _DIED_AT_MOST:
            raise ValueError("no number of draws")
    except (OSError, *_MALFORMED):
        rule = f"its {CARD} cannot be read; {_RESTORE}"
        raise InputError(where=str(package), field="package", rule=rule) from None
    return Stated(died, entries, family)


def charged_by(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return the last entry that says of an attempt that it is charged, by attempt.

    It stands for its draws and no others: of a hold, and of a charge that was not started, two
    copies of a ledger may each draw.
    """
    return {str(entry.attempt_id): entry for entry in entries if entry.kind in CHARGING}


def proofs(all_traces: Iterable[Trace], held: Callable[[Trace], int]) -> tuple[Proof, ...]:
    """Return what traces prove, the strongest of each release: package, staged, sealed file.

    Args:
        all_traces: of draws that the ledger does not hold.
        held: returns how many draws it charged that the card of a package states, too.

    Raises:
        InputError: a trace cannot be read, so that its loss is unknown.
    """
    by_key: dict[str, list[Trace]] = {}
    for trace in all_traces:
        by_key.setdefault(trace.key, []).append(trace)
    return tuple(_proof(key, traces, held) for key, traces in sorted(by_key.items()))


def _proof(key: str, traces: list[Trace], held: Callable[[Trace], int]) -> Proof:
    """Return what the traces of one release prove."""
    public = next((trace for trace in traces if trace.kind is TraceKind.PACKAGE), None)
    staged = next((trace for trace in traces if trace.kind is TraceKind.STAGED), None)
    files = [trace for trace in traces if trace.kind is TraceKind.SEALED]
    drawn = {trace.file for trace in traces if trace not in {public, staged}}
    best = public or staged
    if best is not None:
        return _of_package(key, best, drawn - {sealed_file(best.sealed)}, held)
    folder = traces[0].folder or traces[0].path.parent
    is_sealed = len(files) == 1 and _is_named_rightly(files[0].path)
    return Proof(
        key=ReleaseKey.parse(key),
        state=ReleaseState.SEALED if is_sealed else ReleaseState.BURNED,
        draws=len(drawn),
        leftovers=tuple(sorted(drawn - ({files[0].file} if is_sealed else set()))),
        sealed=sha256_of(files[0].path) if is_sealed else None,
        manifest=None,
        plan=plan_beside(folder, key),
        family=None,
    )


def _of_package(
    key: str, trace: Trace, leftovers: AbstractSet[str], held: Callable[[Trace], int]
) -> Proof:
    """Return what a package proves; it has to be intact."""
    problems = file_problems(trace.path)
    if problems or trace.sealed is None:
        what = problems[0] if problems else "its manifest names another release"
        rule = f"{what}; {_RESTORE}"
        raise InputError(where=str(trace.path), field="package", rule=rule)
    stated = stated_by(trace.path)
    is_public = trace.kind is TraceKind.PACKAGE
    return Proof(
        key=ReleaseKey.parse(key),
        state=ReleaseState.PUBLISHED if is_public else ReleaseState.SEALED,
        draws=1 + max(stated.died - held(trace), len(leftovers)),
        leftovers=tuple(sorted(leftovers)),
        sealed=trace.sealed,
        manifest=trace.manifest if is_public else None,
        plan=plan_beside(trace.path, key),
        family=stated.family,
    )


def _is_named_rightly(path: Path) -> bool:
    """Return whether a sealed file holds the bytes that its name states."""
    return path.name == sealed_name(sha256_of(path))


def plan_beside(folder: Path, key: str) -> dict[str, Any]:
    """Read the plan beside a trace, and check that it is the release's own.

    Raises:
        InputError: it is missing, or is not what it says.
    """
    parsed = ReleaseKey.parse(key)
    try:
        plan: dict[str, Any] = json.loads(content_of(folder / PLAN))
        bound = (plan["programme_digest"], plan["domain_digest"])
        digest = plan_digest(*bound, parsed.period, parsed.revision, plan["events"])
        if plan["plan_digest"] != digest or plan["programme"] != parsed.programme:
            raise ValueError("another plan")
    except (OSError, ValueError, KeyError, TypeError):
        rule = "the plan is missing or is not the release's; restore it, then recover again"
        raise InputError(where=str(folder / PLAN), field="plan", rule=rule) from None
    return plan
