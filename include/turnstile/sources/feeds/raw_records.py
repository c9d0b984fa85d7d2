"""Made-up raw records of any feed, as its files hold them: what ingest reads, written.

For the canaries of a release and for tests; what a record looks like is said by its feed's module.
A record is written as a line of CSV or of JSON.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from turnstile.programme.spec import Programme
from turnstile.sources.feeds.layout import names_in_source
from turnstile.sources.feeds.made_records import MadeReading, MadeTrip, Record
from turnstile.sources.feeds.registry import layout_of

_NUMBERED = "tap_id"


def records_of(programme: Programme, rows: Sequence[MadeTrip | MadeReading]) -> list[Record]:
    """Return the records of trips or observations, numbered in their order where a feed does."""
    layout = layout_of(programme.source.feed)
    names = names_in_source(layout, programme)
    records = [record for row in rows for record in layout.made(row, programme, names)]
    if _NUMBERED not in dict(layout.names):
        return records
    return [{names[_NUMBERED]: f"{number}"} | record for number, record in enumerate(records)]


def csv_lines(records: list[Record]) -> tuple[str, list[str]]:
    """Return the header of all columns that occur, and a line for each record."""
    columns = list(dict.fromkeys(column for record in records for column in record))
    return _line(columns), [
        _line([record.get(column, "") for column in columns]) for record in records
    ]


def json_lines(records: list[Record]) -> list[str]:
    """Return a line of JSON for each record."""
    return [json.dumps(record) for record in records]


def _line(values: list[str] | list[object]) -> str:
    """One line of CSV, without its end; nested values are JSON."""
    texts = (json.dumps(value) if isinstance(value, dict | list) else value for value in values)
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(texts)
    return written.getvalue()
