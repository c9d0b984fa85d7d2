"""Retention where things are shared, copied back, broken, or of a year; and its command."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from locked_folders import lock
from retention_days import (
    NOW,
    Cli,
    act,
    by_name,
    day,
    deletions,
    files_of,
    ledger_at,
    names_of,
    tell,
)
from small_deployment import WEEK, Deployment

from turnstile.errors import InputError, IntegrityError, ProgrammeError, TurnstileError
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.operations.retention_day import RetentionDay
from turnstile.pipeline.private_zone import retention
from turnstile.pipeline.private_zone.private_data import landing_data
from turnstile.programme.loading import load_programme, parse_programme
from turnstile.programme.spec import RetentionSpec
from turnstile.release.retention_rule import exact_due, is_carried_by, rows_due
from turnstile.release.zone_copies import Unnamed, zones
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings


@pytest.fixture(autouse=True)
def idle(deployment: Deployment) -> None:
    """Make the other programmes that read the same files examples."""
    deployment.make_siblings_examples("itms")


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

    def fails(*_: object, **__: object) -> None:
        raise OSError("the ledger's disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "record_deletion", fails)
        with pytest.raises(OSError, match="full"):
            act()
    assert files_of(published, "private") == before


def stuck(name: str) -> Callable[..., None]:
    """Unlink as of a disk that does not let go of the files of one name."""
    unlink = os.unlink

    def fails(path: str | Path, **options: int | None) -> None:
        if Path(path).name == name:
            raise PermissionError(1, "Operation not permitted")
        unlink(path, **options)

    return fails


def test_what_cannot_be_deleted_is_named_and_holds_up_nothing_else(
    published: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, stays = NOW + timedelta(days=100), ["itms.parquet", "late.csv"]
    (published.landing("itms") / "late.csv").write_text("x")
    snapshot = next((published.home / "private/itms" / WEEK / "snapshots").glob("[!.]*"))
    (snapshot / "itms.parquet").write_text("x")
    failures = published.home / "private/failures"
    failures.mkdir(exist_ok=True)
    (failures / "itms-count-20160801T100000.txt").write_text("x")
    time.sleep(1)  # the ledger knows seconds: these files were there before
    for later in (late, late + timedelta(days=1)):
        with monkeypatch.context() as broken:
            for name in stays:
                broken.setattr(os, "unlink", stuck(name))
            with pytest.raises(TurnstileError) as raised:
                act(later)
        assert all(name in str(raised.value) for name in stays)
        assert str(raised.value).count("Operation not permitted") == 2, "of files, not of folders"
        left = [*files_of(published, "private/itms", WEEK), *files_of(published, "landing/itms")]
        assert [Path(name).name for name in left] == [".draw.lock", *stays]
        assert not list(failures.iterdir()), "a day that fails does the rest of its work"
    stated = [(WEEK, "files", 90), (WEEK, "rows", 90), (WEEK, "exact", 120)]
    assert sorted(deletions()) == sorted(stated), "stated once, however often it was tried"
    assert set(act(late + timedelta(days=2))) == {(WEEK, "files"), (WEEK, "rows")}
    assert sorted(deletions()) == sorted(stated)


@pytest.mark.parametrize(
    ("locked", "goes"),
    [("", set()), ("r0", {(WEEK, "files"), (WEEK, "rows")})],
)
def test_a_folder_that_nobody_can_read_is_told_and_holds_up_nothing_else(
    published: Deployment, monkeypatch: pytest.MonkeyPatch, locked: str, goes: set[tuple[str, str]]
) -> None:
    """The listing stopped at it: whatever else was due, of every programme, stayed.

    A correction may have been begun in a folder of a week, so its delivered files stay, too.
    """
    late = NOW + timedelta(days=100)
    folder = (published.home / "private/itms" / WEEK / locked).resolve()
    others = by_name(day(late).verdicts(), "opal")
    everything = {(WEEK, part) for part in ("files", "rows", "exact")}
    with monkeypatch.context() as broken:
        lock(folder, broken)
        went = day(late).act()
        waiting = by_name(day(late).waiting())
    assert set(by_name(went)) == goes
    assert set(by_name(went, "opal")) == {of for of, its in others.items() if its.may_go(late)}
    assert waiting.keys() == everything - goes
    path = folder.relative_to(published.home.resolve())
    rule = f"{path} cannot be read (Permission denied); mend its rights or the disk"
    assert {verdict.held for verdict in waiting.values()} == {rule}
    assert {alert.subject for alert in tell(late)} == {rule}
    assert set(act(late + timedelta(days=1))) == everything - goes


@pytest.mark.parametrize(
    ("locked", "lists", "goes"),
    [
        (f"{WEEK}/r0", True, {"files", "rows"}),
        (f"{WEEK}/snapshots", True, {"files", "exact"}),
        (f"{WEEK}/snapshots", False, {"files", "exact"}),
        (WEEK, True, set()),
        ("", True, set()),
        ("", False, set()),
    ],
)
def test_a_folder_that_only_lists_or_of_a_programme_is_told_and_holds_up_nothing_else(
    published: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    locked: str,
    lists: bool,  # noqa: FBT001 - of a case
    goes: set[str],
) -> None:
    """A traceback stopped all retention, or of a whole programme nothing was due."""
    late = NOW + timedelta(days=100)
    folder = (published.home / "private/itms" / locked).resolve()
    others = by_name(day(late).verdicts(), "opal")
    parts = {"files", "rows", "exact"}
    with monkeypatch.context() as broken:
        lock(folder, broken, lists=lists)
        went = day(late).act()
        waiting = by_name(day(late).waiting())
    assert set(by_name(went)) == {(WEEK, part) for part in goes}
    assert set(by_name(went, "opal")) == {of for of, its in others.items() if its.may_go(late)}
    assert waiting.keys() == {(WEEK, part) for part in parts - goes}
    path = folder.relative_to(published.home.resolve())
    rules = {verdict.held for verdict in waiting.values()}
    assert all(rule.startswith(str(path)) for rule in rules)
    assert all(rule.count("cannot be read (Permission denied)") == 1 for rule in rules)
    assert {alert.subject for alert in tell(late)} == rules
    assert set(act(late + timedelta(days=1))) == waiting.keys()


@pytest.mark.parametrize(("above", "lists"), [(0, True), (0, False), (1, True), (1, False)])
def test_delivered_files_that_nobody_may_look_at_are_told_and_hold_up_nothing_else(
    published: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    above: int,
    lists: bool,  # noqa: FBT001 - of a case
) -> None:
    """A traceback stopped all retention, or the files stayed beyond their days and nobody knew."""
    late, folder = NOW + timedelta(days=100), published.landing("itms").resolve()
    folder = (folder, *folder.parents)[above]
    others = {of for of, its in by_name(day(late).verdicts(), "opal").items() if its.may_go(late)}
    with monkeypatch.context() as broken:
        lock(folder, broken, lists=lists)
        went = day(late).act()
        waiting = by_name(day(late).waiting())
    assert set(by_name(went)) == {(WEEK, "rows"), (WEEK, "exact")}
    assert set(by_name(went, "opal")) == others
    (held,) = {(of, verdict.held) for of, verdict in waiting.items()}
    place = folder.relative_to(published.home.resolve())
    rule = f"{place} cannot be read (Permission denied); mend its rights or the disk"
    assert held == ((WEEK, "files"), rule)
    assert {alert.subject for alert in tell(late)} == {rule}
    assert set(act(late + timedelta(days=1))) == {(WEEK, "files")}


def test_a_folder_that_nobody_can_read_is_told_when_it_is_due_and_not_before(
    published: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        lock((published.home / "private/itms" / WEEK / "r0").resolve(), broken)
        early = NOW - timedelta(days=60 * 365)
        verdict = by_name(RetentionDay(Settings.from_environment(), early).verdicts())
        assert "cannot be read" in verdict[WEEK, "exact"].held
        assert not verdict[WEEK, "exact"].is_told_at_once


def test_a_delivered_file_may_be_called_as_sealed_bytes_are(published: Deployment) -> None:
    (published.landing("itms") / "sealed-0123456789abcdef.parquet").write_text("x")
    assert (WEEK, "files") in act(NOW + timedelta(days=100))
    assert not published.landing("itms").exists()


def test_nothing_is_stated_to_be_gone_that_has_the_name_of_sealed_bytes(
    published: Deployment,
) -> None:
    sealed = published.home / "private/itms" / WEEK / "r0/sealed-0123456789abcdef.parquet"
    sealed.write_text("x")
    with pytest.raises(IntegrityError, match="name of sealed bytes"):
        act()
    assert sealed.exists()
    assert deletions() == [(WEEK, "rows", 90)]


def test_files_stay_as_long_as_every_programme_that_reads_them_keeps_them(
    published: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = NOW + timedelta(days=400)
    with (published.include / "programmes/opal.yaml").open("a") as file:
        file.write("retention: {backfill_days: 60, raw_days: 90, exact_days: 120}\n")
    verdicts = by_name(day(late).verdicts(), "opal")
    assert verdicts[WEEK, "files"].due is None
    assert "states no retention" in verdicts[WEEK, "files"].held
    assert "nobody knows how long" in verdicts[WEEK, "rows"].held, "it stated none before"
    monkeypatch.setattr(retention.Retention, "_changed_since", lambda *_: "")  # it was told
    published.make_siblings_examples("opal")
    verdicts = by_name(day(late).verdicts(), "opal")
    assert verdicts[WEEK, "files"].may_go(late)


@pytest.mark.parametrize("is_gone", [True, False])
def test_files_that_a_programme_read_outlive_its_file_and_its_pattern(
    published: Deployment, *, is_gone: bool
) -> None:
    """Another that reads them keeps them for less long; a slip in a file lets nothing go."""
    late, files = NOW + timedelta(days=100), (WEEK, "files")
    path = published.include / "programmes/itms.yaml"
    text = path.read_text()
    other = text.replace("name: itms\n", "name: other\n")
    (path.parent / "other.yaml").write_text(other)
    longer = re.sub("raw_days: 90, exact_days: 120", "raw_days: 900, exact_days: 900", text)
    path.write_text(longer)
    assert not by_name(day(late).verdicts(), "other")[files].may_go(late)
    if is_gone:
        path.unlink()
    else:
        published.edit("itms", 'landing: "itms/', 'landing: "slip/')
    ledger_at(late).declare_no_release(ReleaseKey("other", WEEK, 0), "ada", "not wanted")
    assert files not in by_name(day(late).act(), "other")
    if not is_gone:
        return
    assert "itms.yaml" in by_name(day(late).verdicts(), "other")[files].held
    assert files not in by_name(day(late + timedelta(days=8)).act(), "other"), "nobody was told"
    tell(late, "other")
    path.write_text(longer)  # put back, and lost another time
    assert files not in by_name(day(late + timedelta(days=9)).act(), "other")
    path.unlink()
    again = late + timedelta(days=10)
    assert files not in by_name(day(again).act(), "other")
    tell(again, "other")
    assert files in by_name(day(again + timedelta(days=8)).act(), "other")


def test_files_of_a_week_belong_to_both_periods_that_it_touches(landed: Deployment) -> None:
    month = load_programme("itms_month", landed.include)
    week = ServiceWeek.containing(datetime(2021, 12, 15, tzinfo=UTC).date())
    folder = landed.home / "landing/itms" / str(week)
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("x")
    (folder.parent / "2021-W99").mkdir()
    (folder.parent / "2021-W99/a.csv").write_text("x")
    data_by_name = {datum.name: datum for datum in landing_data([month], landed.home / "landing")}
    assert [str(period) for _, period in data_by_name[str(week)].users] == [
        "2021-11-15..2021-12-15",
        "2021-12-16..2022-01-15",
    ]
    assert data_by_name["2021-W99"].users == ()


@pytest.mark.parametrize(
    "pattern", ["itms/{week}/*.csv", "itms/{week}.csv", "itms/*/{week}*", "itms/a-{week}*.csv"]
)
def test_what_a_killed_fetch_left_is_of_its_week(landed: Deployment, pattern: str) -> None:
    """Of a pattern that finds no hidden file; a client of a bucket adds an ending of its own."""
    landing = landed.home / "landing"
    name = pattern.replace("{week}", "2021-W50").replace("*", "late")
    folder, _, last = name.rpartition("/")
    left = {f"{folder}/.{last}.0123456789abcdef", f"{folder}/.{last}.0123456789abcdef.5aBc09Fe"}
    (landing / folder).mkdir(parents=True, exist_ok=True)
    for path in left:
        (landing / path).write_text("a card")
    (landing / name).write_text("a card")
    programme = load_programme("itms", landed.include)
    programme = replace(programme, source=replace(programme.source, landing=pattern))
    found = {datum.name: datum.paths for datum in landing_data([programme], landing)}
    assert {path.relative_to(landing).as_posix() for path in found["2021-W50"]} == {name, *left}


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
    for name in (*names, f"{retention.RETENTION}-delete-20160801T100000.txt"):
        (folder / name).write_text("ValueError: 3085220012345678")
    monkeypatch.setattr(retention.Retention, "verdicts", lambda _: ())
    act(NOW + timedelta(days=89))
    assert len(list(folder.iterdir())) == 4
    act(NOW + timedelta(days=91))
    assert sorted(path.name for path in folder.iterdir()) == names[1:]


def test_looks_at_files_of_no_programme_go_with_the_raw_data(
    published: Deployment, monkeypatch: pytest.MonkeyPatch, turnstile: Cli
) -> None:
    pytest.importorskip("turnstile_design")
    private, file = published.home / "private", next(published.landing("itms").glob("*.csv"))
    turnstile("look", "--from", file, "--feed", "itms", "--zone", "Asia/Kolkata")
    (page,) = private.glob("looks/*/look.md")
    assert "PRIVATE" in page.read_text()
    (private / ".look-died/said").mkdir(parents=True)  # a look that was killed
    (private / ".landing-died").mkdir()
    (private / ".landing-died/0-a.csv").symlink_to(file)
    (private / ".store").mkdir()
    (private / ".store/arriving-0a1b2c3d").write_text("rows of a fetch that was killed")
    monkeypatch.setattr(retention.Retention, "verdicts", lambda _: ())
    act(NOW + timedelta(days=89))
    assert page.exists()
    ledger_at(NOW).confirm_clock("ada", "a live deployment")
    RetentionDay(Settings.from_environment(), NOW + timedelta(days=2000)).act()
    assert page.exists(), "a clock that jumped deletes nothing"
    act(NOW + timedelta(days=91))
    assert not list(private.glob("looks/*"))
    assert not [*private.glob(".l*-*"), *private.glob(".store/*")]
    assert file.exists()


def test_looks_stay_where_no_programme_states_days(published: Deployment) -> None:
    published.edit("itms", "\nretention:", "\n# retention:")
    page = published.home / "private/looks/a/look.md"
    page.parent.mkdir(parents=True)
    page.write_text("PRIVATE")
    act(NOW + timedelta(days=4000))
    assert page.exists()


@pytest.mark.parametrize(
    ("unit", "is_rows", "goes"),
    [
        (f"itms/{WEEK}", True, True),
        (f"itms/{WEEK}", False, False),
        ("opal/2016-W30", True, False),
        ("zone", False, False),
    ],
    ids=["rows", "counts", "a programme that keeps everything", "keys"],
)
def test_what_no_index_of_a_store_names_goes_by_the_days_of_its_period(
    published: Deployment, monkeypatch: pytest.MonkeyPatch, unit: str, *, is_rows: bool, goes: bool
) -> None:
    """An index that was lost may name it."""
    judged = list[bool]()

    def delete_unnamed(_: object, age: timedelta, may_go: Callable[[Unnamed], bool]) -> None:
        judged.append(may_go(Unnamed(unit, is_rows, NOW - age)))

    monkeypatch.setattr(type(zones(Settings.from_environment())), "delete_unnamed", delete_unnamed)
    monkeypatch.setattr(retention.Retention, "_changed_since", lambda *_: "")  # it was told
    published.edit("itms", "exact_days: 120", "exact_days: 36500")
    act()
    assert judged == [goes]


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
    kept = {
        name: verdict
        for (name, part), verdict in by_name(day(now).verdicts(), "opal_sums").items()
        if part == "exact"
    }
    assert "would carry its counts along" in kept["2016-W30"].held
    assert kept["2016-W34"].held == kept["2017-W27"].held == ""
    gone = ServiceWeek.parse("2017-W26").ends_at(UTC) + timedelta(days=61)
    assert names_of(day(gone).act()) == {
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
