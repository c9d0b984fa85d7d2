"""A shipped programme over a small public domain, whose neighbours are searched in raw files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from enum import Enum
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import h3
import numpy as np

from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.units import Block, ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.gtfs.scheduled_calls import Call, ScheduledCalls, scheduled_calls
from turnstile.programme.loading import parse_programme
from turnstile.programme.source_spec import Feed
from turnstile.programme.spec import Programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceDays, ServiceWeek

_INCLUDE = Path(__file__).resolve().parents[2] / "include"
WEEK = ServiceWeek(2016, 30)
PERIOD = ServiceDays(WEEK.monday, WEEK.plus(3).days[-1])
MODES = ("bus", "ferry", "train")
PLACES = ("A", "B", "C", "nowhere")
VALUES = ("1", "2", "3", "unlisted")
REGIONS = ("A,north,1", "B,north,2", "C,south,3")
CENTER = h3.latlng_to_cell(21.17, 72.83, 7)
Vectors = dict[tuple[str, date], np.ndarray]
Changes = dict[tuple[str, str], list[np.ndarray]]


class Form(Enum):
    """What the files of a week are: two of them, with half of the records each."""

    PLAIN = "CSV and a JSON object a line"
    PACKED = "CSV in gzip, and JSON lines in an archive"
    WHOLE = "Parquet, and one JSON array"
    TABLES = "a workbook, and Arrow"
    DOCUMENTS = "XML or protobuf, in gzip and as it is"


@dataclass(frozen=True)
class Lab:
    """A programme with a small public domain, and whose neighbours are searched in which files."""

    programme: Programme
    domain: PublicDomain
    unit: ProtectionUnit
    form: Form = Form.PLAIN

    @property
    def timetable(self) -> ScheduledCalls | None:
        """Where the programme names one: three trips that call in all hexagons, at all hours."""
        if self.programme.source.timetable is None:
            return None
        calls = [
            Call(
                trip, "daily", VALUES[n % 4], *h3.cell_to_latlng(cell), (9 + n) * 3600 + 900 * late
            )
            for late, trip in enumerate(VALUES[:3])
            for n, cell in enumerate(sorted(h3.grid_disk(CENTER, 1)))
        ]
        runs = [("daily", day) for day in PERIOD.days]
        return scheduled_calls(calls, runs, self.programme.time.zone, "of the lab")

    @property
    def days_of_unit(self) -> int:
        """Service days that one unit lies on."""
        return max(1, self.unit.days_max or 1)

    @cached_property
    def events(self) -> tuple[DrawEvent, ...]:
        """Draws of the period."""
        return make_plan(self.programme, self.domain, PERIOD).events

    def declared(self) -> dict[str, Sensitivity]:
        """Declared sensitivity of each vector, by the label of a draw that is one or a piece."""
        sensitivities = {event.label: dict(event.sensitivities)[self.unit] for event in self.events}
        return {
            label: sensitivity
            for label, sensitivity in sensitivities.items()
            if sensitivity is not None
        }

    def moved(self, before: Vectors, after: Vectors) -> Changes:
        """What each unit moved: the pieces of every vector, by a label of it and its scope."""
        vector_of = {
            (e.label, block.service_date): e.joint or e.label
            for e in self.events
            for block in e.blocks
        }
        label_of = {vector: label for (label, _), vector in vector_of.items()}
        changes: Changes = {}
        for (label, day), exact in after.items():
            key = label_of[vector_of[label, day]], self.unit.scope(Block(day, ""))
            changes.setdefault(key, []).append(exact - before[label, day])
        return changes


Texts = tuple[tuple[str, str], ...]
SMALL: Texts = (
    ("domains/opal_locations.csv", "domains/stops.csv"),
    ("domains/opal_regions.csv", "domains/regions.csv"),
    ("[bus, ferry, light_rail, train]", "[bus, ferry, train]"),
    ("domains/surat_area.geojson", "domains/cells.csv"),
    ("cells_at_most: 40", "cells_at_most: 4"),
    ("slot_minutes: 15", "slot_minutes: 240"),
)
BY_NIGHT: Texts = (("week_starts: monday", 'week_starts: monday, day_starts: "04:00"'),)
BUSES_BY_NIGHT: Texts = (("week_starts: monday", 'week_starts: monday, day_starts: "03:00"'),)


def lab(name: str, feed: Feed, folder: Path, *texts: tuple[str, str]) -> Lab:
    """A shipped programme over few slots and places, fed by another feed; texts are replaced."""
    (folder / "domains").mkdir(parents=True, exist_ok=True)
    stops = [f"{mode},{place},{place}" for mode in MODES for place in PLACES[:3]]
    (folder / "domains/stops.csv").write_text("\n".join(["mode,location,area", *stops]) + "\n")
    regions = "\n".join(["area,region,zone", *REGIONS])
    (folder / "domains/regions.csv").write_text(regions + "\n")
    lines = "\n".join(["value,label", *(f"{n},line {n}" for n in VALUES[:3])])
    (folder / "domains/lines.csv").write_text(lines + "\n")
    visits = "\n".join(["value,label", *(f"{n}/1,{n}/1/A" for n in VALUES[:3])])
    (folder / "domains/visits.csv").write_text(visits + "\n")
    cells = "\n".join(["cell", *h3.grid_disk(CENTER, 1)])
    (folder / "domains/cells.csv").write_text(cells + "\n")
    text = (_INCLUDE / f"programmes/{name}.yaml").read_text()
    (folder / "domains/gtfs.zip").write_bytes(b"not read here")
    for old, new in (*SMALL, *texts):
        text = text.replace(old, new)
    programme = parse_programme(text, f"{name}.yaml")
    source = replace(programme.source, feed=feed, landing="{week}/*")
    programme = replace(programme, source=source, caps=())
    return Lab(programme, load_domain(programme, folder), programme.mechanism.unit)


def without_card_bound(bounded_lab: Lab) -> Lab:
    """The same for the unit of one trip, which no coarser bound limits."""
    mechanism = replace(
        bounded_lab.programme.mechanism, unit=ProtectionUnit.TRIP, amount=Fraction(4)
    )
    programme = replace(bounded_lab.programme, units=(), mechanism=mechanism)
    return replace(bounded_lab, programme=programme, unit=ProtectionUnit.TRIP)
