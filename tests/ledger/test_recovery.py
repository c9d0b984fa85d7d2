"""Each story of the runbook's chapter "After a disaster", followed by its own commands."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from disaster_site import WHO, Site, lived_once, plan_of, run
from ledger_asks import LOSS_MICRO, spent_micro, week_number

from conftest import Stores
from turnstile.errors import InputError, IntegrityError, RefusedError
from turnstile.ledger import leases
from turnstile.ledger.charging import DRAWS_MAX
from turnstile.ledger.custody.notes import Note
from turnstile.ledger.custody.shipped import last_shipped, ship
from turnstile.ledger.custody.signed_note import Signer
from turnstile.ledger.custody.vouched_files import public_records, record_bytes
from turnstile.ledger.database.damaged_database import damage_in, remains_of
from turnstile.ledger.database.store import is_damage
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import ReleaseKey, Request
from turnstile.ledger.states import ReleaseState
from turnstile.settings import system_clock


@pytest.fixture(scope="module", params=[True, False], ids=["witness", "no witness"])
def has_witness(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def lived(
    stores: Stores,
    tmp_path_factory: pytest.TempPathFactory,
    has_witness: bool,  # noqa: FBT001 - a fixture
) -> Site:
    """A deployment whose database lies outside of its home; its first week is public."""
    root = tmp_path_factory.mktemp("lived")
    return lived_once(stores, root, lambda site: site.publish(0), has_witness=has_witness)


@pytest.fixture
def empty(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_witness: bool,  # noqa: FBT001 - a fixture
) -> Site:
    """A deployment that has released nothing; its ledger knows the witness by its path."""
    return Site(tmp_path / "site", url, has_witness).at(monkeypatch)


def lost_database(site: Site, stores: Stores, patch: pytest.MonkeyPatch) -> Site:
    """The same home with an empty database."""
    return replace(site, url=stores.new()).at(patch)


def restored(site: Site, url: str, patch: pytest.MonkeyPatch) -> Site:
    """The same home with an older database."""
    return replace(site, url=url).at(patch)


def public_bytes(site: Site) -> dict[str, str]:
    return {
        path.relative_to(site.home).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for zone in ("public", "embargoed")
        for path in (site.home / zone).glob("*/*/r*/**/*")
        if path.is_file()
    }


def goes_on(site: Site, n: int) -> None:
    """The next week is released, old ones answer with their bytes, and everything verifies."""
    before = public_bytes(site)
    site.publish(n)
    after = public_bytes(site)
    assert {path: after[path] for path in before} == before
    assert run("verify") == 0


def test_a_lost_database_comes_back(
    site: Site,
    stores: Stores,
    monkeypatch: pytest.MonkeyPatch,
    has_witness: bool,  # noqa: FBT001 - a fixture
) -> None:
    site.publish(1)
    site.draw(2)
    head, spent = site.ledger.head(), spent_micro(site.ledger)
    site = lost_database(site, stores, monkeypatch)
    assert run("verify") == 4
    with pytest.raises(IntegrityError, match="ledger recover"):
        site.draw(0)
    assert run("recover", *WHO) == 0
    if has_witness:
        assert head[1] in {entry.hash for entry in site.ledger.entries()}
    assert spent_micro(site.ledger) == spent
    assert run("verify") == 0
    for n in range(3):
        assert site.ledger.reserve(site.request(n)).is_sealed
    goes_on(site, 3)


@pytest.mark.parametrize("aside", ["{key}/set-aside", ".store/aside/{key}/0a1b2c3d"])
def test_draws_that_died_are_charged_again_when_the_database_is_lost(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch, aside: str
) -> None:
    """Their bytes were set aside, by the next draw or by a fetch of the zone's store."""
    request = site.request(1)
    embargoed = site.home / "embargoed"
    for n in range(2):
        attempt = site.ledger.reserve(request)
        site.ledger.begin_draw(attempt.attempt_id, request.bindings)
        folder = embargoed / aside.format(key=request.key)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"sealed-{n:016x}.parquet").write_bytes(b"noise")
        (embargoed / str(request.key)).mkdir(parents=True, exist_ok=True)
        (embargoed / str(request.key) / "plan.json").write_text(json.dumps(plan_of(request)))
    spent = spent_micro(site.ledger)
    site = lost_database(site, stores, monkeypatch)
    assert run("recover", *WHO, "--family", f"opal={request.family}") == 0
    assert spent_micro(site.ledger) == spent == 3 * LOSS_MICRO
    assert run("verify") == 0


def other_machine(site: Site, request: Request, leftovers: str) -> None:
    """Let the home be that of a machine where these draws of a release died."""
    folder = site.home / "embargoed" / str(request.key)
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "set-aside").mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(plan_of(request)))
    for name in leftovers:
        (folder / f"set-aside/sealed-{name * 16}.parquet").write_bytes(b"noise")


@pytest.mark.some(4)
@pytest.mark.parametrize("machines", [("a", "b"), ("b", "a", "b"), ("a", "ab"), ("ab", "b")])
def test_draws_that_died_on_two_machines_are_all_charged_again(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch, machines: tuple[str, ...]
) -> None:
    """Each has other leftovers, or copies of the same, and the ledger is lost (seed 603)."""
    request = site.request(1)
    for _ in "ab":
        attempt = site.ledger.reserve(request)
        site.ledger.begin_draw(attempt.attempt_id, request.bindings)
    spent = spent_micro(site.ledger)
    site = lost_database(site, stores, monkeypatch)
    for leftovers in machines * 2:
        other_machine(site, request, leftovers)
        assert run("recover", *WHO, "--family", f"opal={request.family}") == 0
        assert run("verify") == 0
    assert spent_micro(site.ledger) == spent == 3 * LOSS_MICRO


def test_of_two_machines_an_older_ledger_knows_the_draw_of_one(site: Site) -> None:
    """A restored database holds the first draw of a week; each machine has the file of another."""
    request = site.request(1)
    attempt = site.ledger.reserve(request)
    site.ledger.begin_draw(attempt.attempt_id, request.bindings)
    for leftover in "abab":
        other_machine(site, request, leftover)
        assert run("recover", *WHO, "--family", f"opal={request.family}") == 0
        assert run("verify") == 0
    assert spent_micro(site.ledger) == 3 * LOSS_MICRO  # two of this week, one of the other


def test_draws_beyond_those_that_an_older_ledger_knows_are_charged(site: Site) -> None:
    """A restored database holds the first draw of a week; files prove three, one of them sealed."""
    request = site.request(1)
    folder = site.home / "embargoed" / str(request.key)
    attempt = site.ledger.reserve(request)
    site.ledger.begin_draw(attempt.attempt_id, request.bindings)
    (folder / "set-aside").mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(json.dumps(plan_of(request)))
    for n in range(2):
        (folder / f"set-aside/sealed-{n:016x}.parquet.0a1b").write_bytes(b"noise")
    digest = hashlib.sha256(b"sealed").hexdigest()
    (folder / f"sealed-{digest[:16]}.parquet").write_bytes(b"sealed")
    assert run("recover", *WHO, "--family", f"opal={request.family}") == 0
    assert spent_micro(site.ledger) == 4 * LOSS_MICRO  # three of this week, one of the other
    assert run("recover", *WHO) == 0
    assert spent_micro(site.ledger) == 4 * LOSS_MICRO
    assert run("verify") == 0


def test_a_package_of_other_bytes_at_a_published_week_is_charged_once(site: Site) -> None:
    manifest = site.home / "public" / str(site.request(0).key) / "manifest.json"
    stated = json.loads(manifest.read_bytes())
    manifest.write_text(json.dumps({**stated, "sealed_sha256": "f" * 64}))
    for _ in range(2):  # it lies there until people move it away
        assert run("recover", *WHO) == 0
        assert spent_micro(site.ledger) == 2 * LOSS_MICRO
    manifest.write_text(json.dumps({**stated, "sealed_sha256": "e" * 64}))
    assert run("recover", *WHO) == 0
    assert spent_micro(site.ledger) == 3 * LOSS_MICRO


def test_bytes_of_a_draw_that_died_never_become_those_of_a_week_that_has_others(
    site: Site,
    stores: Stores,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A loss of power puts them back beside the sealed ones; later the ledger is lost, too."""
    attempt, request = site.draw(1), site.request(1)
    folder = site.home / "embargoed" / str(request.key)
    left = folder / f"sealed-{0:016x}.parquet"
    left.write_bytes(b"noise of a draw that died")
    capsys.readouterr()
    assert run("verify") == 4
    assert "turnstile ledger recover" in capsys.readouterr().out
    assert run("recover", *WHO) == 0
    assert str(left) in capsys.readouterr().out
    aside = next((folder / "set-aside").iterdir())
    assert (aside.read_bytes(), left.exists()) == (b"noise of a draw that died", False)
    assert run("verify") == 0
    (folder / f"sealed-{attempt.artefact_digest[:16]}.parquet").unlink()  # as a lying disk does
    site = lost_database(site, stores, monkeypatch)
    assert run("recover", *WHO, "--family", f"opal={request.family}") == 0
    digest = attempt.artefact_digest if site.has_witness else None
    known = site.ledger.find(request.key)
    assert known is not None
    assert known.artefact_digest == digest


def test_a_home_unpacked_over_a_published_week_draws_and_removes_nothing(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tar x` of last night's home: the database and the newest note are old, packages stay."""
    last_night = stores.copy_of(site.url)
    note = (site.home / "public/ledger-checkpoint.note").read_text()
    site.publish(1)
    site = restored(site, last_night, monkeypatch)
    (site.home / "public/ledger-checkpoint.note").write_text(note)
    before = public_bytes(site)
    for n in (1, 2):  # the published week, and the next one
        with pytest.raises(IntegrityError, match="old copy") as refused:
            site.draw(n)
        assert refused.value.exit_code == 4
    assert run("verify") == 4
    assert public_bytes(site) == before
    assert run("recover", *WHO) == 0
    assert run("verify") == 0
    assert spent_micro(site.ledger) == 2 * LOSS_MICRO
    goes_on(site, 2)


def test_a_backup_restored_twice_comes_back_twice(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, older = stores.copy_of(site.url), stores.copy_of(site.url)
    site.publish(1)
    for number, url in enumerate((old, older)):
        site = restored(site, url, monkeypatch)
        assert run("recover", *WHO) == 0
        assert run("verify") == 0
        goes_on(site, 2 + number)
    assert (spent_micro(site.ledger) or 0) >= 4 * LOSS_MICRO


@pytest.mark.parametrize("has_witness", [True], indirect=True)
def test_a_lost_home_leaves_what_the_ledger_holds_and_says_what_is_gone(site: Site) -> None:
    site.draw(1)
    shutil.rmtree(site.home)
    site.home.mkdir()
    assert run("verify") == 4
    assert run("recover", *WHO) == 0
    assert run("rotate-key", *WHO) == 0
    assert run("verify") == 0
    site.publish(2)
    assert run("verify") == 0
    assert spent_micro(site.ledger) == 3 * LOSS_MICRO


@pytest.mark.parametrize("has_witness", [True], indirect=True)
def test_home_and_database_lost_come_back_from_the_witness(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(site.home)
    site = lost_database(site, stores, monkeypatch)
    assert run("recover", *WHO) == 0
    assert run("rotate-key", *WHO) == 0
    assert run("verify") == 0
    assert spent_micro(site.ledger) == LOSS_MICRO
    site.publish(1)
    assert run("verify") == 0


def test_a_lost_key_refuses_until_it_is_rotated(site: Site) -> None:
    (site.home / "ledger-key.pem").unlink()
    with pytest.raises(IntegrityError, match="rotate-key"):
        site.draw(1)
    assert not (site.home / "ledger-key.pem").exists()
    assert run("rotate-key", *WHO) == 0
    goes_on(site, 1)


def test_a_stolen_key_signs_nothing_that_counts_once_it_is_rotated(site: Site) -> None:
    shutil.copy(site.home / "ledger-key.pem", site.root / "stolen.pem")
    assert run("rotate-key", *WHO) == 0
    assert run("verify") == 0
    forged = Signer.load(site.root / "stolen.pem").sign(site.ledger.head())
    (site.home / "public/ledger-checkpoint.note").write_text(forged)
    assert run("verify") == 4
    site.ledger.checkpoint()
    goes_on(site, 1)


@pytest.mark.parametrize("has_witness", [True], indirect=True)
def test_an_unmounted_witness_refuses_and_is_never_made_anew(site: Site) -> None:
    site.witness.rename(site.root / "elsewhere")
    with pytest.raises(IntegrityError, match="mount it"):
        site.draw(1)
    assert not site.witness.exists()
    (site.root / "elsewhere").rename(site.witness)
    goes_on(site, 1)


@pytest.mark.parametrize("has_witness", [True], indirect=True)
def test_a_broken_witness_is_taken_out_and_another_one_taken_in(empty: Site) -> None:
    site = empty
    site.publish(0)
    shutil.rmtree(site.witness)
    assert run("witness", "remove", str(site.witness), *WHO) == 0
    assert run("witness", "add", str(site.witness), *WHO) == 0
    assert len(list((site.witness / "entries").iterdir())) == site.ledger.head()[0]
    goes_on(site, 1)


@pytest.mark.parametrize("has_witness", [True], indirect=True)
def test_those_who_stay_hear_at_once_that_a_witness_was_removed(
    empty: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They heard it with the next fact, if there was one before the ledger was lost."""
    site, other = empty, empty.root / "other"
    site.publish(0)
    monkeypatch.setenv("TURNSTILE_WITNESS", f"{site.witness}:{other}")
    assert run("witness", "add", str(other), *WHO) == 0
    before = last_shipped(site.witness)
    assert run("witness", "remove", str(site.witness), *WHO) == 0
    assert last_shipped(other) == site.ledger.head()[0] > before
    assert last_shipped(site.witness) == before


@pytest.mark.parametrize("has_witness", [True], indirect=True)
@pytest.mark.parametrize("is_refused", [False, True])
def test_a_witness_hears_at_once_of_a_draw_that_was_burned_by_who_reserved_again(
    empty: Site, *, is_refused: bool
) -> None:
    site, request = empty, empty.request(0)
    for _ in range(DRAWS_MAX if is_refused else 1):
        attempt = site.ledger.reserve(request)
        site.ledger.begin_draw(attempt.attempt_id, request.bindings)
    with pytest.raises(RefusedError) if is_refused else nullcontext():
        site.ledger.reserve(request)
    ends = [e for e in site.ledger.entries() if e.kind is EntryKind.BURNED]
    assert len(ends) == (DRAWS_MAX if is_refused else 1)
    assert last_shipped(site.witness) >= ends[-1].sequence


def test_a_clock_years_back_is_refused_and_one_that_ran_ahead_is_confirmed(site: Site) -> None:
    now = system_clock()
    ahead = Ledger.open(
        site.url, clock=lambda: now + timedelta(days=3000), embargoed=site.home / "embargoed"
    )
    ahead.approve(ReleaseKey("opal", week_number(0)), "olga", "release_officer", "looks right")
    with pytest.raises(IntegrityError, match="confirm-clock"):
        site.draw(1)
    assert run("verify") == 4
    assert run("confirm-clock", *WHO) == 0
    goes_on(site, 1)


def test_a_draw_under_way_is_burned_by_a_recovery_and_charged_again(site: Site) -> None:
    request = site.request(1)
    attempt = site.ledger.reserve(request)
    site.ledger.begin_draw(attempt.attempt_id, request.bindings)
    assert run("recover", *WHO) == 0
    burned_attempt = site.ledger.find(request.key)
    assert burned_attempt is not None
    assert burned_attempt.state is ReleaseState.BURNED
    goes_on(site, 1)
    assert spent_micro(site.ledger) == 3 * LOSS_MICRO


def test_an_intact_ledger_has_nothing_to_recover(site: Site) -> None:
    head = site.ledger.head()
    assert run("recover", *WHO) == 0
    assert site.ledger.head() == head


def test_a_draw_that_a_process_works_on_is_ended_by_word_alone(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was burned without a question, while its process lived."""
    for n, words in ((1, ["--end-draws"]), (2, [])):
        request = site.request(n)
        attempt = site.ledger.reserve(request)
        ledger = site.ledger
        ledger.begin_draw(attempt.attempt_id, request.bindings, holder="a machine/1/2")
        head = ledger.head()
        assert run("recover", *WHO) == 3
        said = capsys.readouterr().err
        assert f"draws {attempt.attempt_id} at this moment" in said
        assert "--end-draws" in said
        assert site.ledger.head() == head
        assert site.ledger.living_draws() == {attempt.attempt_id}
        if not words:  # a minute later, of a process that is dead
            ended = leases.LEASE.update().values(ends_s=0)
            ledger._store.write(lambda connection, ended=ended: connection.execute(ended))
        assert run("recover", *words, *WHO) == 0
        assert attempt.attempt_id in capsys.readouterr().out
        assert site.ledger.attempts(request.key)[0].state is ReleaseState.BURNED


def test_what_people_do_by_commands_is_a_fact_with_person_and_reason(empty: Site) -> None:
    site = empty
    request = site.request(0)
    attempt = site.ledger.reserve(request)
    site.ledger.begin_draw(attempt.attempt_id, request.bindings)
    assert run("burn", str(request.key), *WHO) == 0
    held = site.ledger.reserve(site.request(1))
    assert run("void", "--older-than", "1", *WHO) == 0
    assert site.ledger.attempts(held.key)[0].is_open  # younger than an hour
    assert run("void", "--older-than", "-1", *WHO) == 0
    assert not site.ledger.attempts(held.key)[0].is_open
    assert run("no-release", str(held.key), *WHO) == 0
    assert (site.home / f"public/opal/{week_number(1)}/no-release-r0.json").is_file()
    assert (
        "a bad day"
        not in (site.home / f"public/opal/{week_number(1)}/no-release-r0.json").read_text()
    )
    said = {
        entry.kind: (entry.body["person"], entry.body["reason"])
        for entry in site.ledger.entries()
        if entry.kind in (EntryKind.BURNED, EntryKind.VOIDED, EntryKind.NO_RELEASE)
    }
    assert set(said.values()) == {("olga", "a bad day")}
    assert len(said) == 3
    assert run("verify") == 0


def test_a_budget_group_over_anothers_files_needs_a_decision(site: Site) -> None:
    other = {"programme": "ferries", "family": "other_cards"}
    with pytest.raises(RefusedError, match="admit-family"):
        site.draw(0, **other)
    assert run("admit-family", "other_cards", "--landing", "trains/{week}/*", *WHO) == 2
    assert run("admit-family", "other_cards", "--landing", "opal/{week}/*", *WHO) == 0
    site.draw(0, **other)
    assert run("verify") == 0


def test_a_full_disk_is_seen_before_the_charge_and_costs_nothing(
    site: Site, act_on_full_disk: Callable[[Callable[[], object]], int]
) -> None:
    """In a child whose files may hold 64 KiB, so that the kernel itself says no."""
    request = site.request(1)
    attempt = site.ledger.reserve(request)
    begin, space = site.ledger.begin_draw, {site.home / "embargoed": 2**20}
    assert act_on_full_disk(lambda: begin(attempt.attempt_id, request.bindings, space=space)) == 2
    assert spent_micro(site.ledger) == LOSS_MICRO
    goes_on(site, 1)
    assert spent_micro(site.ledger) == 2 * LOSS_MICRO


@pytest.fixture
def act_on_full_disk() -> Callable[[Callable[[], object]], int]:
    """Run something in a child whose files cannot grow; return the error's exit code."""
    import resource

    from ledger_asks import in_child

    from turnstile.errors import TurnstileError

    def run_it(act: Callable[[], object]) -> int:
        def limited() -> int:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))
            try:
                act()
            except TurnstileError as error:
                return error.exit_code
            return 0

        return in_child(limited)

    return run_it


def _database(site: Site) -> Path:
    """The file of its ledger, with all that its write-ahead log held."""
    file = Path(site.url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file


def _damaged(path: Path, how: str) -> None:
    """What disks and interrupted copies do to a file."""
    pages, page = bytearray(path.read_bytes()), 4096
    if how == "garbage in the header":
        pages[:100] = b"\xab" * 100
    elif how == "another format in the header":
        pages[44:48] = b"\xab" * 4
    elif how == "cut short":
        del pages[len(pages) // 2 :]
    else:  # 16 KiB from the third page on, past the schema
        pages[2 * page : 6 * page] = b"\xab" * (4 * page)
    path.write_bytes(pages)


def _break_an_index(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE type = 'index' ORDER BY rootpage LIMIT 1"
        ).fetchone()
    pages = bytearray(file.read_bytes())
    pages[(root - 1) * 4096 : root * 4096] = b"\xab" * 4096
    file.write_bytes(pages)


@pytest.mark.some(4)
@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a server looks after its files
@pytest.mark.parametrize(
    "how",
    ["garbage in the header", "another format in the header", "cut short", "garbage in pages"],
)
def test_a_damaged_database_is_said_to_be_and_comes_back(
    site: Site, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    for n in (1, 2):
        site.publish(n)
    spent, file = spent_micro(site.ledger), _database(site)
    _damaged(file, how)
    assert run("verify") == 4
    assert "ledger recover" in capsys.readouterr().err
    assert run("balance") in {0, 4}
    assert run("recover", *WHO) == 0
    assert ".damaged-" in capsys.readouterr().out
    assert run("verify") == 0
    assert spent_micro(site.ledger) == spent
    goes_on(site, 3)


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a server looks after its files
@pytest.mark.parametrize("text", ["record || ' '", "substr(record, 2)"])
def test_an_entry_that_a_disk_altered_comes_back_from_the_witness_or_is_said_to_be_lost(
    site: Site, stores: Stores, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """SQLite finds such a file sound, and recover once changed nothing and answered ok."""
    site.publish(1)
    before = [entry.hash for entry in site.ledger.entries()]
    stores.tamper(site.url, f"UPDATE entry SET record = {text} WHERE sequence = 5")
    assert run("verify") == 4
    assert run("recover", *WHO) == (0 if site.has_witness else 4)
    if site.has_witness:
        assert run("verify") == 0
        assert [entry.hash for entry in site.ledger.entries()][: len(before)] == before
    else:
        assert "no witness holds all entries" in capsys.readouterr().err


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a server looks after its files
def test_what_a_damaged_database_still_holds_comes_back_with_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index is broken, every entry reads: none is lost, though nobody witnessed it."""
    shutil.rmtree(site.witness, ignore_errors=True)
    head, file = site.ledger.head(), _database(site)
    _break_an_index(file)
    if site.has_witness:
        site.witness.mkdir()
        monkeypatch.setenv("TURNSTILE_WITNESS", "")
    assert run("recover", *WHO) == 0
    assert head[1] in {entry.hash for entry in site.ledger.entries()}


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a server looks after its files
@pytest.mark.parametrize("has_witness", [True], indirect=True)
@pytest.mark.parametrize("is_torn", [True, False])
def test_a_witness_and_a_damaged_database_make_up_for_each_others_holes(
    site: Site, capsys: pytest.CaptureFixture[str], *, is_torn: bool
) -> None:
    """A simulated world never came back: nobody read the database beyond its first hole."""
    for n in (1, 2):
        site.publish(n)
    before, spent = [entry.hash for entry in site.ledger.entries()], spent_micro(site.ledger)
    file = _database(site)
    pages = bytearray(file.read_bytes())
    page = pages.index(b'"sequence":3,') // 4096
    pages[page * 4096 : (page + 1) * 4096] = b"\xab" * 4096
    file.write_bytes(pages)
    left = {entry.sequence for entry in remains_of(file).entries}
    assert 3 not in left
    gone = max(left) - 1
    path = site.witness / f"entries/{gone:012}.json"
    if is_torn:
        path.write_text("{")
    else:
        path.unlink()
    copied = shutil.copytree(site.witness, site.home / "copied")
    assert run("recover", *WHO) == 0
    assert [entry.hash for entry in site.ledger.entries()][: len(before)] == before
    assert spent_micro(site.ledger) == spent
    # Negative control: what neither holds is not made up, and a person is told what is left to do.
    shutil.rmtree(site.witness)
    copied.rename(site.witness)
    for ending in ("", "-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
    for aside in file.parent.glob(f"{file.name}.damaged-*"):
        aside.unlink()
    capsys.readouterr()
    assert run("recover", *WHO) == (2 if is_torn else 4)
    assert "take away its entries from the one that verify names on" in capsys.readouterr().err


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a server looks after its files
def test_a_database_that_is_locked_or_no_ledger_is_said_to_be(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were a traceback of `ledger recover`."""
    file, connect = _database(site), sqlite3.connect
    with closing(connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("SELECT count(*) FROM entry").fetchone()
        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", lambda *a, **b: connect(*a, **b, timeout=0.1))
            assert run("recover", *WHO) == 2
    assert "database is locked; nothing was done" in capsys.readouterr().err
    for ending in ("", "-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
    with closing(connect(file)) as connection:
        connection.execute("CREATE TABLE other (word TEXT)")
    assert run("recover", *WHO) == 2
    assert "no such table: entry; nothing was done" in capsys.readouterr().err


def test_a_name_that_a_server_knows_not_is_no_damage() -> None:
    """A database named so was said to be damaged, and to be brought back by a recovery."""
    assert not is_damage(Exception('connection failed: FATAL: database "decoder" does not exist'))
    assert not is_damage(Exception("function decode(bytea) does not exist"))
    assert not is_damage(Exception('database "decode" does not exist'))
    assert is_damage(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"))
    assert is_damage(sqlite3.OperationalError("Could not decode to UTF-8 column 'record'"))


def _last_page(file: Path) -> tuple[bytearray, int]:
    """The bytes of a database, and where the page of its last entry begins."""
    with closing(sqlite3.connect(file)) as connection:
        asked = "SELECT rootpage FROM sqlite_master WHERE name = 'entry'"
        at = 4096 * (connection.execute(asked).fetchone()[0] - 1)
    pages = bytearray(file.read_bytes())
    while pages[at] == 5:  # holds pages, not entries
        at = 4096 * (int.from_bytes(pages[at + 8 : at + 12], "big") - 1)
    return pages, at


def _garbage(pages: bytearray, at: int) -> None:
    pages[at : at + 4096] = b"\xab" * 4096


def _number_beyond_all(pages: bytearray, at: int) -> None:
    cell = at + int.from_bytes(pages[at + 6 + 2 * pages[at + 4] :][:2], "big")
    while pages[cell] & 128:
        cell += 1
    for byte in range(cell + 1, cell + 9):
        pages[byte] |= 128


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a server looks after its files
@pytest.mark.parametrize("has_witness", [False], indirect=True)  # one would hold every entry
@pytest.mark.parametrize("damage", [_garbage, _number_beyond_all])
def test_entries_before_a_broken_last_page_come_back(
    site: Site, damage: Callable[[bytearray, int], None]
) -> None:
    """The last page was asked how many there are: not one came back, or it never ended."""
    for n in (1, 2):
        site.publish(n)
    before, file = [entry.hash for entry in site.ledger.entries()], _database(site)
    pages, at = _last_page(file)
    damage(pages, at)
    file.write_bytes(pages)
    held = [entry.hash for entry in remains_of(file).entries]
    assert len(held) > len(before) // 2
    assert held == before[: len(held)]
    assert run("recover", *WHO) == 0
    assert [entry.hash for entry in site.ledger.entries()][: len(held)] == held


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a server looks after its files
@pytest.mark.parametrize("has_witness", [True], indirect=True)
@pytest.mark.parametrize("record", ["replace(record, 'olga', 'olgb')", "CAST(record AS BLOB)"])
def test_an_entry_altered_in_a_damaged_database_is_none_that_is_left(
    site: Site, record: str
) -> None:
    """Beyond what the witness held it refused all, or, where it was no text, a traceback."""
    site.publish(1)
    assert run("confirm-clock", "--person", "olga", "--reason", "right") == 0
    before, file = [entry.hash for entry in site.ledger.entries()], _database(site)
    last = len(before)
    _break_an_index(file)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER entry_no_update")
        connection.execute(f"UPDATE entry SET record = {record} WHERE rowid = {last}")
    assert damage_in(file)
    for sequence in (last - 1, last):  # it had not been there for a while
        (site.witness / f"entries/{sequence:012}.json").unlink()
    assert run("recover", *WHO) == 0
    assert [entry.hash for entry in site.ledger.entries()][: last - 1] == before[:-1]


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a server looks after its files
@pytest.mark.parametrize("has_witness", [False], indirect=True)  # one would hold every entry
def test_a_recovery_that_stopped_halfway_still_finds_what_the_damaged_database_held(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """A burned draw left no file: that it was charged stands in the file set aside alone."""
    request, ledger = site.request(1), site.ledger
    attempt = ledger.reserve(request)
    ledger.begin_draw(attempt.attempt_id, request.bindings)
    ledger.burn(attempt.attempt_id, "it died", person="olga")
    spent, head = spent_micro(site.ledger), site.ledger.head()
    file = _database(site)
    _break_an_index(file)
    unreadable = site.home / "embargoed/ferries/2016-W30/r0/sealed-0123456789abcdef.parquet"
    unreadable.parent.mkdir(parents=True)
    unreadable.write_bytes(b"of a plan that is missing")
    assert run("recover", *WHO) == 2
    shutil.rmtree(site.home / "embargoed/ferries")
    assert run("recover", *WHO) == 0
    assert ".damaged-" in capsys.readouterr().out
    assert head[1] in {entry.hash for entry in site.ledger.entries()}
    assert spent_micro(site.ledger) == spent
    assert run("recover", *WHO) == 0
    assert ".damaged-" not in capsys.readouterr().out


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
def test_a_recovery_that_died_before_it_made_tables_is_done_again(site: Site) -> None:
    """Found by a simulated world (seed 201): a crash at the database without tables."""
    spent, file = spent_micro(site.ledger), Path(site.url.removeprefix("sqlite:///"))
    for path in file.parent.glob(f"{file.name}*"):
        path.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t (x); DROP TABLE t")
    assert file.stat().st_size > 0
    assert run("recover", *WHO, "--family", "opal=opal_cards") == 0
    assert spent_micro(site.ledger) == spent


@pytest.mark.parametrize("has_witness", [True], indirect=True)
def test_no_note_is_signed_by_a_key_that_the_ledger_does_not_name(site: Site) -> None:
    """Found by a simulated world (seed 103): the witness lost the entry that named the key, too.

    The note that `recover` wrote accused for ever, once the key was named again.
    """
    other, key = Signer.make(site.root / "other.pem"), site.home / "ledger-key.pem"
    key.chmod(0o600)
    key.write_bytes((site.root / "other.pem").read_bytes())
    notes = {path.name for path in (site.witness / "checkpoints").iterdir()}
    assert run("confirm-clock", *WHO) == 0  # an entry, of which a note would be
    assert run("recover", *WHO) == 0
    listed = {path.name: path.read_bytes() for path in (site.home / "public").glob("zone-index*")}
    with pytest.raises((InputError, IntegrityError), match="is not the ledger's"):
        site.ledger.checkpoint()
    assert run("republish") == 4
    assert listed == {name: (site.home / "public" / name).read_bytes() for name in listed}
    assert {path.name for path in (site.witness / "checkpoints").iterdir()} == notes
    assert run("rotate-key", *WHO) == 0
    assert site.ledger.parties().key == other.public_line
    assert {path.name for path in (site.witness / "checkpoints").iterdir()} > notes
    run("republish")
    assert run("verify") == 0


@pytest.mark.parametrize("has_witness", [True], indirect=True)
@pytest.mark.parametrize("is_cut", [True, False])
def test_a_public_key_that_a_loss_of_power_cut_is_written_again_and_no_other(
    site: Site, capsys: pytest.CaptureFixture[str], *, is_cut: bool
) -> None:
    """Found by a simulated world (seed 314)."""
    for folder in (site.witness, site.home / "public"):
        path = folder / "ledger.pub"
        whole = path.read_bytes()
        path.chmod(0o600)
        path.write_bytes(whole[:40] if is_cut else b"another" + whole[7:])
    assert run("verify") == 4
    assert "turnstile ledger republish writes it again" in capsys.readouterr().out
    run("republish")
    assert run("verify") == (0 if is_cut else 4)
    for folder in (site.witness, site.home / "public"):
        (folder / "ledger.pub").unlink()
    run("republish")
    assert run("verify") == 0


@pytest.mark.parametrize("has_witness", [False], indirect=True)
def test_recovery_names_no_key_of_which_a_loss_of_power_left_a_piece(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be a key of the ledger for ever."""
    path = site.home / "public/ledger.pub"
    whole = path.read_text()
    path.chmod(0o600)
    path.write_text(whole[:20])
    site = lost_database(site, stores, monkeypatch)
    assert run("recover", *WHO, "--family", "opal=opal_cards") == 0
    assert site.ledger.parties().key_lines == (whole,)
    assert (path.read_text(), run("verify")) == (whole, 0)


@pytest.mark.parametrize("is_stated_again", [True, False])
@pytest.mark.parametrize("has_witness", [False], indirect=True)
@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
def test_a_withdrawal_that_was_lost_with_its_ledger_is_said_to_be_stated_again(
    site: Site,
    stores: Stores,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    is_stated_again: bool,
) -> None:
    """Found by a simulated world (seed 23): nobody was told how its record comes to be right."""
    key = f"opal/{week_number(0)}/r0"
    record = site.home / "public/opal" / week_number(0) / "withdrawn-r0.json"
    site = lost_database(site, stores, monkeypatch)
    assert run("recover", *WHO, "--family", "opal=opal_cards") == 0
    record.write_text("{}")  # of the ledger that is lost
    capsys.readouterr()
    assert run("verify") == 4
    assert f"{record} is a file that nobody published" in (said := capsys.readouterr().out)
    assert (
        "take it away; only where a ledger that is lost stated it, state it again (turnstile ledger"
        in said
    )
    record.unlink()
    if is_stated_again:
        site.ledger.withdraw(ReleaseKey.parse(key), "olga", "it was")
        (statement,) = public_records(site.ledger.entries()).values()
        record.write_bytes(record_bytes(statement))
    run("republish")
    assert run("verify") == 0


@pytest.mark.parametrize("has_witness", [True], indirect=True)
def test_a_witness_that_lost_its_name_is_taken_out_and_added_anew(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing else of it accuses before (seed 314): by its name it is the witness."""
    (name,) = site.ledger.parties().witnesses
    (site.witness / "witness.id").unlink()
    (site.witness / "ledger.pub").write_text("turnstile.led")
    with pytest.raises(IntegrityError, match=r"witness .* is not there; .* witness remove"):
        site.draw(3)
    assert run("witness", "remove", name[:8], *WHO) == 0
    assert run("witness", "add", str(site.witness), *WHO) == 0, capsys.readouterr().err
    run("republish")
    assert run("verify") == 0, capsys.readouterr().out


def test_a_rotated_key_is_known_again_after_the_database_is_lost(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines of earlier keys lie beside the packages: found by the simulated world."""
    site = Site(tmp_path / "site", stores.new(), has_witness=False).at(monkeypatch)
    site.publish(0)
    assert run("rotate-key", *WHO) == 0
    site.publish(1)
    lost = replace(site, url=stores.new()).at(monkeypatch)
    assert run("recover", *WHO, "--family", "opal=opal_cards") == 0
    assert run("verify") == 0
    lost.publish(2)
    assert run("verify") == 0
    assert len(lost.ledger.parties().key_lines) == 2


@pytest.mark.some(2)
@pytest.mark.parametrize("planted_by", ["a thief", "a loss of power", ""])
def test_a_key_that_signed_nothing_is_no_key_of_a_ledger_that_was_lost(
    stores: Stores,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    planted_by: str,
) -> None:
    """It was named as an earlier key for ever, and readers of packages trust each line."""
    site = Site(tmp_path / "site", stores.new(), has_witness=False).at(monkeypatch)
    site.publish(0)
    assert run("rotate-key", *WHO) == 0
    site.publish(1)
    file, thiefs = site.home / "public/ledger.pub", Signer.make(tmp_path / "t.pem").public_line
    kept = file.read_text()
    planted = {"a thief": thiefs, "a loss of power": f"{thiefs[:30]}\n"}.get(planted_by, "")
    file.write_text(planted + kept)
    lost = replace(site, url=stores.new()).at(monkeypatch)
    assert run("recover", *WHO, "--family", "opal=opal_cards") == 0
    assert lost.ledger.parties().key_lines == tuple(kept.splitlines(keepends=True))
    capsys.readouterr()
    assert run("verify") == (4 if planted_by else 0)
    assert ("ledger.pub is not the ledger's key" in capsys.readouterr().out) is bool(planted_by)
    file.write_text(kept)
    run("republish")
    assert run("verify") == 0


@pytest.mark.parametrize("has_witness", [True], indirect=True)
@pytest.mark.parametrize("has_name", [True, False])
def test_a_folder_that_is_still_named_after_its_witness_was_removed_is_accused(
    empty: Site, capsys: pytest.CaptureFixture[str], *, has_name: bool
) -> None:
    """The next draw took it up again by itself, as on first use, or said nothing of it."""
    site = empty
    site.publish(0)
    if not has_name:
        (site.witness / "witness.id").unlink()
    assert run("witness", "remove", str(site.witness), *WHO) == 0
    capsys.readouterr()
    assert run("verify") == 4
    said = f"{site.witness} is no witness of this ledger; mount the right one, add it by"
    assert said in capsys.readouterr().out
    with pytest.raises(IntegrityError, match="take it out of TURNSTILE_WITNESS"):
        site.draw(1)
    assert not site.ledger.parties().witnesses
    assert run("witness", "add", str(site.witness), *WHO) == 0
    goes_on(site, 1)


@pytest.mark.parametrize("has_witness", [True], indirect=True)
def test_who_takes_a_removed_witness_out_of_the_setting_goes_on_without(
    empty: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = empty
    site.publish(0)
    assert run("witness", "remove", str(site.witness), *WHO) == 0
    monkeypatch.setenv("TURNSTILE_WITNESS", "")
    goes_on(site, 1)


@pytest.mark.parametrize("is_right", [True, False])
def test_republish_under_another_key_says_so_though_nothing_is_public_yet(
    empty: Site, capsys: pytest.CaptureFixture[str], *, is_right: bool
) -> None:
    site = empty
    site.draw(0)
    if not is_right:
        Signer.make(site.root / "other.pem")
        (site.root / "other.pem").replace(site.home / "ledger-key.pem")
    capsys.readouterr()
    assert run("republish") == (0 if is_right else 4)
    assert ("is not the ledger's" in capsys.readouterr().out) is not is_right
    assert run("cosign") == (0 if is_right else 2)


def test_notes_that_were_swapped_are_not_signed_by_the_next_list(site: Site) -> None:
    """The list held each as it lay there, for it is signed itself."""
    site.publish(1)
    one, other = (site.home / f"public/opal/{week_number(n)}/checkpoint-r0.note" for n in (0, 1))
    kept = one.read_bytes(), other.read_bytes()
    one.write_bytes(kept[1])
    other.write_bytes(kept[0])
    run("republish")
    assert run("verify") == 4
    for note in (one, other):
        note.unlink()
    run("republish")
    assert run("verify") == 0


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a server looks after its files
def test_garbage_in_the_schema_is_a_damaged_database(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's binding says what it cannot decode in an error that is none of a database."""
    site = Site(tmp_path / "site", stores.new()).at(monkeypatch)
    site.publish(0)
    file = _database(site)
    content = file.read_bytes()
    at = content.index(b"tableentryentry") + len("table")
    file.write_bytes(content[:at] + b"\xc2\xff\xc2\xff" + content[at + 4 :])
    with pytest.raises(IntegrityError, match="is damaged"):
        site.publish(1)
    assert run("recover", *WHO) == 0
    site.publish(1)
    assert run("verify") == 0


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a server looks after its files
def test_a_text_longer_than_any_is_a_damaged_database(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A simulated disk wrote such a length into the schema: a traceback, and no way back."""
    site.publish(0)
    file, connect = _database(site), sqlite3.connect

    def of_short_texts(*given: Any, **more: Any) -> sqlite3.Connection:
        connection = connect(*given, **more)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 500)
        return connection

    assert damage_in(file) == ""
    for module in (sqlite3, sqlite3.dbapi2):
        monkeypatch.setattr(module, "connect", of_short_texts)
    assert damage_in(file) == "string or blob too big"
    with pytest.raises(IntegrityError, match="is damaged .string or blob too big"):
        site.publish(1)


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a server looks after its files
@pytest.mark.parametrize("garbage", ["X'7B80FF'", "'not an entry'"])
def test_a_record_that_reads_as_nothing_is_exit_4_for_whoever_reads_all(
    stores: Stores,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    garbage: str,
) -> None:
    """Whoever reads row by row is told in a sentence too: found by the simulated world."""
    site = Site(tmp_path / "site", stores.new()).at(monkeypatch)
    site.publish(0)
    record = f"CAST({garbage} AS TEXT)"
    stores.tamper(site.url, f"UPDATE entry SET record = {record} WHERE sequence = 2")
    assert run("entries") == 4
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "turnstile" in said
    with pytest.raises(IntegrityError):
        list(site.ledger.entries())


@pytest.mark.some(2)
@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a note lies beside either
@pytest.mark.parametrize("signature_characters", [None, 0, 40, 88])
def test_a_note_that_a_loss_of_power_tore_is_written_again(
    site: Site, signature_characters: int | None
) -> None:
    """Cut within its signature, too, which still reads: found by a simulated world."""
    site.publish(1)
    note = site.home / f"public/opal/{week_number(1)}/checkpoint-r0.note"
    whole = note.read_bytes()
    end = 0 if signature_characters is None else whole.rindex(b" ") + 1 + signature_characters
    note.chmod(0o600)
    note.write_bytes(whole[:end])
    with pytest.raises(IntegrityError, match="no readable checkpoint; take it away"):
        site.draw(2)
    assert run("recover", *WHO) == 0
    goes_on(site, 2)
    note.unlink()
    assert run("recover", *WHO) == 0
    goes_on(site, 3)


@pytest.mark.parametrize("has_witness", [True], indirect=True)
@pytest.mark.parametrize("kind", ["of a package", "the newest", "all"])
def test_a_note_that_was_removed_from_a_witness_is_named_and_written_again(
    site: Site, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """Nothing named it, though the public zone shows what was written with it."""
    assert run("rotate-key", *WHO) == 0  # the old note keeps its signature
    site.publish(1)
    beside = site.home / f"public/opal/{week_number(0)}/checkpoint-r0.note"
    public = {"the newest": site.home / "public/ledger-checkpoint.note"}.get(kind, beside)
    seen = Note.read(public).checkpoint
    assert seen is not None
    removed = site.witness / f"checkpoints/{seen.sequence:012}.note"
    if kind == "all":
        shutil.rmtree(removed.parent)
    else:
        removed.unlink()
    capsys.readouterr()
    assert run("verify") == 4
    said = capsys.readouterr().out
    assert f"{removed} is gone, or was never written, which {public} was written with" in said
    assert "turnstile ledger republish writes it" in said
    run("republish")  # the programme of this site has no file, so that its series are not made
    assert Note.read(removed).checkpoint is not None
    assert run("verify") == 0
    goes_on(site, 2)


@pytest.mark.parametrize("has_witness", [True], indirect=True)
def test_a_witness_needs_no_note_of_before_it_was_added_and_gets_no_forged_one(
    empty: Site,
) -> None:
    site = empty
    site.publish(0)
    shutil.rmtree(site.witness)
    assert run("witness", "remove", str(site.witness), *WHO) == 0
    assert run("witness", "add", str(site.witness), *WHO) == 0
    assert run("verify") == 0
    site.publish(1)
    site.publish(2)
    note = site.home / f"public/opal/{week_number(1)}/checkpoint-r0.note"
    seen = Note.read(note).checkpoint
    assert seen is not None
    removed = site.witness / f"checkpoints/{seen.sequence:012}.note"
    removed.unlink()
    whole = note.read_text()
    note.chmod(0o600)
    note.write_text(whole.replace(f"\n{seen.sequence}\n", f"\n{seen.sequence - 1}\n"))
    run("republish")
    assert not removed.exists()
    note.write_text(whole)
    run("republish")
    assert removed.exists()


@pytest.mark.parametrize("has_witness", [True], indirect=True)
def test_an_entry_that_a_witness_lost_is_shipped_again(site: Site) -> None:
    torn = sorted((site.witness / "entries").iterdir())[2]
    kept = torn.read_bytes()
    torn.chmod(0o600)
    torn.write_bytes(kept[:40])
    assert run("verify") == 4
    assert run("recover", *WHO) == 0  # the ledger holds what nobody can read there
    torn.unlink()
    goes_on(site, 1)
    assert torn.read_bytes() == kept


@pytest.mark.parametrize("has_witness", [True], indirect=True)
@pytest.mark.parametrize("kind", ["entries", "checkpoints"])
def test_what_a_loss_of_power_tore_in_a_witness_is_no_other_copy_of_the_ledger(
    site: Site, kind: str
) -> None:
    """It was said that another copy lives on (seeds 39 and 75): stop it, whichever it is."""
    site.publish(0)
    torn = max((site.witness / kind).iterdir())
    whole, ledger = torn.read_bytes(), site.ledger
    writes: dict[str, Callable[[], object]] = {
        "entries": lambda: ship(site.witness, [*ledger.entries()]),
        "checkpoints": ledger.checkpoint,
    }
    for content in (b"", whole[:40], b"\xff" * 40):
        torn.chmod(0o600)
        torn.write_bytes(content)
        with pytest.raises(IntegrityError, match=r"take it away") as refused:
            writes[kind]()
        assert f"{torn} {'holds no entry' if kind == 'entries' else 'is no readable'}" in str(
            refused.value
        )
    torn.unlink()
    run("republish")
    goes_on(site, 1)
    assert torn.read_bytes() == whole or Note.read(torn).checkpoint is not None


@pytest.mark.parametrize("has_witness", [True], indirect=True)
def test_a_torn_entry_that_nobody_else_holds_is_given_up_by_a_person(
    site: Site,
    stores: Stores,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site.publish(1)
    last = max((site.witness / "entries").iterdir())
    last.chmod(0o600)
    last.write_bytes(b"")
    site = lost_database(site, stores, monkeypatch)
    assert run("recover", *WHO) == 2
    assert "take away its entries from the one that verify names on" in capsys.readouterr().err
    last.unlink()
    assert run("recover", *WHO) == 0
    goes_on(site, 2)
