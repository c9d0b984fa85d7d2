"""Through how many modules an assessment goes, and that what it needs is handed in once."""

from __future__ import annotations

import pytest
from deployment_fixtures import BegunWeek
from house_entered import entered
from small_deployment import WEEK

from turnstile.assessment.assessment import assess_release
from turnstile.ledger.database.store import Store
from turnstile.pipeline.assessing import assess
from turnstile.pipeline.context import Release, open_release
from turnstile.pipeline.draw.drawn_release import drawn_of
from turnstile.pipeline.draw.sealed_release import sealed_attempt
from turnstile.pipeline.evidence import evidence_of

ROOMS = ("assessment", "pipeline")
MODULES_AT_MOST = 40


@pytest.fixture
def sealed(begun_week: BegunWeek) -> Release:
    """A week of `itms` that is drawn and not assessed."""
    begun_week("itms", "assess")
    return open_release("itms", WEEK)


def test_an_assessment_enters_so_many_modules(sealed: Release) -> None:
    modules = {name for name in entered(lambda: assess(sealed)) if name.startswith(ROOMS)}
    assert {"pipeline/assessing", "pipeline/evidence", "assessment/assessment"} <= modules
    assert len(modules) <= MODULES_AT_MOST, sorted(modules)


def test_what_it_needs_is_handed_in_once(sealed: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between evidence and report nothing of the release or of the ledger is read."""
    drawn, evidence = drawn_of(sealed, sealed_attempt(sealed)), evidence_of(sealed)
    assert evidence.charged

    def lost(*_: object) -> None:
        raise AssertionError("the ledger is read again")

    monkeypatch.setattr(Store, "read", lost)
    sealed.folders.embargoed.rename(sealed.folders.embargoed.with_name("gone"))
    assert assess_release(drawn, evidence).passed
    with pytest.raises(AssertionError, match="read again"):
        evidence_of(sealed)
