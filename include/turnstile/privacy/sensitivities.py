"""How far one unit moves a table of counts, from the public bounds of a programme.

PRIVACY 4: bounding keeps of each bounded unit its k records lowest in a keyed hash that depends on
the record alone. The bounded unit itself then adds at most k records. A *finer* unit under that
bound (a trip of a card-day) adds at most its own records and may displace as many others, so its
change is a difference of two such additions: `difference_of_counts`.
"""

from __future__ import annotations

from turnstile.privacy.events import Sensitivity


def records_at_most(records_max: int) -> Sensitivity:
    """Return the sensitivity of a unit that adds at most so many records, in any cells.

    All of them may fall into one cell, so l2 is as large as l1.

    Examples:
        >>> records_at_most(3)
        Sensitivity(l0=3, l1=3, l2_squared=9, linf=3)
    """
    return packed(records_max, records_max)


def packed(records_max: int, per_cell_max: int) -> Sensitivity:
    """Return the sensitivity of a unit that adds so many records, at most so many to one cell.

    Squares add up to the most when as many cells as possible are full: moving a record from a cell
    to one that holds as many or more raises the sum. Six records, two to a cell, make 12, not 36.

    Examples:
        >>> packed(6, 2)
        Sensitivity(l0=6, l1=6, l2_squared=12, linf=2)
        >>> packed(5, 2).l2_squared, packed(4, 9).l2_squared
        (9, 16)
    """
    _check(records_max)
    _check(per_cell_max)
    full, rest = divmod(records_max, per_cell_max)
    return Sensitivity(
        l0=records_max,
        l1=records_max,
        l2_squared=full * per_cell_max**2 + rest**2,
        linf=min(records_max, per_cell_max),
    )


def marginals_of_distinct_cells(records_max: int, rows_max: int, columns_max: int) -> Sensitivity:
    """Return the sensitivity of both marginals together, where no two records share a cell.

    Records are edges between their row and their column, each edge once. The squares of both
    marginals add up to the sum over the records of (records in its row + records in its column),
    and those two meet in one record only, so they are at most records_max + 1 together. Six records
    make 42 and not 72; a star of records in one row reaches it.

    Args:
        records_max: records of the unit.
        rows_max: records of the unit in one row.
        columns_max: records of the unit in one column.

    Examples:
        >>> marginals_of_distinct_cells(6, 6, 6)
        Sensitivity(l0=12, l1=12, l2_squared=42, linf=6)
        >>> marginals_of_distinct_cells(6, 2, 2).l2_squared
        24
    """
    rows, columns = packed(records_max, rows_max), packed(records_max, columns_max)
    pair_max = min(rows.linf + columns.linf, records_max + 1)
    apart = side_by_side(rows, columns)
    return Sensitivity(
        l0=apart.l0,
        l1=apart.l1,
        l2_squared=min(apart.l2_squared, records_max * pair_max),
        linf=apart.linf,
    )


def side_by_side(*parts: Sensitivity) -> Sensitivity:
    """Return the sensitivity of vectors that are drawn as one, each moved as far as it can be.

    Examples:
        >>> side_by_side(packed(2, 1), packed(3, 3))
        Sensitivity(l0=5, l1=5, l2_squared=11, linf=3)
    """
    return Sensitivity(
        l0=sum(part.l0 for part in parts),
        l1=sum(part.l1 for part in parts),
        l2_squared=sum(part.l2_squared for part in parts),
        linf=max(part.linf for part in parts),
    )


def repeated(sensitivity: Sensitivity, times: int) -> Sensitivity:
    """Return the sensitivity of so many such changes, each in cells of its own.

    Examples:
        >>> repeated(packed(3, 3), 7)
        Sensitivity(l0=21, l1=21, l2_squared=63, linf=3)
    """
    return side_by_side(*(sensitivity for _ in range(times)))


def scaled(sensitivity: Sensitivity, step: int) -> Sensitivity:
    """Return the sensitivity where each record moves its cell by up to so many steps, either way.

    Examples:
        >>> scaled(packed(2, 1), 10)
        Sensitivity(l0=2, l1=20, l2_squared=200, linf=10)
    """
    return Sensitivity(
        l0=sensitivity.l0,
        l1=step * sensitivity.l1,
        l2_squared=step**2 * sensitivity.l2_squared,
        linf=step * sensitivity.linf,
    )


def difference_of_counts(sensitivity: Sensitivity) -> Sensitivity:
    """Return the sensitivity of u - w, where u, w >= 0 are both within the given one.

    It holds for a finer unit under a coarser bound (u arrives, w is displaced), and for replacing
    one unit by another (u arrives, w leaves). u.w >= 0, so |u - w|^2 <= |u|^2 + |w|^2, and no cell
    moves by more than the larger of the two. One trip under a card-day bound: l1 = 2, not 1.

    Examples:
        >>> difference_of_counts(records_at_most(1))
        Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
    """
    return Sensitivity(
        l0=2 * sensitivity.l0,
        l1=2 * sensitivity.l1,
        l2_squared=2 * sensitivity.l2_squared,
        linf=sensitivity.linf,
    )


def difference_of_sums(sensitivity: Sensitivity) -> Sensitivity:
    """Return the sensitivity of u - w where the changes may have either sign (centered sums).

    Examples:
        >>> difference_of_sums(records_at_most(1))
        Sensitivity(l0=2, l1=2, l2_squared=4, linf=2)
    """
    return Sensitivity(
        l0=2 * sensitivity.l0,
        l1=2 * sensitivity.l1,
        l2_squared=4 * sensitivity.l2_squared,
        linf=2 * sensitivity.linf,
    )


def _check(bound: int) -> None:
    """Refuse a bound that bounds nothing.

    Raises:
        ValueError: below 1.
    """
    if bound < 1:
        raise ValueError(f"a contribution bound of {bound} is below 1")
