"""One day at a real Airflow: what an engineer and officers click, and what is held against it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from in_chromium import WIDER, chromium, find, log_in, view
from matrix_of_weeks import run_by_hand
from pyarrow import parquet
from real_airflow import DAG, RealAirflow
from row_table import Row
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from sinks import Sinks

from turnstile.ledger.balances.amounts import AccountLoss
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.presentation import balance_json, most_spent
from turnstile.operations.amount_words import epsilon_words
from turnstile_native.backfill import log_tail

ENGINEER, FIRST_OFFICER, SECOND_OFFICER, READER = "eve", "ada", "olga", "vera"
PAGE = "privacy-budget"
PHONE_PX, DESKTOP_PX = 390, 1400
INTERNAL = "looked at it twice"
"""In every reason that people give; it stays internal."""
PUBLIC = "as busy as the year before"
"""What the desk's answers leave for the public."""
OF_RUNS = {"run_died", "run_lasts", "hold_stuck", "draw_stuck", "week_stopped", "bytes_disagree"}
_FIGURES = ("epsilon_micro", "rho_nano", "delta_femto")


@dataclass
class Day:
    """People at an Airflow, each in a browser of their own, and where its messages arrive.

    Args:
        airflow: running.
        sinks: mail and webhook.
        work: folder for browsers' profiles.
        open_browsers: closes what is opened here.
        lines: what was done and what it charged, since the last test.
    """

    airflow: RealAirflow
    sinks: Sinks
    work: Path
    open_browsers: ExitStack
    lines: list[Row] = field(default_factory=list)
    _browsers: dict[str, Any] = field(default_factory=dict)
    _spent: int = 0

    def browser_of(self, person: str) -> Any:
        """Return the browser in which a person is logged in."""
        if person not in self._browsers:
            browser = self.open_browsers.enter_context(chromium(self.work / person))
            log_in(browser, self.airflow, person)
            self._browsers[person] = browser
        return self._browsers[person]

    def page(self) -> Any:
        """Return a reader's browser at the page, whose figures are those of the ledger."""
        browser = self.browser_of(READER)
        browser.get(f"{self.airflow.address}/{PAGE}/")
        find(browser, "h1", "Privacy budget")
        assert _figures_on(browser) == _figures_of(self.airflow)
        return browser

    # -- what people do ----------------------------------------------------------------------------

    def release(self, first: str, last: str) -> dict[str, str]:
        """Release weeks by the page's form, as the engineer; return what it said of each before."""
        browser = self.browser_of(ENGINEER)
        asked = f"release?programme=opal&first={first}&last={last}"
        browser.get(f"{self.airflow.address}/{PAGE}/{asked}")
        find(browser, "tr[data-week]")
        said = {
            str(row.get_attribute("data-week")): row.text
            for row in browser.find_elements(By.CSS_SELECTOR, "tr[data-week]")
        }
        find(browser, "button.go", f"Release {len(said)} week").click()
        find(browser, ".note", "Asked for:")
        return said

    def answer(self, week: str, task: str, person: str, choice: str) -> str:
        """Answer a question where the message leads to; return what stood there.

        About a release, the officer answers at the desk, on a phone; else in Airflow's own form.
        """
        self.airflow.until(lambda: self.airflow.asks(week, task), what=f"{task} of {week}")
        self.airflow.until(lambda: self.airflow.is_read(week, task), what="the scheduler's word")
        browser = self.browser_of(person)
        answers = self._at_the_desk if choice in {"Approve", "Reject"} else self._in_airflow
        text = answers(browser, week, task, (person, choice))
        self.airflow.until(
            lambda: not self.airflow.asks(week, task), what=f"the answer to {task} of {week}"
        )
        return text

    def _at_the_desk(self, browser: Any, week: str, _: str, said: tuple[str, str]) -> str:
        """Answer on the page of the week, as wide as a phone; nothing of it is wider."""
        view(browser, "light", PHONE_PX)
        browser.get(f"{self.airflow.address}/{PAGE}/embargoed/opal/{week}")
        find(browser, "form.desk textarea[name=reason]").send_keys(f"{said[0]} {INTERNAL}")
        find(browser, "form.desk textarea[name=public_note]").send_keys(PUBLIC)
        text = find(browser, "body").text
        assert browser.execute_script(WIDER) == 0
        button = find(browser, f"form.desk button[value={said[1]}]")
        at_once = "{block: 'center', behavior: 'instant'}"  # the page scrolls smoothly by itself
        browser.execute_script(f"arguments[0].scrollIntoView({at_once})", button)
        button.click()
        assert find(browser, ".note").text == "Your answer is given."
        return text

    def _in_airflow(self, browser: Any, week: str, task: str, said: tuple[str, str]) -> str:
        """Answer in Airflow's own form."""
        view(browser, "light", DESKTOP_PX)
        run = self.airflow.run_id(week)
        browser.get(f"{self.airflow.address}/dags/{DAG}/runs/{run}/tasks/{task}/required_actions")
        find(browser, "input[name=element_reason]").send_keys(f"{said[0]} {INTERNAL}", Keys.TAB)
        text = find(browser, "body").text
        find(browser, f"[data-testid='hitl-option-{said[1]}']").click()
        return text

    def public_texts(self) -> dict[str, str]:
        """Return every public file as text, by its path; of a Parquet file its cells and notes."""
        files = (path for path in (self.airflow.home / "public").rglob("*") if path.is_file())
        return {str(path): public_text(path) for path in files}

    def approve(self, week: str) -> None:
        """Let both officers say yes, and wait for the end of the run."""
        self.answer(week, "ask_1", FIRST_OFFICER, "Approve")
        self.answer(week, "ask_2", SECOND_OFFICER, "Approve")
        self.airflow.until_ended(week)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `turnstile` on Airflow's machine."""
        command = [sys.executable, "-m", "turnstile.cli", *arguments]
        environment = self.airflow.stack._environment
        return subprocess.run(  # noqa: S603 - our own interpreter
            command, env=environment, capture_output=True, text=True, check=False, timeout=240
        )

    def watch(self) -> dict[str, int]:
        """Let the watchdog look; return how many new messages of each rule came of it."""
        before = self._rules()
        assert run_by_hand(self.airflow, "watchdog") == "success"
        new = self._rules() - before
        return {rule: number for rule, number in new.items() if rule in OF_RUNS}

    # -- what is held against it -------------------------------------------------------------------

    def charged(self, week: str, said: str, times: int = 1, revision: int = 0) -> None:
        """Hold what was shown before the click against what the ledger charged since.

        Args:
            week: that was released.
            said: what was shown.
            times: draws since the last look.
            revision: of the week.
        """
        key = f"opal/{week}/r{revision}"
        reserved = [
            entry
            for entry in self.airflow.ledger.entries()
            if entry.kind is EntryKind.RESERVED and str(entry.key) == key
        ]
        card = next(posting for posting in reserved[-1].body["postings"] if posting[0] == "card")
        words = epsilon_words(AccountLoss(None, card[3])).removesuffix(" at delta 1e-6")
        assert f"{words} for a card" in said
        self.spends(times * card[3], f"{week}: {words} for a card, {times} time(s), as shown")

    def spends(self, rho_nano: int, act: str) -> None:
        """Hold what a card has lost since the last look against what it should have."""
        now = self.spent()
        assert now - self._spent == rho_nano, act
        self.lines.append((act, f"{rho_nano / 1e9:.3f}", f"{now / 1e9:.3f}"))
        self._spent = now

    def spent(self) -> int:
        """Return what a card has lost over the window, rho in 1e-9."""
        return max(
            (account.spent.rho_nano or 0)
            for account in self.airflow.ledger.balance("opal_cards")
            if account.unit.value == "card"
        )

    def page_says(self, week: str, state: str) -> str:
        """Return the page's sentence on a week that somebody has to look at; check its figures."""
        browser = self.page()
        elements = browser.find_elements(By.CSS_SELECTOR, f"li[data-state={state}]")
        said = [str(element.text) for element in elements if element.text.startswith(week)]
        everything = find(browser, "[data-programme=opal]").text
        assert len(said) == 1, (week, state, everything)
        return said[0]

    def is_out(self, week: str, revision: int = 0) -> None:
        """Hold ledger, public zone and page against each other: the week is public."""
        assert (self.airflow.home / f"public/opal/{week}/r{revision}/manifest.json").exists()
        assert self.airflow.runs()[week] == "success"
        for item in self.page().find_elements(By.CSS_SELECTOR, "[data-programme=opal] li strong"):
            assert item.text != week

    def last_line(self, week: str, task: str) -> str:
        """Return the end of a task's log, as Airflow shows it."""
        folder = self.airflow.home / f"airflow/logs/dag_id={DAG}"
        logs = (folder / f"run_id={self.airflow.run_id(week)}/task_id={task}").glob("attempt=*.log")
        latest = max(logs, key=lambda path: int(path.stem.partition("=")[2]))
        return " ".join(log_tail(latest.read_text()))

    def told_once(self, rule: str, week: str) -> str:
        """Return the one line about a rule and week that was mailed; the webhook got it too."""
        lines = [line for text in self._posts() for line in _lines_about(text, rule, week)]
        assert len(lines) == 1, (rule, week, lines)
        words = " ".join(lines[0].split())
        assert sum(words in text for text in self._mails()) == 1, (words, self._mails())
        return lines[0]

    def _rules(self) -> Counter[str]:
        """Count the chapters of the runbook that messages lead to."""
        words = (word for text in self._posts() for word in text.split())
        return Counter(w.partition("RUNBOOK.md#")[2] for w in words if "RUNBOOK.md#" in w)

    def _posts(self) -> list[str]:
        return [str(json.loads(text)["message"]) for text in self.sinks.posts()]

    def _mails(self) -> list[str]:
        """Return the words of every mail, as its reader sees them."""
        texts = []
        for mail in self.sinks.inbox.received:
            (part,) = [section for section in mail.walk() if not section.is_multipart()]
            texts.append(" ".join(part.get_payload(decode=True).decode().split()))
        return texts


def _lines_about(text: str, rule: str, week: str) -> list[str]:
    """Return the alerts on a week in a message whose link leads to a rule's chapter."""
    alerts, lines = [], text.splitlines()
    for number, line in enumerate(lines):
        if f"opal {week}:" in line and line.startswith("["):
            below = lines[number + 1 : number + 5]
            if any(f"RUNBOOK.md#{rule}" in next_line for next_line in below):
                alerts.append(line)
    return list(dict.fromkeys(alerts))


def _figures_of(airflow: RealAirflow) -> set[tuple[str, str]]:
    """Return account and exact spent figures, as `ledger balance --json` has them."""
    balances = [balance_json(account) for account in most_spent(airflow.ledger.balance())]
    return {
        (f"{balance['family']}/{balance['unit']}/{balance['scope']}", _exact(balance["spent"]))
        for balance in json.loads(json.dumps(balances))
    }


def _figures_on(browser: Any) -> set[tuple[str, str]]:
    """Return the same from the page."""
    rows = browser.find_elements(By.XPATH, "//*[self::tr or self::article][.//*[@data-account]]")
    return {
        (
            row.find_element(By.CSS_SELECTOR, "[data-account]").get_attribute("data-account"),
            row.find_element(By.CSS_SELECTOR, "data").get_attribute("value"),
        )
        for row in rows
    }


def _exact(spent: dict[str, Any]) -> str:
    """Write a loss as the page's machine-readable figure has it."""
    return ",".join("infinite" if spent[n] is None else str(spent[n]) for n in _FIGURES)


def public_text(path: Path) -> str:
    """Return what a reader finds in a file; a kind of file that this cannot read is an error.

    Of a picture its notes; it is drawn from numbers and names of places alone.
    """
    if path.suffix == ".png":
        return path.read_bytes().partition(b"IDAT")[0].decode("latin-1")
    if path.suffix != ".parquet":
        return path.read_text("utf-8")
    table = parquet.read_table(path)
    return f"{table.schema.metadata} {table.to_pydict()}"


def replaced(path: Path, old: str, new: str) -> None:
    """Let a file hold something else."""
    text = path.read_text()
    if old not in text:
        pytest.fail(f"{path.name} does not hold {old!r}")
    path.write_text(text.replace(old, new, 1))
