"""Whether ids tell units apart: a word for no card, ids cut short, ids that are new each time.

What somebody contributes is bounded by an id. All figures are exact and stay in the private zone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from turnstile.programme.spec import Programme
from turnstile.sources.feeds.layout import NO_CARD

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TRIPS_OF_A_DAY = 60
_ROWS_LOOKED_AT = 500_000  # of those cards or vehicles alone that a week needs
_RECORDS_AT_LEAST = 500
_NEARLY_ALL = 0.95
_CUT = r"[*]|[Xx]{4}|^[0-9][.,][0-9]+[eE][+][0-9]+$"  # ****1234, XXXX1234, 3.08E+17


def trips_of_no_card(connection: DuckDBPyConnection, days: Iterable[object]) -> float:
    """Return the share of the rows of cards that have more of them on a day than anybody makes.

    A word for no card (`0`, `NULL`) is such a card, and bounds would leave few of its trips.

    Args:
        connection: engine with `rows_read`.
        days: that have rows.
    """
    rows = of_nobody = 0
    for day in days:  # sorting numbers costs a fifth of the engine's groups
        select = "SELECT hash(card_id) AS card FROM rows_read WHERE service_date = ?"
        cards = connection.execute(select, [day]).fetchnumpy()["card"]
        _, trips = np.unique(cards, return_counts=True)
        rows += len(cards)
        of_nobody += int(trips[trips > _TRIPS_OF_A_DAY].sum())
    return of_nobody / max(rows, 1)


def ids_that_bound_nothing(
    connection: DuckDBPyConnection, programme: Programme, rows: int, days: int
) -> float:
    """Return the share of the rows whose ids are of several units, or of a record or day alone.

    An id that is masked, or rounded by a spreadsheet, is of several. Nearly all rows with an id of
    their own, or of one day where a bound is on more, say that ids are new each time: all of them.

    Args:
        connection: engine with `rows_read`.
        programme: says which ids these are, and what is bounded.
        rows: how many there are.
        days: that have rows.
    """
    spans = [bound.unit.days_max for bound in programme.units if not bound.unit.is_record]
    if programme.source.feed.names_nobody or not spans:
        return 0.0
    unit = programme.source.id_field
    # a divisor without a type would make huge numbers of the hashes
    cut, alone, of_a_day, told = connection.execute(
        f"""SELECT coalesce(sum(n) FILTER (is_cut), 0)::BIGINT,
            coalesce(sum(n) FILTER (n = 1), 0)::BIGINT,
            coalesce(sum(n) FILTER (is_of_a_day), 0)::BIGINT, coalesce(sum(n), 0)::BIGINT
        FROM (
            SELECT count(*) AS n, min(service_date) = max(service_date) AS is_of_a_day,
                regexp_matches({unit}, $cut) AS is_cut
            FROM rows_read
            WHERE hash({unit}) % CAST($parts AS UBIGINT) = 0
                AND NOT starts_with({unit}, '{NO_CARD}')
            GROUP BY {unit}
        )""",
        {"cut": _CUT, "parts": rows // _ROWS_LOOKED_AT + 1},
    ).fetchone() or (0, 0, 0, 0)
    if told < _RECORDS_AT_LEAST:
        return 0.0
    is_longer = days > 1 and any(span is None or span > 1 for span in spans)
    of_short = of_a_day if is_longer else alone
    return 1.0 if of_short > _NEARLY_ALL * told else int(cut) / int(told)
