"""What is hashed for a record, as packages and ledgers of all versions rest on it."""

from __future__ import annotations

from collections.abc import Sequence


def message(scope: str, cell: Sequence[int], unit: str) -> bytes:
    """Return what is hashed for a record; the id comes last, so no two records share a message.

    Examples:
        >>> message("2016-07-25", (1, 36), "card")
        b'2016-07-25|1|36|card'
    """
    return "|".join((scope, *(str(number) for number in cell), unit)).encode()
