"""What a deployment's programmes, ledger and journal say now, for the budget page and the watchdog.

Reads only. The ledger is followed: what was read stays in memory, and each call reads what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from turnstile.errors import InputError, TurnstileError
from turnstile.ledger.view import LedgerView
from turnstile.operations.calendar_of_weeks import WeekMark, calendar_of, next_week
from turnstile.operations.journal import Happening, Journal, Line, starters
from turnstile.operations.last_verification import (
    LastVerification,
    last_verification,
    ledger_trouble,
)
from turnstile.operations.ledger_snapshot import LedgerFollower, LedgerSnapshot
from turnstile.operations.plan_view import crash_words, plan_of, plan_view
from turnstile.operations.programme_now import (
    AirflowNow,
    ProgrammeNow,
    of_ledger,
    of_retention,
    open_runs_by_week,
    programme_now,
)
from turnstile.operations.release_preview import WeekPreview, preview
from turnstile.pipeline.approvals import standing_of
from turnstile.pipeline.first_look import in_the_way
from turnstile.programme.approval_rule import ApprovalStanding
from turnstile.programme.loading import load_programme, programme_files
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod, parse_period
from turnstile.settings import Settings

WEEKS_AT_ONCE = 53


@dataclass(slots=True)
class DeploymentState:
    """The present state of one deployment; safe to share between threads.

    Args:
        settings: where everything lies.
        clock: the present instant.
    """

    settings: Settings
    clock: Callable[[], datetime]
    _follower: LedgerFollower | None = field(default=None, init=False)

    def programmes(self) -> tuple[Programme, ...]:
        """Return the programmes whose files can be read; a broken file hides its own only."""
        return tuple(self._readable())

    def warm(self) -> None:
        """Fold the ledger before the first reader comes; trouble shows when they do."""
        try:
            self.snapshot()
        except TurnstileError:
            return

    def snapshot(self) -> LedgerSnapshot:
        """Return the present state of the ledger; empty before the first release."""
        follower = self._followed()
        return LedgerSnapshot((), (), {}, (), (), 0) if follower is None else follower.now()

    def open_run_ids(self, visible: frozenset[str]) -> frozenset[str]:
        """Return the runs that said that they began, and not how they ended."""
        journal = Journal.of(self.settings)
        return frozenset(
            line.run_id
            for name in visible
            for line in open_runs_by_week(journal.of_programme(name))
        )

    def weeks_previewed(self, programme: str, wanted: Mapping[str, str]) -> tuple[WeekPreview, ...]:
        """Return what releasing some weeks would do and charge.

        Raises:
            InputError: they are no periods of the programme, or too many.
        """
        spec = load_programme(programme, self.settings.include)
        periods = periods_asked_for(spec, wanted)
        snapshot = self.snapshot()
        plans = [plan_of(spec, self.settings.include, str(period)) for period in periods]
        marks = {mark.week: mark for mark in self._marks(spec, snapshot, self._journal(spec))}
        others = in_the_way(
            spec, (attempt.key for attempt in snapshot.attempts), self.settings.include
        )
        return preview(spec, plans, marks, snapshot.accounts.get(spec.family), others)

    def _readable(self) -> Iterator[Programme]:
        """Yield the programmes that can be read."""
        for file in programme_files(self.settings.include):
            try:
                yield load_programme(file.name, self.settings.include)
            except TurnstileError:
                continue

    def seen_by(self, visible: frozenset[str]) -> tuple[Programme, ...]:
        """Return the programmes that this reader sees."""
        return tuple(one for one in self.programmes() if one.name in visible)

    def _followed(self) -> LedgerFollower | None:
        """Return the ledger; None before the first release."""
        if self._follower is None:
            file = self.settings.ledger_url.partition("sqlite:///")[2]
            if file and not Path(file).exists():
                return None
            ledger = LedgerView.open(
                self.settings.ledger_url,
                clock=self.clock,
                witnesses=self.settings.witness,
                public=self.settings.public,
            )
            self._follower = LedgerFollower(ledger)
        return self._follower

    def _journal(self, programme: Programme) -> tuple[Line, ...]:
        """Return what runs reported about a programme."""
        return Journal.of(self.settings).of_programme(programme.name)

    def now_of(
        self, programme: Programme, snapshot: LedgerSnapshot, airflow: AirflowNow
    ) -> ProgrammeNow:
        """Return where a programme stands."""
        lines = self._journal(programme)
        marks = self._marks(programme, snapshot, lines)
        state = programme_now(programme, marks, lines, self.clock(), airflow)
        entries = [one for one in snapshot.lines if one.programme == programme.name]
        expiring = of_retention(lines, entries)
        trouble = self.trouble(snapshot)
        first = (of_ledger(trouble),) if trouble else ()
        return replace(state, attention=(*first, *expiring, *state.attention))

    def verified(self, snapshot: LedgerSnapshot) -> LastVerification | None:
        """Return what the ledger's verification last said."""
        return last_verification(Journal.of(self.settings), snapshot.lines)

    def trouble(self, snapshot: LedgerSnapshot) -> str:
        """Say what is known to be wrong with the ledger; empty if nothing is."""
        return ledger_trouble(self.verified(snapshot), snapshot)

    def _marks(
        self, programme: Programme, snapshot: LedgerSnapshot, lines: Sequence[Line]
    ) -> tuple[WeekMark, ...]:
        """Return the calendar of a programme."""
        approvals = self._approvals(programme, snapshot, lines)
        return calendar_of(programme, snapshot, lines, self.clock(), approvals)

    def _approvals(
        self, programme: Programme, snapshot: LedgerSnapshot, lines: Sequence[Line]
    ) -> dict[str, ApprovalStanding]:
        """Return where the approval of each week that is sealed and not public stands."""
        follower = self._followed()
        if follower is None or not programme.approval.required:
            return {}
        found = {}
        for week in snapshot.weeks_of(programme.name).values():
            started = starters(line for line in lines if line.week == week.period)
            for attempt in week.attempts:
                if attempt.is_sealed and not attempt.is_public:
                    found[str(attempt.key)] = standing_of(
                        follower.ledger, attempt.key, programme, self.settings, started
                    )
        return found

    def mark_of(self, programme: Programme, week: str) -> WeekMark:
        """Return one week of a programme's calendar."""
        marks = self._marks(programme, self.snapshot(), self._journal(programme))
        return next((one for one in marks if one.week == week), WeekMark(week, "missing"))

    def calendars(self, visible: frozenset[str]) -> dict[str, tuple[WeekMark, ...]]:
        """Return the calendars of the programmes that this reader sees."""
        snapshot = self.snapshot()
        return {
            one.name: self._marks(one, snapshot, self._journal(one))
            for one in self.seen_by(visible)
        }

    def runs(self, visible: frozenset[str]) -> dict[str, str]:
        """Return the last run of each release key."""
        journal = Journal.of(self.settings)
        return {
            f"{line.programme}/{line.week}/r{line.details.get('revision', 0)}": line.run_id
            for name in sorted(visible)
            for line in journal.of_programme(name)
            if line.happening is Happening.BEGUN and line.run_id
        }

    def next_plans(self, visible: frozenset[str]) -> dict[str, Any]:
        """Return the plan of the next week of each programme."""
        snapshot = self.snapshot()
        plans = {}
        for one in self.seen_by(visible):
            week = next_week(self._marks(one, snapshot, self._journal(one)))
            if week is not None:
                planned = plan_of(one, self.settings.include, week)
                plans[one.name] = plan_view(planned, snapshot.balances) | {
                    "crash": crash_words(one, self.settings.include, week)
                }
        return plans

    def verdicts_of(self, programme: str) -> dict[tuple[str, str], str]:
        """Return the last verdict of each rule and week."""
        return {
            (rule, line.week): verdict
            for line in Journal.of(self.settings).of_programme(programme)
            if line.happening is Happening.JUDGED
            for rule, verdict in line.details.get("verdicts", {}).items()
        }


def periods_asked_for(programme: Programme, wanted: Mapping[str, str]) -> tuple[ServicePeriod, ...]:
    """Return the periods from a first to a last one.

    Raises:
        InputError: they are no periods of the programme, in the wrong order, or too many.
    """
    first = parse_period(wanted.get("first", ""), where="first week")
    last = parse_period(wanted.get("last") or str(first), where="last week")
    found = [first]
    while found[-1].first_day < last.first_day and len(found) <= WEEKS_AT_ONCE:
        found.append(found[-1].plus(1))
    if str(found[-1]) != str(last) or len(found) > WEEKS_AT_ONCE:
        rule = f"it must follow the first, by at most {WEEKS_AT_ONCE - 1} periods"
        raise InputError(where="form", field="last", rule=rule)
    if len(first.days) != programme.schedule.period_days:
        rule = f"{programme.name} is released by periods of {programme.schedule.period_days} days"
        raise InputError(where="form", field="first", rule=rule)
    return tuple(found)
