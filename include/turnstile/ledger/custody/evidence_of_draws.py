"""What files outside of the ledger prove that was drawn, as declared losses. Decides nothing.

A package or staged package proves its plan, its sealed digest and its manifest; a sealed file
beside a plan proves that plan. Charged is the plan's own loss, once for every draw that the card
states and the ledger does not hold; of a draw of another plan as much as the card, or a plan beside
the file that it left, states of it, where that is more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from turnstile.durable_files import SEALED, SET_ASIDE, sealed_name, sha256_of
from turnstile.errors import InputError
from turnstile.ledger.balances.amounts import COORDINATES
from turnstile.ledger.custody.folders import content_of
from turnstile.ledger.custody.package_files import file_problems
from turnstile.ledger.custody.traces import CARD, Trace, TraceKind, by_key, sealed_file
from turnstile.ledger.encoding import canonical, decode_event, decode_posting, encode_posting
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.promise import plan_digest
from turnstile.ledger.records import MOST, ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.privacy.accounts import Posting, postings
from turnstile.service_calendar import parse_period

PLAN = "plan.json"
KEPT_PLAN = "plan-"
"""Begin of the name of a plan that is kept for bytes, beside those that are set aside."""
UNKNOWN = "unknown"
"""Snapshot digest of a declared loss: which files it was counted from is lost. And what a draw of
another plan was bound to, of which a card states the loss alone."""
_RESTORE = "restore the package, or move it out of the zone, then recover again"
MALFORMED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
DIGEST = re.compile("[0-9a-f]{64}")
_OF_A_PLAN = ("programme_digest", "domain_digest", "plan_digest")
DIED_AT_MOST = 1000  # draws of one release; a card that states more is none of ours
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
        at_least: losses of its draws that are known otherwise than by their plan.
        files: commitments to the files that it was counted from, where an entry states them.
    """

    key: ReleaseKey
    state: ReleaseState
    draws: int
    leftovers: tuple[str, ...]
    sealed: str | None
    manifest: str | None
    plan: Mapping[str, Any]
    family: str | None
    at_least: tuple[Posting, ...] = ()
    files: tuple[str, ...] = ()

    def body(self, family: str, number: int, said: tuple[str, str]) -> dict[str, Any]:
        """Return the body of the `loss_declared` entry.

        Args:
            family: budget group to charge.
            number: of the attempt at the key.
            said: person and reason.
        """
        losses = _covering((*_losses_of(self.plan), *self.at_least))
        weeks = [str(week) for week in parse_period(self.key.period).weeks]
        body: dict[str, Any] = {
            "attempt": f"{self.key}#{number}",
            "key": str(self.key),
            "family": family,
            "week": weeks[-1],
            "programme_digest": self.plan["programme_digest"],
            "domain_digest": self.plan["domain_digest"],
            "snapshot_digest": UNKNOWN,
            "plan_digest": self.plan["plan_digest"],
            "events": list(self.plan["events"]),
            "postings": [encode_posting(p) for p in losses],
            "state": self.state.value,
            "draws": self.draws,
            "artefact_digest": self.sealed,
            "manifest_digest": self.manifest,
            "person": said[0],
            "reason": said[1],
        }
        if self.leftovers:  # another machine may have others
            body["leftovers"] = list(self.leftovers)
        if self.files:
            body["files"] = list(self.files)
        if len(weeks) > 1:
            body["first_week"] = weeks[0]
        return body


class OtherDraws(NamedTuple):
    """Draws of another plan than the package's, as its card states them.

    Args:
        entry: digest of the one that charged them; None on old cards.
        draws: how many.
        losses: of one of them.
    """

    entry: str | None
    draws: int
    losses: tuple[Posting, ...]


@dataclass(frozen=True, slots=True)
class Stated:
    """What the card of a package states of draws.

    Args:
        died: how many, beside the one whose bytes the package has.
        entries: digests of those by which the ledger that made it charged them; none of old cards.
        others: those among them that had another plan.
        family: budget group.
        built_at: day of the package.
    """

    died: int
    entries: frozenset[str]
    others: tuple[OtherDraws, ...]
    family: str | None
    built_at: str


def stated_by(package: Path) -> Stated:
    """Read what a card states of draws.

    Raises:
        InputError: it cannot be read, so that the loss is unknown.
    """
    try:
        card = json.loads(content_of(package / CARD))
        died, charges = int(card.get("burned_draws") or 0), card.get("charges", ())
        entries = frozenset(str(c["entry_sha256"]) for c in charges if "entry_sha256" in c)
        others = tuple(_other_draws(charge) for charge in charges if "postings" in charge)
        family = next((str(line["family"]) for line in card.get("cumulative", ())), None)
        if not 0 <= died <= DIED_AT_MOST:
            raise ValueError("no number of draws")
        built_at = str(card.get("built_at") or "")
    except (OSError, *MALFORMED):
        rule = f"its {CARD} cannot be read; {_RESTORE}"
        raise InputError(where=str(package), field="package", rule=rule) from None
    return Stated(died, entries, others, family, built_at)


def _other_draws(charge: Mapping[str, Any]) -> OtherDraws:
    """Read draws of another plan.

    Raises:
        ValueError: or another error of malformed content; the ledger cannot add the amounts up.
    """
    entry, draws = charge.get("entry_sha256"), charge["draws"]
    losses = tuple(decode_posting(written) for written in charge["postings"])
    finite = [figure for loss in losses for figure in _figures(loss) if figure is not None]
    if any(type(number) is not int for number in (draws, *finite)) or draws < 1:
        raise ValueError("no number")
    if any(not 0 <= figure * draws <= MOST for figure in finite):
        raise ValueError("an amount that the ledger cannot add up")
    if any(type(loss.scope) is not str or loss.delta_femto is None for loss in losses):
        raise ValueError("no account")
    return OtherDraws(None if entry is None else str(entry), draws, losses)


def _figures(loss: Posting) -> list[int | None]:
    return [getattr(loss, name) for name in COORDINATES]


def _covering(losses: Iterable[Posting]) -> list[Posting]:
    """Return for each account at least what each of its losses is."""
    most: dict[tuple[str, str], Posting] = {}
    for loss in losses:
        account = (loss.unit.value, loss.scope)
        pairs = zip(_figures(most.get(account, loss)), _figures(loss), strict=True)
        figures = (None if a is None or b is None else max(a, b) for a, b in pairs)
        most[account] = decode_posting([*account, *figures])
    return [most[account] for account in sorted(most)]


def charged_by(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return the last entry that says of an attempt that it is charged, by attempt.

    It stands for its draws and no others: of a hold, and of a charge that was not started, two
    copies of a ledger may each draw.
    """
    return {str(entry.attempt_id): entry for entry in entries if entry.kind in CHARGING}


def names_of(charge: Entry) -> set[str]:
    """Return the digests by which a card may name a charge: of entries that it stands for, too."""
    named = charge.body.get("stands_for") if charge.kind is EntryKind.LOSS_DECLARED else None
    words = named if isinstance(named, list) else ()
    return {charge.hash, *(w for w in words if isinstance(w, str) and DIGEST.fullmatch(w))}


def plan_on(package: Trace) -> str:
    """Return the digest of the plan that a package was drawn under, as its events have it.

    Raises:
        InputError: the plan is not what it says.
    """
    return str(plan_in(package.path / PLAN, package.key)["plan_digest"])


def proof_in_entries(key: str, bodies: Iterable[Mapping[str, Any]]) -> Proof | None:
    """Return what entries state of a draw's cost; None if what opened it is lost.

    Args:
        key: of the release.
        bodies: of the entries.
    """
    opened = [proof for body in bodies if (proof := _opened(key, body)) is not None]
    if not opened:
        return None
    losses = (loss for proof in opened for loss in (*proof.at_least, *_losses_of(proof.plan)))
    draws = max(proof.draws for proof in opened)
    return replace(opened[0], draws=draws, at_least=tuple(losses))


def _opened(key: str, body: Mapping[str, Any]) -> Proof | None:
    """Read what an entry states of a draw's cost; None if it states none that can be charged.

    It continues no chain: somebody may have put it there.
    """
    try:
        plan = {word: body[word] for word in ("events", *_OF_A_PLAN)}
        leftovers, files = (tuple(map(str, body.get(w, ()))) for w in ("leftovers", "files"))
        words = (family := body["family"], body["postings"], leftovers, files)
        canonical([plan, *words]).encode()
        plan = _checked({**plan, "programme": key.partition("/")[0]}, ReleaseKey.parse(key))
        losses = [*body["postings"], *map(encode_posting, _losses_of(plan))]
        stated = _other_draws({"draws": body.get("draws", 1), "postings": losses})
    except (InputError, *MALFORMED):
        return None
    named = family if family and isinstance(family, str) else None
    died = _died(key, plan, stated.losses)
    return replace(died, draws=stated.draws, leftovers=leftovers, family=named, files=files)


def proofs(
    all_traces: Iterable[Trace], held: Callable[[Trace], Mapping[str, int]]
) -> tuple[Proof, ...]:
    """Return what traces prove, the strongest of each release: package, staged, sealed file.

    Args:
        all_traces: of draws that the ledger does not hold.
        held: returns draws that it charged and that the card of a package states, too, by entry.

    Raises:
        InputError: a trace cannot be read, so that its loss is unknown.
    """
    of_keys = sorted(by_key(all_traces).items())
    return tuple(p for key, traces in of_keys for p in _proofs(key, traces, held))


def _proofs(
    key: str, traces: list[Trace], held: Callable[[Trace], Mapping[str, int]]
) -> Iterator[Proof]:
    """Yield what the traces of one release prove."""
    public = next((trace for trace in traces if trace.kind is TraceKind.PACKAGE), None)
    staged = next((trace for trace in traces if trace.kind is TraceKind.STAGED), None)
    files = [trace for trace in traces if trace.kind is TraceKind.SEALED]
    drawn = {trace.file: trace for trace in traces if trace not in {public, staged}}
    best, a_file = public or staged, next(iter(drawn.values()), traces[0])
    is_sealed = best is None and len(files) == 1 and _is_named_rightly(files[0].path)
    sealed = sealed_file(best.sealed) if best is not None else files[0].file if is_sealed else ""
    leftovers, folder = tuple(sorted(drawn.keys() - {sealed})), a_file.folder or a_file.path.parent
    losses = tuple(_losses_of_plans(folder, key)) if leftovers else ()
    if best is not None:
        yield from _of_package(best, leftovers, losses, held(best))
        return
    plan = plan_in(plan_of(folder, files[0].file) if is_sealed else folder / PLAN, key)
    beside = replace(
        _died(key, plan),
        state=ReleaseState.SEALED if is_sealed else ReleaseState.BURNED,
        draws=len(drawn),
        leftovers=leftovers,
        sealed=sha256_of(files[0].path) if is_sealed else None,
    )
    if not _is_of_another(plan, losses):
        yield beside
        return
    yield _burned(beside, len(leftovers), losses)
    if is_sealed:
        yield replace(beside, draws=1, leftovers=())


def _losses_of_plans(folder: Path, key: str) -> Iterator[Posting]:
    """Yield what draws cost under each plan of a release that is beside bytes, or was."""
    for path in (folder / PLAN, *(folder / SET_ASIDE).glob(f"{KEPT_PLAN}*")):
        if path.exists():
            yield from _losses_of(plan_in(path, key))


def _losses_of(plan: Mapping[str, Any]) -> tuple[Posting, ...]:
    return postings([decode_event(event) for event in plan["events"]])


def by_plan(embargoed: Path | None, key: str) -> Proof | None:
    """Return what a draw cost of which nothing else is left but plans; None without one.

    Args:
        embargoed: zone, if there is one.
        key: of the release.

    Raises:
        InputError: a plan is not what it says.
    """
    folder = None if embargoed is None else embargoed / key
    if folder is None or not (folder / PLAN).exists():
        return None
    return _died(key, plan_in(folder / PLAN, key), tuple(_losses_of_plans(folder, key)))


def _died(key: str, plan: Mapping[str, Any], losses: tuple[Posting, ...] = ()) -> Proof:
    """Return what a draw proves of which no bytes are known."""
    return Proof(
        key=ReleaseKey.parse(key),
        state=ReleaseState.BURNED,
        draws=1,
        leftovers=(),
        sealed=None,
        manifest=None,
        plan=plan,
        family=None,
        at_least=losses,
    )


def _is_of_another(plan: Mapping[str, Any], losses: Iterable[Posting]) -> bool:
    return not set(losses) <= set(_losses_of(plan))


def _of_package(
    trace: Trace,
    leftovers: tuple[str, ...],
    losses: tuple[Posting, ...],
    held: Mapping[str, int],
) -> Iterator[Proof]:
    """Yield what a package proves, draws of other plans first; it has to be intact."""
    problems = file_problems(trace.path)
    if problems or trace.sealed is None:
        what = problems[0] if problems else "its manifest names another release"
        rule = f"{what}; {_RESTORE}"
        raise InputError(where=str(trace.path), field="package", rule=rule)
    stated, plan = stated_by(trace.path), plan_in(trace.path / PLAN, trace.key)
    is_public = trace.kind is TraceKind.PACKAGE
    died = max(stated.died - sum(held.values()), 0)
    others = stated.others
    if len(leftovers) > died:  # files beyond the draws that the card states
        others = (OtherDraws(None, len(leftovers) - died, losses), *others)
        died = len(leftovers)
    package = Proof(
        key=ReleaseKey.parse(trace.key),
        state=ReleaseState.PUBLISHED if is_public else ReleaseState.SEALED,
        draws=1,
        leftovers=(),
        sealed=trace.sealed,
        manifest=trace.manifest if is_public else None,
        plan=plan,
        family=stated.family,
    )
    for other in others:
        draws = 0 if other.entry in held else min(other.draws, died)
        if draws and _is_of_another(plan, other.losses):
            died -= draws
            yield _burned(package, draws, other.losses)
    yield replace(package, draws=1 + died, leftovers=leftovers)


def _burned(package: Proof, draws: int, losses: tuple[Posting, ...]) -> Proof:
    """Return draws of another plan, which cost at least what is known, and the package's plan."""
    bound, key = (UNKNOWN, UNKNOWN), package.key
    digest = plan_digest(*bound, key.period, key.revision, package.plan["events"])
    return replace(
        package,
        state=ReleaseState.BURNED,
        draws=draws,
        sealed=None,
        manifest=None,
        plan={**package.plan, **dict(zip(_OF_A_PLAN, (*bound, digest), strict=True))},
        at_least=losses,
    )


def _is_named_rightly(path: Path) -> bool:
    """Return whether a sealed file holds the bytes that its name states."""
    return path.name == sealed_name(sha256_of(path))


def earlier_plan(folder: Path, file: str) -> Path:
    """Name the file that keeps the plan of a draw's bytes once its week is planned anew.

    Args:
        folder: of the release under embargo.
        file: of the bytes, without its ending.
    """
    return folder / SET_ASIDE / f"{KEPT_PLAN}{file.removeprefix(SEALED)}.json"


def plan_of(folder: Path, file: str) -> Path:
    """Return the plan under which bytes were drawn: what was kept for them, or the last one."""
    kept = earlier_plan(folder, file)
    return kept if kept.exists() else folder / PLAN


def plan_in(path: Path, key: str) -> dict[str, Any]:
    """Read the plan beside a trace, and check that it is the release's own.

    Raises:
        InputError: it is missing, or is not what it says.
    """
    try:
        return _checked(json.loads(content_of(path)), ReleaseKey.parse(key))
    except (OSError, ValueError, KeyError, TypeError):
        rule = "the plan is missing or is not the release's; restore it, then recover again"
        raise InputError(where=str(path), field="plan", rule=rule) from None


def _checked(plan: dict[str, Any], key: ReleaseKey) -> dict[str, Any]:
    """Return a plan that is what it says.

    Raises:
        ValueError: it is not; or another error of malformed content.
    """
    bound = (plan["programme_digest"], plan["domain_digest"])
    digest = plan_digest(*bound, key.period, key.revision, plan["events"])
    if plan["plan_digest"] != digest or plan["programme"] != key.programme:
        raise ValueError("another plan")
    if any(type(word) is not str for word in bound):
        raise ValueError("no digest")
    return plan
