"""Made-up units that offer more than may count, in every way that could move a table far.

For the canaries of a release: trips of a card (or taps, for a feed of taps) and readings of a bus,
as the cases of the bounds say, each on days of its own, beside the records of others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import combinations_with_replacement, product

from turnstile.pipeline.trials.canary_grammar import (
    OFFERED_TIMES,
    Case,
    Group,
    Way,
    groups_of_days,
    groups_of_records,
    groups_of_weeks,
    placed,
    twice,
)
from turnstile.privacy.units import Block, ProtectionUnit
from turnstile.programme.bounding_rule import bound_in_force
from turnstile.programme.domain.public_domain import UNKNOWN, PublicDomain
from turnstile.programme.fields import categories
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import OccupancyClass, Programme
from turnstile.service_calendar import MINUTES_PER_DAY, ServiceDays, ServiceWeek, minute_of
from turnstile.sources.feeds.made_records import MadeReading, MadeTrip
from turnstile.sources.feeds.zoned import changes_around
from turnstile.sources.ingest.canonical import SPEED_SCALE

_OTHERS = 24  # records of others on each day
_NAMES = 50
_DAY_S = 86_400  # later, and earlier, than any clamp
_SECONDS_PER_MINUTE = 60
_SHAPES = 3  # so that every shape of a record comes with every spelling
_READINGS = 2  # of a bus in each of its cells
_FIRST_WEEK = ServiceWeek(2016, 18)  # any: the programme's rules are the same in all
_WEEKS_TRIED = 52
Rows = Sequence[MadeTrip | MadeReading]
Groups = Mapping[date, Group]


@dataclass(frozen=True, slots=True)
class Trial:
    """Records of units, each of days and modes of its own, and what else there is on those days.

    Args:
        unit: what they are.
        groups: the units, by the first day of their scope.
        records: of them.
        others: records on a day that are there with and without them.
        are_alike: True if those of others are counted alike on all days.
        hostile: True if lines that are no records come with the own ones.
    """

    unit: ProtectionUnit
    groups: Groups
    records: Rows
    others: Callable[[date], Rows]
    are_alike: bool = True
    hostile: bool = True

    @property
    def scopes(self) -> dict[date, tuple[date, ...]]:
        """The days of each scope on which there are records, by its first day."""
        return {first: _days_of(self.unit, first, group) for first, group in self.groups.items()}

    @property
    def days(self) -> tuple[date, ...]:
        """The days on which there are records."""
        return tuple(sorted(day for days in self.scopes.values() for day in days))


def _days_of(unit: ProtectionUnit, first: date, group: Group) -> tuple[date, ...]:
    """Return the days of a group whose scope begins on a day."""
    if (unit.days_max or 0) <= 1:
        return (first,)
    weekdays = sorted({day for case in group for day in case.weekdays})
    return tuple(first + timedelta(days=day) for day in weekdays)


def trials_of(programme: Programme, domain: PublicDomain, turn: int) -> list[Trial]:
    """Return what is tried for a programme.

    Args:
        programme: tables and bounds.
        domain: public cells.
        turn: at which slot, place and spelling a unit begins.
    """
    is_trips = programme.source.feed.shape is RowShape.TRIPS
    return (_of_cards if is_trips else _of_buses)(programme, domain, turn)


def _groups(programme: Programme, domain: PublicDomain, unit: ProtectionUnit) -> Groups:
    """Return units by the first day of their scope, on days on which no clock changes."""
    bound = bound_in_force(programme)
    if unit.is_record or bound is None:
        case_groups = groups_of_records(domain.modes, are_apart=bound is None)
    elif unit.days_max == 1:
        case_groups = groups_of_days(domain.modes, max(_bounds(programme)))
    else:
        case_groups = groups_of_weeks(
            domain.modes, max(_bounds(programme)), _few_days(programme, unit)
        )
    if programme.source.feed.shape is RowShape.TELEMETRY:
        case_groups = [*twice(case_groups)]
    is_of_week = (unit.days_max or 0) > 1
    for weeks in range(_WEEKS_TRIED):
        groups = placed(case_groups, _FIRST_WEEK.plus(weeks).monday, is_of_week=is_of_week)
        period = ServiceDays(min(groups), max(groups) + timedelta(weeks=1))
        if not changes_around(programme.time.zone, period):
            break
    return groups


def _bounds(programme: Programme) -> list[int]:
    """Return how many records of one unit the tables count."""
    bound = bound_in_force(programme)
    table_bounds = [table.trips_max for table in programme.tables if table.trips_max is not None]
    return [1 if bound is None else bound.contributions_max, *table_bounds]


def other(number: int, day: date, least: int) -> str:
    """Name somebody else, who has a record on each of so few days that no bound is reached."""
    return f"other {number + _NAMES * (day.weekday() // least)}"


def _few_days(programme: Programme, unit: ProtectionUnit) -> list[int]:
    """On how few days a unit can have all records that a table with its own limit counts; all."""
    first = _FIRST_WEEK.monday
    scope = unit.scope(Block(first, ""))
    all_days = sum(unit.scope(Block(day, "")) == scope for day in _FIRST_WEEK.days)
    fewest_days = [
        -(-table.trips_max // (table.per_cell_max or table.trips_max))
        for table in programme.tables
        if table.trips_max is not None
    ]
    return sorted({all_days, *(min(few, all_days) for few in fewest_days)})


def _of_cards(programme: Programme, domain: PublicDomain, turn: int) -> list[Trial]:
    """Return trials of cards, where they are bounded, and of one trip, where that is the unit."""
    bound, unit = bound_in_force(programme), programme.mechanism.unit
    trials = []
    if bound is not None:
        groups = _groups(programme, domain, bound.unit)
        make = _Trips(programme, domain, turn, groups)
        # On the evening before, a unit's card has a tap in each of its modes.
        are_alike = bound.contributions_max >= len(domain.modes)
        records = make.of_cards(bound.unit)
        trials.append(Trial(bound.unit, groups, records, make.others, are_alike=are_alike))
    if unit.is_record:
        groups = _groups(programme, domain, unit)
        make = _Trips(programme, domain, turn, groups)
        trials.append(
            Trial(
                unit,
                groups,
                make.last_trips(),
                lambda day: [*make.others(day), *make.around_trips(day)],
                are_alike=False,
                hostile=False,
            )
        )
    return trials


class _Trips:
    """Makes trips of a programme's own modes, slots and places."""

    def __init__(
        self, programme: Programme, domain: PublicDomain, turn: int, groups: Groups
    ) -> None:
        self._time, self._domain, self._turn, self._groups = programme.time, domain, turn, groups
        self._number = {first: number for number, first in enumerate(groups)}
        self._joins_taps = programme.source.feed.joins_taps
        self._is_bounded = bound_in_force(programme) is not None
        self._offered = OFFERED_TIMES * max(_bounds(programme))
        self._least = min(_bounds(programme))
        minutes = range(programme.time.slot_minutes)
        self._minutes = list(combinations_with_replacement(minutes, 2))
        self._places = {mode: _place_of_each_area(domain, mode) for mode in domain.modes}
        self._categories = {field.name for field in categories(RowShape.TRIPS)}
        self._values = {(name, label): value for name, value, label in domain.listed}

    def others(self, day: date) -> list[MadeTrip]:
        """Trips of others, and last tap-ons of the cards that are units of the next day's scope."""
        modes = self._domain.modes
        trips = [
            self._trip(other(n, day, self._least), day, modes[n % len(modes)], (n, n), n)
            for n in range(_OTHERS)
        ]
        next_day = day + timedelta(days=1)
        evening = [
            self._one_end(
                self._card_in(next_day, mode) or other(_OTHERS + n, day, self._least),
                day,
                mode,
                self._time.day_ends - 1,
                is_on=True,
            )
            for n, mode in enumerate(modes)
        ]
        return [*trips, *evening]

    def of_cards(self, unit: ProtectionUnit) -> list[MadeTrip]:
        """The trips of the units, as their cases say."""
        trips = []
        for first, group in self._groups.items():
            for number, case in enumerate(group):
                card, days = self._card(first, number), _days_of(unit, first, (case,))
                trips += self._trips_of(case, card, days)
                if self._joins_taps:
                    start = self._time.day_starts
                    trips += [self._one_end(card, first, m, start, is_on=False) for m in case.modes]
        return trips

    def _trips_of(self, case: Case, card: str, days: Sequence[date]) -> list[MadeTrip]:
        """The trips of one unit: in every mode, and on every day, in its turn."""
        trips = []
        for n in range(case.number):
            mode = case.modes[n % len(case.modes)]
            slots = len(self._starts(mode))
            begin = slots - 1 if days[0].isoweekday() % 2 else self._turn
            at = lie(case, n, (slots, len(self._places[mode])), (begin, self._turn))
            day = days[n // len(case.modes) % len(days)]
            is_late = case.way is Way.APART and n % 2 == 1
            trips.append(self._trip(card, day, mode, at, n, is_late=is_late))
        return trips

    def around_trips(self, day: date) -> list[MadeTrip]:
        """What the trips of units may change: as many as are counted, or one that each parts."""
        trips = []
        for number, case in enumerate(self._groups[day]):
            card, (mode,), modes = self._card(day, number), case.modes, self._domain.modes
            if self._joins_taps:
                wide = self._trip(card, day, mode, (0, 0), 0)
                off = (wide.on_second or 0) + 2 * _SECONDS_PER_MINUTE
                trips.append(replace(wide, off_second=off))
                continue
            trips += [
                self._trip(card, day, modes[n % len(modes)], (n, n), n)
                for n in range(self._offered if self._is_bounded else 1)
            ]
        return trips

    def last_trips(self) -> list[MadeTrip]:
        """One more trip of each of these cards."""
        trips = []
        for first, group in self._groups.items():
            for number, case in enumerate(group):
                card, (mode,), slot = self._card(first, number), case.modes, self._offered
                if self._joins_taps:
                    trip = self._trip(card, first, mode, (0, 1), slot)
                    begin = (trip.on_second or 0) // _SECONDS_PER_MINUTE * _SECONDS_PER_MINUTE
                    trips.append(replace(trip, on_second=begin + 30, off_second=begin + 40))
                    continue
                if not self._is_bounded and self._number[first] % 2:
                    slot = -1  # the last of the day
                trips.append(self._trip(card, first, mode, (slot, 1), self._offered))
        return trips

    def _starts(self, mode: str) -> list[str]:
        """The slots of a mode."""
        labels = self._domain.dimension(mode, "tap_on_slot").labels
        return [label for label in labels if label != UNKNOWN]

    def _trip(  # noqa: PLR0913 - where and when
        self,
        card: str,
        day: date,
        mode: str,
        at: tuple[int, int],
        number: int,
        *,
        is_late: bool = False,
    ) -> MadeTrip:
        """A trip in the n-th slot, at a place of the n-th area; another for each number.

        A late one in the last slot ends on the next day.
        """
        slot, place = at
        starts = self._starts(mode)
        begin = minute_of(starts[slot % len(starts)]) * _SECONDS_PER_MINUTE
        location = self._places[mode][place % len(self._places[mode])]
        on, off = (m * _SECONDS_PER_MINUTE for m in self._minutes[number % len(self._minutes)])
        if self._joins_taps:  # one after the other, so that none parts another
            on, off = 2 * number, 2 * number + 1
        elif is_late and slot % len(starts) == len(starts) - 1:
            off += (self._time.day_starts + MINUTES_PER_DAY) * _SECONDS_PER_MINUTE - begin
        return MadeTrip(
            card,
            mode,
            day,
            begin + on,
            location,
            begin + off,
            location,
            tuple(
                (axis.name, self._values.get((axis.name, label), label))
                for axis in self._domain.dimensions(mode)
                if axis.name in self._categories
                for label in (axis.labels[slot % len(axis.labels)],)
            ),
            self._turn + number,
        )

    def _one_end(self, card: str, day: date, mode: str, minute: int, *, is_on: bool) -> MadeTrip:
        """A tap alone."""
        second, place = minute * _SECONDS_PER_MINUTE, self._places[mode][0]
        if is_on:
            return MadeTrip(card, mode, day, second, place)
        return MadeTrip(card, mode, day, None, "", second, place)

    def _card_in(self, day: date, mode: str) -> str | None:
        """The card of a unit that has a mode, and whose scope begins on a day."""
        for number, case in enumerate(self._groups.get(day, ())):
            if mode in case.modes:
                return self._card(day, number)
        return None

    def _card(self, first: date, number: int) -> str:
        """The card of a unit; another one is that of the scope before, and of the next."""
        return f"canary {2 * number + self._number[first] % 2}"


def _place_of_each_area(domain: PublicDomain, mode: str) -> list[str]:
    """One location of each area of a mode."""
    location_of_area = {p.area: p.location for p in reversed(domain.places) if p.mode == mode}
    return sorted(location_of_area.values())


def lie(case: Case, n: int, numbers: tuple[int, int], begin: tuple[int, int]) -> tuple[int, int]:
    """Return in which slot, and at which place, the n-th record of a unit lies.

    Slots that differ reach from the first to the last; where records outnumber them, slot and place
    differ together.

    Args:
        case: of the unit.
        n: of the record.
        numbers: of slots and places.
        begin: slot of records that share one, and place of the first.

    Examples:
        >>> apart = Case(("bus",), (0,), Way.APART, 3)
        >>> [lie(apart, n, (24, 2), (0, 0)) for n in range(3)]
        [(0, 0), (11, 1), (23, 0)]
    """
    slots, places = numbers
    slots_differ, places_differ = case.way.value
    slot, row = begin[0] % slots, 0
    if slots_differ and case.number <= slots:
        slot = n * (slots - 1) // max(1, case.number - 1)
    elif slots_differ:
        row, slot = divmod(n, slots)
    return slot, (begin[1] + (n + row if places_differ else 0)) % places


def _of_buses(programme: Programme, domain: PublicDomain, turn: int) -> list[Trial]:
    """Return trials of a bus's day or week: standing and racing, several readings in each cell."""
    bound = bound_in_force(programme)
    unit = ProtectionUnit.BUS_DAY if bound is None else bound.unit
    groups = _groups(programme, domain, unit)
    make = _Readings(programme, domain, turn)
    return [Trial(unit, groups, make.of_buses(unit, groups), make.others)]


class _Readings:
    """Makes readings in a programme's own slots and cells."""

    def __init__(self, programme: Programme, domain: PublicDomain, turn: int) -> None:
        self._turn, self._is_bounded = turn, bound_in_force(programme) is not None
        self._least = min(_bounds(programme))
        self._fastest = programme.source.speed_at_most_kmh * SPEED_SCALE
        by, mode = programme.tables[0].by, domain.modes[0]
        value_of = {(name, label): value for name, value, label in domain.listed}
        labels = {
            name: [label for label in domain.dimension(mode, name).labels if label != UNKNOWN]
            for name in dict.fromkeys((*by, "slot", "cell"))
        }
        listed = [
            [(name, value_of[name, label]) for label in labels[name]]
            for name in by
            if name not in {"slot", "cell"}
        ]
        cells = labels["cell"] if "cell" in by else labels["cell"][:1]
        self._slots = labels["slot"]
        self._places = [(cell, values) for cell in cells for values in product(*listed)]
        self._length = programme.time.slot_minutes * _SECONDS_PER_MINUTE

    def others(self, day: date) -> list[MadeReading]:
        """Readings of others."""
        return [
            self._reading(other(n, day, self._least), day, (n, n), (n, 0 if n % 2 else n // 2))
            for n in range(_OTHERS)
        ]

    def of_buses(self, unit: ProtectionUnit, groups: Groups) -> list[MadeReading]:
        """The readings of the units, as their cases say: one bus stands, the next one races."""
        readings = []
        for number, (first, (case,)) in enumerate(groups.items()):
            days = _days_of(unit, first, (case,))
            every = len(self._slots) * len(self._places)
            bus_case = case if self._is_bounded else replace(case, way=Way.APART, number=every)
            state = (self._fastest, _DAY_S) if number % 2 else (0, -_DAY_S)
            readings += self._readings_of(bus_case, f"canary {number % 2}", days, state)
        return readings

    def _readings_of(
        self, case: Case, bus: str, days: Sequence[date], state: tuple[int, int]
    ) -> list[MadeReading]:
        """The readings of one unit: in each of its cells on every day, then in the next cell."""
        numbers = len(self._slots), len(self._places)
        begin = len(self._slots) - 1 if days[0].isoweekday() % 2 else self._turn
        of_day = replace(case, number=-(-case.number // len(days)))
        readings = []
        for n in range(case.number):
            day, at = days[n % len(days)], lie(of_day, n // len(days), numbers, (begin, self._turn))
            seconds = range(_READINGS * n, _READINGS * n + _READINGS)
            readings += [self._reading(bus, day, at, (second, second), state) for second in seconds]
        return readings

    def _reading(
        self,
        bus: str,
        day: date,
        at: tuple[int, int],
        turn: tuple[int, int],
        state: tuple[int, int] = (0, 0),
    ) -> MadeReading:
        """One full bus in the middle of a cell.

        Args:
            bus: its id.
            day: service day.
            at: numbers of slot and place.
            turn: seconds after the slot's start, and shape of the record.
            state: speed and delay.
        """
        import h3

        slot, place = at
        cell, listed = self._places[place % len(self._places)]
        latitude, longitude = h3.cell_to_latlng(cell)
        begin = minute_of(self._slots[slot % len(self._slots)]) * _SECONDS_PER_MINUTE
        return MadeReading(
            bus,
            day,
            begin + turn[0] % self._length,
            latitude,
            longitude,
            state[0],
            turn[1],
            state[1],
            OccupancyClass.NOT_ACCEPTING_PASSENGERS,
            listed,
            spelling=self._turn + turn[0] // _SHAPES,
        )
