"""The page says what the one verification last found, and is never "in order" over a difference."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from watched_place import INCLUDE, OPAL, Place

from turnstile.cli import main
from turnstile.ledger.records import ReleaseKey
from turnstile.operations.airflow_now import AirflowNow
from turnstile.operations.budget_page.page import BudgetPage
from turnstile.operations.journal import FOLDER, Journal
from turnstile.operations.watchdog.last_verification import last_verification, tell_verification
from turnstile.settings import Settings

ALL = frozenset({"opal"})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A week is out; its ledger is the deployment's."""
    made = Place.new(tmp_path)
    made.publish("2016-W30")
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path))
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(INCLUDE))
    monkeypatch.delenv("TURNSTILE_LEDGER_URL", raising=False)
    return made


def page_of(place: Place) -> str:
    page = BudgetPage(Settings.from_environment(), place.clock)
    sentence = page.in_one_sentence(OPAL, AirflowNow())
    html = page.budget(ALL, AirflowNow())
    assert ("in order" in html) == sentence.startswith("in order")
    return html


def tell(place: Place, *problems: str, head: tuple[int, str] | None = None) -> None:
    journal = Journal.of(Settings.from_environment())
    tell_verification(journal, place.clock(), head or place.ledger.head(), problems)


def test_before_anybody_verified_the_page_says_so(place: Place) -> None:
    html = page_of(place)
    assert "Nobody has verified" in html
    assert "in order" in html


def test_a_verification_that_found_nothing_is_named_with_date_and_entry(place: Place) -> None:
    tell(place)
    html = page_of(place)
    assert "last verified on 2016-08-01T12:00:00+00:00, at entry" in html
    assert "in order" in html


def test_a_verification_that_found_something_is_an_alarm_until_one_finds_nothing(
    place: Place,
) -> None:
    tell(place, "chain", "chain", "package")
    html = page_of(place)
    assert "found a difference (chain, package)" in html
    assert "in order" not in html
    place.clock.now += timedelta(hours=1)
    tell(place)
    assert "in order" in page_of(place)


def test_a_ledger_that_ends_before_what_was_verified_is_no_longer_in_order(place: Place) -> None:
    sequence, head = place.ledger.head()
    for other in ((sequence + 1, head), (sequence, "0" * 64)):
        tell(place, head=other)
        html = page_of(place)
        assert "a copy was restored" in html
        assert "in order" not in html


def test_a_failed_audit_of_a_release_counts(place: Place) -> None:
    tell(place)
    place.clock.now += timedelta(hours=1)
    key = ReleaseKey("opal", "2016-W30")
    place.ledger.record_audit(key, outcome="failed", report_digest="d")
    assert "in order" not in page_of(place)
    place.clock.now += timedelta(hours=1)
    place.ledger.record_audit(key, outcome="passed", report_digest="e")
    assert "in order" in page_of(place)


def test_the_command_tells_the_page_where_there_is_a_journal(place: Place, tmp_path: Path) -> None:
    assert main(["ledger", "verify"]) == 4  # the place has no packages
    assert not (tmp_path / FOLDER).exists()
    (tmp_path / FOLDER).mkdir()
    assert main(["ledger", "verify"]) == 4
    said = last_verification(Journal.of(Settings.from_environment()), ())
    assert said is not None
    assert said.head == place.ledger.head()
    assert said.differing
    assert datetime.fromisoformat(said.at).tzinfo is not None
