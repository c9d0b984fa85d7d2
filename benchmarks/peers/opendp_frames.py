"""OpenDP's frames (Context over Polars)."""

import sys

import opendp.prelude as dp
import polars as pl

trips, cells, out, at_most, epsilon = sys.argv[1:]
dp.enable_features("contrib")
context = dp.Context.compositor(
    data=pl.scan_parquet(trips),
    privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("card_id")),
    privacy_loss=dp.loss_of(epsilon=float(epsilon), delta=1e-9),
    split_evenly_over=1,
)
query = (
    context.query()
    .truncate_per_group(int(at_most))
    .group_by("slot", "place")
    .agg(dp.len(signed=True))
    .with_keys(pl.scan_parquet(cells))
)
query.release().collect().write_parquet(out)
