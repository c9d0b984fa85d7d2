"""A week of each Opal programme: what is published, how sums agree, and what a family allows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from deployment_fixtures import deployment_in
from made_homes import MadeHome, MadeHomes
from small_deployment import WEEK, Deployment

from turnstile.cli import main
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.programme.source_spec import WithoutCard
from turnstile.publishing.carried import sums

Cli = Callable[..., int]
CUTS = {"on_time": 35, "on_location": 35, "on_time_location": 18, "off_time_location": 18}


@pytest.fixture(scope="module")
def made_source(
    tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes, generated: Path
) -> MadeHome:
    """Zones in which the release of 2017 is published, with its synthetic rows."""
    folder = tmp_path_factory.mktemp("source")
    with pytest.MonkeyPatch.context() as environment:
        begun = deployment_in(folder, environment)
    shutil.copytree(generated / "opal", begun.landing("opal").parent)
    for name in ("opal_trip", "opal_2017"):
        begun.edit(name, "slot_minutes: 15", "slot_minutes: 240")
    begun.edit("opal_2017", "  contact:", "  synthetic_rows: true\n  contact:")
    return homes.get(folder, ("run", "opal_2017", "--week", WEEK))


@pytest.fixture
def small(made_source: MadeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """A deployment in which the release of 2017 is published, with its synthetic rows."""
    return entered(made_source.copy(tmp_path / "small"), monkeypatch)


@pytest.fixture
def recommended(
    half_hour_weeks: MadeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    """A deployment in which the recommended programme is published."""
    return entered(half_hour_weeks.copy(tmp_path / "recommended"), monkeypatch)


def entered(made: MadeHome, environment: pytest.MonkeyPatch) -> Deployment:
    made.enter(environment)
    return Deployment(made.home, made.include)


def package(deployment: Deployment, name: str) -> Path:
    return deployment.public / name / WEEK / "r0"


def read(deployment: Deployment, name: str, table: str) -> pd.DataFrame:
    return pq.read_table(package(deployment, name) / f"data/{table}.parquet").to_pandas()


def test_the_release_of_2017_has_the_marks_of_the_real_one(small: Deployment) -> None:
    for table, cut in CUTS.items():
        rows = read(small, "opal_2017", table)
        assert len(rows) > 0
        assert rows["measured"].min() >= cut
        assert (rows["value"] == rows["measured"]).all()
    assert main(["package", "verify", str(package(small, "opal_2017"))]) == 0
    card = json.loads((package(small, "opal_2017") / "release_card.json").read_text())
    assert card["guarantee"]["units"]["trip"]["epsilon_replace"] == "8"
    assert float(card["guarantee"]["units"]["trip"]["delta"]) < 2**-20
    assert card["guarantee"]["units"]["card_day"]["rho"] is None
    assert {draw["threshold"] for draw in card["draws"]} == {18, 35}
    assert card["errors"]["estimates"] == []
    # sums of what was let through lack the rest, so no interval of their noise is given
    for column in ("value", "unbiased", "measured"):
        with pytest.raises(ValueError, match=f"no sums of the column {column}"):
            sums.Package(package(small, "opal_2017")).total("on_location", column=column)


def test_the_report_of_2017_states_intervals_only_where_nothing_was_left_out(
    small: Deployment,
) -> None:
    folder = package(small, "opal_2017")
    said, readme = (folder / "report.html").read_text(), (folder / "README.md").read_text()
    assert "those of a place and day below 35" in said
    assert "a row that is not there is not 0" in readme
    rows = read(small, "opal_2017", "on_location")
    places = rows.groupby(["mode", "location"])["measured"].agg(["sum", "size", "min"])
    card = json.loads((folder / "release_card.json").read_bytes())
    deviations = {draw["table"]: draw["standard_deviation"] for draw in card["draws"]}
    clear = 35 + 3 * deviations["on_location"]
    half = 1.959964 * deviations["on_location"] * 7**0.5
    ends = {"with": 0, "without": 0}
    for (mode, place), (total, days, least) in places.iterrows():
        name = f"{place} ({mode})"
        if f"{name} about {total:,.0f}" not in said:
            continue
        is_whole = days == 7 and least > clear
        ends["with" if is_whole else "without"] += 1
        stated = f"({total - half:,.0f} to {total + half:,.0f})" if is_whole else "without an"
        assert f"{name} about {total:,.0f}{'' if is_whole else ','} {stated}" in said
    assert ends["with"] + ends["without"] > 3


def test_rows_of_the_release_of_2017_stand_in_the_order_of_the_public_domain(
    small: Deployment,
) -> None:
    programme = load_programme("opal_2017", small.include)
    domain = load_domain(programme, small.include)
    rows = read(small, "opal_2017", "on_time_location")
    order = {
        (mode, slot, place): n
        for n, (mode, slot, place) in enumerate(
            (mode, slot, place)
            for mode in domain.modes
            for slot in domain.dimension(mode, "tap_on_slot").labels
            for place in domain.dimension(mode, "tap_on_location").labels
        )
    }
    cells = zip(rows["mode"], rows["slot"], rows["location"], strict=True)
    places = np.array([order[cell] for cell in cells])
    days = rows["service_date"].to_numpy()
    assert len(rows) < 7 * len(order)
    for day in np.unique(days):
        assert (np.diff(places[days == day]) > 0).all()


def test_synthetic_rows_are_as_many_as_the_counts_say(small: Deployment) -> None:
    rows = read(small, "opal_2017", "on_time_rows")
    keys = ["service_date", "mode", "tap_on_slot"]
    assert list(rows.columns)[:3] == keys
    counted = read(small, "opal_2017", "on_time").rename(columns={"slot": "tap_on_slot"})
    measured = counted.set_index(keys)["measured"]
    assert (rows.groupby(keys, observed=True).size() == measured).all()


def test_without_that_option_no_synthetic_rows_are_published(recommended: Deployment) -> None:
    assert not list(package(recommended, "opal").glob("data/*_rows*"))


@pytest.mark.parametrize("second", ["opal_trip", "opal"])
def test_a_second_programme_over_the_same_cards_and_week_is_refused_before_any_draw(
    small: Deployment, second: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spent = small.spent()
    assert main(["run", second, "--week", WEEK]) == 3
    assert "cap" in capsys.readouterr().err
    assert spent.items() <= small.spent().items()  # the refused caps show windows of their own
    assert not package(small, second).exists()


@pytest.mark.long
def test_a_programme_without_a_card_bound_is_refused_after_one_with_it(
    recommended: Deployment,
) -> None:
    spent = recommended.spent()
    assert main(["run", "opal_trip", "--week", WEEK]) == 3
    assert recommended.spent() == spent


@pytest.mark.long
def test_a_trip_alone_is_protected_on_every_public_cell(landed: Deployment, turnstile: Cli) -> None:
    landed.edit("opal_trip", "slot_minutes: 15", "slot_minutes: 240")
    assert turnstile("run", "opal_trip", "--week", WEEK) == 0
    rows = read(landed, "opal_trip", "location_slot")
    assert rows["measured"].min() < 0 < (rows["measured"] == 0).sum()
    card = json.loads((package(landed, "opal_trip") / "release_card.json").read_text())
    assert card["guarantee"]["units"]["trip"]["delta"] == "0"


def test_roll_ups_are_sums_of_the_reconciled_cells_with_smaller_errors_than_their_parts(
    recommended: Deployment,
) -> None:
    keys = ["service_date", "mode", "tap", "location"]
    fine = read(recommended, "opal", "location_slot")
    hour = fine["slot"].astype(str).where(lambda s: s == "UNKNOWN", lambda s: s.str[:2] + ":00")
    sums = (
        fine.assign(hour=hour).groupby([*keys, "hour"], observed=True)[["value", "unbiased"]].sum()
    )
    hourly = read(recommended, "opal", "location_hour").set_index([*keys, "hour"])
    joined = sums.join(hourly.add_suffix("_published"))
    assert len(joined) == len(hourly) == len(sums)
    assert (joined["value"] - joined["value_published"]).abs().max() < 1e-6
    assert (joined["unbiased"] - joined["unbiased_published"]).abs().max() < 0.3  # rounded tenths
    by_size = hourly.groupby("hour")["unbiased_sd"].max()
    single = fine["unbiased_sd"].max()
    assert single < by_size["08:00"] <= single * 2**0.5
    assert by_size["UNKNOWN"] < by_size["08:00"]


def test_places_and_days_of_both_taps_are_one_table_each(recommended: Deployment) -> None:
    places, days = (read(recommended, "opal", name) for name in ("location", "day"))
    assert len(days) == 2 * 7 * 4
    totals = days.groupby("tap", observed=True)["unbiased"].sum()
    assert abs(totals["on"] - totals["off"]) < 0.1 * len(days)
    sums = places.groupby("tap", observed=True)["value"].sum()
    assert (sums - days.groupby("tap", observed=True)["value"].sum()).abs().max() < 1e-6
    names = {path.stem for path in package(recommended, "opal").glob("data/*.parquet")}
    of_regions = {"region", "region_hour", "region_slot"}
    assert (
        names == {"day", "hour", "slot", "location", "location_hour", "location_slot"} | of_regions
    )


def test_the_card_says_what_became_of_rows_without_a_card(recommended: Deployment) -> None:
    folder = package(recommended, "opal")
    stated = json.loads((folder / "release_card.json").read_text())["guarantee"]["without_card"]
    assert stated == WithoutCard.DROP.sentence != WithoutCard.OWN_UNIT.sentence
    assert stated in (folder / "release_card.md").read_text()


def test_half_widths_of_cells_roll_ups_and_sums_stand_on_the_card(
    recommended: Deployment,
) -> None:
    card = json.loads((package(recommended, "opal") / "release_card.json").read_text())
    estimates = {(line["table"], line["mode"]): line for line in card["errors"]["estimates"]}
    assert ("on_time_daily", "train") in estimates
    estimate = estimates["on_time_location", "bus"]
    assert estimate["standard_deviation"] < estimate["half_width_90"] < estimate["half_width_95"]
    sums = {
        (line["table"], line["cells"]): line for line in card["errors"]["sums_of_measured_cells"]
    }
    widths = [sums["on_time_location", cells]["half_width_95"] for cells in (1, 10, 1000)]
    assert widths == sorted(widths)
    assert estimate["half_width_95"] <= widths[0]
