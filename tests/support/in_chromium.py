"""A Chromium at a real Airflow: found, logged in, and looked at as a person would."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from real_airflow import PASSWORD, RealAirflow
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
MISSING = "" if CHROMIUM and DRIVER else "no Chromium here: apt install chromium chromium-driver"
HEIGHT_PX = 1000
PATIENCE_S = 180  # a machine may be busy with other things
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --no-proxy-server "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--window-size=1400,1000"
)


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """Run a fresh Chromium."""
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.binary_location = str(CHROMIUM)
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


def find(browser: Any, css: str, text: str = "") -> WebElement:
    """Wait for an element that is shown and begins with a text."""

    def look(_: Any) -> WebElement | bool:
        for element in browser.find_elements(By.CSS_SELECTOR, css):
            if element.is_displayed() and element.text.strip().startswith(text):
                return element
        return False

    # Drawn anew between finding and asking: stale, or in Chromium's words "node does not exist".
    patience = WebDriverWait(browser, PATIENCE_S, ignored_exceptions=[WebDriverException])
    return patience.until(look)


def wait(browser: Any, holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    WebDriverWait(browser, PATIENCE_S).until(lambda _: holds())


def log_in(browser: Any, airflow: RealAirflow, user: str) -> None:
    """Log in by Airflow's own form."""
    browser.get(airflow.address)
    find(browser, "input[name=username]").send_keys(user)
    browser.find_element(By.NAME, "password").send_keys(PASSWORD)
    find(browser, "button[type=submit]").click()
    find(browser, "a[href='/dags'], a", "Dags")


WIDER = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
"""By how much a page is wider than its window."""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: to the docs where `TURNSTILE_PICTURES` names them, else nowhere."""
    named = os.environ.get("TURNSTILE_PICTURES")  # noqa: TID251 - a test's own switch
    folder = Path(named) if named else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def view(browser: Any, mode: str, width_px: int) -> None:
    """Look at the page in a color scheme, through a window of a width."""
    features = [{"name": "prefers-color-scheme", "value": mode}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width_px, "height": HEIGHT_PX, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
