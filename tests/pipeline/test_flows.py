"""A week of flows through the whole product: what is published, and what anybody can check."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from small_deployment import WEEK, Deployment

from turnstile.programme.domain import region_of
from turnstile.publishing.carried.sums import Package

Cli = Callable[..., int]
ENDS = ("origin", "destination")


@pytest.fixture
def package(landed: Deployment, turnstile: Cli) -> Path:
    """A published week."""
    assert turnstile("run", "opal_flows", "--week", WEEK) == 0
    return landed.public / "opal_flows" / WEEK / "r0"


def test_a_week_of_flows_is_published_and_can_be_made_again(
    package: Path, turnstile: Cli, tmp_path: Path
) -> None:
    assert turnstile("package", "verify", package) == 0
    assert turnstile("estimates", "verify", package) == 0
    for path in package.glob("*/*.csv"):
        columns = set(pd.read_csv(path, nrows=1).columns)
        if {"tap_on_location", "tap_on_slot"} & columns:
            assert not any(name.startswith(("tap_off", "destination")) for name in columns)
    zones = pd.read_csv(package / "estimates/flows_of_zones.csv")
    regions = pd.read_csv(package / "estimates/flows_of_regions.csv")
    keys = ["mode", "day_period", *(f"{end}_region" for end in ENDS)]
    for end in ENDS:
        zones[f"{end}_region"] = zones[f"{end}_zone"].map(region_of)
    summed = zones.groupby(keys)["reconciled"].sum()
    own = regions.set_index(keys)["reconciled"]
    assert (summed - own).abs().max() < 0.1
    assert zones["is_flow"].any()
    listed = zones[zones["is_flow"]].merge(regions, on=keys, suffixes=("", "_of_regions"))
    assert listed["is_flow_of_regions"].all()
    assert (zones["estimate"] >= 0).all()
    # sums of any cells have the declared noise
    found = Package(package).total("tables/flows_of_zones", lambda row: row["mode"] == "train")
    deviation = Package(package).draws["flows_of_zones", "count"]["standard_deviation"]
    assert found.standard_deviation == pytest.approx(deviation * found.cells**0.5)
    drawn = pd.read_csv(package / "measurements/flows_of_zones.csv")
    assert found.value == drawn[drawn["mode"] == "train"]["count"].sum()
    # negative control: another estimate is found
    copy = tmp_path / "public/opal_flows" / WEEK / "r0"
    shutil.copytree(package, copy)
    table = copy / "estimates/flows_of_zones.csv"
    table.write_text(table.read_text().replace(",true,", ",false,", 1))
    assert turnstile("estimates", "verify", copy) == 4
