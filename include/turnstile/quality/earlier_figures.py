"""What earlier weeks were like: their exact figures, and the ranges that are learned from them.

Every week that passes leaves its figures beside its snapshots, in the private zone. A later week is
held against them: each of its days against days of the same weekday, each share against that of
earlier weeks. A range is the median plus or minus six spreads. The spread is the median absolute
deviation scaled to a standard deviation (times 1.4826; Rousseeuw & Croux 1993, section 1), but at
least what chance alone does to a count. One odd week among eight moves neither much.

Neither figures nor ranges leave the private zone: Great Expectations sees them as columns of a
frame and says yes or no.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NoReturn

from turnstile.durable_files import OWNER_ONLY, replace_durably
from turnstile.quality.rules import Frame
from turnstile.service_calendar import ServicePeriod

if TYPE_CHECKING:
    import pandas as pd

HISTORY_FILE = "figures.json"
PERIODS_MAX = 26
LEARNED_FROM_AT_LEAST = 6
_SPREADS = 6.0
_TO_STANDARD_DEVIATION = 1.4826
_OF_MEDIAN = 0.05  # the least spread, as a part of the median
_SHARE = 0.002  # the least spread of a share


@dataclass(frozen=True, slots=True, repr=False)
class Figures:
    """Exact figures of one week; they do not print.

    Args:
        total: rows of the week.
        counts: rows of each service day of a mode or a kind, by `(date, name)`; absent ones with 0.
        speeds_kmh: of each service day on which anything moved, by `(date, name)`.
        shares: of the records read, by name.
    """

    total: int
    counts: Mapping[tuple[str, str], float]
    speeds_kmh: Mapping[tuple[str, str], float]
    shares: Mapping[str, float]

    def __repr__(self) -> str:
        """Nothing of the figures."""
        return "<private figures>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            TypeError: always.
        """
        raise TypeError("private figures stay in the process that made them")


def earlier_figures(programme: str, week: ServicePeriod, private: Path) -> tuple[Figures, ...]:
    """Return the figures of earlier weeks that passed, the latest first, at most 26 weeks back."""
    paths = (
        private / programme / str(week.plus(-back)) / HISTORY_FILE
        for back in range(1, PERIODS_MAX + 1)
    )
    return tuple(_read(json.loads(path.read_text())) for path in paths if path.exists())


def keep(figures: Figures, folder: Path) -> None:
    """Write the figures of a week for the weeks to come; the folder is in the private zone."""
    record = {
        "total": figures.total,
        "counts": [[*cell, count] for cell, count in figures.counts.items()],
        "speeds_kmh": [[*cell, speed] for cell, speed in figures.speeds_kmh.items()],
        "shares": dict(figures.shares),
    }
    content = (json.dumps(record, indent=1) + "\n").encode()
    replace_durably(folder / HISTORY_FILE, content, OWNER_ONLY)


def _read(record: Mapping[str, Any]) -> Figures:
    """Read what `keep` wrote."""
    return Figures(
        total=record["total"],
        counts={(day, name): count for day, name, count in record["counts"]},
        speeds_kmh={(day, name): speed for day, name, speed in record["speeds_kmh"]},
        shares=record["shares"],
    )


def usual_frames(now: Figures, earlier: Sequence[Figures]) -> dict[Frame, pd.DataFrame]:
    """Return figures beside their learned ranges; frames of which nothing is learned are left out.

    Args:
        now: figures of the week that is judged.
        earlier: of the weeks before it.

    Returns:
        Frames of columns `figure`, `least` and `most`, private; a share has no `least`.
    """
    import pandas as pd

    if len(earlier) < LEARNED_FROM_AT_LEAST:
        return {}
    counts, speeds = (
        [figures.counts for figures in earlier],
        [figures.speeds_kmh for figures in earlier],
    )
    rows_by_frame = {
        Frame.USUAL_COUNTS: list(_of_weekdays(now.counts, counts, is_count=True)),
        Frame.USUAL_SPEEDS: list(_of_weekdays(now.speeds_kmh, speeds, is_count=False)),
        Frame.USUAL_SHARES: list(_of_shares(now.shares, [figures.shares for figures in earlier])),
    }
    names = ("figure", "least", "most")
    return {
        frame: pd.DataFrame(rows, columns=names) for frame, rows in rows_by_frame.items() if rows
    }


_Figures = Mapping[tuple[str, str], float]
_Row = tuple[float, float, float]


def _of_weekdays(now: _Figures, earlier: Sequence[_Figures], *, is_count: bool) -> Iterator[_Row]:
    """Yield each figure of a day with the range learned from the same weekday."""
    known: dict[tuple[int, str], list[float]] = {}
    for figures in earlier:
        for (day, name), figure in figures.items():
            known.setdefault((date.fromisoformat(day).weekday(), name), []).append(figure)
    for (day, name), figure in now.items():
        past = known.get((date.fromisoformat(day).weekday(), name), [])
        if len(past) >= LEARNED_FROM_AT_LEAST:
            middle = median(past)
            reach = _SPREADS * max(_spread(past), math.sqrt(middle) if is_count else 0.0)
            yield figure, middle - reach, middle + reach


def _of_shares(now: Mapping[str, float], earlier: Sequence[Mapping[str, float]]) -> Iterator[_Row]:
    """Yield each share with the most that is usual; one that nobody met before was 0."""
    for name, figure in now.items():
        past = [figures.get(name, 0.0) for figures in earlier]
        yield figure, -math.inf, median(past) + _SPREADS * max(_spread(past), _SHARE)


def _spread(past: Sequence[float]) -> float:
    """Return a robust standard deviation, at least a twentieth of the median."""
    middle = median(past)
    deviation = median(abs(figure - middle) for figure in past)
    return max(_TO_STANDARD_DEVIATION * deviation, _OF_MEDIAN * abs(middle))
