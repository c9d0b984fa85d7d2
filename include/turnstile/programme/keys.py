"""Every key of a programme file: type, range, default, meaning, example. Plain data.

`turnstile check --keys` prints it as docs/PROGRAMMES.md; a test loads programmes and compares what
the readers ask for with what stands here. NAME stands for a free name, N for a place in a list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from turnstile.privacy.mechanisms.registry import Calibration, MechanismKind
from turnstile.privacy.units import NeighboringRelation, ProtectionUnit
from turnstile.programme.source_spec import (
    DateForm,
    Feed,
    MissingDay,
    SpeedUnit,
    TapAction,
    WithoutCard,
)
from turnstile.programme.spec import Measure, Outside, Query

REQUIRED = "required"
OPTIONAL = "none"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a programme file.

    Args:
        path: from the top of the file, `source.feed`.
        kind: how it is written: text, integer, flag, amount, choice, texts, section, sections.
        default: as written; REQUIRED, or OPTIONAL where it may be left out without one.
        meaning: in one sentence.
        example: as it stands in a file.
        choices: the names that are allowed.
        least: smallest integer.
    """

    path: str
    kind: str
    default: str
    meaning: str
    example: str
    choices: type[StrEnum] | None = None
    least: int | None = None


_BOUNDED = {
    "contributes": "must be 1",
    "trips_at_most": "trips of a unit that are counted, over all modes",
    "cells_at_most": "pairs of slot and cell of a unit that are counted, each day its own",
}
_UNIT_KEYS = tuple(
    key
    for unit in ProtectionUnit
    if unit.bound_key is not None
    for key in (
        Key(f"units.{unit}", "section", OPTIONAL, f"bound of a {unit.replace('_', '-')}", ""),
        Key(
            f"units.{unit}.{unit.bound_key}",
            "integer",
            REQUIRED,
            _BOUNDED[unit.bound_key],
            "1" if unit.is_record else "20",
            least=1,
        ),
    )
)
KEYS: tuple[Key, ...] = (
    Key("name", "text", REQUIRED, "the file's own name, without .yaml", "opal"),
    Key("title", "text", REQUIRED, "title of the published package", "Opal taps by place and time"),
    Key("description", "text", REQUIRED, "what is published, in words", "Numbers of tap-ons ..."),
    Key(
        "family",
        "text",
        REQUIRED,
        "budget group: programmes that touch the same people or vehicles share one set of accounts",
        "opal_cards",
    ),
    Key("source", "section", REQUIRED, "where the rows come from", ""),
    Key("source.feed", "choice", REQUIRED, "layout of the files (FEEDS.md)", "opal_trips", Feed),
    Key(
        "source.landing",
        "text",
        REQUIRED,
        "files of a week below the landing zone; {week} stands for the week's name",
        '"opal/{week}/*"',
    ),
    Key("source.modes", "texts", REQUIRED, "public list of modes", "[bus, ferry, train]"),
    Key(
        "source.missing_day",
        "choice",
        MissingDay.REFUSE,
        "a service day without a row stops the week, or is published as a gap",
        "refuse",
        MissingDay,
    ),
    Key("source.columns", "section", OPTIONAL, "our field: the source's column", ""),
    Key("source.columns.NAME", "text", REQUIRED, "the source's name of a field", "card_number"),
    Key("source.mode_names", "section", OPTIONAL, "the source's name: our mode", ""),
    Key("source.mode_names.NAME", "text", REQUIRED, "the mode that a name stands for", "bus"),
    Key("source.action_names", "section", OPTIONAL, "the source's word: what a tap does", ""),
    Key("source.action_names.NAME", "choice", REQUIRED, "what the word means", "enter", TapAction),
    Key(
        "source.speed_unit",
        "choice",
        "as the feed says",
        "unit of the source's speeds",
        "km/h",
        SpeedUnit,
    ),
    Key(
        "source.speed_at_most_kmh",
        "integer",
        "130",
        "faster rows are quarantined, km/h",
        "130",
        least=1,
    ),
    Key(
        "source.rows_per_day_at_least",
        "integer",
        "1",
        "a day with fewer rows is not complete; a public number, rows",
        "1000",
        least=0,
    ),
    Key(
        "source.files_at_least",
        "integer",
        "1",
        "files that a complete week has at least",
        "7",
        least=1,
    ),
    Key(
        "source.marker",
        "text",
        "",
        "file that the authority writes when a week is complete; empty: none",
        '"opal/{week}.done"',
    ),
    Key(
        "source.date_form", "choice", DateForm.ISO, "how dates are written", "DD/MM/YYYY", DateForm
    ),
    Key(
        "source.grid_decimals",
        "integer",
        "1",
        "taps with coordinates: decimals of a degree of the grid, at most 3",
        "2",
        least=0,
    ),
    Key(
        "source.extent", "section", OPTIONAL, "box in degrees: what lies outside is no position", ""
    ),
    Key("source.extent.south", "text", REQUIRED, "degrees, -90 to 90", '"20.5"'),
    Key("source.extent.west", "text", REQUIRED, "degrees, -180 to 180", '"72.2"'),
    Key("source.extent.north", "text", REQUIRED, "degrees, -90 to 90", '"21.9"'),
    Key("source.extent.east", "text", REQUIRED, "degrees, -180 to 180", '"73.5"'),
    Key(
        "source.without_card",
        "choice",
        WithoutCard.DROP,
        "what happens to a row of a trip that names no card",
        "drop",
        WithoutCard,
    ),
    Key("time", "section", REQUIRED, "the agency's clock", ""),
    Key("time.zone", "text", REQUIRED, "IANA time zone", "Australia/Sydney"),
    Key("time.slot_minutes", "integer", REQUIRED, "length of a slot; divides a day", "15", least=1),
    Key(
        "time.day_starts",
        "text",
        "00:00",
        "hour at which a service day begins; slots then run on to it, as 28:00",
        '"04:00"',
    ),
    Key("time.week_starts", "text", "monday", "monday: a service week is an ISO week", "monday"),
    Key("domain", "section", REQUIRED, "the public cells", ""),
    Key(
        "domain.slots",
        "text",
        REQUIRED,
        'all_day, a stretch "HH:MM-HH:MM", or a file of service hours by mode',
        '"09:00-21:00"',
    ),
    Key("domain.locations", "text", REQUIRED, "trips: file of places", "domains/stops.csv"),
    Key("domain.service_area", "text", REQUIRED, "telemetry: polygon", "domains/area.geojson"),
    Key("domain.h3_resolution", "integer", REQUIRED, "telemetry: 0 to 15", "7", least=0),
    Key("domain.h3_coarsest", "integer", OPTIONAL, "telemetry: coarser cells too", "5", least=0),
    Key(
        "domain.ring_cells",
        "integer",
        "0",
        "telemetry: cells added around the service area, as rings",
        "1",
        least=0,
    ),
    Key(
        "domain.outside",
        "choice",
        "unknown for trips, drop for telemetry",
        "rows outside the public cells are counted as UNKNOWN or not at all",
        "drop",
        Outside,
    ),
    Key(
        "domain.timetable",
        "text",
        OPTIONAL,
        "public GTFS feed; shows which cells are one vehicle or one stop",
        "domains/gtfs.zip",
    ),
    Key("units", "section", REQUIRED, "contribution bounds, by unit", ""),
    *_UNIT_KEYS,
    Key(
        "units.NAME.once_per_cell",
        "flag",
        "false",
        "no two counted records of a unit share a cell of any table",
        "true",
    ),
    Key(
        "units.NAME.once_per_finest_cell",
        "flag",
        "false",
        "no two counted records of a unit share a slot and place",
        "true",
    ),
    Key(
        "units.NAME.coarse_cell_at_most",
        "integer",
        OPTIONAL,
        "beside once_per_finest_cell: counted records of a unit, mode and day in a coarser cell",
        "2",
        least=1,
    ),
    Key("tables", "section", REQUIRED, "published tables, by name", ""),
    Key("tables.NAME", "section", REQUIRED, "one table", ""),
    Key(
        "tables.NAME.by",
        "texts",
        REQUIRED,
        "its dimensions; [] for totals by mode and day, beside trips_at_most",
        "[tap_on_slot]",
    ),
    Key(
        "tables.NAME.trips_at_most",
        "integer",
        OPTIONAL,
        "trips of a bounded unit that this table counts: a bound of its own",
        "40",
        least=1,
    ),
    Key(
        "tables.NAME.per_cell_at_most",
        "integer",
        OPTIONAL,
        "beside trips_at_most: those of one mode and day in one cell",
        "8",
        least=1,
    ),
    Key(
        "tables.NAME.measure",
        "choice",
        "count for trips, mean_speed for telemetry",
        "what is measured",
        "buses_over",
        Measure,
    ),
    Key(
        "tables.NAME.clamp_kmh",
        "integer",
        REQUIRED,
        "mean_speed: speeds are clamped to 0 to this, km/h",
        "65",
        least=1,
    ),
    Key(
        "tables.NAME.limits_kmh",
        "texts",
        REQUIRED,
        "buses_over: integer speed limits, km/h",
        "[40, 60]",
    ),
    Key("mechanism", "section", REQUIRED, "the noise", ""),
    Key("mechanism.kind", "choice", REQUIRED, "mechanism", "dense_gaussian", MechanismKind),
    Key(
        "mechanism.unit",
        "choice",
        REQUIRED,
        "the unit that the amount protects; bounded under units",
        "card_day",
        ProtectionUnit,
    ),
    Key("mechanism.rho", "amount", REQUIRED, "dense_gaussian: zCDP of one unit", '"1/8"'),
    Key("mechanism.epsilon", "amount", REQUIRED, "Laplace kinds: epsilon of one unit", '"4"'),
    Key(
        "mechanism.share_of_cap",
        "amount",
        REQUIRED,
        "in place of rho or epsilon: the share of the cap over window_weeks that a week spends",
        '"1/52"',
    ),
    Key(
        "mechanism.joint_marginals",
        "flag",
        "false",
        "dense_gaussian with once_per_finest_cell: slots and places of a tap share one bound",
        "true",
    ),
    Key("mechanism.delta", "amount", REQUIRED, "stability_histogram: delta", '"1e-7"'),
    Key(
        "mechanism.calibration",
        "choice",
        Calibration.TIGHT,
        "stability_histogram: our threshold, or that of the 2017 release",
        "source",
        Calibration,
    ),
    Key("mechanism.budgets", "section", REQUIRED, "calibration source: epsilons by table", ""),
    Key("mechanism.budgets.NAME", "amount", REQUIRED, "replace-one epsilon of a table", '"1"'),
    Key("mechanism.split", "section", REQUIRED, "share of each draw; adds up to 1", ""),
    Key("mechanism.split.NAME", "amount", REQUIRED, "share of a draw", '"1/4"'),
    Key("caps", "sections", REQUIRED, "limits on what a unit may lose", ""),
    Key("caps[N].unit", "choice", REQUIRED, "whose loss", "card", ProtectionUnit),
    Key(
        "caps[N].relation",
        "choice",
        NeighboringRelation.ADD_REMOVE,
        "neighboring relation",
        "add_remove",
        NeighboringRelation,
    ),
    Key("caps[N].epsilon", "amount", OPTIONAL, "cap in epsilon; or write rho", '"40"'),
    Key("caps[N].rho", "amount", OPTIONAL, "cap in rho; or write epsilon", '"1"'),
    Key("caps[N].delta", "amount", OPTIONAL, "delta at which the loss is shown", '"1e-6"'),
    Key(
        "caps[N].window_weeks",
        "integer",
        "52",
        "card and bus: the cap holds for every so many weeks in a row",
        "52",
        least=1,
    ),
    Key("schedule", "section", OPTIONAL, "when a week is released", ""),
    Key(
        "schedule.final_after_days",
        "integer",
        "0",
        "days after the week until its files are final",
        "4",
        least=0,
    ),
    Key("schedule.weekly_at", "text", "10:00", "time of day in the agency's zone", '"10:00"'),
    Key("schedule.period_days", "integer", "7", "length of a period, days", "31", least=1),
    Key(
        "schedule.first_day",
        "text",
        REQUIRED,
        "periods other than weeks: the first service day of the first one",
        "2021-11-15",
    ),
    Key("approval", "section", OPTIONAL, "who must say yes before publication", ""),
    Key("approval.required", "flag", "false", "whether people are asked at all", "true"),
    Key("approval.persons", "integer", "1", "how many people must approve", "2", least=1),
    Key("approval.role", "text", "release_officer", "their role in people.yaml", "release_officer"),
    Key(
        "approval.not_the_starter",
        "flag",
        "true from two persons on",
        "whoever started the run may not approve it",
        "true",
    ),
    Key("publish", "section", REQUIRED, "what the package says of itself", ""),
    Key("publish.licence", "text", REQUIRED, "licence of the data, SPDX", "CC-BY-4.0"),
    Key("publish.curator", "text", REQUIRED, "who publishes", "Example Transport Authority"),
    Key("publish.contact", "text", REQUIRED, "where questions go", "open-data@transport.example"),
    Key(
        "publish.synthetic_rows",
        "flag",
        "false",
        "stability_histogram: also one row per counted trip",
        "true",
    ),
    Key(
        "publish.holidays",
        "text",
        OPTIONAL,
        "public holidays: CSV with service_date, holiday",
        "domains/holidays_nsw.csv",
    ),
    Key("meant_for", "texts", OPTIONAL, "queries that the release is meant for", "", Query),
)


def key_at(path: str) -> Key | None:
    """Return the key at a path of a file, free names and places in lists allowed for.

    Examples:
        >>> key_at("caps[1].rho").path
        'caps[N].rho'
        >>> key_at("tables.on_time.by").path
        'tables.NAME.by'
        >>> key_at("time.slot_minute") is None
        True
    """
    ways = re.sub(r"\[\d+\]", "[N]", path).split(".")
    for key in KEYS:
        known = key.path.split(".")
        if len(known) == len(ways) and all(
            mine in (its, "NAME") for mine, its in zip(known, ways, strict=True)
        ):
            return key
    return None


def reference() -> str:
    """Return the reference as Markdown."""
    head = (
        "# Programme files: every key\n\n"
        "Printed by `turnstile check --keys`, from `programme/keys.py`. NAME stands for a free "
        "name, N for a place in a list. Amounts are exact and stand in quotes.\n\n"
        "| key | type | default | meaning | example |\n|---|---|---|---|---|\n"
    )
    return head + "".join(_row(key) for key in KEYS)


def _row(key: Key) -> str:
    """Return one row of the reference."""
    allowed = "" if key.choices is None else ": " + ", ".join(key.choices)
    least = "" if key.least is None else f", {key.least} or more"
    example = f"`{key.example}`" if key.example else ""
    cells = (f"`{key.path}`", key.kind + allowed + least, key.default, key.meaning, example)
    return f"| {' | '.join(cells)} |\n"
