"""What a deployment's programmes, ledger and journal say now, for the budget page and the watchdog.

Reads only. The ledger is followed: what was read stays in memory, and each call reads what is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from turnstile.errors import InputError, IntegrityError, TurnstileError
from turnstile.ledger.balances.charged_releases import ChargedRelease
from turnstile.ledger.database.damaged_database import damage_in
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.of_deployment import may_hold, require_not_lost
from turnstile.ledger.records import ReleaseKey
from turnstile.operations.airflow_names import programme_of
from turnstile.operations.airflow_now import AirflowNow, RunsAsked
from turnstile.operations.budget_page.plan_view import (
    cost_in_words,
    crash_words,
    plan_of,
    plan_view,
)
from turnstile.operations.calendar_of_weeks import calendar_of, next_week
from turnstile.operations.journal import Happening, Journal, Line, starters
from turnstile.operations.ledger_snapshot import LedgerFollower, LedgerSnapshot
from turnstile.operations.people.release_preview import Preview, WeekPreview, named, preview
from turnstile.operations.programme_now import (
    BrokenProgramme,
    ProgrammeNow,
    of_ledger,
    of_private_data,
    of_retention,
    programme_now,
    standing_still,
    weeks_to_go_on_with,
)
from turnstile.operations.watchdog.alerts import Alert
from turnstile.operations.watchdog.last_verification import (
    LastVerification,
    last_sound,
    last_verification,
    ledger_trouble,
)
from turnstile.operations.watchdog.private_comparison import (
    of_looks,
    of_missing_looks,
    private_differences,
    private_trouble,
)
from turnstile.operations.watchdog.watch import of_lost, watched
from turnstile.operations.week_states import LIVE, TURNS_AND_ENDS, Evidence, WeekMark
from turnstile.pipeline.approvals import standing_of
from turnstile.pipeline.ledger_preview import in_the_way
from turnstile.pipeline.revision_in_force import revision_in_force
from turnstile.programme.approval_rule import ApprovalStanding
from turnstile.programme.calendar.release_schedule import period_containing, require_over
from turnstile.programme.examples import broken_beside, readable_examples
from turnstile.programme.loading import load_programme, programme_files
from turnstile.programme.spec import Programme
from turnstile.release.plan import ReleasePlan
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
        """Return the programmes of this deployment whose files can be read.

        An example is none of them until somebody adopts it or releases from it.
        """
        return tuple(programme for _, programme in self._read() if isinstance(programme, Programme))

    def _read(self) -> Iterator[tuple[str, Programme | TurnstileError]]:
        """Yield each programme, or what is wrong with its file."""
        for name in self.names():
            try:
                yield name, load_programme(name, self.settings.include)
            except TurnstileError as error:
                yield name, error

    def names(self) -> tuple[str, ...]:
        """Return the names of the deployment's programmes, those whose file is broken too."""
        examples = readable_examples(self.settings.include) - self.settings.adopted
        examples -= self.snapshot().family_of.keys()
        files = (file.name for file in programme_files(self.settings.include))
        return tuple(name for name in files if name not in examples)

    def ever_known(self) -> frozenset[str]:
        """Return the names of programmes that have a file here, or ever charged."""
        return frozenset(self.names()) | self.snapshot().family_of.keys()

    def broken(self, visible: frozenset[str]) -> tuple[BrokenProgramme, ...]:
        """Return the programmes that this reader would see if their files could be read.

        And, for every reader, the files beside them that cannot be read.
        """
        programmes = [
            BrokenProgramme(name, str(error))
            for name, error in broken_beside(self.settings.include)
        ]
        programmes += [
            BrokenProgramme(name, str(error), self._public_weeks(name))
            for name, error in self._read()
            if isinstance(error, TurnstileError) and name in visible
        ]
        gone = self.snapshot().family_of.keys() - set(self.names())
        rule = "its file is not there any more; put it back under this name, as the ledger knows it"
        programmes += [
            BrokenProgramme(
                name, f"include/programmes/{name}.yaml: {rule}", self._public_weeks(name)
            )
            for name in sorted(gone & visible)
            if any(week.live for week in self.snapshot().weeks_of(name).values())
        ]
        return tuple(programmes)

    def _public_weeks(self, name: str) -> int:
        """Return how many weeks of a programme are public."""
        return sum(bool(week.in_force) for week in self.snapshot().weeks_of(name).values())

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

    def charged(self, family: str) -> tuple[ChargedRelease, ...]:
        """Return what a group of programmes was charged for; nothing before the first release."""
        follower = self._followed()
        return () if follower is None else follower.ledger.charged(family)

    def runs_asked(self, visible: frozenset[str]) -> RunsAsked:
        """Return the last run of each week that is not public, or that did not say how it ended."""
        asked, turns = {}, Counter[tuple[str, str]]()
        for name in sorted(visible):
            weeks = self.snapshot().weeks_of(name)
            last: dict[str, Line] = {}
            for line in self._journal(name):
                if line.run_id:
                    last[line.week] = line
                turns[name, line.week] += line.happening in TURNS_AND_ENDS
            asked[name] = frozenset(
                line.run_id
                for week, line in last.items()
                if line.happening is not Happening.ENDED
                or week not in weeks
                or not weeks[week].published
            )
        return RunsAsked(asked, turns)

    def period_of_run(self, dag_id: str, starts: datetime | None, named: str) -> str:
        """Name the period that a run stands for; empty if it stands for none.

        Args:
            dag_id: its DAG.
            starts: its logical date, if it has one.
            named: the week that its form named; empty without one.
        """
        try:
            programme = load_programme(programme_of(dag_id), self.settings.include)
            if named or starts is None:
                return str(parse_period(named)) if named else ""
            day = starts.astimezone(programme.time.zone).date()
            return str(period_containing(day, programme.schedule))
        except TurnstileError:
            return ""

    def weeks_previewed(
        self, programme: str, wanted: Mapping[str, str], airflow: AirflowNow
    ) -> Preview:
        """Return what releasing some weeks would do and charge.

        Raises:
            InputError: they are no periods of the programme, or too many.
            NotFinal: one is not over; a run of it would hold up all others until it is.
        """
        spec = load_programme(programme, self.settings.include)
        periods = periods_asked_for(spec, wanted)
        require_over(periods[-1], spec.time.zone, self.clock())
        return self._previewed(spec, periods, airflow)

    def _previewed(
        self, spec: Programme, periods: Sequence[ServicePeriod], airflow: AirflowNow
    ) -> Preview:
        """Return what the runs of some periods would do and charge, one after the other."""
        return self._previewer(spec, airflow)(periods)

    def _previewer(
        self, spec: Programme, airflow: AirflowNow
    ) -> Callable[[Sequence[ServicePeriod]], Preview]:
        """Return what previews periods of a programme on the ledger as it is now."""
        snapshot, include = self.snapshot(), self.settings.include
        group = {
            programme.name: programme
            for programme in (*self.programmes(), spec)
            if programme.family == spec.family
        }
        calendars = {name: self.marks_of(programme, airflow) for name, programme in group.items()}
        marks = {mark.week: mark for mark in calendars[spec.name]}
        taken = {
            str(attempt.key)
            for name in group
            for week in snapshot.weeks_of(name).values()
            for attempt in week.taken
        }
        asked = [
            self._plan(group[name], mark.week)
            for name, calendar in calendars.items()
            for mark in (week_mark.current for week_mark in calendar)
            if mark.state in LIVE and mark.run_id
        ]
        keys = [ReleaseKey(plan.programme, str(plan.week), plan.revision) for plan in asked]
        before = [plan for plan, key in zip(asked, keys, strict=True) if str(key) not in taken]
        others = in_the_way(spec, (attempt.key for attempt in snapshot.attempts), include)

        def previewed(periods: Sequence[ServicePeriod]) -> Preview:
            plans = [self._plan(spec, str(period)) for period in periods]
            return named(preview(spec, plans, before, marks, snapshot), others)

        return previewed

    def _plan(self, programme: Programme, period: str) -> ReleasePlan:
        """Return the plan of what a run of a period works on: a first release or a correction."""
        follower, revision = self._followed(), 0
        if follower is not None:
            revision = revision_in_force(follower.ledger, programme, period, self.settings)
        return plan_of(programme, self.settings.include, period, revision)

    def seen_by(self, visible: frozenset[str]) -> tuple[Programme, ...]:
        """Return the programmes that this reader sees."""
        return tuple(programme for programme in self.programmes() if programme.name in visible)

    def _followed(self) -> LedgerFollower | None:
        """Return the ledger; None before the first release."""
        if self._follower is None:
            if not may_hold(self.settings):
                return None
            ledger = Ledger.open(
                self.settings.ledger_url,
                clock=self.clock,
                witnesses=self.settings.witness,
                public=self.settings.public,
            )
            self._follower = LedgerFollower(ledger)
        return self._follower

    def _journal(self, name: str) -> tuple[Line, ...]:
        """Return what runs reported about a programme."""
        return Journal.of(self.settings).of_programme(name)

    def now_of(self, programme: Programme, airflow: AirflowNow) -> ProgrammeNow:
        """Return where a programme stands."""
        return self._judged(programme, airflow)[0]

    def _judged(
        self, programme: Programme, airflow: AirflowNow
    ) -> tuple[ProgrammeNow, tuple[WeekMark, ...], tuple[Line, ...]]:
        """Return where a programme stands, the calendar and the journal that say so."""
        snapshot, lines = self.snapshot(), self._journal(programme.name)
        marks = self._marks(programme, lines, airflow)
        going_on = self._going_on(programme, marks, airflow)
        state = programme_now(programme, marks, self.clock(), airflow, going_on)
        entries = [line for line in snapshot.lines if line.programme == programme.name]
        trouble = self.trouble(snapshot)
        first = (of_ledger(trouble),) if trouble else ()
        if differ := private_trouble(private_differences(Journal.of(self.settings))):
            first = (*first, of_private_data(differ))
        attention = (*first, *of_retention(lines, entries), *state.attention)
        return replace(state, attention=attention), marks, lines

    def watched(self, airflow: AirflowNow) -> tuple[Alert, ...]:
        """Return everything that somebody should know, in the words of the page.

        Whoever asks has asked whether the ledger is `lost`: such a ledger says of no week what
        became of it. One that is found damaged only now is told alone.
        """
        try:
            followed = [self._judged(programme, airflow) for programme in self.programmes()]
            broken = self.broken(self.ever_known())
        except IntegrityError:
            return self._alarm_of_damage()
        journal, snapshot, now = Journal.of(self.settings), self.snapshot(), self.clock()
        of_days = (*of_looks(journal), *of_missing_looks(journal, snapshot.began, now))
        return watched(snapshot, followed, broken, of_days, now)

    def lost(self) -> tuple[Alert, ...]:
        """Return the alarm of a ledger that is gone, holds nothing or is damaged, if it is.

        A file is looked at whole, as doctor does: not every page of it is read by every look.
        """
        try:
            missing = self._missing(self.snapshot())
        except IntegrityError:
            return self._alarm_of_damage()
        if missing:
            return (of_lost(missing, last_sound(Journal.of(self.settings))),)
        file = self.settings.ledger_file
        is_damaged = file is not None and may_hold(self.settings) and damage_in(file)
        return self._alarm_of_damage() if is_damaged else ()

    def _alarm_of_damage(self) -> tuple[Alert, ...]:
        """Return the alarm of a damaged ledger, without what the database says of its rows."""
        problem = f"{self.settings.ledger_file or 'the database'}: the ledger is damaged"
        return (of_lost(problem, last_sound(Journal.of(self.settings))),)

    def _going_on(
        self, programme: Programme, marks: Sequence[WeekMark], airflow: AirflowNow
    ) -> dict[str, WeekPreview]:
        """Return what each run that may be cleared and then draw would do, by itself."""
        now, going_on = self.clock(), dict[str, WeekPreview]()
        with suppress(TurnstileError):  # a plan that cannot be made says so where it is asked for
            if names := weeks_to_go_on_with(programme, marks, now):
                previewed = self._previewer(programme, airflow)
                going_on = {name: previewed([parse_period(name)]).weeks[0] for name in names}
            for mark in standing_still(programme, marks, now, airflow):
                draws = mark.of_budget in {"nothing", "held"}
                charge = cost_in_words(self._plan(programme, mark.week)) if draws else ""
                going_on[mark.week] = WeekPreview(mark.week, mark.state, "it goes on", charge)
        return going_on

    def verified(self, snapshot: LedgerSnapshot) -> LastVerification | None:
        """Return what the ledger's verification last said."""
        return last_verification(Journal.of(self.settings), snapshot.lines)

    def trouble(self, snapshot: LedgerSnapshot) -> str:
        """Say what is known to be wrong with the ledger; empty if nothing is."""
        missing = self._missing(snapshot)
        return missing or ledger_trouble(self.verified(snapshot), snapshot)

    def _missing(self, snapshot: LedgerSnapshot) -> str:
        """Say which ledger is gone, or holds nothing, though it released something."""
        try:
            require_not_lost(self.settings, len(snapshot.lines))
        except TurnstileError as error:
            return str(error)
        return ""

    def marks_of(self, programme: Programme, airflow: AirflowNow) -> tuple[WeekMark, ...]:
        """Return the calendar of a programme."""
        return self._marks(programme, self._journal(programme.name), airflow)

    def _marks(
        self, programme: Programme, lines: Sequence[Line], airflow: AirflowNow
    ) -> tuple[WeekMark, ...]:
        """Return the calendar of a programme whose journal was read."""
        snapshot, follower = self.snapshot(), self._followed()
        evidence = Evidence(
            lines,
            self._approvals(programme, snapshot, lines),
            airflow,
            frozenset() if follower is None else follower.ledger.living_draws(),
            frozenset() if follower is None else self._absent(programme, snapshot, follower.ledger),
        )
        return calendar_of(programme, snapshot, evidence, self.clock())

    def _absent(
        self, programme: Programme, snapshot: LedgerSnapshot, ledger: Ledger
    ) -> frozenset[str]:
        """Return the releases in force whose packages are not in the public zone.

        Nobody looks for those that lie in a store, or that a person stated to be lost.
        """
        if self.settings.store_of("public") is not None or not self.settings.public.is_dir():
            return frozenset()
        weeks = snapshot.weeks_of(programme.name).values()
        keys = {str(revision.key) for week in weeks if (revision := week.in_force) is not None}
        absent = {key for key in keys if not (self.settings.public / key).is_dir()}
        lost = ledger.parties().lost if absent else ()
        return frozenset(key for key in absent if f"{key} package" not in lost)

    def _approvals(
        self, programme: Programme, snapshot: LedgerSnapshot, lines: Sequence[Line]
    ) -> dict[str, ApprovalStanding]:
        """Return where the approval of each week that is sealed and not public stands."""
        follower = self._followed()
        if follower is None or not programme.approval.required:
            return {}
        standings = {}
        for week in snapshot.weeks_of(programme.name).values():
            started = starters(line for line in lines if line.week == week.period)
            for attempt in week.withheld:
                with suppress(InputError):  # nobody can be read to hold the role: `broken` says it
                    standings[str(attempt.key)] = standing_of(
                        follower.ledger, attempt.key, programme, self.settings, started
                    )
        return standings

    def mark_of(self, programme: Programme, week: str, airflow: AirflowNow) -> WeekMark:
        """Return one week of a programme's calendar."""
        marks = self.marks_of(programme, airflow)
        return next((mark for mark in marks if mark.week == week), WeekMark(week, "missing"))

    def calendars(
        self, visible: frozenset[str], airflow: AirflowNow
    ) -> dict[str, tuple[WeekMark, ...]]:
        """Return the calendars of the programmes that this reader sees."""
        return {
            programme.name: self.marks_of(programme, airflow) for programme in self.seen_by(visible)
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

    def next_plans(self, visible: frozenset[str], airflow: AirflowNow) -> dict[str, Any]:
        """Return the plan of the next week of each programme."""
        follower, plans = self._followed(), {}
        for programme in self.seen_by(visible):
            week = next_week(programme, self.marks_of(programme, airflow))
            if week is not None and follower is not None:
                planned = plan_of(programme, self.settings.include, week)
                balances = follower.ledger.balance(programme.family, planned.week)
                plans[programme.name] = plan_view(planned, balances) | {
                    "crash": crash_words(programme, self.settings.include, week)
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
    periods = [first]
    while periods[-1].first_day < last.first_day and len(periods) <= WEEKS_AT_ONCE:
        periods.append(periods[-1].plus(1))
    if str(periods[-1]) != str(last) or len(periods) > WEEKS_AT_ONCE:
        rule = f"it must follow the first, by at most {WEEKS_AT_ONCE - 1} periods"
        raise InputError(where="form", field="last", rule=rule)
    if len(first.days) != programme.schedule.period_days:
        rule = f"{programme.name} is released by periods of {programme.schedule.period_days} days"
        raise InputError(where="form", field="first", rule=rule)
    return tuple(periods)
