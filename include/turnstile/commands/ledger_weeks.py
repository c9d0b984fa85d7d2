"""`turnstile ledger weeks`: the state of every week, in the words of the budget page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.commands.ledger_opened import open_to_read
from turnstile.commands.printed_json import print_json
from turnstile.errors import TurnstileError
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnstile.operations.airflow_now import AirflowNow
    from turnstile.operations.budget_page.page import BudgetPage
    from turnstile.operations.week_states import WeekMark
    from turnstile.programme.spec import Programme

_NOT_ASKED = "Airflow was not asked (--airflow): of runs, this is what they reported themselves"


def add_weeks(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    weeks = actions.add_parser("weeks", help="the state of every week, in the words of the page")
    weeks.add_argument("--programme", help="one programme only")
    weeks.add_argument("--airflow", help="whom to ask about runs, http://127.0.0.1:8080")
    weeks.add_argument("--user", default="", help="of that Airflow, who may read")
    weeks.add_argument("--password-file", type=Path, help="holds that user's password")
    weeks.add_argument("--json", action="store_true", help="for scripts")
    weeks.set_defaults(command=_weeks)


def _weeks(args: argparse.Namespace) -> int:
    """Show where every programme stands, and its weeks."""
    from turnstile.ledger.of_deployment import require_not_lost
    from turnstile.operations.budget_page.page import BudgetPage

    settings, ledger = Settings.from_environment(), open_to_read()  # or says what to do
    require_not_lost(settings, ledger.head()[0])
    page = BudgetPage(settings, system_clock)
    airflow = _airflow_now(args, page)
    shown = [spec for spec in page.programmes() if args.programme in {None, spec.name}]
    if args.json:
        names = frozenset(spec.name for spec in shown)
        print_json(page.data("calendar", names, {}, airflow))
        return 0
    lines = [] if airflow.was_asked else [_NOT_ASKED]
    lines += [
        f"{broken.name}: cannot be read: {broken.problem}"
        for broken in page.broken(page.ever_known())
    ]
    for programme in shown:
        lines += _of_programme(page, programme, airflow)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def _airflow_now(args: argparse.Namespace, page: BudgetPage) -> AirflowNow:
    """Return what the named Airflow says; nothing where none is named."""
    from turnstile.operations.airflow_api import AirflowApi
    from turnstile.operations.airflow_now import AirflowNow

    if not args.airflow:
        return AirflowNow()
    password = args.password_file.read_text("utf-8").strip() if args.password_file else ""
    asked = page.runs_asked(page.ever_known())
    try:
        return AirflowApi(args.airflow, args.user, password).now(asked, page.period_of_run)
    except TurnstileError as error:
        without = "without --airflow this says what the runs reported themselves"
        raise TurnstileError(f"{error}; {without}") from None


def _of_programme(page: BudgetPage, programme: Programme, airflow: AirflowNow) -> Iterator[str]:
    """Yield the sentence of a programme, its weeks, and what somebody has to do."""
    from turnstile.operations.calendar_of_weeks import folded

    yield f"{programme.name}: {page.in_one_sentence(programme, airflow)}"
    for mark, end, length in folded(page.marks_of(programme, airflow)):
        if length > 1:
            yield f"  {mark.week} to {end.week}  missing: {length} weeks that no run took up"
            continue
        yield f"  {_words(mark)}"
        if mark.correction is not None:
            yield f"  {_words(mark.correction)}"
    for item in page.now_of(programme, airflow).attention:
        yield f"  to do, {item.weeks}: {item.next_step}"


def _words(mark: WeekMark) -> str:
    """Say the state of a week."""
    revision = f" r{mark.revision}" if mark.revision else ""
    reason = f": {mark.reason}" if mark.reason else ""
    return f"{mark.week}{revision}  {mark.state.replace('_', ' ')}{reason}"
