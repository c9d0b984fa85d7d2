"""How many published cells rise above their own noise: honest news about sparse data.

From the noisy numbers and the declared noise alone, so it costs nothing (post-processing).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from turnstile.estimates.error_bars import error_bar
from turnstile.release.drawn import Drawn

_BY_NOISE = 0.025  # of symmetric noise, on the upper side of a half-width that holds 95 %


def cells_above_noise(drawn: Drawn) -> list[dict[str, Any]]:
    """Return, for every table and statistic, how many cells exceed the half-width of 95 %.

    Days that are stated gaps are left out: their cells hold noise alone. So are draws that carry
    their year along. `by_noise_at_most` is how
    many would on average exceed it if there were nobody at all.
    """
    table_counts = []
    of_own_week = [event for event in drawn.events if event.step == 1]
    for label, event in {event.label: event for event in of_own_week}.items():
        limit = error_bar(event).half_width_95
        vectors = [
            noisy.values
            for noisy in drawn.artefact.tables
            if f"{noisy.table}/{noisy.statistic}" == label
            and noisy.service_date not in drawn.artefact.gaps
        ]
        cells = sum(len(vector) for vector in vectors)
        above = sum(int(np.count_nonzero(vector > limit)) for vector in vectors)
        table_counts.append(
            {
                "table": event.table,
                "statistic": event.statistic,
                "cells": cells,
                "above": above,
                "by_noise_at_most": round(_BY_NOISE * cells),
            }
        )
    return table_counts


def sentences(lines: list[dict[str, Any]]) -> list[str]:
    """Return one sentence for each table and statistic.

    Examples:
        >>> line = {"table": "speed", "statistic": "buses", "cells": 4000, "above": 212}
        >>> sentences([line | {"by_noise_at_most": 100}])
        ['- speed, buses: 212 of 4,000 cells; noise alone would lift up to 100']
    """
    return [
        f"- {line['table']}, {line['statistic']}: {line['above']:,} of {line['cells']:,} cells; "
        f"noise alone would lift up to {line['by_noise_at_most']:,}"
        for line in lines
    ]
