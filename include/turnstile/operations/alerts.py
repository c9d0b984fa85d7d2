"""Alerts: which rules there are, how grave each is, and what a digest says. Pure.

An alert is an output: names of programmes, weeks, units and steps, and constant sentences. It holds
no count, no id and no text of an exception, because those may come from a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from turnstile.ledger.amounts import cap_text
from turnstile.ledger.forecast import CapForecast
from turnstile.operations.journal import Happening, Line

RUNBOOK = "docs/RUNBOOK.md"
THRESHOLDS_PCT = (50, 75, 90)


class Severity(StrEnum):
    """How soon somebody has to look."""

    CRITICAL = "critical"  # stop releasing, call a human now
    ERROR = "error"  # a week does not come out until somebody acts
    WARN = "warn"  # look before the next week


@dataclass(frozen=True, slots=True)
class Rule:
    """What is watched: its gravity and what it says."""

    severity: Severity
    sentence: str


RULES: dict[str, Rule] = {
    "week_stopped": Rule(Severity.ERROR, "a step stopped the week; nothing new is public"),
    "week_refused": Rule(Severity.ERROR, "budget, approval or finality refused the week"),
    "bytes_disagree": Rule(Severity.CRITICAL, "bytes, chain or balances disagree; stop releasing"),
    "quality_failed": Rule(Severity.ERROR, "a rule of the input is broken; nothing was charged"),
    "quality_warned": Rule(Severity.WARN, "a rule of the input warns; the week goes on"),
    "files_restated": Rule(Severity.WARN, "files changed after the seal; the sealed bytes stand"),
    "budget_50": Rule(Severity.WARN, "half of a cap is spent or held"),
    "budget_75": Rule(Severity.WARN, "three quarters of a cap are spent or held"),
    "budget_90": Rule(Severity.ERROR, "nine tenths of a cap are spent or held"),
    "hold_stuck": Rule(Severity.WARN, "a reservation is held and not drawn"),
    "draw_stuck": Rule(Severity.ERROR, "a draw began and was not sealed; its charge stands"),
    "release_overdue": Rule(Severity.ERROR, "a week is final and not public"),
    "run_died": Rule(Severity.ERROR, "a run ended without telling anybody"),
    "run_lasts": Rule(Severity.WARN, "a run takes longer than it should"),
    "audit_failed": Rule(Severity.CRITICAL, "the daily audit found a difference; stop releasing"),
}


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing to tell, once.

    Args:
        rule: name in `RULES`.
        programme: concerned; `ledger` where none is.
        week: concerned; `all` where none is.
        subject: what else tells two alerts of a rule apart: a step, rules of the input, a cap.
    """

    rule: str
    programme: str
    week: str
    subject: str = ""

    @property
    def severity(self) -> Severity:
        """How soon somebody has to look."""
        return RULES[self.rule].severity

    @property
    def identity(self) -> str:
        """What is told once: rule and subject; programme and week name the journal's file."""
        return f"{self.rule}:{self.subject}"

    def __str__(self) -> str:
        """One line of a digest."""
        about = f" ({self.subject})" if self.subject else ""
        return (
            f"[{self.severity}] {self.programme} {self.week}: {RULES[self.rule].sentence}{about}; "
            f"{RUNBOOK}#{self.rule}"
        )


def of_run(lines: Sequence[Line], run_id: str) -> tuple[Alert, ...]:
    """Return what one run gave cause to tell, from the journal of its week."""
    found: list[Alert] = []
    for line in lines:
        if line.run_id != run_id:
            continue
        if line.happening is Happening.JUDGED:
            found += _of_verdicts(line)
        elif line.happening is Happening.FAILED:
            found.append(_of_failure(line))
        elif line.happening is Happening.RESTATED:
            found.append(Alert("files_restated", line.programme, line.week))
    return tuple(dict.fromkeys(found))


def _of_verdicts(line: Line) -> Iterable[Alert]:
    """Tell which rules of the input are not kept."""
    verdicts = line.told.get("verdicts", {})
    for rule, worst in (("quality_failed", {"fail", "broken"}), ("quality_warned", {"warn"})):
        names = sorted(name for name, verdict in verdicts.items() if verdict in worst)
        if names:
            yield Alert(rule, line.programme, line.week, ", ".join(names))


def _of_failure(line: Line) -> Alert:
    """Tell at which step a week stopped, by the kind of error, not by its text."""
    kind = str(line.told.get("kind", ""))
    refusals = {"RefusedError", "BudgetExceeded", "NotFinal", "NotApproved", "RevisionNeeded"}
    rule = "week_refused" if kind in refusals else "week_stopped"
    if kind == "IntegrityError":
        rule = "bytes_disagree"
    return Alert(rule, line.programme, line.week, f"step {line.told.get('step', '')}, {kind}")


def of_budget(forecasts: Iterable[CapForecast]) -> tuple[Alert, ...]:
    """Return the highest threshold that each cap which fills up has passed.

    Accounts of a day or a week start anew, so a full one is no news.
    """
    found = []
    for one in forecasts:
        past = [taken for week, taken in one.path if week < one.from_week]
        share_pct = 100 * max(past, default=0) // max(1, one.limit)
        passed = [threshold for threshold in THRESHOLDS_PCT if share_pct >= threshold]
        if passed:
            name = one.coordinate.partition("_")[0]
            subject = f"{one.family}: {cap_text(one.cap)}, {name}"
            found.append(Alert(f"budget_{passed[-1]}", "ledger", "all", subject))
    return tuple(found)


def digest(alerts: Sequence[Alert]) -> tuple[str, str]:
    """Return subject and text of one message for several alerts, gravest first.

    Args:
        alerts: at least one.
    """
    order = list(Severity)
    ordered = sorted(alerts, key=lambda a: (order.index(a.severity), a.programme, a.week, a.rule))
    places = sorted({f"{a.programme} {a.week}" for a in alerts})
    where = places[0] if len(places) == 1 else f"{places[0]} and {len(places) - 1} more"
    subject = f"turnstile {ordered[0].severity}: {where}"
    return subject, "\n".join(str(alert) for alert in ordered)
