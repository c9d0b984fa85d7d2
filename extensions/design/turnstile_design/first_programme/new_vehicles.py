"""What a first programme of vehicles measures: by the columns of the file and the public feed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from zoneinfo import ZoneInfo

from turnstile.errors import InputError
from turnstile.programme.domain.gtfs_lists import ListOf, NamedBy, list_csv
from turnstile.programme.domain.public_sources import read_stops
from turnstile.programme.fields import STOP
from turnstile.programme.gtfs.feed import read_feed
from turnstile.programme.gtfs.timetable import fault_of
from turnstile.programme.source_spec import Feed
from turnstile_design.first_programme.delivered_columns import Delivery

_SPEED = "speed:   {by: [slot, cell], measure: mean_speed, clamp_kmh: 65}"
_HEADWAY = "headway: {by: [slot, cell], measure: headway}"
_DELAY = "delay:   {by: [slot, cell], measure: mean_delay, clamp_minutes: 20}"
_FULL = "full:    {by: [slot, cell], measure: occupancy, at_least: [STANDING_ROOM_ONLY, FULL]}"
_ABOUT_DELAYS = {
    "stated": "by what records state",
    "timetable": "at stops, by the public timetable",
}


@dataclass(frozen=True, slots=True)
class VehicleMeasures:
    """Tables of vehicles, and the public files beside them.

    Args:
        tables: lines of the section.
        shares: pairs (draw, its share), adding up to 1.
        delays: how they are told, in words; why not, where they are not.
        timetable: content of the feed that delays are worked out by; None if by none.
        lists: triples (category, column that it is to be read from if not from its own, text of
            its list), for tables by them.
    """

    tables: tuple[str, ...]
    shares: tuple[tuple[str, Fraction], ...]
    delays: str
    timetable: bytes | None
    lists: tuple[tuple[str, str, str], ...]

    @property
    def told(self) -> tuple[str, ...]:
        """What the tables tell, in words."""
        words = {"speed": "mean speed", "full": "occupancy"}
        names = [table.partition(":")[0] for table in self.tables]
        return tuple(words.get(name, name) for name in names)


def vehicle_measures(delivery: Delivery, gtfs: Path | None, zone: str | None) -> VehicleMeasures:
    """Return what a programme measures that nobody has chosen anything for yet.

    Args:
        delivery: what the delivered file is.
        gtfs: public feed (zip, folder or a stops.txt alone), if one is given.
        zone: time zone of the agency; None while nobody has decided it.
    """
    if delivery.feed.names_stops:
        return _of_calls(gtfs)
    fields = {field: column for column, field in delivery.fields}
    feed = None if gtfs is None or gtfs.suffix == ".txt" else gtfs
    tables, weights = [_HEADWAY], {"headway/buses": 1}
    if "speed" in fields:
        tables, weights = [_SPEED, *tables], {"speed/sum": 2, "speed/buses": 1} | weights
    why_not = "" if "delay" in fields else _why_no_delays(fields, feed, zone)
    if not why_not:
        tables.append(_DELAY)
        weights |= {"delay/sum": 2, "delay/buses": 1}
    if "occupancy" in fields:
        tables.append(_FULL)
        weights |= {"full/class_3": 1, "full/class_5": 1}
    by_timetable = not why_not and "delay" not in fields
    total = sum(weights.values())
    return VehicleMeasures(
        tables=tuple(tables),
        shares=tuple((draw, Fraction(weight, total)) for draw, weight in weights.items()),
        delays=why_not or _ABOUT_DELAYS["timetable" if by_timetable else "stated"],
        timetable=feed.read_bytes() if by_timetable and feed else None,
        lists=() if feed is None else tuple(_lists(delivery.feed, fields, feed)),
    )


def _of_calls(gtfs: Path | None) -> VehicleMeasures:
    """Return what calls at stops are measured by: stops of the public feed.

    Raises:
        InputError: there is no feed.
    """
    if gtfs is None:
        rule = "is missing; records name stops: give the public GTFS feed, or its stops.txt"
        raise InputError(where="new", field="--gtfs", rule=rule)
    stops = sorted({feed_stop.stop_id for feed_stop in read_stops(gtfs, "any").stops})
    lines = ["value,label", *(f"{stop},{stop}" for stop in stops)]
    shares = {"headway/buses": 1, "delay/sum": 2, "delay/buses": 1}
    return VehicleMeasures(
        tables=tuple(template.replace("cell", STOP) for template in (_HEADWAY, _DELAY)),
        shares=tuple((draw, Fraction(weight, 4)) for draw, weight in shares.items()),
        delays=_ABOUT_DELAYS["stated"],
        timetable=None,
        lists=((STOP, "", "\n".join((*lines, ""))),),
    )


def _why_no_delays(fields: dict[str, str], feed: Path | None, zone: str | None) -> str:
    """Return why no delay can be worked out; empty if one can."""
    if "trip" not in fields:
        return "none: records state no delay, and name no trip of a timetable"
    if feed is None or feed.is_dir():
        return "none: records state no delay; give the public GTFS feed as a zip (--gtfs)"
    if zone is None:
        return "none: the time zone is not decided yet"
    fault = fault_of(read_feed(feed), ZoneInfo(zone))
    return f"none: {feed.name} {fault}" if fault else ""


def _lists(of: Feed, fields: dict[str, str], feed: Path) -> Iterable[tuple[str, str, str]]:
    """Yield what the feed says of routes and directions, by ids that records name."""
    ids = {ListOf.ROUTE: {*Feed}, ListOf.DIRECTION: {Feed.GTFS_VEHICLE_POSITIONS}}
    for category, are_ids in ids.items():
        is_own = category in fields and of in are_ids
        if not is_own and "trip" not in fields:
            continue
        by = NamedBy.ITSELF if is_own else NamedBy.TRIP  # as the timetable calls it, by the trip
        try:
            yield category, "" if is_own else fields["trip"], list_csv(feed, category, by)
        except InputError:  # a feed of stops alone says nothing of trips
            continue
