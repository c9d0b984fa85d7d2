"""Trips counted on Spark, for those whose weeks outgrow one machine: an optional extra.

The SQL is that of `trip_queries` and `bounding`, turned into Spark's by sqlglot; the order of a
unit's records is the same keyed hash, so the exact tables are those of the embedded engine, number
for number. Where Spark runs is the deployment's own matter (`spark.master` in
`spark-defaults.conf`, or `PYSPARK_SUBMIT_ARGS`); its workers must reach the private zone under the
same path. Rows stay on the workers: groups of public cells alone come back, which are as many for
any number of rows. A worker that dies is replaced by Spark: nothing here depends on who counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from numpy.typing import NDArray

from turnstile.counting.bounding import Bounding, padded_keys
from turnstile.counting.engine import day_files
from turnstile.counting.exact import ExactTable
from turnstile.counting.exact_tables import Progress, by_table, check_countable, each_scope
from turnstile.counting.trip_queries import lookups, trips_sql
from turnstile.counting.trips import kept_by_selection, tables_of_days
from turnstile.errors import InputError, IntegrityError, ProgrammeError
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_NOBODY_LOOKS_ON = (
    ("spark.ui.enabled", "false"),  # its page shows how many rows each step has, to everybody
    ("spark.eventLog.enabled", "false"),
    ("spark.io.encryption.enabled", "true"),  # what is spilled holds cards
)


def count(  # noqa: PLR0913 - as every engine: `counting.exact_tables.CountWeek`
    programme: Programme,
    domain: PublicDomain,
    days: Sequence[date],
    rows_folder: Path,
    *,
    secret: bytes,
    work: Path,  # noqa: ARG001 - Spark spills where its own settings say
    progress: Progress,
    memory: str | None = None,  # noqa: ARG001 - as `work`
) -> tuple[ExactTable, ...]:
    """Count a week of trips on Spark; `counting.exact_tables.count` says what each argument is.

    Raises:
        InputError: the extra is not installed.
        ProgrammeError: a bound that cannot be enforced here, or rows that are no trips.
        IntegrityError: Spark could not read or count the rows; its message is not shown.
    """
    check_countable(programme)
    if programme.source.feed.shape is not RowShape.TRIPS:
        rule = "Spark counts trips; readings of buses are counted by the engine duckdb"
        raise ProgrammeError(where=f"{programme.name}.yaml", field="source.feed", rule=rule)
    with _session() as spark:
        inner, outer = padded_keys(secret)
        key = pa.table({"inner_pad": [inner], "outer_pad": [outer]})
        for name, table in (lookups(domain, programme.time) | {"bounding_key": key}).items():
            spark.createDataFrame(table).createOrReplaceTempView(name)
        of_days = partial(_count_days, spark, programme, domain, rows_folder)
        return by_table(each_scope(programme, days, of_days, progress))


@contextmanager
def _session() -> Iterator[SparkSession]:
    """Open the deployment's Spark, and close what this count opened."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        rule = "Spark is not installed here; pip install -e '.[spark]', or write duckdb"
        raise InputError(
            where="environment", field="TURNSTILE_COUNTING_ENGINE", rule=rule
        ) from None
    from py4j.protocol import Py4JError

    try:
        builder = SparkSession.builder.appName("turnstile")
        for setting, value in _NOBODY_LOOKS_ON:
            builder = builder.config(setting, value)
        session = builder.getOrCreate()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        try:
            yield session
        finally:
            session.stop()
    except (PySparkException, Py4JError) as error:
        raise IntegrityError(
            f"counting stopped with {type(error).__name__}; Spark could not be reached, the "
            "canonical rows are not as ingest writes them, or its workers cannot read the private "
            "zone: look into Spark's own logs, or count with the engine duckdb"
        ) from None


def _count_days(
    spark: SparkSession,
    programme: Programme,
    domain: PublicDomain,
    rows_folder: Path,
    days: Sequence[date],
) -> list[tuple[ExactTable, ...]]:
    """Return the exact tables of every day of one scope."""
    run = partial(_columns, spark)
    trips = _trips(spark, programme, domain, [day_files(rows_folder, day) for day in days])
    if trips is None:
        return tables_of_days(programme, domain, days, {}, run)
    trips.persist().createOrReplaceTempView("trip")

    def keep(kept: str, bounding: Bounding, scope: str) -> None:
        spark.sql(_spark(_kept_sql("trip", bounding, scope))).createOrReplaceTempView(kept)

    counted = tables_of_days(programme, domain, days, kept_by_selection(programme, days, keep), run)
    trips.unpersist()
    return counted


def _trips(
    spark: SparkSession, programme: Programme, domain: PublicDomain, files: Sequence[list[str]]
) -> DataFrame | None:
    """Return the trips of some days, None if there are no files."""
    trips = None
    for number, of_day in enumerate(files):
        if not of_day:
            continue
        rows = spark.read.option("mergeSchema", "true").parquet(*of_day)
        rows.createOrReplaceTempView(f"rows_of_day_{number}")
        day_trips = spark.sql(_spark(trips_sql(programme, domain, number, f"rows_of_day_{number}")))
        trips = day_trips if trips is None else trips.unionByName(day_trips)
    return trips


def _kept_sql(records: str, bounding: Bounding, scope: str) -> str:
    """Return the SQL of the records that count: those of `bounding.keep_at_most`."""
    unit = bounding.unit
    over = " UNION ".join(
        f"SELECT {unit} FROM {records} GROUP BY {', '.join((unit, *columns))} "  # noqa: S608 - names of ours
        f"HAVING count(*) > {at_most}"
        for columns, at_most in bounding.groups
    )
    ranks = "".join(
        f", row_number() OVER (PARTITION BY {', '.join((unit, *limit.columns))} "
        f"ORDER BY hash_order) AS rank_{number}"
        for number, limit in enumerate(bounding.limits)
    )
    is_lowest = " AND ".join(
        f"rank_{number} <= {limit.at_most}" for number, limit in enumerate(bounding.limits)
    )
    columns = ", ".join(dict.fromkeys(("day_index", unit, *bounding.cell)))
    return f"""
        WITH over AS ({over}),
        hashed AS (
            SELECT {columns}, substr({_hmac_sql(bounding.cell, unit, scope)}, 1, 16) AS hmac
            FROM {records} CROSS JOIN bounding_key
            WHERE EXISTS (SELECT 1 FROM over WHERE over.{unit} = {records}.{unit})
        ),
        ordered AS (
            SELECT *, row_number() OVER (PARTITION BY {unit} ORDER BY hmac) AS hash_order
            FROM hashed
        ),
        in_cells AS (SELECT *{ranks} FROM ordered),
        ranked AS (
            SELECT *, row_number() OVER (PARTITION BY {unit} ORDER BY hash_order) AS place
            FROM in_cells WHERE {is_lowest or "true"}
        )
        SELECT {columns} FROM {records}
        WHERE NOT EXISTS (SELECT 1 FROM over WHERE over.{unit} = {records}.{unit})
        UNION ALL
        SELECT {columns} FROM ranked WHERE place <= {bounding.at_most}
    """  # noqa: S608 - names of ours


def _columns(spark: SparkSession, query: str) -> dict[str, NDArray[Any]]:
    """Run a query and return its columns; its result holds no NULL."""
    table = spark.sql(_spark(query)).toArrow()
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _spark(query: str) -> str:
    """Return SQL of the embedded engine as Spark's."""
    import sqlglot

    return str(sqlglot.transpile(query, read="duckdb", write="spark")[0])


def _hmac_sql(cell: tuple[str, ...], unit: str, scope: str) -> str:
    """Return the SQL of HMAC-SHA256 of a record, in hex, beside a row of `bounding_key`."""
    parts = ", ".join((f"'{scope}'", *cell, unit))
    inner = f"sha256(inner_pad || encode(concat_ws('|', {parts})))"
    return f"sha256(outer_pad || unhex({inner}))"
