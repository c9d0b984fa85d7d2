"""The least that the work of a step costs in DuckDB alone: what `week.py` holds steps to.

`python benchmarks/bare.py WORK PROGRAMME HOME`, in a process like those of the steps. `copy` types
the delivered rows and writes them once each, as Parquet; `count` makes the exact groups from the
delivered rows, without a bound, a domain or a zero: the six tables of trips, or the least scan and
group-by of telemetry; `canonical` makes them from the rows that ingest typed. None rejects, checks
or seals anything.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from turnstile.duckdb_engine import connect, text

_MEMORY_OF_CSV = "6GB"
_TYPED = {
    "opal": """
        card_id, mode, CAST(tap_on_date AS DATE) AS on_day,
        60 * hour(CAST(tap_on_time AS TIME)) + minute(CAST(tap_on_time AS TIME)) AS on_minute,
        tap_on_location, TRY_CAST(tap_off_date AS DATE) AS off_day,
        60 * hour(TRY_CAST(tap_off_time AS TIME)) + minute(TRY_CAST(tap_off_time AS TIME))
            AS off_minute, tap_off_location""",
    "itms": r"""
        license_plate, CAST(observationDateTime AS TIMESTAMPTZ) AS observed_at,
        TRY_CAST(speed AS DOUBLE) AS speed, {position}""",
}
_PAIR = r"""
        TRY_CAST(regexp_extract("location.coordinates", '^\[([^,]+),', 1) AS DOUBLE) AS longitude,
        TRY_CAST(regexp_extract("location.coordinates", ',([^,]+)\]$', 1) AS DOUBLE) AS latitude"""
_SPLIT = """
        TRY_CAST("location/coordinates/0" AS DOUBLE) AS longitude,
        TRY_CAST("location/coordinates/1" AS DOUBLE) AS latitude"""
_NESTED = "location.coordinates[1] AS longitude, location.coordinates[2] AS latitude"
_JSON = (
    "{license_plate: 'VARCHAR', observationDateTime: 'VARCHAR', speed: 'DOUBLE', "
    "location: 'STRUCT(coordinates DOUBLE[])'}"
)
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


_TRIPS_OF_TYPED = """
    SELECT *, on_day AS service_date, on_minute AS tap_on_minute, off_minute AS tap_off_minute
    FROM ({rows})"""
_ITMS_LEAST = """
    SELECT license_plate, left(observationDateTime, 10) AS day,
        substr(observationDateTime, 12, 2) AS hour, left("location.coordinates", 6) AS strip,
        count(*), sum(speed), max(speed)
    FROM {rows} GROUP BY ALL"""


def copy(programme: str, home: Path, work: Path) -> str:
    """Return the SQL of a typed copy without duplicates."""
    rows = " UNION ALL ".join(_typed(programme, path) for path in _delivered(programme, home))
    return (
        f"COPY (SELECT DISTINCT * FROM ({rows})) "  # noqa: S608 - names of ours
        f"TO {text(work / 'copy.parquet')} (FORMAT parquet, COMPRESSION zstd)"
    )


def parse(programme: str, home: Path, work: Path) -> str:  # noqa: ARG001 - as the others
    """Return the SQL that reads every field of the delivered files, and keeps none."""
    return "; ".join(
        f"SELECT bit_xor(hash(t)) FROM {_read(path)} AS t"  # noqa: S608 - names of ours
        for path in _delivered(programme, home)
    )


def _delivered(programme: str, home: Path) -> list[Path]:
    """Return the files of the landing zone."""
    return sorted((home / "landing" / programme).glob("*/*"))


def _read(path: Path) -> str:
    """Return the SQL relation of a delivered file."""
    if path.suffix == ".parquet":
        return f"read_parquet({text(path)})"
    if path.suffix == ".json":
        return f"read_json({text(path)}, columns={_JSON})"
    return f"read_csv({text(path)}, header=true, all_varchar=true)"


def _typed(programme: str, path: Path) -> str:
    """Return the SQL of typed rows, whichever way a file gives its positions."""
    position = _NESTED
    if path.suffix == ".parquet":
        position = _PAIR if "location.coordinates" in pq.read_schema(path).names else _SPLIT
    elif path.suffix == ".csv":
        with path.open() as lines:
            position = _PAIR if "location.coordinates" in next(lines) else _SPLIT
    return f"SELECT {_TYPED[programme].format(position=position)} FROM {_read(path)}"  # noqa: S608 - names of ours


def count(programme: str, home: Path, work: Path) -> str:
    """Return the SQL of the exact groups, from the delivered rows."""
    if programme == "itms":
        files = ", ".join(text(path) for path in _delivered(programme, home))
        return _written(_ITMS_LEAST.format(rows=f"read_parquet([{files}])"), work)
    rows = " UNION ALL ".join(_typed(programme, path) for path in _delivered(programme, home))
    return _grouped(programme, f"({_TRIPS_OF_TYPED.format(rows=rows)})", work)


def canonical(programme: str, home: Path, work: Path) -> str:
    """Return the SQL of the exact groups, from the rows that `ingest` made."""
    (rows,) = (home / "private" / programme).glob("**/rows")
    relation = f"read_parquet({text(rows / '*/*.parquet')}, hive_partitioning=false)"
    return _grouped(programme, relation, work)


def _grouped(programme: str, rows: str, work: Path) -> str:
    """Return the SQL that makes and writes the groups of a relation of typed rows."""
    places = Path(__file__).parents[1] / "include/domains/opal_locations.csv"
    groups = _OPAL_TABLES if programme == "opal" else _ITMS_GROUPS
    return _written(groups.format(rows=rows, places=f"read_csv({text(places)})"), work)


def _written(select: str, work: Path) -> str:
    """Return the SQL that writes the result of a query."""
    return f"COPY ({select}) TO {text(work / 'groups.parquet')} (FORMAT parquet)"


def main() -> None:
    """Run one piece of work."""
    work, programme, home = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    with tempfile.TemporaryDirectory(dir=home) as folder:
        made = {"copy": copy, "parse": parse, "count": count, "canonical": canonical}[work]
        statement = made(programme, home, Path(folder))
        is_csv = any(path.suffix == ".csv" for path in _delivered(programme, home))
        memory = _MEMORY_OF_CSV if is_csv else None  # its buffers and the groups of DISTINCT
        connect(Path(folder), memory=memory).execute(statement)


if __name__ == "__main__":
    main()
