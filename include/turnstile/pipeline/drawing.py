"""Reserve and draw: charge before draw, one sealed byte string for a key (PRIVACY 6).

The draw reads exact tables that were counted and sealed before, so the time between charge and
seal holds nothing but the noise itself and one file.
"""

from __future__ import annotations

import contextlib
import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import date
from pathlib import Path

from turnstile.durable_files import exclusively
from turnstile.errors import IntegrityError, RefusedError
from turnstile.ledger.encoding import encode_event
from turnstile.ledger.records import Attempt, Bindings, Request
from turnstile.pipeline.code_version import code_version
from turnstile.pipeline.context import Release, revision_statement
from turnstile.pipeline.inputs import current_snapshot, recorded
from turnstile.pipeline.ledger_caps import ledger_cap
from turnstile.pipeline.preflight import require_preflight
from turnstile.pipeline.publishable import package_space
from turnstile.pipeline.year_state import carried_keys, multiplied, require_state
from turnstile.privacy.events import DrawEvent
from turnstile.programme.terms import binding_terms
from turnstile.release.sealed import Artefact, NoisyTable, day_of_draw, encode
from turnstile.release.zones import commitment, digest_of, write_once
from turnstile.sources.stated_gaps import stated_gaps

_DRAWING_THREADS = 2


def reserve(release: Release) -> str:
    """Hold the planned loss in the ledger and return the attempt's name.

    Raises:
        BudgetExceeded: a cap would be passed.
        RefusedError: what needs no sealed byte would stop the release after its charge.
        RevisionNeeded: the key is bound to other inputs or to another programme.
        RefusedError: a week that its draws carry along was made under another promise, or is gone.
    """
    if release.sealed is not None:
        return "sealed"
    require_state(release)
    with _alone(release):
        require_preflight(release)
        return _reserved(release).attempt_id


def draw(release: Release) -> str:
    """Charge, draw, store and seal; return the digest of the sealed bytes.

    A key that is sealed answers with its digest and draws nothing. An attempt that died while
    drawing is burned and charged again, in full.

    Raises:
        RefusedError: the reservation is refused.
        IntegrityError: plan and mechanism disagree on the loss, or the exact tables were altered.
    """
    sealed = release.sealed
    if sealed is not None and sealed.artefact_digest is not None:
        return sealed.artefact_digest
    with _alone(release):
        require_preflight(release)  # programme or code may be others than when it was reserved
        attempt = _reserved(release)
        if attempt.is_sealed and attempt.artefact_digest is not None:
            return attempt.artefact_digest
        return _drawn(release, attempt)


def _drawn(release: Release, attempt: Attempt) -> str:
    """Draw under a reservation. Nothing before `begin_draw` costs, everything after it does."""
    from turnstile.counting.exact_store import load_exact
    from turnstile.privacy.mechanisms.dense import agree
    from turnstile.privacy.mechanisms.dispatch import draw as draw_one

    events = release.plan.events
    for event in {_shape(event): event for event in events}.values():
        agree(event)
    exact = load_exact(release.folders.private, recorded(release, "exact", step="count"))
    if [table.label for table in exact] != [_exact_label(event) for event in events]:
        raise IntegrityError(f"{release.key}: exact tables are not the planned ones; count again")
    carried = carried_keys(release)
    counts, gaps = multiplied(release, carried, exact), stated_gaps_of(release)
    release.copies.require_writable()
    release.ledger.begin_draw(
        attempt.attempt_id,
        _bindings(release),
        space=package_space(release),
        code=code_version(),
    )
    _set_leftovers_aside(release)
    largest_first = sorted(range(len(events)), key=lambda at: -counts[at].size)  # both end at once
    with ThreadPoolExecutor(_DRAWING_THREADS) as threads:
        vectors = threads.map(lambda at: draw_one(events[at], counts[at]), largest_first)
        by_event = dict(zip(largest_first, vectors, strict=True))
    drawn = tuple(
        NoisyTable(event.table, event.statistic, day_of_draw(event), by_event[at])
        for at, event in enumerate(events)
    )
    content = encode(Artefact(drawn, gaps, tuple(map(str, carried))))
    digest = digest_of(content)
    sealed = release.folders.embargoed / f"sealed-{digest[:16]}.parquet"
    write_once(sealed, content)
    release.copies.keep(is_charged=True)
    try:
        release.ledger.seal(attempt.attempt_id, digest)
    except RefusedError:  # burned meanwhile: another draw has the key
        _set_aside(release, sealed)  # that draw may have moved it as a leftover
        raise
    release.say("noise drawn once, bytes sealed")
    return digest


def _set_leftovers_aside(release: Release) -> None:
    """Transition what a draw wrote that died before its seal: charged, burned, never to be used.

    While this draw has the key, nothing of it is sealed. Nothing is ever removed on the way to a
    draw: should the ledger be wrong, the bytes are still there.
    """
    folder = release.folders.embargoed
    for leftover in (*folder.glob("sealed-*"), *folder.glob("package")):
        _set_aside(release, leftover)


def _set_aside(release: Release, leftover: Path) -> None:
    """Transition one file or folder of a draw that died, unless another draw did already."""
    aside = release.folders.embargoed / "set-aside"
    aside.mkdir(exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        leftover.rename(aside / f"{leftover.name}.{secrets.token_hex(4)}")
        release.say(f"{leftover.name} of a draw that died was moved to {aside.name}")


def stated_gaps_of(release: Release) -> tuple[date, ...]:
    """Return the service days that are stated as gaps, from names of files and declared days."""
    names = (name for name, _ in current_snapshot(release).files)
    return stated_gaps(release.programme.source, release.week, names)


def _alone(release: Release) -> AbstractContextManager[object]:
    """Keep a second process on this machine from taking a live draw for a dead one."""
    return exclusively(release.folders.private / ".draw.lock")


def _shape(event: DrawEvent) -> tuple[object, ...]:
    """Return what a mechanism is made from, to check each kind of draw once."""
    return (event.noise, event.scale, event.sensitivities, event.threshold)


def _exact_label(event: DrawEvent) -> tuple[str, str, date | None]:
    """Name the exact table that a draw reads."""
    return event.table, event.statistic, day_of_draw(event)


def _reserved(release: Release) -> Attempt:
    """Reserve, after letting go of a hold whose inputs have changed before anything was drawn."""
    request = _request(release)
    found = release.ledger.find(release.key)
    promised = (request.bindings, request.plan_digest)
    if found is not None and found.is_held and (found.bindings, found.plan_digest) != promised:
        release.ledger.void(found.attempt_id, "inputs changed before anything was drawn")
    return release.ledger.reserve(request)


def _bindings(release: Release) -> Bindings:
    """Return the digests that a key is bound to."""
    return Bindings(
        programme_digest=release.programme.digest,
        domain_digest=release.domain.digest,
        snapshot_digest=commitment(release.settings, recorded(release, "snapshot", step="ingest")),
    )


def _request(release: Release) -> Request:
    """Return what the ledger has to know."""
    planned = release.plan
    reason, approver = revision_statement(release)
    return Request(
        key=release.key,
        family=planned.family,
        bindings=_bindings(release),
        plan_digest=planned.digest,
        events=tuple(encode_event(event) for event in planned.events),
        postings=planned.postings,
        week=str(planned.charged_in),
        first_week=str(release.week.weeks[0]),
        landing=release.programme.source.landing,
        terms=binding_terms(release.programme, release.week),
        caps=tuple(ledger_cap(cap) for cap in release.programme.caps),
        reason=reason,
        approver=approver,
    )
