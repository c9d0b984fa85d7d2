"""`explore.html` as people use it: five questions, at any width, by keys, offline."""

from __future__ import annotations

import csv
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import axe_core_python
import pytest
from in_chromium import CHROMIUM, DRIVER, FLAGS, MISSING, WIDER
from long_series import LongSeries
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.publishing.explore import site
from turnstile.publishing.series.index import EXPLORER_PAGE

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

WEEKS, PLACES, CLICKS_AT_MOST = 500, 335, 4
WIDTHS_PX = (390, 1200, 3840)
AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
_FINDINGS = """
const done = arguments[arguments.length - 1];
axe.run().then((found) => done(found.violations.map((one) => [one.impact, one.id,
  one.nodes.map((node) => node.html).join(' ')])));
"""
_SHOWN_MS = "return performance.getEntriesByName('shown')[0]?.startTime ?? -1"
_PLACE = "tap_on_location"
_HOSTS = "return performance.getEntriesByType('resource').map((one) => one.name)"


_FOCUS = """const one = document.activeElement;
return one.id || one.dataset.view || one.parentElement.id;"""


class Visitor:
    """Somebody at the page, whose clicks are counted; typing a name counts as one."""

    def __init__(self, browser: Any, address: str) -> None:
        self.browser, self.address, self.clicks = browser, address, 0

    def open(self, hash_: str = "") -> Visitor:
        self.browser.get("about:blank")
        self.browser.get(f"{self.address}{hash_}")
        self.wait(lambda: self.browser.execute_script(_SHOWN_MS) > 0)
        self.clicks = 0
        return self

    def click(self, css: str) -> None:
        self.clicks += 1
        self.settle(lambda: self.browser.find_element(By.CSS_SELECTOR, css).click())

    def choose(self, css: str, text: str) -> None:
        self.clicks += 2  # opens the list, and takes one of it
        field = Select(self.browser.find_element(By.CSS_SELECTOR, css))
        self.settle(lambda: field.select_by_visible_text(text))

    def type(self, css: str, text: str) -> None:
        self.clicks += 1
        field = self.browser.find_element(By.CSS_SELECTOR, css)
        field.click()
        self.settle(lambda: field.send_keys(text, Keys.ENTER))

    def settle(self, act: Callable[[], object]) -> None:
        """Do something and wait until the page has drawn what it asks for."""
        drawn = "return performance.getEntriesByName('shown').length"
        before = self.browser.execute_script(drawn)
        act()
        self.wait(lambda: self.browser.execute_script(drawn) > before)

    def wait(self, holds: Callable[[], bool]) -> None:
        WebDriverWait(self.browser, 30, poll_frequency=0.02).until(lambda _: holds())

    def text(self, css: str) -> str:
        return str(self.browser.find_element(By.CSS_SELECTOR, css).text)

    def rows(self, css: str) -> list[list[str]]:
        table_rows: list[list[str]] = self.browser.execute_script(
            "return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
            ".map((row) => [...row.cells].map((cell) => cell.textContent))",
            css,
        )
        return table_rows

    def view(self, width_px: int, mode: str = "light") -> None:
        features = [{"name": "prefers-color-scheme", "value": mode}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        size = {"width": width_px, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def serious(self) -> list[tuple[str, str, str]]:
        """Return what axe finds that is serious or worse."""
        self.browser.execute_script(AXE)
        violations = self.browser.execute_async_script(_FINDINGS)
        return [violation for violation in violations if violation[0] in {"serious", "critical"}]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Chromium that finds no host by a name, and keeps what the console says."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    profile = f"--user-data-dir={tmp_path_factory.mktemp('profile')}"
    for flag in (
        *FLAGS.split(),
        profile,
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


class Quiet(SimpleHTTPRequestHandler):
    """Any web server."""

    def log_message(self, *_: object) -> None:
        return


def truth_of(place: int, week: int) -> float:
    """A city of which place 7 is the largest; in the last week one place in fifty doubled."""
    size = 9000.0 if place == 7 else 300.0 + 10 * place
    return size * (2 if week == WEEKS - 1 and place % 50 == 0 else 1)


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> LongSeries:
    """Ten years of weeks of all public places of `opal`."""
    folder = tmp_path_factory.mktemp("city")
    include = Path(__file__).resolve().parents[2] / "include"
    programme = load_programme("opal", include)
    domain = load_domain(programme, include)
    labels = [(m, label) for m in domain.modes for label in domain.dimension(m, _PLACE).labels]
    places = sorted(place for place in labels if place[1] != "UNKNOWN")[:PLACES]
    before = LongSeries(programme, include, folder / "public/opal", WEEKS - 1, truth_of)
    series = replace(before, weeks=WEEKS)
    with pytest.MonkeyPatch.context() as patch:
        known = before.write(patch, places, {})
        began = time.process_time()
        series.write(patch, places, known)
    (folder / "seconds").write_text(f"{time.process_time() - began}")
    return series


@pytest.fixture
def at_city(browser: Any, city: LongSeries) -> Visitor:
    return Visitor(browser, (city.folder / EXPLORER_PAGE).as_uri())


@pytest.fixture
def at(browser: Any, published: Path) -> Callable[[str], Visitor]:
    """The page of a programme of the small deployment, from the disk."""
    return lambda programme: Visitor(browser, (published / programme / EXPLORER_PAGE).as_uri())


@pytest.fixture
def served(city: LongSeries) -> Iterator[str]:
    """The address of the city's page at a web server."""
    handler = partial(Quiet, directory=str(city.folder.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/opal/{EXPLORER_PAGE}"
        server.shutdown()


@pytest.mark.long
def test_five_hundred_weeks_are_seen_within_a_second_and_no_other_host_is_asked(
    served: str, at_city: Visitor, browser: Any
) -> None:
    browser.get_log("browser")
    for visitor in (at_city, Visitor(browser, served)):
        origin = visitor.address.removesuffix(f"opal/{EXPLORER_PAGE}")
        for width in WIDTHS_PX:
            visitor.view(width)
            shown = []
            for _ in range(3):  # another process may have had the machine
                visitor.open()
                shown.append(browser.execute_script(_SHOWN_MS))
            assert min(shown) < 1000, (visitor.address, width, shown)
            asked = browser.execute_script(_HOSTS)
            assert len(asked) >= 6 or visitor is at_city  # of a disk nothing is listed
            assert all(url.startswith(origin) for url in asked)
            assert browser.execute_script(WIDER) <= 0
            assert "periods" in visitor.text("#weeks-title") or visitor.text("#weeks svg") != ""
        assert browser.get_log("browser") == []
    browser.execute_script("fetch('https://elsewhere.example/x').catch(() => 0)")
    visitor.wait(lambda: bool(browser.get_log("browser")))  # refused, and the check would see it


@pytest.mark.long
def test_a_publication_reads_one_package_and_writes_what_it_changed(city: LongSeries) -> None:
    assert float((city.folder.parents[1] / "seconds").read_text()) < 10


@pytest.mark.long
@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("width_px", [390, 1200])
def test_a_screen_reader_meets_nothing_serious(
    at: Callable[[str], Visitor], browser: Any, mode: str, width_px: int
) -> None:
    for programme in ("opal", "itms"):
        visitor = at(programme)
        visitor.view(width_px, mode)
        for view in ("place", "places", "changes"):
            visitor.open(f"#view={view}")
            browser.execute_script("document.querySelector('#hours-numbers').open = true")
            assert visitor.serious() == []
            assert browser.execute_script(WIDER) <= 0
    browser.execute_script("document.querySelector('label[for=week]').remove()")
    assert [violation[1] for violation in visitor.serious()] == [
        "select-name"
    ]  # the check can fail


def test_the_busiest_place_at_eight_with_its_interval(at_city: Visitor, city: LongSeries) -> None:
    at_city.view(1200)
    at_city.open()
    at_city.click("[data-view=places]")
    at_city.choose("#slot", "08:00")
    assert at_city.clicks <= CLICKS_AT_MOST
    said = re.search(
        r"busiest place of .* is (.*?): about ([\d,]+) .*\(([\d,]+) to ([\d,]+)",
        at_city.text("#ranked"),
    )
    assert said is not None
    index = handed(city.folder / site.INDEX)
    assert said[1].startswith(index["places"][7][1])
    record = handed(city.folder / f"explore/weeks/{index['weeks'][-1]['period']}-r0.js")
    value, low, high = record["hours"][7][8]
    assert [int(text.replace(",", "")) for text in said.groups()[1:]] == pytest.approx(
        [value, low, high], abs=1
    )


def test_whether_a_place_changed_from_last_week(at_city: Visitor, city: LongSeries) -> None:
    index = handed(city.folder / site.INDEX)
    at_city.view(1200)
    at_city.open()
    at_city.type("#name", named(index, 50))
    assert at_city.clicks <= CLICKS_AT_MOST
    assert "it changed" in at_city.text("#summary")
    at_city.type("#name", named(index, 49))
    interval = r"Against \S+: .?\d+ \(.[\d,]+ to \+[\d,]+\); that cannot be told from no change"
    assert re.search(interval, at_city.text("#summary"))


def test_a_week_whose_numbers_count_something_else_is_not_compared(
    browser: Any, city: LongSeries, tmp_path: Path
) -> None:
    """A place that was another set of stops the week before "changed", with an interval."""
    series = replace(city, folder=tmp_path / "public/opal", weeks=3)
    places = [(str(one[0]), str(one[1])) for one in handed(city.folder / site.INDEX)["places"]]
    with pytest.MonkeyPatch.context() as patch:
        series.write(patch, places[:20], {})
    visitor = Visitor(browser, (series.folder / EXPLORER_PAGE).as_uri())
    visitor.view(1200)
    assert "Against " in visitor.open().text("#summary")
    last = max((series.folder / "explore/weeks").iterdir())
    last.write_text(last.read_text().replace('"format":2', '"format":2,"terms":"other slots"'))
    said = visitor.open().text("#summary")
    assert "Not compared with " in said
    assert "count something else" in said
    visitor.click("[data-view=changes]")
    assert "Not compared with " in visitor.text("#changed")


@pytest.mark.parametrize("why", ["other slots", "no input", "withdrawn"])
def test_a_sum_over_periods_leaves_out_those_that_do_not_add_up_and_names_them(
    browser: Any, city: LongSeries, tmp_path: Path, why: str
) -> None:
    """Numbers of other slots were added up, and a period further back stood in for a withdrawn."""
    series = replace(city, folder=tmp_path / "public/opal", weeks=6)
    places = [(str(one[0]), str(one[1])) for one in handed(city.folder / site.INDEX)["places"]]
    with pytest.MonkeyPatch.context() as patch:
        series.write(patch, places[:20], {})
    index = handed(series.folder / site.INDEX)
    left, periods = index["weeks"][4]["period"], [week["period"] for week in index["weeks"]]
    week, listed = series.folder / f"explore/weeks/{left}-r0.js", series.folder / site.INDEX
    text = week.read_text()
    if why == "other slots":
        week.write_text(text.replace('"format":2', f'"format":2,"terms":"{why}"'))
    elif why == "no input":
        week.write_text(text.replace('"gaps":[]', '"gaps":["2007-02-01"]'))
    else:
        entry = f'{{"period":"{left}","release":"opal/{left}/r0"}},'
        text = listed.read_text()
        assert entry in text
        text = text.replace(entry, "")
        published = f'{{"period":"{left}","state":"published"}}'
        listed.write_text(text.replace(published, published.replace("published", "withdrawn")))
    visitor = Visitor(browser, (series.folder / EXPLORER_PAGE).as_uri())
    visitor.view(1200)
    visitor.open("#view=places&span=4")
    said = visitor.text("#ranked")
    assert f"Left out of the sum: {left}" in said
    assert f"{periods[2]}, {periods[3]} and {periods[5]}" in said
    assert periods[1] not in said
    total = sum(
        handed(series.folder / f"explore/weeks/{periods[n]}-r0.js")["test"][7][0] for n in (2, 3, 5)
    )
    assert float(visitor.rows("#table")[0][2].replace(",", "")) == pytest.approx(total, abs=0.1)


def test_changes_of_a_week_are_few_by_chance_and_find_what_changed(
    at_city: Visitor, city: LongSeries
) -> None:
    index = handed(city.folder / site.INDEX)
    changed = {named(index, n) for n in range(PLACES) if n % 50 == 0}
    at_city.view(1200)
    at_city.open()
    at_city.click("[data-view=changes]")
    listed_places = [row[0] for row in at_city.rows("#change-table")]
    assert changed <= set(listed_places)
    assert len(listed_places) <= len(changed) + 3
    assert f"{len(listed_places)} of {PLACES} places changed" in at_city.text("#changed")
    assert "of them by chance" in at_city.text("#changed")
    at_city.click("#earlier")  # nothing changed there: noise alone
    listed_places = at_city.rows("#change-table")
    assert len(listed_places) <= 2


def test_weekdays_against_weekends(at_city: Visitor) -> None:
    at_city.view(1200)
    at_city.open()
    assert at_city.clicks <= CLICKS_AT_MOST
    said = at_city.text("#summary")
    assert re.search(r"Monday to Friday: about [\d,]+ .*; of a weekend: about [\d,]+ ", said)
    assert "weekdays are busier" in said


def test_the_top_ten_of_a_month_with_how_sure_the_order_is(
    at_city: Visitor, city: LongSeries
) -> None:
    index = handed(city.folder / site.INDEX)
    at_city.view(1200)
    at_city.open()
    at_city.click("[data-view=places]")
    at_city.choose("#span", "the 4 periods up to it")
    assert at_city.clicks <= CLICKS_AT_MOST
    rows = at_city.rows("#table")[:10]
    assert rows[0][1] == named(index, 7)
    records = [
        handed(city.folder / f"explore/weeks/{week['period']}-r0.js")
        for week in index["weeks"][-4:]
    ]
    total = sum(record["test"][7][0] for record in records)
    assert float(rows[0][2].replace(",", "")) == pytest.approx(total, abs=0.1)
    truths = [sum(truth_of(n, WEEKS - 1 - back) for back in range(4)) for n in range(PLACES)]
    order = {
        named(index, n): rank
        for rank, n in enumerate(sorted(range(PLACES), key=lambda n: -truths[n]), 1)
    }
    for row in rows:
        best, worst = (int(text) for text in row[5:7])
        assert best <= order[row[1]] <= worst
    assert any(row[5] != row[6] for row in rows)


def test_the_mean_speed_by_hour_where_buses_go(
    at: Callable[[str], Visitor], published: Path
) -> None:
    record = handed(next((published / "itms/explore/weeks").glob("*.js")))
    at_place = max(
        range(len(record["places"])),
        key=lambda n: sum(hour[0] is not None for hour in record["hours"][n]),
    )
    visitor = at("itms")
    visitor.view(1200)
    visitor.open()
    visitor.type("#name", record["places"][at_place][1])
    visitor.click("#hours-numbers summary")
    assert visitor.clicks <= CLICKS_AT_MOST
    rows = visitor.rows("#hours-numbers")
    assert [row[0] for row in rows] == record["slots"]
    for row, (value, low, high, *_) in zip(rows, record["hours"][at_place], strict=True):
        assert [float(text) if text else None for text in row[1:4]] == [value, low, high]


def test_two_places_are_compared_and_what_cannot_be_told_apart_is_said(
    at_city: Visitor, city: LongSeries
) -> None:
    index = handed(city.folder / site.INDEX)
    at_city.view(1200)
    at_city.open()
    at_city.type("#other", named(index, 10))
    assert f"{named(index, 7)} has more" in at_city.text("#summary")
    at_city.type("#name", named(index, 11))
    assert "the two cannot be told apart" in at_city.text("#summary")


def test_everything_can_be_done_by_keys(at_city: Visitor, browser: Any) -> None:
    at_city.view(1200)
    at_city.open()
    reached = set()
    for _ in range(40):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(browser.execute_script(_FOCUS))
    wanted = "place places changes week earlier download name other map closer days"
    assert set(wanted.split()) <= reached
    before = browser.find_element(By.ID, "name").get_attribute("value")
    at_map = browser.find_element(By.ID, "map")
    at_city.settle(lambda: at_map.send_keys(Keys.ARROW_UP))
    assert browser.find_element(By.ID, "name").get_attribute("value") != before


def test_a_click_on_the_map_takes_the_nearest_place(at_city: Visitor, browser: Any) -> None:
    at_city.view(1200)
    at_city.open()
    circle = browser.find_elements(By.CSS_SELECTOR, "#map circle:not(.chosen)")[3]
    asked = circle.find_element(By.TAG_NAME, "title").get_attribute("textContent")
    at_city.settle(circle.click)
    assert browser.find_element(By.ID, "name").get_attribute("value") == asked
    at_city.open("#" + browser.current_url.partition("#")[2])  # the address says what is shown
    assert browser.find_element(By.ID, "name").get_attribute("value") == asked


@pytest.mark.long
def test_what_is_seen_is_downloaded_as_csv(
    at_city: Visitor, city: LongSeries, browser: Any, tmp_path: Path
) -> None:
    allowed = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", allowed)

    def downloaded() -> list[list[str]]:
        browser.find_element(By.ID, "download").click()
        at_city.wait(lambda: any(tmp_path.glob("*.csv")))
        file = next(tmp_path.glob("*.csv"))
        with file.open(newline="") as stream:
            table_rows = list(csv.reader(stream))
        file.unlink()
        return table_rows

    at_city.view(1200)
    at_city.open()
    head, *rows = downloaded()
    assert head == ["of", "place", "at", "trips", "low_95", "high_95"]
    assert len(rows) == WEEKS + 2 * 24  # its periods, a day by hour, the same weekday before
    assert {len(row) for row in rows} == {len(head)}
    weeks = [week["period"] for week in handed(city.folder / site.INDEX)["weeks"]]
    assert [row[2] for row in rows if row[0] == "period"] == weeks
    at_city.click("[data-view=changes]")
    head, *rows = downloaded()
    assert head == ["place", "change", "low_95", "high_95"]
    shown = at_city.rows("#change-table")
    for row, seen in zip(rows, shown, strict=True):
        assert row[0] == seen[0]
        assert [float(text) for text in row[1:]] == [
            float(text.replace(",", "")) for text in seen[1:]
        ]


def handed(path: Path) -> Any:
    """Return the value that a file of data hands to the page."""
    return site._handed_over(path.read_bytes())


def named(index: Any, place: int) -> str:
    """Return the name under which the page has a place."""
    mode, label = index["places"][place][:2]
    return f"{label} ({mode.replace('_', ' ')})"
