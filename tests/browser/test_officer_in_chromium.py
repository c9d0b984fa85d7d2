"""A release officer at a real Airflow, in a real Chromium: budget, week, backfill, approval."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from in_chromium import MISSING, WIDER, chromium, find, log_in, pictures, view, wait
from real_airflow import DAG, RealAirflow, running
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from turnstile.ledger.balances.amounts import AccountLoss
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.presentation import balance_json, most_spent
from turnstile.operations.amount_words import epsilon_words

__all__ = ["pictures"]

SEALED, NEW, NAMED = "2016-W30", "2016-W31", "2016-W32"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """An Airflow in which the first week was released, with the approval of an officer."""
    edits = {"approval: {required: false}": "approval: {required: true}"}
    base = tmp_path_factory.mktemp("officer")
    with running(base, f"{SEALED}:{NAMED}", edits=edits, extra={}) as installation:
        installation.backfill(SEALED, SEALED)
        installation.until(lambda: installation.asks(SEALED, "ask"), what="the question")
        installation.answer(SEALED, "ask", "ada", "Approve")
        installation.until_ended(SEALED)
        installation.until_no_backfill()
        yield installation


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """A fresh Chromium."""
    with chromium(tmp_path / "profile") as driver:
        yield driver


def _enter_page(browser: Any) -> None:
    """Open the page from Airflow's navigation, and step into its frame."""
    browser.switch_to.default_content()
    find(browser, "a[href$='/plugin/privacy-budget-view']").click()
    browser.switch_to.frame(find(browser, "iframe"))
    find(browser, "h1", "Privacy budget")


def _figures(airflow: RealAirflow) -> set[tuple[str, str]]:
    """Return account and exact spent figures, as `ledger balance --json` has them."""
    printed = json.loads(
        json.dumps([balance_json(account) for account in most_spent(airflow.ledger.balance())])
    )
    names = ("epsilon_micro", "rho_nano", "delta_femto")
    return {
        (
            f"{row['family']}/{row['unit']}/{row['scope']}",
            ",".join(
                "infinite" if row["spent"][n] is None else str(row["spent"][n]) for n in names
            ),
        )
        for row in printed
    }


def _shown(browser: Any) -> set[tuple[str, str]]:
    """Return the same from the page."""
    return {
        (
            row.find_element(By.CSS_SELECTOR, "[data-account]").get_attribute("data-account"),
            row.find_element(By.CSS_SELECTOR, "data").get_attribute("value"),
        )
        for row in browser.find_elements(
            By.XPATH, "//*[self::tr or self::article][.//*[@data-account]]"
        )
    }


# Contrast of the words that are shown with what lies behind them, as WCAG 2.2, 1.4.3 has it.
_LEAST_CONTRAST = """
const parts = color => color.match(/[0-9.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
  .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
const behind = node => {
  for (let at = node; at; at = at.parentElement) {
    const found = parts(getComputedStyle(at).backgroundColor);
    if (found.length === 3 || found[3] > 0) return found;
  }
  return [255, 255, 255];
};
let least = [21, ""];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const node = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !node.getClientRects().length) continue;
  if (node.closest("svg")) continue;
  const [a, b] = [light(parts(getComputedStyle(node).color)), light(behind(node))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < least[0]) least = [contrast, walk.currentNode.data];
}
return least;
"""


def _asked_of(browser: Any) -> set[str]:
    """Return the hosts that the page made the browser ask."""
    entries = "return performance.getEntriesByType('resource').map(e => new URL(e.name).host)"
    return set(browser.execute_script(entries))


def _choose_date(browser: Any, place: int, day: str) -> None:
    """Type a date into one of the dialog's two fields."""
    browser.find_elements(By.CSS_SELECTOR, "[data-testid=datetime-input]")[place].click()
    field = find(browser, "input[placeholder='YYYY/MM/DD']")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(day, Keys.TAB)
    hour = find(browser, "input[placeholder='HH:mm']")
    hour.send_keys(Keys.CONTROL, "a")
    hour.send_keys("00:00", Keys.ENTER)
    hour.send_keys(Keys.ESCAPE)


def _draws(airflow: RealAirflow) -> int:
    return sum(entry.kind is EntryKind.DRAW_BEGUN for entry in airflow.ledger.entries())


def test_the_page_shows_the_ledgers_figures_and_leads_to_week_and_run(
    airflow: RealAirflow, browser: Any, pictures: Path
) -> None:
    log_in(browser, airflow, "vera")
    _enter_page(browser)
    assert _shown(browser) == _figures(airflow) != set()
    browser.save_screenshot(str(pictures / "budget.png"))
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    browser.save_screenshot(str(pictures / "budget-dark.png"))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    find(browser, "nav a", "Weeks").click()
    find(browser, ".weeks a").click()
    find(browser, "h1", "Opal")
    assert len(browser.find_elements(By.CSS_SELECTOR, "figure svg")) == 3
    browser.save_screenshot(str(pictures / "week.png"))
    find(browser, "a.run").click()
    browser.switch_to.default_content()
    wait(browser, lambda: f"/dags/{DAG}/runs/backfill__" in browser.current_url)
    find(browser, "body")
    browser.save_screenshot(str(pictures / "run.png"))


def test_the_page_can_be_used_by_keyboard_alone(airflow: RealAirflow, browser: Any) -> None:
    log_in(browser, airflow, "vera")
    browser.get(f"{airflow.address}/privacy-budget/")
    find(browser, "h1", "Privacy budget")
    reached = []
    for _ in range(8):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.switch_to.active_element.text)
    sections = ["Budget", "Weeks", "Release weeks", "Next week", "Ledger", "Quality"]
    assert reached[:7] == ["Skip to content", *sections]
    browser.get(f"{airflow.address}/privacy-budget/ledger")
    find(browser, "input[name=key]").send_keys("W30", Keys.ENTER)
    wait(browser, lambda: "key=W30" in browser.current_url)
    find(browser, "td", f"opal/{SEALED}/r0")


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("width_px", [1400, 1024, 390])
def test_every_section_can_be_read_in_any_light_and_width_and_asks_no_other_host(
    airflow: RealAirflow, browser: Any, pictures: Path, mode: str, width_px: int
) -> None:
    log_in(browser, airflow, "vera")
    view(browser, mode, width_px)
    host = airflow.address.partition("//")[2]
    asked = f"release?programme=opal&first={SEALED}&last={NAMED}"
    for section in ("", "calendar", asked, "plan", "ledger", "quality", f"week/opal/{SEALED}"):
        browser.get(f"{airflow.address}/privacy-budget/{section}")
        find(browser, "h1")
        assert browser.execute_script(WIDER) == 0, section
        contrast, words = browser.execute_script(_LEAST_CONTRAST)
        assert contrast >= 4.5, (section, words)
        assert _asked_of(browser) == {host}
        for details in browser.find_elements(By.CSS_SELECTOR, "details"):
            browser.execute_script("arguments[0].open = true", details)
        assert browser.execute_script(WIDER) == 0, section
        name = section.partition("/")[0].partition("?")[0] or "budget"
        browser.save_screenshot(str(pictures / f"{name}-{mode}-{width_px}.png"))


def test_words_that_can_hardly_be_read_are_seen(airflow: RealAirflow, browser: Any) -> None:
    log_in(browser, airflow, "vera")
    browser.get(f"{airflow.address}/privacy-budget/")
    find(browser, "h1")
    browser.execute_script("document.querySelector('h1').style.color = '#bbbbbb'")
    contrast, words = browser.execute_script(_LEAST_CONTRAST)
    assert (contrast < 4.5, words) == (True, "Privacy budget")


def test_the_officer_finds_state_burn_down_plan_entries_and_verdicts(
    airflow: RealAirflow, browser: Any
) -> None:
    log_in(browser, airflow, "vera")
    _enter_page(browser)
    said = {
        element.get_attribute("data-programme"): element.text
        for element in browser.find_elements(By.CSS_SELECTOR, "[data-programme]")
    }
    # Ten years of weeks that nobody asked for are no order, whatever is out.
    assert f"{SEALED} is out" in said["opal"]
    assert f"{NEW} to " in said["opal"]
    assert "A card has used 2 % of what it may lose over 52 weeks" in said["opal"]
    assert "active" in said["opal"]
    assert "never run" in said["itms"]
    assert "paused" in said["itms"]
    assert browser.find_elements(By.CSS_SELECTOR, ".cap-state svg.burn path.forecast")
    find(browser, "nav a", "Next week").click()
    find(browser, "h2", f"opal, {NEW}")
    find(browser, "caption", "What it leaves")
    find(browser, "nav a", "Quality").click()
    find(browser, "h2", "opal")
    assert browser.find_elements(By.CSS_SELECTOR, ".verdicts .swatch.pass")
    find(browser, "nav a", "Ledger").click()
    find(browser, "h1", "Ledger")
    browser.find_element(By.CSS_SELECTOR, "select[name=kind] option[value=reserved]").click()
    find(browser, "button", "Show").click()
    find(browser, "p", "1 entry")
    assert "holds card" in find(browser, "tbody tr").text
    find(browser, "a.run", f"opal/{SEALED}/r0").click()
    browser.switch_to.default_content()
    wait(browser, lambda: f"/dags/{DAG}/runs/backfill__" in browser.current_url)


def test_a_backfill_in_the_dialog_over_sealed_and_new_weeks_charges_the_new_one_only(
    airflow: RealAirflow, browser: Any, pictures: Path
) -> None:
    before = airflow.ledger.attempts(_key(SEALED))
    assert _draws(airflow) == 1
    log_in(browser, airflow, "admin")
    browser.get(f"{airflow.address}/dags/{DAG}")
    find(browser, "[data-testid=trigger-dag-button]").click()
    find(browser, "[role=dialog] label", "Backfill").click()
    find(browser, "[data-testid=datetime-input]")
    _choose_date(browser, 0, "2016/07/24")
    _choose_date(browser, 1, "2016/08/01")
    find(browser, "[role=dialog] label", "All Runs").click()
    browser.save_screenshot(str(pictures / "backfill.png"))
    wait(browser, find(browser, "button", "Run Backfill").is_enabled)
    find(browser, "button", "Run Backfill").click()
    airflow.until(
        lambda: airflow.asks(NEW, "ask") and airflow.is_read(NEW, "ask"), what="the question"
    )
    run_id = airflow.run_id(NEW)
    browser.get(f"{airflow.address}/dags/{DAG}/runs/{run_id}/tasks/ask/required_actions")
    find(browser, "input[name=element_reason]").send_keys("looked at the pictures")
    browser.save_screenshot(str(pictures / "approval.png"))
    find(browser, "[data-testid=hitl-option-Approve]").click()
    airflow.until_ended(SEALED, NEW)
    assert set(airflow.runs().values()) == {"success"}
    assert airflow.ledger.attempts(_key(SEALED)) == before
    assert _draws(airflow) == 2
    (decision,) = airflow.ledger.approvals(_key(NEW))
    assert (decision.person, decision.reason) == ("admin", "looked at the pictures")
    assert (airflow.home / "public/opal" / NEW / "r0/manifest.json").exists()


def test_a_week_is_released_by_its_name_and_charges_what_was_shown_before_the_click(
    airflow: RealAirflow, browser: Any, pictures: Path
) -> None:
    airflow.until_no_backfill()
    drawn = _draws(airflow)
    log_in(browser, airflow, "ada")
    _enter_page(browser)
    find(browser, "nav a", "Release weeks").click()
    find(browser, "select option[value=opal]").click()
    find(browser, "input[name=first]").send_keys(SEALED)
    find(browser, "input[name=last]").send_keys(NAMED, Keys.ENTER)
    find(browser, "button.go", "Release 3 weeks")
    shown = {
        row.get_attribute("data-week"): row.text
        for row in browser.find_elements(By.CSS_SELECTOR, "tr[data-week]")
    }
    assert "re-issued, 0 charged nothing" in shown[SEALED]
    assert "epsilon 5.7 for a card" in shown[NAMED]
    browser.save_screenshot(str(pictures / "release.png"))
    find(browser, "button.go").click()
    note = find(browser, ".note", "Asked for:").text
    assert f"opal_{NAMED}" in note
    browser.save_screenshot(str(pictures / "released.png"))
    airflow.until(lambda: airflow.asks(NAMED, "ask"), what="the question of the named week")
    assert airflow.run_id(NAMED) == f"opal_{NAMED}"
    run = airflow.call("GET", airflow.path(NAMED))
    assert run["triggering_user_name"] == "ada"
    browser.get(f"{airflow.address}/privacy-budget/")
    assert f"{NAMED} asked" in find(browser, ".attention").text
    airflow.answer(NAMED, "ask", "olga", "Approve")
    airflow.until_ended(SEALED, NAMED)
    assert airflow.runs()[NAMED] == "success"
    assert _draws(airflow) == drawn + 1
    entries = airflow.ledger.entries_of(_key(NAMED))
    (charged,) = [entry for entry in entries if entry.kind is EntryKind.RESERVED]
    (card,) = [posting for posting in charged.body["postings"] if posting[0] == "card"]
    assert epsilon_words(AccountLoss(None, card[3])) == "epsilon 5.7 at delta 1e-6"


def _key(week: str) -> Any:
    from turnstile.ledger.records import ReleaseKey

    return ReleaseKey("opal", week)
