"""Assessment of a sealed release, made once: the ledger keeps which report was read.

The report is drawn with coins of its own (synthetic units in or out), so a second one differs. What
the gates said, with a digest over the report and the tables, is an entry of the ledger; publishing
publishes that very report, and assesses anew only where the files are not those any more.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from turnstile.errors import TurnstileError
from turnstile.ledger.records import Assessed, Attempt
from turnstile.pipeline.context import Release
from turnstile.pipeline.draw.drawn_release import drawn_of
from turnstile.pipeline.draw.sealed_release import sealed_attempt
from turnstile.pipeline.public_package import is_public

PASSED, FAILED = "passed", "failed"
REPORT_FILES = ("assessment.json", "assessment.html")
TABLE_FOLDERS = ("estimates", "measurements", "tables")


def assess(release: Release) -> str:
    """Put the sealed bytes through the gates, and write down what they and the attacks found.

    Raises:
        TurnstileError: a gate failed; the bytes stay under embargo.
    """
    attempt = sealed_attempt(release)
    if is_public(release, attempt) or is_assessed(release, attempt):
        return PASSED
    from turnstile.assessment.assessment import assess_release
    from turnstile.assessment.report.page import write_report
    from turnstile.pipeline.evidence import evidence_of

    release.say("gates, audits and attacks are tried (1 of 2); the report is written next")
    assessment = assess_release(drawn_of(release, attempt), evidence_of(release))
    write_report(assessment, release.folders.embargoed)
    failed = next((gate for gate in assessment.gates if not gate.passed), None)
    outcome = PASSED if failed is None else FAILED
    release.say(f"the report is written (2 of 2): {len(assessment.gates)} gates, {outcome}")
    release.ledger.record_assessment(_found(release, attempt, outcome))
    if failed is not None:
        raise TurnstileError(
            f"{release.key}: gate {failed.gate} failed: {failed.statement}; the bytes stay "
            "under embargo, their charge stands; find the cause before any further draw"
        )
    return outcome


def is_assessed(release: Release, attempt: Attempt) -> bool:
    """Return whether the gates passed what lies under embargo now: bytes, tables and report."""
    return release.ledger.assessment(release.key) == _found(release, attempt, PASSED)


def _found(release: Release, attempt: Attempt, outcome: str) -> Assessed:
    """Return an assessment of the files as they are."""
    digest = _digest_of_files(release.folders.embargoed)
    return Assessed(release.key, str(attempt.artefact_digest), outcome, digest)


def _digest_of_files(folder: Path) -> str:
    """Return one SHA-256 over the report and all tables, each with its name."""
    files = [folder / name for name in REPORT_FILES]
    files += sorted(path for name in TABLE_FOLDERS for path in (folder / name).glob("*"))
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path in files
        if path.is_file()
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
