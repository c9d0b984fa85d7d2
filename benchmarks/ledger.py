"""Times the ledger over ten years of weekly releases: 28 partitions x 6 tables, 87,360 events.

    python benchmarks/ledger.py [--years 10] [--url postgresql+psycopg://user@host/empty_database]

Prints the median reservation of the first and of the last year, the whole balance and the whole
verification year by year, and exits 1 if a limit is passed: reservation 50 ms median and flat,
balance 200 ms, verification 30 s and at most linear.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from statistics import median
from time import perf_counter

from turnstile.ledger.encoding import encode_event
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Bindings, Cap, ReleaseKey, Request
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


def one_year(ledger: Ledger, first: ServiceWeek) -> list[float]:
    """Release 52 weeks and return how long each reservation took, in ms."""
    reserve_ms = []
    for n in range(WEEKS_PER_YEAR):
        request = request_of(first.plus(n))
        reserve_ms.append(1000 * timed_s(lambda request=request: ledger.reserve(request)))
        attempt = ledger.find(request.key)
        assert attempt is not None  # noqa: S101 - reserved one line above
        ledger.begin_draw(attempt.attempt_id, request.bindings)
        ledger.seal(attempt.attempt_id, f"artefact {request.key}")
        ledger.publish(request.key, f"manifest {request.key}")
    return reserve_ms


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


def main() -> int:
    """Measure one store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="an empty database; by default a new SQLite file")
    parser.add_argument("--years", type=int, default=10)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = args.url or f"sqlite:///{Path(folder) / 'ledger.sqlite'}"
        return 0 if measure(url, args.years) else 1


if __name__ == "__main__":
    sys.exit(main())
