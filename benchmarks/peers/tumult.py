"""Tumult Analytics on Spark of this machine."""

import os
import sys

from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    KeySet,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

trips, cells, out, at_most, epsilon = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
session = Session.from_dataframe(
    PureDPBudget(float(epsilon)),
    "trips",
    spark.read.parquet(trips),
    protected_change=AddRowsWithID("card_id"),
)
keys = KeySet.from_dataframe(spark.read.parquet(cells))
query = QueryBuilder("trips").enforce(MaxRowsPerID(int(at_most))).groupby(keys).count()
session.evaluate(query, PureDPBudget(float(epsilon))).toPandas().to_parquet(out)
java = spark.sparkContext._gateway
spark.stop()
java.proc.stdin.close()
java.proc.wait()  # so that its CPU is counted
