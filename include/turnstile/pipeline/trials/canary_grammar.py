"""Where the records of one unit may lie: every case of the bounds, enumerated.

A case is a set of modes, the service days, the way in which its records share slots and places, and
how many of them there are, held against the bound. Every set of modes comes on weekdays and at the
weekend; every mode comes alone in every way. Cases whose modes differ are tried on the same days,
because tables have cells of their own for each mode: many units ride on one run. A case of all
modes has records in every file, slot, place, hour and spelling, and at least as many beside any one
of them as the bound lets count: so a bound that holds for each of them by itself, or is left out
for one of them, lets too many count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from itertools import chain, combinations

from turnstile.service_calendar import DAYS_PER_WEEK

_SETS_OF_AT_MOST = 4  # modes; of more, each one and all others
_WORKDAYS = 5
OFFERED_TIMES = 3
"""A unit offers so many times its bound."""
Modes = tuple[str, ...]


class Way(Enum):
    """How the records of a unit lie: (whether slots differ, whether places do)."""

    ALIKE = False, False
    IN_ONE_SLOT = False, True
    AT_ONE_PLACE = True, False
    APART = True, True


@dataclass(frozen=True, slots=True)
class Case:
    """One unit.

    Args:
        modes: that it travels in, each in its turn.
        weekdays: service days of a week on which it does, 0 is Monday.
        way: how its records share slots and places.
        number: of its records.
    """

    modes: Modes
    weekdays: tuple[int, ...]
    way: Way
    number: int


Group = tuple[Case, ...]  # of the same days, told apart by their modes


def groups_of_days(modes: Modes, bound: int) -> list[Group]:
    """Return the cases of a unit of one service day, on Monday or Saturday.

    Args:
        modes: of the programme.
        bound: the most records of one unit that any table counts.
    """
    return [group for day in ((0,), (_WORKDAYS,)) for group in _groups(modes, bound, [day])]


def groups_of_weeks(modes: Modes, bound: int, few: Sequence[int]) -> list[Group]:
    """Return the cases of a unit of several days.

    Args:
        modes: of the programme.
        bound: the most records of one unit that any table counts.
        few: on how few days a unit can have all records that some table counts.
    """
    two = [(n % _WORKDAYS, _WORKDAYS + n % 2) for n in range(DAYS_PER_WEEK)]
    one_kind = [(0, 1), (_WORKDAYS, _WORKDAYS + 1)]
    groups = _groups(modes, bound, two)
    groups += [(Case(modes, days, Way.APART, OFFERED_TIMES * bound),) for days in one_kind]
    groups += [_each_alone(modes, range(most), Way.APART, OFFERED_TIMES * bound) for most in few]
    return [*groups, _each_alone(modes, range(DAYS_PER_WEEK), Way.APART, bound)]


def groups_of_records(modes: Modes, *, are_apart: bool) -> list[Group]:
    """Return the cases of a unit of one record, on Monday or Saturday.

    Args:
        modes: of the programme.
        are_apart: True if such a unit moves no cell of another mode.
    """
    days = range(0, DAYS_PER_WEEK, _WORKDAYS)
    if are_apart:
        return [_each_alone(modes, (day,), way, 1) for day in days for way in Way]
    return [(Case((mode,), (day,), Way.APART, 1),) for day in days for mode in modes]


def _groups(modes: Modes, bound: int, days: Sequence[tuple[int, ...]]) -> list[Group]:
    """Return the cases of every set of modes, in every way, and at the bound, on days in turns."""
    most = OFFERED_TIMES * bound
    plans = [(part, Way.APART, most) for part in _parted(modes)]
    alone = tuple((mode,) for mode in modes)
    plans += [(alone, way, most) for way in Way if way is not Way.APART]
    plans += [((modes,), Way.APART, number) for number in (bound, bound + 1)]
    return [
        tuple(Case(mode_set, days[n % len(days)], way, number) for mode_set in sets)
        for n, (sets, way, number) in enumerate(plans)
    ]


def _each_alone(modes: Modes, days: Iterable[int], way: Way, number: int) -> Group:
    """Return a unit in each mode."""
    return tuple(Case((mode,), (*days,), way, number) for mode in modes)


def _parted(modes: Modes) -> Iterator[tuple[Modes, ...]]:
    """Yield the ways to part modes in two: every set of them is one of two parts, or all of them.

    Examples:
        >>> [*_parted(("bus", "train"))]
        [(('bus', 'train'),), (('train',), ('bus',))]
    """
    yield (modes,)
    first, *others = modes
    if len(modes) <= _SETS_OF_AT_MOST:
        sizes = range(1, len(modes))
        parts = chain.from_iterable(combinations(others, size) for size in sizes)
    else:
        parts = chain(((first,),), ((mode,) for mode in others))
    for part in parts:
        yield part, tuple(mode for mode in modes if mode not in part)


def twice(groups: Sequence[Group]) -> Iterator[Group]:
    """Yield groups, those whose records share nothing twice in a row: for two kinds of them."""
    for group in groups:
        yield from (group,) * (2 if group[0].way is Way.APART else 1)


def placed(groups: Sequence[Group], monday: date, *, is_of_week: bool) -> dict[date, Group]:
    """Return the first day of each group's scope: a week of its own, or a day of its kind.

    Args:
        groups: in any order.
        monday: of the first week.
        is_of_week: True if a unit has the days of a week.
    """
    if is_of_week:
        return {monday + timedelta(weeks=n): group for n, group in enumerate(groups)}
    group_of_day: dict[date, Group] = {}
    for kind in (range(_WORKDAYS), range(_WORKDAYS, DAYS_PER_WEEK)):
        of_kind = [group for group in groups if group[0].weekdays[0] in kind]
        for n, group in enumerate(of_kind):
            week, day = divmod(n, len(kind))
            group_of_day[monday + timedelta(weeks=week, days=kind[day])] = group
    return dict(sorted(group_of_day.items()))
