"""The budget page of a deployment: answers each view from what `deployment_state` reads.

Reads only. A reader sees the programmes that they may see, and the accounts of their budget groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from turnstile.errors import InputError, TurnstileError
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.presentation import most_spent
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.weeks import Week
from turnstile.operations.airflow_now import AirflowNow
from turnstile.operations.amount_words import cap_states
from turnstile.operations.budget_page import page_json
from turnstile.operations.budget_page.page_templates import render
from turnstile.operations.budget_page.plan_view import plan_of, plan_view
from turnstile.operations.calendar_of_weeks import folded
from turnstile.operations.deployment_state import DeploymentState
from turnstile.operations.people.release_preview import Preview, seen
from turnstile.operations.verdicts import verdict_history
from turnstile.operations.week_states import STATES, WeekMark
from turnstile.pipeline.context import as_bound
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import Programme
from turnstile.release.zone_copies import zones
from turnstile.service_calendar import parse_period


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that Airflow has open about a week.

    Args:
        run_id: of the run that asks.
        task: that asks.
        seen: what was shown: sealed bytes, run and task, so that an answer is about these.
    """

    run_id: str
    task: str
    seen: str


class BudgetPage(DeploymentState):
    """Answers for one deployment; safe to share between threads."""

    __slots__ = ()

    def budget(self, visible: frozenset[str], airflow: AirflowNow) -> str:
        """Return where every programme stands, and how full the caps are.

        Args:
            visible: programmes that the reader may see.
            airflow: what Airflow says of them.
        """
        snapshot, shown = self.snapshot(), self.seen_by(visible)
        families = frozenset(programme.family for programme in shown)
        forecasts = [forecast for forecast in snapshot.forecasts if forecast.family in families]
        balances = [
            balance for balance in most_spent(snapshot.balances) if balance.family in families
        ]
        states = sorted(
            (self.now_of(programme, airflow) for programme in shown),
            key=lambda state: (state.weeks_public == 0, -len(state.attention)),
        )
        return render(
            "budget.html",
            root="",
            section="",
            title="Privacy budget",
            programmes=states,
            caps=cap_states(balances, forecasts),
            uncapped=[balance for balance in balances if balance.cap is None],
            forecasts=forecasts,
            trouble=self.trouble(snapshot),
            verified=self.verified(snapshot),
            broken=self.broken(visible),
        )

    def in_one_sentence(self, programme: Programme, airflow: AirflowNow) -> str:
        """Say where a programme stands and how full its caps are."""
        snapshot = self.snapshot()
        state = self.now_of(programme, airflow)
        mine = [
            balance
            for balance in most_spent(snapshot.balances)
            if balance.family == programme.family
        ]
        used = [cap.used for cap in cap_states(mine, snapshot.forecasts) if cap.forecast]
        troubles = [f"{attention.weeks}: {attention.reason}" for attention in state.attention]
        return f"{state.verdict}: {'; '.join([state.answer.rstrip('.'), *used, *troubles])}"

    def calendar(self, visible: frozenset[str], airflow: AirflowNow) -> str:
        """Return the weeks of every programme, those first that have any."""
        calendars = self.calendars(visible, airflow)
        return render(
            "weeks.html",
            root="",
            section="calendar",
            title="Weeks",
            calendars=dict(sorted(calendars.items(), key=lambda pair: not pair[1])),
            folded=folded,
            states=STATES,
            broken=self.broken(visible),
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
            runs=self.runs(visible),
            newer=at - 1 if at else None,
            older=at + 1 if (at + 1) * size < len(lines) else None,
        )

    def plan(self, visible: frozenset[str], airflow: AirflowNow) -> str:
        """Return the next week of every programme."""
        empty_plans: dict[str, Any] = {programme.name: None for programme in self.seen_by(visible)}
        plans = empty_plans | self.next_plans(visible, airflow)
        return render("plan.html", root="", section="plan", title="Next week", plans=plans)

    def quality(self, visible: frozenset[str], _: AirflowNow) -> str:
        """Return the history of verdicts."""
        all_verdicts = {name: self.verdicts_of(name) for name in sorted(visible)}
        histories = {
            name: verdict_history(verdicts) for name, verdicts in all_verdicts.items() if verdicts
        }
        title = "Quality of the input, rule by week"
        return render("quality.html", root="", section="quality", title=title, histories=histories)

    def release(
        self,
        visible: frozenset[str],
        wanted: Mapping[str, str],
        airflow: AirflowNow,
        *,
        may_release: bool,
        note: str = "",
    ) -> str:
        """Return the form that asks for weeks, and what a click would charge.

        Args:
            visible: programmes that the reader may see.
            wanted: programme, first and last week, as asked for.
            airflow: what Airflow says of the programmes.
            may_release: whether the reader may start runs of the programme.
            note: what is to be said first, such as what became of a click.
        """
        preview: Preview | None = None
        programme, problem = wanted.get("programme", ""), ""
        if programme in visible and wanted.get("first"):
            try:
                preview = self.weeks_previewed(programme, wanted, airflow)
            except TurnstileError as error:
                problem = str(error)
        spec = next(
            (candidate for candidate in self.programmes() if candidate.name == programme), None
        )
        state = self.now_of(spec, airflow) if spec and preview else None
        return render(
            "release.html",
            root="",
            section="release",
            title="Release weeks",
            programmes=self.seen_by(visible),
            wanted={name: wanted.get(name, "") for name in ("programme", "first", "last")},
            preview=preview,
            seen=seen(spec, preview) if spec and preview else "",
            not_at_once=state.not_at_once if state else "",
            may_release=may_release,
            problem=problem,
            note=note,
        )

    def week(
        self,
        programme: str,
        week: str,
        airflow: AirflowNow,
        *,
        revision: int | None = None,
        place: str = "",
    ) -> str:
        """Return a published week, with unbiased numbers and estimates of a chosen place.

        Raises:
            InputError: it is not a week, or not public.
        """
        from turnstile.operations.budget_page.place_compared import place_in
        from turnstile.operations.budget_page.published_week import card_of, week_in

        spec = load_programme(programme, self.settings.include)
        name = str(parse_period(week, where="page"))
        mark = self.mark_of(spec, name, airflow)
        number = mark.revision if revision is None else revision
        made_by = self._made_by(spec, ReleaseKey(spec.name, name, number))
        zones(self.settings).refresh()
        package = self.settings.public / spec.name / name / f"r{number}"
        if not (package / "manifest.json").is_file():
            raise InputError(where="page", field="week", rule=f"{name} r{number} is not public")
        files = sorted(p.relative_to(package).as_posix() for p in package.rglob("*") if p.is_file())
        return render(
            "week.html",
            root="../../",
            section="calendar",
            title=f"{spec.title}, {name}, r{number}",
            shown=week_in(package, made_by, self.settings.include, card_of(package)),
            compared=place_in(package, place),
            revision=number,
            mark=mark,
            programme=spec.name,
            files=files,
            meaning=STATES.get(mark.state, mark.state),
        )

    def embargoed(self, programme: str, week: str, airflow: AirflowNow, *, note: str = "") -> str:
        """Return the desk of a week that waits for approval, for who may edit the DAG's runs.

        Raises:
            InputError: it is not a week, or nothing of it lies under embargo.
        """
        from turnstile.operations.budget_page.published_week import week_beside, week_in

        spec, mark = self._under_embargo(programme, week, airflow)
        key = ReleaseKey(spec.name, mark.week, mark.revision)
        zones(self.settings).refresh(key)
        folder = self.settings.embargoed / str(key)
        if mark.of_budget == "public" or not (folder / "assessment.json").is_file():
            rule = f"nothing of {mark.week} lies under embargo"
            raise InputError(where="page", field="week", rule=rule)
        made_by, last = self._made_by(spec, key), self._last_public(spec, mark.week)
        planned = plan_of(made_by.charged, self.settings.include, mark.week, mark.revision)
        losses = plan_view(planned, ())["loss"]
        entry = {"sequence": "none yet"}
        card = {"title": spec.title, "guarantee": {"units": losses}, "ledger": entry}
        shown = week_in(folder, made_by, self.settings.include, card)
        words = {rule: word for (rule, of), word in self.verdicts_of(spec.name).items()
                 if of == mark.week}  # fmt: skip
        return render(
            "desk.html",
            root="../../",
            section="calendar",
            title=f"{spec.title}, {mark.week}, under embargo",
            shown=shown,
            beside=last and week_beside(shown, last, self._made_by(spec, last), self.settings),
            verdicts=words,
            question=self.open_question(programme, week, airflow),
            note=note,
            compared=None,
            revision=mark.revision,
            mark=mark,
            programme=spec.name,
            files=(),
            meaning=f"under embargo, not public; {mark.reason or STATES.get(mark.state, '')}",
        )

    def open_question(self, programme: str, week: str, airflow: AirflowNow) -> OpenQuestion | None:
        """Return the question that Airflow has open about a week; None if it has none."""
        spec, mark = self._under_embargo(programme, week, airflow)
        run = airflow.run_of(spec.name, mark.week, mark.run_id)
        task = run.asks if run is not None else ""
        if run is None or not task.startswith("ask") or task.startswith("ask_revision"):
            return None
        sealed = self.snapshot().weeks_of(spec.name)[mark.week].revision(mark.revision).sealed
        if sealed is None:
            return None
        return OpenQuestion(run.run_id, task, f"{sealed.artefact_digest}/{run.run_id}/{task}")

    def _under_embargo(
        self, programme: str, week: str, airflow: AirflowNow
    ) -> tuple[Programme, WeekMark]:
        """Return a programme, and the mark of the week's revision that is not public."""
        spec = load_programme(programme, self.settings.include)
        mark = self.mark_of(spec, str(parse_period(week, where="page")), airflow)
        return spec, mark.current

    def _made_by(self, programme: Programme, key: ReleaseKey) -> Programme:
        """Return the text that a release was made under: its tables may be others than today's."""
        week = self.snapshot().weeks_of(programme.name).get(key.period, Week(key.period))
        return as_bound(programme, week.revision(key.revision).sealed, self.settings.include)

    def _last_public(self, programme: Programme, week: str) -> ReleaseKey | None:
        """Return the release in force of the last week before one, or of itself, if any is."""
        weeks = self.snapshot().weeks_of(programme.name).values()
        public = [
            revision.key
            for past_week in weeks
            if (revision := past_week.in_force) is not None and past_week.period <= week
        ]
        return max(public, key=lambda key: key.period, default=None)

    def problem(self, sentence: str, root: str, kept: Mapping[str, str] | None = None) -> str:
        """Return a page that says what is wrong with what was asked for.

        Args:
            sentence: what, and what to do.
            root: of the page's addresses.
            kept: fields of a form that was not taken, to be sent again from here.
        """
        return render(
            "problem.html",
            root=root,
            section="none",
            title="Nothing here",
            sentence=sentence,
            kept=kept or {},
        )

    def data(
        self, view: str, visible: frozenset[str], wanted: Mapping[str, str], airflow: AirflowNow
    ) -> Any:  # noqa: ANN401 - JSON
        """Return a view as plain values.

        Raises:
            InputError: there is no such view.
        """
        snapshot = self.snapshot()
        families = frozenset(programme.family for programme in self.seen_by(visible))
        if view == "balance":
            return page_json.balance_view(snapshot, families)
        if view == "forecast":
            return page_json.forecast_view(snapshot, families)
        if view == "calendar":
            calendars = self.calendars(visible, airflow)
            return {n: [asdict(m) for m in marks] for n, marks in calendars.items()}
        if view == "entries":
            lines = page_json.entries_view(snapshot.lines, visible, dict(wanted))
            return [asdict(line) for line in lines[: page_json.PAGE_LINES]]
        if view == "plan":
            return self.next_plans(visible, airflow)
        rule = f"{view!r} is none; choose balance, forecast, calendar, entries or plan"
        raise InputError(where="page", field="view", rule=rule)
