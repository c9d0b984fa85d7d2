"""The history of releases: what is in force, open, public, from rows and from entries alike."""

from __future__ import annotations

import pytest
from ledger_asks import LOSS_MICRO, TRIP, ask, drawn, published, sealed

from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.revisions import RevisionDecision
from turnstile.ledger.weeks import Standing, Week, WeekState
from turnstile.operations.ledger_snapshot import LedgerFollower

WEEK = "2016-W30"
WIDE = (Cap(TRIP, epsilon_micro=9 * LOSS_MICRO),)
FIRST, SECOND = ReleaseKey("opal", WEEK), ReleaseKey("opal", WEEK, 1)


def allowed(ledger: Ledger) -> None:
    word = RevisionDecision(SECOND, True, "ada", "release_officer", "late", "files")
    ledger.decide_on_revision(word)


def history(ledger: Ledger) -> Week:
    """The week as rows tell it; entries alone must tell the same."""
    week = ledger.week("opal", WEEK)
    assert LedgerFollower(ledger).now().weeks_of("opal").get(WEEK, Week(WEEK)) == week
    return week


def standing(ledger: Ledger) -> tuple[Standing, int]:
    """How far the first revision came, and how many attempts another run would go on with."""
    week = history(ledger)
    return week.revision(0).standing, len(week.taken)


def test_a_week_goes_through_its_states(ledger: Ledger) -> None:
    assert history(ledger) == Week(WEEK)
    assert history(ledger).state is None
    assert standing(ledger) == (Standing.NOTHING, 0)
    held = ledger.reserve(ask(caps=WIDE))
    assert (history(ledger).state, history(ledger).is_open) == (WeekState.HELD, True)
    assert standing(ledger) == (Standing.HELD, 1)
    ledger.void(held.attempt_id, "files changed")
    assert (history(ledger).state, history(ledger).is_open) == (None, False)
    assert standing(ledger) == (Standing.NOTHING, 0)
    attempt = drawn(ledger, ask(caps=WIDE))
    assert standing(ledger) == (Standing.CHARGED, 1)
    ledger.burn(attempt.attempt_id, "died")
    assert (history(ledger).state, history(ledger).last_sealed) == (WeekState.CHARGED, None)
    assert standing(ledger) == (Standing.CHARGED, 0)
    sealed(ledger, ask(caps=WIDE))
    assert (history(ledger).state, history(ledger).last_sealed) == (WeekState.WITHHELD, 0)
    assert history(ledger).in_force is None
    assert standing(ledger) == (Standing.SEALED, 1)
    ledger.publish(FIRST, "m0")
    assert history(ledger).state is WeekState.PUBLISHED
    assert standing(ledger) == (Standing.PUBLIC, 1)
    allowed(ledger)
    published(ledger, ask(revision=1, caps=WIDE), "artefact-2")
    assert history(ledger).state is WeekState.REVISED
    assert [release.key for release in history(ledger).published] == [FIRST, SECOND]


def test_what_was_withdrawn_is_not_in_force(ledger: Ledger) -> None:
    published(ledger, ask())
    allowed(ledger)
    published(ledger, ask(revision=1), "artefact-2")
    ledger.withdraw(SECOND, "ada", "ben sent it", public_note="a wrong file")
    first = history(ledger).in_force
    assert first is not None
    assert (first.key, first.manifest_sha256) == (FIRST, "manifest of artefact-1")
    ledger.withdraw(FIRST, "ada", "both")
    assert (history(ledger).in_force, history(ledger).state) == (None, WeekState.WITHDRAWN)
    assert [
        release.withdrawn and release.withdrawn.public_note for release in history(ledger).published
    ] == [
        "",
        "a wrong file",
    ]


def test_a_correction_under_way_leaves_the_first_in_force(ledger: Ledger) -> None:
    published(ledger, ask())
    allowed(ledger)
    drawn(ledger, ask(revision=1))
    week = history(ledger)
    assert week.in_force is not None
    assert (week.in_force.key, week.state, week.is_open) == (FIRST, WeekState.PUBLISHED, True)


@pytest.mark.parametrize("is_correction", [True, False])
def test_that_a_correction_has_no_release_says_nothing_of_its_week(
    ledger: Ledger, *, is_correction: bool
) -> None:
    if is_correction:
        sealed(ledger, ask())
    ledger.declare_no_release(SECOND if is_correction else FIRST, "ana", "rejected")
    assert (history(ledger).no_release is None) == is_correction


@pytest.mark.parametrize("other", ["opalXyear", "opal", "opal_years"])
def test_a_programme_has_its_own_weeks_alone(ledger: Ledger, other: str) -> None:
    """An underscore is no wildcard, and a name no beginning of another."""
    published(ledger, ask(programme=other))
    assert not ledger.weeks("opal_year")
    assert set(ledger.weeks(other)) == {WEEK}
