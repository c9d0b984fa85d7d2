"""A timetable for made-up readings: each of them is a call, as early or late as it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date

from turnstile.programme.fields import STOP
from turnstile.programme.gtfs.scheduled_calls import Call, ScheduledCalls, scheduled_calls
from turnstile.programme.spec import Programme
from turnstile.sources.feeds.made_records import MadeReading
from turnstile.sources.feeds.stop_approaches import APART_S

_SERVICE = "daily"


def on_trips(readings: Iterable[MadeReading]) -> list[MadeReading]:
    """Return readings, each on the trip of the timetable that calls where and when it is made."""
    return [replace(reading, trip=_trip_of(reading)) for reading in readings]


def made_timetable(
    programme: Programme, readings: Iterable[MadeReading], days: Sequence[date]
) -> ScheduledCalls:
    """Return a timetable by which each reading is a call, late as it says, by an hour at most.

    Args:
        programme: its time zone.
        readings: with their trips.
        days: all trips run on each.
    """
    calls = {
        reading.trip: Call(
            reading.trip,
            _SERVICE,
            _stop_of(reading),
            reading.latitude,
            reading.longitude,
            reading.second - max(-APART_S, min(APART_S, reading.delay_s)),
        )
        for reading in readings
    }
    runs = [(_SERVICE, day) for day in days]
    return scheduled_calls(calls.values(), runs, programme.time.zone, "made up")


def _trip_of(reading: MadeReading) -> str:
    """Name a trip of one call."""
    place = f"{reading.latitude} {reading.longitude}"
    return f"{place} {reading.second} {reading.delay_s} {_stop_of(reading)}"


def _stop_of(reading: MadeReading) -> str:
    """Return the stop that a reading is meant to be at."""
    return dict(reading.categories).get(STOP, "a stop")
