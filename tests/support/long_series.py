"""An explorer of ten years of weeks and a city of places, by the product's own writer.

The numbers are made up, with what a planned fault or a planted change would have done to them; that
a package's numbers come through as they are is tested on packages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.weeks import Fact, PublishedRevision, Week
from turnstile.programme.spec import Programme
from turnstile.publishing.explore import site
from turnstile.publishing.explore.week_of_places import WeekOfPlaces
from turnstile.publishing.series.periods import Period, periods_of
from turnstile.release.zones import digest_of
from turnstile.service_calendar import ServiceWeek, parse_period

SLOTS = tuple(f"{hour:02}:00" for hour in range(24))
DEVIATION = 40.0
_WITH_HOURS = 8  # of the last weeks
Floats = NDArray[np.float64]
_SHAPE = tuple(1 + 6 * math.exp(-((hour - 8) ** 2) / 4) for hour in range(24))
Truth = Callable[[int, int], float]
"""Number of a place (its place in the list) in a week (its place in the series)."""


@dataclass(frozen=True)
class LongSeries:
    """Weeks of places that are released one after the other, and nothing else.

    Args:
        programme: whose public places they are at.
        include: folder of public files.
        folder: of the programme in a public zone.
        weeks: how many.
        truth: of every number.
    """

    programme: Programme
    include: Path
    folder: Path
    weeks: int
    truth: Truth

    @property
    def revisions(self) -> list[PublishedRevision]:
        """Its releases."""
        first = ServiceWeek.parse("2007-W01")
        keys = [ReleaseKey("opal", str(first.plus(n))) for n in range(self.weeks)]
        return [PublishedRevision(key, f"{n:064x}", _fact(n)) for n, key in enumerate(keys)]

    @property
    def periods(self) -> tuple[Period, ...]:
        """Its periods."""
        weeks = {r.key.period: Week(r.key.period, (), (r,)) for r in self.revisions}
        return periods_of(weeks)

    def write(
        self, patch: pytest.MonkeyPatch, places: Sequence[tuple[str, str]], known: site.Files
    ) -> site.Files:
        """Write what is not there yet; return every file with its size and digest."""
        numbers = {revision.key.period: n for n, revision in enumerate(self.revisions)}

        def made(_: Programme, __: Path, period: str) -> WeekOfPlaces:
            number = numbers[period]
            has_hours = number >= len(numbers) - _WITH_HOURS
            return made_week(places, number, period, self.truth, has_hours=has_hours)

        patch.setattr(site, "week_of_places", made)
        given = {path: entry for path, entry in known.items() if isinstance(entry, tuple)}
        files: site.Files = {}
        for path, content in site.explorer_files(
            self.programme, self.periods, self.revisions, self.folder, self.include, given
        ):
            if isinstance(content, bytes):
                (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / path).write_bytes(content)
                files[path] = (len(content), digest_of(content))
            else:
                files[path] = content
        return files


def made_week(
    places: Sequence[tuple[str, str]], number: int, period: str, truth: Truth, *, has_hours: bool
) -> WeekOfPlaces:
    """Return a week of made numbers: truth and normal noise; its seed is the week's number.

    Args:
        places: mode and label of each.
        number: of the week.
        period: its name.
        truth: of every number.
        has_hours: whether the hours of its days are there: they are most of what is written.
    """
    noise = np.random.default_rng(number)  # noqa: TID251 - made numbers, the same every time
    days = [str(day) for day in parse_period(period).days]
    about = {
        "days": days, "slots": list(SLOTS), "gaps": [],
        "what": "trips counted", "unit": "trips", "is_count": True,
    }  # fmt: skip
    truths = np.array([truth(n, number) for n in range(len(places))])
    hours = truths[:, None] * np.array(_SHAPE) / sum(_SHAPE)

    def drawn(values: Floats, deviation: float) -> list[Any]:
        estimates = values + deviation * noise.standard_normal(values.shape)
        half = 1.96 * deviation
        return list(
            np.stack([estimates, estimates - half, estimates + half], axis=-1).round(1).tolist()
        )

    columns = [drawn(truths, DEVIATION), drawn(truths / 6, 6), drawn(truths / 12, 9)]
    by_place = {
        place: {"week": w, "test": (w[0], DEVIATION), "weekday": on, "weekend": off, "hours": h}
        for place, w, on, off, h in zip(places, *columns, drawn(hours, 12), strict=True)
    }
    of_days = np.broadcast_to((hours / 7)[:, None], (len(places), 7, 24))
    flat = np.array(drawn(of_days, 4)).reshape(len(places), 7, -1).tolist() if has_hours else []
    return WeekOfPlaces(about, by_place, dict(zip(places, flat, strict=False)))


def _fact(number: int) -> Fact:
    return Fact(number + 1, f"{number:064x}", "2016-08-01T10:00:00Z")
