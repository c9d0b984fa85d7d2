"""Pictures of the budget page as SVG: no scripts, no fonts, colors from the page's style sheet.

Every picture has a title that says in words what it shows, for those who cannot see it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from turnstile.ledger.amounts import amount_text, cap_text
from turnstile.ledger.forecast import CapForecast

_WIDTH = 720
_FRAME = (64, 12, 640, 120)  # left, top, width, height
_SHADES = 9
_WHOLE_FROM = 100  # no decimals from here on


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a map: where it lies, or its outline, and what is told of it."""

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


def document(title: str, size: tuple[int, int], body: str) -> str:
    """Wrap shapes into an SVG element with a title."""
    width, height = size
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'width="{width}" height="{height}"><title>{escape(title)}</title>{body}</svg>'
    )


def burn_down(one: CapForecast) -> str:
    """Draw what is left of a cap that fills up, week by week, with its forecast dashed."""
    left, top, width, height = _FRAME
    name = one.coordinate.partition("_")[0]
    most = max(one.limit, 1)
    spots = [
        (week, left + width * n / max(1, len(one.path) - 1), top + height * min(1, taken / most))
        for n, (week, taken) in enumerate(one.path)
    ]
    past = [(x, y) for week, x, y in spots if week < one.from_week]
    ahead = [past[-1], *((x, y) for week, x, y in spots if week >= one.from_week)] if past else []
    end = f"reached in {one.reached_in}" if one.reached_in else "not reached at this rate"
    title = f"{one.family}: {name} left for one {cap_text(one.cap)}; cap {end}"
    foot = top + height
    body = (
        f'<path class="axis" d="M{left} {top}v{height}h{width}"/>'
        f'<path class="axis cap" d="M{left} {top}h{width}"/>'
        f"{_label((left - 6, top + 8), amount_text(name, one.limit), 'end')}"
        f"{_label((left - 6, foot), '0', 'end')}"
        f"{_polyline(past, 'line')}{_polyline(ahead, 'line forecast')}{_now(one, past)}"
        f"{_label((left, foot + 16), one.path[0][0])}"
        f"{_label((left + width, foot + 16), one.path[-1][0], 'end')}"
    )
    return document(title, (_WIDTH, height + 36), body)


def _now(one: CapForecast, past: Sequence[tuple[float, float]]) -> str:
    """Mark the last week that is no forecast, and say what it leaves."""
    if not past:
        return ""
    (x, y), name = past[-1], one.coordinate.partition("_")[0]
    week, taken = [told for told in one.path if told[0] < one.from_week][-1]
    words = f"{amount_text(name, max(0, one.limit - taken))} left after {week}; then the forecast"
    left, top, width, height = _FRAME
    is_late = x > left + width / 2
    # Away from the line: below it while much is left, above it once little is.
    place = (x, top + height - 8 if y < top + height / 2 else top + 16)
    dot = f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
    return dot + _label(place, words, "end" if is_late else "start")


def _label(place: tuple[float, float], words: str, anchor: str = "start") -> str:
    """Write words at a place."""
    x, y = place
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def gauge(spent: int, held: int, cap: int, title: str) -> str:
    """Draw spent and held against a cap as one bar."""
    width = 240
    scale = width / max(cap, spent + held, 1)
    body = (
        f'<rect class="left" width="{width}" height="14"/>'
        f'<rect class="spent" width="{spent * scale:.1f}" height="14"/>'
        f'<rect class="held" x="{spent * scale:.1f}" width="{held * scale:.1f}" height="14"/>'
    )
    return document(title, (width, 14), body)


def map_of(places: Sequence[Place], title: str) -> str:
    """Draw places where they lie, darker for more; hatched where the noise may explain it all."""
    points = [point for place in places for point in place.outline]
    if not points:
        return document(f"{title}: no places", (_WIDTH, 40), "")
    west, east = min(x for x, _ in points), max(x for x, _ in points)
    south, north = min(y for _, y in points), max(y for _, y in points)
    middle = (south + north) / 2
    stretch = max(0.1, math.cos(math.radians(middle)))
    scale = min((_WIDTH - 40) / max(1e-9, (east - west) * stretch), 420 / max(1e-9, north - south))
    height = int((north - south) * scale) + 40
    most = max((place.value or 0 for place in places), default=0) or 1.0
    shapes = "".join(
        _shape(
            place,
            [
                (20 + (x - west) * stretch * scale, 20 + (north - y) * scale)
                for x, y in place.outline
            ],
            most,
        )
        for place in places
    )
    return document(title, (_WIDTH, height), shapes)


def _shape(place: Place, spots: Sequence[tuple[float, float]], most: float) -> str:
    """Draw one place with what it says when pointed at or focused."""
    told = f"{place.name}: {_number(place.value)} ± {_number(1.96 * place.deviation)}"
    css = "withheld" if place.value is None else f"shade s{_shade(place.value, most)}"
    if place.value is not None and abs(place.value) < 2 * place.deviation:
        css += " uncertain"
    if len(spots) == 1:
        (x, y), radius = spots[0], 3 + 9 * max(0.0, (place.value or 0) / most) ** 0.5
        shape = f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
        return f"{shape}<title>{escape(told)}</title></circle>"
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    return f'<polygon class="{css}" points="{corners}"><title>{escape(told)}</title></polygon>'


def heat_map(rows: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[str, str], Bar],
             title: str) -> str:  # fmt: skip
    """Draw a table as a grid of shades, one row a name."""
    left, side = 90, 18
    wide = max(3.0, (_WIDTH - left) / max(1, len(columns)))
    most = max((bar.value or 0 for bar in cells.values()), default=0) or 1.0
    parts = []
    for n, row in enumerate(rows):
        y = n * side
        parts.append(f'<text x="{left - 6}" y="{y + 13}" text-anchor="end">{escape(row)}</text>')
        for m, column in enumerate(columns):
            bar = cells.get((row, column))
            if bar is None:
                continue
            css = "withheld" if bar.value is None else f"shade s{_shade(bar.value, most)}"
            told = f"{row}, {column}: {_number(bar.value)} ± {_number(1.96 * bar.deviation)}"
            parts.append(
                f'<rect class="{css}" x="{left + m * wide:.1f}" y="{y}" width="{wide:.1f}" '
                f'height="{side - 1}"><title>{escape(told)}</title></rect>'
            )
    if columns:
        y = len(rows) * side + 14
        parts.append(f'<text x="{left}" y="{y}">{escape(columns[0])}</text>')
        end = f'<text x="{_WIDTH}" y="{y}" text-anchor="end">{escape(columns[-1])}</text>'
        parts.append(end)
    return document(title, (_WIDTH, len(rows) * side + 22), "".join(parts))


def error_bars(bars: Sequence[Bar], title: str) -> str:
    """Draw numbers as columns with bars of 95 % (1.96 standard deviations)."""
    left, top, width, height = _FRAME
    highest = [(bar.value or 0) + 1.96 * bar.deviation for bar in bars]
    most = max([*highest, 1e-9])
    wide = width / max(1, len(bars))
    parts = [f'<path class="axis" d="M{left} {top}v{height}h{width}"/>']
    for n, bar in enumerate(bars):
        if bar.value is None:
            continue
        x = left + (n + 0.5) * wide
        size = height * max(0.0, bar.value) / most
        half = height * 1.96 * bar.deviation / most
        middle = top + height - size
        told = f"{bar.name}: {_number(bar.value)} ± {_number(1.96 * bar.deviation)}"
        low, high = min(top + height, middle + half), max(top, middle - half)
        parts.append(
            f'<rect class="column" x="{x - wide * 0.4:.1f}" y="{middle:.1f}" '
            f'width="{wide * 0.8:.1f}" height="{size:.1f}"><title>{escape(told)}</title></rect>'
            f'<path class="error" d="M{x:.1f} {high:.1f}V{low:.1f}"/>'
        )
    parts.append(
        f'<text x="{left - 6}" y="{top + 8}" text-anchor="end">{_number(most)}</text>'
        f'<text x="{left}" y="{top + height + 16}">{escape(bars[0].name if bars else "")}</text>'
        f'<text x="{left + width}" y="{top + height + 16}" text-anchor="end">'
        f"{escape(bars[-1].name if bars else '')}</text>"
    )
    return document(title, (_WIDTH, height + 36), "".join(parts))


def verdicts(rules: Sequence[str], weeks: Sequence[str], found: Mapping[tuple[str, str], str],
             title: str) -> str:  # fmt: skip
    """Draw rule by week: pass, warn, fail or broken, by color and by letter."""
    left, side = 200, 18
    parts = []
    for n, rule in enumerate(rules):
        y = n * side
        parts.append(f'<text x="{left - 6}" y="{y + 13}" text-anchor="end">{escape(rule)}</text>')
        for m, week in enumerate(weeks):
            verdict = found.get((rule, week))
            if verdict is None:
                continue
            x = left + m * side
            parts.append(
                f'<rect class="verdict {escape(verdict)}" x="{x}" y="{y}" width="{side - 1}" '
                f'height="{side - 1}"><title>{escape(f"{rule}, {week}: {verdict}")}</title></rect>'
            )
            if verdict != "pass":
                letter = verdict[0].upper()
                middle = x + (side - 1) / 2
                spot = f'x="{middle}" y="{y + 13}" text-anchor="middle"'
                parts.append(f'<text class="on" {spot}>{letter}</text>')
    if weeks:
        y = len(rules) * side + 14
        parts.append(f'<text x="{left}" y="{y}">{escape(weeks[0])} to {escape(weeks[-1])}</text>')
    size = (max(_WIDTH, left + side * len(weeks)), len(rules) * side + 22)
    return document(title, size, "".join(parts))


def _polyline(points: Sequence[tuple[float, float]], css: str) -> str:
    """Draw a line through points."""
    if not points:
        return ""
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path class="{css}" d="M{path}"/>'


def _shade(value: float, most: float) -> int:
    """Return a shade from 0 to 9."""
    return max(0, min(_SHADES, round(_SHADES * math.sqrt(max(0.0, value) / most))))


def _number(value: float | None) -> str:
    """Write a number with the digits that matter, or say that it is withheld."""
    if value is None:
        return "withheld"
    return f"{value:,.3g}" if abs(value) < _WHOLE_FROM else f"{value:,.0f}"
