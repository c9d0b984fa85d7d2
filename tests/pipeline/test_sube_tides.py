"""The real SUBE day as TIDES 1.0, in and out: by line, and as station_activities."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import frictionless
import pandas as pd
import pytest
from small_deployment import Deployment
from sube_day import DAY, WEEK, grid, place_of

Cli = Callable[..., int]
MODES = {"COL": "bus", "SUB": "subway", "TRE": "train"}
ACTIONS = {"CHECK IN": "Enter", "CHECK OUT": "Exit", "": "Enter"}
CANARY = "CANARY4711LINE"
COLUMNS = (
    *("transaction_id", "service_date", "event_timestamp", "location_ping_id", "amount"),
    *("currency_type", "fare_action", "trip_id_performed", "trip_id_scheduled", "pattern_id"),
    *("trip_stop_sequence", "scheduled_stop_sequence", "vehicle_id", "device_id", "fare_id"),
    *("stop_id", "num_riders", "fare_media_id", "rider_category", "fare_product"),
    *("fare_period", "fare_capped", "token_id", "balance"),
)


def as_tides(source: Path, target: Path) -> None:
    """Write the day as fare transactions: a tap with a card, a place and an action of TIDES."""
    with source.open(newline="") as given, target.open("w", newline="") as made:
        writer = csv.DictWriter(made, (*COLUMNS, "mode"))
        writer.writeheader()
        for row in csv.DictReader(given):
            action = ACTIONS.get(row["tipo_trx_tren"])
            if action and row["id_tarjeta"] and row["lat"] and row["lon"]:
                writer.writerow(
                    {
                        "transaction_id": row["id"],
                        "service_date": DAY,
                        "event_timestamp": f"{DAY}T{int(row['hora']):02}:00:00-03:00",
                        "fare_action": action,
                        "amount": "0",
                        "fare_capped": "false",
                        "pattern_id": row["id_linea"],
                        "stop_id": place_of(row["lat"], row["lon"]),
                        "token_id": row["id_tarjeta"],
                        "mode": MODES[row["modo"]],
                    }
                )


def lines() -> str:
    """Groups of line numbers: public, whether any of them ever ran or not."""
    numbered = [f"{number},{number // 100 * 100} to {number // 100 * 100 + 99}"
                for number in range(1, 600)]  # fmt: skip
    return "\n".join(["value,label", *numbered]) + "\n"


@pytest.fixture
def taps(deployment: Deployment, shared_data: Path) -> Path:
    """The landed file, its first record of a line that no list has."""
    shutil.copy(Path(__file__).parent / "programmes/sube_tides.yaml",
                deployment.include / "programmes")  # fmt: skip
    (deployment.include / "domains/sube_grid.csv").write_text(grid())
    (deployment.include / "domains/sube_lines.csv").write_text(lines())
    folder = deployment.landing("sube_tides", WEEK)
    folder.mkdir(parents=True)
    file = folder / f"{DAY}.csv"
    as_tides(shared_data / f"sube_taps/{DAY}_trx.csv", file)
    rows = pd.read_csv(file, dtype=str)
    rows.loc[0, "pattern_id"] = CANARY
    rows.to_csv(file, index=False)
    return file


def is_valid(file: Path, schema: Path) -> bool:
    with frictionless.system.use_context(trusted=True):
        own = frictionless.Schema(str(schema))
        return bool(frictionless.Resource(path=str(file), schema=own).validate().valid)


def test_the_day_is_released_by_line_and_as_station_activities(
    taps: Path, deployment: Deployment, turnstile: Cli, shared_data: Path, tmp_path: Path
) -> None:
    schemas = shared_data / "tides_1.0"
    bare = pd.read_csv(taps, dtype=str)[list(COLUMNS)]
    bare.to_csv(tmp_path / "bare.csv", index=False)
    assert is_valid(tmp_path / "bare.csv", schemas / "fare_transactions.schema.json")
    assert turnstile("run", "sube_tides", "--week", WEEK) == 0
    package = deployment.public / "sube_tides" / WEEK / "r0"
    assert is_valid(
        package / "tides/station_activities.csv", schemas / "station_activities.schema.json"
    )
    table = pd.read_csv(package / "tables/lines.csv")
    day = table[table.service_date == DAY]
    number = pd.to_numeric(bare[bare.fare_action == "Enter"].pattern_id, errors="coerce")
    busiest = int((number // 100 * 100).value_counts().index[0])
    of_lines = day[day.route != "UNKNOWN"].groupby("route")["reconciled"].sum()
    assert of_lines.idxmax() == f"{busiest} to {busiest + 99}"
    assert turnstile("package", "verify", package) == 0
    public = b"".join(path.read_bytes() for path in package.rglob("*") if path.is_file())
    assert CANARY.encode() not in public  # a value that no list has, and in no column of text
    private = (deployment.home / "private").rglob("*.parquet")
    assert any(CANARY.encode() in path.read_bytes() for path in private)
