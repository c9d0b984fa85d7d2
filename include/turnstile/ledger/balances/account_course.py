"""How one lifetime account fills up, week by week, as programmes go on as they do. Pure.

A programme goes on with periods as long as its latest one. A period of several weeks is charged to
each of them, and a window counts it once (PRIVACY 6.6): its weeks, less the pairs of neighbors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from turnstile.service_calendar import ServicePeriod, ServiceWeek

HORIZON_WEEKS = 520


@dataclass(slots=True)
class Course:
    """What was taken up to a week, and what comes.

    Args:
        first: week of the first figures.
        weeks: taken in each week.
        pairs: taken in each week and the one before it, by releases that hold both.
        window_weeks: how many weeks a window holds; None for all.
        coming: next period and cost of each programme.
    """

    first: ServiceWeek
    weeks: list[int]
    pairs: list[int]
    window_weeks: int | None
    coming: list[tuple[ServicePeriod, int]]

    @property
    def next_week(self) -> ServiceWeek:
        """First week without figures."""
        return self.first.plus(len(self.weeks))

    def going_on(self, coming: Iterable[tuple[ServicePeriod, int]]) -> Course:
        """Return a copy after which these periods come."""
        return replace(self, weeks=[*self.weeks], pairs=[*self.pairs], coming=[*coming])

    def corrected(self, cost: int) -> Course:
        """Return this with a correction of the last release, of the costliest programme."""
        period, _ = max(self.coming, key=lambda release: release[1])
        last = len(self.weeks) - 1
        course = self.going_on(self.coming)
        course.add(max(0, last + 1 - len(period.weeks)), last, cost)
        return course

    def add(self, first: int, last: int, cost: int) -> None:
        """Charge a release to every week from one to another."""
        for n in range(first, last + 1):
            self.weeks[n] += cost
            self.pairs[n] += cost if n > first else 0

    def window(self, last: int) -> int:
        """Return what the window that ends in a week has taken."""
        start = max(0, last + 1 - self.window_weeks) if self.window_weeks else 0
        return sum(self.weeks[start : last + 1]) - sum(self.pairs[start + 1 : last + 1])

    def most_taken(self) -> int:
        """Return what the most spent window has taken of those that a release of today touches."""
        spans = [len(period.weeks) for period, _ in self.coming]
        last = len(self.weeks)
        return max(self.window(n) for n in range(max(0, last - max(spans)), last))

    def step(self) -> int:
        """Release what ends in the next week; return what the most spent window has taken then."""
        week, now = self.next_week, len(self.weeks)
        self.weeks.append(0)
        self.pairs.append(0)
        for number, (first, cost) in enumerate(self.coming):
            for period in _on(first):
                if period.weeks[-1] > week:
                    self.coming[number] = (period, cost)
                    break
                self.add(max(0, now + 1 - len(period.weeks)), now, cost)
        return self.most_taken()


def following(period: ServicePeriod, start: ServiceWeek) -> ServicePeriod:
    """Return the first later period of the same length that does not end before a week."""
    return next(candidate for candidate in _on(period.plus(1)) if candidate.weeks[-1] >= start)


def charged_until(period: ServicePeriod, cost: int, end: ServiceWeek) -> int:
    """Return what a period and those after it cost that end before a week."""
    total = 0
    for current_period in _on(period):
        if current_period.weeks[-1] >= end:
            break
        total += cost
    return total


def _on(period: ServicePeriod) -> Iterator[ServicePeriod]:
    """Yield a period and all that follow it."""
    while True:
        yield period
        period = period.plus(1)


Path = tuple[tuple[str, int], ...]


def filled(course: Course, limit: int) -> tuple[Path, str | None]:
    """Go on week after week until a cap is reached; return the path and the refused week."""
    now = len(course.weeks)
    path = [(str(course.first.plus(n)), course.window(n)) for n in range(now)]
    is_weekly = all(len(period.weeks) == 1 for period, _ in course.coming)
    for n in range(HORIZON_WEEKS):
        week = str(course.next_week)
        total = course.step()
        if total > limit:
            return tuple(path), week
        path.append((week, total))
        if course.window_weeks and n > course.window_weeks * (1 if is_weekly else 2):
            break  # the window holds forecast weeks only: it will not change any more
    return tuple(path), None


def next_correction(course: Course, correction: int, limit: int) -> tuple[str | None, str | None]:
    """Return the first week whose correction fits, and the first that is refused after it.

    A correction is charged to the weeks of its release. Weeks to come are still empty, so no window
    that ends later is more spent than any up to now.
    """
    for _ in range(min(course.window_weeks or HORIZON_WEEKS, HORIZON_WEEKS) + 1):
        corrected = course.corrected(correction)
        if corrected.most_taken() <= limit:
            return str(course.next_week.plus(-1)), filled(corrected, limit)[1]
        if course.step() > limit:
            break
    return None, None
