"""Made weeks of trips and buses in the layout of packages, with their truth."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
from compared_weeks import Compared, compared
from estimate_weeks import CELLS, FIRST_DAY, LOCATION, OPAL, TIME, Floats, dice, made_rates

from turnstile.estimates.labelled import labelled, parquet_bytes
from turnstile.estimates.trips.trip_weeks import taps_by_mode
from turnstile.estimates.vehicles.telemetry_estimates import telemetry_estimates
from turnstile.estimates.week_to_estimate import Promise, WeekToEstimate
from turnstile.measures.registry import Measure
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import Block
from turnstile.programme.domain.public_domain import Dimension, ModeCells, public_domain
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import TableSpec
from turnstile.publishing.data_tables import ESTIMATES, MEASURED, UNBIASED, Week, layouts, rows_of
from turnstile.release.numbers import Numbers, Statistic, Vectors

PLACES, SLOTS, WEEKS = 40, 96, 4
PLACE, ROUTE, TUESDAY, EIGHT = "station 020", "route 3", 1, 8
GROWTH = 0.03  # a week
SPEED = TableSpec("speed", ("slot", "route"), Measure.MEAN_SPEED, 65)
ROUTES, HOURS, BUS_DAYS, STEPS = 8, 12, 400, 10
BUSES_SD, SUMS_SD = 15.0, 3_000.0
Parts = Mapping[str, Mapping[str, pa.Table]]


@dataclass(frozen=True)
class MadeWeeks:
    """Packages of one made month, newest first, one of buses, and what is true of them."""

    folders: list[Path]
    buses: Path
    day: str
    weeks: list[Compared]
    speeds: Floats

    def truth(self, question: str) -> Mapping[str, float]:
        """Return what is true, by label where a question asks of several."""
        places = [week.truth[LOCATION.name] for week in self.weeks]
        names = [f"station {n:03}" for n in range(PLACES)]
        if question.startswith("Which place"):
            hours = self.weeks[0].truth[f"{CELLS.name}_hourly"][TUESDAY].reshape(24, PLACES)
            return dict(zip(names, hours[EIGHT], strict=True))
        if question.startswith("Did a place"):
            index = names.index(PLACE)
            return {"": float(places[0][:, index].sum() - places[1][:, index].sum())}
        if question.startswith("How do weekdays"):
            days = places[0].sum(axis=1)
            return {"": float(days[:5].mean() - days[5:].mean())}
        if question.startswith("The top ten"):
            return dict(zip(names, sum(counts.sum(axis=0) for counts in places), strict=True))
        return {f"{6 + n:02}:00": float(speed) for n, speed in enumerate(self.speeds)}


def made_weeks(folder: Path, seed: int) -> MadeWeeks:
    """Write the packages of a made month of trips, and one of a week of buses."""
    rates = made_rates(PLACES)
    weeks = [
        compared(rates * (1 - GROWTH * n), OPAL, [], seed=100 * seed + n) for n in range(WEEKS)
    ]
    folders = [folder / f"week-{n}" for n in range(WEEKS)]
    for package, week in zip(folders, weeks, strict=True):
        events = [
            _event(name, "count", sd) for (name, _), sd in week.week.numbers.deviations.items()
        ]
        _write(package, parts_of_trips(week), events, len(week.week.numbers.days))
    buses, speeds = bus_week(seed)
    events = [_event("speed", "sum", SUMS_SD), _event("speed", "buses", BUSES_SD)]
    _write(folder / "buses", buses, events, 7)
    day = weeks[0].week.numbers.days[TUESDAY].isoformat()
    return MadeWeeks(folders, folder / "buses", day, weeks, speeds)


def parts_of_trips(week: Compared) -> Parts:
    """Return the parts of a made week as a release has them under embargo."""
    numbers, domain = week.week.numbers, week.week.domain
    (taps,) = taps_by_mode(week.week)
    values = {
        CELLS: (taps.numbers.cells.transpose(1, 2, 0), taps.numbers.cell_variance),
        TIME: (taps.numbers.slots, taps.numbers.slot_variance),
        LOCATION: (taps.numbers.places.T, taps.numbers.place_variance),
    }
    unbiased, measured = {}, {}
    for table, (reconciled, variance) in values.items():
        days = [day_values.ravel().round(3) for day_values in reconciled]
        errors = [np.full(day_values.size, round(variance**0.5, 4)) for day_values in days]
        columns = {"reconciled": days, "standard_deviation": errors}
        unbiased[table.name] = labelled(domain, table, numbers.days, columns)
        drawn = [numbers.vectors[table.name, "count"][day] for day in numbers.days]
        measured[table.name] = labelled(domain, table, numbers.days, {"count": drawn})
    totals = pa.table(
        {
            "service_date": pa.array(numbers.days, pa.date32()),
            "reconciled": taps.numbers.totals.round(3),
            "standard_deviation": np.full(
                len(numbers.days), taps.numbers.variance_of_slots(SLOTS) ** 0.5
            ),
        }
    )
    unbiased[f"{TIME.name}_daily"] = totals
    return {ESTIMATES: week.found.tables, UNBIASED: unbiased, MEASURED: measured}


def bus_week(seed: int) -> tuple[Parts, Floats]:
    """Return the parts of a made week of buses, and the true mean speeds of one route by hour."""
    coins = dice(1_000 + seed)
    hours = tuple(f"{6 + n:02}:00" for n in range(HOURS))
    routes = tuple(f"route {n}" for n in range(ROUTES))
    domain = public_domain(
        "made", (ModeCells("bus", (Dimension("slot", hours), Dimension("route", routes))),)
    )
    shape = (HOURS, ROUTES)
    speeds = 22 + 4 * coins.standard_normal(ROUTES) + 3 * coins.standard_normal((HOURS, 1))
    speeds = np.clip(speeds + 1.5 * coins.standard_normal(shape), 5, 60)
    buses = coins.poisson(BUS_DAYS, shape)
    sums = STEPS * (speeds - 65 / 2) * buses
    noisy = {
        "sum": np.rint(sums + SUMS_SD * coins.standard_normal(shape)).astype(np.int64).ravel(),
        "buses": np.rint(buses + BUSES_SD * coins.standard_normal(shape)).astype(np.int64).ravel(),
    }
    days = tuple(np.arange("2016-07-25", "2016-08-01", dtype="datetime64[D]").tolist())
    vectors: dict[Statistic, Vectors] = {
        ("speed", name): {None: values} for name, values in noisy.items()
    }
    deviations = {("speed", "sum"): SUMS_SD, ("speed", "buses"): BUSES_SD}
    numbers = Numbers("made", domain.digest, days, (), vectors, deviations)
    promise = Promise(RowShape.TELEMETRY, (SPEED,), 60, shares_total=False)
    estimates = telemetry_estimates(WeekToEstimate(promise, domain, numbers, f"{seed}", ()))
    means = np.clip(65 / 2 + noisy["sum"] / STEPS / np.maximum(noisy["buses"], 1), 0, 65)
    presented = {"mean_speed_kmh": [means], "standard_deviation_kmh": [np.ones(means.size)]}
    parts = {
        ESTIMATES: estimates.tables,
        UNBIASED: {"speed": labelled(domain, SPEED, [None], presented)},
        MEASURED: {
            "speed": labelled(
                domain, SPEED, [None], {name: [values] for name, values in noisy.items()}
            )
        },
    }
    return parts, speeds[:, routes.index(ROUTE)]


def _event(table: str, statistic: str, deviation: float) -> DrawEvent:
    """Return a draw of normal noise."""
    return DrawEvent(
        table=table,
        statistic=statistic,
        noise=NoiseFamily.DISCRETE_GAUSSIAN,
        scale=Fraction(deviation),
        blocks=(Block(FIRST_DAY, "train"),),
        sensitivities=(),
    )


def _write(folder: Path, parts: Parts, events: list[DrawEvent], days: int) -> None:
    """Write the tables and the card of a package."""
    columns = {
        part: {name: table.column_names for name, table in tables.items()}
        for part, tables in parts.items()
    }
    data_layouts = layouts(columns, events)
    (folder / "data").mkdir(parents=True)
    week = Week(tuple(events), (), days)
    for name in data_layouts:
        rows = rows_of(name, columns, lambda part, table_name: parts[part][table_name], week)
        (folder / f"data/{name}.parquet").write_bytes(parquet_bytes(rows))
    card = {"data": [layout.record() for layout in data_layouts.values()]}
    (folder / "release_card.json").write_text(json.dumps(card))
