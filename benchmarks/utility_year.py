"""A year of a card against a day: error of `opal_year`'s estimates beside unbiased `opal`.

The published train table of a week of 2016, at full volume, 30 % of it (about two million tap-ons a
week) and more than was there, varied week by week (`estimate_weeks`), is drawn on with the noise
that the two shipped programmes plan. `opal_year` is estimated with seven earlier weeks, `opal` is
taken as drawn, summed up, and as least squares give it. Prints each bar and whether it is met. Run:
`make bench-utility`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from math import sqrt
from pathlib import Path

import numpy as np
from compared_weeks import SEED, Compared, compared, reconciled_errors, rmse
from compared_weeks import weighted_relative_error as relative
from estimate_weeks import CELLS, LOCATION, Floats, Noise, dice, filled, real_week
from utility_estimates import WEEKS

from turnstile.assessment.attacks.risk import forecast
from turnstile.estimates.usable import usable
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_variance
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

INCLUDE = Path(__file__).parents[1] / "include"
ANY_WEEK = ServiceWeek(2016, 30)
HOUR, DAY = f"{CELLS.name}_hourly", f"{CELLS.name}_daily"
BY_REGION = tuple(f"{CELLS.name}_regions{grain}" for grain in ("", "_hourly", "_daily"))
RMSE_BARS = {1.0: 10.0, 0.3: 6.2}
RELATIVE_BARS = {CELLS.name: 13.0, HOUR: 8.5, DAY: 3.0}  # per cent, full volume
SHARES = (0.1, 0.3, 1.0, 2.0)
USABLE_BARS = {
    1.0: 0.95,
    0.3: 0.9,
    0.1: 0.5,
}  # of the taps, in the best table of places by day or regions by hour
LEADS = (DAY, f"{CELLS.name}_regions_hourly")
REGIONS = 10
MANY = 10  # trips, from which on intervals are judged
TRIPS = 6_500_000  # tap-ons of the table
EARLIER, DRAWS = 4, 4  # weeks before, draws
PROGRAMMES = ("opal", "opal_year", "opal_trip", "opal_2017")


def events_of(name: str) -> tuple[DrawEvent, ...]:
    """Return the draws that a shipped programme plans for a week."""
    programme = load_programme(name, INCLUDE)
    return make_plan(programme, load_domain(programme, INCLUDE), ANY_WEEK).events


def noise_of(name: str) -> Noise:
    """Return the standard deviations that a shipped programme plans for its tap-on tables."""
    events = events_of(name)
    deviations = {event.table: sqrt(noise_variance(event.noise, event.scale)) for event in events}
    return Noise(deviations[CELLS.name], deviations.get(LOCATION.name))


def errors_of(week: Compared, values: Floats) -> dict[str, float]:
    """Return weighted relative errors by table of numbers of cells, per cent.

    Args:
        week: whose truth it is.
        values: cells, shape (days, slots * places).
    """
    truth = week.truth[CELLS.name]
    places = week.truth[LOCATION.name].shape[1]
    errors = {CELLS.name: relative(values, truth)}
    for name, length in ((HOUR, 4), (DAY, 96)):
        shape = (len(truth), -1, length, places)
        errors[name] = relative(*(x.reshape(shape).sum(axis=2) for x in (values, truth)))
    return errors


def lines(real: Floats) -> Iterator[str]:
    """Yield one line a table and share."""
    yearly, daily = noise_of("opal_year"), noise_of("opal")
    yield f"Noise of a cell: opal_year {yearly.cells:.2f}, opal {daily.cells:.2f}.\n"
    heads = ("tap-ons a week", "table", "opal_year, estimates", "bar")
    yield f"| {' | '.join(heads)} | opal, drawn | opal, least squares |"
    yield "|---|---|---|---|---|---|"
    for share in SHARES:
        year = compared(share * real, yearly, [share * real] * WEEKS)
        day = compared(share * real, daily, [])
        truth = year.truth[CELLS.name]
        rms = rmse(year.column(CELLS.name) - truth)
        unbiased = rmse(day.drawn(CELLS.name) - day.truth[CELLS.name])
        bar = RMSE_BARS.get(share)
        head = f"| {share * TRIPS:,.0f} |"
        yield f"{head} RMSE of a cell | {rms:.2f} | {verdict(rms, bar)} | {unbiased:.2f} | |"
        errors = errors_of(year, year.column(CELLS.name))
        drawn, squares = errors_of(day, day.drawn(CELLS.name)), reconciled_errors(day)
        raw = errors_of(year, year.drawn(CELLS.name))
        for name, error in errors.items():
            limit = RELATIVE_BARS[name] if share == 1 else None
            least = squares.get(LOCATION.name if name == DAY else name)
            shown = "" if least is None else f"{least:.2f} %"
            yield (
                f"{head} {name} | {error:.2f} % (as drawn {raw[name]:.1f}) | "
                f"{verdict(error, limit)} | {drawn[name]:.2f} % | {shown} |"
            )


def usable_lines(real: Floats, regions: Sequence[str], draws: int = 1) -> Iterator[str]:
    """Yield which part of each table can be used, with four earlier weeks.

    Args:
        real: rates.
        regions: of each place.
        draws: of which means are given.
    """
    yield "| tap-ons a week | table | of the numbers | of the taps | bar | 90 % intervals hold |"
    yield "|---|---|---|---|---|---|"
    noise = noise_of("opal_year")
    for share, bar in USABLE_BARS.items():
        before = [share * real] * EARLIER
        weeks = [
            compared(share * real, noise, before, seed=SEED + n, regions=regions)
            for n in range(draws)
        ]
        by_table = {name: usable_of(weeks, name) for name in (CELLS.name, HOUR, DAY, *BY_REGION)}
        best = max(LEADS, key=lambda name: by_table[name][1])
        for name, (numbers, taps, held) in by_table.items():
            verdict = "met" if taps >= bar else "NOT met"
            shown = f"at least {bar:.0%}: {verdict}" if name == best else ""
            head = f"| {share * TRIPS:,.0f} | {name} |"
            yield f"{head} {numbers:.0%} | {taps:.0%} | {shown} | {held:.0%} |"


def usable_of(weeks: Sequence[Compared], name: str) -> tuple[float, float, float]:
    """Return the usable shares of numbers and taps, and how often intervals of 10 and more hold."""
    rows = []
    for week in weeks:
        ends = [week.column(name, column) for column in ("estimate", "low_90", "high_90")]
        shares, held = usable(*ends), week.coverage(name)[ends[0] >= MANY].mean()
        rows.append((shares.numbers, shares.counted, float(held)))
    numbers, taps, held = np.mean(rows, axis=0)
    return float(numbers), float(taps), float(held)


def regions_of_places(places: int) -> list[str]:
    """Return a region of each place, at random; always the same."""
    return [f"region {n}" for n in dice(1).integers(0, REGIONS, places)]


def trip_unit_lines(real: Floats) -> Iterator[str]:
    """Yield what the two programmes of one trip show; a rounded deviate stands in for Laplace's."""
    yield "| tap-ons a week | programme | cells | hours | days |"
    yield "|---|---|---|---|---|"
    for share in SHARES[:2]:
        week = compared(share * real, noise_of("opal"), [])
        truth = week.truth[CELLS.name]
        for name in ("opal_trip", "opal_2017"):
            event = next(
                draw_event for draw_event in events_of(name) if draw_event.table == CELLS.name
            )
            noisy = np.rint(truth + dice(1).laplace(scale=float(event.scale), size=truth.shape))
            if event.threshold is not None:
                noisy = np.where((truth > 0) & (noisy >= event.threshold), noisy, 0)
            shown = " | ".join(f"{error:.2f} %" for error in errors_of(week, noisy).values())
            yield f"| {share * TRIPS:,.0f} | {name} | {shown} |"


def risk_lines() -> Iterator[str]:
    """Yield how often an attacker who knows everything else is right about a unit."""
    yield "| programme | unit | one week | 52 weeks | epsilon then |"
    yield "|---|---|---|---|---|"
    for name in PROGRAMMES:
        events = events_of(name)
        risks = forecast(events).units
        for who in dict.fromkeys(risk.who for risk in risks):
            by_weeks = {risk.weeks: risk for risk in risks if risk.who == who}
            chances = [by_weeks[n].guess_right if n in by_weeks else None for n in (1, 52)]
            if chances[0] is None:
                continue
            last = by_weeks[max(by_weeks)]
            shown = " | ".join("" if chance is None else f"{chance:.3f}" for chance in chances)
            epsilon = "not bounded" if last.epsilon is None else f"{last.epsilon:.2f}"
            yield f"| {name} | {who} | {shown} | {epsilon} |"


def verdict(error: float, bar: float | None) -> str:
    """Say whether an error is low enough."""
    return "" if bar is None else f"at most {bar}: {'met' if error <= bar else 'NOT met'}"


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description="opal_year's estimates beside unbiased opal")
    parser.add_argument("--opal-release", type=Path, help="folder of the published release of 2016")
    folder = parser.parse_args().opal_release
    if folder is None:
        print("no folder of the published release was given (--opal-release)", file=sys.stderr)
        return
    print("\n# A year of a card: eight weeks of trains, weighted relative error by table\n")
    real = real_week(folder)
    print(*lines(real), sep="\n")
    print("\n## Numbers of opal_year whose 90 % interval lies within a fifth of the value\n")
    print(*usable_lines(filled(real), regions_of_places(len(real)), DRAWS), sep="\n")
    print("\n## The programmes of one trip, tap-ons\n")
    print(*trip_unit_lines(real), sep="\n")
    print("\n## How often an attacker who knows everything else is right (0.5 by chance)\n")
    print(*risk_lines(), sep="\n")


if __name__ == "__main__":
    main()
