"""Designs ranked by the error of their estimates, and the grain advisor: from public numbers."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_deployment import INCLUDE, Deployment

from turnstile.errors import InputError
from turnstile.estimates.usable import Usable
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import Programme, Query, UnitBound
from turnstile_design.compared_designs.bus_grains import bus_grains
from turnstile_design.compared_designs.designs import OWN, grains
from turnstile_design.compared_designs.estimate_ranking import Ranked, ranked
from turnstile_design.compared_designs.grains import (
    CITY_MEAN,
    LAST_YEAR,
    NOTHING,
    GrainErrors,
    grain_lines,
    lead_lines,
)
from turnstile_design.compared_designs.predicted_errors import (
    CELLS,
    Design,
    answers_of,
    errors_by_query,
)
from turnstile_design.compared_designs.public_city import PublicCity, made_city, published_city
from turnstile_design.compared_designs.trip_grains import trip_grains

Cli = Callable[..., int]
SUPPORT = Path(__file__).parents[1] / "support"
MODE = "light_rail"
YEAR = load_programme("opal_year", INCLUDE)
HOURLY = replace(YEAR, time=replace(YEAR.time, slot_minutes=60))


@pytest.fixture(scope="module")
def domain() -> PublicDomain:
    return load_domain(HOURLY, INCLUDE)


@pytest.fixture(scope="module")
def city(domain: PublicDomain) -> PublicCity:
    return made_city(domain, MODE, 200_000, slot_minutes=60)


@pytest.fixture(scope="module")
def designs(domain: PublicDomain, city: PublicCity) -> dict[str, Ranked]:
    return {row.design: row for row in ranked(HOURLY, domain, INCLUDE, city)}


def test_a_made_city_is_the_same_every_time(domain: PublicDomain, city: PublicCity) -> None:
    again = made_city(domain, MODE, 200_000, slot_minutes=60)
    assert all((a == b).all() for a, b in zip(again.weeks, city.weeks, strict=True))
    assert city.weeks[0].sum() == pytest.approx(200_000, rel=0.15)
    assert (city.weeks[0] != city.weeks[1]).any()


def test_counts_of_a_made_city_are_as_likely_as_their_rates_say(domain: PublicDomain) -> None:
    sparse = made_city(domain, MODE, 2_000, slot_minutes=60)  # far below one count a cell
    totals = [week.sum() for week in sparse.weeks]
    assert np.mean(totals) == pytest.approx(2_000, rel=0.1)
    cells = np.stack(sparse.weeks)
    assert cells.var() > cells.mean()  # Poisson about rates that differ
    assert (cells == np.rint(cells)).all()


def test_long_slots_of_a_made_city_are_the_sum_of_their_quarters() -> None:
    shares = []
    for minutes in (15, 60, 240, 1440):
        programme = replace(YEAR, time=replace(YEAR.time, slot_minutes=minutes))
        domain = load_domain(programme, INCLUDE)
        days = made_city(domain, MODE, 200_000, slot_minutes=minutes).last_year.sum(axis=2)
        shares.append(days / days.sum())
    for other in shares[1:]:
        assert other == pytest.approx(shares[0], rel=0.1)  # slots vary, of any length


def test_designs_are_ranked_by_what_the_programme_is_meant_for(
    designs: dict[str, Ranked],
) -> None:
    order = [row.against for row in designs.values()]
    assert order == sorted(order)
    assert designs["opal_year"].against == 1
    assert set(designs["opal_year"].by_query) == set(YEAR.meant_for)
    assert "cells alone" in designs
    assert "a quarter on slots, two trips of a card in one" in designs
    assert designs["one a mode (1)"].against > 2  # who asks for a place learns it from places


def test_noise_and_bias_of_a_bound_are_both_in_its_error(designs: dict[str, Ranked]) -> None:
    ten, twenty, forty = (designs[f"card-week of {k}"] for k in (10, 15, 40))
    assert ten.left_out > twenty.left_out > forty.left_out
    by_day = Query.DAILY_TOTALS_BY_PLACE
    assert ten.by_query[by_day] > ten.left_out / 2
    assert forty.cells > designs["opal_year"].cells


def test_less_noise_is_less_error_and_estimates_beat_what_is_drawn(city: PublicCity) -> None:
    errors = []
    for deviation in (3.0, 30.0, 300.0):
        read, truth = answers_of(Design({CELLS: deviation}, grains()[OWN]), city)
        errors.append(errors_by_query(read, truth)[Query.TOP_STATIONS_BY_HOUR])
    assert errors == sorted(errors)
    drawn = 30 * np.sqrt(2 / np.pi) / city.weeks[0].mean()
    assert errors[1] < 0.6 * drawn


def test_published_estimates_stand_in_for_a_city(
    tmp_path: Path, domain: PublicDomain, city: PublicCity
) -> None:
    names = sorted({place.area for place in city.stops})
    slots = [slot for slot in domain.dimension(MODE, CELLS[0]).labels if slot != "UNKNOWN"]
    days = [f"2016-07-{n}" for n in range(25, 32)]
    rows = [(d, MODE, "on", s, n, 5.0 + len(n)) for d in days for s in slots for n in names]
    columns = ["service_date", "mode", "tap", "slot", "location", "value"]
    (tmp_path / "data").mkdir()
    card = {"data": [{"name": "location_slot", "what": "", "unit": "trips", "sources": []}]}
    (tmp_path / "release_card.json").write_text(json.dumps(card))
    table = pa.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))
    pq.write_table(table, tmp_path / "data/location_slot.parquet")
    public_city = published_city(tmp_path, domain, MODE)
    assert public_city.weeks[0].shape == (len(names), 7, len(slots))
    assert public_city.weeks[0].mean() == pytest.approx(np.mean([row[-1] for row in rows]), rel=0.2)
    with pytest.raises(InputError, match="no estimates"):
        published_city(tmp_path, domain, "ferry")
    pq.write_table(table.drop_columns("mode"), tmp_path / "data/location_slot.parquet")
    with pytest.raises(InputError, match="no estimates"):
        published_city(tmp_path, domain, MODE)  # of which mode nothing says
    one_mode = replace(HOURLY, source=replace(HOURLY.source, modes=(MODE,)))
    of_one = published_city(tmp_path, load_domain(one_mode, INCLUDE), MODE)
    assert (of_one.weeks[0] == public_city.weeks[0]).all()


def errors_of(estimates: float, *, is_written: bool = True) -> GrainErrors:
    baselines = {NOTHING: 100.0, CITY_MEAN: 40.0, LAST_YEAR: 15.0}
    return GrainErrors("taps", "stop x hour", estimates, baselines, "%", is_written)


@pytest.mark.parametrize(
    ("estimates", "not_beaten"),
    [(13.0, ()), (14.0, (LAST_YEAR,)), (39.0, (CITY_MEAN, LAST_YEAR))],
)
def test_a_grain_is_worth_it_where_it_beats_every_naive_table_by_a_tenth(
    estimates: float, not_beaten: tuple[str, ...]
) -> None:
    row = errors_of(estimates)
    assert row.not_beaten == not_beaten
    text = "\n".join(grain_lines([row]))
    assert ("learns nothing that" in text) == bool(not_beaten)
    assert ("no grain beats every naive table" in text) == bool(not_beaten)


def test_the_grain_to_lead_with_is_the_finest_that_can_be_used() -> None:
    def row(grain: str, counted: float) -> GrainErrors:
        baselines = {NOTHING: 100.0, CITY_MEAN: 40.0, LAST_YEAR: 15.0}
        usable = Usable(counted / 2, counted)
        return GrainErrors("taps", grain, 13.0, baselines, "%", is_written=False, usable=usable)

    rows = [row("stop x hour", 0.6), row("stop x day", 0.92), row("region x day", 0.99)]
    assert next(lead_lines(rows)).startswith("lead with stop x day: 92% of taps, 46% of numbers")
    assert "no grain reaches nine tenths" in next(lead_lines(rows[:1]))
    assert not list(lead_lines([errors_of(13.0)]))


def test_check_says_which_grain_can_be_used_at_the_authoritys_volume(
    turnstile: Cli, deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment.edit("opal_year", "slot_minutes: 15", "slot_minutes: 60")
    outputs = []
    for trips in (20_000, 2_000_000):
        code = turnstile("check", "opal_year", "--trips", trips)
        said = capsys.readouterr()
        assert (code == 2) == (trips == 20_000) == ("learns nothing that" in said.err)
        outputs.append(said.out)
    small, large = ([int(n) for n in re.findall(r": (\d+)% of taps", output)] for output in outputs)
    first = [int(n) for n in re.findall(r"\((\d+)% of taps", outputs[0])]
    assert len(first) == len(small) - 1  # of what to lead with the share stands once more
    assert sum(first) < sum(small[:-1])  # a first week tells less
    published = [line for line in outputs[1].splitlines() if "% of taps" in line]
    assert all(
        ("another programme" in line) == ("regions" not in line and "as published" not in line)
        for line in published[:-1]
    )
    assert all(share <= other for share, other in zip(small, large, strict=True))
    assert small[0] < large[0]
    assert "lead with" in outputs[1]
    with pytest.raises(SystemExit, match="2"):
        turnstile("check", "opal_year", "--trips", -4)
    assert "'-4' is no whole number from 1 on" in capsys.readouterr().err
    assert deployment.nothing_happened()


def test_a_larger_city_learns_more_from_trips(domain: PublicDomain) -> None:
    def advice(trips: int) -> list[GrainErrors]:
        city = made_city(domain, MODE, trips, slot_minutes=60)
        return list(trip_grains(HOURLY, domain, INCLUDE, city))

    small, large = advice(2_000), advice(2_000_000)
    assert all(row.not_beaten for row in small if row.is_written and "place" in row.table)
    assert not any(row.not_beaten for row in large if row.is_written)


@pytest.mark.parametrize("by", [("tap_on_location",), ()])
def test_sums_of_the_year_are_no_marginals_and_no_totals(
    domain: PublicDomain, city: PublicCity, by: tuple[str, ...]
) -> None:
    sums = replace(load_programme("opal_sums", INCLUDE), time=HOURLY.time)
    shared = sums.shared_tables
    of_year = [replace(table, by=by) for table in sums.tables if table not in shared]
    alone, both = (
        list(trip_grains(replace(sums, tables=tables), domain, INCLUDE, city))
        for tables in (shared, (*shared, *of_year))
    )
    assert of_year
    assert both == alone


@pytest.mark.long
def test_a_mid_size_city_learns_nothing_from_the_shipped_grain_of_buses() -> None:
    itms: Programme = load_programme("itms", INCLUDE)
    cells = load_domain(itms, INCLUDE)
    for buses, learns in ((150, False), (1_000, True)):
        rows = bus_grains(itms, cells, buses, only_written=True)
        assert [not row.not_beaten for row in rows] == [learns, learns]


def test_a_bound_on_the_week_of_a_bus_holds_over_its_days_together() -> None:
    """A bus that counts once moves the noise's vectors alike, be it once a day or once a week."""
    itms = load_programme("itms", INCLUDE)
    cells = load_domain(itms, INCLUDE)

    def rows(unit: ProtectionUnit, buses: int) -> list[GrainErrors]:
        mechanism = replace(itms.mechanism, unit=unit)
        once = replace(itms, units=(UnitBound(unit, 1),), mechanism=mechanism)
        return list(bus_grains(once, cells, buses, only_written=True))

    daily = rows(ProtectionUnit.BUS_DAY, 20_000)
    assert rows(ProtectionUnit.BUS_WEEK, 7 * 20_000) == daily
    assert rows(ProtectionUnit.BUS_WEEK, 20_000)[0].estimates > daily[0].estimates


@pytest.mark.long
def test_the_command_ranks_estimates_and_advises_a_grain(
    turnstile: Cli, deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("plan", "opal", "--compare", "--trips", 50_000) == 0
    printed = capsys.readouterr().out
    assert "Predicted errors of the estimates, at the same loss, least first" in printed
    assert "| as written | opal |" in printed.split("Predicted errors")[1]
    assert turnstile("plan", "opal", "--grains", "--trips", 50_000) == 0
    assert "tap-ons by time and place: " in capsys.readouterr().out
    assert turnstile("plan", "opal_2017", "--grains") == 2
    shutil.copy(SUPPORT / "programmes/itms.yaml", deployment.include / "programmes/itms.yaml")
    assert turnstile("plan", "itms", "--week", "2016-W30") == 0
    assert "a city of this size learns nothing that last year's table" in capsys.readouterr().out
    assert deployment.nothing_happened()
