"""A table of tampers and disasters, each on both stores: found, by which command, exit code 4.

What nothing can find is named in docs/RUNBOOK.md ("What cannot be seen") and shown here too.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from disaster_site import WIDE, Site, lived_once, run
from ledger_asks import LOSS_MICRO, TRIP, week_number
from tampers import (
    Change,
    added,
    appended,
    appended_to,
    as_bus,
    cheaper,
    edited,
    guard_gone,
    guard_that_never_asks,
    key_replaced,
    link_to_itself,
    linked,
    pipe_at,
    recomputed,
    removed,
    replaced,
    rows,
    second_package,
    sql,
    swapped,
    without_week_1,
    witness_swapped,
)

from conftest import Stores
from turnstile.errors import IntegrityError
from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.entries import EntryKind


@pytest.fixture(scope="module")
def lived(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Two published weeks and one under embargo, with a witness."""

    def live(site: Site) -> None:
        site.publish(0)
        site.publish(1)
        site.draw(2)
        assert run("verify") == 0

    return lived_once(stores, tmp_path_factory.mktemp("lived"), live)


W0, W1, W2 = (f"opal/{week_number(n)}/r0" for n in range(3))
PERSON = {"person": "olga", "reason": "test"}
OF_W2 = f"WHERE release_key = '{W2}'"
NOTE, PROOF = "checkpoint-r0.note", "proof-r0.tlog-proof"
LAST = "(SELECT max(sequence) FROM entry)"
HEAD_FIXED = (
    "UPDATE head SET sequence = (SELECT max(sequence) FROM entry)",
    "UPDATE head SET hash = (SELECT hash FROM entry WHERE sequence = head.sequence)",
)

TABLE: dict[str, tuple[Change, str]] = {
    "an amount in an entry": (
        sql("UPDATE entry SET record = replace(record, '4000000', '1000000')"),
        "its hash is not the hash of its text",
    ),
    "an amount in an account": (
        sql("UPDATE account SET spent_epsilon_micro = 1 WHERE scope = 'ever' AND week = ''"),
        "card (ever) is not the sum",
    ),
    "an account row deleted": (sql("DELETE FROM account WHERE week <> ''"), "not the sum"),
    "the last entry removed, head fixed": (
        sql(f"DELETE FROM entry WHERE sequence = {LAST}", *HEAD_FIXED),
        "old copy was restored",
    ),
    "a middle entry removed": (sql("DELETE FROM entry WHERE sequence = 6"), "follows entry 5"),
    "a published entry removed, head fixed": (
        sql("DELETE FROM entry WHERE kind = 'published'", *HEAD_FIXED),
        "entries are missing",
    ),
    "two entries swapped": (
        sql(
            "UPDATE entry SET sequence = 99 WHERE sequence = 4",
            "UPDATE entry SET sequence = 4 WHERE sequence = 5",
            "UPDATE entry SET sequence = 5 WHERE sequence = 99",
        ),
        "columns do not say",
    ),
    "columns of an entry": (
        sql("UPDATE entry SET release_key = 'opal/2000-W01/r0' WHERE sequence = 5"),
        "columns do not say",
    ),
    "chain recomputed over a cheaper loss": (
        recomputed(cheaper, notes=False),
        "history was replaced",
    ),
    "chain recomputed, notes and witness emptied": (
        recomputed(cheaper, notes=True),
        "states less loss",
    ),
    "unit changed, chain recomputed": (recomputed(as_bus, notes=True), "states less loss"),
    "a published week forgotten, chain recomputed": (
        recomputed(without_week_1, notes=True),
        "never sealed",
    ),
    "the head put back": (sql("UPDATE head SET sequence = 6"), "last entry, and is not"),
    "an attempt's state": (
        sql(f"UPDATE attempt SET state = 'burned', artefact_digest = NULL {OF_W2}"),
        "not what its entries say",
    ),
    "an attempt's domain": (sql("UPDATE attempt SET domain_digest = 'x'"), "not what its entries"),
    "an attempt's plan": (sql("UPDATE attempt SET plan_digest = 'x'"), "not what its entries say"),
    "an attempt deleted": (sql(f"DELETE FROM attempt {OF_W2}"), "is gone"),
    "caps relaxed in the table": (
        sql("UPDATE caps SET caps = replace(caps, '16000000', '99000000')"),
        "caps of opal_cards",
    ),
    "caps relaxed in the accounts": (
        sql("UPDATE account SET cap_epsilon_micro = NULL"),
        "not that of its last reservation",
    ),
    "caps deleted": (sql("DELETE FROM caps"), "caps of opal_cards"),
    "a guard dropped": (guard_gone, "entry_no_delete is gone"),
    "a guard on a condition that is never true": (
        guard_that_never_asks,
        "entry_no_delete is not the one that was made",
    ),
    "private key gone": (removed("home/ledger-key.pem"), "ledger-key.pem is gone"),
    "private key replaced": (key_replaced("private"), "is not the ledger's"),
    "public key replaced in the public zone": (key_replaced("home/public"), "ledger.pub is not"),
    "public key replaced at the witness": (key_replaced("witness"), "ledger.pub is not"),
    "witness gone": (removed("witness"), "is not there"),
    "witness unmounted": (witness_swapped, "is not there"),
    "witness entry edited": (
        edited("witness/entries/000000000003.json", "4000000", "1000000"),
        "entry 3",
    ),
    "witness entry removed": (removed("witness/entries/000000000005.json"), "but not this one"),
    "witness note edited": (
        edited("witness/checkpoints/*07.note", "\n7\n", "\n6\n"),
        "no signature",
    ),
    "note beside a package edited": (
        edited(f"home/public/{W0[:-3]}/checkpoint-r0.note", "release opal", "release opla"),
        "no signature",
    ),
    "sealed file edited": (
        edited(f"home/embargoed/{W2}/sealed-*", "noise", "noisy"),
        "was altered",
    ),
    "sealed file deleted": (removed(f"home/embargoed/{W1}/sealed-*"), "is gone"),
    "a second sealed file": (
        lambda site, _: (site.home / f"embargoed/{W2}/sealed-{'0' * 16}.parquet").touch(),  # type: ignore[func-returns-value]
        "is not the sealed file",
    ),
    "sealed bytes of a week that was never drawn": (
        lambda site, _: shutil.copytree(  # type: ignore[func-returns-value]
            site.home / f"embargoed/{W2}", site.home / f"embargoed/opal/{week_number(9)}/r0"
        ),
        "never drew",
    ),
    "package table edited": (
        edited(f"home/public/{W0}/tables/on_time.csv", "12", "13"),
        "on_time.csv was altered",
    ),
    "package card edited": (
        edited(f"home/public/{W0}/release_card.json", '"burned_draws": 0', '"burned_draws": 9'),
        "release_card.json was altered",
    ),
    "package manifest edited": (
        edited(f"home/public/{W0}/manifest.json", "tables/on_time", "tables/at_time"),
        "not the manifest",
    ),
    "a file added to a package": (
        lambda site, _: (site.home / f"public/{W0}/more.csv").write_text("x"),  # type: ignore[func-returns-value]
        "more.csv is not listed",
    ),
    "a second package put beside": (second_package, "never sealed"),
    "a stranger's file beside packages": (
        lambda site, _: (site.home / f"public/{W0[:-3]}/r0.bak").touch(),  # type: ignore[func-returns-value]
        "is no file of a release",
    ),
    "package deleted": (removed(f"home/public/{W1}"), "is missing"),
    "staged package of other bytes": (
        edited(
            f"home/embargoed/{W1}/package/manifest.json",
            '"sealed_sha256": "',
            '"sealed_sha256": "0',
        ),
        "other sealed bytes",
    ),
    "rows among the public files": (
        added("home/public/opal/2016-W30.csv"),
        "2016-W30.csv is a file that nobody published",
    ),
    "a forged withdrawal": (
        added(f"home/public/{W0[:-3]}/withdrawn-r0.json"),
        "withdrawn-r0.json is a file that nobody published",
    ),
    "the series altered": (
        edited("home/public/opal/series/index.json", "[]", "[0]"),
        "index.json was altered",
    ),
    "the series removed": (removed("home/public/opal/series/index.json"), "index.json is missing"),
    "a note beside a package removed": (
        removed(f"home/public/{W1[:-3]}/checkpoint-r0.note"),
        "checkpoint-r0.note is missing",
    ),
    "the newest note removed": (
        removed("home/public/ledger-checkpoint.note"),
        "ledger-checkpoint.note is gone",
    ),
    "the list of public files removed": (
        removed("home/public/zone-index.*"),
        "zone-index.txt is gone",
    ),
    "the list of public files rewritten": (
        edited("home/public/zone-index.txt", "opal/series/index.json", "opal/series/other.json"),
        "is not what the ledger's key signed",
    ),
    "the last fact rewritten, and the chain": (
        recomputed(lambda facts: facts[-1]["body"].update(artefact_digest="ab" * 32), notes=False),  # type: ignore[attr-defined]
        "the ledger's history was replaced",
    ),
    "an entry of the future": (
        appended(EntryKind.CLOCK_CONFIRMED, PERSON, at="2999-01-01T00:00:00+00:00"),
        "the clock says",
    ),
    "a withdrawal of an attempt that nobody made": (
        appended(EntryKind.WITHDRAWN, PERSON | {"attempt": "nobody", "key": "opal/2016-W30/r0"}),
        "withdraws what was not published",
    ),
    "a draw of an attempt that nobody charged": (
        appended(EntryKind.DRAW_STARTED, {"attempt": "nobody", "key": "opal/2016-W30/r0"}),
        "starts a draw that was not charged",
    ),
    "a link to a private file among the public ones": (
        linked("home/public/opal/rows.csv", "home/ledger-key.pem"),
        "rows.csv is a file that nobody published",
    ),
    "a link to a private folder": (
        linked("home/public/private", "home/embargoed"),
        "public/private is a file that nobody published",
    ),
    "a folder linked into a package": (
        linked(f"home/public/{W0}/more", "home/embargoed"),
        "more is not listed",
    ),
    "the newest release pointed elsewhere": (
        linked("home/public/opal/latest", "home/embargoed"),
        "latest is a file that nobody published",
    ),
    "a hidden file": (added("home/public/opal/.rows.csv"), ".rows.csv is a file that nobody"),
    "a hidden folder": (added("home/public/.rows/rows.csv"), "rows.csv is a file that nobody"),
    "a hidden file beside a package": (
        added(f"home/public/{W0[:-3]}/.rows.csv"),
        ".rows.csv is a file that nobody published",
    ),
    "a staged package altered": (
        edited(f"home/embargoed/{W1}/package/tables/on_time.csv", "12", "13"),
        "on_time.csv was altered; move the folder aside: its package is public",
    ),
    "a plan under embargo altered": (
        edited(f"home/embargoed/{W2}/plan.json", '"scale"', '"scales"'),
        "is not the plan that was charged",
    ),
    "the plan beside sealed bytes gone": (
        removed(f"home/embargoed/{W2}/plan.json"),
        "plan.json is gone; restore it, or turnstile run writes it again",
    ),
    "two packages swapped": (
        swapped(f"home/public/{W0}", f"home/public/{W1}"),
        "without a readable manifest",
    ),
    "two weeks' notes swapped": (
        swapped(f"home/public/{W0[:-3]}/{NOTE}", f"home/public/{W1[:-3]}/{NOTE}"),
        "checkpoint-r0.note is the note of another place",
    ),
    "two weeks' proofs swapped": (
        swapped(f"home/public/{W0[:-3]}/{PROOF}", f"home/public/{W1[:-3]}/{PROOF}"),
        "proof-r0.tlog-proof was altered since it was published",
    ),
    "a week's sealed bytes and plan in another's place": (
        swapped(f"home/embargoed/{W1}", f"home/embargoed/{W2}"),
        "is gone; restore it",
    ),
    "the note beside a package as the newest": (
        replaced("home/public/ledger-checkpoint.note", f"home/public/{W1[:-3]}/{NOTE}"),
        "ledger-checkpoint.note is the note of another place",
    ),
    "an old note of a witness under the newest number": (
        replaced("witness/checkpoints/000000000010.note", "witness/checkpoints/000000000008.note"),
        "000000000010.note is the note of another place",
    ),
    "a line more in the newest note": (
        appended_to("home/public/ledger-checkpoint.note", "\n"),
        "ledger-checkpoint.note is no readable checkpoint",
    ),
    "a second signature under a witness's note": (
        appended_to("witness/checkpoints/000000000008.note", "— stranger AAAA\n"),
        "000000000008.note is no readable checkpoint",
    ),
    "the list of public files cut short": (
        edited("home/public/zone-index.txt", "opal/series/index.json\n", ""),
        "is not what the ledger's key signed",
    ),
    "lines of a public key with other ends": (
        edited("home/public/ledger.pub", "\n", " \n"),
        "ledger.pub was altered since it was published",
    ),
    "the series of another programme": (
        added("home/public/itms/index.json"),
        "itms/index.json is a file that nobody published",
    ),
    "sealed bytes linked into the public zone": (
        lambda site, _: (site.home / "public/opal/rows.csv").hardlink_to(  # type: ignore[func-returns-value]
            next((site.home / f"embargoed/{W2}").glob("sealed-*"))
        ),
        "rows.csv is a file that nobody published",
    ),
    "a table of a package a link": (
        link_to_itself(f"home/public/{W0}/tables/on_time.csv"),
        "tables/on_time.csv was altered",
    ),
    "a package a link": (
        link_to_itself(f"home/public/{W0}"),
        "r0/manifest.json is missing since it was published",
    ),
    "a week a link": (
        link_to_itself(f"home/public/{W0[:-3]}"),
        "r0/manifest.json is missing since it was published",
    ),
    "a revision's folder under another name": (
        lambda site, _: (site.home / f"public/{W0}").rename(site.home / f"public/{W0}0"),  # type: ignore[func-returns-value]
        "r00 is no file of a release",
    ),
    "a pipe among the public files": (
        pipe_at("home/public/opal/rows.csv"),
        "rows.csv is a file that nobody published",
    ),
    "a pipe in the place of a manifest": (
        pipe_at(f"home/public/{W0}/manifest.json"),
        "manifest",
    ),
    "a pipe in the place of a card": (
        pipe_at(f"home/public/{W0}/release_card.json"),
        "release_card.json was altered",
    ),
    "a pipe in the place of a proof": (
        pipe_at(f"home/public/{W0[:-3]}/{PROOF}"),
        "is no proof",
    ),
    "a pipe in the place of a plan": (
        pipe_at(f"home/embargoed/{W2}/plan.json"),
        "is not the plan that was charged",
    ),
    "a pipe in the place of a table": (
        pipe_at(f"home/public/{W0}/tables/on_time.csv"),
        "tables/on_time.csv was altered",
    ),
    "rows where a bucket's copy keeps its own books": (
        added("home/public/.store/rows.csv"),
        "rows.csv is a file that nobody published",
    ),
    "the key of the log gone": (
        removed("home/log-key.pem"),
        "log-key.pem is gone, or is not the key of the log",
    ),
    "the key of the log replaced": (
        replaced("home/log-key.pem", "home/ledger-key.pem"),
        "log-key.pem is gone, or is not the key of the log",
    ),
    "the tables said to be of the first version": (
        sql("UPDATE ledger_version SET version_num = '0001'"),
        "is none that this house made",
    ),
    "the indexes of the database dropped": (
        sql("DROP INDEX one_open_attempt", "DROP INDEX one_sealed_attempt"),
        "the index one_open_attempt is gone",
    ),
    "an index of the database that keeps nobody out": (
        sql("DROP INDEX one_sealed_attempt", "CREATE INDEX one_sealed_attempt ON attempt (week)"),
        "the index one_sealed_attempt is gone",
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_verification_finds_it_names_it_and_exits_4(
    name: str, site: Site, stores: Stores, capsys: pytest.CaptureFixture[str]
) -> None:
    change, named = TABLE[name]
    change(site, stores)
    capsys.readouterr()
    assert run("verify", "--json") == 4
    problems = json.loads(capsys.readouterr().out)
    assert any(
        named in problem["problem"] or named in f"entry {problem['entry']}" for problem in problems
    ), problems


BEFORE_A_CHARGE = (
    "the last entry removed, head fixed",
    "a published week forgotten, chain recomputed",
    "chain recomputed over a cheaper loss",
    "private key gone",
    "private key replaced",
    "public key replaced in the public zone",
    "witness gone",
    "witness unmounted",
    "package manifest edited",
    "a second package put beside",
    "sealed bytes of a week that was never drawn",
    "staged package of other bytes",
    "an entry of the future",
)


@pytest.mark.parametrize("name", BEFORE_A_CHARGE)
def test_nothing_is_charged_after_it(name: str, site: Site, stores: Stores) -> None:
    TABLE[name][0](site, stores)
    files, before = _files(site), _spent(site)
    with pytest.raises(IntegrityError, match="nothing was charged"):
        site.draw(3)
    assert _files(site) == files
    assert _spent(site) == before


def _files(site: Site) -> dict[str, str]:
    """Every file of packages, sealed bytes and witnesses."""
    places = (*site.home.glob("public/**/*"), *site.home.glob("embargoed/**/*"))
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (*places, *site.witness.glob("**/*"))
        if path.is_file()
    }


def _spent(site: Site) -> list[tuple[str, str]]:
    return rows(site.url, "SELECT scope, spent_epsilon_micro FROM account ORDER BY 1, week")


def test_an_intact_site_is_found_intact_and_goes_on(site: Site) -> None:
    """The table's negative control."""
    site.publish(2)
    site.publish(3)
    assert run("verify") == 0


def test_a_trusted_key_from_outside_unmasks_a_forger_who_owns_everything(
    site: Site, stores: Stores, tmp_path: Path
) -> None:
    """Who replaces key, facts, notes and witness together is seen by who kept the public key."""
    kept = tmp_path / "kept.pub"
    shutil.copy(site.home / "public/ledger.pub", kept)
    assert run("verify", "--key", str(kept)) == 0
    for content in ("", "\n", "no key\n", "turnstile.ledger+00000000+AAAA\n"):
        (tmp_path / "other.pub").write_text(content)
        assert run("verify", "--key", str(tmp_path / "other.pub")) == 2
    key_replaced("private")(site, stores)
    assert run("rotate-key", "--person", "eve", "--reason", "mine now") == 0
    assert run("verify") == 0
    assert run("verify", "--key", str(kept)) == 4


def test_an_auditor_without_private_keys_verifies_by_the_public_key_that_was_kept(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody gives an auditor's machine the keys that sign; on the authority's they are missed."""
    kept = tmp_path / "kept.pub"
    shutil.copy(site.home / "public/ledger.pub", kept)
    for key in site.home.glob("*-key.pem"):
        key.unlink()
    assert run("verify", "--key", str(kept)) == 0
    capsys.readouterr()
    assert run("verify") == 4
    said = capsys.readouterr()
    assert "does not verify: key: " in said.err
    assert [line.partition(":")[0] for line in said.out.splitlines()] == ["key", "log"]
    next(site.home.glob("public/*/*/r0/release_card.json")).write_text("{}")
    assert run("verify", "--key", str(kept)) == 4


def test_of_two_copies_with_a_shared_witness_the_second_is_refused(
    site: Site, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = replace(site.copy_of(stores, tmp_path / "copy"))
    shutil.rmtree(copy.witness)
    copy.witness.symlink_to(site.witness)
    site.at(monkeypatch).draw(3)
    with pytest.raises(IntegrityError, match="old copy"):
        copy.at(monkeypatch).draw(3)


def test_a_fork_without_a_shared_witness_cannot_be_seen(
    site: Site, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documented in the runbook: nothing in either copy names the other."""
    copy = site.copy_of(stores, tmp_path / "copy")
    site.at(monkeypatch).draw(3)
    copy.at(monkeypatch).draw(3)
    assert run("verify") == 0


def test_a_cap_raised_in_the_programme_file_is_no_tamper_but_a_fact(site: Site) -> None:
    site.publish(3, caps=(Cap(TRIP, epsilon_micro=9 * LOSS_MICRO), *WIDE[1:]))
    assert run("verify") == 0
    assert [e.kind for e in site.ledger.entries()].count(EntryKind.CAP_SET) == 2


@pytest.mark.parametrize("name", ["opal/rows.csv", "rows.parquet", f"{W0[:-3]}/withdrawn-r0.json"])
def test_what_was_planted_is_not_signed_by_the_next_publication(site: Site, name: str) -> None:
    (site.home / "public" / name).write_text("card,time")
    site.publish(3)
    site.ledger.sign_public_zone()
    assert run("verify") == 4
    (site.home / "public" / name).unlink()
    assert run("verify") == 0
