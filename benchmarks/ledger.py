"""Times the ledger over ten years of weekly releases of two programmes, files and witness included.

    python benchmarks/ledger.py [--years 10] [--postgresql | --url URL_OF_AN_EMPTY_DATABASE]

A week is `opal`, 28 partitions x 6 tables, and `itms`, 6 vectors over all days; each with its
sealed file, package, note and shipped entries, so that a reservation reads every trace of every
release. By default on a new SQLite file; `--postgresql` takes the server that answers on this
machine without a password, else starts a throw-away one, and makes and drops a database there.

Prints year by year the median reservation, the whole balance, the page's load, the export and the
whole verification, and exits 1 if a limit is passed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
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
from turnstile.ledger.promise import plan_digest
from turnstile.ledger.records import Bindings, ReleaseKey, Request
from turnstile.operations.ledger_snapshot import LedgerFollower
from turnstile.privacy.accounts import postings
from turnstile.privacy.events import DrawEvent, NoiseFamily, Sensitivity
from turnstile.privacy.units import CARD_UNITS, VEHICLE_UNITS, Block, ProtectionUnit
from turnstile.publishing.manifest import manifest_bytes
from turnstile.service_calendar import ServiceWeek

MODES = ("bus", "ferry", "lightrail", "train")
TABLES = ("on_time", "on_location", "on_time_location", "off_time", "off_location", "off_both")
VECTORS = ("speed/sum", "speed/count", "buses", "over_40", "over_60", "stops")
BOUNDS = {"trip": 1, "card_day": 10, "card_week": 40, "card": 40}
RESERVE_MS, BALANCE_MS, PAGE_S, EXPORT_S, VERIFY_S = 1000, 200, 15, 15, 45
GROWTH_MAX = 1.5
WEEKS_PER_YEAR = 52
Caps = tuple[Cap, ...]


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


def bus_events_of(week: ServiceWeek) -> tuple[DrawEvent, ...]:
    """Return the draws of one week of bus telemetry: every vector, over all days."""
    sensitivities = tuple((unit, Sensitivity(20, 20, 20, 1)) for unit in VEHICLE_UNITS)
    return tuple(
        DrawEvent(
            table=vector,
            statistic="count",
            noise=NoiseFamily.DISCRETE_GAUSSIAN,
            scale=Fraction(8),
            blocks=tuple(Block(day, "bus") for day in week.days),
            sensitivities=sensitivities,
        )
        for vector in VECTORS
    )


OPAL_CAPS = (
    Cap(ProtectionUnit.TRIP, epsilon_micro=4 * 10**6),
    Cap(ProtectionUnit.CARD_DAY, epsilon_micro=400 * 10**6),
    Cap(ProtectionUnit.CARD, epsilon_micro=10**12, window_weeks=WEEKS_PER_YEAR),
)
ITMS_CAPS = (Cap(ProtectionUnit.BUS, rho_nano=10**14, window_weeks=WEEKS_PER_YEAR),)


def requests_of(week: ServiceWeek) -> tuple[Request, Request]:
    """Return what a week of both programmes asks of the ledger."""
    opal = ("opal", "opal_cards", events_of(week), OPAL_CAPS)
    itms = ("itms", "itms_buses", bus_events_of(week), ITMS_CAPS)
    return _request(week, *opal), _request(week, *itms)


def _request(
    week: ServiceWeek, programme: str, family: str, events: tuple[DrawEvent, ...], caps: Caps
) -> Request:
    """Return what one release asks of the ledger."""
    encoded = tuple(encode_event(event) for event in events)
    return Request(
        key=ReleaseKey(programme, str(week)),
        family=family,
        bindings=Bindings("programme", "domain", f"snapshot {week}"),
        plan_digest=plan_digest("programme", "domain", str(week), 0, encoded),
        events=encoded,
        postings=postings(events),
        week=str(week),
        caps=caps,
        landing=f"{programme}/{{week}}/*",
    )


def timed_s(act: Callable[[], object]) -> float:
    """Return how long a call took."""
    start = perf_counter()
    act()
    return perf_counter() - start


def one_release(ledger: Ledger, home: Path, request: Request) -> float:
    """Release a week with its files, and return how long its reservation took, in ms."""
    start = perf_counter()
    attempt = ledger.reserve(request)
    reserve_ms = 1000 * (perf_counter() - start)
    ledger.begin_draw(attempt.attempt_id, request.bindings)
    folder = home / "embargoed" / str(request.key)
    folder.mkdir(parents=True)
    content = str(request.key).encode() * 1000
    digest = hashlib.sha256(content).hexdigest()
    (folder / f"sealed-{digest[:16]}.parquet").write_bytes(content)
    ledger.seal(attempt.attempt_id, digest)
    package = home / "public" / str(request.key)
    (package / "tables").mkdir(parents=True)
    (package / "tables/on_time.csv").write_bytes(content)
    sequence, head = ledger.head()
    card = {"draws": "x" * 20_000, "ledger": {"head_sha256": head, "sequence": sequence}}
    (package / "release_card.json").write_text(json.dumps(card))
    manifest = manifest_bytes(package, key=str(request.key), sealed_digest=digest)
    (package / "manifest.json").write_bytes(manifest)
    ledger.publish(request.key, hashlib.sha256(manifest).hexdigest())
    return reserve_ms


def one_year(ledger: Ledger, home: Path, first: ServiceWeek) -> list[float]:
    """Release 52 weeks of both programmes and return how long each reservation took, in ms."""
    return [
        one_release(ledger, home, request)
        for n in range(WEEKS_PER_YEAR)
        for request in requests_of(first.plus(n))
    ]


def measure(url: str, years: int, home: Path) -> bool:
    """Print a line a year and return whether every limit was kept."""
    ledger = Ledger.open(
        url,
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        witnesses=[home / "witness"],
        public=home / "public",
        embargoed=home / "embargoed",
    )
    week = ServiceWeek(2016, 1)
    print(f"{url.partition(':')[0]}: a week is two releases, {len(events_of(week))} and "
          f"{len(VECTORS)} events")  # fmt: skip
    print("years  entries  reserve ms  balance ms  page s  export s  verify s")
    rows = []
    for year in range(1, years + 1):
        first = week.plus(WEEKS_PER_YEAR * (year - 1))
        reserve_ms = median(one_year(ledger, home, first))
        balance_ms = 1000 * median(timed_s(ledger.balance) for _ in range(3))
        page_s = timed_s(lambda: LedgerFollower(ledger).now())
        copy = home / f"export-{year}"
        export_s = timed_s(lambda to=copy: ledger.export(to))  # type: ignore[misc]
        verify_s = timed_s(ledger.verify)
        rows.append((reserve_ms, balance_ms, page_s, export_s, verify_s))
        print(f"{year:>5} {ledger.head()[0]:>8} {reserve_ms:>11.1f} {balance_ms:>11.1f} "
              f"{page_s:>7.2f} {export_s:>9.2f} {verify_s:>9.2f}", flush=True)  # fmt: skip
    first_row, last = rows[0], rows[-1]
    kept = {
        f"reserve below {RESERVE_MS} ms": last[0] < RESERVE_MS,
        f"balance below {BALANCE_MS} ms": last[1] < BALANCE_MS,
        f"page below {PAGE_S} s": last[2] < PAGE_S,
        f"export below {EXPORT_S} s": last[3] < EXPORT_S,
        f"verify below {VERIFY_S} s": last[4] < VERIFY_S,
        "verify at most linear": last[4] < GROWTH_MAX * years * first_row[4] + 0.5,
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
    with tempfile.TemporaryDirectory() as folder:
        if args.url:
            return 0 if measure(args.url, args.years, Path(folder)) else 1
        with new_database(is_postgresql=args.postgresql) as url:
            return 0 if measure(url, args.years, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
