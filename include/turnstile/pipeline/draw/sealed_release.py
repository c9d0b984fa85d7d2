"""The seal of a release, if it was made under the present promise."""

from __future__ import annotations

from dataclasses import replace

from turnstile.errors import TurnstileError
from turnstile.ledger.records import Attempt
from turnstile.ledger.refusals import revision_needed
from turnstile.pipeline.draw.planned_release import PlannedRelease


def sealed_attempt(release: PlannedRelease) -> Attempt:
    """Return the sealed attempt, made under the present promise.

    Raises:
        TurnstileError: nothing is sealed yet.
        RevisionNeeded: what decides its loss or its cells changed since.
    """
    attempt = release.sealed
    if attempt is None:
        raise TurnstileError(f"{release.key}: nothing is sealed; run the step draw first")
    present = replace(
        attempt.bindings,
        programme_digest=release.programme.digest,
        domain_digest=release.domain.digest,
    )
    differences = release.ledger.differences(attempt, present, release.terms)
    if differences:
        raise revision_needed(attempt, differences)
    return attempt
