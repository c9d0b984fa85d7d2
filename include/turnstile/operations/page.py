"""The budget page of a deployment: opens ledger, journal and public zone, and answers each view.

Reads only. A reader sees the programmes that they may see, and the accounts of their budget groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from turnstile.errors import InputError, TurnstileError
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.presentation import most_spent
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.ledger.view import LedgerView
from turnstile.operations import page_json
from turnstile.operations.amount_words import cap_states
from turnstile.operations.calendar_of_weeks import STATES, WeekMark, calendar_of, next_week
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.operations.ledger_snapshot import LedgerFollower, LedgerSnapshot
from turnstile.operations.page_templates import render
from turnstile.operations.plan_view import plan_of, plan_view
from turnstile.operations.programme_now import (
    AirflowNow,
    ProgrammeNow,
    open_runs_by_week,
    programme_now,
)
from turnstile.operations.release_preview import WeekPreview, preview, seen
from turnstile.operations.verdicts import verdict_history
from turnstile.pipeline.approvals import standing_of
from turnstile.programme.approval_rule import ApprovalStanding
from turnstile.programme.loading import load_programme, programme_files
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod, parse_period
from turnstile.settings import Settings

WEEKS_AT_ONCE = 53


@dataclass(slots=True)
class BudgetPage:
    """Answers for one deployment; safe to share between threads.

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

    def budget(self, visible: frozenset[str], airflow: AirflowNow) -> str:
        """Return where every programme stands, and how full the caps are.

        Args:
            visible: programmes that the reader may see.
            airflow: what Airflow says of them.
        """
        snapshot, shown = self.snapshot(), self._seen(visible)
        families = frozenset(one.family for one in shown)
        forecasts = [one for one in snapshot.forecasts if one.family in families]
        balances = [one for one in most_spent(snapshot.balances) if one.family in families]
        states = sorted(
            (self._now(one, snapshot, airflow) for one in shown),
            key=lambda state: (state.weeks_public == 0, -len(state.attention)),
        )
        return render(
            "budget.html",
            root="",
            section="",
            title="Privacy budget",
            programmes=states,
            caps=cap_states(balances, forecasts),
            uncapped=[one for one in balances if one.cap is None],
            forecasts=forecasts,
            problems=snapshot.problems,
        )

    def in_one_sentence(self, programme: Programme) -> str:
        """Say where a programme stands and how full its caps are, without asking Airflow."""
        snapshot = self.snapshot()
        state = self._now(programme, snapshot, AirflowNow())
        mine = [one for one in most_spent(snapshot.balances) if one.family == programme.family]
        used = [one.used for one in cap_states(mine, snapshot.forecasts) if one.forecast]
        troubles = [f"{one.weeks}: {one.reason}" for one in state.attention]
        return f"{state.verdict}: {'; '.join([state.answer.rstrip('.'), *used, *troubles])}"

    def calendar(self, visible: frozenset[str]) -> str:
        """Return the weeks of every programme."""
        return render(
            "weeks.html",
            root="",
            section="calendar",
            title="Weeks",
            calendars=self._calendars(visible),
            states=STATES,
        )

    def ledger(self, visible: frozenset[str], wanted: Mapping[str, str]) -> str:
        """Return the entries that were asked for."""
        lines = page_json.entries_view(self.snapshot().lines, visible, dict(wanted))
        at = max(0, int(wanted.get("page") or 0))
        size = page_json.PAGE_LINES
        return render(
            "ledger.html",
            root="",
            section="ledger",
            title="Ledger",
            lines=lines[at * size : (at + 1) * size],
            count=len(lines),
            wanted={name: wanted.get(name, "") for name in ("programme", "kind", "key")},
            programmes=sorted(visible),
            kinds=[kind.value for kind in EntryKind],
            runs=self._runs(visible),
            newer=at - 1 if at else None,
            older=at + 1 if (at + 1) * size < len(lines) else None,
        )

    def plan(self, visible: frozenset[str]) -> str:
        """Return the next week of every programme."""
        found: dict[str, Any] = {one.name: None for one in self._seen(visible)}
        plans = found | self._plans(visible)
        return render("plan.html", root="", section="plan", title="Next week", plans=plans)

    def quality(self, visible: frozenset[str]) -> str:
        """Return the history of verdicts."""
        found = {name: self._verdicts(name) for name in sorted(visible)}
        histories = {name: verdict_history(one) for name, one in found.items() if one}
        title = "Quality of the input, rule by week"
        return render("quality.html", root="", section="quality", title=title, histories=histories)

    def release(
        self,
        visible: frozenset[str],
        wanted: Mapping[str, str],
        *,
        may_release: bool,
        note: str = "",
    ) -> str:
        """Return the form that asks for weeks, and what a click would charge.

        Args:
            visible: programmes that the reader may see.
            wanted: programme, first and last week, as asked for.
            may_release: whether the reader may start runs of the programme.
            note: what is to be said first, such as what became of a click.
        """
        weeks: tuple[WeekPreview, ...] = ()
        programme, problem = wanted.get("programme", ""), ""
        if programme in visible and wanted.get("first"):
            try:
                weeks = self.weeks_previewed(programme, wanted)
            except TurnstileError as error:
                problem = str(error)
        spec = next((one for one in self.programmes() if one.name == programme), None)
        return render(
            "release.html",
            root="",
            section="release",
            title="Release weeks",
            programmes=self._seen(visible),
            wanted={name: wanted.get(name, "") for name in ("programme", "first", "last")},
            weeks=weeks,
            seen=seen(spec, weeks) if spec and weeks else "",
            may_release=may_release,
            problem=problem,
            note=note,
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
        return preview(spec, plans, marks, snapshot.accounts.get(spec.family))

    def week(self, programme: str, week: str, revision: int | None) -> str:
        """Return a published week.

        Raises:
            InputError: it is not a week, or not public.
        """
        from turnstile.operations.published_week import card_of, week_in

        spec = load_programme(programme, self.settings.include)
        name = str(parse_period(week, where="page"))
        mark = self._mark(spec, name)
        number = mark.revision if revision is None else revision
        package = self.settings.public / spec.name / name / f"r{number}"
        if not (package / "manifest.json").is_file():
            raise InputError(where="page", field="week", rule=f"{name} r{number} is not public")
        files = sorted(p.relative_to(package).as_posix() for p in package.rglob("*") if p.is_file())
        return render(
            "week.html",
            root="../../",
            section="calendar",
            title=f"{spec.title}, {name}, r{number}",
            shown=week_in(package, spec, self.settings.include, card_of(package)),
            mark=mark,
            programme=spec.name,
            files=files,
            meaning=STATES.get(mark.state, mark.state),
        )

    def embargoed(self, programme: str, week: str) -> str:
        """Return a week that waits for approval; for those who may edit the DAG's runs.

        Raises:
            InputError: it is not a week, or nothing of it lies under embargo.
        """
        from turnstile.operations.published_week import week_in

        spec = load_programme(programme, self.settings.include)
        name = str(parse_period(week, where="page"))
        mark = self._mark(spec, name)
        folder = self.settings.embargoed / spec.name / name / f"r{mark.revision}"
        if not (folder / "assessment.json").is_file():
            rule = f"nothing of {name} lies under embargo"
            raise InputError(where="page", field="week", rule=rule)
        losses = plan_view(plan_of(spec, self.settings.include, name), ())["loss"]
        entry = {"sequence": "none yet"}
        card = {"title": spec.title, "guarantee": {"units": losses}, "ledger": entry}
        return render(
            "week.html",
            root="../../",
            section="calendar",
            title=f"{spec.title}, {name}, under embargo",
            shown=week_in(folder, spec, self.settings.include, card),
            mark=mark,
            programme=spec.name,
            files=(),
            meaning=f"under embargo, not public; {mark.reason or STATES.get(mark.state, '')}",
        )

    def problem(self, sentence: str, root: str) -> str:
        """Return a page that says what is wrong with what was asked for."""
        return render(
            "problem.html", root=root, section="none", title="Nothing here", sentence=sentence
        )

    def data(self, view: str, visible: frozenset[str], wanted: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
        """Return a view as plain values.

        Raises:
            InputError: there is no such view.
        """
        snapshot = self.snapshot()
        families = frozenset(one.family for one in self._seen(visible))
        if view == "balance":
            return page_json.balance_view(snapshot, families)
        if view == "forecast":
            return page_json.forecast_view(snapshot, families)
        if view == "calendar":
            found = self._calendars(visible)
            return {n: [page_json.plain(m) for m in marks] for n, marks in found.items()}
        if view == "entries":
            lines = page_json.entries_view(snapshot.lines, visible, dict(wanted))
            return [page_json.plain(line) for line in lines[: page_json.PAGE_LINES]]
        if view == "plan":
            return self._plans(visible)
        rule = f"{view!r} is none; choose balance, forecast, calendar, entries or plan"
        raise InputError(where="page", field="view", rule=rule)

    def warm(self) -> None:
        """Fold the ledger before the first reader comes; trouble shows when they do."""
        try:
            self.snapshot()
        except TurnstileError:
            return

    def open_run_ids(self, visible: frozenset[str]) -> frozenset[str]:
        """Return the runs that said that they began, and not how they ended."""
        journal = Journal.of(self.settings)
        return frozenset(
            line.run_id
            for name in visible
            for line in open_runs_by_week(journal.of_programme(name))
        )

    def _readable(self) -> Iterator[Programme]:
        """Yield the programmes that can be read."""
        for file in programme_files(self.settings.include):
            try:
                yield load_programme(file.name, self.settings.include)
            except TurnstileError:
                continue

    def _seen(self, visible: frozenset[str]) -> tuple[Programme, ...]:
        """Return the programmes that this reader sees."""
        return tuple(one for one in self.programmes() if one.name in visible)

    def snapshot(self) -> LedgerSnapshot:
        """Return the present state of the ledger; empty before the first release."""
        follower = self._followed()
        return LedgerSnapshot((), (), {}, (), (), 0) if follower is None else follower.now()

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

    def _now(
        self, programme: Programme, snapshot: LedgerSnapshot, airflow: AirflowNow
    ) -> ProgrammeNow:
        """Return where a programme stands."""
        lines = self._journal(programme)
        marks = self._marks(programme, snapshot, lines)
        return programme_now(programme, marks, lines, self.clock(), airflow)

    def _marks(
        self, programme: Programme, snapshot: LedgerSnapshot, lines: Sequence[Line]
    ) -> tuple[WeekMark, ...]:
        """Return the calendar of a programme."""
        approvals = self._approvals(programme, snapshot)
        return calendar_of(programme, snapshot, lines, self.clock(), approvals)

    def _approvals(
        self, programme: Programme, snapshot: LedgerSnapshot
    ) -> dict[str, ApprovalStanding]:
        """Return where the approval of each week that is sealed and not public stands."""
        follower = self._followed()
        if follower is None or not programme.approval.required:
            return {}
        return {
            one.key: standing_of(
                follower.ledger, ReleaseKey.parse(one.key), programme, self.settings
            )
            for one in snapshot.attempts_of(programme.name)
            if one.state is ReleaseState.SEALED
        }

    def _mark(self, programme: Programme, week: str) -> WeekMark:
        """Return one week of a programme's calendar."""
        marks = self._marks(programme, self.snapshot(), self._journal(programme))
        return next((one for one in marks if one.week == week), WeekMark(week, "missing"))

    def _calendars(self, visible: frozenset[str]) -> dict[str, tuple[WeekMark, ...]]:
        """Return the calendars of the programmes that this reader sees."""
        snapshot = self.snapshot()
        return {
            one.name: self._marks(one, snapshot, self._journal(one)) for one in self._seen(visible)
        }

    def _runs(self, visible: frozenset[str]) -> dict[str, str]:
        """Return the last run of each release key."""
        journal = Journal.of(self.settings)
        return {
            f"{line.programme}/{line.week}/r{line.details.get('revision', 0)}": line.run_id
            for name in sorted(visible)
            for line in journal.of_programme(name)
            if line.happening is Happening.BEGUN and line.run_id
        }

    def _plans(self, visible: frozenset[str]) -> dict[str, Any]:
        """Return the plan of the next week of each programme."""
        snapshot = self.snapshot()
        plans = {}
        for one in self._seen(visible):
            week = next_week(self._marks(one, snapshot, self._journal(one)))
            if week is not None:
                planned = plan_of(one, self.settings.include, week)
                plans[one.name] = plan_view(planned, snapshot.balances)
        return plans

    def _verdicts(self, programme: str) -> dict[tuple[str, str], str]:
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
