"""Four weeks together: free as post-processing, charged week by week if they are drawn on again."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from small_deployment import INCLUDE, Deployment

from turnstile.errors import BudgetExceeded, InputError
from turnstile.estimates.vehicles.mean_intervals import RatioNoise
from turnstile.estimates.vehicles.rolling_means import WeekOfMeans, rolling_means
from turnstile.ledger.encoding import encode_event
from turnstile.ledger.records import Bindings, ReleaseKey, Request
from turnstile.privacy.mechanisms import dense
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.publishing.package_numbers import read_week
from turnstile.release.ledger_caps import ledger_cap
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServicePeriod, parse_period

NOISE = RatioNoise(NoiseFamily.DISCRETE_GAUSSIAN, Fraction(2752), Fraction(15))
CELLS, V_KMH = 1600, 65


def weeks_of(number: int, buses: int = 120, offset: int = -125) -> list[WeekOfMeans]:
    """Weeks of equal cells, noised by the product's own mechanism."""
    exact = np.full(CELLS, buses, dtype=np.int64)
    labels = pa.table({"cell": [str(cell) for cell in range(CELLS)]})
    itms = load_programme("itms", INCLUDE)
    planned = make_plan(itms, load_domain(itms, INCLUDE), parse_period("2016-W30"))
    of_sum, of_count = planned.events[:2]
    of_sum = replace(of_sum, scale=NOISE.sum_scale)
    of_count = replace(of_count, scale=NOISE.count_scale)
    return [
        WeekOfMeans(
            labels=labels,
            domain_digest="one",
            sums=dense.draw(of_sum, exact * offset),
            counts=dense.draw(of_count, exact),
            noise=NOISE,
            mean_range=V_KMH,
        )
        for _ in range(number)
    ]


def test_a_four_week_mean_has_half_the_error_of_a_week_and_says_so() -> None:
    # Every limit is eight standard deviations and more away over 1,600 cells: an error's own is
    # 1.8 % of it, that of the share that is covered 0.55 points, that of the ratio 0.012.
    weeks = weeks_of(4)
    four = rolling_means(weeks)
    single_week = rolling_means(weeks[:1])
    assert four.num_rows == CELLS
    errors = []
    for table in (single_week, four):
        shown = ~np.array(table.column("is_withheld").to_pylist())
        mean, stated, low, high = (
            table.column(name).to_numpy()[shown]
            for name in ("mean_speed_kmh", "standard_deviation_kmh", "low_95_kmh", "high_95_kmh")
        )
        truth = V_KMH / 2 - 12.5
        errors.append(float(np.sqrt(np.mean((mean - truth) ** 2))))
        assert errors[-1] == pytest.approx(float(np.sqrt(np.mean(stated**2))), rel=0.2)
        assert np.mean((low <= truth) & (truth <= high)) > 0.9
    assert errors[1] < 0.6 * errors[0]
    assert four.column("bus_days_standard_deviation")[0].as_py() == pytest.approx(30, abs=0.01)


def test_weeks_of_other_cells_cannot_be_added() -> None:
    week = weeks_of(1)[0]
    for other in (replace(week, domain_digest="two"), replace(week, mean_range=V_KMH + 20)):
        with pytest.raises(InputError, match="same cells, noise and range"):
            rolling_means([week, other])
    with pytest.raises(InputError):
        rolling_means([])
    with pytest.raises(InputError, match="no published table"):
        read_week(Path("nowhere"), "speed")


def reserve_and_begin(deployment: Deployment, name: str, period: str) -> None:
    """Charge a release as its draw would."""
    programme = load_programme(name, deployment.include)
    asked: ServicePeriod = parse_period(period)
    planned = make_plan(programme, load_domain(programme, deployment.include), asked)
    bindings = Bindings("1" * 64, "2" * 64, "3" * 64)
    attempt = deployment.ledger.reserve(
        Request(
            key=ReleaseKey(name, period),
            family=planned.family,
            bindings=bindings,
            plan_digest=planned.digest,
            events=tuple(encode_event(event) for event in planned.events),
            postings=planned.postings,
            week=str(planned.charged_in),
            caps=tuple(ledger_cap(cap) for cap in programme.caps),
        )
    )
    deployment.ledger.begin_draw(attempt.attempt_id, bindings)


def test_a_day_is_charged_once_for_every_window_that_draws_on_it(deployment: Deployment) -> None:
    month = 50_000_000
    reserve_and_begin(deployment, "itms_month", "2016-07-04..2016-08-03")
    reserve_and_begin(deployment, "itms_month", "2016-07-11..2016-08-10")
    reserve_and_begin(deployment, "itms_month", "2016-07-18..2016-08-17")
    spent = deployment.spent()
    times = {"2016-07-04": 1, "2016-07-11": 2, "2016-07-18": 3, "2016-08-10": 2, "2016-08-17": 1}
    for day, windows in times.items():
        assert spent[f"bus_day:{day}"] == pytest.approx(windows * month, abs=3)
    assert "bus_day:2016-08-18" not in spent
    assert spent["bus:ever"] == pytest.approx(3 * 961 * month, rel=1e-6)
    # A bus-week lies within seven of the days, however long the period is.
    assert spent["bus_week:2016-W29"] == pytest.approx(3 * 49 * month, rel=1e-6)


def test_a_week_and_a_month_that_overlap_add_up_and_the_cap_stops_a_second_pair(
    deployment: Deployment,
) -> None:
    deployment.edit("itms", 'rho: "1/10"', 'rho: "31/100"')  # no room for more
    reserve_and_begin(deployment, "itms", "2016-W30")
    reserve_and_begin(deployment, "itms_month", "2016-07-25..2016-08-24")
    spent = deployment.spent()
    assert spent["bus_day:2016-07-25"] == pytest.approx(360_000_000, rel=1e-6)
    assert spent["bus_day:2016-08-01"] == pytest.approx(50_000_000, rel=1e-6)
    with pytest.raises(BudgetExceeded):
        reserve_and_begin(deployment, "itms_month", "2016-07-01..2016-07-31")


def test_a_month_is_named_by_its_days() -> None:
    period = parse_period("2021-11-15..2021-12-15")
    assert (len(period.days), str(period)) == (31, "2021-11-15..2021-12-15")
    assert period.days[-1] == date(2021, 12, 15)
    assert [str(week) for week in period.weeks] == [f"2021-W{n}" for n in range(46, 51)]
    for text in ("2021-12-15..2021-11-15", "2021-11-31..2021-12-15", "2021-11-15"):
        with pytest.raises(InputError):
            parse_period(text)
