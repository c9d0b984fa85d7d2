"""The public timetable that positions of vehicles are held against: calls at stops, by trip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from math import cos, radians
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    import pandas as pd

_NOON, _HALF_DAY = time(12), timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Call:
    """A scheduled call: so many seconds after a day's noon less twelve hours, as in GTFS."""

    trip: str
    service: str
    stop: str
    latitude: float
    longitude: float
    second: int


@dataclass(frozen=True, slots=True)
class ScheduledCalls:
    """A timetable on some days.

    Args:
        sha256: of what it was read from.
        calls: columns trip, service, stop, latitude, longitude, narrowing (the cosine of the
            latitude), second.
        runs: columns service, run_date, zero_utc (naive): when second 0 of a day's trips is.
    """

    sha256: str
    calls: pd.DataFrame
    runs: pd.DataFrame


def scheduled_calls(
    call_rows: Iterable[Call], services_on: Iterable[tuple[str, date]], zone: ZoneInfo, sha256: str
) -> ScheduledCalls:
    """Return calls and days as tables.

    Args:
        call_rows: calls.
        services_on: pairs of a service and a day that it runs on.
        zone: the agency's time zone.
        sha256: of what they were read from.
    """
    import pandas as pd

    calls = pd.DataFrame(list(call_rows), columns=list(Call.__dataclass_fields__))
    calls["narrowing"] = [cos(radians(degrees)) for degrees in calls["latitude"]]
    runs = [(service, day, zero_of_day(day, zone)) for service, day in services_on]
    return ScheduledCalls(
        sha256, calls, pd.DataFrame(runs, columns=["service", "run_date", "zero_utc"])
    )


def zero_of_day(day: date, zone: ZoneInfo) -> datetime:
    """Return from when a day's times are counted: noon less twelve hours, in UTC, naive.

    Midnight, but on the two days a year on which the clock changes.

    Examples:
        >>> zero_of_day(date(2015, 3, 8), ZoneInfo("America/Chicago")).isoformat()
        '2015-03-08T05:00:00'
    """
    noon = datetime.combine(day, _NOON, zone).astimezone(UTC).replace(tzinfo=None)
    return noon - _HALF_DAY
