"""Validation of an ingested week: figures, verdicts, a report of pass, warn and fail."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from turnstile.durable_files import replace_durably
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme
from turnstile.quality.earlier_figures import keep, usual_frames
from turnstile.quality.expectations import Outcome, judge
from turnstile.quality.findings import Finding, QualityReport, Severity
from turnstile.quality.kinds_set_aside import where_most_are
from turnstile.quality.metrics import measure
from turnstile.quality.rules import Frame, Rule, learned_rules, rules_of
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.ingest.snapshot import Snapshot

QUALITY_FILE = "quality.json"

__all__ = ["Finding", "QualityReport", "Severity", "load_report", "validate"]


def validate(  # noqa: PLR0913 - the keyword-only rest is where it runs
    programme: Programme,
    week: ServicePeriod,
    snapshot: Snapshot,
    *,
    private: Path,
    domain: PublicDomain | None = None,
    memory: str | None = None,
) -> QualityReport:
    """Judge a snapshot; write `quality.json` beside its rows and, if it passes, its figures.

    All findings are collected; none of them stops the others.

    Args:
        programme: says which days, modes, speeds and volumes are right.
        week: service week.
        snapshot: what was ingested.
        private: private zone.
        domain: public cells and lists; None to judge no word and no place.
        memory: the most that the engine takes, as `duckdb_engine.connect` takes it.

    Returns:
        Findings without any number; `passed` is False if the week must stop.
    """
    metrics = measure(programme, week, snapshot, private=private, domain=domain, memory=memory)
    frames = {
        Frame.COLUMNS: metrics.columns,
        Frame.MODES: metrics.modes,
        Frame.DAYS: metrics.days,
        Frame.WEEK: metrics.week,
        **usual_frames(metrics.figures, metrics.earlier),
    }
    # A rule of which nothing is learned yet gives no verdict: neither pass nor warn.
    learned = (rule for rule in learned_rules() if rule.frame in frames)
    rules = (*rules_of(programme, len(programme.days_of(week)), str(week)), *learned)
    findings = tuple(
        replace(finding, sentence=finding.sentence + _seen_in(finding, programme, snapshot, memory))
        for finding in _findings(zip(rules, judge(rules, frames), strict=True))
    )
    report = QualityReport(programme.name, str(week), findings)
    _write(report, snapshot)
    if report.passed:
        keep(metrics.figures, private / programme.name / str(week))
    return report


def _findings(judged: Iterable[tuple[Rule, Outcome]]) -> tuple[Finding, ...]:
    """Put the expectations of each rule together: kept if all are."""
    by_name: dict[str, list[tuple[Rule, Outcome]]] = {}
    for rule, outcome in judged:
        by_name.setdefault(rule.name, []).append((rule, outcome))
    return tuple(
        Finding(
            rule=name,
            severity=parts[0][0].severity,
            passed=all(outcome is Outcome.KEPT for _, outcome in parts),
            is_broken_check=any(outcome is Outcome.BROKEN_CHECK for _, outcome in parts),
            sentence=parts[0][0].sentence,
        )
        for name, parts in by_name.items()
    )


def _seen_in(finding: Finding, programme: Programme, snapshot: Snapshot, memory: str | None) -> str:
    """Return where most of what stops the week is, and of what kind."""
    rule = finding.rule.removesuffix("_many")
    return where_most_are(programme, snapshot, rule, memory) if finding.stops else ""


def _write(report: QualityReport, snapshot: Snapshot) -> None:
    """Write the findings into the snapshot's folder."""
    findings = [
        {
            "rule": finding.rule,
            "severity": finding.severity,
            "passed": finding.passed,
            "is_broken_check": finding.is_broken_check,
            "sentence": finding.sentence,
        }
        for finding in report.findings
    ]
    record = {"programme": report.programme, "period": report.period, "findings": findings}
    path = snapshot.folder / QUALITY_FILE
    replace_durably(path, (json.dumps(record, indent=1) + "\n").encode())


def load_report(snapshot: Snapshot) -> QualityReport | None:
    """Return the report that was written for a snapshot, or None if it was never judged."""
    path = snapshot.folder / QUALITY_FILE
    if not path.exists():
        return None
    record = json.loads(path.read_text())
    findings = tuple(
        Finding(**(entry | {"severity": Severity(entry["severity"])}))
        for entry in record["findings"]
    )
    return QualityReport(record["programme"], record["period"], findings)
