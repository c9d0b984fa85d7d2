"""`make release` and `make ui`: generated data, a native Airflow, successive weeks, a summary.

Run as `python -m turnstile_native.weekly_release`. The weeks are released by a backfill of the
real DAGs through the real scheduler. Repeated, the same runs run again, and no byte may change.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

from turnstile.errors import TurnstileError
from turnstile.operations.airflow_api import AirflowApi
from turnstile.programme.calendar.release_schedule import final_at
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings, system_clock
from turnstile_native.backfill import WeekBackfill
from turnstile_native.found_database import found_database
from turnstile_native.native_environment import (
    DATABASE,
    USER,
    Secrets,
    airflow_environment,
    airflow_home,
    write_passwords,
)
from turnstile_native.native_stack import NativeStack, free_port
from turnstile_native.summary import above_noise_lines, find_packages, summary_lines

_START_S = 300
# So many that the tables say something: of 100,000 trips, quarter hours of places show noise alone.
_ROWS = {"opal": 1_000_000, "itms": 400_000}
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for.

    Args:
        programmes: names, in the order of the summary.
        first_week: of successive service weeks; None: see `weeks_to_release`.
        count: how many weeks.
        port: preferred TCP port of the API server.
        stays: True to leave Airflow running until a signal comes.
        timeout_s: bound on all runs together.
    """

    programmes: tuple[str, ...]
    first_week: ServiceWeek | None
    count: int
    port: int
    stays: bool
    timeout_s: int


def main(arguments: list[str] | None = None) -> int:
    """Release the weeks and return the exit code; 0 only if all were published."""
    for number in _SIGNALS:
        signal.signal(number, _interrupted)
    try:
        order = parse_order(arguments)
        settings = Settings.from_environment()
        settings = replace(settings, adopted=settings.adopted | set(order.programmes))
        programmes = tuple(load_programme(name, settings.include) for name in order.programmes)
        weeks = weeks_to_release(order, settings, programmes, system_clock())
        for programme in programmes:
            _make_landing_data(settings, programme, weeks)
        return _release(order, settings, programmes, weeks)
    except TurnstileError as error:
        _say(f"stopped: {error}")
        return error.exit_code


def parse_order(arguments: list[str] | None) -> Order:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programme", action="append", help="default: opal and itms")
    parser.add_argument(
        "--first-week",
        help="ISO week; default: the first of this home, else so"
        " that the last one is over just now",
    )
    parser.add_argument("--weeks", type=int, default=3, help="how many successive weeks (3)")
    parser.add_argument("--port", type=int, default=8080, help="preferred port (8080)")
    parser.add_argument("--stay", action="store_true", help="leave Airflow running")
    parser.add_argument("--timeout-s", type=int, default=1800, help="bound on all runs (1800)")
    given = parser.parse_args(arguments)
    if given.weeks < 1:
        parser.error("--weeks: ask for at least one week")
    programmes = tuple(given.programme or ("opal", "itms"))
    return Order(
        programmes=programmes,
        first_week=given.first_week and ServiceWeek.parse(given.first_week, where="--first-week"),
        count=given.weeks,
        port=given.port,
        stays=given.stay,
        timeout_s=given.timeout_s,
    )


def weeks_to_release(
    order: Order, settings: Settings, programmes: Sequence[Programme], now: datetime
) -> tuple[ServiceWeek, ...]:
    """Return the weeks: from the one that is named, the first of this home, or the last ones.

    So what is made anew lies in the present, and what is repeated re-issues the same weeks.

    Args:
        order: what is asked for.
        settings: whose zones are looked at.
        programmes: to be released.
        now: the present instant, aware.
    """
    first = order.first_week
    if first is None:
        folders = (
            folder.glob("????-W??")
            for programme in programmes
            for folder in (
                settings.public / programme.name,
                settings.landing / programme.source.landing.partition("/")[0],
            )
        )
        known = [ServiceWeek.parse(path.name, where="zones") for paths in folders for path in paths]
        first = min(known, default=None)
    if first is None:
        last = ServiceWeek.containing(now.date())
        while any(
            final_at(last, programme.schedule, programme.time) > now for programme in programmes
        ):
            last = last.plus(-1)
        first = last.plus(1 - order.count)
    return tuple(first.plus(number) for number in range(order.count))


def _make_landing_data(
    settings: Settings, programme: Programme, weeks: tuple[ServiceWeek, ...]
) -> None:
    """Generate the weeks that have no file in the landing zone.

    Raises:
        TurnstileError: the generator failed.
    """
    feed = programme.source.landing.partition("/")[0]  # opal_year reads what opal does
    for week in weeks:
        pattern = programme.source.landing.replace("{week}", str(week))
        if any(settings.landing.glob(pattern)):
            continue
        _say(f"{programme.name:<8} {week}  generating landing data")
        asked = [_console_script(), "sample", feed, "--weeks", str(week)]
        if feed in _ROWS:
            asked += ["--rows", str(_ROWS[feed])]
        done = subprocess.run(asked, check=False)  # noqa: S603 - our own console script
        if done.returncode != 0:
            raise TurnstileError(f"turnstile sample {feed} --weeks {week} failed")


def _release(
    order: Order,
    settings: Settings,
    programmes: tuple[Programme, ...],
    weeks: tuple[ServiceWeek, ...],
) -> int:
    """Start Airflow, release the weeks, print the summary; stop Airflow, in any case."""
    home, port = airflow_home(settings), free_port(order.port)
    held = Secrets.of_folder(home)
    write_passwords(home, held)
    inherited = dict(os.environ)  # noqa: TID251 - handed on
    if order.stays and not inherited.get(DATABASE) and (database := found_database(home)):
        inherited[DATABASE] = database
        _say(f"Airflow's own database is in the PostgreSQL that was found here: {database}")
    environment = airflow_environment(settings, held, port=port, inherited=inherited)
    api = AirflowApi(f"http://127.0.0.1:{port}", USER, held.admin_password)
    backfill = WeekBackfill(api, programmes, weeks, home / "logs", _say)
    _say(f"starting Airflow; its folder is {home}")
    with NativeStack(home, environment, _say) as stack:
        stack.wait_until(api.answers, what="the API server's start", timeout_s=_START_S)
        stack.wait_until(backfill.dags_are_parsed, what="parsing", timeout_s=_START_S)
        backfill.make_pool()
        code = _release_weeks(order, settings, backfill, stack)
        if order.stays:
            stack.schedule_by_the_clock()
            _say("watchdog, audit, retention and digest run by their schedules from now on")
            _say(f"Airflow: {api.address}  user: {USER}  password: {held.admin_password}")
            _say("Ctrl-C stops it")
            stack.wait_until(lambda: _is_over(stack), what="the stay", timeout_s=math.inf)
        _say("stopping Airflow")
    return code


def _is_over(stack: NativeStack) -> bool:
    """Keep Airflow going; only a signal ends the stay."""
    if stack.revive_scheduler():
        _say("the scheduler had died and was started again; nothing is drawn twice for that")
    return False


def _release_weeks(
    order: Order, settings: Settings, backfill: WeekBackfill, stack: NativeStack
) -> int:
    """Run the backfill and print what came of it; return the exit code."""
    before = find_packages(settings.public, order.programmes, backfill.weeks)
    if order.stays and all(package.digest for package in before):
        _say("all weeks are published already; nothing is run again")
        stack.start_scheduling()
    else:
        backfill.ask()
        stack.start_scheduling()
        stack.wait_until(backfill.stands_still, what="the releases", timeout_s=order.timeout_s)
    failures, questions = backfill.failures(), backfill.questions()
    after = find_packages(settings.public, order.programmes, backfill.weeks)
    lines = (*summary_lines(before, after), "", *above_noise_lines(after))
    _say("summary\n\n" + "\n".join(lines) + "\n")
    subprocess.run([_console_script(), "ledger", "balance"], check=False)  # noqa: S603 - our own
    for told in (*failures, *questions):
        _say(told)
    return 0 if not failures and all(package.digest for package in after) else 1


def _console_script() -> str:
    """Return the path of `turnstile` beside this interpreter."""
    return str(Path(sys.executable).parent / "turnstile")


def _interrupted(number: int, _frame: FrameType | None) -> NoReturn:
    """Leave through every `with`, so that what was started is stopped."""
    raise SystemExit(128 + number)


def _say(sentence: str) -> None:
    """Print one line of progress with the time."""
    sys.stdout.write(f"{system_clock():%H:%M:%S} {sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
