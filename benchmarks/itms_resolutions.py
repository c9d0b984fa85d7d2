"""One resolution of H3 or many at equal loss: what a reader of a fine cell is wrong by.

The list of many resolutions is made once, from a charged survey of the week before the first
release, and used for a year. So a bus-day is drawn on by the survey or by a release, never by both;
and over the year the many-resolution releases pay for the survey: 52 of them and one survey lose
what 52 of the others do. Several cities by seed; dense places are fine cells with many buses.
Run: `make bench-utility`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from itms_city import (
    CLAMP_KMH,
    HUGE_BOUND,
    INCLUDE,
    ROWS_A_WEEK,
    City,
    Design,
    Floats,
    Vectors,
    at_resolution,
    counted,
    drawn,
    make_city,
    of_cells,
    rmse,
    true_means,
)

from turnstile.estimates.vehicles.mean_intervals import RatioNoise, means_of
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.loading import load_programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek
from turnstile_design.private_reports.cell_choice import owner, partition

SURVEYED, RELEASED = ServiceWeek(2021, 45), ServiceWeek(2021, 46)
WEEKS_OF_USE = 52
COARSEST, FINEST = 6, 8
LEAST_BUSES_A_DAY = 60  # what `turnstile itms cells --coarsest` divides an area by
DENSE_BUSES_A_DAY = 24
DRAWS = 5
BOUND = 40  # as itms.yaml and itms_survey.yaml
MANY = "many resolutions"


@dataclass(frozen=True)
class Result:
    """Of one design in one city.

    Args:
        cells: listed.
        rho: of a week's release, for a bus-day.
        errors_kmh: RMSE over all, dense and sparse places, shape (3,).
    """

    cells: int
    rho: Fraction
    errors_kmh: Floats


def errors_of_city(city: City, bound: int) -> dict[str, Result]:
    """Return what every design comes to in one city."""
    survey = load_programme("itms_survey", INCLUDE).mechanism.amount
    rho = load_programme("itms", INCLUDE).mechanism.amount
    fine = at_resolution(city, FINEST)
    truth = counted(city, fine, RELEASED, bound=HUGE_BOUND, finest=FINEST)
    shape = fine.shape(city.programme.tables[0], "bus")
    weights = truth.buses.reshape(shape).astype(float)
    dense = weights.mean(axis=0) / len(RELEASED.days) >= DENSE_BUSES_A_DAY
    results = {}
    for name, domain, finest in designs(city, fine):
        own_rho = rho - survey / WEEKS_OF_USE if name == MANY else rho
        exact = counted(city, domain, RELEASED, bound=bound, finest=finest)
        drawn_often = [drawn(city, domain, exact, own_rho, Design(bound)) for _ in range(DRAWS)]
        errors = [fine_errors((fine, domain), truth, published) for published in drawn_often]
        errors_rms = np.sqrt(np.mean(np.square(errors), axis=0)).reshape(shape)
        parts = (slice(None), dense, ~dense)
        found_kmh = [rmse(errors_rms[:, part].ravel(), weights[:, part].ravel()) for part in parts]
        results[name] = Result(
            len(domain.dimension("bus", "cell").labels), own_rho, np.array(found_kmh)
        )
    return results


def designs(city: City, fine: PublicDomain) -> Iterator[tuple[str, PublicDomain, int]]:
    """Name every design, its cells and the finest of their resolutions."""
    for resolution in range(COARSEST, FINEST + 1):
        yield f"resolution {resolution}", at_resolution(city, resolution), resolution
    yield MANY, of_cells(city, chosen_cells(city, fine)), FINEST


def chosen_cells(city: City, fine: PublicDomain) -> tuple[str, ...]:
    """Divide the area by the noisy counts of a survey, drawn as its programme says."""
    surveyed = counted(city, fine, SURVEYED, bound=BOUND, finest=FINEST)
    survey = load_programme("itms_survey", INCLUDE)
    (event,) = make_plan(replace(survey, caps=()), fine, SURVEYED).events
    shape = fine.shape(city.programme.tables[0], "bus")
    noisy = draw(event, surveyed.buses).reshape(shape) / len(SURVEYED.days)
    counts = {
        cell: noisy[:, place].tolist()
        for place, cell in enumerate(fine.dimension("bus", "cell").labels)
    }
    return partition(counts, LEAST_BUSES_A_DAY, coarsest=COARSEST)


def fine_errors(
    domains: tuple[PublicDomain, PublicDomain],
    truth: Vectors,
    published: tuple[Vectors, RatioNoise],
) -> Floats:
    """Return what a reader who looks a fine cell up is wrong by, km/h.

    Where a mean is withheld, the city's own noisy mean is read.
    """
    fine, domain = domains
    noisy, noise = published
    noisy_means = means_of(noisy.sums, noisy.buses, noise, clamp_kmh=CLAMP_KMH)
    of_city = CLAMP_KMH / 2 + noisy.sums.sum() / max(1, noisy.buses.sum()) / 10
    slots, cells = (axis.labels for axis in domain.dimensions("bus"))
    means = np.where(noisy_means.is_withheld, of_city, noisy_means.mean).reshape(
        len(slots), len(cells)
    )
    place = {cell: number for number, cell in enumerate(cells)}
    owners = [owner(cell, place.keys()) for cell in fine.dimension("bus", "cell").labels]
    columns = [len(cells) if cell is None else place[cell] for cell in owners]
    with_city = np.concatenate([means, np.full((len(slots), 1), of_city)], axis=1)
    return np.nan_to_num(with_city[:, columns].reshape(-1) - true_means(truth), nan=0.0)


def lines_of(cities: Sequence[dict[str, Result]]) -> list[str]:
    """Return mean and spread over the cities, and of the differences to many resolutions."""
    lines = ["| design | cells | rho a week | all | dense places | sparse places |"]
    lines.append("|---|---|---|---|---|---|")
    for name in cities[0]:
        cells = np.mean([city[name].cells for city in cities])
        shown = _mean_and_deviation(np.array([city[name].errors_kmh for city in cities]))
        lines.append(f"| {name} | {cells:.0f} | {float(cities[0][name].rho):.4f} | {shown} |")
    for name in cities[0]:
        if name != MANY:
            apart = [city[MANY].errors_kmh - city[name].errors_kmh for city in cities]
            lines.append(f"| {MANY} less {name} | | | {_mean_and_deviation(np.array(apart))} |")
    return lines


def _mean_and_deviation(values: Floats) -> str:
    """Return mean and standard deviation over the cities of three columns."""
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(3)
    return " | ".join(
        f"{mean:.2f} ({sd:.2f})" for mean, sd in zip(values.mean(axis=0), spread, strict=True)
    )


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS_A_WEEK, help="observations of a week")
    parser.add_argument("--cities", type=int, default=3, help="number of seeds")
    parser.add_argument("--k", type=int, default=BOUND, help="pairs of a bus-day")
    args = parser.parse_args()
    cities = []
    days = (*SURVEYED.days, *RELEASED.days)
    for seed in range(1, args.cities + 1):
        with tempfile.TemporaryDirectory() as folder:
            city = make_city(Path(folder), days, args.rows, seed=seed)
            cities.append(errors_of_city(city, args.k))
    print("\n## One week, read at resolution 8: RMSE in km/h, weighted by bus-days\n")
    print(f"Mean of {args.cities} cities (and its standard deviation over them).\n")
    print(*lines_of(cities), sep="\n")


if __name__ == "__main__":
    main()
