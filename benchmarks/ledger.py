"""Times the ledger over ten years of weekly releases: 28 partitions x 6 tables, 87,360 events.

    python benchmarks/ledger.py [--years 10] [--postgresql | --url URL_OF_AN_EMPTY_DATABASE]

By default on a new SQLite file; `--postgresql` takes the server that answers on this machine
without a password, else starts a throw-away one, and makes and drops a database there.

Prints the median reservation of the first and of the last year, the whole balance and the whole
verification year by year, and exits 1 if a limit is passed: reservation 50 ms median and flat,
balance 200 ms, verification 30 s and at most linear.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from statistics import median
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from postgresql_server import postgresql_server, run_as_server
from sqlalchemy.engine import make_url

from turnstile.ledger.amounts import Cap
from turnstile.ledger.encoding import encode_event
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Bindings, ReleaseKey, Request
from turnstile.privacy.accounts import postings
from turnstile.privacy.events import DrawEvent, NoiseFamily, Sensitivity
from turnstile.privacy.units import CARD_UNITS, Block, ProtectionUnit
from turnstile.service_calendar import ServiceWeek

MODES = ("bus", "ferry", "lightrail", "train")
TABLES = ("on_time", "on_location", "on_time_location", "off_time", "off_location", "off_both")
BOUNDS = {"trip": 1, "card_day": 10, "card_week": 40, "card": 40}
RESERVE_MS, BALANCE_MS, VERIFY_S = 50, 200, 30
GROWTH_MAX = 1.5
WEEKS_PER_YEAR = 52


def events_of(week: ServiceWeek) -> tuple[DrawEvent, ...]:
    """Return the draws of one week: every table, mode and service day."""
    bounds = {unit: BOUNDS[unit.value] for unit in CARD_UNITS}
    sensitivities = tuple((unit, Sensitivity(k, k, k * k, k)) for unit, k in bounds.items())
    return tuple(
        DrawEvent(
            table=table,
            statistic="count",
            noise=NoiseFamily.DISCRETE_LAPLACE,
            scale=Fraction(2),
            blocks=(Block(day, mode),),
            sensitivities=sensitivities,
        )
        for table in TABLES
        for day in week.days
        for mode in MODES
    )


def request_of(week: ServiceWeek) -> Request:
    """Return what a weekly release asks of the ledger."""
    events = events_of(week)
    return Request(
        key=ReleaseKey("opal", str(week)),
        family="opal_cards",
        bindings=Bindings("programme", "domain", f"snapshot {week}"),
        plan_digest="plan",
        events=tuple(encode_event(event) for event in events),
        postings=postings(events),
        week=str(week),
        caps=(
            Cap(ProtectionUnit.TRIP, epsilon_micro=4 * 10**6),
            Cap(ProtectionUnit.CARD_DAY, epsilon_micro=400 * 10**6),
            Cap(ProtectionUnit.CARD, epsilon_micro=10**12, window_weeks=WEEKS_PER_YEAR),
        ),
    )


def timed_s(act: Callable[[], object]) -> float:
    """Return how long a call took."""
    start = perf_counter()
    act()
    return perf_counter() - start


def one_week(ledger: Ledger, week: ServiceWeek) -> float:
    """Release a week and return how long its reservation took, in ms."""
    request = request_of(week)
    reserve_ms = 1000 * timed_s(lambda: ledger.reserve(request))
    attempt = ledger.find(request.key)
    assert attempt is not None  # noqa: S101 - reserved two lines above
    ledger.begin_draw(attempt.attempt_id, request.bindings)
    ledger.seal(attempt.attempt_id, f"artefact {request.key}")
    ledger.publish(request.key, f"manifest {request.key}")
    return reserve_ms


def one_year(ledger: Ledger, first: ServiceWeek) -> list[float]:
    """Release 52 weeks and return how long each reservation took, in ms."""
    return [one_week(ledger, first.plus(n)) for n in range(WEEKS_PER_YEAR)]


def measure(url: str, years: int) -> bool:
    """Print a line a year and return whether every limit was kept."""
    ledger = Ledger.open(url, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    week = ServiceWeek(2016, 1)
    print(f"{url.partition(':')[0]}: a week is {len(events_of(week))} events, "
          f"{len(request_of(week).postings)} accounts")  # fmt: skip
    print("years  entries   events  reserve ms  balance ms  verify s")
    rows = []
    for year in range(1, years + 1):
        reserve_ms = median(one_year(ledger, week.plus(WEEKS_PER_YEAR * (year - 1))))
        balance_ms = 1000 * median(timed_s(lambda: ledger.balance("opal_cards")) for _ in range(5))
        verify_s = timed_s(ledger.verify)
        rows.append((reserve_ms, balance_ms, verify_s))
        events = year * WEEKS_PER_YEAR * len(events_of(week))
        print(f"{year:>5} {ledger.head()[0]:>8} {events:>8} {reserve_ms:>11.1f} "
              f"{balance_ms:>11.1f} {verify_s:>9.2f}")  # fmt: skip
    first, last = rows[0], rows[-1]
    kept = {
        f"reserve below {RESERVE_MS} ms": last[0] < RESERVE_MS,
        "reserve flat": last[0] < GROWTH_MAX * first[0] + 2,
        f"balance below {BALANCE_MS} ms": last[1] < BALANCE_MS,
        f"verify below {VERIFY_S} s": last[2] < VERIFY_S,
        "verify at most linear": last[2] < GROWTH_MAX * years * first[2] + 0.5,
        "verify finds nothing": ledger.verify() == (),
    }
    for limit, is_kept in kept.items():
        print(f"{'kept' if is_kept else 'PASSED'}: {limit}")
    return all(kept.values())


@contextmanager
def new_database(*, is_postgresql: bool) -> Iterator[str]:
    """Make an empty database, and remove it afterwards."""
    if not is_postgresql:
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{Path(folder) / 'ledger.sqlite'}"
        return
    with postgresql_server(durable=True) as server:
        if server is None:
            sys.exit("no PostgreSQL answers on 127.0.0.1:5432, and no initdb is installed")
        name = f"turnstile_bench_{os.getpid()}"
        run_as_server(server, f"CREATE DATABASE {name}")
        try:
            yield make_url(server).set(database=name).render_as_string(hide_password=False)
        finally:
            run_as_server(server, f"DROP DATABASE {name} WITH (FORCE)")


def main() -> int:
    """Measure one store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--url", help="an empty database")
    where.add_argument("--postgresql", action="store_true", help="a database of its own there")
    parser.add_argument("--years", type=int, default=10)
    args = parser.parse_args()
    if args.url:
        return 0 if measure(args.url, args.years) else 1
    with new_database(is_postgresql=args.postgresql) as url:
        return 0 if measure(url, args.years) else 1


if __name__ == "__main__":
    sys.exit(main())
