"""The least that the work of a step costs in DuckDB alone: what `week.py` holds steps to.

`python benchmarks/bare.py WORK PROGRAMME HOME`, in a process like those of the steps. `copy` types
the delivered rows and writes them once each, as Parquet; `count` makes the exact groups from the
canonical rows, without a bound, a domain or a zero. Neither rejects, checks or seals anything.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from turnstile.duckdb_engine import connect, text

_TYPED = {
    "opal": """
        card_id, mode, CAST(tap_on_date AS DATE) AS on_day,
        60 * hour(CAST(tap_on_time AS TIME)) + minute(CAST(tap_on_time AS TIME)) AS on_minute,
        tap_on_location, TRY_CAST(tap_off_date AS DATE) AS off_day,
        60 * hour(TRY_CAST(tap_off_time AS TIME)) + minute(TRY_CAST(tap_off_time AS TIME))
            AS off_minute, tap_off_location""",
    "itms": r"""
        license_plate, CAST(observationDateTime AS TIMESTAMPTZ) AS observed_at,
        TRY_CAST(speed AS DOUBLE) AS speed,
        TRY_CAST(regexp_extract("location.coordinates", '^\[([^,]+),', 1) AS DOUBLE) AS longitude,
        TRY_CAST(regexp_extract("location.coordinates", ',([^,]+)\]$', 1) AS DOUBLE) AS latitude""",
}
_OPAL_TABLES = """
    SELECT t.mode, service_date, tap_on_minute // 15 AS on_slot, on_place.area AS on_area,
        tap_off_minute // 15 AS off_slot, off_place.area AS off_area, count(*)
    FROM {rows} AS t
    LEFT JOIN {places} AS on_place
        ON t.mode = on_place.mode AND tap_on_location = on_place.location
    LEFT JOIN {places} AS off_place
        ON t.mode = off_place.mode AND tap_off_location = off_place.location
    GROUP BY GROUPING SETS ((t.mode, service_date, on_slot), (t.mode, service_date, on_area),
        (t.mode, service_date, off_slot), (t.mode, service_date, off_area),
        (t.mode, service_date, on_slot, on_area), (t.mode, service_date, off_slot, off_area))"""
_ITMS_GROUPS = """
    SELECT vehicle_id, service_date, minute_of_day // 60 AS slot,
        floor(latitude * 40) AS row, floor(longitude * 40) AS col,
        count(*), sum(speed_milli_kmh), max(speed_milli_kmh)
    FROM {rows} GROUP BY ALL"""


def copy(programme: str, home: Path, work: Path) -> str:
    """Return the SQL of a typed copy without duplicates."""
    folder = home / "landing" / programme
    found = sorted(folder.glob("*/*"))
    reader = "read_parquet" if found[0].suffix == ".parquet" else "read_csv"
    options = "" if reader == "read_parquet" else ", header=true, all_varchar=true"
    files = ", ".join(text(path) for path in found)
    return (
        f"COPY (SELECT DISTINCT {_TYPED[programme]} FROM {reader}([{files}]{options})) "  # noqa: S608 - names of ours
        f"TO {text(work / 'copy.parquet')} (FORMAT parquet, COMPRESSION zstd)"
    )


def count(programme: str, home: Path, work: Path) -> str:
    """Return the SQL of the exact groups, from the rows that `ingest` made."""
    (rows,) = (home / "private" / programme).glob("**/rows")
    relation = f"read_parquet({text(rows / '*/*.parquet')}, hive_partitioning=false)"
    places = Path(__file__).parents[1] / "include/domains/opal_locations.csv"
    groups = _OPAL_TABLES if programme == "opal" else _ITMS_GROUPS
    select = groups.format(rows=relation, places=f"read_csv({text(places)})")
    return f"COPY ({select}) TO {text(work / 'groups.parquet')} (FORMAT parquet)"


def main() -> None:
    """Run one piece of work."""
    work, programme, home = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    with tempfile.TemporaryDirectory(dir=home) as folder:
        statement = {"copy": copy, "count": count}[work](programme, home, Path(folder))
        connect(Path(folder)).execute(statement)


if __name__ == "__main__":
    main()
