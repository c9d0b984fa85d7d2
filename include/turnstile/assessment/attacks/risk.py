"""How well one unit is recognised: by this release alone, by all of its group, and in a year.

Everything is worked out from the draws that the ledger charged: every programme of the group, every
revision, withdrawn and burned ones too. A trip, a day and a week are in the draws that hold that
piece of time; a card or bus is in all of them. What lies ahead is stated as that: each programme
that released within a year goes on as in its latest first release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations
from typing import Any, NamedTuple

from turnstile.assessment.attacks.presence import best_guess, guess_after
from turnstile.assessment.attacks.unit_changes import (
    DAYS_A_WEEK,
    TRIPS_A_DAY,
    Change,
    Changes,
    draws_on,
    releases_on,
    scopes_of,
    typical_changes,
    units_of_events,
    worst_changes,
)
from turnstile.ledger.balances.charged_releases import ChargedRelease
from turnstile.ledger.presentation import left
from turnstile.ledger.records import AccountBalance, ReleaseKey
from turnstile.privacy.accounts import MICRO, NANO, NO_LOSS, Loss, losses
from turnstile.privacy.events import DrawEvent, one_of_each_label
from turnstile.privacy.guarantees import epsilon_of
from turnstile.privacy.noise import half_width, term_of
from turnstile.privacy.units import ProtectionUnit
from turnstile.privacy.year_to_date import column_squared
from turnstile.service_calendar import DAYS_PER_WEEK

SHOWN_WEEKS = (1, 2, 4, 8, 13, 26, 39, 52)
AHEAD_WEEKS = 52
_NORMAL_FROM_TERMS = 20
_HIDDEN_UP_TO, _IN_PART_UP_TO = 0.6, 0.9  # chance of the best guess
_APART = 0.005  # chances that differ by less are said alike
_WORST = {
    ProtectionUnit.TRIP: "the trip that shows most",
    ProtectionUnit.CARD_DAY: "the day of a card that shows most within its bound",
    ProtectionUnit.CARD_WEEK: "the week of a card that shows most within its bound",
    ProtectionUnit.CARD: "the card that shows most within its bound, every week",
    ProtectionUnit.BUS_DAY: "the day of a bus that shows most within its bound",
    ProtectionUnit.BUS_WEEK: "the week of a bus that shows most within its bound",
    ProtectionUnit.BUS: "the bus that shows most within its bound, every week",
}
_TYPICAL = {
    ProtectionUnit.TRIP: "one trip",
    ProtectionUnit.CARD_DAY: f"a card's day of {TRIPS_A_DAY} trips",
    ProtectionUnit.CARD_WEEK: (
        f"a commuter's week ({TRIPS_A_DAY} trips a day on {DAYS_A_WEEK} days)"
    ),
    ProtectionUnit.CARD: (
        f"a daily commuter ({TRIPS_A_DAY} trips a day on {DAYS_A_WEEK} days a week)"
    ),
    ProtectionUnit.BUS_DAY: "the day of a bus in half of the cells that its bound allows",
    ProtectionUnit.BUS_WEEK: "the week of a bus in half of the cells that its bound allows",
    ProtectionUnit.BUS: "a bus in half of the cells that its bound allows, every day",
}


class Span(StrEnum):
    """Which draws of a unit are looked at together."""

    LEDGER = "ledger"  # all that were charged
    YEAR = "year"  # those of the year that begins with this week, charged and ahead


@dataclass(frozen=True, slots=True)
class UnitRisk:
    """How well one unit is recognised by an attacker who knows everything else.

    Args:
        unit: whose presence is guessed.
        who: which of them, in words.
        is_worst: whether no unit within the bounds shows more.
        span: which draws the attacker sees.
        weeks: service weeks that they are of.
        releases: how many of them were charged, those ahead counted too.
        guess_right: chance of the best guess, 1/2 by chance; None where nothing bounds the unit.
        alone: the same from this release alone.
        epsilon: of the unit at delta 1e-6; None where nothing bounds it.
        rho: of the unit, as the ledger adds it up; None where nothing bounds it.
    """

    unit: ProtectionUnit
    who: str
    is_worst: bool
    span: Span
    weeks: int
    releases: int
    guess_right: float | None
    alone: float | None
    epsilon: float | None
    rho: float | None

    @property
    def over(self) -> str:
        """The draws in words, as a sentence begins with them; empty for one release."""
        if self.span is Span.YEAR:
            if self.unit.is_lifetime:
                return "in the year that begins with this week"
            return "with the later weeks of the year that carry it along"
        if self.releases == 1:
            return ""
        weeks = f" in {self.weeks} weeks" if self.weeks > 1 else ""
        return f"from all {self.releases} charged releases of it{weeks}"

    @property
    def verdict(self) -> str:
        """What it means for the unit, in one clause; the limits are 60 and 90 in 100."""
        noun = self.unit.noun
        what = "what is released" if self.over else "this release"
        if self.unit.is_lifetime and self.over:
            noun += " over a year" if self.span is Span.YEAR else f" over {_span(self.weeks)}"
        if self.guess_right is None:
            return f"{what} states no protection of {noun}"
        if self.guess_right <= _HIDDEN_UP_TO:
            return f"{what} hides {noun}"
        if self.guess_right <= _IN_PART_UP_TO:
            return f"{what} hides {noun} in part"
        return f"{what} does not hide {noun}"

    @property
    def sentence(self) -> str:
        """The chance and what it means, in words."""
        if self.guess_right is None:
            more = "the more records it has, the more it shows"
            return f"Nothing bounds {self.unit.noun}: {more}; {self.verdict}."
        beside = ""
        if self.alone is not None and self.guess_right - self.alone >= _APART:
            beside = f"; {percent(self.alone)} from this release alone"
        return (
            f"{f'{self.over}, ' if self.over else ''}an attacker who knows everything else "
            f"recognises {self.who} {percent(self.guess_right)} times in 100 (50 by chance"
            f"{beside}); {self.verdict}."
        ).capitalize()


class Course(NamedTuple):
    """Where those units stand that are in every week, after so many weeks from this one on."""

    weeks: int
    guess_right: dict[str, float | None]
    epsilon: dict[ProtectionUnit, float | None]
    half_width: float


@dataclass(frozen=True, slots=True)
class Averaged:
    """What an average of so many draws of one cell says.

    Args:
        draws: of the same exact number.
        half_width_95: of the average, in counts.
        guess_right: chance of the best guess whether one record is in the cell.
    """

    draws: int
    half_width_95: float
    guess_right: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """Where a group of programmes stands, and where it goes.

    Args:
        units: each unit, typical and worst, by what was charged, and in the year ahead where that
            shows more.
        course: as the weeks of the year are added: units over weeks, and the 95 % half-width of the
            average of one finest cell of this programme, in counts.
    """

    units: tuple[UnitRisk, ...]
    course: tuple[Course, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Why a smaller unit shows more than a larger one, where one does."""
        return tuple(dict.fromkeys(_why_smaller_show_more(self.units)))


def forecast(
    events: Sequence[DrawEvent],
    charged: Sequence[ChargedRelease] = (),
    weeks: Sequence[int] = SHOWN_WEEKS,
) -> Forecast:
    """Return the risk of each unit of a release.

    Args:
        events: draws of the release.
        charged: what its group was charged, this release included; nothing but it by default.
        weeks: numbers of weeks of the course, each >= 1.
    """
    held = tuple(charged) or (ChargedRelease(ReleaseKey("release", "2000-W01"), tuple(events)),)
    units = units_of_events(events)
    first = min(_weeks(ChargedRelease(held[0].key, tuple(events))))
    ahead = {number: _in_weeks(held, first, number) for number in {*weeks, AHEAD_WEEKS}}
    finest = max(one_of_each_label(events), key=lambda event: 1 / event.scale)
    return Forecast(
        tuple(risk for unit in units for risk in _risks(unit, events, held, ahead[AHEAD_WEEKS])),
        tuple(
            _course(number, ahead[number], [unit for unit in units if unit.is_lifetime], finest)
            for number in weeks
        ),
    )


def _name_of(unit: ProtectionUnit, *, is_worst: bool) -> str:
    """Return who is meant, in words."""
    if is_worst:
        return _WORST.get(unit, f"{unit.noun} that shows most within its bound")
    return _TYPICAL.get(unit, unit.noun)


def _course(
    weeks: int, seen: Sequence[ChargedRelease], units: Iterable[ProtectionUnit], finest: DrawEvent
) -> Course:
    """Return where the units of every week stand after so many of them."""
    return Course(
        weeks,
        {
            _name_of(unit, is_worst=is_worst): _guess_of(
                unit, seen, scopes=["ever"], is_worst=is_worst, with_later=True
            )
            for unit in units
            for is_worst in (False, True)
        },
        {unit: _epsilon(_loss(seen, unit, "ever", with_later=True)) for unit in units},
        _average(finest, weeks),
    )


def _risks(
    unit: ProtectionUnit,
    events: Sequence[DrawEvent],
    held: Sequence[ChargedRelease],
    year: Sequence[ChargedRelease],
) -> Iterator[UnitRisk]:
    """Yield what is known of one unit: by what was charged, and in the year ahead.

    Of a trip, a day or a week the year adds only what carries its counts along.
    """
    scopes = scopes_of(events, unit) or ["ever"]
    this_release = [ChargedRelease(held[0].key, tuple(events))]
    charged = releases_on(held, unit, scopes)
    weeks = len({week for release in charged for week in _weeks(release)})
    seen = {Span.LEDGER: _alike(charged) if unit.is_lifetime else charged}
    if unit.is_lifetime:
        seen[Span.YEAR] = list(year)
    elif any(event.step > 1 for event in events):
        seen[Span.YEAR] = seen[Span.LEDGER]
    for span, releases in seen.items():
        is_year = span is Span.YEAR
        costs = [_loss(releases, unit, scope, with_later=is_year) for scope in scopes]
        loss = max(costs, key=_costly)
        for is_worst in (False, True):
            guess = partial(_guess_of, unit, scopes=scopes, is_worst=is_worst)
            yield UnitRisk(
                unit,
                _name_of(unit, is_worst=is_worst),
                is_worst,
                span,
                AHEAD_WEEKS if is_year and unit.is_lifetime else weeks,
                sum(release.times for release in releases),
                guess(releases, with_later=is_year),
                guess(this_release, with_later=False),
                _epsilon(loss),
                None if loss.rho is None else float(loss.rho),
            )


def _guess_of(
    unit: ProtectionUnit,
    seen: Sequence[ChargedRelease],
    *,
    scopes: Sequence[str],
    is_worst: bool,
    with_later: bool,
) -> float | None:
    """Return the chance of the best guess on the scope that shows most; None without a bound.

    A typical unit shows no more than the worst: what passes a bound is not counted.
    """
    changes = partial(_changes, unit, seen, with_later=with_later)
    worst = [changes(scope, is_worst=True) for scope in scopes]
    most = None if None in worst else max(map(_guess, worst))
    if is_worst:
        return most
    guess = max(_guess(changes(scope, is_worst=False)) for scope in scopes)
    return guess if most is None else min(guess, most)


def _guess(changes: Changes | None) -> float:
    """Return the chance of the best guess; that of a coin where nothing changes."""
    return _guess_by(frozenset((changes or {}).items()))


@lru_cache(maxsize=512)
def _guess_by(changes: frozenset[tuple[Change, int]]) -> float:
    """Return it once: many scopes and spans hold the same changes."""
    return best_guess(dict(changes))


def _changes(
    unit: ProtectionUnit,
    seen: Iterable[ChargedRelease],
    scope: str,
    *,
    is_worst: bool,
    with_later: bool,
) -> Changes | None:
    """Return the changes of a unit over all releases; None where one of them bounds nothing."""
    total: Changes = Counter()
    for release in seen:
        of_one = worst_changes if is_worst else typical_changes
        changes = of_one(release.events, unit, scope, with_later=with_later)
        if changes is None:
            return None
        for change, cells in changes.items():
            total[change] += cells * release.times
    return total


def _loss(
    seen: Iterable[ChargedRelease], unit: ProtectionUnit, scope: str, *, with_later: bool
) -> Loss:
    """Return what the draws cost one instance, as the ledger adds it up."""
    total = NO_LOSS
    for release in seen:
        for step in sorted({event.step for event in release.events}):
            draws = [draw for draw in draws_on(release.events, unit, scope) if draw.step == step]
            loss = losses(draws).get((unit, scope), NO_LOSS)
            if with_later and step > 1 and not unit.is_lifetime and loss.rho is not None:
                loss = Loss(None, loss.rho * column_squared() / step**2, loss.delta)
            total += loss.times(release.times)
    return total


def _costly(loss: Loss) -> tuple[bool, Fraction]:
    """Order losses by rho; infinite ones last."""
    return loss.rho is None, loss.rho or Fraction(0)


def _in_weeks(held: Sequence[ChargedRelease], first: int, weeks: int) -> list[ChargedRelease]:
    """Return what so many weeks from one on hold: what was charged, and each programme going on.

    Releases that show alike are one, charged so many times: of a card or bus nothing else matters.
    """
    releases = [charged for charged in held if first <= min(_weeks(charged)) < first + weeks]
    by_programme: dict[str, ChargedRelease] = {}
    for release in sorted(held, key=lambda charged: (-charged.key.revision, max(_weeks(charged)))):
        by_programme[release.key.programme] = release
    for release in by_programme.values():
        covered, last = _weeks(release), max(_weeks(release))
        left = weeks - max(0, last + 1 - first)
        if left > 0 and last >= first - AHEAD_WEEKS:
            releases.append(replace(release, times=-(-left // len(covered))))
    return _alike(releases)


def _alike(seen: Iterable[ChargedRelease]) -> list[ChargedRelease]:
    """Return releases with those that show alike of a card or bus as one of them, times so many."""
    times: Counter[object] = Counter()
    one_of: dict[object, ChargedRelease] = {}
    for release in seen:
        events = release.events
        draws = [replace(event, blocks=(), joint=None, carried=_ages(event)) for event in events]
        days = [len({block.service_date for block in event.blocks}) for event in events]
        joints = [str(event.joint) for event in events]
        shape = tuple(draws), tuple(days), tuple(joints.index(joint) for joint in joints)
        one_of.setdefault(shape, release)
        times[shape] += release.times
    return [replace(charged, times=times[shape]) for shape, charged in one_of.items()]


def _ages(event: DrawEvent) -> tuple[tuple[date, int], ...]:
    """Return how many times a draw carries earlier days along, whichever days they are."""
    return tuple((date.min, times) for _, times in event.carried)


def _weeks(release: ChargedRelease) -> frozenset[int]:
    """Return the numbers of the service weeks that a release reads new records of."""
    days = {block.service_date for event in release.events for block in event.blocks}
    return frozenset(_week_number(day) for day in days) or frozenset({0})


def _week_number(day: date) -> int:
    """Return the number of a day's week, counted from Monday, 0001-01-01."""
    return (day.toordinal() - 1) // DAYS_PER_WEEK


def _why_smaller_show_more(units: Sequence[UnitRisk]) -> Iterator[str]:
    """Yield why a smaller unit shows more than a larger one of the same span, where one does."""
    for risk, other in combinations(units, 2):
        if risk.unit.subject is not other.unit.subject or risk.unit is other.unit:
            continue
        more = (risk.guess_right or 0) - (other.guess_right or 1)
        if risk.span is not other.span or more < _APART:
            continue
        if risk.is_worst and not other.is_worst:
            yield (
                f"{risk.unit.noun} may show more than {other.unit.noun}: the one that shows most "
                f"fills its bound at once, and {other.who} is one that does not; the one that "
                "shows most never shows less than its own parts."
            ).capitalize()
        else:
            yield (
                f"{risk.unit.noun} may show more than {other.unit.noun}: of {other.unit.noun} so "
                f"many records are counted and no more, and where those of {risk.unit.noun} are "
                "not there, others are counted in their place, so that more numbers move."
            ).capitalize()


def percent(chance: float) -> str:
    """Return a chance in 100, in words."""
    times = 100 * chance
    return f"{times:.0f}" if times < 99.5 else "more than 99"  # noqa: PLR2004 - percent


def _span(weeks: int) -> str:
    """Return a number of weeks in words."""
    return "a week" if weeks == 1 else f"{weeks} weeks"


def as_figures(risk: UnitRisk) -> dict[str, Any]:
    """Return the risk of one unit for JSON."""
    return {
        "unit": str(risk.unit),
        "who": risk.who,
        "is_worst": risk.is_worst,
        "span": risk.span.value,
        "weeks": risk.weeks,
        "releases": risk.releases,
        "best_guess": None if risk.guess_right is None else round(risk.guess_right, 6),
        "best_guess_of_this_release": None if risk.alone is None else round(risk.alone, 6),
        "rho": None if risk.rho is None else float(f"{risk.rho:.9g}"),
        "epsilon_at_delta_1e-6": risk.epsilon,
        "sentence": risk.sentence,
    }


def over_weeks(known: Forecast) -> list[dict[str, Any]]:
    """Return what grows with the weeks, for JSON."""
    return [
        {
            "weeks": course.weeks,
            "best_guess": {
                who: None if chance is None else round(chance, 6)
                for who, chance in course.guess_right.items()
            },
            "average_half_width_95": round(course.half_width, 4),
            "epsilon_at_delta_1e-6": {str(unit): value for unit, value in course.epsilon.items()},
        }
        for course in known.course
    ]


def _epsilon(loss: Loss) -> float | None:
    """Return the epsilon of a loss at delta 1e-6; None where it is infinite."""
    shown = epsilon_of(loss)
    return None if shown is None else float(shown)


def weeks_left(balance: AccountBalance, weekly: Loss) -> int | None:
    """Return how many more weeks like this one fit an account for life; None without a cap.

    A window's cap frees what leaves the window, so it is counted as if nothing did: a floor.

    Args:
        balance: of a card or a bus.
        weekly: what one instance loses in a week.
    """
    if not balance.unit.is_lifetime:
        return None
    weekly_parts = {"epsilon_micro": (weekly.epsilon, MICRO), "rho_nano": (weekly.rho, NANO)}
    weeks = [
        int(amount // (loss * parts)) if loss else 0
        for name, amount in (left(balance) or {}).items()
        if name in weekly_parts
        for loss, parts in (weekly_parts[name],)
    ]
    return min(weeks, default=None)


def averaged(event: DrawEvent, draws: int) -> Averaged:
    """Return what an average of independent draws of one cell says; one draw is a release.

    Examples:
        >>> from turnstile.privacy.events import NoiseFamily
        >>> one = DrawEvent("t", "count", NoiseFamily.DISCRETE_LAPLACE, Fraction(1), (), ())
        >>> averaged(one, 10).half_width_95, round(averaged(one, 10).guess_right, 2)
        (0.9, 0.93)
    """
    single = replace(event, threshold=None, delta=Fraction(0))
    return Averaged(draws, _exact_average(event, draws), guess_after([single], weeks=draws))


def _average(event: DrawEvent, weeks: int) -> float:
    """95 % half-width of an average over weeks; by the normal distribution once it is long."""
    draws = min(weeks, _NORMAL_FROM_TERMS)
    return float(_exact_average(event, draws) * (draws / weeks) ** 0.5)


def _exact_average(event: DrawEvent, draws: int) -> float:
    """95 % half-width of an average of so many draws of one cell, in counts."""
    return half_width([term_of(event, draws)], 0.95) / draws
