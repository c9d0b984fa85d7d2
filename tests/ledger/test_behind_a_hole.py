"""A damaged database without a witness: draws of which only entries behind a hole tell are charged.

Nobody can append these entries, as the one before them is lost; they were dropped without a word,
and a draw that had died without a file was free.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from damaged_ledger import (
    NO_ATTEMPTS,
    NO_HEAD,
    declared,
    die,
    of_week,
    plan,
    states,
    with_holes,
)
from disaster_site import WHO, Site, lived_once, run
from ledger_asks import LOSS_MICRO, spent_micro

from conftest import Stores
from turnstile.errors import IntegrityError
from turnstile.ledger.database.damaged_database import newest_aside
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.states import ReleaseState
from turnstile.settings import Settings

pytestmark = pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
"""A server looks after its files."""

Chosen = Callable[[list[Entry]], Iterable[int]]


@pytest.mark.parametrize(
    "hole",
    [
        pytest.param(lambda e: of_week(e, 0)[-1:], id="before it"),
        pytest.param(lambda e: of_week(e, 1, EntryKind.BURNED), id="its end, nothing is behind"),
        pytest.param(lambda e: of_week(e, 1, EntryKind.DRAW_BEGUN), id="its charge"),
        pytest.param(
            lambda e: of_week(e, 1, EntryKind.DRAW_BEGUN, EntryKind.DRAW_STARTED), id="draw"
        ),
    ],
)
def test_a_draw_that_died_is_charged_by_what_lies_behind_a_hole(site: Site, hole: Chosen) -> None:
    die(site, 1)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger)
    assert spent == 2 * LOSS_MICRO
    with_holes(hole(entries))
    assert run("recover", *WHO) == 0
    assert spent_micro(site.ledger) == spent
    assert states(site, site.request(1).key) == [ReleaseState.BURNED]
    assert run("recover", *WHO) == 0
    assert spent_micro(site.ledger) == spent
    assert run("verify") == 0
    site.publish(1)
    assert (spent_micro(site.ledger), run("verify")) == (spent + LOSS_MICRO, 0)


@pytest.mark.parametrize("is_staged", [True, False])
@pytest.mark.parametrize("is_known", [True, False], ids=["reserved before", "all behind"])
def test_sealed_bytes_behind_a_hole_stay_those_of_their_week(
    site: Site, *, is_known: bool, is_staged: bool
) -> None:
    """Beside a draw of the week that died before, whose charge no file tells from its own."""
    die(site, 1)
    attempt = site.draw(1)
    if is_staged:
        site.publish(1)
        shutil.rmtree(site.home / "public" / str(attempt.key))
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger)
    begun = of_week(entries, 1, EntryKind.DRAW_BEGUN)[-1]
    with_holes([begun] if is_known else of_week(entries, 0)[-1:])
    assert run("recover", *WHO) == 0
    assert spent_micro(site.ledger) == spent == 3 * LOSS_MICRO
    assert site.draw(1).artefact_digest == attempt.artefact_digest
    package = site.publish(1)
    assert package.is_dir()
    assert (spent_micro(site.ledger), run("verify")) == (spent, 0)


def test_a_public_package_behind_a_hole_is_charged_once_with_its_dead_draws(site: Site) -> None:
    for n in (1, 2):
        die(site, n)
        site.publish(n)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger)
    with_holes(of_week(entries, 0)[-1:])
    assert run("recover", *WHO) == 0
    assert spent_micro(site.ledger) == spent == 5 * LOSS_MICRO
    site.publish(3)
    assert (spent_micro(site.ledger), run("verify")) == (spent + LOSS_MICRO, 0)


@pytest.mark.parametrize("has_plan", [True, False])
@pytest.mark.parametrize("kinds", [[EntryKind.RESERVED], []], ids=["its cost", "all of it"])
def test_a_draw_whose_cost_is_in_the_hole_is_charged_by_its_plan_or_named(
    site: Site, capsys: pytest.CaptureFixture[str], kinds: list[EntryKind], *, has_plan: bool
) -> None:
    """The entry that states it is the longest, so that a bad page holds it first."""
    for _ in range(2):
        die(site, 1)
    entries, request = [*site.ledger.entries()], site.request(1)
    if has_plan:
        plan(site, 1)
    with_holes(of_week([e for e in entries if not str(e.attempt_id).endswith("#2")], 1, *kinds))
    capsys.readouterr()
    assert run("recover", *WHO) == (0 if has_plan else 4)
    unknown = "none" if has_plan else f"{request.key}#1"
    assert f"perhaps drawn and not charged: {unknown}\n" in capsys.readouterr().out
    assert spent_micro(site.ledger) == LOSS_MICRO * (2 + has_plan)
    assert run("verify") == 0


@pytest.mark.parametrize("alters", ["", NO_HEAD, NO_ATTEMPTS])
def test_a_hold_whose_later_entries_were_the_last_ones_is_charged(site: Site, alters: str) -> None:
    """Nothing is behind them: it was let go, though it had drawn."""
    die(site, 1)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger)
    gone = (EntryKind.DRAW_BEGUN, EntryKind.DRAW_STARTED, EntryKind.BURNED)
    with_holes(of_week(entries, 1, *gone), alters=alters)
    assert run("recover", *WHO) == 0
    assert (spent_micro(site.ledger), run("verify")) == (spent, 0)
    assert states(site, site.request(1).key) == [ReleaseState.BURNED]


@pytest.mark.parametrize("alters", ["", NO_HEAD])
@pytest.mark.parametrize("has_plan", [True, False])
def test_draws_that_are_lost_whole_are_charged_as_the_table_of_attempts_names_them(
    site: Site, capsys: pytest.CaptureFixture[str], alters: str, *, has_plan: bool
) -> None:
    """In the last page, or in a hole with the draw of another week behind it."""
    request = site.request(1)
    die(site, 1)
    site.publish(2)
    die(site, 3)
    if has_plan:
        for n in (1, 3):
            plan(site, n)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger)
    with_holes([*of_week(entries, 1), *of_week(entries, 3)], alters=alters)
    capsys.readouterr()
    assert run("recover", *WHO) == (0 if has_plan else 4)
    unknown = "none" if has_plan else f"{request.key}#1, {site.request(3).key}#1"
    assert f"perhaps drawn and not charged: {unknown}\n" in capsys.readouterr().out
    assert spent_micro(site.ledger) == (spent if has_plan else 2 * LOSS_MICRO)
    assert run("verify") == 0


@pytest.mark.parametrize("has_package", [True, False])
def test_a_week_in_the_last_page_keeps_its_bytes(site: Site, *, has_package: bool) -> None:
    """The table of attempts has their digest; a card states the draw that died before them."""
    die(site, 1)
    attempt = site.draw(1)
    if has_package:
        site.publish(1)
    else:
        next((site.home / "embargoed" / str(attempt.key)).glob("sealed-*")).unlink()
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger)
    with_holes(of_week(entries, 1))
    assert run("recover", *WHO) == 0
    assert (spent_micro(site.ledger), run("verify")) == (spent, 0)
    assert site.draw(1).artefact_digest == attempt.artefact_digest
    assert spent_micro(site.ledger) == spent


def test_the_last_pages_of_entries_are_lost(site: Site) -> None:
    """As a disk loses them: those of the last draw, with every entry that they hold."""
    for n in (1, 2, 3):  # some pages
        die(site, n)
        plan(site, n)
    file, spent = Settings.from_environment().ledger_file, spent_micro(site.ledger)
    last = [e.record.encode() for e in site.ledger.entries() if e.key == str(site.request(3).key)]
    assert file is not None
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    pages = bytearray(file.read_bytes())
    for page in {pages.index(record) // 4096 for record in last}:
        pages[page * 4096 : (page + 1) * 4096] = b"\xab" * 4096
    file.write_bytes(pages)
    assert run("recover", *WHO) == 0
    assert (spent_micro(site.ledger), run("verify")) == (spent, 0)


def test_holds_and_ended_holds_in_the_last_page_cost_nothing_as_far_as_it_is_known(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """Negative control; of a hold whose end is lost, nobody knows."""
    ledger = site.ledger
    before = len([*ledger.entries()])
    ledger.void(ledger.reserve(site.request(1)).attempt_id, "not today", person="olga")
    ledger.reserve(site.request(2))
    entries, spent = [*ledger.entries()], spent_micro(ledger)
    with_holes(range(before + 1, len(entries) + 1))
    capsys.readouterr()
    assert run("recover", *WHO) == 4
    said = f"perhaps drawn and not charged: {site.request(2).key}#1\n"
    assert said in capsys.readouterr().out
    assert (spent_micro(site.ledger), run("verify")) == (spent, 0)
    assert not states(site, site.request(1).key)


def _live_some_weeks(site: Site) -> None:
    """Six charges: public, sealed, died with nothing left but a plan; then an end and a hold."""
    site.publish(0)
    die(site, 1)
    site.publish(1)
    for n in (2, 4):
        die(site, n)
        plan(site, n)
    site.draw(3)
    ledger = site.ledger
    ledger.void(ledger.reserve(site.request(5)).attempt_id, "not today", person="olga")
    ledger.reserve(site.request(6))


@pytest.fixture(scope="module")
def lived_weeks(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Site:
    root = tmp_path_factory.mktemp("weeks")
    return lived_once(stores, root, _live_some_weeks, has_witness=False)


def _damaged(content: bytes, rng: random.Random) -> bytes:
    """Cut, zero or overwrite a part of a database."""
    pages, at = len(content) // 4096, rng.randrange(100, len(content))
    match rng.choice(["a page", "pages", "bytes", "its end", "a stretch"]):
        case "a page":
            at = 4096 * rng.randrange(1, pages)
            return content[:at] + rng.randbytes(4096) + content[at + 4096 :]
        case "pages":
            lost = rng.sample(range(1, pages), rng.randrange(2, 12))
            return b"".join(
                bytes(4096) if n in lost else content[4096 * n : 4096 * (n + 1)]
                for n in range(pages)
            )
        case "bytes":
            written = bytearray(content)
            for _ in range(rng.randrange(1, 60)):
                written[rng.randrange(100, len(content))] = rng.randrange(256)
            return bytes(written)
        case "its end":
            return content[: max(at, 4096)]
        case _:
            noise = rng.randbytes(min(rng.randrange(100, 20000), len(content) - at))
            return content[:at] + noise + content[at + len(noise) :]


@pytest.mark.some(12)
@pytest.mark.parametrize("seed", range(200))
def test_no_damage_takes_a_loss_away_without_a_word(
    lived_weeks: Site,
    stores: Stores,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seed: int,
) -> None:
    """Of 150 such 87 ended with "ok" and less than had been spent, or in an error."""
    site = lived_weeks.copy_of(stores, tmp_path / "site").at(monkeypatch)
    file, spent = Settings.from_environment().ledger_file, spent_micro(site.ledger) or 0
    assert file is not None
    assert spent == 6 * LOSS_MICRO
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    file.write_bytes(_damaged(file.read_bytes(), random.Random(seed)))  # noqa: S311 - no secret
    capsys.readouterr()
    code, said = run("recover", *WHO), capsys.readouterr()
    charged = spent_micro(site.ledger) or 0
    assert code in {0, 4}, said.err
    assert charged >= spent or site.request(4).key.period in said.out
    assert code or charged >= spent
    assert bool(code) == ("not charged: none" not in said.out)
    assert run("verify") == 0 or "was altered" in said.err


_KINDS = (EntryKind.RESERVED, EntryKind.DRAW_BEGUN, EntryKind.DRAW_STARTED, EntryKind.BURNED)


@pytest.mark.parametrize("is_twice", [True, False], ids=["two holes", "one hole"])
@pytest.mark.parametrize(
    ("has_package", "gone"),
    [(False, _KINDS[1:]), (True, _KINDS[1:2]), (True, _KINDS[1:3]), (True, _KINDS[:3])],
)
def test_a_draw_whose_end_or_begin_is_in_a_hole_is_charged_once(
    site: Site, gone: tuple[EntryKind, ...], *, has_package: bool, is_twice: bool
) -> None:
    """Nobody knows whether a hold drew whose end is lost; the card of a later draw does."""
    die(site, 1)
    site.publish(1 if has_package else 2)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger)
    first = [e for e in entries if not str(e.attempt_id).endswith("#2")]
    with_holes([*of_week(first, 1, *gone), *(of_week(entries, 0)[-1:] if is_twice else ())])
    assert run("recover", *WHO) == 0
    assert (spent_micro(site.ledger), run("verify")) == (spent, 0)


def test_a_draw_of_which_the_begin_is_left_is_the_one_whose_start_a_card_names(site: Site) -> None:
    die(site, 1)
    site.publish(1)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger)
    with_holes([of_week(entries, 0)[-1], of_week(entries, 1, EntryKind.DRAW_STARTED)[0]])
    assert run("recover", *WHO) == 0
    assert (spent_micro(site.ledger), run("verify")) == (spent, 0)


@pytest.mark.parametrize("is_void", [True, False])
@pytest.mark.parametrize("is_behind", [True, False], ids=["between two holes", "before the hole"])
def test_a_second_draw_of_a_week_that_is_lost_whole_is_named(
    site: Site, capsys: pytest.CaptureFixture[str], *, is_behind: bool, is_void: bool
) -> None:
    """It was taken for the first, of which entries are left."""
    if is_void:
        site.ledger.void(site.ledger.reserve(site.request(1)).attempt_id, "no", person="olga")
    else:
        die(site, 1)
    plan(site, 1)
    before = len([*site.ledger.entries()])
    die(site, 1)
    after, gone = len([*site.ledger.entries()]), [2] if is_behind else []
    die(site, 2)
    spent = spent_micro(site.ledger) or 0
    with_holes([*gone, *range(before + 1, after + 1)], alters=NO_ATTEMPTS)
    capsys.readouterr()
    assert run("recover", *WHO) == 4
    said = f"perhaps drawn and not charged: {site.request(1).key}\n"
    assert said in capsys.readouterr().out
    assert (spent_micro(site.ledger), run("verify")) == (spent - LOSS_MICRO, 0)


@pytest.mark.parametrize("is_damaged", [True, False], ids=["its last page", "the database"])
def test_a_witness_that_was_put_back_does_not_hide_what_is_lost(
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    is_damaged: bool,
) -> None:
    witness, copy = tmp_path / "witness", tmp_path / "copy"
    monkeypatch.setenv("TURNSTILE_WITNESS", str(witness))
    assert run("witness", "add", str(witness), *WHO) == 0
    shutil.copytree(witness, copy)
    before = len([*site.ledger.entries()])
    die(site, 1)
    plan(site, 1)
    spent, file = spent_micro(site.ledger) or 0, Settings.from_environment().ledger_file
    shutil.rmtree(witness)
    copy.rename(witness)
    if is_damaged:
        with_holes(range(before + 1, 1 + len([*site.ledger.entries()])))
    else:
        assert file is not None
        file.unlink()
    capsys.readouterr()
    assert run("recover", *WHO) == (0 if is_damaged else 4)
    named = "none" if is_damaged else str(site.request(1).key)
    assert f"perhaps drawn and not charged: {named}\n" in capsys.readouterr().out
    assert spent_micro(site.ledger) == (spent if is_damaged else spent - LOSS_MICRO)
    assert run("verify") == 0


def test_planned_weeks_of_a_ledger_that_is_gone_are_named(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """As those of one that is damaged beyond all are."""
    die(site, 1)
    plan(site, 1)
    file = Settings.from_environment().ledger_file
    assert file is not None
    file.unlink()
    capsys.readouterr()
    assert run("recover", *WHO) == 4
    said = f"perhaps drawn and not charged: {site.request(1).key}\n"
    assert said in capsys.readouterr().out
    assert (spent_micro(site.ledger), run("verify")) == (LOSS_MICRO, 0)


def test_an_entry_of_a_number_that_is_taken_stops_nobody(site: Site) -> None:
    """Two histories were said to be there, of which nobody could take one away."""
    die(site, 1)
    spent = spent_micro(site.ledger)
    with_holes([], [{"kind": "approved", "body": {}, "sequence": 3}])
    assert run("recover", *WHO) == 0
    assert (spent_micro(site.ledger), run("verify")) == (spent, 0)


def test_a_dearer_draw_whose_cost_is_in_the_hole_is_charged_as_a_card_states_it(site: Site) -> None:
    """The plan that is there is the cheaper one of the draw after it."""
    die(site, 1, epsilon_micro=2 * LOSS_MICRO)
    site.publish(1)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger)
    with_holes(of_week(entries, 1, EntryKind.RESERVED)[:1])
    assert run("recover", *WHO) == 0
    assert (spent_micro(site.ledger), run("verify")) == (spent, 0)


@pytest.mark.parametrize("is_known", [True, False], ids=["reserved before", "all behind"])
@pytest.mark.parametrize("is_public", [True, False])
def test_a_key_keeps_bytes_that_are_gone(site: Site, *, is_public: bool, is_known: bool) -> None:
    """A published week was drawn again, for other bytes."""
    attempt = site.draw(1)
    if is_public:
        site.publish(1)
    for zone in ("public", "embargoed"):
        shutil.rmtree(site.home / zone / str(attempt.key), ignore_errors=True)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger)
    with_holes(of_week(entries, 1, EntryKind.DRAW_BEGUN) if is_known else of_week(entries, 0)[-1:])
    assert run("recover", *WHO) == 0
    assert (spent_micro(site.ledger), run("verify")) == (spent, 0)
    assert site.draw(1).artefact_digest == attempt.artefact_digest


def test_no_new_ledger_begins_where_a_recovery_stopped(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had moved the damaged one aside; where nothing was sealed a run began anew, from zero."""
    for zone in ("public", "embargoed"):
        shutil.rmtree(site.home / zone)
    die(site, 1)
    with_holes([])
    with monkeypatch.context() as patch:
        patch.setattr("turnstile.ledger.ledger.recovery.recover", _stop)
        assert run("recover", *WHO)
    with pytest.raises(IntegrityError, match="recover"):
        open_ledger(Settings.from_environment())
    assert run("recover", *WHO) == 0
    assert (spent_micro(site.ledger), run("verify")) == (2 * LOSS_MICRO, 0)
    open_ledger(Settings.from_environment())


def test_a_ledger_that_is_lost_after_one_was_set_aside_comes_back(site: Site) -> None:
    """A simulated world stood still: what is left of a file was asked of one that is gone."""
    with_holes([])
    assert run("recover", *WHO) == 0
    file, spent = Settings.from_environment().ledger_file, spent_micro(site.ledger)
    assert file is not None
    file.unlink()
    assert run("recover", *WHO) == 0
    assert (spent_micro(site.ledger), run("verify")) == (spent, 0)


@pytest.mark.usefixtures("site")
def test_two_ledgers_that_are_damaged_in_one_second_are_both_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second took the place of the first: of its draws nothing was left but in it."""
    file, now = Settings.from_environment().ledger_file, datetime(2016, 8, 9, tzinfo=UTC)
    assert file is not None
    monkeypatch.setattr("turnstile.commands.ledger_opened.system_clock", lambda: now)
    kept = []
    for _ in range(3):
        with_holes([])
        kept.append(file.read_bytes())
        assert run("recover", *WHO) == 0
        last = newest_aside(file)
        assert last is not None
        assert last.read_bytes() == kept[-1]
    asides = sorted(file.parent.glob(f"{file.name}.damaged-*"))
    assert [path.read_bytes() for path in asides if path.name[-1].isdigit()] == kept


@pytest.mark.usefixtures("site")
def test_a_sound_ledger_is_asked_by_sqlite_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others write to it: its pages and its log, read one after the other, may belong to none."""
    with_holes([])
    assert run("recover", *WHO) == 0
    monkeypatch.setattr("turnstile.ledger.database.damaged_database.rows_in", _stop)
    assert run("recover", *WHO) == 0


def _stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


_FORGED: list[dict[str, Any]] = [
    *({"postings": [["card", *rest]]} for rest in (
        ["ever", -9_000_000, 5, 0], ["ever", 10**30, 5, 0],
        ["ever", 4.5, 5, 0], ["ever", "4", 5, 0],
        ["ever"], [["x"], 4, 5, 0], ["\ud800", 4, 5, 0], ["ever", 4, 5, None],
    )),
    {"postings": [["cat", "ever", 4, 5, 0]]}, {"postings": []}, {"postings": {"a": 1}},
    *({"draws": draws} for draws in (0, -3, 1.5, "1", 10**15)),
    *({"key": key} for key in (None, 5, "opal", "a b/2016-W30/r0", "opal/2016-W30/r" + "9" * 5000)),
    *({"week": week} for week in (None, "x", [1])), {"first_week": "2030-W01"},
    *({"family": family} for family in (None, ["x"], "", "others", "\ud800")),
    *({"plan_digest": digest} for digest in (None, ["x"], "x")), {"programme_digest": ["x"]},
    *({"artefact_digest": digest} for digest in (7, ["x"], "ab" * 32)), {"manifest_digest": ["x"]},
    *({"attempt": name} for name in (None, 4, ["x"], "opal/2016-W30/r0#9")),
    {"leftovers": 3}, {"files": 3}, {"events": 3},
]  # fmt: skip


def test_forged_entries_behind_a_hole_lower_no_loss(site: Site) -> None:
    """Somebody put well hashed ones there; many were a traceback, and took losses away."""
    die(site, 1)
    spent, forged = spent_micro(site.ledger), list[dict[str, Any]]()
    for n, other in enumerate(_FORGED, 2):
        (body := declared(site, n)).update(other)
        forged.append({"kind": "loss_declared", "body": body})
    true = declared(site, 1)
    forged.append({"kind": "sealed", "body": true | {"postings": [], "draws": 0}})
    forged.append({"kind": "voided", "body": true})
    forged += [{"kind": "sealed", "body": body} for body in ([1], "x", None)]
    forged += [{"kind": "sealed", "body": {}, "sequence": number} for number in ([1], "9", 9.5)]
    with_holes(of_week([*site.ledger.entries()], 0)[-1:], forged)
    assert run("recover", *WHO) == 4
    assert (spent_micro(site.ledger) or 0) >= (spent or 0)
    assert run("verify") == 0


def test_holds_and_ended_holds_behind_a_hole_cost_nothing(site: Site) -> None:
    """Negative control: nothing was drawn under them."""
    ledger = site.ledger
    ledger.void(ledger.reserve(site.request(1)).attempt_id, "not today", person="olga")
    ledger.reserve(site.request(2))
    entries, spent = [*ledger.entries()], spent_micro(ledger)
    with_holes(of_week(entries, 0)[-1:])
    assert run("recover", *WHO) == 0
    assert spent_micro(site.ledger) == spent == LOSS_MICRO
    assert not states(site, site.request(1).key)


def test_another_history_behind_a_hole_is_said_to_be(
    site: Site,
    stores: Stores,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two copies lived on: their entries were compared up to the first hole alone."""
    other = site.copy_of(stores, tmp_path / "other").at(monkeypatch)
    for n in (1, 2):
        other.publish(n)
    witness = tmp_path / "witness"
    monkeypatch.setenv("TURNSTILE_WITNESS", str(witness))
    assert run("witness", "add", str(witness), *WHO) == 0
    site.at(monkeypatch)
    for n in (1, 2):
        die(site, n)
    head, entries = of_week([*other.ledger.entries()], 0)[-1], [*site.ledger.entries()]
    with_holes(range(1, 2 + len(entries) // 2))
    monkeypatch.setenv("TURNSTILE_WITNESS", str(witness))
    capsys.readouterr()
    assert head
    assert run("recover", *WHO) == 4
    assert "hold two histories" in capsys.readouterr().err
