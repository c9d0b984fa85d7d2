"""PipelineDP in this process."""

import sys

import pandas as pd
import pipeline_dp

trips, cells, out, at_most, epsilon = sys.argv[1:]
rows = pd.read_parquet(trips)
public = list(pd.read_parquet(cells).itertuples(index=False, name=None))
budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=float(epsilon), total_delta=1e-9)
engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
found = engine.aggregate(
    list(rows.itertuples(index=False, name=None)),
    pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        metrics=[pipeline_dp.Metrics.COUNT],
        max_partitions_contributed=int(at_most),
        max_contributions_per_partition=1,
    ),
    pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: (row[1], row[2]),
        value_extractor=lambda _: 0,
    ),
    public_partitions=public,
)
budget.compute_budgets()
counts = [(slot, place, metrics.count) for (slot, place), metrics in found]
pd.DataFrame(counts, columns=["slot", "place", "count"]).to_parquet(out)
