"""The files of the explorer: a package's own numbers, read once, listed, signed, all declared."""

from __future__ import annotations

import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import pytest
from small_deployment import WEEK, Deployment

from turnstile.cli import main
from turnstile.commands.ledger_opened import open_to_write, publish_series
from turnstile.ledger.custody.zone_index import INDEX as LISTED
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.publishing.carried.sums import Package
from turnstile.publishing.contents_check import unknown_in_explorer
from turnstile.publishing.explore import site
from turnstile.publishing.explore.lines_of_map import SIDE, Plane, corners_of, lines_of
from turnstile.publishing.explore.week_of_places import week_of_places
from turnstile.publishing.series.index import EXPLORER_PAGE
from turnstile.publishing.week.geography import features_of


def handed_over(path: Path) -> Any:
    """Return the value that a file of data hands to the page."""
    return site._handed_over(path.read_bytes())


@pytest.fixture
def public(copied_home: Path) -> Path:
    """The public zone of a home that a test may write to."""
    return copied_home / "public"


def test_files_are_in_the_index_with_their_digests_and_in_the_signed_list(
    published: Path,
) -> None:
    listed = (published / LISTED).read_text()
    for programme in ("opal", "itms"):
        index = json.loads((published / programme / "series/index.json").read_bytes())
        named = {entry["path"] for entry in index["files"]}
        explored = {p for p in (published / programme).rglob("*") if p.is_file()}
        names = {p.relative_to(published / programme).as_posix() for p in explored}
        names = {path for path in names if path.startswith("explore")}
        assert {EXPLORER_PAGE, site.INDEX, f"explore/weeks/{WEEK}-r0.js"} <= names <= named
        assert all(f"  {programme}/{path}\n" in listed for path in names)
        assert '<a href="explore.html">' in (published / programme / "index.html").read_text()


def test_an_altered_or_a_foreign_file_is_found(public: Path) -> None:
    assert main(["ledger", "verify"]) == 0
    path = public / f"opal/explore/weeks/{WEEK}-r0.js"
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"format":2', b'"format":7'))
    assert main(["ledger", "verify"]) == 4
    path.write_bytes(content)
    assert main(["ledger", "verify"]) == 0
    (public / "opal/explore/rows.js").write_text("turnstile()")
    assert main(["ledger", "verify"]) == 4


def test_a_package_is_read_once_and_again_where_its_file_is_not_as_it_was(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(*given: Any) -> Any:
        read.append(given[2])
        return week_of_places(*given)

    monkeypatch.setattr(site, "week_of_places", counted)
    before = {p: p.read_bytes() for p in (public / "opal/explore").rglob("*.js")}
    publish_series(open_to_write(), "opal")
    assert read == []
    week = public / f"opal/explore/weeks/{WEEK}-r0.js"
    week.write_bytes(week.read_bytes().replace(b'"week":[[', b'"week":[[9'))
    publish_series(open_to_write(), "opal")
    assert read == [WEEK]
    (public / f"opal/explore/days/{WEEK}-r0-0.js").unlink()
    publish_series(open_to_write(), "opal")
    assert read == [WEEK, WEEK]
    assert {p: p.read_bytes() for p in (public / "opal/explore").rglob("*.js")} == before


def test_a_withdrawn_week_leaves_nothing_behind(public: Path) -> None:
    assert main(["ledger", "withdraw", f"opal/{WEEK}/r0", "--reason", "wrong"]) == 0
    assert not list((public / "opal/explore").rglob("*.js"))
    assert not (public / "opal/explore.html").exists()
    assert "explore.html" not in (public / "opal/index.html").read_text()
    assert main(["ledger", "verify"]) == 0


def test_numbers_are_those_of_the_package_and_sums_of_them(published: Path) -> None:
    package = Package(published / f"opal/{WEEK}/r0")
    record = handed_over(published / f"opal/explore/weeks/{WEEK}-r0.js")
    for at in (0, len(record["places"]) - 1):
        mode, label = record["places"][at][:2]

        def is_here(row: dict[str, str], mode: str = mode, label: str = label) -> bool:
            return (row["tap"], row["mode"], row["location"]) == ("on", mode, label)

        whole = package.total("location", is_here)
        assert record["week"][at][:3] == pytest.approx(
            [whole.value, whole.low_95, whole.high_95], abs=0.051
        )
        unbiased = package.total("location", is_here, "unbiased")
        value, deviation = record["test"][at]
        assert value == pytest.approx(unbiased.value, abs=0.51)
        assert deviation == pytest.approx(unbiased.standard_deviation, rel=0.02)
        block = handed_over(
            published / f"opal/explore/days/{WEEK}-r0-{at // site.PLACES_A_FILE}.js"
        )
        hours = block["hours"][at % site.PLACES_A_FILE]
        rows = [row for row in package.rows("location_slot") if is_here(row)]
        assert len(rows) > 7
        for row in rows:
            if row["slot"] in record["slots"]:
                day = record["days"].index(row["service_date"])
                slot = 3 * record["slots"].index(row["slot"])
                assert hours[day][slot : slot + 3] == _said(row)


def _said(row: dict[str, str]) -> list[float | None]:
    """Return the number of a row of a package with its interval."""
    return [float(row[name]) if row[name] else None for name in ("value", "low_95", "high_95")]


def test_means_are_those_of_the_package(published: Path) -> None:
    package = Package(published / f"itms/{WEEK}/r0")
    record = handed_over(published / f"itms/explore/weeks/{WEEK}-r0.js")
    rows = {row["cell"]: row for row in package.rows("speed_places")}
    numbers = zip(record["places"], record["week"], strict=True)
    shown = {place[1]: number for place, number in numbers}
    assert (record["unit"], record["is_count"]) == ("km/h", False)
    assert shown.keys() == rows.keys()
    assert any(_said(row)[0] for row in rows.values())
    for cell, row in rows.items():
        assert shown[cell] == _said(row)
    hours = {(row["cell"], row["slot"]): row for row in package.rows("speed")}
    for (cell, slot), row in hours.items():
        at = [place[1] for place in record["places"]].index(cell)
        assert record["hours"][at][record["slots"].index(slot)] == _said(row)


def test_what_nothing_declares_is_refused(published: Path) -> None:
    index = handed_over(published / "opal" / site.INDEX)
    assert unknown_in_explorer(index) == ()
    index["cards"] = 7
    index["weeks"][0]["trips_exact"] = 9
    assert unknown_in_explorer(index) == ("weeks.trips_exact", "cards")


def test_a_name_that_is_markup_or_script_comes_through_as_a_text() -> None:
    label = '"];alert(1)</script><img src=x onerror=alert(1)>\u2028'
    content = site._script("explore/index.js", {"label": label})
    assert site._handed_over(content) == {"label": label}
    assert "\u2028".encode() not in content


def test_the_map_has_the_boundary_or_the_ways_of_a_public_file(
    deployment: Deployment,
) -> None:
    itms = load_programme("itms", deployment.include)
    features = features_of(itms, load_domain(itms, deployment.include), deployment.include)
    plane = Plane.around(corners_of(features))
    lines = lines_of(itms, deployment.include, plane)
    assert lines
    assert all(len(line) % 2 == 0 and len(line) >= 4 for line in lines)
    corners = [plane.place(position) for position in corners_of(features)]
    assert all(-1 <= coordinate <= SIDE + 1 for corner in corners for coordinate in corner)
    north, south = (plane.place((72.8, latitude)) for latitude in (21.3, 21.1))
    assert north[1] < south[1]  # north is up

    opal = load_programme("opal", deployment.include)
    assert lines_of(opal, deployment.include, plane) == []
    feed = io.BytesIO()
    with zipfile.ZipFile(feed, "w") as zipped:
        zipped.writestr("shapes.txt", "shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence\n"
                        "a,21.1,72.8,1\na,21.3,72.9,3\na,21.2,72.9,2\nb,21.1,72.8,1\n")  # fmt: skip
    (deployment.include / "domains/gtfs.zip").write_bytes(feed.getvalue())
    deployment.edit("opal", "  slots: all_day", "  slots: all_day\n  timetable: domains/gtfs.zip")
    opal = load_programme("opal", deployment.include)
    ways = lines_of(opal, deployment.include, plane)
    assert len(ways) == 1  # b is a point
    assert len(ways[0]) == 6


def test_a_plane_is_as_wide_as_it_is_high_on_the_ground() -> None:
    plane = Plane.around([(151.0, -34.0), (151.2, -33.8)])
    assert plane.by_longitude / plane.by_latitude == pytest.approx(math.cos(math.radians(33.9)))
