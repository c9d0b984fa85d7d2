"""Cost of a week of `opal` after 51 others, and what more than eight of them would be worth.

Writes packages as an outsider has them: the eight latest whole, of the 43 before them the plan
alone, so that opening one would fail. Times choosing, reading and estimating. Then compares the
error of a cell with 8, 16 and 51 earlier weeks: with steady stations, and with stations that drift
as seasons make them. Run: `make bench-utility`.
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from compared_weeks import rmse, true_tables
from estimate_weeks import CELLS, OPAL, Floats, Random, dice, made_rates, made_week, week_of

from turnstile.estimates.labelled import labelled
from turnstile.estimates.trips.trip_estimates import trip_estimates
from turnstile.estimates.week_estimates import EARLIER_AT_MOST, promise_values
from turnstile.estimates.week_to_estimate import Promise, WeekToEstimate
from turnstile.ledger.encoding import encode_event
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain, layout
from turnstile.programme.loading import load_programme
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.publishing.describe.manifest import MANIFEST, manifest_bytes
from turnstile.publishing.package_numbers import comparable, earlier_numbers, numbers_of_package
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

INCLUDE = Path(__file__).parents[1] / "include"
SEED = 52
WEEKS = [ServiceWeek(2016, number) for number in range(52, 0, -1)]  # latest first
CPU_BAR_S, MEMORY_BAR_MB = 30, 1024
DRIFT = 0.03  # of a station in a week: a tenth in a quarter of a year
MEAN_COUNT = 12.0


def _promise(programme: Programme) -> Promise:
    """Return what the estimates depend on."""
    return Promise(RowShape.TRIPS, programme.shared_tables, 15, shares_total=False)


def write_package(
    folder: Path, programme: Programme, domain: PublicDomain, week: ServiceWeek, *, is_whole: bool
) -> None:
    """Write what estimates read of a package; of one that is not whole, the plan alone."""
    plan = make_plan(programme, domain, week)
    folder.mkdir(parents=True)
    stated = {
        "week": str(week),
        "domain_digest": domain.digest,
        "events": [encode_event(event) for event in plan.events],
    }
    (folder / "plan.json").write_text(json.dumps(stated))
    promised = {"promise": promise_values(_promise(programme))}
    card = {"release": folder.name, "gaps": [], "estimates": promised}
    (folder / "release_card.json").write_text(json.dumps(card))
    if is_whole:
        coins = dice(SEED + week.iso_week)
        (folder / "measurements").mkdir()
        for table in programme.tables:
            cells = sum(segment.cells for segment in layout(domain, table))
            drawn = [
                np.rint(
                    coins.poisson(MEAN_COUNT, cells) + OPAL.cells * coins.standard_normal(cells)
                )
                for _ in week.days
            ]
            rows = labelled(
                domain, table, week.days, {"count": [counts.astype(np.int64) for counts in drawn]}
            )
            pq.write_table(rows, folder / "measurements" / f"{table.name}.parquet")
    (folder / MANIFEST).write_bytes(manifest_bytes(folder, key=folder.name, sealed_digest=""))


def cost_lines(root: Path) -> Iterator[str]:
    """Yield CPU seconds and memory of a week after 51 others."""
    programme = load_programme("opal", INCLUDE)
    domain = load_domain(programme, INCLUDE)
    for number, week in enumerate(WEEKS):
        is_whole = number <= EARLIER_AT_MOST
        write_package(root / str(week), programme, domain, week, is_whole=is_whole)
    cells = sum(segment.cells for segment in layout(domain, programme.tables[-1])) * 7
    before = time.process_time()
    now = numbers_of_package(root / str(WEEKS[0]))
    promise = _promise(programme)
    chosen = comparable(root, (str(week) for week in WEEKS[1:]), now, promise, {})
    earlier = tuple(earlier_numbers(root / release.key, release) for release in chosen)
    read = time.process_time()
    estimates = trip_estimates(WeekToEstimate(promise, domain, now, "benchmark", earlier))
    done = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    is_met = done - before <= CPU_BAR_S and peak <= MEMORY_BAR_MB
    yield (
        f"{cells:,} cells of tap-ons and as many of tap-offs, {len(estimates.tables)} tables; "
        f"{len(WEEKS) - 1} earlier weeks, {len(chosen)} opened."
    )
    yield (
        f"Choosing and reading {read - before:.1f} CPU s, estimating {done - read:.1f} CPU s, peak "
        f"memory {peak:,.0f} MB (bar {CPU_BAR_S} s, {MEMORY_BAR_MB} MB): "
        f"{'met' if is_met else 'NOT met'}."
    )


def drifting(coins: Random, rates: Floats, weeks: int, drift: float) -> list[Floats]:
    """Return rates of weeks, latest first, in which each place wanders."""
    steps = drift * coins.standard_normal((weeks, len(rates)))
    return [rates * np.exp(total)[:, None, None] for total in np.cumsum(steps, axis=0)]


def value_lines() -> Iterator[str]:
    """Yield the error of a cell by the number of earlier weeks, over that with eight."""
    rates = made_rates(80)
    for name, drift in (("steady", 0.0), (f"drifting by {DRIFT:.0%} a week", DRIFT)):
        errors = []
        for weeks in (EARLIER_AT_MOST, 16, 51):
            coins = dice(SEED)
            truth = made_week(coins, rates)
            history = drifting(dice(SEED + 1), rates, 51, drift)[:weeks]
            before = [made_week(coins, past_rates) for past_rates in history]
            week = week_of(dice(SEED + 2), truth, before, OPAL)
            estimates = trip_estimates(week).tables[CELLS.name].column("estimate").to_numpy()
            errors.append(rmse(estimates - true_tables(truth)[CELLS.name].ravel()))
        ratios = " | ".join(f"{error / errors[0]:.3f}" for error in errors)
        yield f"| {name} | {errors[0]:.2f} | {ratios} |"


def main() -> None:
    """Print both."""
    print("# A year of weeks\n")
    with tempfile.TemporaryDirectory() as folder:
        print(*cost_lines(Path(folder)), sep="\n")
    print("\n| stations | RMSE with 8 | 8 | 16 | 51 earlier weeks |\n|---|---|---|---|---|")
    print(*value_lines(), sep="\n")


if __name__ == "__main__":
    main()
