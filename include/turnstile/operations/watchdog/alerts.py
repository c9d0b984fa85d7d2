"""Alerts: which rules there are, how grave each is, and what a digest says. Pure.

An alert is an output: names of programmes, weeks, units and tasks, constant sentences, and what is
said of a week that did not arrive or of a question, both made of public names. It holds no count,
no id and no text of any other exception, because those may come from a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from turnstile.ledger.balances.amounts import cap_text
from turnstile.ledger.balances.forecast import CapForecast
from turnstile.ledger.entries import in_one_line
from turnstile.operations.journal import Happening, Line, error_of

RUNBOOK = "docs/RUNBOOK.md"
THRESHOLDS_PCT = (50, 75, 90)


class Severity(StrEnum):
    """How soon somebody has to look."""

    CRITICAL = "critical"  # stop releasing, call a human now
    ERROR = "error"  # a week does not come out until somebody acts
    WARN = "warn"  # look before the next week
    NOTICE = "notice"  # somebody is asked, or reminded


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
    "draw_burned": Rule(Severity.WARN, "a draw died before its seal and stays charged"),
    "release_overdue": Rule(Severity.ERROR, "a week is final and not public"),
    "run_died": Rule(Severity.ERROR, "a run ended without a report"),
    "run_stalled": Rule(Severity.ERROR, "Airflow does not go on with a run"),
    "run_lasts": Rule(Severity.WARN, "a run takes longer than it should"),
    "programme_broken": Rule(Severity.ERROR, "a programme's file cannot be read"),
    "week_missing": Rule(Severity.ERROR, "a week did not arrive; nothing was charged"),
    "retention_near": Rule(Severity.ERROR, "private data of an unfinished week will be deleted"),
    "retention_held": Rule(Severity.WARN, "private data stay beyond their programme's days"),
    "people_asked": Rule(Severity.NOTICE, "people are asked"),
    "people_reminded": Rule(Severity.WARN, "people were asked and have not answered"),
    "weekly_digest": Rule(Severity.NOTICE, "how things stand"),
    "ledger_lost": Rule(Severity.CRITICAL, "the ledger is lost or damaged; stop releasing"),
    "audit_failed": Rule(Severity.CRITICAL, "the daily audit found a difference; stop releasing"),
    "private_differs": Rule(Severity.CRITICAL, "private data are gone or altered; restore them"),
    "look_missing": Rule(Severity.ERROR, "a look of every day was not made for three days"),
}


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing to report, once.

    Args:
        rule: name in `RULES`.
        programme: concerned; `ledger` where none is.
        week: concerned; `all` where none is.
        subject: what else distinguishes two alerts of a rule: a step, rules of the input, a cap.
        sentence: what happened, in the operator's words; empty where the rule says it all.
        run_id: of the run to look at; empty if there is none.
        again: when the same stop of a week came once more; empty of its first.
    """

    rule: str
    programme: str
    week: str
    subject: str = ""
    sentence: str = field(default="", compare=False)
    run_id: str = field(default="", compare=False)
    again: str = ""

    @property
    def severity(self) -> Severity:
        """How soon somebody has to look."""
        return RULES[self.rule].severity

    @property
    def identity(self) -> str:
        """What is sent once: rule and subject; programme and week name the journal's file."""
        return f"{self.rule}:{self.subject}" + (f", {self.again}" if self.again else "")

    def __str__(self) -> str:
        """Say what happened, in one line."""
        about = f" ({self.subject})" if self.subject else ""
        said = self.sentence or f"{RULES[self.rule].sentence}{about}"
        once_more = f", once more at {self.again}" if self.again else ""
        return in_one_line(f"[{self.severity}] {self.programme} {self.week}: {said}{once_more}")


def of_run(lines: Sequence[Line], run_id: str) -> tuple[Alert, ...]:
    """Return what one run gave cause to report, from the journal of its week.

    Of stops of a week that are alike, by whichever of its runs, each is news; the run's last is
    told. The first is known by what it is, as it always was: journals hold that. Bytes that
    disagreed are told of as they first were, too: the week may go on, and they still did.
    """
    alerts: dict[tuple[Alert, bool], Alert] = {}
    stops: set[Alert] = set()
    for line in lines:
        if line.happening is Happening.FAILED:
            stop = _of_failure(line)
            is_again = stop in stops
            if line.run_id == run_id:
                told = replace(stop, again=line.at) if is_again else stop
                alerts[stop, is_again and stop.rule == DISAGREE] = told
            stops.add(stop)
        elif line.run_id == run_id:
            alerts |= {(alert, False): alert for alert in _of_input(line)}
    return tuple(alerts.values())


def _of_input(line: Line) -> Iterable[Alert]:
    """Tell what is wrong with a week's files, as far as it stops no step."""
    if line.happening is Happening.JUDGED:
        yield from _of_verdicts(line)
    elif line.happening is Happening.RESTATED:
        yield Alert("files_restated", line.programme, line.week, run_id=line.run_id)


def _of_verdicts(line: Line) -> Iterable[Alert]:
    """Tell which rules of the input are not kept."""
    verdicts = line.details.get("verdicts", {})
    for rule, worst in (("quality_failed", {"fail", "broken"}), ("quality_warned", {"warn"})):
        names = sorted(name for name, verdict in verdicts.items() if verdict in worst)
        if names:
            yield Alert(rule, line.programme, line.week, ", ".join(names))


DISAGREE = "bytes_disagree"
"""The rule of a failure that is news even once its week goes on."""
_LEDGER_AWAY = ("week_stopped", "the ledger's server did not answer; a repeat goes on")
_OF_KIND = {
    "AirflowAway": ("week_stopped", "Airflow did not answer; a repeat goes on"),
    "BudgetExceeded": ("week_refused", "a cap would be passed; nothing more was charged"),
    "DrawDied": ("week_stopped", "its drawing process died; what it had charged stays charged"),
    "InputError": ("week_stopped", "its input breaks a rule; nothing new is public"),
    "InterfaceError": _LEDGER_AWAY,
    "IntegrityError": (DISAGREE, "bytes, chain or balances disagree; stop releasing"),
    "NotApproved": ("week_refused", "people have not approved it; it stays under embargo"),
    "NotArrived": ("week_missing", "it did not arrive; nothing was charged"),
    "NotFinal": ("week_refused", "it is not over, or not complete; nothing was charged"),
    "OSError": (
        "week_stopped",
        "a disk or a server refused or is away; a repeat goes on once it is back",
    ),
    "OperationalError": _LEDGER_AWAY,
    "ProgrammeError": ("week_stopped", "its programme breaks a rule; nothing new is public"),
    "RefusedError": ("week_refused", "the ledger refused it; nothing new is public"),
    "RevisionNeeded": ("week_refused", "it is sealed under another promise; its bytes stand"),
    "StoreConflict": ("week_stopped", "another worker was first; what it wrote stays, run again"),
    "StoreObjectGone": ("week_stopped", "a store has lost what its index names; no repeat helps"),
    "StoreError": ("week_stopped", "a store did not answer; a repeat goes on where this stopped"),
    "TurnstileError": ("week_stopped", "a check failed; nothing new is public"),
}
"""What is said of an error, and of subclasses of ours without a row of their own."""
_UNFORESEEN = ("week_stopped", "it failed in a way that nobody foresaw; nothing new is public")
_IN_ITS_WORDS = frozenset({"NotArrived", "NotApproved"})
"""Kinds whose own sentence travels: made of weeks and names of folders, or of what people said."""


def _of_failure(line: Line) -> Alert:
    """Tell at which task a week stopped and why, by the kind of error, not by its text."""
    kind, step = str(line.details.get("kind", "")), str(line.details.get("step", ""))
    classes = (kind, *(error.__name__ for error in error_of(line).__mro__))
    rule, words = next(filter(None, map(_OF_KIND.get, classes)), _UNFORESEEN)
    if kind in _IN_ITS_WORDS and line.details.get("sentence"):
        words = str(line.details["sentence"])
    return Alert(
        rule=rule,
        programme=line.programme,
        week=line.week,
        subject=f"step {step}, {kind}",
        sentence=f"{words} (task {step})",
        run_id=line.run_id,
    )


def of_questions(
    lines: Sequence[Line], now: datetime, held_up: Callable[[str], str] = lambda _: ""
) -> tuple[Alert, ...]:
    """Return which questions were put to people, and which of them nobody has answered for a day.

    Args:
        lines: of one programme, by week, oldest first in each.
        now: the present instant, aware.
        held_up: names the weeks that are due and wait behind a week; empty if there are none.
    """
    alerts: list[Alert] = []
    open_now: dict[tuple[str, str], Line] = {}
    for line in lines:
        if line.happening is Happening.ASKED:
            open_now[line.week, line.run_id] = line
            alerts.append(_question("people_asked", line, f"{line.details['task']}, {line.at}", ""))
        elif line.happening in _ANSWERED:
            open_now.pop((line.week, line.run_id), None)
    for line in open_now.values():
        days = (now - datetime.fromisoformat(line.at)).days
        if days >= 1:
            subject = f"{line.details['task']}, {line.at}, day {days}"
            behind = held_up(line.week)
            waits = f"; {behind} cannot begin before" if behind else ""
            lead = f"Asked {days} day(s) ago, and nobody has answered{waits}: "
            alerts.append(_question("people_reminded", line, subject, lead))
    return tuple(alerts)


_ANSWERED = frozenset({Happening.RESUMED, Happening.FAILED, Happening.ENDED, Happening.BEGUN})


def _question(rule: str, line: Line, subject: str, lead: str) -> Alert:
    sentence = f"{lead}{line.details.get('sentence', '')}"
    return Alert(rule, line.programme, line.week, subject, sentence, line.run_id)


def of_retention(lines: Iterable[Line]) -> tuple[Alert, ...]:
    """Return which weeks lose their data soon without a release, and which keep them too long."""
    alerts = []
    for line in lines:
        if line.happening is Happening.EXPIRES:
            subject = f"from {line.details['day']} on"
            alerts.append(Alert("retention_near", line.programme, line.week, subject))
        elif line.happening is Happening.OVERSTAYS:
            subject = str(line.details["why"])
            alerts.append(Alert("retention_held", line.programme, line.week, subject))
    return tuple(dict.fromkeys(alerts))


def taken_pct(forecast: CapForecast) -> int:
    """Return how much of a cap is spent or held now, in whole percent, rounded down.

    A window long past, into which nobody charges, was as full as it was.
    """
    return 100 * forecast.taken // max(1, forecast.limit)


def of_budget(forecasts: Iterable[CapForecast]) -> tuple[Alert, ...]:
    """Return the highest threshold that each cap which fills up has passed.

    Accounts of a day or a week start anew, so a full one is no news.
    """
    alerts = []
    for forecast in forecasts:
        share_pct = taken_pct(forecast)
        passed = [threshold for threshold in THRESHOLDS_PCT if share_pct >= threshold]
        if passed:
            name = forecast.coordinate.partition("_")[0]
            subject = f"{forecast.family}: {cap_text(forecast.cap)}, {name}"
            alerts.append(Alert(f"budget_{passed[-1]}", "ledger", "all", subject))
    return tuple(alerts)


Links = Callable[[Alert], Sequence[str]]
"""Says where to look and what to do: a line each."""


def runbook_link(alert: Alert) -> tuple[str, ...]:
    """Return where the runbook says what to do."""
    return (f"what to do: {RUNBOOK}#{alert.rule}",)


def digest(alerts: Sequence[Alert], links: Links = runbook_link) -> tuple[str, str]:
    """Return subject and text of one message for several alerts, gravest first.

    Args:
        alerts: at least one.
        links: lines that stand below each.
    """
    order = list(Severity)
    ordered = sorted(alerts, key=lambda a: (order.index(a.severity), a.programme, a.week, a.rule))
    weeks = sorted({f"{a.programme} {a.week}" for a in alerts})
    where = weeks[0] if len(weeks) == 1 else f"{weeks[0]} and {len(weeks) - 1} more"
    subject = f"turnstile {ordered[0].severity}: {where}"
    lines = [
        line for alert in ordered for line in (str(alert), *(f"  {link}" for link in links(alert)))
    ]
    return subject, "\n".join(lines)
