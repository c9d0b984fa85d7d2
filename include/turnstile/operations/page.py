"""The budget page of a deployment: opens ledger, journal and public zone, and answers each view.

Reads only. A reader sees the programmes that he may see, and the books of their families.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from turnstile.errors import InputError, TurnstileError
from turnstile.ledger.presentation import most_spent
from turnstile.ledger.view import LedgerView
from turnstile.operations import budget_html, page_data, page_html, section_html, week_html
from turnstile.operations.books import Books, LedgerPicture
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.operations.page_data import WeekMark
from turnstile.operations.plan_view import plan_of, plan_view
from turnstile.programme.loading import load_programme, programme_files
from turnstile.programme.spec import Programme
from turnstile.service_calendar import parse_period
from turnstile.settings import Settings

QUALITY_WEEKS = 104


@dataclass(slots=True)
class BudgetPage:
    """Answers for one deployment; safe to share between threads.

    Args:
        settings: where everything lies.
        clock: the present instant.
    """

    settings: Settings
    clock: Callable[[], datetime]
    _books: Books | None = field(default=None, init=False)

    def programmes(self) -> tuple[Programme, ...]:
        """Return the programmes whose files can be read; a broken file hides its own only."""
        return tuple(self._readable())

    def budget(self, visible: frozenset[str], paused: Mapping[str, bool] | None = None) -> str:
        """Return programmes, balances and forecasts.

        Args:
            visible: programmes that the reader may see.
            paused: programmes that Airflow has a DAG of, and whether it is paused.
        """
        in_airflow = {name: "paused" if is_ else "active" for name, is_ in (paused or {}).items()}
        picture, seen = self.picture(), self._seen(visible)
        families = frozenset(one.family for one in seen)
        states = [
            page_data.state_of_programme(
                one,
                self._marks(one, picture, lines),
                lines,
                in_airflow.get(one.name, "no DAG"),
            )
            for one in seen
            for lines in (self._journal(one),)
        ]
        states.sort(key=lambda state: state["weeks_published"] == 0)
        body = budget_html.budget_body(
            states,
            [one for one in most_spent(picture.balances) if one.family in families],
            [one for one in picture.forecasts if one.family in families],
            picture.problems,
        )
        return page_html.page("", "Privacy budget", body, root="")

    def calendar(self, visible: frozenset[str]) -> str:
        """Return the weeks of every programme."""
        body = section_html.calendar_body(self._calendars(visible))
        return page_html.page("calendar", "Weeks", body, root="")

    def ledger(self, visible: frozenset[str], wanted: Mapping[str, str]) -> str:
        """Return the entries that were asked for."""
        lines = page_data.entries_view(self.picture().lines, visible, dict(wanted))
        choices = {"programme": sorted(visible), "kind": page_data.kinds()}
        body = section_html.ledger_body(lines, wanted, choices, self._runs(visible))
        return page_html.page("ledger", "Ledger", body, root="")

    def plan(self, visible: frozenset[str]) -> str:
        """Return the next week of every programme."""
        found = {one.name: None for one in self._seen(visible)}
        body = section_html.plan_body(found | self._plans(visible))
        return page_html.page("plan", "Next week", body, root="")

    def quality(self, visible: frozenset[str]) -> str:
        """Return the history of verdicts."""
        found = {name: self._verdicts(name) for name in sorted(visible)}
        shown = {name: verdicts for name, verdicts in found.items() if verdicts}
        body = week_html.quality_body(shown, QUALITY_WEEKS)
        return page_html.page("quality", "Quality of the input, rule by week", body, root="")

    def week(self, programme: str, week: str, revision: int | None) -> str:
        """Return a published week.

        Raises:
            InputError: it is not a week, or not public.
        """
        from turnstile.operations.week_view import card_of, week_in

        spec = load_programme(programme, self.settings.include)
        name = str(parse_period(week, where="page"))
        mark = self._mark(spec, name)
        number = mark.revision if revision is None else revision
        package = self.settings.public / spec.name / name / f"r{number}"
        if not (package / "manifest.json").is_file():
            raise InputError(where="page", field="week", rule=f"{name} r{number} is not public")
        shown = week_in(package, spec, self.settings.include, card_of(package))
        files = sorted(p.relative_to(package).as_posix() for p in package.rglob("*") if p.is_file())
        body = week_html.week_body(shown, mark, spec.name, files)
        title = f"{spec.title}, {name}, r{number}"
        return page_html.page("calendar", title, body, root="../../")

    def embargoed(self, programme: str, week: str) -> str:
        """Return a week that waits for approval; for those who may edit the DAG's runs.

        Raises:
            InputError: it is not a week, or nothing of it lies under embargo.
        """
        from turnstile.operations.week_view import week_in

        spec = load_programme(programme, self.settings.include)
        name = str(parse_period(week, where="page"))
        revision = self._mark(spec, name).revision
        folder = self.settings.embargoed / spec.name / name / f"r{revision}"
        if not (folder / "assessment.json").is_file():
            rule = f"nothing of {name} lies under embargo"
            raise InputError(where="page", field="week", rule=rule)
        losses = plan_view(plan_of(spec, self.settings.include, name), ())["loss"]
        entry = {"sequence": "none yet"}
        card = {"title": spec.title, "guarantee": {"units": losses}, "ledger": entry}
        shown = week_in(folder, spec, self.settings.include, card)
        mark = WeekMark(name, "under embargo: not public")
        body = week_html.week_body(shown, mark, spec.name, ())
        return page_html.page("calendar", f"{spec.title}, {name}, embargoed", body, root="../../")

    def data(self, view: str, visible: frozenset[str], wanted: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
        """Return a view as plain values.

        Raises:
            InputError: there is no such view.
        """
        picture = self.picture()
        families = frozenset(one.family for one in self._seen(visible))
        if view == "balance":
            return page_data.balance_view(picture, families)
        if view == "forecast":
            return page_data.forecast_view(picture, families)
        if view == "calendar":
            return {n: [_plain(m) for m in marks] for n, marks in self._calendars(visible).items()}
        if view == "entries":
            lines = page_data.entries_view(picture.lines, visible, dict(wanted))
            return [_plain(line) for line in lines[: page_data.PAGE_LINES]]
        if view == "plan":
            return self._plans(visible)
        rule = f"{view!r} is none; choose balance, forecast, calendar, entries or plan"
        raise InputError(where="page", field="view", rule=rule)

    def warm(self) -> None:
        """Fold the ledger before the first reader comes; trouble shows when he does."""
        try:
            self.picture()
        except TurnstileError:
            return

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

    def picture(self) -> LedgerPicture:
        """Return the present state of the ledger; empty before the first release."""
        if self._books is None:
            file = self.settings.ledger_url.partition("sqlite:///")[2]
            if file and not Path(file).exists():
                return LedgerPicture((), (), {}, (), (), 0)
            ledger = LedgerView.open(
                self.settings.ledger_url,
                clock=self.clock,
                witnesses=self.settings.witness,
                public=self.settings.public,
            )
            self._books = Books(ledger)
        return self._books.now()

    def _journal(self, programme: Programme) -> tuple[Line, ...]:
        """Return what runs told about a programme."""
        return Journal.of(self.settings).of_programme(programme.name)

    def _marks(
        self, programme: Programme, picture: LedgerPicture, lines: Sequence[Line]
    ) -> tuple[WeekMark, ...]:
        """Return the calendar of a programme."""
        return page_data.calendar_of(programme, picture, lines, self.clock())

    def _mark(self, programme: Programme, week: str) -> WeekMark:
        """Return one week of a programme's calendar."""
        marks = self._marks(programme, self.picture(), self._journal(programme))
        return next((one for one in marks if one.week == week), WeekMark(week, "missing"))

    def _calendars(self, visible: frozenset[str]) -> dict[str, tuple[WeekMark, ...]]:
        """Return the calendars of the programmes that this reader sees."""
        picture = self.picture()
        return {
            one.name: self._marks(one, picture, self._journal(one)) for one in self._seen(visible)
        }

    def _runs(self, visible: frozenset[str]) -> dict[str, str]:
        """Return the last run of each release key."""
        journal = Journal.of(self.settings)
        return {
            f"{line.programme}/{line.week}/r{line.told.get('revision', 0)}": line.run_id
            for name in sorted(visible)
            for line in journal.of_programme(name)
            if line.happening is Happening.BEGUN and line.run_id
        }

    def _plans(self, visible: frozenset[str]) -> dict[str, Any]:
        """Return the plan of the next week of each programme."""
        picture = self.picture()
        plans = {}
        for one in self._seen(visible):
            week = page_data.next_week(self._marks(one, picture, self._journal(one)))
            if week is not None:
                planned = plan_of(one, self.settings.include, week)
                plans[one.name] = plan_view(planned, picture.balances)
        return plans

    def _verdicts(self, programme: str) -> dict[tuple[str, str], str]:
        """Return the last verdict of each rule and week."""
        return {
            (rule, line.week): verdict
            for line in Journal.of(self.settings).of_programme(programme)
            if line.happening is Happening.JUDGED
            for rule, verdict in line.told.get("verdicts", {}).items()
        }


def _plain(record: Any) -> dict[str, Any]:  # noqa: ANN401 - a frozen record
    """Return a record's fields."""
    return {name: getattr(record, name) for name in record.__slots__}
