"""`report.html`: one file that fetches nothing, says what the tables say, and opens in Chromium."""

from __future__ import annotations

import math
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pandas as pd
import pyarrow.parquet as pq
import pytest

from turnstile.estimates.vehicles.rolling_means import over_slots, rolling_means
from turnstile.html_pages import environment_of
from turnstile.programme.loading import load_programme
from turnstile.publishing.carried.sums import Package
from turnstile.publishing.contents import Contents
from turnstile.publishing.package_numbers import read_week
from turnstile.publishing.package_reader import Tables
from turnstile.publishing.pages import _environment
from turnstile.publishing.week import numbers as week_numbers
from turnstile.publishing.week.numbers import completed
from turnstile.publishing.week.pictures import Picture
from turnstile.publishing.week.sums import Sums
from turnstile.release.drawn import Drawn

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
_OUTSIDE = re.compile(r"""(?:src|href|url)\s*[=(]\s*["']?(?!data:|#)[a-z]+:""", re.IGNORECASE)


def test_the_page_refers_to_nothing_outside_of_itself(package: Path) -> None:
    text = (package / "report.html").read_text()
    assert not _OUTSIDE.findall(text)
    assert "<script" not in text
    assert (package / "report.html").stat().st_size < 3_000_000
    assert _OUTSIDE.findall('<img src="https://elsewhere.example/x.png">')  # the check can fail


HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>'


def test_a_stop_whose_name_is_markup_is_a_text_in_pictures_and_pages() -> None:
    chart = {
        "data": {"values": [{"label": HOSTILE, "value": 1}]},
        "title": HOSTILE,
        "mark": "bar",
        "encoding": {
            "x": {"field": "value", "type": "quantitative"},
            "y": {"field": "label", "type": "nominal"},
        },
    }
    svg = Picture("top", HOSTILE, HOSTILE, chart).svg
    assert svg.count("alert(1)") >= 2
    assert "<script" not in svg
    assert "<img" not in svg
    assert environment_of("turnstile.operations.budget_page").autoescape is True
    escapes = _environment().autoescape
    assert callable(escapes)
    pages = _environment().list_templates()
    assert {name for name in pages if escapes(name)} == {n for n in pages if ".html." in n} != set()


def test_every_picture_has_a_text(package: Path) -> None:
    text = (package / "report.html").read_text()
    titles = re.findall(r"<figure>\n<h2>(\w+)", text)
    assert {"Where", "The"} <= set(titles)
    assert "When" in titles or package.parent.parent.name == "itms"  # may be noise throughout there
    assert len(re.findall(r'<div role="img" aria-label="[^"]{50,}', text)) == len(titles)


def test_a_package_is_opened_for_its_sums_once(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []

    def opening(folder: Path) -> Sums:
        opened.append(folder)
        return Sums(folder)

    monkeypatch.setattr(week_numbers, "Sums", opening)
    include = package.parents[4] / "include"
    programme = load_programme(package.parents[1].name, include)
    for times in (1, 2):  # another build of it opens it again
        contents = Contents(
            folder=package,
            drawn=cast("Drawn", SimpleNamespace(programme=programme)),
            card=Tables(package).card,
            include=include,
            built_at=datetime(2016, 8, 8, tzinfo=UTC),
        )
        places = week_numbers.by_location(contents)
        assert not week_numbers.by_time_and_location(contents, list(places["label"])).empty
        assert week_numbers.by_location(contents) is places
        assert opened == times * [package]


def test_what_can_be_used_leads_and_is_what_the_intervals_say(published: Path) -> None:
    package = next(published.glob("opal/*/r0"))
    said = (package / "report.html").read_text().split("<figure>")[0]
    rows = re.findall(
        r"<tr><td>(\w+)</td><td>[^<]+</td><td>([\d,]+)</td><td>(\d+) %</td><td>(\d+) %", said
    )
    assert {"location", "location_slot"} <= {name for name, *_ in rows}
    for name, numbers, usable, counted in rows:
        table = pq.read_table(package / f"data/{name}.parquet").to_pandas()
        assert int(numbers.replace(",", "")) == len(table)
        estimates = table["value"]
        reach = (table["high_90"] - estimates).combine(estimates - table["low_90"], max)
        # As the product multiplies: with 76.8 to 115.2, 96.0 lies within 0.2 * 96.0, not 96.0 / 5.
        is_usable = (estimates > 0) & (reach <= 0.2 * estimates)
        assert int(usable) == round(100 * is_usable.mean())
        assert int(counted) == round(100 * estimates[is_usable].sum() / estimates.sum())
    assert f"`data/{rows[0][0]}.csv`" in (package / "README.md").read_text()
    lead = (package / f"data/{rows[0][0]}.csv").read_bytes()
    assert (package / "START_HERE.csv").read_bytes() == lead


def test_the_week_in_words_is_the_sum_of_the_published_numbers(published: Path) -> None:
    package = next(published.glob("opal/*/r0"))
    said = (package / "report.html").read_text()
    table = pq.read_table(package / "data/day.parquet").to_pandas()
    table = table[table["tap"] == "on"]
    total = table["unbiased"].sum()
    half = 1.959964 * math.sqrt((table["unbiased_sd"] ** 2).sum())
    shown = re.search(r"About ([\d,]+) tap-ons in the week \(± ([\d,]+)\)", said)
    assert shown is not None
    assert abs(int(shown[1].replace(",", "")) - total) <= 1
    assert abs(int(shown[2].replace(",", "")) - half) <= 1


_RECT = re.compile(r'aria-label="start of the slot: ([\d:]+); label: ([^;"]+); [^:"]+: ')


def test_hours_are_coloured_only_where_their_interval_is_known_and_above_0(
    published: Path,
) -> None:
    package = next(published.glob("opal/*/r0"))
    picture = (package / "report.html").read_text()
    hourly = (package / "data/location_hour.parquet").is_file()
    name, time = ("location_hour", "hour") if hourly else ("location_slot", "slot")
    coloured = set(_RECT.findall(picture))
    assert coloured
    table = pq.read_table(package / f"data/{name}.parquet").to_pandas()
    table = table[table["tap"] == "on"]
    table["variance"] = table["unbiased_sd"] ** 2
    keys = [table[name].astype(str) for name in (time, "location")]
    totals = table.groupby(keys)[["unbiased", "variance"]].sum()
    low = (totals["unbiased"] - 1.96 * totals["variance"] ** 0.5).to_dict()
    if "tap-ons, estimate" in picture:
        sums = Package(package)
        rows = [row for row in sums.rows(name) if row["tap"] == "on"]
        of_estimates = {
            cell: sums.estimated(name, [r for r in rows if (r[time], r["location"]) == cell]).low_95
            for cell in coloured
        }
        low |= {cell: bound for cell, bound in of_estimates.items() if not math.isnan(bound)}
    else:
        assert "error of most estimates is not known" in (package / "report.html").read_text()
    assert all(low[cell] > 0 for cell in coloured)  # not a number is not above 0


def test_an_estimate_without_an_interval_is_shown_by_the_unbiased_number() -> None:
    columns = ["time", "label", "value", "low", "is_estimate"]
    known = pd.DataFrame([("09:00", "A", 40.0, 31.0, True)], columns=columns)
    unbiased = pd.DataFrame(
        [("08:00", "A", 90.0, 80.0, False), ("09:00", "A", 44.0, 30.0, False)], columns=columns
    )
    shown = completed(known, unbiased, ["time", "label"])
    assert shown[["time", "value", "is_estimate"]].to_numpy().tolist() == [
        ["08:00", 90.0, False],
        ["09:00", 40.0, True],
    ]


def test_speeds_of_hexagons_are_those_of_the_drawn_sums(published: Path) -> None:
    package = next(published.glob("itms/*/r0"))
    drawn = Tables(package).drawn("speed").to_pandas()
    by_cell = drawn.groupby("cell")[["sum", "buses"]].sum()
    week = read_week(package, "speed")
    whole_day = over_slots(week)
    slots = len(drawn) // len(by_cell)
    assert whole_day.noise.sum_sd == pytest.approx(week.noise.sum_sd * slots**0.5, rel=1e-5)
    assert whole_day.noise.count_sd == pytest.approx(week.noise.count_sd * slots**0.5, rel=1e-5)
    table = rolling_means([whole_day]).to_pandas().set_index("cell")
    shown = table[~table["is_withheld"]]
    expected = 32.5 + by_cell["sum"] / 10 / by_cell["buses"]
    assert len(shown) > 0
    for cell, row in shown.iterrows():
        assert abs(row["mean_speed_kmh"] - min(max(expected[cell], 0), 65)) < 0.06
        assert row["low_95_kmh"] <= row["mean_speed_kmh"] <= row["high_95_kmh"]


def test_speeds_of_the_report_are_those_of_the_table_of_places(published: Path) -> None:
    package = next(published.glob("itms/*/r0"))
    places = Tables(package).rows("speed_places").to_pandas().dropna(subset=["value"])
    slowest = places.loc[places["value"].idxmin()]
    page = (package / "report.html").read_text()
    said = re.search(r"The lowest mean speed of buses is at (.*?)\.(?: |<)", page)
    assert said
    assert slowest["cell"] in said[1]
    assert "How fast: mean speed of buses" in page
    assert f"Mean speed of buses in {len(places)} of " in page


@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium and its driver")
def test_it_opens_without_the_network_and_without_a_message_at_every_width(package: Path) -> None:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        for width in (390, 1280, 3840):
            browser.set_window_size(width, 1200)
            browser.get((package / "report.html").as_uri())
            if width < 700:  # what is wider than the page is scrolled to, by keys too
                shown = "return document.querySelector('figure svg').getBoundingClientRect().width"
                assert browser.execute_script(shown) > width
                assert 'tabindex="0"' in browser.page_source
            wide = "return document.documentElement.scrollWidth <= window.innerWidth"
            assert browser.execute_script(wide)
            fetched = "return performance.getEntriesByType('resource').length"
            assert browser.execute_script(fetched) == 0
            assert browser.get_log("browser") == []
    finally:
        browser.quit()
