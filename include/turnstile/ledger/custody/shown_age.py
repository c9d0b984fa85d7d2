"""What the index of a series says of the age of its ledger, whoever wrote it and wherever it lies.

Anybody may have planted, torn or altered it: one that cannot be read shows nothing.
"""

from __future__ import annotations

import json
from contextlib import suppress


def shown_age(content: bytes) -> tuple[int, int]:
    """Return recoveries and entries, which order indexes; (0, 0) unless both are whole numbers.

    Entries count anew where the ledger was brought back.
    """
    with suppress(ValueError, AttributeError, RecursionError):
        about = json.loads(content)
        age = about.get("ledger_recoveries", 0), about.get("ledger_sequence")
        if all(type(number) is int and number >= 0 for number in age):  # no bool, no infinity
            return age
    return 0, 0
