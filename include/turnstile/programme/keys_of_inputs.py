"""Keys of what a programme reads: source, clock and public cells; `read_inputs` reads them."""

from __future__ import annotations

from turnstile.programme.id_form import IdKind, LetterCase
from turnstile.programme.key import OPTIONAL, REQUIRED, Key
from turnstile.programme.source_spec import (
    DateForm,
    Feed,
    MissingDay,
    SpeedUnit,
    TapAction,
    WithoutCard,
)
from turnstile.programme.spec import Outside


def _form_keys(key: str, meaning: str) -> tuple[Key, ...]:
    """Return the keys of the form of ids."""
    path = f"source.{key}"
    unstated = "without it ids stay as they come, less outer spaces (FEEDS.md)"
    return (
        Key(path, "section", OPTIONAL, f"{meaning}; {unstated}", ""),
        Key(f"{path}.kind", "choice", REQUIRED, "what an id is", "digits", IdKind),
        Key(
            f"{path}.length",
            "integer",
            REQUIRED,
            "of digits: how many; leading zeros are added, or left out, up to it; at most 64",
            "9",
            least=2,
        ),
        Key(
            f"{path}.case",
            "choice",
            LetterCase.KEEP,
            "of text: what its letters become",
            "upper",
            LetterCase,
        ),
    )


INPUTS: tuple[Key, ...] = (
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
        "a service day without a row stops the week; or it does not, and a day is stated as a gap "
        "where files are named by service day and it has none (FEEDS.md)",
        "refuse",
        MissingDay,
    ),
    Key(
        "source.absent_days",
        "texts",
        OPTIONAL,
        "service days without service, known beforehand: neither drawn nor charged, and stated as "
        "gaps; their rows are not read",
        "[2016-12-25]",
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
        "source.timetable",
        "text",
        OPTIONAL,
        "vehicles: public GTFS feed; delays and stops are worked out from positions by it",
        "domains/gtfs.zip",
    ),
    Key(
        "source.stop_within_m",
        "integer",
        "100",
        "beside timetable: how near to a stop a position is a call at it, meters",
        "60",
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
    *_form_keys("card_form", "trips: the one spelling of card ids"),
    *_form_keys("vehicle_form", "vehicles: the one spelling of their ids"),
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
    Key("domain.lists", "section", OPTIONAL, "our category: its public list", ""),
    Key(
        "domain.lists.NAME",
        "text",
        REQUIRED,
        "CSV of value and label, for route and direction; of trips also fare_product and "
        "vehicle_trip, of passenger events boarding_visit and alighting_visit",
        "domains/routes.csv",
    ),
    Key(
        "domain.regions",
        "text",
        OPTIONAL,
        "trips: CSV of area, region and zone; for tables of origins and destinations",
        "domains/regions.csv",
    ),
    Key("domain.periods", "section", OPTIONAL, "trips: periods of the day, by name", ""),
    Key(
        "domain.periods.NAME",
        "text",
        REQUIRED,
        "a stretch of full slots; what is in none is OTHER",
        '"07:00-09:00"',
    ),
    Key(
        "domain.timetable",
        "text",
        OPTIONAL,
        "public GTFS feed; shows which cells are one vehicle or one stop",
        "domains/gtfs.zip",
    ),
)
