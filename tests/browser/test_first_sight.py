"""The page as somebody sees it for the first time: what is out, what comes next, who is asked.

A dozen screenshots of weeks of the present; `TURNSTILE_PICTURES=docs/pictures` keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from in_chromium import HEIGHT_PX, MISSING, WIDER, chromium, find, log_in, pictures, view
from matrix_of_weeks import SCHEDULED
from real_airflow import RealAirflow, running
from selenium.webdriver.common.by import By

from turnstile.service_calendar import ServiceWeek

__all__ = ["pictures"]

FIRST, OUT, ASKED, NEXT = (str(ServiceWeek.parse(SCHEDULED).plus(-n)) for n in (3, 2, 1, 0))
SECTIONS = {
    "budget": "",
    "weeks": "calendar",
    "desk": f"embargoed/opal/{ASKED}",
    "release": f"release?programme=opal&first={ASKED}&last={NEXT}",
}
WIDTHS_PX = (390, 1100, 1600)
BOTTOM = "return arguments[0].getBoundingClientRect().bottom"

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(MISSING), reason=MISSING)]


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """Two weeks that are out, one that people are asked about, and one behind it."""
    edits = {"approval: {required: false}": "approval: {required: true}"}
    base = tmp_path_factory.mktemp("sight")
    with running(base, f"{FIRST}:{NEXT}", edits=edits, extra={}) as installation:
        installation.backfill(FIRST, NEXT, max_active_runs=1)
        for week in (FIRST, OUT):
            installation.answer(week, "ask", "ada", "Approve")
        installation.until(lambda: installation.asks(ASKED, "ask"), what="the question")
        yield installation


@pytest.fixture(scope="module")
def browser(airflow: RealAirflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An officer's Chromium."""
    with chromium(tmp_path_factory.mktemp("profile") / "ada") as driver:
        log_in(driver, airflow, "ada")
        yield driver


@pytest.mark.parametrize("width_px", WIDTHS_PX)
def test_a_first_sight_says_what_is_out_what_comes_next_and_who_is_needed(
    airflow: RealAirflow, browser: Any, pictures: Path, width_px: int
) -> None:
    view(browser, "light", width_px)
    for name, section in SECTIONS.items():
        browser.get(f"{airflow.address}/privacy-budget/{section}")
        find(browser, "h1")
        assert browser.execute_script(WIDER) == 0, section
        browser.save_screenshot(str(pictures / f"{name}-{width_px}.png"))
    browser.get(f"{airflow.address}/privacy-budget/")
    opal = find(browser, "[data-programme=opal]")
    answer = opal.find_element(By.CSS_SELECTOR, ".answer")
    asked = opal.find_element(By.CSS_SELECTOR, "li[data-state=asked]")
    assert f"{OUT} is out; {ASKED} is drawn, and people are asked" in answer.text
    assert asked.text.startswith(ASKED)
    assert "Look at the week" in asked.text
    for shown in (answer, asked):
        assert browser.execute_script(BOTTOM, shown) <= HEIGHT_PX


def test_the_desk_has_its_two_buttons_on_a_phone(airflow: RealAirflow, browser: Any) -> None:
    view(browser, "light", WIDTHS_PX[0])
    browser.get(f"{airflow.address}/privacy-budget/{SECTIONS['desk']}")
    labels = {
        element.text for element in browser.find_elements(By.CSS_SELECTOR, "form.desk button")
    }
    assert labels == {"Approve", "Reject"}
    for button in browser.find_elements(By.CSS_SELECTOR, "form.desk button"):
        assert button.rect["height"] >= 40  # a thumb's
