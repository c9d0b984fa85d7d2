"""Where the approval of a release stands: the ledger's decisions, put to the one rule.

The question, the page and the steps ask here. What an orchestrator's operators mark, skip or clear
is not looked at.
"""

from __future__ import annotations

from turnstile.errors import NotApproved, TurnstileError
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.weeks import Standing
from turnstile.pipeline.context import Release
from turnstile.pipeline.draw.sealed_release import sealed_attempt
from turnstile.programme.approval_rule import ApprovalStanding, approval_standing
from turnstile.programme.people import holders
from turnstile.programme.spec import Programme
from turnstile.settings import Settings


def approve(release: Release) -> str:
    """Check the approvals in the ledger.

    Raises:
        NotApproved: the programme asks for more people than have said yes.
    """
    sealed_attempt(release)
    require_approval(release.ledger, release.key, release.programme, release.settings)
    return "approved" if release.programme.approval.required else "not required"


def standing_of(
    ledger: Ledger,
    key: ReleaseKey,
    programme: Programme,
    settings: Settings,
    started_by: frozenset[str] = frozenset(),
) -> ApprovalStanding:
    """Judge what was decided about the bytes that are sealed under a key.

    Args:
        ledger: holds the decisions.
        key: of the release.
        programme: says how many people, in which role.
        settings: where the people are named.
        started_by: everybody known to have set the release going, beside whom the ledger names.

    Raises:
        TurnstileError: nothing is sealed.
    """
    attempt = ledger.revision(key).sealed
    if attempt is None:
        raise TurnstileError(f"{key}: nothing is sealed; there is nothing to approve")
    return approval_standing(
        (d for d in ledger.approvals(key) if d.artefact_digest == attempt.artefact_digest),
        programme.approval,
        holders(programme.approval.role, settings.include),
        started_by | maker_of_correction(ledger, key),
    )


def maker_of_correction(ledger: Ledger, key: ReleaseKey) -> frozenset[str]:
    """Return who made a correction by hand (`turnstile run --revision`); nobody otherwise.

    People who allowed it by their decisions in the ledger made none: as many had to agree.
    """
    said = ledger.decisions_on_revision(key)
    if key.revision == 0 or any(word.is_allowed for word in said):
        return frozenset()
    reserved = (e for e in ledger.entries_of(key) if e.kind is EntryKind.RESERVED)
    return frozenset(str(e.body["approver"]) for e in reserved if e.body.get("approver"))


def require_approval(
    ledger: Ledger, key: ReleaseKey, programme: Programme, settings: Settings
) -> None:
    """Refuse to go on before enough people, in the right role, approved the sealed bytes.

    Raises:
        NotApproved: the programme asks for people and they have not all said yes.
    """
    if not programme.approval.required or ledger.revision(key).standing is Standing.PUBLIC:
        return
    standing = standing_of(ledger, key, programme, settings)
    if not standing.is_approved:
        role = programme.approval.role
        raise NotApproved(
            f"{key} stays embargoed and charged: {standing} (role {role}); clear the task that "
            "asks, or run the step again once they have said yes"
        )
