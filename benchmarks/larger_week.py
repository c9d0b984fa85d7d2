"""Make a generated week larger: its files again and again, each time of other cards or buses.

`python benchmarks/larger_week.py PROGRAMME HOME TIMES`, after `turnstile sample`, which has a week
in memory. A unit has as many records as before, a day as many times more units.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from turnstile.duckdb_engine import connect, text
from turnstile_samples.writing import SampleForm, copied

_UNIT = {"opal": "card_id", "itms": "license_plate"}
_PREFIX = 4  # letters of `3085...` and `GJ05...`, which all units of a sample share


def main() -> None:
    """Write the further files beside the sample's."""
    programme, home, times = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    unit = _UNIT[programme]
    with tempfile.TemporaryDirectory(dir=home) as folder:
        connection = connect(Path(folder), keeps_order=True)
        for file in sorted((home / "landing" / programme).glob("*/*.parquet")):
            for further in range(1, times):
                other = f"'{further:04d}' || substr({unit}, {_PREFIX + 1})"
                select = f"SELECT * REPLACE ({other} AS {unit}) FROM read_parquet({text(file)})"  # noqa: S608 - names of ours
                path = file.with_stem(f"{file.stem}-{further}")
                copied(connection, select, path, SampleForm.PARQUET)


if __name__ == "__main__":
    main()
