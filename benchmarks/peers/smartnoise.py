"""smartnoise-sql over a pandas frame."""

import sys

import pandas as pd
from snsql import Privacy, from_df

trips, cells, out, at_most, epsilon = sys.argv[1:]
rows = pd.read_parquet(trips)
metadata = {
    "": {
        "made": {
            "trips": {
                "max_ids": int(at_most),
                "rows": len(rows),
                "censor_dims": False,
                "card_id": {"type": "int", "private_id": True},
                "slot": {"type": "int"},
                "place": {"type": "int"},
            }
        }
    }
}
reader = from_df(rows, privacy=Privacy(epsilon=float(epsilon), delta=1e-9), metadata=metadata)
query = "SELECT slot, place, COUNT(*) AS n FROM made.trips GROUP BY slot, place"
header, *counts = reader.execute(query)
public = pd.read_parquet(cells)
found = pd.DataFrame(counts, columns=header)
public.merge(found, on=["slot", "place"], how="left").to_parquet(out)
