"""Made-up Opal trips: cards that travel out and back, with two weekday peaks and skewed places.

Calibrated to Transport for NSW, "Opal Patronage" (open data, CC-BY 4.0), 17 June to 14 July 2024:
shares of modes and of days of the week in the published tap-ons, and the hours of the two peaks.
About 2 % of the tap-offs are UNKNOWN, as Culnane, Rubinstein and Teague (2017) describe them.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from turnstile.errors import InputError
from turnstile.service_calendar import MINUTES_PER_DAY, ServiceWeek
from turnstile_samples.corruption import MISSING, Corruption, Rows, corrupt_days, some_of

CORRUPTIONS = tuple(kind for kind in Corruption if kind is not Corruption.WRONG_UNIT)
MODES = ("bus", "ferry", "light_rail", "train")
UNKNOWN_MODE = len(MODES)  # code that is written as a mode that no programme has
_MODE_SHARES = (0.381, 0.025, 0.064, 0.530)
_DAY_SHARES = (0.152, 0.167, 0.170, 0.172, 0.158, 0.102, 0.079)
_RIDE_MINUTES = (22, 24, 15, 34)  # mean per mode
_TRIPS_A_DAY = np.arange(1, 25)
_TRIPS_SHARES = np.array([0.22, 0.56, 0.09, 0.08, *(0.05 / 2.0**n for n in range(20))])
_TRIPS_PER_CARD_WEEK = 4
_DRAWS_OF_A_CARD = 60  # at most; in a sample of a few rows a card may have a day twice even then
_SHARE_UNKNOWN = 0.02
_SHARE_NIGHT = 0.015
_PLACE_SEED = 20160725  # which places are busy does not change with the seed
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Places:
    """Public places of each mode, in the order of `MODES`.

    Args:
        names: names of all places.
        first: index in `names` of the first place of each mode, and at the end their number.
    """

    names: tuple[str, ...]
    first: tuple[int, ...]


def read_places(path: Path) -> Places:
    """Read the public lookup of locations (`mode,location,...`).

    Raises:
        InputError: the file is missing, or a mode has no place in it.
    """
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            listed = [(row["mode"], row["location"]) for row in csv.DictReader(stream)]
    except (OSError, KeyError):
        rule = "the public file of locations is not there or lacks the columns mode, location"
        raise InputError(where=path.name, field="mode, location", rule=rule) from None
    names: list[str] = []
    first = [0]
    for mode in MODES:
        names += [location for listed_mode, location in listed if listed_mode == mode]
        first.append(len(names))
        if first[-1] == first[-2]:
            raise InputError(
                where=path.name, field="mode", rule=f"no place of mode {mode} is there"
            )
    return Places(tuple(names), tuple(first))


def opal_rows(
    week: ServiceWeek, rows: int, seed: int, *, places: Places, corruptions: frozenset[Corruption]
) -> Rows:
    """Return one week of trips in coded columns of equal length, int64.

    Args:
        week: service week.
        rows: trips of a clean week.
        seed: any integer; cards keep their habits over the weeks of one seed.
        places: public places.
        corruptions: ways to spoil the rows.
    """
    rng = np.random.default_rng([seed, week.iso_year, week.iso_week])
    trips = _trips(rows, seed, places, rng)
    order = np.lexsort((trips["on_minute"], trips["day"]))
    trips = {name: values[order] for name, values in trips.items()}
    if Corruption.NULLS in corruptions:
        trips["card"][some_of(trips, rng)] = MISSING
    if Corruption.OUTLIERS in corruptions:
        spoiled = some_of(trips, rng)
        trips["off_minute"][spoiled] = trips["on_minute"][spoiled] - 90
        trips["off_place"][spoiled] = trips["on_place"][spoiled]
    if Corruption.UNKNOWN_MODE in corruptions:
        trips["mode"][some_of(trips, rng)] = UNKNOWN_MODE
    return corrupt_days(trips, corruptions, rng)


def _trips(rows: int, seed: int, places: Places, rng: np.random.Generator) -> Rows:
    """Clean trips, one card-day after the other."""
    per_card_day = _truncated(rng.choice(_TRIPS_A_DAY, size=rows, p=_shares(_TRIPS_SHARES)), rows)
    card_days = len(per_card_day)
    of = np.repeat(np.arange(card_days), per_card_day)
    turn = np.arange(rows) - np.repeat(np.cumsum(per_card_day) - per_card_day, per_card_day)
    day = rng.choice(len(_DAY_SHARES), size=card_days, p=_shares(_DAY_SHARES))
    card = _cards(rows, seed, day, rng)
    mode = rng.choice(len(MODES), size=card_days, p=_shares(_MODE_SHARES))
    home, away = (_places_of(mode, places, rng) for _ in range(2))
    is_last = (turn == per_card_day[of] - 1) & (turn > 0)
    on_minute = _minutes(day[of], turn == 0, is_last, rng)
    on_minute = on_minute[np.lexsort((on_minute, of))]
    ride = 1 + rng.gamma(3.0, np.array(_RIDE_MINUTES)[mode[of]] / 3.0).astype(np.int64)
    is_way_out = turn % 2 == 0
    off_place = np.where(is_way_out, away[of], home[of])
    off_place[rng.random(rows) < _SHARE_UNKNOWN] = MISSING
    return {
        "card": card[of],
        "mode": mode[of],
        "day": day[of].copy(),
        "file_day": day[of],
        "on_minute": on_minute,
        "on_place": np.where(is_way_out, home[of], away[of]),
        "off_minute": on_minute + ride,
        "off_place": off_place,
    }


def _shares(weights: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Scale weights to sum to 1."""
    array = np.asarray(weights, dtype=np.float64)
    shares: npt.NDArray[np.float64] = array / array.sum()
    return shares


def _truncated(per_card_day: Ints, rows: int) -> Ints:
    """Keep as many card-days as make up the rows, the last one shortened."""
    ends = np.cumsum(per_card_day)
    last = int(np.searchsorted(ends, rows))
    kept = per_card_day[: last + 1].copy()
    kept[-1] -= ends[last] - rows
    return kept


def _cards(rows: int, seed: int, day: Ints, rng: np.random.Generator) -> Ints:
    """Draw the card of each card-day; some cards travel on more days than others, every week.

    A card that has the day already is drawn again: its trips of a day are those of one card-day.
    """
    cards = max(1, rows // _TRIPS_PER_CARD_WEEK)
    habit = np.random.default_rng([seed, cards]).lognormal(0.0, 0.6, size=cards)
    card, chance = np.empty(len(day), dtype=np.int64), np.cumsum(_shares(habit))
    is_taken = np.zeros(cards * len(_DAY_SHARES), dtype=np.bool_)
    left = np.arange(len(day))
    for _ in range(_DRAWS_OF_A_CARD):
        card[left] = np.searchsorted(chance, rng.random(len(left))).clip(0, cards - 1)
        cells = card[left] * len(_DAY_SHARES) + day[left]
        is_new = np.zeros(len(left), dtype=np.bool_)
        is_new[np.unique(cells, return_index=True)[1]] = True
        is_new &= ~is_taken[cells]
        is_taken[cells] = True
        left = left[~is_new]
    return card


def _places_of(mode: Ints, places: Places, rng: np.random.Generator) -> Ints:
    """Draw a place for each card-day: a few places of each mode are busy, most are not."""
    drawn = np.empty(len(mode), dtype=np.int64)
    fixed = np.random.default_rng(_PLACE_SEED)
    for code in range(len(MODES)):
        first, count = places.first[code], places.first[code + 1] - places.first[code]
        weights = 1.0 / (3.0 + fixed.permutation(count)) ** 0.9
        of_mode = np.flatnonzero(mode == code)
        drawn[of_mode] = first + rng.choice(count, size=len(of_mode), p=_shares(weights))
    return drawn


def _minutes(
    day: Ints,
    is_first: npt.NDArray[np.bool_],
    is_last: npt.NDArray[np.bool_],
    rng: np.random.Generator,
) -> Ints:
    """Draw tap-on minutes: peaks at 8 and at 17:15 on weekdays, one flat hump at weekends."""
    count = len(day)
    minutes = rng.normal(795.0, 235.0, size=count)
    in_peak = (day < 5) & (rng.random(count) < 0.62)  # noqa: PLR2004 - Saturday is 5
    minutes = np.where(in_peak & is_first, rng.normal(482.0, 50.0, size=count), minutes)
    minutes = np.where(in_peak & is_last, rng.normal(1035.0, 75.0, size=count), minutes)
    at_night = rng.random(count) < _SHARE_NIGHT
    minutes = np.where(at_night, rng.integers(1350, 1500, size=count) % MINUTES_PER_DAY, minutes)
    return np.where(at_night, minutes, minutes.clip(250, 1439)).astype(np.int64)
