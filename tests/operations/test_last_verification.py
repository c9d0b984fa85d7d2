"""The page says what the verification and the comparison of private data last found.

It is never "in order" over a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from watched_place import INCLUDE, OPAL, Place

from turnstile.cli import main
from turnstile.errors import InputError, IntegrityError, StoreError
from turnstile.ledger.custody.signed_note import Signer
from turnstile.ledger.entries import instant
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import Finding, ReleaseKey
from turnstile.operations.airflow_now import AirflowNow
from turnstile.operations.budget_page.page import BudgetPage
from turnstile.operations.journal import FOLDER, Journal
from turnstile.operations.watchdog.alerts import Alert
from turnstile.operations.watchdog.last_verification import last_verification, tell_verification
from turnstile.operations.watchdog.private_comparison import (
    compared,
    private_differences,
    tell_comparison,
)
from turnstile.operations.watchdog.watch import audited
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


def audit_alerts(place: Place) -> list[Alert]:
    page = BudgetPage(Settings.from_environment(), place.clock)
    return [alert for alert in page.watched(AirflowNow()) if alert.rule == "audit_failed"]


def test_a_finding_of_audit_and_command_is_one_alarm_and_a_look_that_failed_ends_none(
    place: Place, tmp_path: Path
) -> None:
    """Each said it by another name, so that its mail went again."""
    (tmp_path / FOLDER).mkdir()
    package = tmp_path / "public/opal/2016-W31/r0"
    package.mkdir(parents=True)
    (package / "manifest.json").write_text('{"files": [{"path": "a.csv", "sha256": "0"}]}')
    settings, journal = Settings.from_environment(), Journal.of(Settings.from_environment())
    ledger = open_ledger(settings, read_only=True)

    def audit(verify: Callable[[], tuple[Finding, ...]]) -> list[Alert]:
        place.clock.now += timedelta(hours=1)
        tell_verification(journal, place.clock(), ledger.head(), audited(verify, settings))
        return audit_alerts(place)

    def fails() -> tuple[Finding, ...]:
        raise InputError(where="key", field="key", rule="cannot be read")

    first = audit(ledger.verify)
    assert {alert.week for alert in first} == {"all", "2016-W31"}
    assert main(["ledger", "verify"]) == 4
    assert audit_alerts(place) == first
    failed = audit(fails)
    assert [alert for alert in failed if alert not in first] == [
        Alert(
            "audit_failed",
            "ledger",
            "all",
            f"could not be verified (InputError), since {instant(place.clock())}",
        )
    ]
    assert audit(ledger.verify) == first


def test_a_verification_by_a_key_that_somebody_brought_tells_nobody(
    place: Place, tmp_path: Path
) -> None:
    """A wrong file was a critical alarm to everybody."""
    (tmp_path / FOLDER).mkdir()
    wrong = tmp_path / "wrong.pub"
    wrong.write_text(Signer.make(tmp_path / "wrong.pem").public_line)
    assert main(["ledger", "verify", "--key", str(wrong)]) == 4
    assert audit_alerts(place) == []


EXACT = "opal/2016-W30/exact counts, r0"
BOUNDING_KEY = "ledger/all/bounding key"


def compare(place: Place, *names: str) -> None:
    place.clock.now += timedelta(hours=1)
    tell_comparison(Journal.of(Settings.from_environment()), place.clock(), names)


def alerts_of(place: Place) -> list[Alert]:
    page = BudgetPage(Settings.from_environment(), place.clock)
    return [alert for alert in page.watched(AirflowNow()) if alert.rule == "private_differs"]


def test_private_data_that_differ_are_an_alarm_that_no_clean_word_about_the_ledger_ends(
    place: Place,
) -> None:
    tell(place)
    compare(place, EXACT, EXACT, "opal/2016-W30/rows, r0", BOUNDING_KEY)
    place.clock.now += timedelta(hours=1)
    tell(place)
    html = page_of(place)
    assert "since 2016-08-01T13:00:00+00:00 (bounding key, exact counts, rows)" in html
    assert "turnstile ledger verify --private" in html
    assert "The ledger disagrees" not in html  # nothing public is wrong, and nobody need stop
    assert "in order" not in html
    compare(place)
    html = page_of(place)
    assert "in order" in html
    assert "nothing differed" in html


def test_a_clean_comparison_does_not_cover_what_the_verification_found(place: Place) -> None:
    tell(place, "chain")
    compare(place)
    assert "in order" not in page_of(place)
    compare(place, EXACT)
    html = page_of(place)
    assert "found a difference (chain)" in html
    assert "private data differ" in html


def test_each_difference_is_one_alert_until_it_was_in_order_and_is_found_again(
    place: Place,
) -> None:
    assert alerts_of(place) == []
    compare(place, EXACT)
    (first,) = alerts_of(place)
    assert str(first) == (
        "[critical] opal 2016-W30: private data are gone or altered; restore them "
        "(exact counts, r0, since 2016-08-01T13:00:00+00:00)"
    )
    compare(place, EXACT, BOUNDING_KEY)  # the next day
    by_key, again = alerts_of(place)
    assert again == first
    assert (by_key.programme, by_key.week) == ("ledger", "all")
    compare(place, BOUNDING_KEY)
    assert alerts_of(place) == [by_key]
    compare(place)
    assert alerts_of(place) == []
    compare(place, EXACT)
    (later,) = alerts_of(place)
    assert (later.programme, later.week) == (first.programme, first.week)
    assert later.identity != first.identity


def missing(place: Place) -> list[str]:
    page = BudgetPage(Settings.from_environment(), place.clock)
    alerts = [alert for alert in page.watched(AirflowNow()) if alert.rule == "look_missing"]
    assert alerts == [alert for alert in place_alerts(place) if alert.rule == "look_missing"]
    assert all((alert.programme, alert.week) == ("ledger", "all") for alert in alerts)
    return [alert.subject for alert in alerts]


def place_alerts(place: Place) -> list[Alert]:
    place.journal, place.are_looks_asked = Journal.of(Settings.from_environment()), True
    return place.watched()


def test_a_look_of_every_day_that_nobody_makes_for_three_days_is_told_once(place: Place) -> None:
    """Whoever paused `retention` or `audit_ledger`, or had one without an end, was told nothing."""
    place.clock.now += timedelta(days=3)
    assert missing(place) == []  # a deployment of three days
    place.clock.now += timedelta(hours=1)
    assert missing(place) == ["audit_ledger, last never", "retention, last never"]
    tell(place)
    assert missing(place) == ["retention, last never"]
    compare(place, EXACT)
    assert missing(place) == []
    place.clock.now += timedelta(days=2)
    tell(place, "chain")  # it looked, whatever it found
    place.clock.now += timedelta(days=1, hours=1)
    first = missing(place)
    assert first == ["retention, last 2016-08-04T14:00:00+00:00"]
    place.clock.now += timedelta(days=1)
    assert missing(place) == first
    place.clock.now += timedelta(days=1, hours=1)
    assert len(missing(place)) == 2


def test_a_clock_that_once_ran_ahead_ends_no_look_that_is_missing(place: Place) -> None:
    now = place.clock.now
    place.clock.now += timedelta(days=900)
    tell(place)
    compare(place)
    place.clock.now = now
    tell(place)
    compare(place)
    place.clock.now += timedelta(days=4)
    assert len(missing(place)) == 2


def test_where_nothing_was_ever_held_no_look_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path))
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(INCLUDE))
    monkeypatch.delenv("TURNSTILE_LEDGER_URL", raising=False)
    assert missing(Place.new(tmp_path)) == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            IntegrityError("the index of private is older"),
            ["ledger/all/could not be compared (IntegrityError)"],
        ),
        (OSError("a disk"), ["ledger/all/could not be compared (OSError)"]),
        (StoreError("private", "it is away"), []),
    ],
)
def test_what_cannot_be_compared_is_told_by_its_kind_but_of_a_store_that_is_away_nobody_can_say(
    place: Place, error: Exception, told: list[str]
) -> None:
    """What was found before is as it was: nothing was in order meanwhile."""
    journal = Journal.of(Settings.from_environment())
    compare(place, EXACT)

    def fails() -> tuple[()]:
        raise error

    with pytest.raises(type(error)):
        compared(fails, lambda names: tell_comparison(journal, place.clock(), names))
    assert [*private_differences(journal)] == [EXACT, *told]
    compare(place, EXACT)
    assert private_differences(journal) == {EXACT: "2016-08-01T13:00:00+00:00"}
