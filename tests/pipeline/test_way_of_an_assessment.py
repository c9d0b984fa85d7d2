"""Through how many modules an assessment goes, and that what it needs is handed in once."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

import pytest
from deployment_fixtures import STEADY_ITMS
from small_deployment import WEEK, Deployment

import turnstile
from turnstile.assessment.assessment import assess_release
from turnstile.ledger.store import Store
from turnstile.pipeline.assessing import assess
from turnstile.pipeline.context import Release, open_release
from turnstile.pipeline.drawn_release import drawn_of
from turnstile.pipeline.evidence import evidence_of
from turnstile.pipeline.sealed_release import sealed_attempt
from turnstile.pipeline.steps import step_named

HOUSE = Path(turnstile.__file__).parent
ROOMS = ("assessment", "pipeline")
MODULES_AT_MOST = 40
BEFORE = ("ingest", "validate", "plan", "count", "reserve", "draw", "reconcile")


def entered(act: Callable[[], object]) -> set[str]:
    """Modules of both rooms, and templates, of which a function is called."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and frame.f_code.co_flags & CO_OPTIMIZED and file.startswith(str(HOUSE)):
            found.add(Path(file).relative_to(HOUSE).with_suffix("").as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return {name for name in found if name.startswith(ROOMS)}


@pytest.fixture
def sealed(landed: Deployment) -> Release:
    """A week of `itms` that is drawn and not assessed."""
    shutil.copyfile(STEADY_ITMS, landed.include / "programmes/itms.yaml")
    for step in BEFORE:
        step_named(step)("itms", WEEK, 0)
    return open_release("itms", WEEK)


def test_an_assessment_enters_so_many_modules(sealed: Release) -> None:
    found = entered(lambda: assess(sealed))
    assert {"pipeline/assessing", "pipeline/evidence", "assessment/assessment"} <= found
    assert len(found) <= MODULES_AT_MOST, sorted(found)


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
