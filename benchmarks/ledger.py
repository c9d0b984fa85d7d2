"""Times the ledger over ten years of weekly releases of two programmes, files and witness included.

    python benchmarks/ledger.py [--years 10] [--postgresql | --url URL_OF_AN_EMPTY_DATABASE]

A week is `opal`, 28 partitions x 6 tables, and `itms`, 6 vectors over all days; each with its
sealed file, package, note and shipped entries, so that a reservation reads every trace of every
release. By default on a new SQLite file; `--postgresql` takes the server that answers on this
machine without a password, else starts a throw-away one, and makes and drops a database there.

Prints for the first, the middle and the last year a reservation, the whole balance, the page's
first and every later load, the export and the whole verification, and exits 1 if a limit is passed.
Limits hold for processor time of this process, so that a busy machine passes none of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from postgresql_server import postgresql_server, run_as_server
from sqlalchemy import create_engine, delete, insert, select, text, update
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.custody.custody import Custody
from turnstile.ledger.database.database_tables import ACCOUNT, ATTEMPT, CAPS, ENTRY, FAMILY, HEAD
from turnstile.ledger.encoding import encode_event
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.promise import plan_digest
from turnstile.ledger.records import Bindings, ReleaseKey, Request
from turnstile.operations.ledger_snapshot import LedgerFollower
from turnstile.privacy.accounts import postings
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import CARD_UNITS, VEHICLE_UNITS, Block, ProtectionUnit
from turnstile.publishing.describe.manifest import manifest_bytes
from turnstile.service_calendar import ServiceWeek

MODES = ("bus", "ferry", "lightrail", "train")
TABLES = ("on_time", "on_location", "on_time_location", "off_time", "off_location", "off_both")
VECTORS = ("speed/sum", "speed/count", "buses", "over_40", "over_60", "stops")
BOUNDS = {"trip": 1, "card_day": 10, "card_week": 40, "card": 40}
LIMITS_CPU_S = {
    "reserve": 0.5,
    "balance": 0.4,
    "first page": 10.0,  # once a process, before the first reader comes
    "page": 0.05,
    "export": 3.0,
    "verify": 15.0,
}
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


@dataclass(frozen=True, slots=True)
class Took:
    """How long something took.

    Args:
        cpu_s: processor time of this process.
        wall_s: on the wall.
    """

    cpu_s: float
    wall_s: float


def timed(act: Callable[[], object], times: int = 1) -> Took:
    """Return how long a call took: the median of some."""
    timings = []
    for _ in range(times):
        start = (process_time(), perf_counter())
        act()
        timings.append((process_time() - start[0], perf_counter() - start[1]))
    return Took(*(median(column) for column in zip(*timings, strict=True)))


def one_release(ledger: Ledger, home: Path, request: Request) -> None:
    """Release a week with its files."""
    attempt = ledger.reserve(request)
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


def build_year(ledger: Ledger, home: Path, first: ServiceWeek) -> None:
    """Release 52 weeks of both programmes, without the looks outside and the syncs."""
    with patch.object(Custody, "require_intact", return_value=()), patch("os.fsync"):
        for n in range(WEEKS_PER_YEAR):
            for request in requests_of(first.plus(n)):
                one_release(ledger, home, request)


def one_row(ledger: Ledger, home: Path, next_week: ServiceWeek) -> dict[str, Took]:
    """Time every operation on the ledger as it stands."""
    request = requests_of(next_week)[0]
    holds = []
    for _ in range(3):
        holds.append(timed(lambda: ledger.reserve(request)))
        ledger.void(f"{request.key}#{len(holds)}", "measured")
    follower = LedgerFollower(ledger)
    return {
        "reserve": Took(median(h.cpu_s for h in holds), median(h.wall_s for h in holds)),
        "balance": timed(ledger.balance, 3),
        "first page": timed(follower.now),
        "page": timed(follower.now, 3),
        "export": timed(lambda: ledger.export(home / f"export-{next_week}")),
        "verify": timed(ledger.verify),
    }


def opened(url: str, home: Path) -> Ledger:
    """Open the ledger of a home."""
    return Ledger.open(
        url,
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        witnesses=[home / "witness"],
        public=home / "public",
        embargoed=home / "embargoed",
    )


def copied(file: str, url: str) -> None:
    """Let a server's tables hold what a file's hold, with the guards off meanwhile."""
    tables = (FAMILY, ENTRY, CAPS, ATTEMPT, ACCOUNT)
    source, target = (create_engine(address, poolclass=NullPool) for address in (file, url))
    with source.connect() as kept, target.begin() as made:
        for table in tables:
            made.execute(text(f"ALTER TABLE {table.name} DISABLE TRIGGER ALL"))
        for table in reversed(tables):
            made.execute(delete(table))
        for table in tables:
            made.execute(insert(table), [row._asdict() for row in kept.execute(select(table))])
            made.execute(text(f"ALTER TABLE {table.name} ENABLE TRIGGER ALL"))
        made.execute(text("ALTER TABLE head DISABLE TRIGGER ALL"))
        head = kept.execute(select(HEAD)).one()
        made.execute(update(HEAD).values(sequence=head.sequence, hash=head.hash))
        made.execute(text("ALTER TABLE head ENABLE TRIGGER ALL"))
    with target.connect().execution_options(isolation_level="AUTOCOMMIT") as made:
        made.execute(text("ANALYZE"))


def measure(server: str | None, years: int, root: Path) -> bool:
    """Print a line for some years and return whether every limit was kept.

    The home is built on SQLite, once; measured is a copy of it, on SQLite or on the server.
    """
    home, week = root / "home", ServiceWeek(2016, 1)
    ledger = opened(f"sqlite:///{home / 'ledger.sqlite'}", home)
    store = "sqlite" if server is None else "postgresql"
    print(f"{store}: a week is two releases, {len(events_of(week))} and {len(VECTORS)} events")
    print("processor seconds of this process (seconds on the wall)")
    print("years  entries" + "".join(f"{name:>16}" for name in LIMITS_CPU_S))
    rows = []
    for year in range(1, years + 1):
        build_year(ledger, home, week.plus(WEEKS_PER_YEAR * (year - 1)))
        if year in (1, years // 2, years):
            copy = root / f"copy-{year}"
            shutil.copytree(home, copy)
            file = f"sqlite:///{copy / 'ledger.sqlite'}"
            measured = opened(server or file, copy)
            if server is not None:
                copied(file, server)
            rows.append(one_row(measured, copy, week.plus(WEEKS_PER_YEAR * year)))
            shown = [f"{took.cpu_s:.3f} ({took.wall_s:.2f})" for took in rows[-1].values()]
            print(f"{year:>5} {ledger.head()[0]:>8}" + "".join(f"{figure:>16}" for figure in shown),
                  flush=True)  # fmt: skip
    first, last = rows[0], rows[-1]
    kept = {
        f"{name} below {limit_s} s": last[name].cpu_s < limit_s
        for name, limit_s in LIMITS_CPU_S.items()
    }
    growth = GROWTH_MAX * years * first["verify"].cpu_s + 0.5
    kept["verify at most linear"] = last["verify"].cpu_s < growth
    kept["verify finds nothing"] = measured.verify() == ()
    for limit, is_kept in kept.items():
        print(f"{'kept' if is_kept else 'PASSED'}: {limit}")
    return all(kept.values())


@contextmanager
def new_database() -> Iterator[str]:
    """Make an empty database on a server, and remove it afterwards."""
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
    where.add_argument("--url", help="an empty database of a server")
    where.add_argument("--postgresql", action="store_true", help="a database of its own there")
    parser.add_argument("--years", type=int, default=10)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not args.postgresql:
            return 0 if measure(args.url, args.years, Path(folder)) else 1
        with new_database() as url:
            return 0 if measure(url, args.years, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
