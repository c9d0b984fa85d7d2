"""Whether the budget has room for the next correction of a release; asked before people are."""

from __future__ import annotations

from turnstile.errors import RefusedError, TurnstileError
from turnstile.ledger.records import Request
from turnstile.ledger.revisions import next_after
from turnstile.pipeline.context import Release
from turnstile.pipeline.ledger_caps import ledger_cap
from turnstile.release.plan import make_plan


def refusal_of_correction(release: Release) -> RefusedError | None:
    """Return how the ledger would refuse the next correction now, or None if it has room.

    Raises:
        TurnstileError: the release is not sealed.
    """
    correction, sealed = next_after(release.key), release.sealed
    number = correction.revision
    planned = make_plan(release.programme, release.domain, release.week, revision=number)
    if sealed is None:
        raise TurnstileError(f"{release.key} is not sealed; there is nothing to correct")
    request = Request(
        key=correction,
        family=planned.family,
        bindings=sealed.bindings,
        plan_digest=planned.digest,
        events=(),
        postings=planned.postings,
        week=str(planned.charged_in),
        first_week=str(release.week.weeks[0]),
        caps=tuple(ledger_cap(cap) for cap in release.programme.caps),
        reason="not reserved, only asked about",
        approver="nobody",
    )
    return release.ledger.refusal_of(request)
