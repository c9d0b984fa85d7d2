from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path

import h3
import pytest

from turnstile.errors import ProgrammeError
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import DomainSpec, Outside, Programme, TableSpec, TimeSpec

INCLUDE = Path(__file__).resolve().parents[2] / "include"
CENTER = h3.latlng_to_cell(21.17, 72.83, 7)
STOPS = "mode,location,area,latitude,longitude\nbus,b2,2010,,\nbus,b1,2000,,\ntrain,t1,Central,,\n"


@pytest.fixture
def include(tmp_path: Path) -> Path:
    (tmp_path / "include/domains").mkdir(parents=True)
    return tmp_path / "include"


def opal(**domain: object) -> Programme:
    programme = load_programme("opal", INCLUDE)
    spec = replace(programme.domain, locations="domains/stops.csv", **domain)
    return replace(programme, domain=spec, source=replace(programme.source, modes=("train", "bus")))


def itms(file: str, **domain: object) -> Programme:
    programme = load_programme("itms", INCLUDE)
    spec = replace(programme.domain, service_area=f"domains/{file}", **domain)
    return replace(programme, domain=spec)


def write(include: Path, name: str, text: str) -> Path:
    path = include / "domains" / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["opal", "itms"])
def test_the_domains_of_the_project_load_and_every_table_has_cells(name: str) -> None:
    programme = load_programme(name, INCLUDE)
    domain = load_domain(programme, INCLUDE)
    assert domain.modes == programme.source.modes
    assert all(domain.cells(table) > 0 for table in programme.tables)
    assert domain.digest == load_domain(programme, INCLUDE).digest


def test_axes_of_trips_are_slots_and_sorted_areas_of_the_mode_with_unknown_last(
    include: Path,
) -> None:
    write(include, "stops.csv", STOPS)
    domain = load_domain(opal(), include)
    assert domain.modes == ("train", "bus")
    assert domain.dimension("bus", "tap_on_location").labels == ("2000", "2010", "UNKNOWN")
    assert domain.dimension("train", "tap_off_location").labels == ("Central", "UNKNOWN")
    slots = domain.dimension("bus", "tap_off_slot").labels
    assert slots[:2] == ("00:00", "00:15")
    assert slots[-2:] == ("23:45", "UNKNOWN")
    # A tap-on has a time, and every time of an all-day domain has a slot.
    assert domain.dimension("bus", "tap_on_slot").labels == slots[:-1]


def test_a_tap_on_can_miss_the_slots_only_where_they_leave_a_gap(include: Path) -> None:
    write(include, "stops.csv", STOPS)
    domain = load_domain(opal(first_minute=300), include)
    assert domain.dimension("bus", "tap_on_slot").labels[0] == "05:00"
    assert domain.dimension("bus", "tap_on_slot").unknown is not None


def test_there_is_no_unknown_where_rows_outside_are_dropped(include: Path) -> None:
    write(include, "stops.csv", STOPS)
    domain = load_domain(opal(outside=Outside.DROP), include)
    assert all(axis.unknown is None for mode in domain.modes for axis in domain.dimensions(mode))


def test_a_version_names_file_and_bytes(include: Path) -> None:
    write(include, "stops.csv", STOPS)
    first = load_domain(opal(), include)
    write(include, "stops.csv", STOPS + "bus,b3,2010,,\n")
    second = load_domain(opal(), include)
    assert first.version.startswith("domains/stops.csv@")
    assert first.version != second.version
    assert first.digest != second.digest


def test_a_loader_takes_the_programme_and_the_public_folder_and_nothing_else() -> None:
    assert list(inspect.signature(load_domain).parameters) == ["programme", "include"]


@pytest.mark.parametrize("name", ["../private/rows.csv", "domains/../../private/rows.csv"])
def test_a_file_of_the_private_zone_is_refused(include: Path, name: str) -> None:
    private = include.parent / "private"
    private.mkdir()
    (private / "rows.csv").write_text(STOPS)
    programme = opal()
    programme = replace(programme, domain=replace(programme.domain, locations=name))
    with pytest.raises(ProgrammeError, match="lies outside of include/"):
        load_domain(programme, include)


def test_an_absolute_path_and_a_link_to_the_data_are_refused(include: Path) -> None:
    outside = include.parent / "rows.csv"
    outside.write_text(STOPS)
    (include / "domains/stops.csv").symlink_to(outside)
    programme = opal()
    absolute = replace(programme, domain=replace(programme.domain, locations=str(outside)))
    for refused in (programme, absolute):
        with pytest.raises(ProgrammeError, match="lies outside of include/"):
            load_domain(refused, include)


@pytest.mark.parametrize(
    ("text", "where", "field", "rule"),
    [
        ("mode,location\nbus,b1\n", "domains/stops.csv", "area", "no such column"),
        ("mode,location,area\nbus,,2000\n", "domains/stops.csv:2", "location", "is empty"),
        ("mode,location,area\nbus,b1\n", "domains/stops.csv:2", "area", "is empty"),
        (STOPS + "bus,b1,2099,,\n", "domains/stops.csv:5", "location", "listed twice"),
        (STOPS + "bus,b4,UNKNOWN,,\n", "domains/stops.csv:5", "area", "reserved"),
        (STOPS + "bus,UNKNOWN,2000,,\n", "domains/stops.csv:5", "area", "reserved"),
        *(
            (STOPS + f"bus,b4,{label},,\n", "domains/stops.csv:5", "area", "as a formula")
            for label in ("=1+1", "+1", "-1", "@SUM(A1)", "a\x07b", '"=HYPERLINK(""x"")"')
        ),
        ("mode,location,area\nbus,b1,2000\n", "domains/stops.csv", "mode", "of mode 'train'"),
        ("", "domains/stops.csv", "mode", "no such column"),
    ],
)
def test_a_broken_list_of_locations_is_one_sentence_with_file_line_and_field(
    include: Path, text: str, where: str, field: str, rule: str
) -> None:
    write(include, "stops.csv", text)
    with pytest.raises(ProgrammeError, match=rule) as error:
        load_domain(opal(), include)
    assert (error.value.where, error.value.field) == (where, field)


def test_a_file_that_is_not_there_or_not_utf8_is_refused(include: Path) -> None:
    with pytest.raises(ProgrammeError, match=r"no file include/domains/stops\.csv"):
        load_domain(opal(), include)
    (include / "domains/stops.csv").write_bytes(STOPS.encode() + b"bus,b\xff,2000,,\n")
    with pytest.raises(ProgrammeError, match="not UTF-8"):
        load_domain(opal(), include)


def test_a_byte_order_mark_and_lines_of_other_modes_do_no_harm(include: Path) -> None:
    write(include, "stops.csv", STOPS)
    first = load_domain(opal(), include)
    write(include, "stops.csv", "\ufeff" + STOPS + "ferry,f1,Manly,,\n")
    assert load_domain(opal(), include).digest == first.digest


@pytest.mark.parametrize(
    ("spec", "slot_minutes", "field"),
    [
        ({"first_minute": 600, "last_minute": 600}, 15, "domain.slots"),
        ({"first_minute": 0, "last_minute": 1500}, 15, "domain.slots"),
        ({"first_minute": 10, "last_minute": 1440}, 15, "time.slot_minutes"),
        ({}, 7, "time.slot_minutes"),
    ],
)
def test_slots_that_do_not_fit_the_day_are_refused(
    include: Path, spec: dict[str, int], slot_minutes: int, field: str
) -> None:
    write(include, "stops.csv", STOPS)
    programme = opal(**spec)
    programme = replace(programme, time=TimeSpec(programme.time.zone, slot_minutes))
    with pytest.raises(ProgrammeError) as error:
        load_domain(programme, include)
    assert error.value.field == field


def test_a_table_of_an_unknown_dimension_is_refused(include: Path) -> None:
    write(include, "stops.csv", STOPS)
    programme = replace(opal(), tables=(TableSpec("odd", ("cell",)),))
    with pytest.raises(ProgrammeError, match="no dimension 'cell'") as error:
        load_domain(programme, include)
    assert error.value.field == "tables.odd.by"


def polygon(*, closed: bool = True) -> dict[str, object]:
    ring = [[72.75, 21.1], [72.95, 21.1], [72.95, 21.25], [72.75, 21.25]]
    return {"type": "Polygon", "coordinates": [[*ring, *ring[:1]] if closed else "x"]}


@pytest.mark.parametrize(
    "document",
    [
        polygon(),
        {"type": "Feature", "properties": {}, "geometry": polygon()},
        {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": polygon()}] * 2},
    ],
    ids=["geometry", "feature", "collection"],
)
def test_a_polygon_holds_the_cells_whose_centers_lie_in_it(
    include: Path, document: dict[str, object]
) -> None:
    write(include, "area.geojson", json.dumps(document))
    cells = load_domain(itms("area.geojson"), include).dimension("bus", "cell").labels
    near = h3.grid_disk(h3.latlng_to_cell(21.17, 72.85, 7), 20)
    inside = [
        cell
        for cell in near
        if 21.1 <= h3.cell_to_latlng(cell)[0] <= 21.25
        and 72.75 <= h3.cell_to_latlng(cell)[1] <= 72.95
    ]
    assert list(cells) == sorted(inside)
    assert len(cells) > 20


def test_a_list_of_cells_is_the_area(include: Path) -> None:
    area = h3.grid_disk(CENTER, 1)
    write(include, "area.csv", "\n".join(["cell", *area, area[0].upper()]))
    domain = load_domain(itms("area.csv"), include)
    assert domain.dimension("bus", "cell").labels == tuple(sorted(area))
    assert domain.dimension("bus", "slot").labels == ("09:00", "12:00", "15:00", "18:00")


@pytest.mark.parametrize("header", ["stop_id,stop_lat,stop_lon", "name,latitude,longitude"])
@pytest.mark.parametrize("ring", [0, 2])
def test_stops_and_the_ring_around_them_are_the_area(include: Path, header: str, ring: int) -> None:
    write(include, "stops.txt", f"{header}\na,21.17,72.83\nb,21.1701,72.8301\nc,21.3,72.9\n")
    domain = load_domain(itms("stops.txt", ring_cells=ring), include)
    expected = set(h3.grid_disk(CENTER, ring)) | set(
        h3.grid_disk(h3.latlng_to_cell(21.3, 72.9, 7), ring)
    )
    assert domain.dimension("bus", "cell").labels == tuple(sorted(expected))


@pytest.mark.parametrize(
    ("name", "text", "field", "rule"),
    [
        ("a.geojson", "{", "geometry", "is not GeoJSON"),
        ("a.geojson", "[1]", "geometry", "is not GeoJSON"),
        ("a.geojson", '{"features": []}', "features", "is empty"),
        ("a.geojson", '{"type": "Point", "coordinates": [1, 2]}', "geometry", "no Polygon"),
        ("a.geojson", json.dumps(polygon(closed=False)), "geometry", "broken polygon"),
        (
            "a.geojson",
            '{"type": "Polygon", "coordinates": [[[1, 1], [1.0001, 1], [1, 1.0001], [1, 1]]]}',
            "geometry",
            "center of no cell of resolution 7",
        ),
        ("a.csv", "cell\nxyz\n", "cell", "is no H3 cell"),
        ("a.csv", f"cell\n{h3.cell_to_parent(CENTER, 6)}\n", "cell", "has resolution 6"),
        ("a.csv", "cell\n", "cell", "lists no cell"),
        ("a.csv", "latitude,longitude\n91,2\n", "latitude", "must be a number of degrees"),
        ("a.csv", "latitude,longitude\n1,nan\n", "longitude", "must be a number of degrees"),
        ("a.csv", "latitude,longitude\n1,east\n", "longitude", "must be a number of degrees"),
        ("a.csv", "stop_lat,stop_lon\n", "stop_lat", "lists no stop"),
        ("a.csv", "x,y\n1,2\n", "latitude", "no such column"),
    ],
)
def test_a_broken_service_area_is_one_sentence_with_file_and_field(
    include: Path, name: str, text: str, field: str, rule: str
) -> None:
    write(include, name, text)
    with pytest.raises(ProgrammeError, match=rule) as error:
        load_domain(itms(name), include)
    assert error.value.field == field
    assert error.value.where.startswith(f"domains/{name}")


def test_telemetry_without_an_area_or_a_resolution_is_refused(include: Path) -> None:
    write(include, "area.csv", f"cell\n{CENTER}\n")
    spec = DomainSpec(None, None, 7, 0, 540, 1260, Outside.DROP)
    with pytest.raises(ProgrammeError, match="name a file under include/domains"):
        load_domain(replace(itms("area.csv"), domain=spec), include)
    with pytest.raises(ProgrammeError, match="is missing; write 7"):
        load_domain(itms("area.csv", h3_resolution=None), include)


def test_cells_outside_are_unknown_where_the_programme_keeps_them(include: Path) -> None:
    write(include, "area.csv", f"cell\n{CENTER}\n")
    domain = load_domain(itms("area.csv", outside=Outside.UNKNOWN), include)
    assert domain.dimension("bus", "cell").labels == (CENTER, "UNKNOWN")
    assert domain.dimension("bus", "slot").labels[-1] == "UNKNOWN"
