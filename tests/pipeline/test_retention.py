"""Retention: what goes when, what is written of it, and what it must never make impossible.

The steady `itms` keeps raw data for 90 days, exact ones for 120, and may be corrected for 60. The
week is of 2016, so its days are over; landing files count from when they were delivered, which is
when the test began.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from small_deployment import WEEK, Deployment

from turnstile.errors import InputError, ProgrammeError, TurnstileError
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.operations.alerts import Alert, of_retention
from turnstile.operations.delivery import deliver
from turnstile.operations.journal import Journal
from turnstile.operations.retention_day import RetentionDay
from turnstile.pipeline import retention
from turnstile.pipeline.private_data import Part, landing_data
from turnstile.pipeline.retention import ALARM, QUIET_AT_MOST, Verdict
from turnstile.pipeline.steps import step_named
from turnstile.programme.loading import load_programme, parse_programme
from turnstile.programme.spec import RetentionSpec
from turnstile.release.retention_rule import exact_due, is_carried_by, rows_due
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings, system_clock

Cli = Callable[..., int]
NOW = system_clock() + timedelta(minutes=10)  # the test has copied its files by then
WINDOW = timedelta(days=60)
KEY = ReleaseKey("itms", WEEK)


@pytest.fixture(autouse=True)
def idle(deployment: Deployment) -> None:
    """Make the other programmes that read the same files examples."""
    deployment.make_siblings_examples("itms")


def ledger_at(now: datetime) -> Ledger:
    ledger = open_ledger(Settings.from_environment())
    ledger._clock = lambda: now
    return ledger


def day(now: datetime) -> RetentionDay:
    """A day of a live deployment: something was written to the ledger just before."""
    ledger_at(now).confirm_clock("ada", "a live deployment")
    return RetentionDay(Settings.from_environment(), now)


def act(now: datetime = NOW) -> dict[tuple[str, str], Verdict]:
    return by_name(day(now).act())


def by_name(found: tuple[Verdict, ...], of: str = "itms") -> dict[tuple[str, str], Verdict]:
    mine = [one for one in found if any(user.name == of for user, _ in one.kept.users)]
    return {(one.kept.name, one.kept.part.value): one for one in mine}


def held(now: datetime = NOW, part: Part = Part.ROWS) -> str:
    return by_name(day(now).verdicts())[WEEK, part].held


def deletions() -> list[tuple[str, str, int]]:
    entries = open_ledger(Settings.from_environment()).entries()
    found = [one.body for one in entries if one.kind is EntryKind.DELETED]
    return [(one["period"], one["part"], one["days"]) for one in found]


def tell(now: datetime) -> tuple[Alert, ...]:
    """Do what the watchdog does: send what is written down."""
    journal = Journal.of(Settings.from_environment())
    alerts = of_retention(journal.of_programme("itms"))
    return deliver(alerts, dict.fromkeys([*_severities()], ("json://receiver",)), journal,
                   send=lambda *_: True, now=now)  # fmt: skip


def _severities() -> list[object]:
    from turnstile.operations.alerts import Severity

    return list(Severity)


def files_of(one: Deployment, *parts: str) -> list[str]:
    folder = one.home.joinpath(*parts)
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")
                  if path.is_file())  # fmt: skip


def test_rows_and_exact_tables_go_and_the_release_stays(published: Deployment) -> None:
    public = files_of(published, "public", "itms")
    assert any(name.startswith("snapshots/") for name in files_of(published, "private/itms", WEEK))
    assert set(act()) == {(WEEK, "rows"), (WEEK, "exact")}
    assert files_of(published, "private/itms", WEEK) == ["r0/.draw.lock"]
    assert deletions() == [(WEEK, "rows", 90), (WEEK, "exact", 120)]
    assert files_of(published, "public", "itms") == public
    assert (published.home / "private/bounding.key").exists()
    assert act() == {}, "once"
    assert open_ledger(Settings.from_environment()).verify() == ()


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
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert "0 charged" in capsys.readouterr().err
    assert published.spent() == spent
    assert turnstile("package", "verify", published.public / "itms" / WEEK / "r0") == 0
    assert turnstile("ledger", "verify") == 0


def test_delivered_files_stay_for_the_window_of_backfills(published: Deployment) -> None:
    (published.landing("itms") / ".late.csv.part").write_text("a card")
    act(NOW + WINDOW - timedelta(hours=1))
    assert published.landing("itms").exists()
    assert (WEEK, "files") in act(NOW + WINDOW + timedelta(minutes=1))
    assert not published.landing("itms").exists(), "hidden ones too"


def test_a_correction_after_that_needs_its_files_again_and_keeps_them(
    published: Deployment, turnstile: Cli
) -> None:
    landing = published.landing("itms")
    copy = shutil.copytree(landing, published.home / "copy")
    for cap in ("8", "2912"):
        published.edit("itms", f'epsilon: "{cap}"}}', f'epsilon: "{2 * int(cap)}"}}')
    act(NOW + WINDOW + timedelta(minutes=1))
    again = ("run", "itms", "--week", WEEK, "--revision", "1", "--reason", "a late file")
    assert turnstile(*again) == 2, "no file: refused before any charge"
    spent = published.spent()
    shutil.copytree(copy, landing)
    assert "rows" not in {part for _, part in act(NOW + timedelta(days=1))}
    assert landing.exists()
    assert turnstile("ledger", "confirm-clock", "--reason", "the test's is back") == 0
    assert turnstile(*again) == 0
    assert published.spent() != spent
    assert (WEEK, "rows") in act(NOW + timedelta(days=2))


def test_a_correction_that_was_begun_keeps_everything(
    published: Deployment, turnstile: Cli
) -> None:
    shutil.move(published.landing("itms"), published.home / "copy")
    again = ("run", "itms", "--week", WEEK, "--revision", "1", "--reason", "a late file")
    assert turnstile(*again) == 2
    assert act() == {}
    soon = NOW + WINDOW + timedelta(hours=1)
    assert act(soon) == {}
    assert "not finished" in held(soon)
    assert "not finished" in held(soon, Part.EXACT)


def test_a_period_that_is_held_or_drawn_keeps_everything(
    landed: Deployment, turnstile: Cli
) -> None:
    _steady(landed)
    for step in ("ingest", "validate", "plan", "count", "reserve"):
        step_named(step)("itms", WEEK, 0)
    late = NOW + timedelta(days=200)
    act(late)
    tell(late)
    assert act(late + ALARM) == {}
    assert "held or drawn now" in held(late + ALARM)
    assert turnstile("ledger", "void", f"{KEY}", "--reason", "given up") == 0
    assert len(act(late + ALARM)) == 3


def test_a_run_that_loses_its_tables_refuses_before_any_charge(
    landed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    _steady(landed)
    for step in ("ingest", "validate", "plan", "count"):
        step_named(step)("itms", WEEK, 0)
    monkeypatch.setattr(retention, "is_unfinished", lambda *_: False)
    assert (WEEK, "exact") in act()
    with pytest.raises(TurnstileError):
        step_named("draw")("itms", WEEK, 0)
    assert landed.nothing_happened()


def test_a_week_without_a_release_goes_two_weeks_after_somebody_was_told(
    landed: Deployment,
) -> None:
    _steady(landed)
    due = NOW + WINDOW + timedelta(minutes=1)
    assert act(due - ALARM - timedelta(hours=1)) == {}
    assert tell(due) == ()
    assert act(due - ALARM + timedelta(hours=1)) == {}
    assert act(due + timedelta(days=300)) == {}, "nobody was told"
    assert next(one.rule for one in tell(due + timedelta(days=300))) == "retention_near"
    told = due + timedelta(days=300)
    assert act(told + ALARM - timedelta(minutes=1)) == {}
    assert landed.landing("itms").exists()
    assert set(act(told + ALARM)) == {(WEEK, "files")}
    assert not landed.landing("itms").exists()


def test_an_alarm_about_older_data_counts_for_nothing(landed: Deployment) -> None:
    _steady(landed)
    journal = Journal.of(Settings.from_environment())
    old = Alert("retention_near", "itms", WEEK, "from 2016-10-29 00:00 on")
    deliver([old], dict.fromkeys([*_severities()], ("json://receiver",)), journal,
            send=lambda *_: True, now=NOW - timedelta(days=400))  # fmt: skip
    assert act(NOW + timedelta(days=100)) == {}


def test_a_week_that_people_gave_up_goes_without_an_alarm(
    landed: Deployment, turnstile: Cli
) -> None:
    _steady(landed)
    open_ledger(Settings.from_environment()).confirm_clock("ada", "the first entry")
    assert turnstile("ledger", "no-release", str(KEY), "--reason", "strike") == 0
    assert set(act(NOW + WINDOW + timedelta(hours=1))) == {(WEEK, "files")}


def test_a_release_whose_sealed_bytes_are_lost_keeps_its_data(published: Deployment) -> None:
    shutil.rmtree(published.public / "itms" / WEEK / "r0")
    assert (WEEK, "rows") in by_name(tuple(v for v in day(NOW).verdicts() if v.may_go(NOW)))
    shutil.rmtree(published.home / "embargoed/itms" / WEEK)
    assert act() == {}


def test_a_week_that_is_sealed_and_not_public_keeps_its_data(assessed: Deployment) -> None:
    assert act() == {}
    assert "not finished" in held(NOW + WINDOW + timedelta(hours=1))
    for step in ("approve", "publish"):
        step_named(step)("itms", WEEK, 0)
    assert set(act()) == {(WEEK, "rows"), (WEEK, "exact")}
    assert assessed.home


def test_a_clock_that_jumped_deletes_nothing(published: Deployment) -> None:
    jumped = NOW + QUIET_AT_MOST + timedelta(days=1)
    one = RetentionDay(Settings.from_environment(), jumped)
    assert one.act() == ()
    assert all("quiet" in v.held for v in one.verdicts() if v.kept.part is not Part.FILES
               and v.due is not None)  # fmt: skip
    assert (WEEK, "rows") in act(jumped), "a person confirmed the clock"
    assert published.home


def test_what_a_copy_brings_back_goes_again_and_is_stated_again(published: Deployment) -> None:
    copy = shutil.copytree(published.home / "private", published.home / "copy")
    act()
    shutil.copytree(copy, published.home / "private", dirs_exist_ok=True)
    assert set(act(NOW + timedelta(days=1))) == {(WEEK, "rows"), (WEEK, "exact")}
    assert deletions().count((WEEK, "rows", 90)) == 2


def test_nothing_goes_that_the_ledger_does_not_hold(
    published: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_of(published, "private")

    def fails(*_: object) -> None:
        raise OSError("the ledger's disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "record_deletion", fails)
        with pytest.raises(OSError, match="full"):
            act()
    assert files_of(published, "private") == before


def test_what_cannot_be_deleted_is_said_and_goes_the_next_day(
    published: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as broken:
        broken.setattr(shutil, "rmtree", fails)
        with pytest.raises(TurnstileError, match="cannot be deleted"):
            act()
    assert deletions() == [(WEEK, "rows", 90)]
    assert files_of(published, "private/itms", WEEK)
    assert set(act()) == {(WEEK, "rows"), (WEEK, "exact")}


def test_files_stay_as_long_as_every_programme_that_reads_them_keeps_them(
    published: Deployment,
) -> None:
    late = NOW + timedelta(days=400)
    with (published.include / "programmes/opal.yaml").open("a") as file:
        file.write("retention: {backfill_days: 60, raw_days: 90, exact_days: 120}\n")
    found = by_name(day(late).verdicts(), "opal")
    assert found[WEEK, "files"].due is None
    assert "states no retention" in found[WEEK, "files"].held
    assert found[WEEK, "rows"].may_go(late)
    published.make_siblings_examples("opal")
    found = by_name(day(late).verdicts(), "opal")
    assert found[WEEK, "files"].may_go(late)


def test_files_of_a_week_belong_to_both_periods_that_it_touches(landed: Deployment) -> None:
    month = load_programme("itms_month", landed.include)
    week = ServiceWeek.containing(datetime(2021, 12, 15, tzinfo=UTC).date())
    folder = landed.home / "landing/itms" / str(week)
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("x")
    (folder.parent / "2021-W99").mkdir()
    (folder.parent / "2021-W99/a.csv").write_text("x")
    found = {one.name: one for one in landing_data([month], landed.home / "landing")}
    assert [str(period) for _, period in found[str(week)].users] == [
        "2021-11-15..2021-12-15",
        "2021-12-16..2022-01-15",
    ]
    assert found["2021-W99"].users == ()


def test_nothing_goes_through_a_link_that_leads_out(published: Deployment) -> None:
    archive = published.home.parent / "archive"
    shutil.move(published.landing("itms"), archive)
    published.landing("itms").symlink_to(archive)
    late = NOW + timedelta(days=400)
    assert (WEEK, "files") not in act(late)
    assert list(archive.iterdir())
    assert "leads out" in by_name(day(late).verdicts())[WEEK, "files"].held


def test_nothing_goes_while_a_programme_cannot_be_read(published: Deployment) -> None:
    published.edit("opal", "family: opal_cards", "family: [")
    with pytest.raises(ProgrammeError):
        act()
    assert deletions() == []


def test_reports_of_failures_go_with_the_raw_data_of_their_programme(
    published: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = published.home / "private/failures"
    folder.mkdir(exist_ok=True)
    names = [f"{name}-ingest-20160801T100000.txt" for name in ("itms", "itms_month", "opal")]
    for name in names:
        (folder / name).write_text("ValueError: 3085220012345678")
    monkeypatch.setattr(retention.Retention, "verdicts", lambda _: ())
    act(NOW + timedelta(days=89))
    assert len(list(folder.iterdir())) == 3
    act(NOW + timedelta(days=91))
    assert sorted(path.name for path in folder.iterdir()) == names[1:]


# -- a year ------------------------------------------------------------------------------------

DAYS = RetentionSpec(backfill_days=60, raw_days=90, exact_days=120)


def test_exact_tables_stay_until_their_year_is_over() -> None:
    from watched_place import INCLUDE

    sums, opal = load_programme("opal_sums", INCLUDE), load_programme("opal", INCLUDE)
    first, last = ServiceWeek.parse("2016-W27"), ServiceWeek.parse("2017-W26")
    end = last.ends_at(sums.time.zone)
    for week in (first, ServiceWeek.parse("2016-W40"), ServiceWeek.parse("2017-W10")):
        assert exact_due(sums, DAYS, week) == end + timedelta(days=60)
        assert exact_due(opal, DAYS, week) == week.ends_at(opal.time.zone) + timedelta(days=120)
    assert exact_due(sums, DAYS, last) == end + timedelta(days=120)
    assert exact_due(sums, DAYS, last.plus(1)) > end + timedelta(days=364)
    assert rows_due(sums, DAYS, first) == first.ends_at(sums.time.zone) + timedelta(days=90)
    assert is_carried_by(sums, first, last)
    assert not is_carried_by(sums, first, last.plus(1))
    assert not is_carried_by(sums, last, first)
    assert not is_carried_by(opal, first, last)


def test_exact_tables_stay_while_a_later_week_of_their_year_is_kept(
    deployment: Deployment, turnstile: Cli
) -> None:
    with (deployment.include / "programmes/opal_sums.yaml").open("a") as file:
        file.write("retention: {backfill_days: 60, raw_days: 90, exact_days: 120}\n")
    weeks = ("2016-W30", "2016-W34", "2017-W27")
    ledger = open_ledger(Settings.from_environment())
    ledger.confirm_clock("ada", "the first entry")
    for week in weeks:
        folder = deployment.home / "private/opal_sums" / week
        (folder / "r0").mkdir(parents=True)
        (folder / "r0/exact-0.bin").write_bytes(b"0")
        assert turnstile("ledger", "no-release", f"opal_sums/{week}/r0", "--reason", "test") == 0
    (deployment.home / "private/opal_sums/2016-W34/snapshots").mkdir()
    for_ever = deployment.landing("opal", "2016-W35")  # kept by programmes that state no days
    for_ever.mkdir(parents=True)
    (for_ever / "a.csv").write_text("x")
    now = ServiceWeek.parse("2016-W34").ends_at(UTC) + timedelta(days=89)
    kept = {name: one for (name, part), one in by_name(day(now).verdicts(), "opal_sums").items()
            if part == "exact"}  # fmt: skip
    assert "would carry its counts along" in kept["2016-W30"].held
    assert kept["2016-W34"].held == kept["2017-W27"].held == ""
    gone = ServiceWeek.parse("2017-W26").ends_at(UTC) + timedelta(days=61)
    assert _names(day(gone).act()) == {
        ("2016-W34", "rows"),
        ("2016-W30", "exact"),
        ("2016-W34", "exact"),
    }


# -- what a programme may state ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "field"),
    [
        ("{backfill_days: 13, raw_days: 90, exact_days: 120}", "backfill_days"),
        ("{backfill_days: 60, raw_days: 59, exact_days: 120}", "raw_days"),
        ("{backfill_days: 60, raw_days: 90, exact_days: 59}", "exact_days"),
        ("{backfill_days: 60, raw_days: 90}", "exact_days"),
        ("{backfill_days: 60, raw_days: 90, exact_days: 120, days: 3}", "days"),
    ],
)
def test_days_that_end_before_the_window_of_backfills_are_refused(
    deployment: Deployment, stated: str, field: str
) -> None:
    text = (deployment.include / "programmes/opal.yaml").read_text()
    with pytest.raises(ProgrammeError, match=field):
        parse_programme(f"{text}retention: {stated}\n", "opal.yaml")
    good = "retention: {backfill_days: 14, raw_days: 14, exact_days: 14}\n"
    assert parse_programme(text + good, "opal.yaml").retention == RetentionSpec(14, 14, 14)


# -- the command -------------------------------------------------------------------------------


def test_the_command_says_until_when_and_why_and_deletes_when_asked(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("retention") == 0
    text = capsys.readouterr().out
    assert re.search(r"itms +2016-W30 +rows +2016-10-29 +goes", text)
    assert re.search(r"itms +2016-W30 +exact +2016-11-28 +goes", text)
    assert re.search(r"opal +2016-W30 +rows +for ever +opal states no retention", text)
    assert deletions() == []
    assert turnstile("retention", "--delete", "--json") == 0
    assert '"data": "exact"' in capsys.readouterr().out
    assert len(deletions()) == 2
    assert turnstile("retention", "--delete") == 0
    assert capsys.readouterr().out == "nothing is due\n"
    assert published.home


def test_a_witness_brings_deletions_back(
    published: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, turnstile: Cli
) -> None:
    witness = tmp_path / "witness"
    witness.mkdir()
    monkeypatch.setenv("TURNSTILE_WITNESS", str(witness))
    assert turnstile("ledger", "witness", "add", str(witness), "--reason", "second place") == 0
    before = (published.home / "ledger.sqlite").read_bytes()
    act()
    stated = deletions()
    (published.home / "ledger.sqlite").write_bytes(before)
    for leftover in published.home.glob("ledger.sqlite-*"):
        leftover.unlink()
    with pytest.raises((TurnstileError, InputError)):
        day(NOW).act()
    assert turnstile("ledger", "recover", "--reason", "an old copy") == 0
    assert deletions() == stated
    assert turnstile("ledger", "verify") == 0


def _names(found: tuple[Verdict, ...]) -> set[tuple[str, str]]:
    return set(by_name(found, "opal_sums"))


def _steady(landed: Deployment) -> None:
    from deployment_fixtures import STEADY_ITMS

    shutil.copyfile(STEADY_ITMS, landed.include / "programmes/itms.yaml")
