"""Retention: what goes when, what is written of it, and what it must never make impossible.

The steady `itms` keeps raw data for 90 days, exact ones for 120, and may be corrected for 60. The
week is of 2016, so its days are over; landing files count from when they were delivered, which is
when the test began.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from deployment_fixtures import BegunWeek
from retention_days import (
    KEY,
    NOW,
    WINDOW,
    Cli,
    act,
    by_name,
    day,
    deletions,
    files_of,
    held,
    ledger_at,
    make_steady,
    tell,
    tombstones,
)
from small_deployment import WEEK, Deployment

from turnstile.errors import InputError, NotFinal, TurnstileError
from turnstile.ledger.custody.custody import QUIET_AT_MOST
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.operations.journal import Journal
from turnstile.operations.retention_day import RetentionDay
from turnstile.operations.watchdog.alerts import Alert, Severity
from turnstile.operations.watchdog.delivery import deliver
from turnstile.pipeline import context
from turnstile.pipeline.private_zone import retention
from turnstile.pipeline.private_zone.private_data import Part
from turnstile.pipeline.private_zone.retention import ALARM, ANNOUNCED_DAYS
from turnstile.pipeline.steps import step_named
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings, system_clock


@pytest.fixture(autouse=True)
def idle(deployment: Deployment) -> None:
    """Make the other programmes that read the same files examples."""
    deployment.make_siblings_examples("itms")


EXACT = (WEEK, "exact")


def test_rows_and_exact_tables_go_and_the_release_stays(published: Deployment) -> None:
    public = files_of(published, "public", "itms")
    assert any(name.startswith("snapshots/") for name in files_of(published, "private/itms", WEEK))
    assert set(act()) == {(WEEK, "rows"), (WEEK, "exact")}
    assert files_of(published, "private/itms", WEEK) == ["r0/.draw.lock"]
    assert deletions() == [(WEEK, "rows", 90), (WEEK, "exact", 120)]
    assert [(of["due"], of["reason"]) for of in tombstones()] == [
        ("2016-10-29", "its raw_days (90) are over"),
        ("2016-11-28", "its exact_days (120) are over"),
    ]
    assert files_of(published, "public", "itms") == public
    assert (published.home / "private/bounding.key").exists()
    assert act() == {}, "once"
    assert open_ledger(Settings.from_environment()).verify() == ()


def test_what_a_restored_store_left_aside_goes_on_its_day_too(published: Deployment) -> None:
    aside = published.home / f"private/.store/aside/itms/{WEEK}/5f0c"
    for name in ("snapshots/1/rows/part-000.parquet", "r0/exact"):
        (aside / name).parent.mkdir(parents=True)
        (aside / name).write_text("a card")
    shutil.rmtree(published.home / "private/itms" / WEEK)  # the rest went before
    assert act(datetime(2016, 9, 1, tzinfo=UTC)) == {}, "its day has not come"
    assert set(act()) == {(WEEK, "rows"), (WEEK, "exact")}
    assert not [path for path in aside.rglob("*") if path.is_file()]


def test_a_programme_that_states_no_days_keeps_everything(published: Deployment) -> None:
    before = files_of(published, "private/opal"), files_of(published, "landing/opal")
    act(NOW + timedelta(days=4000))
    assert (files_of(published, "private/opal"), files_of(published, "landing/opal")) == before


def test_after_that_the_week_is_issued_again_and_costs_nothing(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    act(NOW + WINDOW + timedelta(minutes=1))
    assert not published.landing("itms").exists()
    spent = published.spent()
    shutil.rmtree(published.public / "itms" / WEEK / "r0")
    ledger_at(system_clock()).confirm_clock("ada", "it no longer stands two months ahead")
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert "0 charged" in capsys.readouterr().err
    assert published.spent() == spent
    assert turnstile("package", "verify", published.public / "itms" / WEEK / "r0") == 0
    assert turnstile("ledger", "verify") == 0


def test_delivered_files_stay_for_the_window_of_backfills(published: Deployment) -> None:
    (published.landing("itms") / ".late.csv.part").write_text("a card")
    act(NOW + WINDOW - timedelta(days=2))
    assert published.landing("itms").exists()
    assert (WEEK, "files") in act(NOW + WINDOW + timedelta(minutes=1))
    assert not published.landing("itms").exists(), "hidden ones too"


def test_a_correction_after_that_needs_its_files_again_and_keeps_them(
    published: Deployment, turnstile: Cli
) -> None:
    landing = published.landing("itms")
    copy = shutil.copytree(landing, published.home / "copy")
    act()  # meets the days that it was released under
    for cap in ("8", "2912"):
        published.edit("itms", f'epsilon: "{cap}"}}', f'epsilon: "{2 * int(cap)}"}}')
    act(NOW + WINDOW + timedelta(minutes=1))
    again = ("run", "itms", "--week", WEEK, "--revision", "1", "--reason", "a late file")
    ledger_at(system_clock()).confirm_clock("ada", "it no longer stands two months ahead")
    assert turnstile(*again) == 2, "no file: refused before any charge"
    spent = published.spent()
    shutil.copytree(copy, landing)
    assert "rows" not in {part for _, part in act(NOW + timedelta(days=1))}
    assert landing.exists()
    assert turnstile("ledger", "confirm-clock", "--reason", "the test's is back") == 0
    assert turnstile(*again) == 0
    assert published.spent() != spent
    assert turnstile("ledger", "verify", "--private") == 0, "counts of r0 went on their day"
    for path in (published.home / "private/itms" / WEEK / "r1").glob("exact-*"):
        path.unlink()
    assert turnstile("ledger", "verify", "--private") == 4, "and those of r1 before it"
    assert (WEEK, "rows") in act(NOW + timedelta(days=2))


def test_a_correction_that_was_begun_keeps_everything(published: Deployment) -> None:
    shutil.move(published.landing("itms"), published.home / "copy")
    correction = context.open_release("itms", WEEK, 1)
    words = {"reason": "a late file", "approver": "ada"}
    context.state_revision(correction, words, although_nothing_changed=False)
    assert act() == {}
    soon = NOW + WINDOW + timedelta(hours=1)
    assert act(soon) == {}
    assert "not finished" in held(soon)
    assert "not finished" in held(soon, Part.EXACT)


def test_a_period_that_is_held_or_drawn_keeps_everything(
    begun_week: BegunWeek, turnstile: Cli
) -> None:
    begun_week("itms", "draw")
    late = NOW + timedelta(days=200)
    act(late)
    tell(late)
    assert act(late + ALARM) == {}
    assert "held or drawn now" in held(late + ALARM)
    assert f"turnstile ledger void {KEY} --reason TEXT" in held(late + ALARM)
    assert turnstile("ledger", "void", f"{KEY}", "--reason", "given up") == 0
    assert len(act(late + ALARM)) == 3


def test_a_release_that_begins_after_they_were_judged_keeps_its_data(
    begun_week: BegunWeek, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_week("itms", "draw")  # is held
    monkeypatch.setattr(retention.Retention, "_weeks", defaultdict(dict))  # asked before that
    late = NOW + timedelta(days=200)
    act(late)
    tell(late)
    judged = by_name(day(late + ALARM).verdicts())
    assert [verdict.may_go(late + ALARM) for verdict in judged.values()] == [True] * 3
    assert act(late + ALARM) == {}
    assert deletions() == []


def test_a_run_that_loses_its_tables_refuses_before_any_charge(
    begun_week: BegunWeek, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = begun_week("itms", "reserve")
    monkeypatch.setattr(retention, "is_unfinished", lambda *_: False)
    assert (WEEK, "exact") in act()
    with pytest.raises(TurnstileError):
        step_named("draw")("itms", WEEK, 0)
    assert begun.nothing_happened()


def test_a_week_without_a_release_goes_two_weeks_after_somebody_was_told(
    landed: Deployment,
) -> None:
    make_steady(landed)
    due = NOW + WINDOW + timedelta(minutes=1)
    assert act(due - ALARM - timedelta(days=4)) == {}
    assert tell(due) == ()
    assert act(due - ALARM + timedelta(hours=1)) == {}
    assert act(due + timedelta(days=300)) == {}, "nobody was told"
    assert next(alert.rule for alert in tell(due + timedelta(days=300))) == "retention_near"
    told = due + timedelta(days=300)
    assert act(told + ALARM - timedelta(minutes=1)) == {}
    assert landed.landing("itms").exists()
    assert set(act(told + ALARM)) == {(WEEK, "files")}
    assert not landed.landing("itms").exists()


def _gone_at(what: tuple[str, str], due: datetime, days_before: int) -> datetime | None:
    """Return when something went, where retention runs daily and the watchdog a bit later."""
    for days in range(-days_before, 2):
        now = due + timedelta(days=days, minutes=1)
        if what in act(now):
            return now
        tell(now + timedelta(minutes=15))
    return None


def test_a_week_without_a_release_goes_on_its_day(landed: Deployment) -> None:
    make_steady(landed)
    act(NOW)
    due = by_name(day(NOW).verdicts())[WEEK, "files"].due
    assert due is not None
    assert _gone_at((WEEK, "files"), due, ALARM.days + 3) == due + timedelta(minutes=1)


def test_counts_that_a_changed_file_no_longer_needs_go_on_their_day(
    published: Deployment,
) -> None:
    published.edit("itms", "exact_days: 120", "exact_days: 36500")
    due = by_name(day(NOW).verdicts())[EXACT].due
    assert due is not None
    act(due - timedelta(days=20))  # rows go, and files
    assert _gone_at(EXACT, due, ANNOUNCED_DAYS + 3) == due + timedelta(minutes=1)


def test_an_alarm_about_older_data_counts_for_nothing(landed: Deployment) -> None:
    make_steady(landed)
    journal = Journal.of(Settings.from_environment())
    old = Alert("retention_near", "itms", WEEK, "from 2016-10-29 00:00 on")
    deliver([old], dict.fromkeys(Severity, ("json://receiver",)), journal,
            send=lambda *_: True, now=NOW - timedelta(days=400))  # fmt: skip
    assert act(NOW + timedelta(days=100)) == {}


def test_a_week_that_people_gave_up_goes_without_an_alarm(
    landed: Deployment, turnstile: Cli
) -> None:
    make_steady(landed)
    open_ledger(Settings.from_environment()).confirm_clock("ada", "the first entry")
    assert turnstile("ledger", "no-release", str(KEY), "--reason", "strike") == 0
    assert set(act(NOW + WINDOW + timedelta(hours=1))) == {(WEEK, "files")}


def test_a_release_whose_sealed_bytes_are_lost_keeps_its_data(published: Deployment) -> None:
    shutil.rmtree(published.public / "itms" / WEEK / "r0")
    assert (WEEK, "rows") in by_name(tuple(v for v in day(NOW).verdicts() if v.may_go(NOW)))
    shutil.rmtree(published.home / "embargoed/itms" / WEEK)
    assert act() == {}


@pytest.mark.parametrize("is_package_whole", [True, False])
def test_a_release_whose_bytes_are_others_keeps_its_data(
    published: Deployment, *, is_package_whole: bool
) -> None:
    """A disk cut the sealed bytes, or somebody altered them; so of its package."""
    (sealed,) = (published.home / "embargoed/itms" / WEEK / "r0").glob("sealed-*.parquet")
    sealed.chmod(0o644)
    sealed.write_bytes(sealed.read_bytes()[:-1])
    if not is_package_whole:
        table = next((published.public / "itms" / WEEK / "r0").rglob("*.csv"))
        table.write_bytes(table.read_bytes() + b"1")
    assert ((WEEK, "rows") in act()) is is_package_whole


def test_a_week_that_is_sealed_and_not_public_keeps_its_data(assessed: Deployment) -> None:
    assert act() == {}
    assert "not finished" in held(NOW + WINDOW + timedelta(hours=1))
    for step in ("approve", "publish"):
        step_named(step)("itms", WEEK, 0)
    assert set(act()) == {(WEEK, "rows"), (WEEK, "exact")}
    assert assessed.home


@pytest.mark.parametrize("days", [36, 400, -3, -400])
def test_a_clock_that_jumped_deletes_nothing_whatever_was_written_since(
    published: Deployment, days: int
) -> None:
    jumped = NOW + timedelta(days=days)
    assert not -1 <= days <= QUIET_AT_MOST.days
    ledger = ledger_at(jumped)
    ledger.declare_no_release(ReleaseKey("itms", "2030-W01"), "ada", "by a wrong clock")
    retention_day = RetentionDay(Settings.from_environment(), jumped)
    assert retention_day.act() == ()
    assert all("the clock jumped" in v.held for v in retention_day.verdicts()
               if v.kept.part is not Part.FILES and v.due is not None)  # fmt: skip
    assert (WEEK, "rows") in act(jumped), "a person confirmed the clock"
    assert published.home


def test_once_the_clock_is_right_again_retention_goes_on(published: Deployment) -> None:
    ledger_at(NOW + timedelta(days=400)).declare_no_release(
        ReleaseKey("itms", "2030-W01"), "ada", "by a wrong clock"
    )
    assert (WEEK, "rows") in by_name(RetentionDay(Settings.from_environment(), NOW).act())
    assert published.home


@pytest.mark.parametrize("days", [400, -400])
def test_no_week_is_final_by_a_clock_that_jumped(
    published: Deployment, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    jumped = NOW + timedelta(days=days)
    later = str(ServiceWeek.containing((jumped - timedelta(days=30)).date()))
    monkeypatch.setattr(context, "system_clock", lambda: jumped)
    with pytest.raises(NotFinal, match="the week is final since .* and it jumped"):
        step_named("ingest")("itms", later, 0)
    ledger_at(jumped).confirm_clock("ada", "it is right")
    with pytest.raises(InputError):  # its files are not there
        step_named("ingest")("itms", later, 0)
    assert published.home


_DROPPED = "  speeding: {by: [slot, cell], measure: buses_over, limits_kmh: [40]}\n"


@pytest.mark.parametrize(
    "edits",
    [
        [("title:", "title: Changed -")],
        [(_DROPPED, ""), ('    speeding/over_40: "1/4"\n', ""), ('buses: "1/4"', 'buses: "1/2"')],
    ],
    ids=["title", "a table dropped"],
)
def test_counts_that_a_changed_file_no_longer_needs_go_a_week_after_people_were_told(
    published: Deployment, edits: list[tuple[str, str]]
) -> None:
    due = by_name(day(NOW).verdicts())[EXACT].due
    assert due is not None
    for old, new in edits:
        published.edit("itms", old, new)
    eve = max(due, NOW)
    assert EXACT not in act(eve)
    assert "was changed since its release" in by_name(day(eve).verdicts())[EXACT].held
    assert EXACT not in act(eve + timedelta(days=8)), "nobody was told"
    assert {alert.rule for alert in tell(eve + timedelta(days=8))} >= {"retention_held"}
    assert EXACT not in act(eve + timedelta(days=14))
    assert EXACT in act(eve + timedelta(days=16))


def test_a_mistake_that_is_made_again_is_told_again(
    published: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = published.include / "programmes/itms.yaml"
    right = path.read_text()
    mistake = right.replace("title:", "title: Changed -", 1)
    path.write_text(mistake)
    assert EXACT not in act(NOW)
    tell(NOW)
    path.write_text(right)
    with monkeypatch.context() as patch:
        patch.setattr(retention, "MOST_A_DAY", 0)  # so that this day takes nothing
        act(NOW + timedelta(days=1))
    path.write_text(mistake)
    again = NOW + timedelta(days=30)
    assert EXACT not in act(again), "it was told of another time"
    tell(again)
    assert EXACT not in act(again + timedelta(days=6))
    assert EXACT in act(again + timedelta(days=8))


@pytest.mark.parametrize("raw_days", [None, 36_500, 90])
def test_raw_data_that_a_slip_in_their_days_lets_go_wait_until_that_was_told(
    published: Deployment, turnstile: Cli, monkeypatch: pytest.MonkeyPatch, raw_days: int | None
) -> None:
    """The file that a release was sealed under is unknown, kept them longer, or no longer."""
    rows, title = (WEEK, "rows"), raw_days == 90
    monkeypatch.setattr(retention, "MOST_A_DAY", 0)  # so that days of before take nothing
    if raw_days is not None:
        act(NOW)
        (met,) = (published.home / "operations/journal/itms").glob("all.jsonl")
        met.write_text(met.read_text().replace('"raw_days": 90', f'"raw_days": {raw_days}'))
    monkeypatch.setattr(retention, "MOST_A_DAY", 30)
    edit = ("title:", "title: New -") if title else ("raw_days: 90", "raw_days: 61")
    published.edit("itms", *edit)
    ledger_at(NOW).confirm_clock("ada", "a live deployment")
    monkeypatch.setattr("turnstile.commands.retention.system_clock", lambda: NOW, raising=False)
    assert turnstile("retention", "--delete") == 0
    assert bool(deletions()) is title
    if title:
        return
    said = (
        "nobody knows how long it kept"
        if raw_days is None
        else "keeps raw data for fewer days than"
    )
    assert said in held()
    later = NOW + timedelta(days=9)
    assert rows not in act(later), "nobody was told"
    tell(later)
    assert rows not in act(later + timedelta(days=6))
    assert rows in act(later + timedelta(days=8))


def test_a_day_takes_its_most_over_all_calls_the_oldest_first_and_says_the_rest_at_once(
    published: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    turnstile: Cli,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(retention, "MOST_A_DAY", 1)
    command = "turnstile retention --delete --all --person YOU --reason WHY"
    for _ in range(2):
        capsys.readouterr()
        assert turnstile("retention", "--delete") == 0
        assert command in capsys.readouterr().out
        assert deletions() == [(WEEK, "rows", 90)], "the oldest, and no more by another call"
    (alert,) = tell(NOW)
    assert (alert.rule, command in alert.subject) == ("retention_held", True)
    tomorrow = system_clock() + timedelta(days=1)
    assert by_name(day(tomorrow).verdicts())[EXACT].may_go(tomorrow)
    assert turnstile("retention", "--delete", "--all") == 2  # nobody says why
    said = ("--person", "olga", "--reason", "two years at once")
    assert turnstile("retention", "--delete", "--all", *said) == 0
    assert deletions() == [(WEEK, "rows", 90), (WEEK, "exact", 120)]
    last = tombstones()[-1]
    assert (last["person"], last["reason"]) == ("olga", "two years at once")
    assert published.home


def test_a_day_looks_at_the_zones_once(
    published: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MOST_A_DAY", 1)
    scans, look = [], retention.landing_data
    monkeypatch.setattr(retention, "landing_data", lambda *of: scans.append(of) or look(*of))
    today = day(NOW)
    gone, waiting = today.act(), today.waiting()
    assert (len(gone), len(waiting)) == (1, 1)
    assert {*today.verdicts()} >= {*gone, *waiting}
    assert len(scans) == 1
    assert published.home
