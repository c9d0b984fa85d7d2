"""Figures for monitoring: of the ledger and the calendar alone, so none is of any row. Pure.

Names and labels are fixed here or stand in programme files, which people review. How long a step
took, or what a rule of the input said, is none of them: both depend on the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from turnstile.ledger.balances.amounts import word_of
from turnstile.ledger.weeks import attempts_by_state
from turnstile.operations.calendar_of_weeks import after_last, calendar_of
from turnstile.operations.ledger_snapshot import LedgerSnapshot
from turnstile.operations.watchdog.alerts import taken_pct
from turnstile.operations.week_states import TROUBLE, Evidence
from turnstile.programme.calendar.release_schedule import final_at
from turnstile.programme.spec import Programme
from turnstile.service_calendar import parse_period

_BEHIND_AT_MOST = 520  # ten years of weeks


@dataclass(frozen=True, slots=True)
class Gauge:
    """One figure.

    Args:
        name: below the prefix of the orchestrator's own metrics.
        value: counts and whole percents.
        labels: pairs of name and value.
    """

    name: str
    value: int
    labels: tuple[tuple[str, str], ...] = ()


def gauges(
    picture: LedgerSnapshot, programmes: Iterable[Programme], now: datetime
) -> tuple[Gauge, ...]:
    """Return every figure of a deployment.

    Args:
        picture: of the ledger.
        programmes: whose weeks are counted.
        now: the present instant, aware.
    """
    figures = [
        Gauge("turnstile.ledger_entries", len(picture.lines)),
        Gauge("turnstile.ledger_problems", picture.problems),
        *_of_caps(picture),
    ]
    for programme in programmes:
        figures += _of_programme(picture, programme, now)
    return tuple(figures)


def _of_caps(picture: LedgerSnapshot) -> Iterator[Gauge]:
    """Yield how much of each cap that fills up is spent or held."""
    for forecast in picture.forecasts:
        labels = {
            "family": forecast.family,
            "unit": forecast.cap.unit.value,
            "figure": word_of(forecast.coordinate),
            "window_weeks": str(forecast.cap.window_weeks or 0),
        }
        yield Gauge("turnstile.cap_taken_pct", taken_pct(forecast), tuple(labels.items()))


def _of_programme(picture: LedgerSnapshot, programme: Programme, now: datetime) -> Iterator[Gauge]:
    """Yield a programme's releases by their state in the ledger, and how far it is behind."""
    label = ("programme", programme.name)
    weeks = picture.weeks_of(programme.name).values()
    attempts = [attempt for week in weeks for attempt in week.attempts]
    for state, count in attempts_by_state(attempts).items():
        yield Gauge("turnstile.attempts", count, (label, ("state", state)))
    is_open = sum(len(week.held) + len(week.drawing) for week in weeks)
    yield Gauge("turnstile.attempts_open", is_open, (label,))
    if not any(week.published for week in weeks):
        return
    marks = calendar_of(programme, picture, Evidence(), now)
    behind = sum(mark.state in TROUBLE for mark in marks)
    due = after_last(parse_period(marks[-1].week), programme)
    while behind < _BEHIND_AT_MOST and final_at(due, programme.schedule, programme.time) < now:
        due, behind = due.plus(1), behind + 1
    yield Gauge("turnstile.weeks_behind", behind, (label,))
