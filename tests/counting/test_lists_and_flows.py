"""Categories by public lists, regions, zones and periods: rows against counts made by hand."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_deployment import WEEK, Deployment

from turnstile.counting.exact_tables import count
from turnstile.errors import ProgrammeError
from turnstile.estimates.labelled import labelled
from turnstile.pipeline.context import open_release
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.sources.ingest.week import ingest

Cli = Callable[..., int]
TABLES = """tables:
  lines: {by: [tap_on_location, route], trips_at_most: 900, per_cell_at_most: 900}
  on_route: {by: [route]}
  flows: {by: [origin_zone, destination_zone, day_period], trips_at_most: 900}
  # """
SPLIT = '    on_time: "1/8"\n'
MORE = '    on_time: "1/32"\n    lines: "1/32"\n    on_route: "1/32"\n    flows: "1/32"\n'
ROUTES = {"r7": "Line 7", "r7X": "Line 7", "r8": "Line 8"}
PERIODS = '{early: "00:00-08:00", day: "08:00-20:00"}'


@pytest.fixture
def listed(deployment: Deployment) -> Deployment:
    """`opal` with lines and flows; its cards keep all of their trips."""
    domains = deployment.include / "domains"
    lines = [f"{value},{label}" for value, label in ROUTES.items()]
    (domains / "routes.csv").write_text("\n".join(["value,label", *lines]) + "\n")
    with (domains / "opal_locations.csv").open(newline="") as file:
        areas = sorted({row["area"] for row in csv.DictReader(file)})
    zones = [f"{area},{'north' if n % 2 else 'south'},{n % 3}" for n, area in enumerate(areas)]
    (domains / "regions.csv").write_text("\n".join(["area,region,zone", *zones]) + "\n")
    lists = "  lists: {route: domains/routes.csv}\n  regions: domains/regions.csv\n"
    given = f"{lists}  periods: {PERIODS}\n  slots: all_day"
    deployment.edit("opal", "  slots: all_day", given)
    deployment.edit("opal", "tables:  ", TABLES)
    deployment.edit("opal", SPLIT, MORE)
    bound = "trips_at_most: 6, once_per_finest_cell: true"
    deployment.edit("opal", bound, "trips_at_most: 900")
    return deployment


def with_routes(deployment: Deployment, turnstile: Cli) -> list[dict[str, str]]:
    """Land a small week whose trips name a route, in turns; return its rows."""
    assert turnstile("sample", "opal", "--weeks", WEEK, "--rows", 900, "--seed", 4) == 0
    all_rows: list[dict[str, str]] = []
    for path in sorted(deployment.landing("opal").glob("*.csv")):
        with path.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        for number, row in enumerate(rows):
            row["line"] = (*ROUTES, "r9", "")[number % 5]
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        all_rows += rows
    deployment.edit("opal", "  missing_day", "  columns: {route: line}\n  missing_day")
    return all_rows


def counted(deployment: Deployment) -> dict[str, Counter[tuple[Any, ...]]]:
    """What the product counts: table to labels to trips."""
    release = open_release("opal", WEEK)
    quiet: Callable[[str], None] = lambda _: None  # noqa: E731
    settings, days = release.settings, release.week.days
    read = ingest(
        release.programme,
        release.week,
        landing=settings.landing,
        private=settings.private,
        progress=quiet,
    )
    tables = count(
        release.programme,
        release.domain,
        days,
        read.folder / "rows",
        secret=b"k",
        work=deployment.home / "work",
        progress=quiet,
    )
    counters: dict[str, Counter[tuple[Any, ...]]] = {}
    for spec in release.programme.tables:
        vectors = [table.reveal_to_mechanism() for table in tables if table.table == spec.name]
        rows = labelled(release.domain, spec, days, {"count": vectors}).to_pylist()
        counters[spec.name] = Counter()
        for row in rows:
            key = (str(row["service_date"]), row["mode"], *(row[axis] for axis in spec.by))
            if row["count"]:
                counters[spec.name][key] += row["count"]
    return counters


def test_lines_zones_and_periods_are_what_the_public_lists_say(
    listed: Deployment, turnstile: Cli
) -> None:
    rows = with_routes(listed, turnstile)
    domains = listed.include / "domains"
    with (domains / "opal_locations.csv").open(newline="") as file:
        area_of = {(row["mode"], row["location"]): row["area"] for row in csv.DictReader(file)}
    with (domains / "regions.csv").open(newline="") as file:
        zone_of = {r["area"]: f"{r['region']}/{r['zone']}" for r in csv.DictReader(file)}
    lines: Counter[tuple[Any, ...]] = Counter()
    flows: Counter[tuple[Any, ...]] = Counter()
    for row in {tuple(row.items()): row for row in rows}.values():
        known = (row["tap_on_date"], row["mode"])
        ends = [area_of.get((row["mode"], row[f"tap_{end}_location"])) for end in ("on", "off")]
        lines[*known, ends[0] or "UNKNOWN", ROUTES.get(row["line"], "UNKNOWN")] += 1
        hour = int(row["tap_on_time"][:2])
        period = "early" if hour < 8 else "day" if hour < 20 else "OTHER"
        zones = [zone_of.get(area or "", "UNKNOWN") for area in ends]
        flows[*known, *zones, period] += 1
    counts = counted(listed)
    assert counts["lines"] == lines
    assert counts["flows"] == flows
    assert len({key[3] for key in lines}) == 3
    on_route: Counter[tuple[Any, ...]] = Counter()
    for (day, mode, _, line), number in lines.items():
        on_route[day, mode, line] += number
    assert counts["on_route"] == on_route


def test_rows_without_a_card_that_differ_in_their_route_are_two_units(
    listed: Deployment, turnstile: Cli
) -> None:
    rows = with_routes(listed, turnstile)
    row = {**rows[0], "card_id": "", "line": "r7"}
    for path in listed.landing("opal").glob("*.csv"):
        path.unlink()
    with (listed.landing("opal") / "opal.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, row)
        writer.writeheader()
        writer.writerows([row, {**row, "line": "r8"}, row])  # the last one came twice
    listed.edit("opal", "  missing_day", "  without_card: own_unit\n  missing_day")
    listed.edit("opal", "card_day: {trips_at_most: 900}", "card_day: {trips_at_most: 1}")
    assert sum(counted(listed)["on_route"].values()) == 2


def test_a_file_without_the_column_of_a_list_is_refused_and_nothing_happens(
    listed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("sample", "opal", "--weeks", WEEK, "--rows", 300) == 0
    assert turnstile("run", "opal", "--week", WEEK) == 2
    assert "route: the column is missing" in capsys.readouterr().err
    assert listed.nothing_happened()


def test_a_column_that_no_list_is_about_is_never_read(
    deployment: Deployment, turnstile: Cli
) -> None:
    assert turnstile("sample", "opal", "--weeks", WEEK, "--rows", 300) == 0
    before = counted(deployment)
    deployment.edit("opal", "  missing_day", "  columns: {route: line}\n  missing_day")
    assert counted(deployment) == before, "no file has the column"
    deployment.edit("opal", "{route: line}", "{rout: line}")
    with pytest.raises(ProgrammeError, match="'rout' is no field"):
        counted(deployment)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("routes.csv", "value,label\nr7,UNKNOWN\n", "reserved"),
        ("routes.csv", "value,label\nr7,A\nr7,B\n", "twice"),
        ("routes.csv", "value,label\n", "lists nothing"),
        ("routes.csv", "value,label\nr7,=1+1\n", "formula"),
        ("regions.csv", "area,region,zone\nx,@a,c\n", "formula"),
        ("routes.csv", "route,label\nr7,A\n", "no such column"),
        ("regions.csv", "area,region,zone\nnowhere,a,b\n", "no line of area"),
        ("regions.csv", "area,region,zone\nx,a/b,c\n", "reserved"),
        ("regions.csv", "area,region,zone\nx,a,c\nx,b,c\n", "twice"),
    ],
)
def test_a_list_that_breaks_a_rule_is_refused(
    listed: Deployment, file: str, text: str, said: str
) -> None:
    (listed.include / "domains" / file).write_text(text)
    with pytest.raises(ProgrammeError, match=said):
        load_domain(load_programme("opal", listed.include), listed.include)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (PERIODS, '{early: "00:00-08:00", day: "04:00-20:00"}', "do not overlap|not overlap"),
        (PERIODS, '{early: "00:00-08:10"}', "slot of"),
        (PERIODS, '{early: "8 to 9"}', "no stretch"),
        (PERIODS, '{early: "08:00-04:00"}', "forwards"),
        ("lists: {route:", "lists: {shoe_size:", "no category"),
        ("[tap_on_location, route], trips_at_most: 900, per_cell_at_most: 900",
         "[tap_on_location, route]", "needs a bound of its own"),
        ("[origin_zone, destination_zone, day_period]",
         "[origin_zone, tap_off_location]", "never linked"),
        ("[origin_zone, destination_zone, day_period]",
         "[origin_zone, destination_region]", "never linked"),
        ("[origin_zone, destination_zone, day_period]",
         "[tap_on_slot, tap_off_slot]", "never linked"),
        ("day_period], trips_at_most: 900}",
         "day_period], trips_at_most: 900, year_to_date_from: 2016-W27}", "is for slots"),
    ],
)  # fmt: skip
def test_a_programme_that_would_link_more_or_bound_less_is_refused(
    listed: Deployment, old: str, new: str, said: str
) -> None:
    listed.edit("opal", old, new)
    with pytest.raises(ProgrammeError, match=said):
        load_programme("opal", listed.include)


def test_regions_are_h3_cells_of_public_coordinates(
    tmp_path: Path, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    include = Path(__file__).parents[2] / "include/domains"
    out = tmp_path / "regions.csv"
    assert turnstile("domain", "regions", include / "opal_locations.csv", "--out", out) == 0
    assert out.read_text() == (include / "opal_regions.csv").read_text()
    assert turnstile("domain", "regions", out, "--out", out) == 2  # it has no coordinates
    assert "latitude" in capsys.readouterr().err
