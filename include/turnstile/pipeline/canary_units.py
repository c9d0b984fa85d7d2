"""Units that offer more than may count, in every way that could move a table far; made up.

For the canaries of a release: trips of a card (or taps, for a feed of taps) and readings of a bus,
on the service days of a made-up week, beside those of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations_with_replacement, cycle, islice, product

from turnstile.privacy.units import Block, ProtectionUnit
from turnstile.programme.bounding_rule import bound_in_force
from turnstile.programme.domain import UNKNOWN, PublicDomain
from turnstile.programme.fields import categories
from turnstile.programme.mode_slots import minute_of
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import OccupancyClass, Programme
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.canonical import SPEED_SCALE
from turnstile.sources.raw_records import MadeReading, MadeTrip

_OFFERED_TIMES = 3  # a unit offers so many times its bound
_OTHERS = 24  # records of others on each day
_STILL = 0
_DAY_S = 86_400  # later, and earlier, than any clamp
_SECONDS_PER_MINUTE = 60
WEEK = ServiceWeek(2016, 30)
"""Any week: the programme's rules are the same in all."""
Rows = list[MadeTrip] | list[MadeReading]
_PlaceOfBus = tuple[str, str, tuple[tuple[str, str], ...]]  # slot, cell, categories
# (slots, places) that the n-th record of a unit moves on by: all alike, in one slot, at one place
_WAYS = ((0, 0), (0, 1), (1, 0))


@dataclass(frozen=True, slots=True)
class Trial:
    """Records of units, each of its own days, and what else the week holds.

    Args:
        unit: what they are.
        own: records of one instance a service day; of one altogether, if a unit has several days.
        others: records that are there with and without them.
        hostile: True if lines that are no records come with the own ones.
    """

    unit: ProtectionUnit
    own: Rows
    others: Rows
    hostile: bool = True


def trials_of(programme: Programme, domain: PublicDomain, turn: int) -> list[Trial]:
    """Return what is tried for a programme.

    Args:
        programme: tables and bounds.
        domain: public cells.
        turn: decides in which mode and way each day's unit comes first.
    """
    is_trips = programme.source.feed.shape is RowShape.TRIPS
    return (_of_cards if is_trips else _of_buses)(programme, domain, turn)


def _of_cards(programme: Programme, domain: PublicDomain, turn: int) -> list[Trial]:
    """Return trials of cards, where they are bounded, and of one trip, where that is the unit."""
    make = _Trips(programme, domain)
    others: Rows = [trip for number in range(len(WEEK.days)) for trip in make.others(number)]
    bound = bound_in_force(programme)
    days = range(len(WEEK.days))
    trials = []
    if bound is not None:
        by_run: list[Rows] = (
            [[trip for day in days for trip in make.card_day(day, run, turn)] for run in range(4)]
            if bound.unit.days_max == 1
            else [
                make.card_of_days(few, way, turn)
                for few in _few_days(programme, len(_days_of(bound.unit)))
                for way in _WAYS
            ]
        )
        trials += [Trial(bound.unit, own, others) for own in by_run]
    if programme.mechanism.unit.is_record:
        around = [trip for day in days for trip in make.around_a_trip(day)]
        last: Rows = [make.last_trip(day) for day in days]
        trials.append(Trial(programme.mechanism.unit, last, [*others, *around], hostile=False))
    return trials


def _days_of(unit: ProtectionUnit) -> tuple[date, ...]:
    """The service days of the week that one instance of a unit can touch, Monday among them."""
    scopes = [unit.scope(Block(day, "")) for day in WEEK.days]
    return tuple(day for day, scope in zip(WEEK.days, scopes, strict=True) if scope == scopes[0])


def _few_days(programme: Programme, most: int) -> list[int]:
    """On how few days a card can have all trips that a table with its own limit counts; and all."""
    own = [
        -(-table.trips_max // (table.per_cell_max or table.trips_max))
        for table in programme.tables
        if table.trips_max is not None
    ]
    return sorted({most, *(min(few, most) for few in own)})


class _Trips:
    """Makes trips of a programme's own modes, slots and places."""

    def __init__(self, programme: Programme, domain: PublicDomain) -> None:
        self._time, self._domain = programme.time, domain
        self._joins_taps = programme.source.feed.joins_taps
        bound = bound_in_force(programme)
        own_bounds = [table.trips_max or 0 for table in programme.tables]
        most = max([1 if bound is None else bound.contributions_max, *own_bounds])
        self._offered = _OFFERED_TIMES * most
        minutes = range(programme.time.slot_minutes)
        self._minutes = list(combinations_with_replacement(minutes, 2))
        self._places = {mode: _place_of_each_area(domain, mode) for mode in domain.modes}
        self._categories = {field.name for field in categories(RowShape.TRIPS)}
        self._values = {(name, label): value for name, value, label in domain.listed}

    def others(self, day: int) -> list[MadeTrip]:
        """Trips of others, and a last tap-on of the card that is the unit of the next day."""
        found = [self._trip(f"other {n}", day, n, n, n, n) for n in range(_OTHERS)]
        return [*found, self._one_end(_card(day + 1), day, self._time.day_ends - 1, is_on=True)]

    def card_day(self, day: int, run: int, turn: int) -> list[MadeTrip]:
        """The unit of a day: too many trips, in one mode or, in the first run, in all of them."""
        slots, places = _WAYS[(run + day + turn) % len(_WAYS)]
        modes = range(len(self._domain.modes)) if run == 0 else (day + run + turn,)
        found = [
            self._trip(_card(day), day, mode, n * slots, n * places, n)
            for mode in modes
            for n in range(self._offered)
        ]
        if self._joins_taps:
            found.append(self._one_end(_card(day), day, self._time.day_starts, is_on=False))
        return found

    def card_of_days(self, few: int, way: tuple[int, int], turn: int) -> list[MadeTrip]:
        """A unit of several days: too many trips, on so many of its days."""
        slots, places = way
        return [
            self._trip("canary", n % few, turn, n * slots, n * places, n)
            for n in range(self._offered)
        ]

    def around_a_trip(self, day: int) -> list[MadeTrip]:
        """What the trip of a unit may change: as many as are counted, or a trip that it parts."""
        if self._joins_taps:
            wide = self._trip(_card(day), day, 0, 0, 0, 0)
            return [replace(wide, off_second=(wide.on_second or 0) + 2 * _SECONDS_PER_MINUTE)]
        return [self._trip(_card(day), day, 0, n, n, n) for n in range(self._offered)]

    def last_trip(self, day: int) -> MadeTrip:
        """One more trip of the same card."""
        place = 0 if self._joins_taps else self._offered
        trip = self._trip(_card(day), day, 0, place, 1, self._offered)
        if not self._joins_taps:
            return trip
        begin = (trip.on_second or 0) // _SECONDS_PER_MINUTE * _SECONDS_PER_MINUTE
        return replace(trip, on_second=begin + 30, off_second=begin + 40)

    def _trip(  # noqa: PLR0913, PLR0917 - counters of one record
        self, card: str, day: int, mode: int, slot: int, place: int, number: int
    ) -> MadeTrip:
        """A trip after the n-th slot, at a place of the n-th area; another for each number."""
        name = self._domain.modes[mode % len(self._domain.modes)]
        starts = [s for s in self._domain.dimension(name, "tap_on_slot").labels if s != UNKNOWN]
        begin = minute_of(starts[(slot + 1) % len(starts)]) * _SECONDS_PER_MINUTE
        location = self._places[name][place % len(self._places[name])]
        on, off = (m * _SECONDS_PER_MINUTE for m in self._minutes[number % len(self._minutes)])
        if self._joins_taps:  # one after the other, so that none parts another
            on, off = 2 * number, 2 * number + 1
        return MadeTrip(
            card,
            name,
            WEEK.days[day],
            begin + on,
            location,
            begin + off,
            location,
            tuple(
                (axis.name, self._values.get((axis.name, label), label))
                for axis in self._domain.dimensions(name)
                if axis.name in self._categories
                for label in (axis.labels[slot % len(axis.labels)],)
            ),
        )

    def _one_end(self, card: str, day: int, minute: int, *, is_on: bool) -> MadeTrip:
        """A tap alone, in the first mode."""
        mode, second = self._domain.modes[0], minute * _SECONDS_PER_MINUTE
        place = self._places[mode][0]
        if is_on:
            return MadeTrip(card, mode, WEEK.days[day], second, place)
        return MadeTrip(card, mode, WEEK.days[day], None, "", second, place)


def _place_of_each_area(domain: PublicDomain, mode: str) -> list[str]:
    """One location of each area of a mode."""
    own = {p.area: p.location for p in reversed(domain.places) if p.mode == mode}
    return sorted(own.values())


def _card(day: int) -> str:
    """The card that is the unit of a day; another one is that of the next day."""
    return f"canary {day % 2}"


def _of_buses(programme: Programme, domain: PublicDomain, turn: int) -> list[Trial]:
    """Return trials of a bus's day: standing and racing, with several readings in each cell."""
    bound = bound_in_force(programme)
    most = None if bound is None else max(_OTHERS, _OFFERED_TIMES * bound.contributions_max)
    places = list(islice(_places_of_buses(programme, domain), most))
    unit, numbers, of_unit = ProtectionUnit.BUS_DAY, {len(places)}, WEEK.days[:1]
    if bound is not None:
        unit, numbers = bound.unit, {_OFFERED_TIMES * bound.contributions_max}
        of_unit = _days_of(unit)
        if len(of_unit) > 1:  # and the same few cells on every day
            numbers.add(-(-bound.contributions_max // len(of_unit)))
    length = programme.time.slot_minutes * _SECONDS_PER_MINUTE
    others: Rows = [
        _reading(f"other {n}", day, place, n % length, 0 if n % 2 else n // 2)
        for day in WEEK.days
        for n, place in zip(range(_OTHERS), cycle(places), strict=False)
    ]
    fastest = programme.source.speed_at_most_kmh * SPEED_SCALE
    trials = []
    for run, (speed, number) in enumerate(product((_STILL, fastest), sorted(numbers))):
        day = (turn + run) % len(WEEK.days)
        days = of_unit if len(of_unit) > 1 else WEEK.days[day : day + 1]
        own: Rows = [
            replace(
                _reading("canary", of, place, second % length, second),
                speed_milli_kmh=speed,
                delay_s=_DAY_S if speed else -_DAY_S,
                occupancy=OccupancyClass.NOT_ACCEPTING_PASSENGERS,
            )
            for of in days
            for n, place in enumerate(places[:number])
            for second in range(3 * n, 3 * n + 3)
        ]
        trials.append(Trial(unit, own, others))
    return trials


def _places_of_buses(programme: Programme, domain: PublicDomain) -> Iterator[_PlaceOfBus]:
    """Yield every cell of the tables, as readings name it."""
    value_of = {(name, label): value for name, value, label in domain.listed}
    slots, cells = (
        [label for label in domain.dimension(domain.modes[0], name).labels if label != UNKNOWN]
        for name in ("slot", "cell")
    )
    by = programme.tables[0].by
    named = [
        [
            (name, value_of[name, label])
            for label in domain.dimension(domain.modes[0], name).labels
            if label != UNKNOWN
        ]
        for name in by
        if name not in {"slot", "cell"}
    ]
    for slot, cell in product(slots, cells if "cell" in by else cells[:1]):
        for values in product(*named):
            yield slot, cell, values


def _reading(bus: str, day: date, place: _PlaceOfBus, second: int, shape: int) -> MadeReading:
    """Return one reading in the middle of a cell, so many seconds after its slot's start."""
    import h3

    slot, cell, categories = place
    latitude, longitude = h3.cell_to_latlng(cell)
    begin = minute_of(slot) * _SECONDS_PER_MINUTE
    return MadeReading(
        bus, day, begin + second, latitude, longitude, _STILL, shape, categories=categories
    )
