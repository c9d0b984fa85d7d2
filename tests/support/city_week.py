"""A made-up week of taps or buses in any form that an authority may deliver it in.

Buses move as fast as they say; a city is quiet at night: what units, clocks and words are told by.
"""

from __future__ import annotations

import csv
import io
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from turnstile.service_calendar import ServiceWeek

WEEK = ServiceWeek.parse("2016-W30")
ZONE = ZoneInfo("America/Chicago")
STOPS = tuple((f"s{n}", 30.2 + n / 200, -97.8 + n / 300) for n in range(12))
KMH = {"km/h": 1.0, "m/s": 1 / 3.6, "mph": 1 / 1.609344, "knots": 1 / 1.852}
DATES = {"YYYY-MM-DD": "%Y-%m-%d", "DD/MM/YYYY": "%d/%m/%Y", "MM/DD/YYYY": "%m/%d/%Y"}
EPOCHS = {"epoch_s": 1, "epoch_ms": 10**3, "epoch_us": 10**6, "epoch_ns": 10**9}


@dataclass(frozen=True)
class Form:
    """How a file is written.

    Args:
        times: `offset`, `naive`, or a unit since 1970.
        zone: of naive times.
        unit: of speeds.
        dates: of a column of dates beside one of times; empty for one column.
        words: of entering and leaving; empty for no column.
    """

    times: str = "naive"
    zone: ZoneInfo = ZONE
    unit: str = "km/h"
    dates: str = ""
    words: tuple[str, str] | tuple[()] = ("enter", "exit")
    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    titles: int = 0


@dataclass(frozen=True)
class Tap:
    """One tap; at the place -1 it names none."""

    card: str
    at: datetime
    place: int
    enters: bool
    mode: str = "bus"


@dataclass(frozen=True)
class Reading:
    """One observation of a bus."""

    bus: str
    at: datetime
    latitude: float
    longitude: float
    kmh: float


def taps(cards: int = 60, *, seed: int = 1, mode: str = "bus") -> list[Tap]:
    """Trips of cards on every day, by hours of Chicago, few at night."""
    chance = random.Random(seed)  # noqa: S311 - made-up taps
    records = []
    for day in WEEK.days:
        for card in range(cards):
            for hour in sorted(chance.sample(range(6, 23), 2)):
                clock = datetime(
                    day.year, day.month, day.day, hour, chance.randrange(40), 5, tzinfo=ZONE
                )
                at, name = clock.astimezone(UTC), f"{30850000 + card}"
                records.append(Tap(name, at, chance.randrange(12), enters=True, mode=mode))
                later = at + timedelta(minutes=15)
                records.append(Tap(name, later, chance.randrange(12), enters=False, mode=mode))
    return records


def readings(buses: int = 8, *, seed: int = 1, step_s: int = 30) -> list[Reading]:
    """Positions of buses that go along roads at the speed that they say, with stops."""
    chance = random.Random(seed)  # noqa: S311 - made-up positions
    records = []
    for day in WEEK.days:
        for bus in range(buses):
            hour = min(chance.randrange(5, 18), 28 - step_s // 20)  # it is home before the next
            begin = datetime(day.year, day.month, day.day, hour, tzinfo=ZONE)
            at, east, north = begin.astimezone(UTC), -97.75, 30.25
            angle = chance.uniform(0, 2 * math.pi)
            for _ in range(60):
                kmh = 0.0 if chance.random() < 0.2 else chance.uniform(22, 42)
                for _ in range(3):
                    records.append(
                        Reading(f"bus{bus}", at, north, east, kmh * chance.uniform(0.96, 1.04))
                    )
                    km = kmh * step_s / 3600
                    north += km * math.sin(angle) / 111.195
                    east += km * math.cos(angle) / (111.195 * math.cos(math.radians(north)))
                    at += timedelta(seconds=step_s)
                if math.hypot(north - 30.25, east + 97.75) > 0.1:
                    angle += math.pi / 2
    return records


def _instant(at: datetime, form: Form) -> str:
    if form.times in EPOCHS:
        return str(round(at.timestamp()) * EPOCHS[form.times])
    local = at.astimezone(form.zone)
    if form.times == "offset":
        return local.isoformat(timespec="seconds")
    return f"{local:%Y-%m-%d %H:%M:%S}"


def _number(value: float, form: Form) -> str:
    return f"{value:.6f}".replace(".", form.decimal)


def _rows_of_taps(records: Sequence[Tap], form: Form) -> Iterator[list[str]]:
    action = ["tipo"] if form.words else []
    yield [
        "id_tarjeta",
        *(["fecha", "hora"] if form.dates else ["momento"]),
        "parada",
        "modo",
        *action,
    ]
    for tap in records:
        local = tap.at.astimezone(form.zone)
        when = (
            [local.strftime(DATES[form.dates]), f"{local:%H:%M:%S}"]
            if form.dates
            else [_instant(tap.at, form)]
        )
        word = [form.words[0 if tap.enters else 1]] if form.words else []
        place = STOPS[tap.place][0] if tap.place >= 0 else ""
        yield [tap.card, *when, place, tap.mode, *word]


def _rows_of_readings(records: Sequence[Reading], form: Form) -> Iterator[list[str]]:
    yield ["coche", "momento", "latitud", "longitud", "velocidad", "observación"]
    for reading in records:
        where = [_number(reading.latitude, form), _number(reading.longitude, form)]
        speed = _number(reading.kmh * KMH[form.unit], form)
        yield [reading.bus, _instant(reading.at, form), *where, speed, "ñandú"]


def written(records: Sequence[Tap] | Sequence[Reading], form: Form) -> bytes:
    """A file of taps or of observations."""
    text = io.StringIO("Consorcio de transporte\n" * form.titles, newline="")
    text.seek(0, io.SEEK_END)
    rows = (
        _rows_of_taps(records, form)  # type: ignore[arg-type]
        if isinstance(records[0], Tap)
        else _rows_of_readings(records, form)  # type: ignore[arg-type]
    )
    csv.writer(text, delimiter=form.delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue().encode(form.encoding)


def stops_txt() -> str:
    """The public stops."""
    lines = [f"{name},{latitude},{longitude}" for name, latitude, longitude in STOPS]
    return "\n".join(["stop_id,stop_lat,stop_lon", *lines]) + "\n"


def roads_txt(east: float = -97.75) -> str:
    """Public stops along all roads that buses of `readings` take, around a longitude."""
    ways = range(-7, 8)
    lines = [f"r{a}.{b},{30.25 + a / 50:.2f},{east + b / 50:.2f}" for a in ways for b in ways]
    return "\n".join(["stop_id,stop_lat,stop_lon", *lines]) + "\n"


TAP_COLUMNS = {"card_id": "id_tarjeta", "place": "parada", "mode": "modo"}
BUS_COLUMNS = {
    "observed_at": "momento",
    "vehicle_id": "coche",
    "latitude": "latitud",
    "longitude": "longitud",
    "speed": "velocidad",
}
