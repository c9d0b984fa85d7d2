"""All weeks of a programme together: index, dataset, gaps, withdrawal, feeds."""

from __future__ import annotations

import csv
import getpass
import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_deployment import WEEK

from turnstile.cli import main
from turnstile.commands.ledger_opened import open_to_write, publish_series
from turnstile.ledger.custody.custody import Custody
from turnstile.ledger.custody.known_history import History
from turnstile.ledger.custody.vouched_files import vouched_files
from turnstile.ledger.custody.zone_index import write_index
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.weeks import Fact, PublishedRevision
from turnstile.programme.field import PUBLIC_ROLES
from turnstile.programme.field_registry import field_of
from turnstile.publishing.contents_check import unknown_in_series
from turnstile.publishing.package_reader import Tables
from turnstile.publishing.series import packages
from turnstile.publishing.series.dataset import schemas_of, series_tables
from turnstile.publishing.series.plot import PERIODS_MOST, totals_svg
from turnstile.settings import Settings

WITHDRAW = ["ledger", "withdraw", f"opal/{WEEK}/r0", "--person", "ada.lovelace"]


@pytest.fixture
def public(copied_home: Path) -> Path:
    """The public zone of a home that a test may write to."""
    return copied_home / "public"


def _index(public: Path, programme: str = "opal") -> dict[str, object]:
    index: dict[str, object] = json.loads((public / programme / "series/index.json").read_bytes())
    return index


def _state(public: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(public).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(public.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def test_every_table_of_a_release_is_in_the_dataset(published: Path) -> None:
    import polars as pl

    table = pd.read_parquet(published / f"opal/{WEEK}/r0/data/location.parquet")
    dataset = published / "opal/series/data/location/v1"
    for read in (
        pd.read_parquet(dataset),
        duckdb.execute(f"SELECT * FROM read_parquet('{dataset}/*.parquet')").df(),
        pl.read_parquet(dataset / "*.parquet").to_pandas(),
    ):
        assert list(read.columns) == ["period", "revision", *table.columns]
        assert set(read["period"]) == {WEEK}
        assert list(read["measured"]) == list(table["measured"])
    index = _index(published)
    (period,) = index["periods"]
    assert period["state"] == "published"
    assert index["latest"] == period["path"] == f"{WEEK}/r0"
    assert period["package_version"] == 2
    assert index["package_versions"] == [{"version": 2, "from": WEEK}]
    listed = {entry["path"]: entry["bytes"] for entry in index["files"]}
    folders = (published / "opal/series", published / "opal/explore")
    below = {p for folder in folders for p in folder.rglob("*") if p.is_file()}
    below |= {published / "opal/explore.html"}
    named = {p.relative_to(published / "opal").as_posix(): p.stat().st_size for p in below}
    assert listed == {name: size for name, size in named.items() if name != "series/index.json"}


def test_a_second_time_nothing_is_written(public: Path) -> None:
    before = _state(public)
    publish_series(open_to_write(), "opal")
    assert _state(public) == before
    part = public / f"opal/series/data/slot/v1/{WEEK}-r0.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[:100])  # cut off
    (public / "opal/series/data/left_over.parquet").write_bytes(b"")
    publish_series(open_to_write(), "opal")
    assert part.read_bytes() == whole
    assert set(_state(public)) == set(before)


@pytest.mark.some(2)
@pytest.mark.parametrize("damage", [b"", b'{"files": [', b"[]", b'{"files": 7}'])
def test_a_damaged_index_is_made_again(public: Path, damage: bytes) -> None:
    signed = "zone-index.sig.json"  # says how long the ledger was
    before = {path: content for path, (content, _) in _state(public).items() if path != signed}
    (public / "opal/series/index.json").write_bytes(damage)
    publish_series(
        open_to_write(), "itms"
    )  # is in nobody's way, and not on the first page until it is mended
    assert 'href="opal/' not in (public / "index.html").read_text()
    publish_series(open_to_write(), "opal")
    after = {path: content for path, (content, _) in _state(public).items() if path != signed}
    assert after == before


@pytest.mark.parametrize("is_known", [True, False])
def test_a_recovered_ledger_signs_the_series_that_it_makes_again(
    public: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    is_known: bool,
) -> None:
    ledger = open_ledger(Settings.from_environment())
    last_night = vouched_files(ledger.entries(), ledger.parties(), {}, ())
    write_index(public, ledger.head()[0], last_night, ledger.sign_payload)
    assert main(["ledger", "verify"]) == 4
    assert "series/index.json is a file that nobody published" in capsys.readouterr().out
    for file in public.parent.glob("ledger.sqlite*"):
        file.unlink()
    if not is_known:  # the ledger is back all the same, and verify names what nobody can make
        (public.parents[1] / "include/programmes/itms.yaml").unlink()
    groups = ("--family", "opal=opal_cards", "--family", "itms=itms_buses")
    assert main(["ledger", "recover", *groups, "--person", "ada", "--reason", "lost"]) == 0
    capsys.readouterr()
    assert main(["ledger", "verify"]) == (0 if is_known else 4)
    assert "opal/series" not in capsys.readouterr().out


@pytest.mark.parametrize("gone", [f"opal/{WEEK}", "opal"])
def test_what_a_lost_folder_of_the_public_zone_held_is_declared_and_made_again(
    public: Path, gone: str
) -> None:
    """Found by a reviewer: notes were asked for whose package is lost, at exit 4 for ever."""
    shutil.rmtree(public / gone)
    assert main(["ledger", "verify"]) == 4
    assert main(["ledger", "recover", "--person", "ada", "--reason", "a disk died"]) == 0
    assert main(["ledger", "verify"]) == 0
    assert (public / f"opal/{WEEK}/checkpoint-r0.note").is_file()
    (public / f"opal/{WEEK}/checkpoint-r0.note").unlink()
    assert main(["ledger", "verify"]) == 4
    assert main(["ledger", "republish"]) == 0
    assert main(["ledger", "verify"]) == 0


def test_a_withdrawal_that_a_lost_ledger_stated_is_not_forgotten_in_silence(
    public: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list of before had its record, so the release was in force again and all agreed."""
    assert main([*WITHDRAW, "--reason", "x"]) == 0
    for file in public.parent.glob("ledger.sqlite*"):
        file.unlink()
    groups = ("--family", "opal=opal_cards", "--family", "itms=itms_buses")
    assert main(["ledger", "recover", *groups, "--person", "ada", "--reason", "lost"]) == 0
    capsys.readouterr()
    for _ in range(2):
        assert main(["ledger", "verify"]) == 4
        said = "".join(capsys.readouterr())
        assert "withdrawn-r0.json is a file that nobody published" in said
        assert "state it again (turnstile ledger withdraw" in said
        assert main(["ledger", "republish"]) == 0
    (public / f"opal/{WEEK}/withdrawn-r0.json").unlink()
    assert main([*WITHDRAW, "--reason", "x"]) == 0
    assert main(["ledger", "verify"]) == 0
    assert (public / f"opal/{WEEK}/withdrawn-r0.json").is_file()


def test_that_a_week_has_no_release_waits_for_no_package_of_another(public: Path) -> None:
    (public / f"opal/{WEEK}/r0/manifest.json").chmod(0o644)
    with (public / f"opal/{WEEK}/r0/manifest.json").open("a") as manifest:
        manifest.write("\n")
    said = ["--person", "ada", "--reason", "a strike"]
    assert main(["ledger", "no-release", "opal/2016-W31/r0", *said]) == 4
    assert (public / "opal/2016-W31/no-release-r0.json").is_file()


def test_an_index_is_as_old_as_what_is_stated_of_corrections(public: Path) -> None:
    """As versions before counted it: one that falls is taken for that of an older ledger."""
    said = ["--person", "ada", "--reason", "not worth it"]
    assert main(["ledger", "no-release", f"opal/{WEEK}/r1", *said]) == 0
    ledger = open_ledger(Settings.from_environment(), read_only=True)
    (stated,) = [entry for entry in ledger.entries() if entry.kind is EntryKind.NO_RELEASE]
    assert _index(public)["ledger_sequence"] == stated.sequence
    assert all(period["state"] != "no release" for period in _index(public)["periods"])


@pytest.mark.parametrize("has_portal", [True, False])
def test_what_portals_do_not_show_yet_is_said(
    public: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, has_portal: bool
) -> None:
    programme = public.parents[1] / "include/programmes/opal.yaml"
    if has_portal:
        to = f'publish:\n  to: ["{(tmp_path / "site").as_uri()}"]\n'
        programme.write_text(programme.read_text().replace("publish:\n", to))
        pytest.importorskip("turnstile_stores")
    said = ["--person", "ada", "--reason", "a strike"]
    for command in (
        [*WITHDRAW, "--reason", "x"],
        ["ledger", "no-release", "opal/2016-W31/r0", *said],
    ):
        assert main(command) == 0
        told = capsys.readouterr().err
        assert ("portals show it after turnstile portal send opal" in told) is has_portal
        assert ("portal" in told) is has_portal
    if has_portal:
        index = tmp_path / "site/opal/series/index.json"
        assert not index.exists()
        assert main(["portal", "send", "opal"]) == 0  # as it was said
        assert json.loads(index.read_bytes())["periods"][0]["state"] == "withdrawn"


@pytest.mark.some(4)
@pytest.mark.parametrize(
    "name",
    ["feed.atom", "series/index.json", "*.parquet", "explore/weeks/*.js", "explore/days/*.js"],
)
@pytest.mark.parametrize("kind", ["altered", "gone", "link"])
def test_an_altered_or_missing_series_is_made_anew_by_the_command_that_is_named(
    public: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
    kind: str,
) -> None:
    """Another programme's audits named it, and nothing said how before its next week."""
    folder = public / "opal"
    page = max((folder / "series").rglob(name) if name[0] == "*" else folder.glob(name))
    kept = page.read_bytes()
    page.chmod(0o644)
    if kind == "altered":
        page.write_bytes(kept[:-9] + bytes([kept[-9] ^ 1]) + kept[-8:])
    else:
        page.unlink()
    if kind == "link":
        (tmp_path / "elsewhere").write_bytes(kept)
        page.symlink_to(tmp_path / "elsewhere")
    assert main(["ledger", "verify"]) == 4
    assert "turnstile ledger republish makes all series anew" in "".join(capsys.readouterr())
    assert main(["ledger", "republish"]) == 0
    assert page.read_bytes() == kept
    assert not page.is_symlink()
    assert main(["ledger", "verify"]) == 0


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["dangling", "folder", "part", "whole", "explorer", "page"])
def test_links_in_a_series_are_put_right_and_what_they_lead_to_stays(
    public: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str
) -> None:
    """Verify said that republish mends them, and republish went through them and answered 0."""
    folder, aside = public / "opal", tmp_path / "aside"
    before = {path: content for path, (content, _) in _state(folder).items()}
    if kind == "dangling":
        (folder / "series/rows.csv").symlink_to("/nowhere")
    elif kind == "folder":
        aside.mkdir()
        (aside / "rows.csv").write_text("card,time")
        (folder / "series/more").symlink_to(aside)
    else:
        name = {"part": "series/data", "whole": "series", "explorer": "explore/weeks"}
        place = folder / name.get(kind, "explore.html")
        shutil.move(place, aside)
        place.symlink_to(aside)
    kept = {path: path.read_bytes() for path in (aside, *aside.rglob("*")) if path.is_file()}
    assert main(["ledger", "verify"]) == 4
    assert "turnstile ledger republish makes all series anew" in "".join(capsys.readouterr())
    assert main(["ledger", "republish"]) == 0
    assert main(["ledger", "verify"]) == 0
    after = {path: content for path, (content, _) in _state(folder).items()}
    assert after == before
    links = [path.name for path in folder.rglob("*") if path.is_symlink()]
    assert links == ["latest"]
    assert all(path.read_bytes() == content for path, content in kept.items())


def test_a_file_named_like_sealed_bytes_in_a_series_is_named_with_a_way_back(
    public: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    planted = public / "opal/series/sealed-0123456789abcdef.parquet"
    other = planted.with_name("unsealed.parquet")
    planted.write_text("x")
    other.write_text("x")
    capsys.readouterr()
    assert main(["ledger", "verify"]) == 4
    said = capsys.readouterr().out  # republish alone refuses
    assert (
        f"{planted} is a file that nobody published; find out what it holds; take it away" in said
    )
    assert f"{other} is a file that nobody published; find out what it holds; turnstile" in said
    assert main(["ledger", "republish"]) == 4
    said = "".join(capsys.readouterr())
    assert f"{planted} has the name of sealed bytes" in said
    assert "find out what it holds; take it away" in said
    assert planted.read_text() == "x"
    planted.rename(tmp_path / planted.name)
    assert main(["ledger", "republish"]) == 0
    assert not other.exists()
    assert main(["ledger", "verify"]) == 0


def test_notes_are_looked_after_by_one_reading_of_the_history(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history of all entries was read again for each programme."""
    notes = [public / f"{programme}/{WEEK}/checkpoint-r0.note" for programme in ("opal", "itms")]
    seen = list[int]()
    real = Custody.note_again

    def note_again(custody: Custody, history: History) -> None:
        seen.append(id(history))
        real(custody, history)

    monkeypatch.setattr(Custody, "note_again", note_again)
    for note in notes:
        note.unlink()
    assert main(["ledger", "republish"]) == 0
    assert len(seen) == 2  # a call a programme
    assert len(set(seen)) == 1
    assert all(note.is_file() for note in notes)
    assert main(["ledger", "verify"]) == 0


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("[]", None),
        ("7", None),
        ("null", None),
        ('{"ledger_sequence": 1e999}', None),
        ('{"ledger_sequence": 5000.5}', None),
        ('{"ledger_recoveries": true, "ledger_sequence": 5000}', None),
        ('{"ledger_recoveries": -1, "ledger_sequence": 5000}', None),
        ('{"ledger_sequence": 5000}', [0, 5000]),
        ('{"ledger_recoveries": 3, "ledger_sequence": 5000}', [3, 5000]),
    ],
)
def test_a_recovery_counts_of_an_index_whole_numbers_alone(
    public: Path, text: str, over: list[int] | None
) -> None:
    (public / "opal/series/index.json").write_text(text)
    recover = ["ledger", "recover", "--person", "ada.lovelace", "--reason", "the disk died"]
    assert main(recover) == 0
    entries = open_ledger(Settings.from_environment(), read_only=True).entries()
    recovered = [entry.body for entry in entries if entry.kind is EntryKind.RECOVERED]
    assert [body["over"][-1] for body in recovered] == ([over] if over else [])
    assert _index(public)["ledger_recoveries"] == (1 + over[0] if over else 0)


BESIDE = [
    f"opal/{WEEK}/checkpoint-r0.note",
    f"opal/{WEEK}/proof-r0.tlog-proof",
    f"opal/{WEEK}/withdrawn-r0.json",
    "opal/2016-W31/no-release-r0.json",
    "ledger-checkpoint.note",
]


@pytest.fixture
def with_records(public: Path) -> Path:
    """A public zone with a record of each kind."""
    assert main([*WITHDRAW, "--reason", "x", "--public-note", "counted twice"]) == 0
    assert main(["ledger", "no-release", "opal/2016-W31/r0", "--reason", "strike"]) == 0
    assert main(["ledger", "verify"]) == 0
    return public


@pytest.mark.some(2)
@pytest.mark.parametrize("name", BESIDE)
def test_what_the_ledger_can_make_again_is_not_asked_of_a_backup(
    with_records: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Of notes, proofs and records it was said to restore them, wherever from."""
    file = with_records / name
    kept = file.read_bytes()
    file.unlink()
    capsys.readouterr()
    assert main(["ledger", "verify"]) == 4
    assert f"{name} is " in (said := capsys.readouterr().out)
    assert "turnstile ledger republish" in said
    assert "restore it" not in said
    assert main(["ledger", "republish"]) == 0
    assert main(["ledger", "verify"]) == 0
    assert file.read_bytes() == kept or name.endswith(".note")  # which says how long it is now


def test_what_only_a_backup_has_is_asked_of_one(
    with_records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (with_records / f"itms/{WEEK}/r0/manifest.json").unlink()
    capsys.readouterr()
    assert main(["ledger", "verify"]) == 4
    said = capsys.readouterr().out
    assert "manifest.json is missing since it was published; restore it from a backup" in said
    assert "republish" not in said


@pytest.mark.parametrize("is_made", [True, False], ids=["series made", "no programme file"])
def test_a_record_that_was_forged_as_the_list_was_spoiled_is_made_of_the_ledger(
    with_records: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    is_made: bool,
) -> None:
    """Under a list that nobody signed each was signed as it lay there."""
    known = [with_records / name for name in BESIDE if name.endswith(".json")]
    unknown = with_records / f"itms/{WEEK}/withdrawn-r0.json"
    kept = [file.read_bytes() for file in known]
    for file in known:
        file.write_bytes(file.read_bytes().replace(b'"state": "', b'"state": "not '))
    unknown.write_bytes(kept[0].replace(b"opal", b"itms"))
    (with_records / "zone-index.sig.json").write_text("{}")
    if not is_made:
        (with_records.parents[1] / "include/programmes/opal.yaml").unlink()
    assert main(["ledger", "republish"]) == (0 if is_made else 4)
    capsys.readouterr()
    assert main(["ledger", "verify"]) == 4
    said = capsys.readouterr().out
    assert f"{unknown} is a file that nobody published" in said
    for file, content in zip(known, kept, strict=True):
        assert f"{file} was altered since it was published" not in said
        assert file.read_bytes() == content
    assert f"itms/{WEEK}/withdrawn" not in (with_records / "zone-index.txt").read_text()
    if is_made:
        unknown.unlink()
        assert main(["ledger", "verify"]) == 0


def test_the_public_key_is_nobodys_to_make_again(
    public: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = public / "ledger.pub"
    kept = key.read_bytes()
    key.write_bytes(altered := kept.replace(b"+", b"-", 1))
    main(["ledger", "verify"])
    said = "".join(capsys.readouterr()).splitlines()
    (of_zone,) = [line for line in said if line.startswith("public zone") and "altered" in line]
    assert "restore it from a backup" in of_zone
    assert "republish" not in of_zone  # that writes again what a loss of power cut, and no other
    main(["ledger", "republish"])
    assert key.read_bytes() == altered


def test_a_withdrawn_week_leaves_a_tombstone_and_its_bytes(
    public: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = public / f"opal/{WEEK}/r0"
    before = _state(package)
    note = "bus 400 was counted <twice>"
    said = ("--reason", "lovelace told me on the phone", "--public-note", note)
    assert main([*WITHDRAW, *said]) == 0
    assert "withdrawn" in capsys.readouterr().out
    stone = json.loads((public / f"opal/{WEEK}/withdrawn-r0.json").read_bytes())
    assert (stone["state"], stone["reason"]) == ("withdrawn", note)
    assert _state(package) == before
    index = _index(public)
    assert index["periods"][0]["state"] == "withdrawn"
    assert index["latest"] is None
    assert not (public / "opal/latest").is_symlink()
    assert not list((public / "opal/series").rglob("*.parquet"))
    page = (public / "opal/index.html").read_text()
    assert "bus 400 was counted &lt;twice&gt;" in page
    public_files = (path for path in public.rglob("*") if path.is_file())
    assert not [path for path in public_files if b"lovelace" in path.read_bytes()]
    assert main(["package", "verify", str(package)]) == 0  # the bytes are what they were
    assert main(["ledger", "verify"]) == 0  # the tombstone is a file of a release
    (package.parent / "withdrawn-r0.txt").write_text("planted")
    assert main(["ledger", "verify"]) == 4


def test_whom_the_machine_has_no_name_for_is_asked_for_one(
    public: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a container that runs under a number of its own."""

    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 50123")

    monkeypatch.setattr(getpass, "getuser", nobody)
    again = ["run", "opal", "--week", WEEK, "--revision", "1", "--reason", "a fault"]
    for words, option in (
        (["ledger", "confirm-clock", "--reason", "x"], "--person"),
        (again, "--approver"),
    ):
        assert main(words) == 2
        said = f"{option}: this machine has no name for you; say who you are by this option"
        assert said in capsys.readouterr().err
    assert public.exists()


def test_a_total_of_buses_says_that_it_adds_up_slots_and_cells(public: Path) -> None:
    """It was one of bus-days: a bus that is in nine cells in a slot counts nine times in it."""
    totals = json.loads((public / "itms/series/index.json").read_bytes())["totals"]
    assert {total["what"] for total in totals} == {"bus-slots by cell"}


def test_a_gap_between_weeks_is_published_as_one(public: Path) -> None:
    command = ["ledger", "no-release", "opal/2016-W33/r0", "--reason", "strike"]
    assert main(command) == 0
    states = {period["period"]: period["state"] for period in _index(public)["periods"]}
    assert states == {
        WEEK: "published",
        "2016-W31": "missing",
        "2016-W32": "missing",
        "2016-W33": "no release",
    }
    with (public / "opal/series/days.csv").open() as stream:
        days = list(csv.DictReader(stream))
    assert len(days) == 28
    assert {day["state"] for day in days[7:21]} == {"missing"}


@pytest.mark.parametrize(
    "key",
    [
        "opal/2016-W99/r0",
        "opal/2016-w31/r0",
        "opall/2016-W31/r0",
        "opal/2099-W01/r0",
        "opal/2016-08-01..2016-08-02/r0",
    ],
)
def test_a_period_that_is_none_is_refused_before_it_is_stated_for_ever(
    public: Path, key: str
) -> None:
    before = _state(public)
    assert main(["ledger", "no-release", key, "--reason", "strike"]) == 2
    assert _state(public) == before
    assert main(["ledger", "no-release", "opal/2016-W31/r0", "--reason", "strike"]) == 0
    entries = (public.parent / "ledger.sqlite").read_bytes()
    assert key.encode() not in entries
    assert b"opal/2016-W31/r0" in entries


def test_a_ledger_that_holds_such_a_statement_is_read(public: Path) -> None:
    ledger = open_ledger(Settings.from_environment())
    ledger.declare_no_release(ReleaseKey("opal", "2016-W99"), "ana", "a slip")
    assert main(["ledger", "no-release", "opal/2016-W31/r0", "--reason", "strike"]) == 0
    assert [period["period"] for period in _index(public)["periods"]] == [WEEK, "2016-W31"]


def test_an_empty_reason_is_refused(public: Path) -> None:
    assert public
    with pytest.raises(SystemExit):
        main(["ledger", "withdraw", f"opal/{WEEK}/r0", "--reason", " "])


def test_a_lost_ledger_is_no_new_one(public: Path) -> None:
    for file in public.parent.glob("ledger.sqlite*"):
        file.unlink()
    assert main(["ledger", "verify"]) == 4
    shutil.rmtree(public)
    shutil.rmtree(public.parent / "embargoed")
    assert main(["ledger", "verify"]) == 2


def test_holidays_are_named_from_the_public_file(public: Path) -> None:
    include = public.parents[1] / "include"
    with (include / "programmes/opal.yaml").open("a") as programme:
        programme.write("  holidays: domains/holidays_nsw.csv\n")
    calendar = include / "domains/holidays_nsw.csv"
    calendar.write_text(calendar.read_text() + "2016-07-27,Made-up Day\n")
    whole = pd.read_csv(public / "opal/series/typical_weekday/day.csv")
    publish_series(open_to_write(), "opal")
    with (public / "opal/series/days.csv").open() as stream:
        named = {day["service_date"]: day["holiday"] for day in csv.DictReader(stream)}
    assert named["2016-07-27"] == "Made-up Day"
    assert named["2016-07-26"] == ""
    without = pd.read_csv(public / "opal/series/typical_weekday/day.csv")
    assert (set(whole["days"]), set(without["days"])) == ({5}, {4})
    week = pd.read_csv(public / "opal/series/typical_week/day.csv")
    assert "Wednesday" not in set(week["weekday"])
    assert set(week["weekday"]) >= {"Monday", "Sunday"}
    calendar.write_text(calendar.read_text() + "27 July,Made-up Day\n")
    assert main(["ledger", "no-release", "opal/2016-W31/r0", "--reason", "x"]) == 2


def test_a_package_that_was_replaced_stops_the_series(public: Path) -> None:
    manifest = public / f"opal/{WEEK}/r0/manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b" ")
    assert main(["ledger", "no-release", "opal/2016-W31/r0", "--reason", "x"]) == 4


def test_feeds_hold_an_entry_a_period_and_need_no_address(public: Path) -> None:
    assert main(["ledger", "no-release", "opal/2016-W31/r0", "--reason", "strike"]) == 0
    feed = ET.fromstring((public / "opal/feed.atom").read_bytes())  # noqa: S314 - our own
    atom = "{http://www.w3.org/2005/Atom}"
    entries = feed.findall(f"{atom}entry")
    required = ("id", "title", "updated")
    assert all(
        element.find(atom + name) is not None for element in (feed, *entries) for name in required
    )
    items = json.loads((public / "opal/feed.json").read_bytes())["items"]
    assert [item["id"] for item in items] == [entry.findtext(f"{atom}id") for entry in entries]
    assert len({item["id"] for item in items}) == len(items) == 2


def test_every_field_of_the_index_has_a_source(published: Path) -> None:
    for programme in ("opal", "itms"):
        index = _index(published, programme)
        kept = json.loads((published / programme / "series/packages.json").read_bytes())
        assert unknown_in_series(index, [], kept) == ()
        for path in (published / programme / "series").rglob("*.parquet"):
            for name in pq.read_schema(path).names:
                known = field_of(name)
                assert known is not None, f"{path}: {name}"
                assert known.role in PUBLIC_ROLES
    index["tables"][0]["versions"][0]["columns"].append({"name": "card_id", "type": "string"})
    index["exact_total"] = 5
    kept["packages"][f"itms/{WEEK}/r0"]["counted"] = 5
    unknown = unknown_in_series(index, [{"person": "ada"}], kept)
    assert len(unknown) == 4


def test_the_version_before_passes_over_what_is_kept_of_packages(published: Path) -> None:
    """It takes a record with a `package_version` up, and then asks for a list of columns."""
    for programme in ("opal", "itms"):
        kept = json.loads((published / programme / "series/packages.json").read_bytes())
        assert kept["packages"]
        assert not any("package_version" in record for record in kept["packages"].values())


def test_a_plot_shows_the_last_two_years() -> None:
    totals = [
        {
            "period": f"period {n:03}",
            "mode": "bus",
            "what": "tap-ons",
            "total": 9.0,
            "half_width_95": 1,
        }
        for n in range(PERIODS_MOST + 1)
    ]
    plot = str(totals_svg(totals))
    assert "period 000" not in plot
    assert "period 001" in plot
    assert "period 000" in str(totals_svg(totals[:-1]))


def test_a_package_is_read_once(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, read = _state(public), []
    monkeypatch.setattr(
        packages, "schemas_of", lambda package: read.append(package) or schemas_of(package)
    )
    publish_series(open_to_write(), "opal")
    assert read == []
    kept = public / "opal/series/packages.json"
    for content in (
        b"",
        kept.read_bytes()[:100],
        kept.read_bytes().replace(b'"schemas"', b'"columns"'),  # as earlier versions kept it
        kept.read_bytes().replace(b"[]", b'["2016-07-25"]'),
    ):
        kept.write_bytes(content)  # not what the index names: read again
        publish_series(open_to_write(), "opal")
        assert {name: content for name, (content, _) in _state(public).items()} == {
            name: content for name, (content, _) in before.items()
        }
    assert len(read) == 4


def test_other_columns_or_cells_are_another_version_and_numbers_stay(tmp_path: Path) -> None:
    columns = {"a": pa.array([1]), "b": pa.array(["x"])}
    revisions = []
    weeks = ((["a", "b"], "1"), (["a"], "1"), (["a", "b"], "1"), (["a", "b"], "2"))
    for number, (names, cells) in enumerate(weeks):
        key = ReleaseKey("opal", f"2016-W3{number}")
        folder = tmp_path / str(key) / "data"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({n: columns[n] for n in names}), folder / "t.parquet")
        card = {"data": [{"name": "t", "what": "", "unit": "", "sources": []}]}
        card["domain"] = {"sha256": cells}
        (folder.parent / "release_card.json").write_text(json.dumps(card))
        revisions.append(PublishedRevision(key, "", Fact(number, "", "")))
    read = {
        revision.key: schemas_of(Tables(tmp_path / str(revision.key))) for revision in revisions
    }
    (table,) = series_tables(revisions, revisions, read)
    assert [version for _, version in table.parts] == [1, 2, 1, 3]
    (later,) = series_tables(revisions[1:], revisions, read)  # the first was withdrawn
    assert [version for _, version in later.parts] == [2, 1, 3]


def test_another_range_of_speeds_moves_no_published_mean(copied_home: Path) -> None:
    """Speeds of every published week moved by half the change, and all was signed."""
    folder = copied_home / "public/itms"

    def made() -> dict[str, bytes]:
        for made_anew in ("series", "explore"):
            shutil.rmtree(folder / made_anew, ignore_errors=True)
        assert main(["ledger", "republish"]) == 0
        shown = ("series/four_weeks/*.csv", "explore/weeks/*")
        return {path.name: path.read_bytes() for glob in shown for path in folder.glob(glob)}

    before, file = made(), copied_home.parent / "include/programmes/itms.yaml"
    assert {"speed.csv", f"{WEEK}-r0.js"} <= {*before}
    file.write_text(file.read_text().replace("clamp_kmh: 65", "clamp_kmh: 85"))
    assert "clamp_kmh: 85" in file.read_text()
    assert made() == before


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_programme_file_that_is_gone_or_broken_keeps_no_withdrawal_back(
    public: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    is_gone: bool,
) -> None:
    """It was refused as of no programme, with the page and `latest` as they were."""
    include = shutil.copytree(Settings.from_environment().include, tmp_path / "mended")
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(include))
    file = include / "programmes/opal.yaml"
    text = file.read_text()
    file.write_text("name: [")
    if is_gone:
        file.rename(file.with_name("opal.yaml.aside"))
    assert main([*WITHDRAW, "--reason", "wrong unit"]) == 0
    said = capsys.readouterr().err
    assert "the record is public, and series stay as they were" in said
    assert (public / f"opal/{WEEK}/withdrawn-r0.json").is_file()
    assert f"opal/{WEEK}/withdrawn-r0.json" in (public / "zone-index.txt").read_text()
    file.write_text(text)
    assert main(["ledger", "republish"]) == 0
    assert _index(public)["latest"] is None
    assert main(["ledger", "verify"]) == 0
    capsys.readouterr()
    assert main([*WITHDRAW, "--reason", "wrong unit", "--public-note", "too late"]) == 0
    assert "was withdrawn before: what was said of it then stands" in capsys.readouterr().err


def test_a_withdrawn_correction_says_what_is_in_force_again(
    copied_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`withdraw` said nothing of it, and `ledger weeks` named the withdrawn one."""
    who, key = ("--person", "ada", "--reason", "x"), f"itms/{WEEK}/r1"
    assert (
        main(["sample", "itms", "--weeks", WEEK, "--rows", "3000", "--seed", "9", "--replace"]) == 0
    )
    assert main(["run", "itms", "--week", WEEK, "--revision", "1", "--reason", "late rows"]) == 0
    assert "the same counts" not in capsys.readouterr().err
    assert main(["ledger", "no-release", f"itms/{WEEK}/r3", *who]) == 3
    assert main(["ledger", "no-release", "itms/2014-W30/r0", *who]) == 2
    assert f"lies far before {WEEK}, the first period" in capsys.readouterr().err
    assert main(["ledger", "withdraw", f"itms/{WEEK}/r2", *who]) == 3
    assert "is unknown, not sealed" in capsys.readouterr().err
    assert main(["ledger", "withdraw", key, *who]) == 0
    assert f"itms/{WEEK}/r0 is in force again" in capsys.readouterr().err
    assert _index(copied_home / "public", "itms")["latest"] == f"{WEEK}/r0"
    assert main(["ledger", "weeks", "--programme", "itms"]) == 0
    said = capsys.readouterr().out
    assert f"{WEEK}  revised" in said  # r0 goes without its number
    assert "r1" not in said
    assert main(["ledger", "no-release", key, *who]) == 3
    assert "was published and withdrawn" in capsys.readouterr().err
    assert main(["ledger", "withdraw", f"itms/{WEEK}/r0", *who]) == 0
    assert "in force again" not in capsys.readouterr().err
