"""Four attacks on counts that were noised, and what is left of them here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from turnstile.assessment.attacks.presence import best_guess
from turnstile.assessment.attacks.timetable import StopEvent, exposed_cells
from turnstile.assessment.attacks.unit_changes import Change
from turnstile.assessment.report.pictures import axis, bars, lines
from turnstile.privacy.noise_families import NoiseFamily
from turnstile_lab.baselines import city, discrete_laplace, naive_laplace, uniforms
from turnstile_lab.lesson import Figure, Lesson
from turnstile_lab.scale_of_pairs import from_pairs

_CELLS, _HALF = 60, 0.5
_SUMS = (90, 180, 360, 720, 1440)
_TRIPS = (1, 2, 5, 10)
_WEEKS = (1, 2, 4, 8, 13, 26, 39, 52)
_SLOT_MINUTES = (5, 15, 30, 60)
_DAY_MINUTES = 24 * 60
_FERRY_SCALES = (0.7, 1.4, 2.8)
_PAIRS = 400
_CUT = 12  # differences beyond are drawn here
Points = list[Mapping[str, float | str]]


def reconstruction() -> Lesson:
    """Too many sums of the same cells: the exact table is solved for."""
    shares_by_sums = {sums: _rebuilt(sums) for sums in _SUMS}
    frames = tuple(
        (
            str(sums),
            bars(
                [
                    {"attack": name, "share": share, "series": f"{sums} sums"}
                    for name, share in shares
                ],
                x="attack",
                y="share",
                title="Cells of the table that are got exactly right",
                y_axis=axis([0.0, 1.0]),
            ),
        )
        for sums, shares in shares_by_sums.items()
    )
    figures = {
        f"{sums} sums": dict(shares)["least squares"] for sums, shares in shares_by_sums.items()
    }
    return Lesson(
        "reconstruction",
        f"Sums over many groups of {_CELLS} cells, each with its own Laplace noise of scale 2",
        "minimise |A x - y|^2; A says which cells each sum holds; the error of a cell falls with "
        "the root of the number of sums (Dinur & Nissim 2003)",
        f"From {_SUMS[0]} sums {figures[f'{_SUMS[0]} sums']:.0%} of the cells are solved for "
        f"exactly, from {_SUMS[-1]} sums {figures[f'{_SUMS[-1]} sums']:.0%}, though every "
        "number has noise: what is harmless once is not harmless often.",
        "All tables of a week share one budget, so that more of them means more noise on each; "
        "every report tries this attack with the noise of its release.",
        figures,
        Figure("sums published", frames, len(_SUMS) - 1),
    )


def _rebuilt(sums: int) -> tuple[tuple[str, float], ...]:
    """Return the share of cells that are got exactly right by guessing and by solving."""
    truth = np.arange(_CELLS) ** 2 % 5
    groups = uniforms("groups", sums * _CELLS).reshape(sums, _CELLS) < _HALF
    published = groups @ truth + discrete_laplace("sums", sums, 2.0)
    solved, *_ = np.linalg.lstsq(groups.astype(np.float64), published, rcond=None)
    guess = np.full(_CELLS, np.median(truth))
    return (
        ("one guess for all", float(np.mean(guess == truth))),
        ("least squares", float(np.mean(np.rint(solved) == truth))),
    )


def membership() -> Lesson:
    """Small epsilons add up over a habit: a commuter is recognised by all weeks together."""
    frames, figures = [], {}
    for trips in _TRIPS:
        points: Points = []
        for weeks in _WEEKS:
            change = Change(NoiseFamily.DISCRETE_GAUSSIAN, Fraction(15), 1)
            chance = best_guess(Counter({change: 2 * trips * weeks}))
            figures[f"{trips} trips {weeks} weeks"] = chance
            points.append({"weeks": weeks, "chance": chance, "series": f"{trips} trips a week"})
        title = "Best guess whether somebody is in the data"
        picture = lines(points, x="weeks", y="chance", title=title, y_axis=axis([0.5, 1.0]))
        frames.append((str(trips), picture))
    return Lesson(
        "membership",
        "Every tap hidden by Gaussian noise of deviation 15, week after week",
        "P(right) = (1 + TV)/2 = Phi(sqrt(n) / (2 sigma)) for n cells changed by one "
        "(Neyman & Pearson 1933; normal approximation)",
        f"One trip in one week is guessed right {figures['1 trips 1 weeks']:.0%} of the time, "
        f"hardly better than a coin; ten trips a week for a year "
        f"{figures['10 trips 52 weeks']:.0%}.",
        "The loss is stated for the day, the week and the card, worked out over the year ahead, "
        "and capped in the ledger; the report says in words for whom a release hides nothing.",
        figures,
        Figure("trips a week", tuple(frames), _TRIPS.index(10)),
    )


def timetable() -> Lesson:
    """A timetable shows which cells are one vehicle: its riders are a small, known group."""
    shares = {minutes: _exposed(minutes) for minutes in _SLOT_MINUTES}
    frames = tuple(
        (
            str(minutes),
            bars(
                [
                    {"hour": f"{hour:02}", "share": share, "series": "cells with one vehicle"}
                    for hour, share in enumerate(hourly)
                ],
                x="hour",
                y="share",
                title=f"Served cells that are one vehicle, {minutes} minutes each",
                y_axis=axis([0.0, 1.0]),
            ),
        )
        for minutes, hourly in shares.items()
    )
    figures = {f"{minutes} minutes": float(np.mean(hourly)) for minutes, hourly in shares.items()}
    return Lesson(
        "timetable",
        "Counts by stop and five minutes, beside a public timetable",
        "cell (slot, place) -> runs that call there then; one run: the count is its passengers",
        f"Of the cells in which a made-up network serves a place, {figures['5 minutes']:.0%} are "
        f"one vehicle at five minutes a slot and {figures['60 minutes']:.0%} at an hour: the cell "
        "says which bus, and whoever saw one passenger board knows who is counted.",
        "Noise hides each passenger of the bus all the same; the report lists the cells that a "
        "timetable exposes, so that slots and places can be chosen with it.",
        figures,
        Figure("minutes of a slot", frames, _SLOT_MINUTES.index(5)),
    )


def _exposed(slot_minutes: int) -> list[float]:
    """Return, by hour, the share of served cells that are one vehicle, of five made-up lines."""
    events = []
    for line, headway in enumerate((7, 10, 15, 20, 30)):
        for start in range(5 * 60, _DAY_MINUTES, headway):
            is_night = not 6 * 60 <= start < 22 * 60
            if is_night and start % (3 * headway):
                continue
            for stop in range(6):
                minute = (start + 4 * stop) % _DAY_MINUTES
                place = f"p{(line + stop) % 8}"
                slot = f"{minute // slot_minutes * slot_minutes:04}"
                run = f"{line}-{start}"
                events.append(StopEvent("bus", slot, place, f"{place} {line}", run, str(line)))
    served = {(event.slot, event.area) for event in events}
    single = {(cell.slot, cell.area) for cell in exposed_cells(events) if cell.is_one_vehicle}
    return [
        len([c for c in single if int(c[0]) // 60 == hour])
        / max(1, len([c for c in served if int(c[0]) // 60 == hour]))
        for hour in range(24)
    ]


def matched_pairs() -> Lesson:
    """Two published counts of the same people: their difference is noise alone."""
    frames, figures = [], {}
    counts = city().ravel()[:_PAIRS]
    for scale in _FERRY_SCALES:
        on, off = (
            np.rint(counts + naive_laplace(f"{end} {scale}", counts.size, scale)).astype(np.int64)
            for end in ("on", "off")
        )
        estimate = from_pairs(on - off)
        figures[f"scale_{scale:g}"] = estimate.scale
        figures[f"low_{scale:g}"], figures[f"high_{scale:g}"] = estimate.low, estimate.high
        values, times = np.unique(np.clip(on - off, -_CUT, _CUT), return_counts=True)
        points: Points = [
            {
                "difference": int(v),
                "pairs": int(n),
                "series": f"recovered scale {estimate.scale:.2f}",
            }
            for v, n in zip(values, times, strict=True)
        ]
        title = "Tap-ons at one wharf minus tap-offs at the other"
        picture = bars(points, x="difference", y="pairs", title=title, y_axis=axis([0, _PAIRS / 2]))
        frames.append((f"{scale:g}", picture))
    return Lesson(
        "matched_pairs",
        "Tap-ons and tap-offs of a point-to-point ferry, each noised, parameters kept secret",
        "on - off = Z_1 - Z_2; the likeliest b of the difference of two rounded Laplace noises "
        "(Culnane, Rubinstein & Teague 2017, section 2)",
        f"Everybody who boards at one wharf leaves at the other, so {_PAIRS} differences hold "
        f"noise alone: a secret scale of 1.4 is recovered as {figures['scale_1.4']:.2f} (95 %: "
        f"{figures['low_1.4']:.2f} to {figures['high_1.4']:.2f}).",
        "The noise is declared on every release card: nothing rests on its parameters being "
        "secret, and both tables are paid for.",
        figures,
        Figure("scale of the noise", tuple(frames), _FERRY_SCALES.index(1.4)),
    )
