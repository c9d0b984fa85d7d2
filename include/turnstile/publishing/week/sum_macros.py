"""`sums.sql`: DuckDB macros for sums of measured cells with their error."""

from __future__ import annotations

from turnstile.publishing.contents import Contents

_NORMAL_95 = 1.959964


def write(contents: Contents) -> bytes:
    """Return the macros, with the noise of this release written in."""
    branches = "".join(
        f"\n    WHEN '{one['table']}/{one['statistic']}' THEN {one['standard_deviation']}"
        for one in contents.card["draws"]
    )
    margin = f"{_NORMAL_95} * sd_of_measured(name) * sqrt(count(value))"
    return (
        "-- Sums of any measured cells with their 95 % interval; name is 'table/statistic'.\n"
        "-- Reconciled numbers share noise: for their sums use sums.py.\n"
        f"CREATE OR REPLACE MACRO sd_of_measured(name) AS CASE name{branches}\n"
        "    ELSE error('no such measured table') END;\n"
        f"CREATE OR REPLACE MACRO sum_low_95(name, value) AS sum(value) - {margin};\n"
        f"CREATE OR REPLACE MACRO sum_high_95(name, value) AS sum(value) + {margin};\n"
    ).encode()
