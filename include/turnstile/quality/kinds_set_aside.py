"""Of what kind the values are that a rule set aside: a word of a closed list, never a value.

Only of a rule that stops a week, and only of what enough cards or vehicles share (PRIVACY 9.2).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.duckdb_engine import connect, one_file
from turnstile.programme.spec import Programme
from turnstile.sources.feeds.layout import INSTANTS, names_in_source
from turnstile.sources.feeds.registry import layout_of
from turnstile.sources.ingest.snapshot import Snapshot

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

CARDS_AT_LEAST = 20
"""Cards or vehicles: what fewer have might be one person's."""
_DATE = "[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}"
KINDS = {
    "": "nothing",
    "[-+]?[0-9]+": "whole numbers",
    "[-+]?[0-9]*[.,][0-9]+([eE][-+]?[0-9]+)?": "numbers with decimals",
    _DATE: "dates",
    f"{_DATE}[T ].*": "dates with a time",
    "[0-9]{1,2}(:[0-9]{2}){1,2}.*": "times",
    ".*": "texts",
}
"""What a text is called; the first pattern that it has."""
_POSITION = ("latitude", "longitude")
# What a word in a rule's name means; other rules name the field that they are about.
_FIELDS = {
    "timestamp": (*INSTANTS, "tap_date", "tap_time", "tap_on_date", "tap_on_time", "service_date"),
    "of_another_day": ("service_date", *INSTANTS),
    "location": ("place", "tap_on_location", *_POSITION),
    "coordinates": _POSITION,
    "status": ("occupancy",),
}


def where_most_are(programme: Programme, snapshot: Snapshot, rule: str, memory: str | None) -> str:
    """Return the file, columns and kinds of most of what a rule set aside; empty of too few.

    Args:
        programme: names the columns.
        snapshot: what was set aside.
        rule: as ingest names it.
        memory: the most that the engine takes.
    """
    kept = snapshot.folder / "quarantine" / f"{rule}.parquet"
    if not kept.exists():
        return ""
    named = {field for word, fields in _FIELDS.items() if word in rule for field in fields}
    # of tap-offs without a tap-on: those rules are not about a tap's own id
    asked = {"file": "file"} | {
        f"column {column}": _kind_sql(_text_of(field))
        for field, column in names_in_source(layout_of(programme.source.feed), programme).items()
        if field in named or field.removesuffix("_id") in {*rule.split("_")} - {"tap"}
    }
    with tempfile.TemporaryDirectory(prefix=".measure-", dir=snapshot.folder.parent) as scratch:
        connection = connect(Path(scratch), memory=memory)
        unit = f"coalesce({_text_of(programme.source.id_field)}, fields)"
        aside = f"(SELECT *, {unit} AS unit FROM read_parquet({one_file(kept)}))"
        told = {of: most for of, sql in asked.items() if (most := _of_most(connection, aside, sql))}
        connection.close()
    # what most leave empty is told only where nothing else is: it may be no column of the files
    filled = {of: most for of, most in told.items() if most != KINDS[""]}
    told = filled if filled.keys() - {"file"} else told
    words = ", ".join(f"{of} ({most})" for of, most in told.items())
    return f"; most are of {words}" if words else ""


def _of_most(connection: DuckDBPyConnection, records: str, value: str) -> str | None:
    """Return what more than half of the records have, if enough cards or vehicles share it."""
    row = connection.execute(
        f"SELECT {value}, count(DISTINCT unit), count(*) > sum(count(*)) OVER () / 2 "
        f"FROM {records} GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
    ).fetchone()
    return str(row[0]) if row and row[1] >= CARDS_AT_LEAST and row[2] else None


def _text_of(field: str) -> str:
    """Return SQL of a field of a record; NULL of what is no record."""
    return f"TRY(json_extract_string(fields, '$.{field}'))"


def _kind_sql(value: str) -> str:
    """Return SQL of the kind of a text."""
    text_sql = f"coalesce({value}, '')"
    branches = (
        f"WHEN regexp_full_match({text_sql}, '{p}') THEN '{kind}'" for p, kind in KINDS.items()
    )
    return f"CASE {' '.join(branches)} END"
