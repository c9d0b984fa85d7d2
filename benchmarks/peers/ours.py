"""Turnstile: bounds, exact table and one dense draw, by the product's own code."""

import sys
import tempfile
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from turnstile.counting.bounding import Bounding, install_key, keep_at_most
from turnstile.counting.engine import columns_of, engine
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import Block, ProtectionUnit

trips, cells, out, at_most, epsilon = sys.argv[1:]
bounding = Bounding("card_id", ("slot", "place"), int(at_most))
with tempfile.TemporaryDirectory() as work, engine(Path(work)) as connection:
    install_key(connection, b"a key of the benchmark")
    connection.execute(
        "CREATE TEMP TABLE trip AS "
        f"SELECT card_id::VARCHAR AS card_id, slot, place FROM read_parquet('{trips}')"
    )
    keep_at_most(connection, "trip", "kept", bounding=bounding, scope="2016-07-25")
    counted = columns_of(
        connection,
        "SELECT slot, place, coalesce(trips, 0) AS trips "
        f"FROM read_parquet('{cells}') LEFT JOIN "
        "(SELECT slot, place, count(*) AS trips FROM kept GROUP BY ALL) USING (slot, place)",
    )
event = DrawEvent(
    table="trips",
    statistic="count",
    noise=NoiseFamily.DISCRETE_LAPLACE,
    scale=Fraction(int(at_most)) / Fraction(epsilon),
    blocks=(Block(date(2016, 7, 25), "train"),),
    sensitivities=((ProtectionUnit.CARD_DAY, Sensitivity(*(int(at_most),) * 4)),),
)
noisy = draw(event, counted["trips"].astype(np.int64))
pq.write_table(pa.table({"slot": counted["slot"], "place": counted["place"], "count": noisy}), out)
