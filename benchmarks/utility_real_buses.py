"""Estimates of buses on real days (Austin, Surat): what intervals hold, what is shown of nothing.

Each setting is drawn several times at its epsilon of a bus-day and estimated by the product. Truth
of a mean are the raw rows without a bound; of a count, what the bound keeps. Every cell that is
occupied beyond doubt is judged, whether its table is shown or not. The last column says what of
`ASKED` is not met, the last line counts over all settings. `--draws`, `--only TEXT`, `--epsilon`.
Run: `make bench-utility`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from time import perf_counter

import numpy as np
from estimate_weeks import Random, dice
from real_bus_days import (
    CLAMP_KMH,
    FOUR_DAYS,
    HALF_STEPS,
    SAVED_DAY,
    SUNDAYS,
    Floats,
    Pairs,
    austin,
    means_of,
    surat,
)

from turnstile.estimates.vehicles import bus_means
from turnstile.estimates.vehicles.telemetry_estimates import telemetry_estimates
from turnstile.estimates.week_to_estimate import Promise, WeekToEstimate
from turnstile.measures.registry import Measure
from turnstile.privacy.guarantees import rho_for
from turnstile.programme.domain.public_domain import (
    Dimension,
    ModeCells,
    PublicDomain,
    public_domain,
)
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import TableSpec
from turnstile.release.numbers import Numbers

DELTA = Fraction(1, 10**6)
SPEED = TableSpec("speed", ("slot", "cell"), Measure.MEAN_SPEED, CLAMP_KMH)
TRAFFIC = TableSpec("traffic", ("slot", "cell"), Measure.BUSES)
OVER = TableSpec("speeding", ("slot", "cell"), Measure.BUSES_OVER, None, (40,))
SUM, BUSES = ("speed", "sum"), ("speed", "buses")
TRAFFIC_BUSES, OVER_40 = ("traffic", "buses"), ("speeding", "over_40")
SHIPPED = {SUM: 7 / 10, BUSES: 1 / 10, OVER_40: 1 / 10}  # of itms.yaml, but for its second limit
HALVES = {SUM: 1 / 2, BUSES: 1 / 4, TRAFFIC_BUSES: 1 / 4}
SIZES = (3.0, 10.0, 30.0)  # bus-days, as estimated
MONDAY = date(2016, 11, 21)
FEW, MANY, MOST_RATIO = 20, 500, 0.70
ASKED = {"means": (0.87, 0.99), "a size": (0.85, 1.0), "counts": (0.88, 0.98)}
"""Shares of 90 % intervals that hold: of a setting; of an estimated size with `MANY` numbers."""
MOST_EMPTY = 1 / 200  # of the means of cells beyond doubt, or one cell a draw


@dataclass(frozen=True)
class Setting:
    """Real days as a week, and how they are drawn."""

    name: str
    pairs: Pairs
    days: int
    epsilon: float
    weeks: int = 1
    bound: int = 40
    split: dict[tuple[str, str], float] = field(default_factory=lambda: HALVES)
    rho: float | None = None

    @property
    def domain(self) -> PublicDomain:
        """Return the public cells."""
        axes = (Dimension("slot", self.pairs.hours), Dimension("cell", self.pairs.cells))
        return public_domain("real", (ModeCells("bus", axes),))

    @property
    def deviations(self) -> dict[tuple[str, str], float]:
        """Return the standard deviation of each statistic's noise."""
        rho = self.rho or float(rho_for(Fraction(self.epsilon), DELTA))
        counts = {
            label: math.sqrt(self.bound / (2 * rho * share)) for label, share in self.split.items()
        }
        return counts | {SUM: HALF_STEPS * counts[SUM]}

    @property
    def promise(self) -> Promise:
        """Return the tables that are drawn."""
        named = {label[0] for label in self.split}
        tables = tuple(table for table in (SPEED, TRAFFIC, OVER) if table.name in named)
        return Promise(RowShape.TELEMETRY, tables, 60, shares_total=False)


def drawn(setting: Setting, kept: Pairs, week: int, coins: Random) -> Numbers:
    """Draw a week: the kept pairs and noise."""
    sums, buses, over = kept.added()
    exact = {SUM: sums, BUSES: buses, TRAFFIC_BUSES: buses, OVER_40: over}
    first = MONDAY - timedelta(weeks=week)
    vectors = {
        label: {
            None: np.rint(exact[label] + sd * coins.standard_normal(kept.size)).astype(np.int64)
        }
        for label, sd in setting.deviations.items()
    }
    days = tuple(first + timedelta(days=n) for n in range(setting.days))
    return Numbers(f"real/{week}", setting.domain.digest, days, (), vectors, setting.deviations)


@dataclass
class Judged:
    """What the draws of one setting found; arrays over all shown cells of all draws."""

    shown: list[int] = field(default_factory=list)
    tables: int = 0
    ratios: list[tuple[float, float]] = field(default_factory=list)
    empty: int = 0
    held: list[Floats] = field(default_factory=list)
    sizes: list[Floats] = field(default_factory=list)
    squares: list[Floats] = field(default_factory=list)
    truths: list[Floats] = field(default_factory=list)
    counts_held: list[float] = field(default_factory=list)
    over_held: list[float] = field(default_factory=list)
    with_interval: list[float] = field(default_factory=list)
    count_errors: list[float] = field(default_factory=list)
    city_held: list[bool] = field(default_factory=list)
    city_errors: list[float] = field(default_factory=list)
    places_held: list[float] = field(default_factory=list)
    hours_held: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def by_size(self) -> list[Floats]:
        """Whether each interval of an estimated size holds, from the smallest size."""
        held_all, sizes = np.concatenate(self.held), np.concatenate(self.sizes)
        return [held_all[np.digitize(sizes, SIZES) == n] for n in range(len(SIZES) + 1)]


def held(low: Floats, high: Floats, truth: Floats) -> Floats:
    """Return whether intervals hold, rounding of the truth's last digits aside."""
    return (low <= truth + 1e-6) & (truth <= high + 1e-6)


def judged(setting: Setting, draws: int) -> Judged:
    """Draw and estimate a setting several times."""
    coins = dice(36)
    pairs, scores, domain = setting.pairs, Judged(), setting.domain
    means = means_of(pairs)
    for number in range(draws):
        kept = pairs.bounded(setting.bound, coins)
        now = drawn(setting, kept, 0, coins)
        earlier = tuple(
            drawn(setting, pairs.bounded(setting.bound, coins), n, coins)
            for n in range(1, setting.weeks)
        )
        week = WeekToEstimate(setting.promise, domain, now, f"real {number}", earlier)
        began = perf_counter()
        estimates = telemetry_estimates(week)
        scores.seconds.append(perf_counter() - began)
        tables = estimates.tables
        read = {
            name: {c: table.column(c).to_numpy() for c in ("estimate", "low_90", "high_90")}
            for name, table in tables.items()
        }
        speed, counts = read["speed"], read["speed_buses"]
        is_shown = ~np.isnan(speed["estimate"])
        is_full = is_shown & ~np.isnan(means)
        predicted = estimates.errors["speed"][0].get("error_over_spread") or math.inf
        scores.tables += predicted <= MOST_RATIO
        if is_full.sum() > 1:
            rmse = math.sqrt(np.mean((speed["estimate"] - means)[is_full] ** 2))
            scores.ratios.append((predicted, rmse / float(means[is_full].std())))
        scores.shown.append(int(is_shown.sum()))
        scores.empty += int((is_shown & np.isnan(means)).sum())
        scores.held.append(held(speed["low_90"], speed["high_90"], means)[is_full])
        scores.sizes.append(counts["estimate"][is_full] * setting.days)
        scores.squares.append((speed["estimate"] - means)[is_full] ** 2)
        scores.truths.append(means[is_full])
        _, kept_buses, kept_over = kept.added()
        for name, truth, into in (
            ("speed_buses", kept_buses / setting.days, scores.counts_held),
            ("speeding", kept_over / setting.days, scores.over_held),
        ):
            if name in read:
                columns = read[name]
                has = ~np.isnan(columns["low_90"])
                scores.with_interval.append(float(has.mean()))
                into.append(float(held(columns["low_90"], columns["high_90"], truth)[has].mean()))
        error = counts["estimate"] * setting.days - kept_buses
        scores.count_errors.append(float(np.mean(error**2)))
        _judge_sums(setting, read, scores)
    return scores


def _judge_sums(setting: Setting, read: dict[str, dict[str, Floats]], scores: Judged) -> None:
    """Judge the city, its places and its hours against the raw rows, where they are published."""
    if "speed_city" not in read:
        return
    sums, buses, _ = (
        vector.reshape(len(setting.pairs.hours), -1) for vector in setting.pairs.added()
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        truths = {
            "speed_city": np.array([sums.sum() / buses.sum()]),
            "speed_places": sums.sum(axis=0) / buses.sum(axis=0),
            "speed_hours": sums.sum(axis=1) / buses.sum(axis=1),
        }
    for name, steps in truths.items():
        columns, truth = read[name], (HALF_STEPS + steps) / 10
        has = ~np.isnan(columns["estimate"]) & ~np.isnan(truth)
        is_held = held(columns["low_90"], columns["high_90"], truth)[has]
        if name == "speed_city":
            scores.city_held.append(bool(is_held.all()))
            scores.city_errors.append(float(abs(columns["estimate"] - truth)[0]))
        elif is_held.size:
            into = scores.places_held if name == "speed_places" else scores.hours_held
            into.append(float(is_held.mean()))


def settings(austin_folder: Path, surat_folder: Path) -> Iterator[Setting]:
    """Yield every setting."""
    coins = dice(7)
    two, week, sundays = FOUR_DAYS[1:3], FOUR_DAYS, SUNDAYS
    seven = (*FOUR_DAYS, *SUNDAYS[1:])
    for name, days in (("seven days", seven), ("four days", week)):
        pairs = austin(austin_folder, days, 7, range(9, 21, 3))
        rho = 0.1  # epsilon 2.142
        yield Setting(f"itms as shipped, {name}", pairs, len(days), 2.142, split=SHIPPED, rho=rho)
    for epsilon in (4.0, 8.0):
        for day in (*FOUR_DAYS, *SUNDAYS, SAVED_DAY):
            yield Setting(f"day {day}", austin(austin_folder, (day,), 7), 1, epsilon)
        for name, days in (("two days", two), ("four days", week), ("four Sundays", sundays),
                           ("seven days", seven)):  # fmt: skip
            yield Setting(name, austin(austin_folder, days, 7), len(days), epsilon)
        for resolution in (6, 8):
            pairs = austin(austin_folder, week, resolution)
            yield Setting(f"four days, resolution {resolution}", pairs, len(week), epsilon)
        for fleet in (100, 30):
            pairs = thinned(austin_folder, week, fleet, coins)
            yield Setting(f"four days, {fleet} buses", pairs, len(week), epsilon)
        four = austin(austin_folder, week, 7)
        yield Setting("four days, four weeks", four, len(week), epsilon, weeks=4)
        for resolution in (6, 7):
            pairs = surat(surat_folder, resolution, coins)
            yield Setting(f"Surat, resolution {resolution}", pairs, 7, epsilon)


def thinned(folder: Path, days: tuple[str, ...], fleet: int, coins: Random) -> Pairs:
    """Return the pairs of so many buses of each day."""
    pairs = austin(folder, days, 7)
    per_day = [np.unique(austin(folder, (day,), 7).bus_day).size for day in days]
    ends = np.cumsum(per_day)
    chosen = [
        coins.choice(np.arange(end - buses, end), fleet, replace=False)
        for buses, end in zip(per_day, ends, strict=True)
    ]
    return pairs.of_buses(np.sort(np.concatenate(chosen)))


def line(setting: Setting, scores: Judged, draws: int) -> str:
    """Return one line of the table."""
    shown, held_all = np.mean(scores.shown), np.concatenate(scores.held)
    squares = np.concatenate(scores.squares)
    is_any = held_all.size > 0
    rmse = math.sqrt(squares.mean()) if is_any else math.nan
    ratio = float(np.median([actual for _, actual in scores.ratios])) if scores.ratios else math.nan
    shown_ratios = [actual for predicted, actual in scores.ratios if predicted <= MOST_RATIO]
    occupied = int((setting.pairs.added()[1] > 0).sum())
    share = scores.empty / max(1, sum(scores.shown))
    city = np.mean(scores.city_held) if scores.city_held else math.nan
    off = np.mean(scores.city_errors) if scores.city_errors else math.nan
    places = np.mean(scores.places_held) if scores.places_held else math.nan
    hours = np.mean(scores.hours_held) if scores.hours_held else math.nan
    each = "/".join(
        f"{100 * group.mean():.0f}" if group.size >= FEW else "-" for group in scores.by_size
    )
    over = f"{np.mean(scores.over_held):.2f}" if scores.over_held else "-"
    held_text = f"{held_all.mean() if is_any else math.nan:.3f} ({each})"
    counts = (
        f"{np.mean(scores.counts_held):.3f} {over} ({100 * np.mean(scores.with_interval):.0f} %) "
        f"{math.sqrt(np.mean(scores.count_errors)):.1f}"
    )
    columns = (
        setting.name, f"{setting.epsilon:g}", f"{scores.tables}/{draws}",
        f"{shown:.0f} of {occupied}", f"{100 * share:.2f} %", held_text, f"{rmse:.1f}",
        f"{ratio:.2f} ({max(shown_ratios, default=math.nan):.2f})", counts,
        f"{city:.2f}, {off:.1f}", f"{places:.2f}", f"{hours:.2f}", f"{np.mean(scores.seconds):.1f}",
        ", ".join(missed(scores)) or "-",
    )  # fmt: skip
    return f"| {' | '.join(columns)} |"


def missed(scores: Judged) -> Iterator[str]:
    """Yield what of `ASKED` a setting does not meet."""
    held_all = np.concatenate(scores.held)
    shares = {
        "means": [held_all.mean()] if held_all.size else [],
        "a size": [group.mean() for group in scores.by_size if group.size >= MANY],
        "counts": [np.mean(scores.counts_held)] if scores.counts_held else [],
    }
    for name, (least, most) in ASKED.items():
        if any(not least <= round(float(share), 2) <= most for share in shares[name]):
            yield name
    if scores.empty > max(len(scores.shown), MOST_EMPTY * sum(scores.shown)):
        yield "empty"


def total(every: list[Judged]) -> str:
    """Return what all settings together come to."""
    means, empty = sum(sum(scores.shown) for scores in every), sum(s.empty for s in every)
    city = [is_held for scores in every for is_held in scores.city_held]
    met = sum(not any(missed(scores)) for scores in every)
    rate = f"1 in {means / empty:,.0f}" if empty else "none"
    return (
        f"\n{met} of {len(every)} settings meet all that is asked; of {means:,} means {rate} is of "
        f"a cell without a bus; the city's mean holds in {np.mean(city):.3f} of {len(city)} draws "
        "(0.88 to 0.98 is asked)"
    )


HEAD = (
    "days", "epsilon", "tables shown", "means of cells beyond doubt, of occupied", "empty",
    "90 % held (by estimated bus-days < 3, 10, 30, more)", "RMSE, km/h",
    "over spread: median (largest shown)", "counts held, above 40 km/h (with interval), RMSE",
    "city held, off", "places held", "hours held", "seconds", "not met",
)  # fmt: skip


def main() -> None:
    """Print a line of every setting."""
    parser = argparse.ArgumentParser(description="estimates of buses on real days")
    parser.add_argument("--data", type=Path, help="folder of real data")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[2.142, 4.0, 8.0])
    asked = parser.parse_args()
    if asked.data is None:
        print("no folder of real data was given (--data)", file=sys.stderr)
        return
    bus_means.MOST_RATIO = math.inf  # every occupied cell is judged; which tables stand is said
    print("# Estimates of buses, real days\n")
    print(f"| {' | '.join(HEAD)} |")
    print("|" + "---|" * len(HEAD))
    every = list[Judged]()
    for setting in settings(asked.data / "capmetro_bus_gps", asked.data / "surat_itms"):
        if asked.only in setting.name and setting.epsilon in asked.epsilon:
            every.append(judged(setting, asked.draws))
            print(line(setting, every[-1], asked.draws), flush=True)
    print(total(every))


if __name__ == "__main__":
    main()
