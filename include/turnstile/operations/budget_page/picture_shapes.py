"""Where the shapes of the page's pictures lie; the templates draw them as SVG.

Every picture is a box of 100 by 100 that is stretched to any width, so that bars keep their scale
on a telephone; the words stand beside it in HTML and keep their size. Only a map keeps its
proportions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from turnstile.ledger.balances.forecast import CapForecast
from turnstile.privacy.noise import normal_half_width

_SHADES = 9
_INTEGERS_FROM = 100  # no decimals from here on
_NAMED = 5  # largest locations of a map that are named
_EARTH_KM_PER_DEGREE = 111.2
_MAP_WIDTH, _MAP_HEIGHT, _MARGIN = 720, 420, 20
_SCALE_SHARE = 0.3  # of the map's width, at most, for the bar of its scale


@dataclass(frozen=True, slots=True)
class Location:
    """One location of a map: where it lies, or its outline, and what is said of it."""

    name: str
    outline: tuple[tuple[float, float], ...]  # (longitude, latitude); one point is drawn as a dot
    value: float | None
    deviation: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A number with its standard deviation; None where it is withheld."""

    name: str
    value: float | None
    deviation: float

    @property
    def half_width_95(self) -> float:
        """Half the width of the interval of 95 %."""
        return normal_half_width(self.deviation, level=95)


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape of a picture.

    Args:
        spots: corners, or the middle of a circle, or (left, top, width, height) in two pairs.
        css: classes.
        words: what it says when it is pointed at.
        radius: of a circle; 0 for other shapes.
    """

    spots: tuple[tuple[float, float], ...]
    css: str
    words: str
    radius: float = 0.0

    @property
    def points(self) -> str:
        """The corners as SVG has them."""
        return " ".join(f"{x:.2f},{y:.2f}" for x, y in self.spots)


@dataclass(frozen=True, slots=True)
class BurnDown:
    """What is left of a cap, week by week: lines in a box of 100 by 100."""

    past: tuple[tuple[float, float], ...]
    ahead: tuple[tuple[float, float], ...]
    first: str
    last: str

    @staticmethod
    def line(spots: Sequence[tuple[float, float]]) -> str:
        """Return the path of a line."""
        return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in spots) if spots else ""


@dataclass(frozen=True, slots=True)
class MapPicture:
    """Locations where they lie.

    Args:
        height: of a picture that is 720 wide.
        shapes: north is up.
        named: number on the map, name and words of the largest.
        scale_km: length of the scale's bar.
        scale_width: its length in the picture.
    """

    height: int
    shapes: tuple[Shape, ...]
    named: tuple[tuple[int, Shape, str], ...]
    scale_km: float
    scale_width: float


def burn_down(forecast: CapForecast) -> BurnDown:
    """Return what is left of a cap that fills up, past and forecast."""
    most, count = max(forecast.limit, 1), max(1, len(forecast.path) - 1)
    spots = [
        (week, 100 * n / count, 100 * min(1.0, taken / most))
        for n, (week, taken) in enumerate(forecast.path)
    ]
    past = tuple((x, y) for week, x, y in spots if week < forecast.from_week)
    ahead = tuple((x, y) for week, x, y in spots if week >= forecast.from_week)
    return BurnDown(past, (*past[-1:], *ahead), forecast.path[0][0], forecast.path[-1][0])


def map_of(locations: Sequence[Location]) -> MapPicture | None:
    """Return locations where they lie, stronger for more; None where none is known."""
    points = [point for location in locations for point in location.outline]
    if not points:
        return None
    west, east = min(x for x, _ in points), max(x for x, _ in points)
    south, north = min(y for _, y in points), max(y for _, y in points)
    stretch = max(0.1, math.cos(math.radians((south + north) / 2)))
    width, height = max(1e-9, (east - west) * stretch), max(1e-9, north - south)
    inner = _MAP_WIDTH - 2 * _MARGIN
    scale = min(inner / width, _MAP_HEIGHT / height)
    most = max((location.value or 0 for location in locations), default=0) or 1.0

    def put(point: tuple[float, float]) -> tuple[float, float]:
        x, y = point
        return _MARGIN + (x - west) * stretch * scale, _MARGIN + (north - y) * scale

    shapes = {
        location.name: _shape(location, tuple(map(put, location.outline)), most)
        for location in locations
    }
    largest = sorted(locations, key=lambda location: -(location.value or 0))[:_NAMED]
    kilometre = scale / _EARTH_KM_PER_DEGREE
    length_km = _round_length(_SCALE_SHARE * _MAP_WIDTH / kilometre)
    return MapPicture(
        height=int(height * scale) + 2 * _MARGIN + _MARGIN,
        shapes=tuple(shapes.values()),
        named=tuple(
            (n, shapes[location.name], location.name) for n, location in enumerate(largest, 1)
        ),
        scale_km=length_km,
        scale_width=length_km * kilometre,
    )


def _round_length(most_km: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not longer.

    Examples:
        >>> _round_length(37), _round_length(0.7)
        (20.0, 0.5)
    """
    power = float(10 ** math.floor(math.log10(most_km)))
    return max(n * power for n in (1, 2, 5) if n * power <= most_km)


def _shape(location: Location, spots: tuple[tuple[float, float], ...], most: float) -> Shape:
    """Draw one location with what it says when pointed at or focused."""
    words = f"{location.name}: {said(location.value, location.deviation)}"
    css = "withheld" if location.value is None else f"shade s{_shade(location.value, most)}"
    if location.value is not None and abs(location.value) < 2 * location.deviation:
        css += " uncertain"
    radius = 3 + 9 * max(0.0, (location.value or 0) / most) ** 0.5 if len(spots) == 1 else 0.0
    return Shape(spots, css, words, radius)


def heat_map(
    rows: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[str, str], Bar]
) -> tuple[Shape, ...]:
    """Return a grid of shades in a box of 100 by 100, one row a name."""
    most = max((bar.value or 0 for bar in cells.values()), default=0) or 1.0
    wide, high = 100 / max(1, len(columns)), 100 / max(1, len(rows))
    return tuple(
        Shape(
            ((m * wide, n * high), (wide, high * 0.94)),
            "withheld" if bar.value is None else f"shade s{_shade(bar.value, most)}",
            f"{row}, {column}: {said(bar.value, bar.deviation)}",
        )
        for n, row in enumerate(rows)
        for m, column in enumerate(columns)
        if (bar := cells.get((row, column))) is not None
    )


@dataclass(frozen=True, slots=True)
class Columns:
    """Numbers as columns with bars of 95 %, in a box of 100 by 100."""

    shapes: tuple[Shape, ...]
    errors: tuple[Shape, ...]
    highest: str
    first: str
    last: str


def columns(bars: Sequence[Bar]) -> Columns:
    """Return columns and their bars of 95 %."""
    most = max([*((bar.value or 0) + bar.half_width_95 for bar in bars), 1e-9])
    wide = 100 / max(1, len(bars))
    shapes, errors = [], []
    for n, bar in enumerate(bars):
        if bar.value is None:
            continue
        size = 100 * max(0.0, bar.value) / most
        half, middle, x = 100 * bar.half_width_95 / most, 100 - size, (n + 0.5) * wide
        words = f"{bar.name}: {said(bar.value, bar.deviation)}"
        shapes.append(Shape(((n * wide + wide * 0.1, middle), (wide * 0.8, size)), "column", words))
        low, high = min(100.0, middle + half), max(0.0, middle - half)
        errors.append(Shape(((x, high), (x, low)), "error", words))
    names = [bar.name for bar in bars] or [""]
    return Columns(tuple(shapes), tuple(errors), number(most), names[0], names[-1])


def _shade(value: float, most: float) -> int:
    """Return a shade from 0 to 9."""
    return max(0, min(_SHADES, round(_SHADES * math.sqrt(max(0.0, value) / most))))


def said(value: float | None, deviation: float) -> str:
    """Write a number with the half-width of its 95 % interval."""
    if value is None:
        return "withheld"
    return f"{number(value)} \N{PLUS-MINUS SIGN} {number(normal_half_width(deviation, level=95))}"


def number(value: float) -> str:
    """Write a number with the digits that matter.

    Examples:
        >>> number(1322.43000066), number(0.034722221)
        ('1,322', '0.0347')
    """
    return f"{value:,.3g}" if abs(value) < _INTEGERS_FROM else f"{value:,.0f}"
