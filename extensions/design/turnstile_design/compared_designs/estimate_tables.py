"""The planning tables of estimates: designs ranked by their error, and grains by what they tell."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from math import inf
from pathlib import Path

from turnstile.errors import InputError
from turnstile.estimates.vehicles.bus_means import MOST_RATIO
from turnstile.pipeline.context import Release
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme, Query
from turnstile_design.compared_designs.bus_grains import MID_SIZE_BUSES, bus_grains, predicted_ratio
from turnstile_design.compared_designs.designs import OWN, largest_mode
from turnstile_design.compared_designs.estimate_ranking import Ranked, has_cells, ranked
from turnstile_design.compared_designs.grains import grain_lines, lead_lines, usable_text
from turnstile_design.compared_designs.public_city import PublicCity, made_city, published_city
from turnstile_design.compared_designs.trip_grains import trip_grains
from turnstile_design.markdown_tables import table_lines


def ranking(release: Release, trips: int, published: Path | None) -> Iterator[str]:
    """Yield the lines of `--compare` about estimates: designs at one loss, the least error first.

    Args:
        release: of a programme of trips.
        trips: tap-ons a week of the mode with the most locations, in a made city.
        published: package whose estimates stand in for the made city; None without one.
    """
    programme = release.programme
    if not has_cells(programme):
        yield "\nEstimates are made from cells that are drawn without a threshold: none to rank."
        return
    city = _city(release, trips, published)
    asked = programme.meant_for or tuple(Query)
    yield ""
    yield f"Predicted errors of the estimates, at the same loss, least first: {city.described};"
    yield "seven earlier weeks; weighted relative errors of what the programme is meant for, with"
    yield "what the bound leaves out; of a peak's share and of a change in per cent of a day's or"
    yield "place's trips. Last: geometric mean against the programme as written."
    yield ""
    heads = [*(str(query).replace("_", " ") for query in asked), "cells", "day's total", "left out"]
    rows = ranked(programme, release.domain, release.settings.include, city)
    yield from table_lines(("varied", "design", *heads, "against"), map(_ranked_row, rows))


def grain_advice(
    release: Release, *, trips: int, buses: int, published: Path | None
) -> Iterator[str]:
    """Yield the lines of `--grains`: which grain beats naive tables.

    Args:
        release: of any programme with estimates of cells or speeds.
        trips: tap-ons a week of the mode with the most locations, in a made city.
        buses: in service on a day, in a made city.
        published: package whose estimates stand in for the made city of trips; None without one.

    Raises:
        InputError: the programme has no estimates of cells.
    """
    programme = release.programme
    if programme.source.feed.shape is RowShape.TELEMETRY:
        _require_speeds(programme)
        yield f"A made city of {buses} vehicles a day; mean errors, with seven earlier weeks."
        yield ""
        yield from grain_lines(list(bus_grains(programme, release.domain, buses)))
        return
    if not has_cells(programme):
        rule = "needs cells of slot and location that are drawn without a threshold"
        raise InputError(where=programme.name, field="--grains", rule=rule)
    city = _city(release, trips, published)
    yield f"{city.described}; weighted relative errors, with seven earlier weeks. Last year's"
    yield "table: exact, but locations, days and slots have changed by 10, 8 and 6 % since."
    yield ""
    include = release.settings.include
    yield from grain_lines(list(trip_grains(programme, release.domain, include, city)))


def usable_grains(
    programme: Programme, domain: PublicDomain, include: Path, trips: int
) -> Iterator[str]:
    """Yield which grain of a programme of trips can be used at so many tap-ons a week.

    Args:
        programme: any.
        domain: its public cells.
        include: folder of `domains/`.
        trips: tap-ons a week of the mode with the most locations.
    """
    if programme.source.feed.shape is not RowShape.TRIPS or not has_cells(programme):
        return
    city = _made_city(programme, domain, trips)
    rows = list(trip_grains(programme, domain, include, city, finest=OWN))
    yield f"{programme.name}: {city.described}; other modes are not judged. Usable with seven"
    yield "earlier weeks (in a first week) is:"
    for row in (grain for grain in rows if grain.usable is not None):
        first = usable_text(row.usable_first)
        another = "" if row.is_published else ", which another programme would publish"
        yield f"  {row.grain}: {usable_text(row.usable)} ({first}){another}"
    yield from (f"  {line}" for line in lead_lines(rows))


def nothing_learned(
    programme: Programme, domain: PublicDomain, include: Path, volume: int
) -> tuple[str, ...]:
    """Return why no table of the grain that is written tells anything; empty if one does.

    Args:
        programme: any; of tables that are not judged nothing is said.
        domain: its public cells.
        include: folder of `domains/`.
        volume: tap-ons a week of the mode with the most locations, or buses in service on a day.
    """
    if _has_speeds_of_hexagons(programme):
        rows = list(bus_grains(programme, domain, volume, only_written=True))
    elif programme.source.feed.shape is RowShape.TRIPS and has_cells(programme):
        city = _made_city(programme, domain, volume)
        grains = trip_grains(programme, domain, include, city, finest=OWN)
        rows = list(takewhile(lambda row: row.is_written, grains))
    else:
        return ()
    return tuple(row.sentence for row in rows if all(grain.not_beaten for grain in rows))


def written_grain(release: Release) -> Iterator[str]:
    """Yield what a city as large as is planned learns from the programme's own grain of speeds."""
    programme = release.programme
    if _has_speeds_of_hexagons(programme):
        buses = programme.typical_volume or MID_SIZE_BUSES
        rows = bus_grains(programme, release.domain, buses, only_written=True)
        another = f"turnstile plan {programme.name} --grains --buses N"
        yield f"A city of {buses} vehicles (another: {another}):"
        yield from (f"  {row.sentence}" for row in rows)
        yield f"  {_shown_means(predicted_ratio(programme, release.domain, buses))}"


def _shown_means(ratio: float) -> str:
    """Say before the charge whether means of cells will stand in the estimates of a first week."""
    known = "known of no cell" if ratio == inf else f"{ratio:.2f} of what cells differ by"
    if ratio <= MOST_RATIO:
        return f"mean speed: cells are shown, their error is {known} (at most {MOST_RATIO})."
    return (
        f"mean speed: no cell is shown in a first week, their error is {known} (at most "
        f"{MOST_RATIO}); the city, its places and hours stand instead."
    )


def _require_speeds(programme: Programme) -> None:
    """Refuse a programme without mean speeds of hexagons.

    Raises:
        InputError: it has none.
    """
    if not _has_speeds_of_hexagons(programme):
        rule = "needs a table of mean speeds by slot and cell alone"
        raise InputError(where=programme.name, field="--grains", rule=rule)


def _has_speeds_of_hexagons(programme: Programme) -> bool:
    """Whether a table is of mean speeds by slot and H3 cell, which grains are advised for."""
    hexagons = ("slot", "cell")
    return any(table.by == hexagons for table in programme.speeds)


def _city(release: Release, trips: int, published: Path | None) -> PublicCity:
    """Return the city that designs are judged on, of the mode with the most locations."""
    if published is not None:
        return published_city(published, release.domain, largest_mode(release.domain))
    return _made_city(release.programme, release.domain, trips)


def _made_city(programme: Programme, domain: PublicDomain, trips: int) -> PublicCity:
    """Return a made city in the slots of a programme."""
    minutes = programme.time.slot_minutes
    return made_city(domain, largest_mode(domain), trips, slot_minutes=minutes)


def _ranked_row(row: Ranked) -> list[str]:
    """Return one ranked design as a row of the table."""
    errors = [*row.by_query.values(), row.cells, row.totals, row.left_out]
    shown = [f"{error:.1%}" for error in errors]
    return [row.varied, row.design, *shown, f"{row.against:.2f}"]
