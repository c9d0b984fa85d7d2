"""Findings of the quality checks: a rule, how grave it is, and whether the week keeps it.

A finding holds no number: what leaves the private zone of a rule is pass, warn or fail, and of one
that stops a week the file, the columns and the kind of value (PRIVACY 9.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """What a broken rule means."""

    ERROR = "error"  # the week stops, before anything is charged
    WARN = "warn"  # the week goes on, and the finding is shown


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule, judged.

    Args:
        rule: name of the rule.
        severity: what breaking it means.
        passed: whether the week keeps it.
        is_broken_check: True if the check itself failed to run; then the data are not judged, and
            the week stops whatever the severity.
        sentence: what the rule says and what to do, and of what stops a week its file, columns and
            kind of value; no value.
    """

    rule: str
    severity: Severity
    passed: bool
    is_broken_check: bool = False
    sentence: str = ""

    @property
    def stops(self) -> bool:
        """True if the week must not be released."""
        return not self.passed and (self.is_broken_check or self.severity is Severity.ERROR)


@dataclass(frozen=True, slots=True)
class QualityReport:
    """All findings on one week.

    Args:
        programme: name of the programme.
        period: service week.
        findings: every rule once, in the order of judging.
    """

    programme: str
    period: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """True if nothing stops the week; warnings do not."""
        return not any(finding.stops for finding in self.findings)

    @property
    def worst(self) -> Severity | None:
        """Gravest severity among the rules that are not kept, or None."""
        if not self.passed:
            return Severity.ERROR
        return None if all(finding.passed for finding in self.findings) else Severity.WARN

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Rules that are not kept and do not stop the week."""
        return tuple(f for f in self.findings if not f.passed and not f.stops)

    def refusal(self) -> str:
        """Return one sentence that says why the week stops, without any number.

        Examples:
            >>> bad = Finding("days_present", Severity.ERROR, passed=False, sentence="a day lacks")
            >>> QualityReport("opal", "2016-W30", (bad,)).refusal().partition(". ")[0]
            'opal 2016-W30 stops at validation, nothing is charged: days_present: a day lacks'
        """
        reasons = []
        for finding in self.findings:
            if finding.stops and finding.is_broken_check:
                reasons.append(f"{finding.rule}: the check itself failed, the data are not judged")
            elif finding.stops:
                reasons.append(f"{finding.rule}: {finding.sentence}")
        where = f"{self.programme} {self.period} stops at validation, nothing is charged"
        return (
            f"{where}: {'; '.join(reasons)}. Examples and the lines that mend them: turnstile look "
            f"{self.programme} --week {self.period}; what was set aside lies in "
            f"private/{self.programme}/{self.period}/snapshots/*/quarantine"
        )
