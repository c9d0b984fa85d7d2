"""A first programme for a delivered file: public choices, and the page of decisions that they ask.

Cells come from public sources alone: stops of a GTFS feed, or a polygon. Of the delivered file only
the names of its columns are known here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from turnstile.errors import InputError
from turnstile.look.fields_found import OWN_DATES, asks_for_action
from turnstile.pipeline.trials.gain import no_gain
from turnstile.privacy.accounts import posted_whole
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.building import BuildRules, BuiltDomain, Stop, build_domain
from turnstile.programme.domain.csv_text import csv_text
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.domain.public_sources import read_stops
from turnstile.programme.gtfs.feed import read_feed
from turnstile.programme.key import UNDECIDED
from turnstile.programme.problems import problems_of
from turnstile.programme.source_spec import DateForm, Feed, RowShape, SpeedUnit, TapAction
from turnstile.programme.spec import Programme
from turnstile.service_calendar import zone_named
from turnstile_design.first_programme.delivered_columns import Delivery
from turnstile_design.first_programme.grid_of_places import DECIMALS, grid_domain
from turnstile_design.first_programme.new_vehicles import VehicleMeasures, vehicle_measures

_COLUMNS_OF_STOPS = ("stop_id", "stop_lat", "stop_lon")
_THE_MODE = "bus"  # of a feed of vehicles that names none
_ENDS = (("boardings", "alightings"), ("starts", "ends"))  # tables of trips that nobody made
WHOLE = "all"
_VOLUME, _NO_GAIN = "typical_volume", "accept_no_gain"
_DRAWS_OF_A_CAP = 3  # the week's, one that dies, and a correction's (PRIVACY 6.8)


@dataclass(frozen=True, slots=True)
class PublicSources:
    """Where the public cells of a new programme come from.

    Args:
        gtfs: GTFS feed (zip or folder), or a bare stops.txt; None if an area is given.
        area: GeoJSON polygon, for vehicles; None if a feed is given.
        mode: the one mode of the rows; None to take the modes of the feed.
        zone: time zone; None to take that of the feed's agency, if files do not rest on it.
    """

    gtfs: Path | None
    area: Path | None
    mode: str | None
    zone: str | None


@dataclass(frozen=True, slots=True)
class Answers:
    """What no column says and somebody may have answered; None is left to be decided.

    Args:
        row: feed, which says what a row is, where the names of columns alone do not.
        protects_day: True if the day of a card or vehicle is protected.
        speed_unit: of vehicles whose feed has no standard that states it.
        date_form: of taps that state their date.
        all_tap_on: True if no column says whether a tap enters or leaves.
        typical_volume: tap-ons a week of the mode with the most places, or vehicles a day.
        accept_no_gain: why to release what naive tables tell as well; empty to let it be judged.
    """

    row: Feed | None = None
    protects_day: bool = False
    speed_unit: SpeedUnit | None = None
    date_form: DateForm | None = None
    all_tap_on: bool = False
    typical_volume: int | None = None
    accept_no_gain: str = ""

    def keys_of(self, delivery: Delivery, zone: str | None) -> dict[str, str]:
        """Return the keys of a programme that a delivery leaves open, and what stands for each.

        Args:
            delivery: what the files are.
            zone: of the agency, if somebody or a feed states it.
        """
        fields = {field for _, field in delivery.fields}
        open_keys: dict[str, str | None] = {"time.zone": zone}
        if self.row is None and not delivery.is_plain:
            open_keys["source.feed"] = None
        is_bus = delivery.feed.shape is RowShape.TELEMETRY
        if not delivery.names_no_unit:
            unit = ProtectionUnit.BUS_DAY if is_bus else ProtectionUnit.CARD_DAY
            open_keys["mechanism.unit"] = unit if self.protects_day else None
        is_named_anew = is_bus and not delivery.is_plain
        is_asked = delivery.feed in (Feed.ITMS, Feed.SIRI_VM) or is_named_anew
        if is_asked and "speed" in fields:  # a standard's unit is that of its column
            open_keys["source.speed_unit"] = self.speed_unit
        if delivery.has_dates or self.date_form:
            open_keys["source.date_form"] = self.date_form
        if asks_for_action(delivery.feed) and "action" not in fields:
            key = "without_action" if self.all_tap_on else "columns.action"
            open_keys[f"source.{key}"] = TapAction.ENTER if self.all_tap_on else None
        if delivery.feed is Feed.TIDES_PASSENGER_EVENTS and "passengers" not in fields:
            open_keys["source.without_count"] = None
        if delivery.may_name_mode:
            open_keys["source.without_mode" if is_bus else "source.columns.mode"] = None
        if self.accept_no_gain:
            open_keys[_NO_GAIN] = self.accept_no_gain
        elif not is_bus or ("speed" in fields and not delivery.feed.names_stops):
            open_keys[_VOLUME] = str(self.typical_volume or UNDECIDED)
        return {key: str(value or UNDECIDED) for key, value in open_keys.items()}


@dataclass(frozen=True, slots=True)
class Grain:
    """How fine a first programme begins.

    Args:
        slot_minutes: of a slot.
        is_whole: True if all places of a mode are one, of trips.
        h3_resolution: of cells, of vehicles.
    """

    slot_minutes: int = 60
    is_whole: bool = False
    h3_resolution: int = 7

    def in_words(self, feed: Feed) -> str:
        """Say how fine it is."""
        places = "all places of a mode in one" if self.is_whole else "every stop or station"
        if feed.shape is RowShape.TELEMETRY and not feed.names_stops:
            places = f"H3 cells of resolution {self.h3_resolution}"
        return f"slots of {self.slot_minutes} minutes, {places}"


GRAINS = {  # from the finest
    RowShape.TRIPS: tuple(
        Grain(minutes, is_whole) for is_whole in (False, True) for minutes in (60, 240, 1440)
    ),
    RowShape.TELEMETRY: tuple(Grain(h3_resolution=resolution) for resolution in (7, 6, 5)),
}


@dataclass(frozen=True, slots=True)
class NewProgramme:
    """The files of a new programme, as names below `include/` and their bytes; its open keys.

    Its `grain` is None where none that was tried tells anything.
    """

    files: tuple[tuple[str, bytes], ...]
    open: tuple[str, ...]
    grain: Grain | None


def new_programme(  # noqa: PLR0913 - the keyword-only rest is what the package says
    name: str,
    delivery: Delivery,
    sources: PublicSources,
    answers: Answers,
    *,
    curator: str,
    contact: str,
) -> NewProgramme:
    """Return a programme, its domain and its page of decisions.

    Args:
        name: of the programme.
        delivery: what the delivered file is.
        sources: of the public cells.
        answers: what no column says.
        curator: who publishes.
        contact: where questions go.

    Raises:
        InputError: a public source is missing or does not tell what is needed.
    """
    if answers.date_form and delivery.feed in OWN_DATES:
        rule = f"{delivery.feed} has dates of its own standard; leave it out"
        raise InputError(where="new", field="--date-form", rule=rule)
    trips = delivery.feed.shape is RowShape.TRIPS
    built, modes, cells = (
        _domain_of_trips(sources, is_grid=delivery.has_positions_only)
        if trips
        else _area_of_vehicles(sources)
    )
    if trips and len(modes) > 1 and not delivery.has_mode:
        rule = f"the file has no column of the mode, and the feed has {', '.join(modes)}; give one"
        raise InputError(where="new", field="--mode", rule=rule)
    zone = sources.zone or _zone(sources.gtfs)
    if zone is not None:
        zone_named(zone, where="new")
    measures = None if trips else vehicle_measures(delivery, sources.gtfs, zone)
    suffix = ".geojson" if sources.area else ".csv"
    asked = answers.keys_of(delivery, zone if delivery.tells_instants else sources.zone)
    values = _values(name, delivery, modes, measures, asked) | {
        "domain": f"domains/{name}{suffix}",
        "curator": curator,
        "contact": contact,
        "cells": cells,
        "zone_of_feed": zone if sources.zone is None else None,
    }
    public = () if measures is None else _public_files(name, measures)

    def files(grain: Grain, values: dict[str, object]) -> tuple[tuple[str, bytes], ...]:
        values = values | {"grain": grain, "how_fine": grain.in_words(delivery.feed)}
        return (
            (f"domains/{name}{suffix}", _of_grain(built, grain).encode()),
            *public,
            (f"programmes/{name}.yaml", _rendered("programme.yaml.j2", values).encode()),
            (f"programmes/{name}.decisions.md", _rendered("decisions.md.j2", values).encode()),
        )

    grains = GRAINS[delivery.feed.shape]
    is_volume_open = asked.get(_VOLUME) == UNDECIDED  # of which nothing is known to tell nothing
    grain = next(
        (grain for grain in grains if is_volume_open or _tells(name, files(grain, values))), None
    )
    if grain is None:  # a person says why to release it all the same
        asked[_NO_GAIN] = UNDECIDED
    is_open = tuple(key for key in asked if asked[key] == UNDECIDED)
    return NewProgramme(files(grain or grains[0], values | {"open": is_open}), is_open, grain)


def _public_files(name: str, measures: VehicleMeasures) -> tuple[tuple[str, bytes], ...]:
    """Return the public lists of what is measured by line or vehicle, and the timetable."""
    lists = tuple(
        (f"domains/{name}_{category}s.csv", text.encode()) for category, _, text in measures.lists
    )
    timetable = measures.timetable
    return lists if timetable is None else (*lists, (f"domains/{name}.zip", timetable))


def _tells(name: str, files: Iterable[tuple[str, bytes]]) -> bool:
    """Return whether a programme is not known to tell nothing at its volume."""
    with tempfile.TemporaryDirectory() as folder:
        for file, content in files:
            (Path(folder) / file).parent.mkdir(exist_ok=True)
            (Path(folder) / file).write_bytes(content)
        written = written_programme(name, Path(folder))
        return written is None or no_gain(*written, Path(folder)) is None


def written_programme(name: str, include: Path) -> tuple[Programme, PublicDomain] | None:
    """Return a programme that was written, and its domain; None if it breaks a rule."""
    text = (include / f"programmes/{name}.yaml").read_text(encoding="utf-8")
    programme = problems_of(text, f"{name}.yaml").programme  # what is open has an example
    return None if programme is None else (programme, load_domain(programme, include))


def _of_grain(built: BuiltDomain | str, grain: Grain) -> str:
    """Return a domain file at a grain: as it was built, or with one area for all places."""
    if isinstance(built, str):
        return built
    places = (replace(place, area=WHOLE) if grain.is_whole else place for place in built.places)
    return replace(built, places=tuple(places)).csv()


def draft_of(delivery: Delivery, zone: str | None) -> str:
    """Return the text of a programme for a look at files of which nothing public is known yet."""
    trips = delivery.feed.shape is RowShape.TRIPS
    measures = None if trips else vehicle_measures(delivery, None, None)
    answers = Answers(row=delivery.feed, protects_day=True, accept_no_gain="a look")
    values = _values("look", delivery, [_THE_MODE], measures, answers.keys_of(delivery, zone))
    none = {"grain": Grain(), "zone_of_feed": None, "curator": "none", "contact": "none"}
    return _rendered("programme.yaml.j2", values | none | {"domain": "domains/none.csv"})


def _values(
    name: str,
    delivery: Delivery,
    modes: list[str],
    measures: VehicleMeasures | None,
    asked: dict[str, str],
) -> dict[str, object]:
    """Return what both pages of a programme are made from, but for what is public."""
    trips = delivery.feed.shape is RowShape.TRIPS
    columns = {field: asked.get(f"source.columns.{field}") for field in ("action", "mode")}
    if asks_for_action(delivery.feed):  # what a tap does is said, in columns of any name
        columns |= {field: column for column, field in delivery.fields if field == "action"}
    renamed = {field: column for field, column in columns.items() if column} | dict(
        delivery.renamed
    )
    return {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "feed": str(delivery.feed),
        "trips": trips,
        "events": delivery.feed.names_nobody,
        "calls": delivery.feed.names_stops,
        "rides": delivery.names_no_unit,
        "ends": _ENDS[delivery.feed is Feed.HIRED_TRIPS],
        "modes": modes,
        "renamed": tuple(renamed.items()),
        "asked": asked,
        "open": [key for key, value in asked.items() if value == UNDECIDED],
        "measures": measures,
        "file": delivery.written,
        "sheet": delivery.sheet,
        "third": third_of_cap,
        "grid_decimals": DECIMALS if trips and delivery.has_positions_only else None,
    }


def third_of_cap(cap: str, coordinate: str) -> str:
    """Return the amount, as a programme states it, of a release that leaves room to fail.

    Args:
        cap: what a unit may lose.
        coordinate: `epsilon` or `rho`.

    Examples:
        >>> third_of_cap("2", "epsilon")
        '0.666666'
    """
    amount = posted_whole(Fraction(cap) / _DRAWS_OF_A_CAP, coordinate)
    return f"{Decimal(amount.numerator) / amount.denominator:f}"


def _domain_of_trips(
    sources: PublicSources, *, is_grid: bool
) -> tuple[BuiltDomain, list[str], str]:
    """Return the domain of stops or of a grid, its modes, and a sentence on its cells."""
    if sources.gtfs is None:
        rule = "is missing; name the public GTFS feed, or its stops.txt and --mode"
        raise InputError(where="new", field="--gtfs", rule=rule)
    stops = read_stops(sources.gtfs, sources.mode).stops
    rules = BuildRules(postcode_modes=())
    built = grid_domain(stops) if is_grid else build_domain(stops, (), rules)
    if not built.places:
        rule = "no stop has coordinates and a mode; check the feed, or give --mode"
        raise InputError(where=sources.gtfs.name, field="stops", rule=rule)
    areas = ", ".join(f"{mode} {number}" for mode, number in built.areas_by_mode.items())
    what = "locations (a stop belongs to its parent station)"
    if is_grid:
        what = f"cells of a grid of {10**-DECIMALS:g} degrees, those of the stops and around them"
    cells = f"From {sources.gtfs.name}: {areas} {what}."
    return built, list(built.areas_by_mode), cells


def _area_of_vehicles(sources: PublicSources) -> tuple[str, list[str], str]:
    """Return the service area, the mode, and a sentence on its cells."""
    modes = [sources.mode or _THE_MODE]
    if sources.area is not None:
        try:
            return sources.area.read_text("utf-8"), modes, f"The polygon of {sources.area.name}."
        except (OSError, UnicodeDecodeError):
            rule = "is no readable GeoJSON file; name one"
            raise InputError(where=sources.area.name, field="--area", rule=rule) from None
    if sources.gtfs is None:
        rule = "is missing; name a polygon (--area) or the public GTFS feed (--gtfs)"
        raise InputError(where="new", field="--area", rule=rule)
    stops = read_stops(sources.gtfs, modes[0]).stops
    return _stop_list(stops), modes, f"Cells around the stops of {sources.gtfs.name}."


def _stop_list(stops: tuple[Stop, ...]) -> str:
    """Return stops as a CSV file."""
    placed = ((s.stop_id, s.latitude, s.longitude) for s in stops if s.latitude is not None)
    return csv_text(_COLUMNS_OF_STOPS, placed)


def _zone(gtfs: Path | None) -> str | None:
    """Return the time zone that a feed's agency states; None where none does."""
    agency = None if gtfs is None or gtfs.suffix == ".txt" else read_feed(gtfs).agency
    if agency is None or "agency_timezone" not in agency or agency.empty:
        return None
    return str(agency["agency_timezone"].iloc[0])


def _rendered(template: str, values: dict[str, object]) -> str:
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    """Return the templates of this room; they are YAML and Markdown."""
    return Environment(  # noqa: S701 - no HTML
        loader=PackageLoader("turnstile_design.first_programme"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
