"""The assessment report of a release: one JSON file, and one page that a release officer can sign.

The page is a single file: pictures are inside it, nothing is fetched. It is made from the sealed
noisy bytes, the plan, the ledger's balances and synthetic data. Answers come first, evidence after.
"""

from __future__ import annotations

import json
from pathlib import Path

from markupsafe import Markup

from turnstile.assessment.assessment import LIMITS, SOURCES, Assessment, content_of
from turnstile.assessment.gates.result import headline
from turnstile.assessment.pages import render
from turnstile.assessment.report import sections
from turnstile.assessment.report.answers import answers_of
from turnstile.publishing.inner_contents import NOT_JUDGED
from turnstile.release.zones import write_atomically

JSON_NAME = "assessment.json"
PAGE_NAME = "assessment.html"


def write_report(assessment: Assessment, folder: Path) -> None:
    """Write `assessment.json` and `assessment.html`, whatever the gates said.

    Args:
        assessment: of a sealed release.
        folder: that exists, under embargo.
    """
    content = json.dumps(content_of(assessment), indent=1) + "\n"
    write_atomically(folder / JSON_NAME, content.encode())
    write_atomically(folder / PAGE_NAME, page_of(assessment).encode())


def page_of(assessment: Assessment) -> str:
    """Return the page."""
    return render(
        "assessment.html",
        title=f"Assessment of {assessment.key}",
        passed=assessment.passed,
        headline=headline(assessment.gates),
        sealed=assessment.sealed_digest,
        answers=answers_of(assessment.programme, assessment.risk),
        risk=sections.risk(assessment),
        picture=Markup(sections.risk_picture(assessment)),  # noqa: S704 - our template escapes
        notes=assessment.risk.notes,
        steady=[(course.weeks, course.half_width) for course in assessment.risk.course],
        gates=sections.gates(assessment),
        promised=sections.promised(assessment),
        audits=sections.audits(assessment),
        attacks=sections.attacks(assessment),
        timetable=sections.timetable(assessment),
        ledger=sections.ledger(assessment),
        limits=LIMITS,
        not_judged=tuple(NOT_JUDGED.values()),
        sources=[tuple(row.values()) for row in SOURCES],
    )
