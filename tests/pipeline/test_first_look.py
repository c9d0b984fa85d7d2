"""What is refused before anything is read, and an audit of what is not published."""

from __future__ import annotations

import pytest
from small_deployment import WEEK, Deployment

from turnstile.errors import TurnstileError
from turnstile.pipeline import steps
from turnstile.pipeline.context import Release, open_release
from turnstile.pipeline.ledger_preview import refusal_before_reading


def _sealed(programme: str) -> Release:
    """Seal made-up bytes."""
    release = open_release(programme, WEEK)
    release.folders.private.mkdir(parents=True, exist_ok=True)
    (release.folders.private / "snapshot").write_text("made up")
    attempt = release.ledger.reserve(release.request(release.statement))
    release.ledger.begin_draw(attempt.attempt_id, attempt.bindings)
    release.ledger.seal(attempt.attempt_id, "ab" * 32)
    return release


def _refusal(name: str, week: str = WEEK) -> TurnstileError | None:
    release = open_release(name, week)
    return refusal_before_reading(release.ledger, release.programme, release.plan, release.settings)


def test_a_programme_that_another_one_excludes_is_reported_which_stands_in_the_way(
    deployment: Deployment,
) -> None:
    deployment.edit("opal_trip", "slot_minutes: 15", "slot_minutes: 240")
    assert _refusal("opal_trip") is None
    _sealed("opal")
    refusal = _refusal("opal_trip")
    assert "in the way, of the same budget group opal_cards: opal" in str(refusal)
    assert not (deployment.home / "private/opal_trip").exists()
    assert _refusal("opal") is None  # sealed: re-issued, not asked for again
    assert _refusal("opal", "2016-W31") is None


def test_files_of_another_budget_group_are_refused_before_anything_is_read(
    deployment: Deployment,
) -> None:
    deployment.edit("opal_trip", "slot_minutes: 15", "slot_minutes: 240")
    deployment.edit("opal_trip", "family: opal_cards", "family: other_cards")
    assert _refusal("opal_trip") is None  # nobody has released from them yet
    _sealed("opal")
    refusal = _refusal("opal_trip")
    assert "turnstile ledger admit-family other_cards" in str(refusal)
    assert not (deployment.home / "private/opal_trip").exists()
    with pytest.raises(TurnstileError, match="admit-family"):
        _sealed("opal_trip")
    landing = open_release("opal", WEEK).programme.source.landing
    deployment.ledger.admit_family(landing, "other_cards", "olga", "other people")
    assert _refusal("opal_trip") is None


def test_what_a_first_look_refuses_is_refused_by_the_reservation_too(
    deployment: Deployment,
) -> None:
    deployment.edit("opal_trip", "slot_minutes: 15", "slot_minutes: 240")
    _sealed("opal")
    with pytest.raises(TurnstileError):
        _sealed("opal_trip")


def test_an_audit_of_a_week_that_is_not_published_fails_and_says_why(
    deployment: Deployment,
) -> None:
    assert deployment.nothing_happened()
    with pytest.raises(TurnstileError, match=r"r0 is not published \(never reserved\)"):
        steps.audit("opal", WEEK)
    _sealed("opal")
    with pytest.raises(TurnstileError, match=r"not published \(sealed\): a task before was marked"):
        steps.audit("opal", WEEK)
