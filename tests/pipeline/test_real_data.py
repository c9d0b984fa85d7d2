"""The real Surat files and the real Austin days go through `turnstile run`, faults and all.

That the counts agree with an independent computation is tested in `tests/sources` and
`tests/counting`; here the whole way is walked, and what was quarantined is known afterwards.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_deployment import Deployment

from turnstile.sources.ingest.snapshot import counts_of, load_snapshot

Cli = Callable[..., int]
PROGRAMMES = Path(__file__).parent / "programmes"
AUSTIN_DAYS = ("2016-11-24", "2016-11-25", "2016-11-26", "2016-11-27")


@pytest.fixture
def real(deployment: Deployment) -> Deployment:
    for name in ("surat", "austin"):
        shutil.copy(PROGRAMMES / f"{name}.yaml", deployment.include / "programmes")
    shutil.copy(PROGRAMMES / "austin_area.geojson", deployment.include / "domains")
    return deployment


def counts(deployment: Deployment, programme: str, week: str) -> dict[str, int]:
    private = deployment.home / "private"
    digest = (private / programme / week / "r0" / "snapshot").read_text()
    snapshot = load_snapshot(private, programme, week, digest)
    return dict(counts_of(snapshot))


def deliver(deployment: Deployment, programme: str, week: str, *files: Path) -> None:
    folder = deployment.landing(programme, week)
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copyfile(file, folder / file.name)


def gaps(deployment: Deployment, programme: str, week: str) -> list[str]:
    card = deployment.public / programme / week / "r0" / "release_card.json"
    days: list[str] = json.loads(card.read_text())["gaps"]
    return days


@pytest.mark.long  # a feature week releases one of these files
def test_the_surat_files_of_two_weeks_are_released(
    real: Deployment, turnstile: Cli, shared_data: Path
) -> None:
    folder = shared_data / "surat_itms"
    first = [folder / name for name in ("suratITMS.csv", "suratITMS_30minsTest.csv")]
    deliver(real, "surat", "2021-W52", *first, folder / "suratITMS_2022.json")
    deliver(real, "surat", "2022-W01", folder / "suratTestLarge.zip")
    for week in ("2021-W52", "2022-W01"):
        assert turnstile("run", "surat", "--week", week) == 0
        assert gaps(real, "surat", week) == []  # no file is named by a day, and rows decide none
    assert counts(real, "surat", "2022-W01")["duplicates"] > 0


@pytest.mark.long
def test_the_four_austin_days_are_released_and_their_outliers_quarantined(
    real: Deployment, turnstile: Cli, shared_data: Path
) -> None:
    folder = shared_data / "capmetro_bus_gps"
    deliver(real, "austin", "2016-W47", *(folder / f"{day}.csv" for day in AUSTIN_DAYS))
    assert turnstile("run", "austin", "--week", "2016-W47") == 0
    assert gaps(real, "austin", "2016-W47") == ["2016-11-21", "2016-11-22", "2016-11-23"]
    assert counts(real, "austin", "2016-W47")["speed_out_of_range"] > 0
    # So few buses pass in four days that hardly an hour of a hexagon has a mean (docs/ITMS.md).
    package = real.public / "austin/2016-W47/r0"
    means = pq.read_table(package / "data/speed.parquet").to_pandas()
    assert means["unbiased"].isna().mean() > 0.99
    # Nor do cells have an estimate there; every count has an interval, and the city a mean.
    cells, city, buses = (
        pq.read_table(package / f"data/speed{end}.parquet").to_pandas()
        for end in ("", "_city", "_buses")
    )
    assert set(cells["usable"]) == {"withheld"}
    assert 15 < city["value"].item() < 35
    assert city["low_90"].item() < city["value"].item() < city["high_90"].item()
    assert buses["low_90"].notna().all()


@pytest.mark.long
def test_the_austin_day_of_a_daylight_saving_change_is_released(
    real: Deployment, turnstile: Cli, shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deliver(real, "austin", "2015-W10", shared_data / "capmetro_bus_gps/2015-03-08.csv")
    # By their own positions the files of 2015 are miles an hour, and those of 2016 m/s.
    assert turnstile("run", "austin", "--week", "2015-W10") == 2
    assert "source's unit is probably not m/s" in capsys.readouterr().err
    assert real.nothing_happened()
    real.edit("austin", "speed_unit: m/s", "speed_unit: mph")
    assert turnstile("run", "austin", "--week", "2015-W10") == 0
    assert len(gaps(real, "austin", "2015-W10")) == 6


def test_a_week_whose_only_day_has_no_rows_is_not_released(
    real: Deployment, turnstile: Cli, shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deliver(real, "austin", "2016-W06", shared_data / "capmetro_bus_gps/2016-02-14.csv")
    assert turnstile("run", "austin", "--week", "2016-W06") == 2
    assert "rows_present" in capsys.readouterr().err
    assert real.nothing_happened()


def test_austin_read_as_km_an_hour_is_stopped_before_any_charge(
    real: Deployment, turnstile: Cli, shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real.edit("austin", "speed_unit: m/s", "speed_unit: km/h")
    folder = shared_data / "capmetro_bus_gps"
    deliver(real, "austin", "2016-W47", *(folder / f"{day}.csv" for day in AUSTIN_DAYS))
    assert turnstile("run", "austin", "--week", "2016-W47") == 2
    assert "speed_unit" in capsys.readouterr().err
    assert real.nothing_happened()
