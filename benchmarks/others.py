"""The exact groups of `bare.py` as other engines make them: Polars, and pandas in two ways.

`python benchmarks/others.py ENGINE PROGRAMME HOME`, from the canonical rows, without a bound, a
domain or a zero. `rowwise` is how a notebook does it: a function of one row, applied to each.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

PLACES = Path(__file__).parents[1] / "include/domains/opal_locations.csv"
DAY = ["mode", "service_date"]
BYS = [["on_slot"], ["on_area"], ["off_slot"], ["off_area"]]
BYS += [["on_slot", "on_area"], ["off_slot", "off_area"]]
BUS_CELL = ["vehicle_id", "service_date", "slot", "row", "col"]
OPAL = ["mode", "service_date", "tap_on_minute", "tap_on_location", "tap_off_minute"]
OPAL += ["tap_off_location"]
ITMS = ["vehicle_id", "service_date", "minute_of_day", "latitude", "longitude", "speed_milli_kmh"]


def polars(programme: str, rows: str) -> None:
    """Lazy and streaming."""
    import polars as pl

    scan = pl.scan_parquet(rows, hive_partitioning=False)
    if programme == "itms":
        cells = scan.with_columns(
            slot=pl.col("minute_of_day") // 60,
            row=(pl.col("latitude") * 40).floor(),
            col=(pl.col("longitude") * 40).floor(),
        )
        speed = pl.col("speed_milli_kmh")
        figures = [pl.len(), speed.sum().alias("sum"), speed.max().alias("max")]
        cells.group_by(BUS_CELL).agg(*figures).collect(engine="streaming")
        return
    places = pl.scan_csv(PLACES, infer_schema=False)
    for tap in ("on", "off"):
        tap_places = places.rename({"location": f"tap_{tap}_location", "area": f"{tap}_area"})
        scan = scan.join(tap_places, on=["mode", f"tap_{tap}_location"], how="left")
    trips = scan.with_columns(
        on_slot=pl.col("tap_on_minute") // 15, off_slot=pl.col("tap_off_minute") // 15
    )
    tables = [trips.group_by([*DAY, *by]).agg(pl.len()) for by in BYS]
    pl.collect_all(tables, engine="streaming")


def pandas(programme: str, rows: str) -> None:
    """Whole columns at a time."""
    frame = _frame(programme, rows)
    if programme == "itms":
        import numpy as np

        frame["slot"] = frame["minute_of_day"] // 60
        frame["row"] = np.floor(frame["latitude"] * 40)
        frame["col"] = np.floor(frame["longitude"] * 40)
        frame.groupby(BUS_CELL)["speed_milli_kmh"].agg(["count", "sum", "max"])
        return
    frame["on_slot"] = frame["tap_on_minute"] // 15
    frame["off_slot"] = frame["tap_off_minute"] // 15
    for tap in ("on", "off"):
        tap_places = _places().rename(
            columns={"location": f"tap_{tap}_location", "area": f"{tap}_area"}
        )
        frame = frame.merge(tap_places, on=["mode", f"tap_{tap}_location"], how="left")
    for by in BYS:
        frame.groupby([*DAY, *by], observed=True).size()


def rowwise(programme: str, rows: str) -> None:
    """One row at a time."""
    frame = _frame(programme, rows)
    if programme == "itms":
        frame["slot"] = frame.apply(lambda row: row["minute_of_day"] // 60, axis=1)
        frame["row"] = frame.apply(lambda row: row["latitude"] * 40 // 1, axis=1)
        frame["col"] = frame.apply(lambda row: row["longitude"] * 40 // 1, axis=1)
        frame.groupby(BUS_CELL)["speed_milli_kmh"].agg(["count", "sum", "max"])
        return
    area = {(place.mode, place.location): place.area for place in _places().itertuples()}

    def of(tap: str, row: Any) -> str | None:  # noqa: ANN401 - a row of pandas
        return area.get((row["mode"], row[f"tap_{tap}_location"]))

    for tap in ("on", "off"):
        minute = f"tap_{tap}_minute"
        frame[f"{tap}_slot"] = frame.apply(lambda row, minute=minute: row[minute] // 15, axis=1)
        frame[f"{tap}_area"] = frame.apply(lambda row, tap=tap: of(tap, row), axis=1)
    for by in BYS:
        frame.groupby([*DAY, *by]).size()


def _frame(programme: str, rows: str) -> pd.DataFrame:
    """Read the columns that are needed."""
    import pandas as pd

    files = sorted(Path(rows.partition("*")[0]).glob("*/*.parquet"))
    columns = OPAL if programme == "opal" else ITMS
    return pd.concat([pd.read_parquet(file, columns=columns, partitioning=None) for file in files])


def _places() -> pd.DataFrame:
    """Read the public places."""
    import pandas as pd

    return pd.read_csv(PLACES, dtype=str)


def main() -> None:
    """Run one engine."""
    engine, programme, home = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    (rows,) = (home / "private" / programme).glob("**/rows")
    {"polars": polars, "pandas": pandas, "rowwise": rowwise}[engine](
        programme, f"{rows}/*/*.parquet"
    )


if __name__ == "__main__":
    main()
