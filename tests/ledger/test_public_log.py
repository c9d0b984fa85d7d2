"""The transparency log of a ledger, as it lies in the public zone, and what cosigners say of it."""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cosigner import SECONDS, Witness, serving
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from disaster_site import WHO, Site, lived_once, run
from ledger_asks import noon, week_number
from tampers import cheaper, recomputed

from conftest import Stores
from turnstile.cli import main
from turnstile.errors import InputError, IntegrityError
from turnstile.ledger.custody.signed_note import Signer
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.tlog.checkpoints import (
    Verifier,
    checkpoint_text,
    parse_checkpoint,
    parse_proof,
    parse_step,
)
from turnstile.ledger.tlog.merkle import is_consistent, is_included
from turnstile.ledger.tlog.public_log import PublicLog
from turnstile.operations.journal import Journal
from turnstile.operations.watchdog.last_verification import tell_verification
from turnstile.operations.watchdog.private_comparison import of_looks
from turnstile.operations.watchdog.watch import cosigned
from turnstile.publishing.carried.verify_package import SEALED_PROOF, log_findings
from turnstile.settings import Settings, system_clock

pytestmark = pytest.mark.parametrize("stores", ["sqlite"], indirect=True)


@pytest.fixture(scope="module")
def lived(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Two published weeks."""
    return lived_once(
        stores, tmp_path_factory.mktemp("lived"), lambda site: (site.publish(0), site.publish(1))
    )


@pytest.fixture
def witness() -> Iterator[Witness]:
    with serving(Witness()) as served:
        yield served


def log_of(site: Site) -> Path:
    (folder,) = sorted((site.home / "public/ledger-log").iterdir())
    return folder


def enrolled(site: Site, witness: Witness) -> Witness:
    """Let a witness know the log, and the ledger know the witness."""
    witness.log = (log_of(site) / "log.pub").read_text()
    (site.home / "log-policy.txt").write_text(witness.policy)
    return witness


def test_a_checkpoint_leads_to_the_newest_and_the_notes_entries_are_in_it(site: Site) -> None:
    site.publish(2)
    folder = log_of(site)
    key = Verifier.of((folder / "log.pub").read_text())
    sizes = sorted(int(path.name) for path in (folder / "checkpoints").iterdir())
    at = parse_checkpoint((folder / "checkpoints" / str(sizes[0])).read_text())
    assert at.is_signed_by(key)
    climbed = 0
    while (step := folder / "steps" / str(at.size)).exists():
        old, proof, text = parse_step(step.read_text())
        later = parse_checkpoint(text)
        assert old == at.size < later.size
        assert later.is_signed_by(key)
        assert is_consistent(old, later.size, at.root, later.root, proof)
        at, climbed = later, climbed + 1
    newest = parse_checkpoint((folder / "checkpoint").read_text())
    assert (at.size, at.root, climbed) == (newest.size, newest.root, 2)
    for n in range(3):
        beside = site.home / "public/opal" / week_number(n)
        proven = parse_proof((beside / "proof-r0.tlog-proof").read_text())
        note = (beside / "checkpoint-r0.note").read_text().split("\n")
        checkpoint = parse_checkpoint(proven.checkpoint)
        assert proven.index == int(note[1]) - 1
        assert is_included(proven.data, proven.index, checkpoint.size, proven.path, checkpoint.root)
        assert checkpoint.is_signed_by(key)
    assert run("verify") == 0


@pytest.mark.parametrize("is_rewritten", [True, False])
def test_who_kept_a_checkpoint_sees_a_ledger_that_was_rewritten_with_all_its_keys(
    site: Site, stores: Stores, *, is_rewritten: bool
) -> None:
    """Ledger, notes, proofs and log made anew by their owner's own program, every one signed."""
    folder, kept = log_of(site), (log_of(site) / "checkpoint").read_text()
    package = site.home / "public/opal" / week_number(0) / "r0"

    def seen() -> list[str]:
        shutil.copy(package.parent / "proof-r0.tlog-proof", package / SEALED_PROOF)
        return [*log_findings(str(package), package, None, None, kept)]

    assert seen() == []
    recomputed(cheaper if is_rewritten else lambda facts: facts, notes=True)(site, stores)
    log = {path for path in folder.rglob("*") if path.is_file()} - {folder / "log.pub"}
    for path in (*log, *site.home.glob("public/**/*.tlog-proof")):
        path.unlink()
    run("republish")
    assert {path for path in folder.rglob("*") if path.is_file()} - {folder / "log.pub"}
    told = "the log does not grow from a checkpoint of before: its ledger was rewritten"
    assert seen() == ([told] if is_rewritten else [])


def test_two_ledgers_with_the_same_facts_have_other_hashes(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = set()
    for name in ("one", "other"):
        with monkeypatch.context() as patch:
            site = Site(tmp_path / name, stores.new(), has_witness=False).at(patch)
            site.publish(0)
            first = next(iter(site.ledger.entries()))
            assert len(first.body["blinding"]) == 32
            roots.add(first.hash)
    assert len(roots) == 2


def test_no_file_of_the_log_holds_a_person_a_reason_or_a_folder(site: Site) -> None:
    private = ("olga-secret", "a-secret-reason", str(site.home), "opal/2016-W")
    run("confirm-clock", "--person", private[0], "--reason", private[1])
    site.publish(2)
    texts = [path.read_text() for path in log_of(site).rglob("*") if path.is_file()]
    texts += [path.read_text() for path in (site.home / "public").rglob("*.tlog-proof")]
    assert len(texts) > 9
    for text in texts:
        for word in (*private, f"{system_clock().year}-"):  # base64 holds no hyphen by chance
            assert word not in text


PLANTED = {
    "a checkpoint altered": lambda log: _edit(log / "checkpoints", "turnstile-", "turnstile+"),
    "a checkpoint of another size": lambda log: shutil.copy(
        next((log / "checkpoints").iterdir()), log / "checkpoints/3"
    ),
    "a step altered": lambda log: _edit(log / "steps", "old ", "old 1"),
    "a step under a false signature": lambda log: _signed_falsely(next((log / "steps").iterdir())),
    "a further line in a checkpoint": lambda log: _add_line(log / "checkpoints"),
    "a further line in a step": lambda log: _add_line(log / "steps"),
    "the newest put back": lambda log: shutil.copy(
        min((log / "checkpoints").iterdir(), key=lambda checkpoint: int(checkpoint.name)),
        log / "checkpoint",
    ),
    "all of it deleted": shutil.rmtree,
    "a checkpoint deleted": lambda log: min((log / "checkpoints").iterdir()).unlink(),
    "a step deleted": lambda log: min((log / "steps").iterdir(), key=_size).unlink(),
    "the newest deleted": lambda log: (log / "checkpoint").unlink(),
    "a cosignature of nobody": lambda log: _made(log / "cosignatures/rows.csv"),
    "bytes that are no text": lambda log: (log / "checkpoints/3").write_bytes(b"\xff"),
    "a folder for a checkpoint": lambda log: (log / "checkpoints/3").mkdir(),
    "a file of nobody": lambda log: (log / "rows.csv").write_text("card,time\n"),
    "a hidden file": lambda log: (log / ".rows.csv").write_text("card,time\n"),
    "its key replaced": lambda log: (log / "log.pub").write_text("evil+deadbeef+AQIDBA==\n"),
    "its key extended": lambda log: _edit(log, "\n", "\ncard,time\n", "log.pub"),
    "its key deleted": lambda log: (log / "log.pub").unlink(),
    "a log of nobody": lambda log: shutil.copytree(log, log.with_name("00000000")),
    "a proof altered": lambda log: _edit(
        log.parents[1] / "opal" / week_number(0), "index ", "index 1", "*.tlog-proof"
    ),
}


def _made(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("card,time\n")


def _add_line(folder: Path) -> None:
    """Add what reads as a signature, and says what no log signed."""
    with min(folder.iterdir(), key=_size).open("a") as file:
        file.write(f"— rows.example/4711 {base64.b64encode(b'card,time,place').decode()}\n")


def _signed_falsely(path: Path) -> None:
    """Change a digit of the signature, at the end of the file."""
    text = path.read_text()
    path.write_text(text[:-9] + ("A" if text[-9] != "A" else "B") + text[-8:])


def _size(path: Path) -> int:
    return int(path.name)


def _edit(folder: Path, before: str, after: str, pattern: str = "*") -> None:
    path = min(folder.glob(pattern))
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_in_the_log_is_found(name: str, site: Site) -> None:
    site.publish(2)
    assert site.ledger.verify() == ()
    PLANTED[name](log_of(site))
    findings = [finding for finding in site.ledger.verify() if finding.check == "log"]
    assert findings, name
    assert str(site.home / "public") in findings[0].problem


@pytest.mark.parametrize("kind", ["steps", "checkpoints", "cosignatures"])
def test_what_a_process_that_was_killed_left_beside_its_files_stops_nothing(
    kind: str, site: Site
) -> None:
    """A draft of a file that never got its name: found by the simulated world."""
    (folder,) = (site.home / "public/ledger-log").iterdir()
    (folder / kind).mkdir(exist_ok=True)
    draft = folder / kind / ".17.d6f1feb95f74ed46"
    draft.write_text("old 17\nAAAA")
    assert site.ledger.verify() == ()
    site.publish(2)
    assert site.ledger.verify() == ()
    assert draft.exists()  # somebody may write it at this moment
    os.utime(draft, (0, 0))
    site.publish(3)
    assert not draft.exists()


@pytest.mark.parametrize("is_left", [False, True], ids=["in force", "left"])
def test_a_step_that_a_killed_process_owed_is_written_as_is_said_or_by_the_next_publication(
    is_left: bool,  # noqa: FBT001 - a parameter
    site: Site,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site.publish(2)
    (first, *_) = sorted((log_of(site) / "steps").iterdir(), key=lambda step: int(step.name))
    kept = first.read_text()
    if is_left:
        assert run("begin-log", *WHO) == 0
    for write in (lambda: run("republish"), lambda: site.publish(3)):
        first.unlink()
        capsys.readouterr()
        assert run("verify") == 4
        assert "turnstile ledger republish writes it" in "".join(capsys.readouterr())
        write()
        assert first.read_text() == kept
        assert run("verify") == 0


def test_nobody_is_led_to_a_checkpoint_that_the_log_did_not_sign(site: Site) -> None:
    newest = log_of(site) / "checkpoint"
    kept = newest.read_text()
    (log_of(site) / "checkpoints/99999").write_text("planted\n")
    with pytest.raises(IntegrityError, match="no checkpoint that this log signed"):
        site.publish(2)
    assert newest.read_text() == kept


@pytest.mark.parametrize("kind", ["steps", "checkpoints"])
def test_what_a_loss_of_power_tore_of_the_log_is_taken_away_and_written_again(
    site: Site, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """Nothing said how, found by simulated worlds."""
    (first, *_) = sorted((log_of(site) / kind).iterdir(), key=lambda file: int(file.name))
    kept = first.read_text()
    first.chmod(0o600)
    first.write_text(kept[:40])
    taken = set[Path]()
    while True:  # a step leads from its checkpoint: without that one it is none
        run("verify")
        said = "".join(capsys.readouterr())
        if not (named := set(map(Path, re.findall(r"(/\S+) is no (?:step|checkpoint)", said)))):
            break
        assert "take it away, and turnstile ledger republish writes" in said
        taken |= named
        for path in named:
            path.unlink()
    assert first in taken
    run("republish")  # of these packages, which have no tables, no series can be made
    assert first.read_text() == kept
    assert run("verify") == 0


def test_a_proof_that_a_loss_of_power_tore_is_made_again(site: Site) -> None:
    proof = site.home / f"public/opal/{week_number(1)}/proof-r0.tlog-proof"
    kept = proof.read_text()
    proof.write_text("")
    assert run("verify") == 4
    site.publish(2)
    assert proof.read_text() == kept
    assert run("verify") == 0


@pytest.mark.parametrize("what", ["is no proof", "does not prove its entry"])
def test_a_proof_of_a_log_that_was_left_is_taken_away_and_made_again(
    site: Site, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    """The new log makes other bytes, so nothing tells a torn proof from a planted one by itself."""
    proof = site.home / f"public/opal/{week_number(1)}/proof-r0.tlog-proof"
    torn = proof.read_text()[:-20]
    (site.home / "log-key.pem").unlink()
    assert run("begin-log", *WHO) == 0
    run("republish")  # of these packages, which have no tables, no series can be made
    assert run("verify") == 0
    kept = proof.read_text()
    of_another = str(replace(parse_proof(kept), data=bytes(32)))
    proof.write_text(torn if what == "is no proof" else of_another)
    run("republish")
    capsys.readouterr()
    assert run("verify") == 4  # what stands there may be somebody's
    said = "".join(capsys.readouterr())
    assert f"{proof} {what}; take it away, and turnstile ledger republish writes" in said
    proof.unlink()
    run("republish")
    assert parse_proof(proof.read_text()).index == parse_proof(kept).index
    assert run("verify") == 0


@pytest.mark.parametrize("is_left", [False, True])
def test_a_proof_whose_writer_was_killed_before_the_list_is_listed_by_the_next(
    site: Site, monkeypatch: pytest.MonkeyPatch, *, is_left: bool
) -> None:
    """Found by a simulated world: it was called altered for ever."""
    proof = site.home / f"public/opal/{week_number(1)}/proof-r0.tlog-proof"
    of_before = str(replace(parse_proof(proof.read_text()), index=0))
    listed = (site.home / "public/zone-index.txt").read_text()
    proof.write_text(of_before)
    site.ledger.sign_public_zone()  # the note names another entry: it is made anew
    assert (site.home / "public/zone-index.txt").read_text() == listed
    (site.home / "log-key.pem").unlink()
    assert run("begin-log", *WHO) == 0
    proof.write_text(of_before)
    with monkeypatch.context() as killed:
        killed.setattr("turnstile.ledger.ledger.write_index", _killed)
        with pytest.raises(KeyboardInterrupt):
            site.ledger.sign_public_zone()
    assert parse_proof(proof.read_text()).index > 0
    if is_left:
        (site.home / "log-key.pem").unlink()
        assert run("begin-log", *WHO) == 0  # which signs the list, too
    else:
        assert run("verify") == 4
        site.ledger.sign_public_zone()
    assert run("verify") == 0


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("left", ["of another proof", None])
def test_a_proof_that_is_none_is_taken_away_and_made_again(
    site: Site, capsys: pytest.CaptureFixture[str], left: str | None
) -> None:
    """Worlds stayed at exit 4 for ever: it was said to restore it, and no backup had it."""
    proof = site.home / f"public/opal/{week_number(1)}/proof-r0.tlog-proof"
    kept = proof.read_text()
    proof.write_text(left or kept.replace("index ", "index 9", 1))
    assert run("verify") == 4
    assert "take it away, and turnstile ledger republish" in "".join(capsys.readouterr())
    proof.unlink()
    run("republish")  # of these packages, which have no tables, no series can be made
    assert proof.read_text() == kept
    assert run("verify") == 0


def test_no_second_root_is_signed_where_a_proof_holds_another(site: Site) -> None:
    """A ledger put back and grown again beside a package of the lost one would sign twice."""
    run("confirm-clock", *WHO)
    length, begun = site.ledger.head()[0], site.ledger.parties().logs[-1]
    (path, *_) = sorted((site.home / "public").rglob("proof-r0.tlog-proof"))
    signer = Signer.load(site.home / "log-key.pem")
    forked = signer.note(begun.origin, checkpoint_text(begun.origin, length, bytes(32)))
    path.write_text(str(replace(parse_proof(path.read_text()), checkpoint=forked)))
    with pytest.raises(IntegrityError, match="another root"):
        site.ledger.sign_public_zone()
    assert not (log_of(site) / "checkpoints" / str(length)).exists()
    assert run("recover", *WHO) == 0
    assert len(site.ledger.parties().logs) == 2


def test_a_ledger_put_back_signs_nothing_that_its_log_has_outgrown(
    site: Site, stores: Stores
) -> None:
    older = stores.copy_of(site.url)
    site.publish(2)
    before = {path: path.read_bytes() for path in log_of(site).rglob("*") if path.is_file()}
    restored = Ledger.open(
        older, clock=noon, public=site.home / "public", embargoed=site.home / "embargoed"
    )
    assert any(
        finding.check == "log" and "old copy" in finding.problem for finding in restored.verify()
    )
    with pytest.raises(IntegrityError, match="nothing more is signed"):
        restored.sign_public_zone()
    assert before == {path: path.read_bytes() for path in log_of(site).rglob("*") if path.is_file()}


def test_after_a_loss_for_good_another_log_begins_and_the_old_one_still_stands(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, old = stores.copy_of(site.url), log_of(site)
    site.publish(2)
    shutil.rmtree(site.witness)  # the entries themselves are nowhere any more
    site.url = older
    site.has_witness = False
    site.at(monkeypatch)
    assert run("recover", *WHO) == 0
    folders = sorted((site.home / "public/ledger-log").iterdir())
    assert len(site.ledger.parties().logs) == 2
    site.ledger.sign_public_zone()
    folders = sorted((site.home / "public/ledger-log").iterdir())
    assert len(folders) == 2
    assert old in folders
    assert [finding for finding in site.ledger.verify() if finding.check == "log"] == []


@pytest.mark.parametrize("harm", ["a stranger's file", "a step that is gone", "an old newest"])
def test_a_recovery_leaves_a_log_that_can_go_on_as_it_is(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    """What is to be taken away or made again costs no log: whoever kept a checkpoint climbs on."""
    folder, kept = log_of(site), (log_of(site) / "checkpoint").read_text()
    site.publish(2)
    if harm == "a stranger's file":
        (folder / "x").write_text("planted")
    elif harm == "a step that is gone":
        min((folder / "steps").iterdir()).unlink()
    else:
        (folder / "checkpoint").write_text(kept)
    site = replace(site, url=stores.new()).at(monkeypatch)
    for _ in range(2):
        assert run("recover", *WHO) == (4 if (folder / "x").exists() else 0)  # nothing is signed
        assert len(site.ledger.parties().logs) == 1
        assert (site.home / "log-key.pem").exists()
        assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    (folder / "x").unlink(missing_ok=True)
    site.ledger.sign_public_zone()
    assert run("verify") == 0
    package = site.home / "public/opal" / week_number(2) / "r0"
    shutil.copy(package.parent / "proof-r0.tlog-proof", package / SEALED_PROOF)
    assert [*log_findings(str(package), package, None, None, kept)] == []


def test_a_stranger_in_the_log_is_said_to_be_taken_away(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    (log_of(site) / "x").write_text("planted")
    assert run("republish") == 4
    assert "x is a file that nobody published; find out what it holds; take it away" in (
        capsys.readouterr().out
    )


def test_a_package_that_was_built_before_its_log_was_left_proves_its_seal(site: Site) -> None:
    """It cannot change any more; its log had no checkpoint of the size that its proof names."""
    proof = site.ledger.proof_of_seal(site.draw(2).key)
    assert proof is not None
    assert run("begin-log", *WHO) == 0
    package = site.publish(2)
    (package / SEALED_PROOF).write_text(proof)
    site.ledger.sign_public_zone()
    assert [*log_findings(str(package), package, None, None, None)] == []


@pytest.mark.parametrize("is_log", [True, False])
def test_a_recovery_begins_another_log_where_a_later_one_is_nowhere_in_the_ledger(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch, *, is_log: bool
) -> None:
    """The older home signs under a key that was left; a folder of no log is a stranger's."""
    older, key = stores.copy_of(site.url), (site.home / "log-key.pem").read_bytes()
    if is_log:
        assert run("begin-log", *WHO) == 0
        site.publish(2)
        later = site.ledger.parties().logs[-1]
    else:
        (site.home / "public/ledger-log/deadbeef").mkdir()
    (site.home / "log-key.pem").unlink()
    (site.home / "log-key.pem").write_bytes(key)
    shutil.rmtree(site.witness)
    site = replace(site, url=older, has_witness=False).at(monkeypatch)
    for _ in range(2):
        run("recover", *WHO)
        assert len(site.ledger.parties().logs) == (2 if is_log else 1)
    if is_log:
        begun = site.ledger.parties().logs[-1]
        assert begun.public_line != later.public_line
        assert Verifier.of(later.public_line).digits in begun.earlier


def test_a_recovery_begins_another_log_where_proofs_alone_are_left(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the same key and name two histories would be signed."""
    before = site.ledger.parties().logs[0]
    shutil.rmtree(site.home / "public/ledger-log")
    shutil.rmtree(site.witness)
    site = replace(site, url=stores.new(), has_witness=False).at(monkeypatch)
    run("recover", *WHO, "--family", "opal=opal_cards")
    assert site.ledger.parties().logs[-1].public_line != before.public_line


def test_a_key_of_a_log_that_a_disk_tore_is_set_aside(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found by a simulated world: begin-log asked for the key that it should replace."""
    path = site.home / "log-key.pem"
    torn = path.read_bytes()[:40]
    path.chmod(0o600)
    path.write_bytes(torn)
    with pytest.raises(InputError, match="begin another log: turnstile ledger begin-log"):
        site.publish(2)
    assert run("begin-log", *WHO) == 0, capsys.readouterr().err
    (aside,) = site.home.glob("log-key-unreadable-*.pem")
    assert aside.read_bytes() == torn
    site.ledger.sign_public_zone()
    assert [finding for finding in site.ledger.verify() if finding.check == "log"] == []


@pytest.mark.parametrize("is_cut", [True, False])
@pytest.mark.parametrize("of", ["the log in force", "a log left", "a log whose beginning is lost"])
def test_the_public_key_of_a_log_that_a_loss_of_power_cut_is_written_again(
    site: Site,
    stores: Stores,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    of: str,
    *,
    is_cut: bool,
) -> None:
    """Found by simulated worlds (seeds 106, 231, 268, 279): nothing wrote that of a log left.

    Another one stays, for people to look at, and comes once they took it away.
    """
    path = log_of(site) / "log.pub"
    if of == "a log left":
        assert run("begin-log", *WHO) == 0
    if of == "a log whose beginning is lost":
        monkeypatch.setenv("TURNSTILE_WITNESS", "")
        site = replace(site, url=stores.new(), has_witness=False).at(monkeypatch)
        assert run("recover", *WHO, "--family", "opal=opal_cards") == 0
        assert path.parent.name in site.ledger.parties().logs[-1].earlier
    assert run("verify") == 0, capsys.readouterr().out
    whole = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(whole[:20] if is_cut else whole[:-5] + b"AAAA\n")
    assert run("verify") == 4
    run("republish")
    assert (path.read_bytes() == whole) is is_cut or "lost" in of
    if not is_cut:
        assert run("verify") == 4
        said = capsys.readouterr().out
        problems = ("is not the log's key", "was altered since it was published")
        assert any(f"{path} {problem}; take it away" in said for problem in problems)
        path.unlink()
        run("republish")
    assert path.read_bytes() == whole
    assert run("verify") == 0, capsys.readouterr().out


@pytest.mark.parametrize("what", ["bytes", "a folder", "a link"])
def test_what_stands_in_the_place_of_the_logs_key_stays_and_stops_nothing(
    site: Site, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = log_of(site) / "log.pub"
    path.unlink()
    if what == "bytes":
        path.write_bytes(b"\xff\xfe planted")
    elif what == "a folder":
        path.mkdir()
    else:
        path.symlink_to(site.root / "elsewhere")
        (site.root / "elsewhere").write_bytes(b"")
    run("republish")
    assert run("verify") == 4
    assert f"{path} is not the log's key; take it away" in capsys.readouterr().out
    assert path.is_dir() == (what == "a folder")
    assert path.is_symlink() or path.is_dir() or path.read_bytes() == b"\xff\xfe planted"


def test_a_proof_of_an_entry_that_is_lost_may_be_gone(
    site: Site,
    stores: Stores,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Found by a simulated world (seed 383): a loss of power had cut it, and nobody can make it."""
    proof = site.home / "public/opal" / week_number(0) / "proof-r0.tlog-proof"
    content = proof.read_bytes()
    proof.unlink()
    assert run("verify") == 4  # the control: of an entry that is there
    proof.write_bytes(content)
    monkeypatch.setenv("TURNSTILE_WITNESS", "")
    site = replace(site, url=stores.new(), has_witness=False).at(monkeypatch)
    assert run("recover", *WHO, "--family", "opal=opal_cards") == 0
    proof.write_bytes(content[:50])
    assert run("verify") == 4
    assert f"{proof} is no proof; take it away" in capsys.readouterr().out
    proof.unlink()
    run("republish")
    assert not proof.exists()
    assert run("verify") == 0, capsys.readouterr().out


def test_a_key_of_a_log_that_is_gone_is_made_anew_and_no_name_begins_twice(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a death between setting the old key aside and making the next one."""
    (site.home / "log-key.pem").unlink()
    assert run("recover", *WHO) == 0, capsys.readouterr().err
    assert len(site.ledger.parties().logs) == 2
    begun = site.ledger.parties().logs[-1]
    assert run("begin-log", "--origin", begun.origin, *WHO) == 2
    assert "begun before" in capsys.readouterr().err


def test_a_log_may_begin_again_under_a_name_of_ones_own(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("begin-log", "--origin", "two words", *WHO) == 2
    assert "cannot name a log" in capsys.readouterr().err
    assert run("begin-log", "--origin", "transport.example.org/opal", *WHO) == 0
    site.publish(2)
    begun = site.ledger.parties().logs[-1]
    key = Verifier.of(begun.public_line)
    newest = site.home / "public/ledger-log" / key.key_id.hex() / "checkpoint"
    assert newest.read_text().startswith("transport.example.org/opal\n")
    assert len({log.public_line.partition("+")[2] for log in site.ledger.parties().logs}) == 2
    assert run("verify") == 0


def test_a_ledger_without_a_log_gains_one_over_its_entries(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / "site", stores.new(), has_witness=False).at(monkeypatch)
    with monkeypatch.context() as patch:  # as a version did that knew of no log
        patch.setattr("turnstile.ledger.custody.custody.begin_log", lambda *_: None)
        site.publish(0)
    assert not (site.home / "public/ledger-log").exists()
    site.publish(1)
    assert run("verify") == 0
    proof = site.home / "public/opal" / week_number(0) / "proof-r0.tlog-proof"
    proven = parse_proof(proof.read_text())
    begun = site.ledger.parties().logs[0]
    assert proven.index + 1 < begun.sequence
    assert parse_checkpoint(proven.checkpoint).size == begun.sequence


def _signed_by_another(path: Path) -> None:
    """A line of the cosigner's name and key id, over the same checkpoint, by another key."""
    dash, name, encoded = path.read_text().strip().split(" ")
    content = base64.b64decode(encoded)
    other = Ed25519PrivateKey.generate().sign(b"cosignature/v1")
    line = base64.b64encode(content[:12] + other).decode()
    path.write_text(f"{dash} {name} {line}\n")


COSIGNATURES = {
    "a cosignature by another key": _signed_by_another,
    "a cosignature of another time": lambda path: path.rename(
        path.with_name(f"{path.name.rpartition('.')[0]}.{SECONDS + 99}")
    ),
    "a cosignature of another cosigner": lambda path: path.rename(
        path.with_name(f"{path.name.partition('.')[0]}.00000000.{SECONDS + 1}")
    ),
    "a cosignature cut short": lambda path: path.write_text(path.read_text()[:40]),
    "a cosignature twice in a file": lambda path: path.write_text(2 * path.read_text()),
}


class TestCosigners:
    """Every row of what a cosigner may answer (C2SP tlog-witness)."""

    def test_what_it_signs_stands_beside_the_checkpoint(
        self, site: Site, witness: Witness, capsys: pytest.CaptureFixture[str]
    ) -> None:
        enrolled(site, witness)
        assert run("cosign") == 0
        assert "has cosigned" in capsys.readouterr().out
        checkpoint = parse_checkpoint((log_of(site) / "checkpoint").read_text())
        assert checkpoint.cosigned_at(Verifier.of(witness.vkey)) == SECONDS + 1
        site.publish(2)
        assert witness.asked == [0, checkpoint.size]
        later = parse_checkpoint((log_of(site) / "checkpoint").read_text())
        assert later.size > checkpoint.size
        assert later.cosigned_at(Verifier.of(witness.vkey)) == SECONDS + 2
        assert run("verify") == 0

    @pytest.mark.parametrize("how", COSIGNATURES)
    def test_a_kept_cosignature_that_is_false_is_found(
        self, how: str, site: Site, witness: Witness
    ) -> None:
        enrolled(site, witness)
        assert run("cosign") == 0
        assert run("verify") == 0
        (path,) = (log_of(site) / "cosignatures").iterdir()
        COSIGNATURES[how](path)
        findings = [
            finding for finding in site.ledger.verify() if "is no cosignature" in finding.problem
        ]
        assert len(findings) == 1

    def test_it_says_what_it_saw_last_and_is_asked_from_there(
        self, site: Site, witness: Witness
    ) -> None:
        enrolled(site, witness)
        first = parse_checkpoint(
            min(
                (log_of(site) / "checkpoints").iterdir(),
                key=lambda checkpoint: int(checkpoint.name),
            ).read_text()
        )
        witness.size, witness.root = first.size, first.root
        assert run("cosign") == 0
        assert witness.asked == [0, first.size]
        assert witness.size > first.size

    @pytest.mark.parametrize("fault", [400, 403, 429, 500, 503])
    def test_one_that_is_away_or_refuses_delays_no_publication(
        self, fault: int, site: Site, witness: Witness, capsys: pytest.CaptureFixture[str]
    ) -> None:
        enrolled(site, witness).fault = fault
        assert run("cosign") == 0
        assert str(fault) in capsys.readouterr().out
        site.publish(2)
        assert run("verify") == 0

    def test_one_that_is_silent_delays_no_publication(
        self, site: Site, witness: Witness, capsys: pytest.CaptureFixture[str]
    ) -> None:
        enrolled(site, witness).url = "http://127.0.0.1:9/"
        (site.home / "log-policy.txt").write_text(witness.policy)
        assert run("cosign") == 0
        assert "did not answer" in capsys.readouterr().out
        site.publish(2)

    def test_one_that_does_not_know_the_log_is_told_about_by_a_person(
        self, site: Site, witness: Witness, capsys: pytest.CaptureFixture[str]
    ) -> None:
        enrolled(site, witness).log = None
        assert run("cosign") == 0
        assert "a person enrols it" in capsys.readouterr().out

    def test_one_that_saw_more_than_we_have_is_an_alarm(
        self, site: Site, witness: Witness, capsys: pytest.CaptureFixture[str]
    ) -> None:
        enrolled(site, witness).size = 10**6
        assert run("cosign") == 4
        assert "an old copy was restored, or a twin signs" in capsys.readouterr().out

    def test_two_publications_at_once_are_no_twin(
        self,
        site: Site,
        witness: Witness,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The second had its checkpoint cosigned while the first was asking."""
        enrolled(site, witness)
        plain, others = Witness.answer, [lambda: site.publish(2)]

        def answer(self: Witness, body: str) -> tuple[int, str, str]:
            while others:
                others.pop()()
            return plain(self, body)

        monkeypatch.setattr(Witness, "answer", answer)
        assert run("cosign") == 0, capsys.readouterr().out
        assert "it is asked again" in capsys.readouterr().out
        newest = parse_checkpoint((log_of(site) / "checkpoint").read_text())
        assert (witness.size, len(newest.signatures)) == (newest.size, 2)
        assert run("verify") == 0

    def test_a_checkpoint_of_another_publication_is_asked_for_by_that_one(
        self, site: Site, witness: Witness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It was signed between this one's own and its question, and not asked for yet."""
        enrolled(site, witness)
        assert run("cosign") == 0

        def sign_alone() -> None:
            policy = site.home / "log-policy.txt"
            policy.rename(policy.with_suffix(".aside"))
            site.publish(2)
            policy.with_suffix(".aside").rename(policy)

        plain, others = PublicLog.write, [sign_alone]

        def write(log: PublicLog, sign: Callable[[str], str]) -> None:
            plain(log, sign)
            while others:
                others.pop()()

        monkeypatch.setattr(PublicLog, "write", write)
        assert run("cosign") == 0
        assert run("verify") == 0

    def test_one_that_saw_another_root_is_an_alarm(
        self, site: Site, witness: Witness, capsys: pytest.CaptureFixture[str]
    ) -> None:
        enrolled(site, witness)
        newest = parse_checkpoint((log_of(site) / "checkpoint").read_text())
        witness.size, witness.root = newest.size, bytes(32)
        assert run("cosign") == 4
        assert "another history" in capsys.readouterr().out
        witness.size = min(
            int(checkpoint.name) for checkpoint in (log_of(site) / "checkpoints").iterdir()
        )
        assert run("cosign") == 4

    @pytest.mark.parametrize("silent", [False, True])
    def test_its_alarm_stops_charges_and_stands_until_a_log_is_begun_anew(
        self, *, silent: bool, site: Site, witness: Witness, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A clean look by hand ended the alarm, and the next week was charged over it."""
        (site.home / "operations").mkdir()
        settings = Settings.from_environment()
        journal, ledger = Journal.of(settings), site.ledger
        enrolled(site, witness)
        newest = parse_checkpoint((log_of(site) / "checkpoint").read_text())
        witness.size, witness.root = newest.size, bytes(32)
        said = cosigned(lambda sign: sign(), ledger)
        tell_verification(journal, system_clock(), ledger.head(), said)
        (alarm,) = of_looks(journal)
        assert "cosigner" in str(alarm)
        witness.fault = 503 if silent else None
        assert run("cosign") == (0 if silent else 4)
        run("verify")
        assert list(of_looks(journal)) == [alarm]
        before = ledger.balance()
        with pytest.raises(IntegrityError) as refused:
            site.publish(2)
        assert "cosigner w1 has seen another tree" in str(refused.value)
        for command in ("turnstile doctor", "turnstile ledger begin-log --reason TEXT"):
            assert command in str(refused.value)
        assert ledger.balance() == before
        capsys.readouterr()
        main(["doctor"])
        assert "cosigner: cosigner w1" in capsys.readouterr().out
        assert run("begin-log", *WHO) == 0
        site.publish(2)
        assert run("verify") == 0, capsys.readouterr()
        assert list(of_looks(journal)) == []

    def test_a_line_under_another_key_is_not_kept(
        self, site: Site, witness: Witness, capsys: pytest.CaptureFixture[str]
    ) -> None:
        enrolled(site, witness)
        other = Witness(key=Ed25519PrivateKey.generate(), url=witness.url)
        (site.home / "log-policy.txt").write_text(other.policy)
        assert run("cosign") == 0
        assert "signed nothing under the key" in capsys.readouterr().out
        assert not (log_of(site) / "cosignatures").exists()

    @pytest.mark.parametrize("line", ["witness w1", "witness w1 no+key+here", "listen 8080"])
    def test_a_policy_that_is_none_is_refused_by_its_line(
        self, line: str, site: Site, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (site.home / "log-policy.txt").write_text(f"# policy\n{line}\n")
        assert run("cosign") == 2
        assert "line 2" in capsys.readouterr().err

    @pytest.mark.usefixtures("site")
    def test_nobody_is_asked_where_nobody_is_named(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("cosign") == 0
        assert "log-policy.txt" in capsys.readouterr().out


UNSIGNED = {
    "rows among the series": ("opal/series/cards.csv", "is a file that nobody published"),
    "rows among the explorer": ("opal/explore/cards.csv", "is a file that nobody published"),
    "a page of nobody": ("rail/index.html", "is a file that nobody published"),
    "an index altered": ("opal/series/index.json", "was altered"),
    "a record of a release altered": ("opal/{}/proof-r0.tlog-proof", "was altered"),
    "an index removed": ("opal/series/index.json", "is missing"),
    "a note removed": ("opal/{}/checkpoint-r0.note", "is missing"),
}


@pytest.mark.parametrize("name", UNSIGNED)
def test_what_nobody_wrote_is_signed_by_no_later_signing(name: str, site: Site) -> None:
    """Found by a hostile reader: the next signing took up whatever lay among the series."""
    path, problem = UNSIGNED[name]
    path = path.format(week_number(0))
    target = site.home / "public" / path
    if "missing" in problem:
        target.unlink()
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("card,time\n")
    for sign in (lambda: run("cosign"), lambda: run("rotate-key", *WHO), lambda: run("cosign")):
        assert sign() == 0
        problems = [
            finding.problem for finding in site.ledger.verify() if finding.check == "public zone"
        ]
        assert len(problems) == 1, problems
        assert problems[0].startswith(f"{target} {problem}")
    if not path.endswith("index.json"):
        site.publish(2)  # who writes the series says what it wrote
        problems = [
            finding.problem for finding in site.ledger.verify() if finding.check == "public zone"
        ]
        assert len(problems) == 1, problems
    else:
        site.publish(2)
        assert site.ledger.verify() == ()


@pytest.mark.parametrize("planted", [b"\xff\xfe rows", b"card,time\n", b""])
def test_bytes_in_the_place_of_a_proof_stay_unless_a_loss_of_power_left_them(
    site: Site, planted: bytes
) -> None:
    """What is no text was read as an empty file, and written over."""
    proof = site.home / "public/opal" / week_number(0) / "proof-r0.tlog-proof"
    whole = proof.read_bytes()
    proof.write_bytes(planted)
    run("republish")
    assert proof.read_bytes() == (planted or whole)
    assert run("verify") == (4 if planted else 0)
    proof.unlink()
    run("republish")
    assert run("verify") == 0
