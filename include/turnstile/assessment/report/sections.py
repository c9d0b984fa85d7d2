"""Parts of the assessment page: what an attacker learns, timetables, risk over weeks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from turnstile.assessment.assessment import Assessment
from turnstile.assessment.attacks.risk import counted
from turnstile.assessment.attacks.timetable_view import LISTED_MOST, MEANING, NOT_GIVEN
from turnstile.assessment.report.pictures import lines

INFINITE = "infinite"  # as the release card says
_CELLS_SHOWN = 40


def attacks(found: Assessment) -> str:
    """Show presence, differencing, reconstruction and membership."""
    threshold = any(event.threshold is not None for event in found.drawn.events)
    proof = (
        "Tables are thresholded: a released cell proves that it was not empty."
        if threshold
        else "No number proves that a cell was not empty: empty cells are noised like all others."
    )
    events = found.drawn.events
    guesses = ", ".join(
        f"{chance:.3f} for {counted(events, group)}" for group, chance in found.risk[0].guess_right
    )
    parts = [
        (
            f"<p>{proof} The best guess whether these were in a known cell of each "
            f"table, knowing all else, is right with {guesses} (0.5 by chance).</p>"
        ),
        _differencing(found),
    ]
    if found.reconstruction is not None:
        own = found.reconstruction
        parts.append(
            "<p>Of the cells of a small synthetic table with this noise, "
            f"{own.from_cells:.0%} are right by rounding, {own.from_least_squares:.0%} by least "
            f"squares over all margins, {own.from_linear_program:.0%} by linear program.</p>"
        )
    if found.membership is not None:
        shares = ", ".join(f"{share:.3f}" for share in found.membership)
        parts.append(
            "<p>How often it is guessed rightly whether a synthetic one of them, in the same cells "
            f"every week, is in the data, after one to {len(found.membership)} weeks: {shares} "
            "(0.5 by chance).</p>"
        )
    return "".join(parts)


def _differencing(found: Assessment) -> str:
    """Show what a total minus its parts tells."""
    if not found.differencing:
        return (
            "<p>No dense table is a total of another one, so no cell can be worked out as a total "
            "minus its other parts.</p>"
        )
    head = ("total", "parts", "mode", "noises", "cell from total, +- (95 %)", "cell itself, +-")
    rows = (
        (d.total, d.parts, d.mode, d.terms, f"{d.half_width_95:g}", f"{d.own_half_width_95:g}")
        for d in found.differencing
    )
    return (
        "<p>A cell can also be worked out as a total minus its other parts, whose noises add up: "
        f"compare that with what its own number tells.</p>{table(head, rows)}"
    )


def timetable(found: Assessment) -> str:
    """Show which public cells are one vehicle or one stop by a public timetable."""
    seen = found.timetable
    if seen is None:
        return f"<p>{escape(NOT_GIVEN)}</p>"
    parts = [f"<p>{escape(seen.statement)}.</p>"]
    if seen.exposures:
        shown = seen.exposures[:_CELLS_SHOWN]
        rows = [
            (
                one.cell.mode,
                one.cell.slot,
                one.cell.area,
                ", ".join(one.days),
                one.cell.trip_ids[0] if one.cell.is_one_vehicle else "several",
                one.cell.stop_ids[0] if one.cell.is_one_stop else "several",
            )
            for one in shown
        ]
        rest = len(seen.exposures) - len(shown)
        parts += [
            f"<p>{escape(MEANING)}</p>",
            table(("mode", "slot", "area", "days", "run (trip_id)", "stop (stop_id)"), rows),
            f"<p>And {rest:,} more; assessment.json lists the first {LISTED_MOST}.</p>"
            if rest
            else "",
        ]
    return "".join(parts)


def risk(found: Assessment) -> str:
    """Show the forecast as a table and a picture."""
    points: list[Mapping[str, float | str]] = [
        {"weeks": one.weeks, "chance": chance, "who": counted(found.drawn.events, group)}
        for one in found.risk
        for group, chance in one.guess_right
    ]
    picture = lines(
        points,
        x="weeks",
        y="chance",
        series="who",
        title="Best guess whether they come every week",
    )
    units = [str(unit) for unit, _ in found.risk[0].epsilon_by_unit]
    rows = [
        (
            one.weeks,
            *(f"{chance:.3f}" for _, chance in one.guess_right),
            f"{one.average_half_width_95:.2f}",
            *(INFINITE if e is None else f"{e:.4g}" for _, e in one.epsilon_by_unit),
        )
        for one in found.risk
    ]
    groups = [
        f"guess, {counted(found.drawn.events, group)}" for group, _ in found.risk[0].guess_right
    ]
    head = ("weeks", *groups, "steady cell, +- (95 %)", *(f"epsilon, one {u}" for u in units))
    return (
        "<p>For a programme that goes on as it is; recomputed by each release. Epsilon at delta "
        f"1e-6. A unit of a week or less is in one week only.</p>{picture}{table(head, rows)}"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    lines_of_rows = "".join(
        "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{lines_of_rows}</tbody></table>"
