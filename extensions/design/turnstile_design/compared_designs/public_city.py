"""A city that needs no data: what designs are compared on before any row is touched.

Either made up, with sizes of places, commuters' peaks and weekends of its own, or the published
estimates of one week, taken as the truth. Weeks vary about it as weeks of the trains of 2016 do:
locations by 5 %, days by 4 %, slots by 3 %, counts as counts do (docs/ESTIMATES.md). Deviates are
public and the same every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from turnstile.errors import InputError
from turnstile.estimates.fitting.fission import public_normals
from turnstile.estimates.roll_ups import MINUTES_PER_HOUR
from turnstile.programme.domain.public_domain import UNKNOWN, Place, PublicDomain
from turnstile.programme.fields import TAPS
from turnstile.publishing.package_reader import Tables
from turnstile.service_calendar import DAYS_PER_WEEK

Floats = NDArray[np.float64]
SLOT = TAPS[0][0]
WEEKS = 8  # one to estimate and seven earlier ones
WOBBLE = (0.05, 0.04, 0.03)  # of locations, days, slots
_SKEW, _HEAD = 0.9, 3.0  # the n-th largest stop has a share of 1 / (n + 3)^0.9
_WEEKDAYS, _WEEKEND_PEAK, _WEEKEND_REST = 5, 0.25, 0.8
_PEAKS = ((8.0, 0.9), (17.5, 1.2))  # hours, and their spread
_OPEN = (5.0, 24.0)
_QUARTER = 15  # minutes: of a longer slot each counts
_REST = 0.25
_ANSCOMBE = 3 / 8
_SMALL, _LARGEST = 10.0, 60  # counts


@dataclass(frozen=True, slots=True, eq=False)
class PublicCity:
    """Tap-ons of one mode by stop.

    Args:
        described: where it comes from.
        hours: start of each slot.
        stops: the finest places that are known, with the areas of the programme as written.
        weeks: counts, the week to be estimated first; each of shape (stops, days, slots).
        last_year: rates of the year before, same shape: what an old table would say.
    """

    described: str
    hours: Floats
    stops: tuple[Place, ...]
    weeks: tuple[Floats, ...]
    last_year: Floats


def made_city(domain: PublicDomain, mode: str, trips: int, *, slot_minutes: int) -> PublicCity:
    """Return a made-up city on a programme's own stops and slots.

    Args:
        domain: public cells of trips.
        mode: whose stops are meant.
        trips: tap-ons of the mode in a week.
        slot_minutes: length of a slot.
    """
    stops = tuple(place for place in domain.places if place.mode == mode)
    hours = _hours(domain, mode)
    ranks = np.argsort(np.argsort(public_normals(f"{mode}/ranks", (len(stops),))))
    size = 1 / (_HEAD + ranks) ** _SKEW
    homes = (np.arange(len(stops)) * 0.618) % 1
    quarters = hours[:, None] + np.arange(0, slot_minutes, _QUARTER) / MINUTES_PER_HOUR
    out, back = (
        np.exp(-(((quarters - at) / spread) ** 2) / 2).sum(axis=1) for at, spread in _PEAKS
    )
    rest = _REST * ((quarters >= _OPEN[0]) & (quarters < _OPEN[1])).sum(axis=1)
    is_weekday = np.arange(DAYS_PER_WEEK) < _WEEKDAYS
    peaks = homes[:, None] * out + (1 - homes[:, None]) * back
    shape = (
        peaks[:, None] * np.where(is_weekday, 1.0, _WEEKEND_PEAK)[None, :, None]
        + rest * np.where(is_weekday, 1.0, _WEEKEND_REST)[None, :, None]
    )
    rates = size[:, None, None] * shape
    described = f"a made city of {len(stops)} stops ({mode}) with {trips:,} tap-ons a week"
    return _varied(described, hours, stops, rates * trips / rates.sum())


def published_city(package: Path, domain: PublicDomain, mode: str) -> PublicCity:
    """Return the city that a published package's estimates show; its locations are the stops.

    Raises:
        InputError: the package has no estimates of these cells.
    """
    try:
        rows = Tables(package).rows("location_slot").to_pandas()
        if "mode" not in rows and domain.modes == (mode,):
            rows["mode"] = mode  # of which alone a package says nothing
        tap_ons = rows[(rows["mode"] == mode) & (rows["tap"] == "on")]
        if tap_ons.empty:
            raise KeyError(mode)
        table = tap_ons.pivot_table(
            index="location", columns=["service_date", "slot"], values="value", observed=True
        )
        names = sorted({place.area for place in domain.places if place.mode == mode})
        days = sorted(set(tap_ons["service_date"]))
        wanted = pd.MultiIndex.from_product([days, slots_of(domain, mode)])
        rates = table.reindex(index=names, columns=wanted).to_numpy(dtype=np.float64)
        if np.isnan(rates).any():
            raise KeyError(mode)  # another grain, or a gap
        rates = rates.reshape(len(names), len(days), -1)
    except (OSError, KeyError, InputError) as error:
        rule = f"has no estimates of {mode} for all slots, days and locations of the programme"
        raise InputError(where=str(package), field="--published", rule=rule) from error
    stops = tuple(Place(mode, name, name) for name in names)
    described = f"the published estimates of {package.name} ({mode})"
    return _varied(described, _hours(domain, mode), stops, rates)


def slots_of(domain: PublicDomain, mode: str) -> tuple[str, ...]:
    """Return the labels of a mode's slots, without UNKNOWN."""
    return tuple(label for label in domain.dimension(mode, SLOT).labels if label != UNKNOWN)


def _hours(domain: PublicDomain, mode: str) -> Floats:
    """Return the start of each slot in hours."""
    return np.array([int(slot[:2]) + int(slot[3:5]) / 60 for slot in slots_of(domain, mode)])


def _varied(described: str, hours: Floats, stops: Sequence[Place], rates: Floats) -> PublicCity:
    """Return weeks about rates, and rates of the year before, which differ by twice as much."""
    weeks = tuple(_counts(_about(rates, f"week {n}"), f"week {n}") for n in range(WEEKS))
    last_year = _about(rates, "last year", times=2.0)
    return PublicCity(described, hours, tuple(stops), weeks, last_year)


def _about(rates: Floats, seed: str, *, times: float = 1.0) -> Floats:
    """Return rates whose locations, days and slots vary."""
    varied = rates
    for axis, wobble in enumerate(WOBBLE):
        shape = [1, 1, 1]
        shape[axis] = rates.shape[axis]
        deviates = public_normals(f"{seed}/axis {axis}", tuple(shape))
        varied = varied * np.exp(times * wobble * deviates)
    return varied


def _counts(rates: Floats, seed: str) -> Floats:
    """Return Poisson counts of these rates: by inversion where small, else by the stable root."""
    deviates = public_normals(f"{seed}/counts", rates.shape)
    root = np.sqrt(rates + _ANSCOMBE) + deviates / 2
    counts: Floats = np.rint(np.maximum(root**2 - _ANSCOMBE, 0))
    is_small = rates < _SMALL
    counts[is_small] = _inverted(rates[is_small], ndtr(deviates[is_small]))
    return counts


def _inverted(rates: Floats, chances: Floats) -> Floats:
    """Return the least counts whose Poisson distribution reaches these chances."""
    counts = np.zeros(rates.size)
    left, term = np.arange(rates.size), np.exp(-rates)
    reached = term.copy()
    for count in range(1, _LARGEST):
        is_beyond = chances[left] > reached
        left, term, reached = left[is_beyond], term[is_beyond], reached[is_beyond]
        if not left.size:
            break
        counts[left] = count
        term = term * rates[left] / count
        reached = reached + term
    return counts
