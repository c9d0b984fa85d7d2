"""The last step: does all that is public of a release agree with the ledger?"""

from __future__ import annotations

from turnstile.errors import IntegrityError, TurnstileError
from turnstile.ledger.verification import Scope
from turnstile.pipeline.context import Release
from turnstile.release.zones import digest_of


def audit(release: Release) -> str:
    """Recompute the ledger and the published bytes.

    Raises:
        IntegrityError: anything disagrees.
        TurnstileError: the key is not published; whatever ran before, nothing of it is public.
    """
    if not release.ledger.is_published(release.key):
        attempt = release.ledger.find(release.key)
        state = "never reserved" if attempt is None else attempt.state_name
        raise TurnstileError(
            f"{release.key} is not published ({state}): a task before was marked or skipped by "
            "hand; clear the run from the first task that did not do its work"
        )
    findings = release.ledger.verify(Scope(packages=frozenset({str(release.key)})))
    outcome = "failed" if findings else "passed"
    report = "\n".join(str(finding) for finding in findings)
    release.ledger.record_audit(
        release.key, outcome=outcome, report_digest=digest_of(report.encode())
    )
    if findings:  # more than the first: whoever mends one an audit would end where it began
        named = "\n".join(str(finding) for finding in findings[:20])
        raise IntegrityError(f"{release.key}: {named}; run turnstile ledger verify")
    return outcome
