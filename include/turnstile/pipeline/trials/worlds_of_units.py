"""Every small world of records of one unit, and one of another, with and without the unit.

Worlds that differ in names alone are one: of modes, of days, of labels within one mode and day, and
of dimensions that the tables treat alike. Records of a unit come in its keyed order, so every order
is a world of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations_with_replacement, product
from operator import itemgetter

from turnstile.counting.reference import Label, Row, Tap, joined
from turnstile.privacy.stability import Chain
from turnstile.privacy.units import CARD_UNITS, VEHICLE_UNITS, ProtectionUnit
from turnstile.programme.fields import OF_OFF, OF_ON
from turnstile.service_calendar import ServiceWeek

DAYS = ServiceWeek(2016, 30).days[:2]
_OWN, _OTHER = "the unit", "another"
# So that all worlds of a programme take seconds: so many records are of two modes or of two days,
# not of both, and all are slow, or all fast; a dimension tells fewer sorts of trips apart than 3.
_MANY = 5
_WORLDS_MAX = 50_000
_PAIR = 2  # taps of one trip
_OTHER_TAPS = 2 * _PAIR  # of two trips, which a pair of taps can part
_FASTEST = 10**9  # above every range of a mean; the slowest is 0
_TRIP = CARD_UNITS[0]
Rows = tuple[Row, ...]
_End = tuple[bool, Label, tuple[int, int]]  # whether it is a tap-on, label, mode and day


@dataclass(frozen=True, slots=True)
class World:
    """Rows with a unit, and without it, for each unit that they hold; in keyed order."""

    rows: Rows
    without: tuple[tuple[ProtectionUnit, Rows], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides which worlds there are.

    Args:
        chain: of a vector; others of the same worlds count the same rows.
        axes: dimensions of the rows; those of a trip's end come last.
        ends: how many those are.
        kinds: for each axis the number of its kind: axes of one kind are in the same tables and
            limits, so that they tell the same rows apart; -1 of those that are in none.
        symmetries: permutations of kinds that change no limit and no table but for its name.
        modes: names of one or two modes.
    """

    chain: Chain
    axes: tuple[str, ...]
    ends: int
    kinds: tuple[int, ...]
    symmetries: tuple[tuple[int, ...], ...]
    modes: tuple[str, ...]


def worlds(shape: Shape, records: int) -> Iterator[World]:
    """Yield every world of up to so many records of one unit."""
    if shape.chain.count.adds_up:
        return _of_readings(shape, records)
    if shape.chain.read.ends_apart:
        return _of_rides(shape, records)
    if shape.chain.join is not None:
        return _of_taps(shape, records)
    return _of_trips(shape, records)


@cache
def names(length: int, most: int) -> tuple[tuple[int, ...], ...]:
    """Return the ways to give so many records one of some names, but for which name is which.

    Examples:
        >>> names(2, 2)
        ((0, 0), (0, 1))
        >>> len(names(5, 2)), len(names(5, 5))
        (16, 52)
    """
    if not length:
        return ((),)
    return tuple(
        (*first, name)
        for first in names(length - 1, most)
        for name in range(min(most, max(first, default=-1) + 2))
    )


def _of_trips(shape: Shape, records: int) -> Iterator[World]:
    """Yield worlds of trips, in every order, and one outside of the public cells before them."""
    outside = [(None,) * len(shape.axes), (0,) * (len(shape.axes) - 1) + (None,)]
    for number in range(1, records + 1):
        for rows in _trips(shape, number):
            yield _world(shape, rows)
            if shape.chain.filter.drops and number < records and shape.axes:
                for labels in outside:
                    yield _world(shape, [rows[0]._replace(labels=labels), *rows])


def _trips(shape: Shape, number: int) -> Iterator[list[Row]]:
    """Yield so many trips of one card."""
    kinds = max(shape.kinds, default=-1) + 1
    labels_max = _labels_max(shape, number, kinds)
    reorders = [itemgetter(*order) for order in shape.symmetries if len(order) > 1]
    for pieces in _pieces(shape, number):
        for labels in product(_columns(pieces, labels_max), repeat=kinds):
            if any(reordered(labels) < labels for reordered in reorders):
                continue
            of_kind = *labels, (0,) * number  # the last is that of no kind
            yield [
                Row(_OWN, shape.modes[mode], DAYS[day], tuple(of_kind[k][n] for k in shape.kinds))
                for n, (mode, day) in enumerate(pieces)
            ]


def _pieces(shape: Shape, number: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the modes and days of so many trips."""
    days = len(DAYS) if shape.chain.bound else 1
    for modes, of_days in product(names(number, len(shape.modes)), names(number, days)):
        if number < _MANY or not (any(modes) and any(of_days)):
            yield tuple(zip(modes, of_days, strict=True))


def _labels_max(shape: Shape, number: int, kinds: int) -> int:
    """Return how many sorts of trips each dimension tells apart in a mode and day, at most 3."""
    for most in (3, 2):
        worlds_at_most = sum(
            len(_columns(pieces, most)) ** kinds for pieces in _pieces(shape, number)
        )
        if worlds_at_most <= _WORLDS_MAX * len(shape.symmetries):
            return most
    return 1


@cache
def _columns(pieces: tuple[tuple[int, int], ...], labels_max: int) -> tuple[tuple[int, ...], ...]:
    """Return the labels of one dimension, named anew in each mode and day."""
    distinct = sorted(set(pieces))
    columns = []
    for chosen in product(*(names(pieces.count(piece), labels_max) for piece in distinct)):
        labels_of_piece = {
            piece: iter(labels) for piece, labels in zip(distinct, chosen, strict=True)
        }
        columns.append(tuple(next(labels_of_piece[piece]) for piece in pieces))
    return tuple(columns)


def _world(shape: Shape, rows: Sequence[Row]) -> World:
    """Return a world of these rows, of which somebody else has one like the first."""
    other = rows[0]._replace(unit=_OTHER)
    is_bounded = shape.chain.bound is not None
    units = VEHICLE_UNITS if shape.chain.count.adds_up else CARD_UNITS
    without: list[tuple[ProtectionUnit, Rows]] = []
    for unit in units:
        if unit.is_record:
            without += [(unit, (other, *rows[:n], *rows[n + 1 :])) for n in range(len(rows))]
        elif is_bounded and unit.days_max == 1:
            without += [
                (unit, (other, *(row for row in rows if row.day != day)))
                for day in {row.day for row in rows}
            ]
        elif is_bounded:
            without.append((unit, (other,)))
    return World((other, *rows), tuple(without))


def _of_readings(shape: Shape, records: int) -> Iterator[World]:
    """Yield worlds of readings of a bus: in any cell, or none, the slowest and the fastest."""
    for number in range(1, records + 1):
        for days in names(number, len(DAYS)):
            pieces = tuple((0, day) for day in days)
            speeds = tuple(product((0, _FASTEST), repeat=number))
            if number >= _MANY:
                speeds = speeds[0], speeds[-1]  # all are slow, or all fast
            for cells, totals in product(_cells(pieces, number), speeds):
                rows = [
                    Row(_OWN, shape.modes[0], DAYS[day], (cell,) * len(shape.axes), total)
                    for day, cell, total in zip(days, cells, totals, strict=True)
                ]
                yield _world(shape, rows)
                if number < records:
                    yield _world(shape, [rows[0]._replace(labels=(None,) * len(shape.axes)), *rows])


@cache
def _cells(pieces: tuple[tuple[int, int], ...], most: int) -> tuple[tuple[int, ...], ...]:
    """Return the cells of readings, of which all may differ."""
    return tuple(
        cells
        for cells in names(len(pieces), most)
        if len({(piece, cell) for piece, cell in zip(pieces, cells, strict=True)}) <= most
    )


def _of_rides(shape: Shape, records: int) -> Iterator[World]:
    """Yield worlds of boardings and alightings, of which one of each is the unit."""
    labels: tuple[Label, ...] = (0, 1, None)

    def row(end: tuple[bool, Label]) -> Row:
        is_on, label = end
        of_other = OF_OFF if is_on else OF_ON  # a category is of both
        labels = tuple(None if axis in of_other else label for axis in shape.axes)
        return Row(None, shape.modes[0], DAYS[0], labels)

    for number in range(records - 1):
        for ends in product(product((True, False), labels), repeat=number):
            others = tuple(row(end) for end in ends)
            for on, off in product(labels, repeat=2):
                with_unit = (*others, row((True, on)), row((False, off)))
                yield World(with_unit, ((_TRIP, others),))


def _of_taps(shape: Shape, records: int) -> Iterator[World]:
    """Yield worlds of taps: a pair amid those of others of its card, and, if bounded, whole cards.

    All dimensions of one end of a trip have one label.
    """
    joins, first_piece = _joining(shape), (0, 0)
    labels: tuple[Label, ...] = (0, 1, None)
    others_max = _OTHER_TAPS if shape.chain.bound is None else records - _PAIR
    for number in range(others_max + 1):
        for others in product(product((True, False), labels, [first_piece]), repeat=number):
            for on, off in product(labels, repeat=2):
                if next((x for x in (*(e[1] for e in others), on, off) if x is not None), 0):
                    continue  # the same with the names of two labels exchanged
                pair = (True, on, first_piece), (False, off, first_piece)
                for first, second in combinations_with_replacement(range(number + 1), 2):
                    taps = (*others[:first], pair[0], *others[first:second], pair[1])
                    yield World(joins((*taps, *others[second:])), ((_TRIP, joins(others)),))
    if shape.chain.bound is not None:
        yield from _of_tapping_cards(shape, records)


def _of_tapping_cards(shape: Shape, records: int) -> Iterator[World]:
    """Yield worlds of all taps of a card, in all modes, on two days."""
    joins, labels = _joining(shape), (0, None)
    pieces = tuple(product(range(len(shape.modes)), range(len(DAYS))))
    for number in range(1, records + 1):
        # The first mode and day are the first: others are the same under exchanged names.
        for chosen in product(pieces[:1], *[pieces] * (number - 1)):
            if number >= _MANY and any(m for m, _ in chosen) and any(d for _, d in chosen):
                continue
            for ends in product(product((True, False), labels), repeat=number):
                taps = tuple((*end, piece) for end, piece in zip(ends, chosen, strict=True))
                left = [joins(tuple(t for t in taps if t[2][1] != day)) for day in range(len(DAYS))]
                by_unit = ((u, left if u.days_max == 1 else [joins(())]) for u in CARD_UNITS[1:])
                without = tuple((unit, rows) for unit, of_unit in by_unit for rows in of_unit)
                yield World(joins(taps), without)


def _joining(shape: Shape) -> Callable[[tuple[_End, ...]], Rows]:
    """Return what makes the trips of a card's taps, amid which somebody else has one.

    They come in an order of their content. The same taps come again and again: with and without
    each pair of them, and each day.
    """
    tap = cache(partial(_tap, shape))
    begin, end = (tap(is_on, 0, (0, 0))._replace(unit=_OTHER) for is_on in (True, False))

    @cache
    def joins(ends: tuple[_End, ...]) -> Rows:
        taps = [tap(*tap_end) for tap_end in ends]
        rows = joined(shape.chain, [begin, *taps[:1], end, *taps[1:]], shape.axes)
        return tuple(sorted(rows, key=_keyed))

    return joins


def _tap(shape: Shape, is_on: bool, label: Label, piece: tuple[int, int]) -> Tap:  # noqa: FBT001
    """Return a tap of the unit's card."""
    number = len(shape.axes) - shape.ends if is_on else shape.ends
    mode, day = piece
    return Tap(_OWN, shape.modes[mode], DAYS[day], is_on, (label,) * number)


@cache
def _keyed(row: Row) -> tuple[object, ...]:
    """Return what stands for the keyed hash of a row: a function of its content alone."""
    return tuple(-1 if label is None else label for label in reversed(row.labels)), row[1:3]
