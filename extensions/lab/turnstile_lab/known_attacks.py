"""Four attacks on counts that were noised, and what is left of them here."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np

from turnstile.assessment.attacks.presence import best_guess
from turnstile.assessment.attacks.timetable import StopEvent, exposed_cells
from turnstile.assessment.attacks.unit_changes import Change
from turnstile.assessment.report.pictures import axis, bars, lines
from turnstile.privacy.noise_families import NoiseFamily
from turnstile_lab.baselines import city, discrete_laplace, naive_laplace, uniforms
from turnstile_lab.lesson import SHARES, Lesson, chart, histogram, lesson
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


def reconstruction() -> Lesson:
    """Too many sums of the same cells: the exact table is solved for."""
    shares = {sums: _rebuilt(sums) for sums in _SUMS}
    title = "Cells of the table that are got exactly right"
    pictures = {
        sums: chart(bars, ("attack", "share"), title, SHARES, {f"{sums} sums": by_attack.items()})
        for sums, by_attack in shares.items()
    }
    figures = {f"{sums} sums": by_attack["least squares"] for sums, by_attack in shares.items()}
    return lesson("reconstruction", figures, pictures, _SUMS[-1])


def _rebuilt(sums: int) -> dict[str, float]:
    """Return the share of cells that are got exactly right by guessing and by solving."""
    truth = np.arange(_CELLS) ** 2 % 5
    groups = uniforms("groups", sums * _CELLS).reshape(sums, _CELLS) < _HALF
    published = groups @ truth + discrete_laplace("sums", sums, 2.0)
    solved, *_ = np.linalg.lstsq(groups.astype(np.float64), published, rcond=None)
    guess = np.full(_CELLS, np.median(truth))
    return {
        "one guess for all": float(np.mean(guess == truth)),
        "least squares": float(np.mean(np.rint(solved) == truth)),
    }


def membership() -> Lesson:
    """Small epsilons add up over a habit: a commuter is recognised by all weeks together."""
    figures: dict[str, float] = {}
    pictures = {}
    change = Change(NoiseFamily.DISCRETE_GAUSSIAN, Fraction(15), 1)
    title, up = "Best guess whether somebody is in the data", axis([0.5, 1.0])
    for trips in _TRIPS:
        chances = {weeks: best_guess(Counter({change: 2 * trips * weeks})) for weeks in _WEEKS}
        figures |= {f"{trips} trips {weeks} weeks": chance for weeks, chance in chances.items()}
        series = {f"{trips} trips a week": chances.items()}
        pictures[trips] = chart(lines, ("weeks", "chance"), title, up, series)
    return lesson("membership", figures, pictures, 10)


def timetable() -> Lesson:
    """A timetable shows which cells are one vehicle: its riders are a small, known group."""
    shares = {minutes: _exposed(minutes) for minutes in _SLOT_MINUTES}
    pictures = {
        minutes: chart(
            bars,
            ("hour", "share"),
            f"Served cells that are one vehicle, {minutes} minutes each",
            SHARES,
            {
                "cells with one vehicle": [
                    (f"{hour:02}", share) for hour, share in enumerate(hourly)
                ]
            },
        )
        for minutes, hourly in shares.items()
    }
    figures = {f"{minutes} minutes": float(np.mean(hourly)) for minutes, hourly in shares.items()}
    return lesson("timetable", figures, pictures, 5)


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
                events.append(StopEvent("bus", slot, place, f"{place} {line}", run))
    served = {(event.slot, event.area) for event in events}
    single = {(cell.slot, cell.area) for cell in exposed_cells(events) if cell.is_one_vehicle}
    return [
        len([c for c in single if int(c[0]) // 60 == hour])
        / max(1, len([c for c in served if int(c[0]) // 60 == hour]))
        for hour in range(24)
    ]


def matched_pairs() -> Lesson:
    """Two published counts of the same people: their difference is noise alone."""
    counts = city().ravel()[:_PAIRS]
    figures: dict[str, float] = {"pairs": _PAIRS}
    pictures = {}
    title, up = "Tap-ons at one wharf minus tap-offs at the other", axis([0, _PAIRS / 2])
    for scale in _FERRY_SCALES:
        on, off = (
            np.rint(counts + naive_laplace(f"{end} {scale}", counts.size, scale)).astype(np.int64)
            for end in ("on", "off")
        )
        estimate = from_pairs(on - off)
        figures[f"scale_{scale:g}"] = estimate.scale
        figures[f"low_{scale:g}"], figures[f"high_{scale:g}"] = estimate.low, estimate.high
        series = {f"recovered scale {estimate.scale:.2f}": histogram(on - off, _CUT)}
        pictures[scale] = chart(bars, ("difference", "pairs"), title, up, series)
    return lesson("matched_pairs", figures, pictures, 1.4)
