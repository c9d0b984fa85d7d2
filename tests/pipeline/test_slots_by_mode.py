"""A week of two modes that run at different hours, from the landing zone to its assessment."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from made_homes import MadeHomes
from small_deployment import INCLUDE, WEEK, Deployment

from turnstile.cli import main
from turnstile.counting.exact_store import load_exact
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import layout
from turnstile.programme.loading import load_programme

MODES = ("bus", "train")
# by half hours: buses from 05:00 to 01:00 of the next day, trains from 06:30 to 21:00
HOURS = "mode,first,last\nbus,05:10,24:55\ntrain,06:30,21:00\n"
OPEN = {"bus": {*range(2), *range(10, 48)}, "train": set(range(13, 42))}
KEYS = ["service_date", "mode", "tap"]


@pytest.fixture(scope="module")
def made_once(
    tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes, generated: Path
) -> Deployment:
    """The week, released once for all tests of this file."""
    root = tmp_path_factory.mktemp("hours")
    begun = Deployment(root / "var", root / "include")
    shutil.copytree(INCLUDE / "programmes", begun.include / "programmes")
    shutil.copytree(INCLUDE / "domains", begun.include / "domains")
    begun.keep_few_places()
    (begun.include / "domains/hours.csv").write_text(HOURS)
    begun.edit("opal", "slots: all_day", "slots: domains/hours.csv")
    begun.edit("opal", "slot_minutes: 15", "slot_minutes: 30")
    begun.edit("opal", "[bus, ferry, light_rail, train]", "[bus, train]")
    begun.landing("opal").mkdir(parents=True)
    trips(generated).to_csv(begun.landing("opal") / "trips.csv", index=False)
    private = begun.home / "private"
    private.mkdir(mode=0o700)
    # Which trips of a card-day are left out hangs on this key: the same ones every time.
    (private / "bounding.key").write_bytes(bytes(range(32)))
    made = homes.get(root, ("run", "opal", "--week", WEEK))
    home_copy = made.copy(tmp_path_factory.mktemp("own_hours"))
    return Deployment(home_copy.home, home_copy.include)


@pytest.fixture
def released(made_once: Deployment, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """A deployment in which the week is published."""
    made_once.enter(monkeypatch)
    return made_once


def trips(generated: Path) -> pd.DataFrame:
    """The generated trips of the two modes."""
    files = sorted((generated / "opal" / WEEK).glob("*"))
    rows = pd.concat([pd.read_csv(file, dtype=str) for file in files])
    return rows[rows["mode"].isin(MODES)]


def package(deployment: Deployment) -> Path:
    return deployment.public / "opal" / WEEK / "r0"


def read(deployment: Deployment, table: str) -> pd.DataFrame:
    return pq.read_table(package(deployment) / f"data/{table}.parquet").to_pandas()


def labels_of(mode: str) -> list[str]:
    return [f"{n // 2:02d}:{30 * (n % 2):02d}" for n in sorted(OPEN[mode])] + ["UNKNOWN"]


def test_each_mode_is_published_in_its_own_slots(released: Deployment) -> None:
    for table in ("slot", "location_slot"):
        for (_, mode, _), part in read(released, table).groupby(KEYS, observed=True):
            assert list(dict.fromkeys(part["slot"])) == labels_of(str(mode))


def test_a_tap_outside_of_the_hours_of_its_mode_is_counted_as_unknown(
    released: Deployment, generated: Path
) -> None:
    private = released.home / "private/opal" / WEEK
    folder = next(private.rglob("exact")).parent
    counted = load_exact(folder, (folder / "exact").read_text())
    on_time = [t.reveal_to_mechanism() for t in counted if t.table == "on_time"]
    programme = load_programme("opal", released.include)
    domain = load_domain(programme, released.include)
    table = next(table for table in programme.tables if table.name == "on_time")
    rows = trips(generated)
    slot = rows["tap_on_time"].str[:2].astype(int) * 2 + (
        rows["tap_on_time"].str[3:5].astype(int) // 30
    )
    for segment in layout(domain, table):
        end = segment.offset + segment.cells
        week = np.sum([day[segment.offset : end] for day in on_time], axis=0)
        mode_slots = slot[rows["mode"] == segment.mode]
        outside = int((~mode_slots.isin(OPEN[segment.mode])).sum())
        # the bound of six trips a card-day leaves out a few; no trip leaves for its hour
        assert 0 < 0.8 * outside <= week[-1] <= outside
        assert week.sum() <= len(mode_slots)
        inside = mode_slots[mode_slots.isin(OPEN[segment.mode])].value_counts()
        bounded = [inside.get(n, 0) for n in sorted(OPEN[segment.mode])]
        assert (week[:-1] <= bounded).all()
        assert week.sum() > 0.7 * len(mode_slots)


def test_cells_add_up_to_slots_places_hours_and_days_of_each_mode(released: Deployment) -> None:
    cells = read(released, "location_slot")
    for axis in ("slot", "location"):
        table = axis
        sums = cells.groupby([*KEYS, axis], observed=True)[["value", "unbiased"]].sum()
        stated = read(released, table).set_index([*KEYS, axis])
        joined = stated.join(sums.add_suffix("_summed"))
        assert len(joined) == len(stated) == len(sums)
        assert (joined["value"] - joined["value_summed"]).abs().max() < 1e-6
        rounded = 0.06 * len(cells) ** 0.5
        assert (joined["unbiased"] - joined["unbiased_summed"]).abs().max() < rounded
    hourly = read(released, "hour")
    hours = hourly.groupby("mode", observed=True)["hour"].nunique().to_dict()
    assert hours == {"bus": 1 + 19 + 1, "train": 15 + 1}
    slots = read(released, "slot").groupby(KEYS, observed=True)["value"].sum()
    for name in ("hour", "day"):
        stated = read(released, name).groupby(KEYS, observed=True)["value"].sum()
        assert (stated - slots).abs().max() < 1e-6
    # an hour of which a mode has one half slot only has the smaller error
    halves = hourly.groupby(["mode", "hour"], observed=True)["unbiased_sd"].max()
    assert halves["train", "06:00"] < halves["train", "07:00"]


@pytest.mark.long
def test_the_package_verifies_and_its_assessment_finds_no_flaw(
    released: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["package", "verify", str(package(released))]) == 0
    card = json.loads((package(released) / "release_card.json").read_text())
    assert "domains/hours.csv@" in card["domain"]["version"]
    assert card["domain"]["rows_outside"].startswith("counted as UNKNOWN")
    sizes = {(e["table"], e["mode"]): e["half_width_95"] for e in card["errors"]["estimates"]}
    assert sizes["on_time_daily", "bus"] != sizes["on_time_daily", "train"]
    capsys.readouterr()
    assert main(["assess", str(package(released)), "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert findings
    assert not [finding for finding in findings if finding["is_flaw"]]


def test_a_package_with_a_slot_that_its_mode_does_not_have_is_refused(
    released: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row of a closed slot, put in by hand, breaks the manifest."""
    forged = tmp_path / "r0"
    shutil.copytree(package(released), forged)
    path = forged / "data/slot.csv"
    path.chmod(0o644)
    text = path.read_text()
    assert "train,on,06:30," in text.replace('"', "")
    path.write_text(text.replace("06:30", "03:30"))
    assert main(["package", "verify", str(forged)]) == 4
    assert "slot.csv" in capsys.readouterr().err


def test_other_hours_after_the_week_was_released_ask_for_a_revision(
    released: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {
        path.relative_to(package(released)): path.read_bytes()
        for path in package(released).rglob("*")
        if path.is_file()
    }
    assert main(["run", "opal", "--week", WEEK]) == 0  # the same hours: the same bytes, free
    hours = released.include / "domains/hours.csv"
    hours.write_text(HOURS.replace("21:00", "22:00"))
    try:
        assert main(["run", "opal", "--week", WEEK]) != 0
        assert "revision" in capsys.readouterr().err
    finally:
        hours.write_text(HOURS)
    for path, content in before.items():
        assert (package(released) / path).read_bytes() == content
