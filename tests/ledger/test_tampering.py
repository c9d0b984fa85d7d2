"""Whatever is altered behind the ledger's back, verification names it; and a draw is refused.

What its rows and files alone show is in the table of test_disasters.py.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from ledger_asks import BINDINGS, ask, drawn, noon, published, sealed, week_number
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from conftest import Stores, run_as_server
from turnstile.errors import IntegrityError
from turnstile.ledger import verification
from turnstile.ledger.custody import release_files
from turnstile.ledger.custody.signed_note import Signer
from turnstile.ledger.encoding import canonical
from turnstile.ledger.entries import EntryKind, make_entry
from turnstile.ledger.ledger import Ledger


def scalar(url: str, query: str) -> str:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return str(connection.execute(text(query)).scalar_one())


def problems(url: str, **places: object) -> list[str]:
    findings = Ledger.open(url, clock=noon, **places).verify()  # type: ignore[arg-type]
    return [str(finding) for finding in findings]


@pytest.fixture
def lived(ledger: Ledger) -> Ledger:
    """A ledger with a few facts: 1 caps, 2-5 a publication, 6-7 a draw."""
    published(ledger, ask())
    drawn(ledger, ask(week_number(1)))
    assert ledger.verify() == ()
    assert ledger.head()[0] == 7
    return ledger


@pytest.mark.usefixtures("lived")
class TestAnEntry:
    def test_that_was_changed_is_named(self, stores: Stores, url: str) -> None:
        change = "UPDATE entry SET record = replace(record, '4000000', '1000000')"
        stores.tamper(url, f"{change} WHERE sequence = 2")
        assert any(problem.startswith("chain: entry 2:") for problem in problems(url))

    def test_that_was_changed_with_its_hash_breaks_the_next_one(
        self, stores: Stores, url: str
    ) -> None:
        record = scalar(url, "SELECT record FROM entry WHERE sequence = 2")
        forged = record.replace("4000000", "1000000")
        digest = hashlib.sha256(forged.encode()).hexdigest()
        stores.tamper(
            url, f"UPDATE entry SET record = '{forged}', hash = '{digest}' WHERE sequence = 2"
        )
        assert any(problem.startswith("chain: entry 3:") for problem in problems(url))

    def test_that_was_removed_is_named(self, stores: Stores, url: str) -> None:
        stores.tamper(url, "DELETE FROM entry WHERE sequence = 4")
        assert any(
            problem.startswith("chain: entry 5: follows entry 3") for problem in problems(url)
        )

    def test_that_was_last_and_removed_is_missed(self, stores: Stores, url: str) -> None:
        stores.tamper(url, "DELETE FROM entry WHERE sequence = 7")
        assert any("entry 7" in problem for problem in problems(url))

    def test_that_changed_places_is_named(self, stores: Stores, url: str) -> None:
        stores.tamper(
            url,
            "UPDATE entry SET sequence = 99 WHERE sequence = 3",
            "UPDATE entry SET sequence = 3 WHERE sequence = 4",
            "UPDATE entry SET sequence = 4 WHERE sequence = 99",
        )
        findings = problems(url)
        assert any(finding.startswith("chain: entry 3: its columns") for finding in findings)
        assert any(finding.startswith("chain: entry 4:") for finding in findings)

    def test_that_was_appended_with_a_forged_hash_is_named(self, stores: Stores, url: str) -> None:
        stores.tamper(url, *forgery(url, hash_of=lambda _: "f" * 64))
        assert any(problem.startswith("chain: entry 8: its hash") for problem in problems(url))

    def test_that_was_appended_with_a_fitting_hash_is_named_by_its_meaning(
        self, stores: Stores, url: str
    ) -> None:
        stores.tamper(url, *forgery(url))
        findings = problems(url)
        assert findings == ["meaning: entry 8: states void of an attempt that is drawing"]

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE entry SET record = ''",
            "DELETE FROM entry",
            "DELETE FROM attempt",
            "DELETE FROM account",
            "UPDATE attempt SET state = 'void' WHERE state = 'drawing'",
            "UPDATE account SET spent_epsilon_micro = 0",
        ],
    )
    def test_or_a_state_cannot_be_altered_while_the_guards_stand(
        self, url: str, statement: str
    ) -> None:
        with (
            create_engine(url, poolclass=NullPool).begin() as connection,
            pytest.raises(Exception, match="never|no such move|comes back"),
        ):
            connection.execute(text(statement))


@pytest.mark.parametrize("table", ["account", "draw_lease", "family"])
def test_a_trigger_beside_the_guards_is_named(
    stores: Stores, url: str, lived: Ledger, table: str
) -> None:
    """One that lets an account stay as it is once hid three caps' worth of draws."""
    assert lived.verify() == ()
    body = "BEGIN SELECT RAISE(IGNORE); END"
    if stores.kind == "postgresql":
        made = "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; "
        run_as_server(url, f"{made}END$$")
        body = "FOR EACH ROW EXECUTE FUNCTION nothing()"
    run_as_server(url, f"CREATE TRIGGER zz BEFORE UPDATE ON {table} {body}")
    assert problems(url) == ["guard: the trigger zz is none that this house made"]


def forgery(url: str, hash_of: object = None) -> tuple[str, str]:
    """Statements that append a refund and move the head."""
    head = (7, scalar(url, "SELECT hash FROM head"))
    attempt = "opal/2016-W31/r0#1"
    body = {"attempt": attempt, "key": "opal/2016-W31/r0", "reason": "refund"}
    entry = make_entry(head, "2016-08-09T12:00:00+00:00", EntryKind.VOIDED, body)
    digest = hash_of(entry) if callable(hash_of) else entry.hash
    columns = f"8, 'voided', 'opal/2016-W31/r0', '{attempt}', '{entry.record}', '{digest}'"
    return (
        f"INSERT INTO entry VALUES ({columns})",
        f"UPDATE head SET sequence = 8, hash = '{digest}'",
    )


class TestARestoredOldCopy:
    def test_is_named_and_may_not_draw(self, stores: Stores, url: str, tmp_path: Path) -> None:
        places = {"public": tmp_path / "public", "witnesses": [tmp_path / "second"]}
        ledger = Ledger.open(url, clock=noon, **places)  # type: ignore[arg-type]
        publish_package(ledger, tmp_path / "public", 0)
        backup = stores.copy_of(url)
        publish_package(ledger, tmp_path / "public", 1)
        assert ledger.verify() == ()
        restored = Ledger.open(backup, clock=noon, **places)  # type: ignore[arg-type]
        for week in (1, 2):  # the one that is public, and one that never was
            with pytest.raises(IntegrityError, match="old copy"):
                restored.reserve(ask(week_number(week)))
        assert any("old copy" in str(finding) for finding in restored.verify())

    def test_that_lived_on_is_named_and_may_not_draw(
        self, stores: Stores, url: str, tmp_path: Path
    ) -> None:
        places = {"witnesses": [tmp_path / "second"], "key": tmp_path / "key.pem"}
        ledger = Ledger.open(url, clock=noon, **places)  # type: ignore[arg-type]
        backup = stores.copy_of(url)
        drawn(ledger, ask())
        astray = Ledger.open(backup, clock=noon)  # lives on without its witnesses, and overtakes
        for n in range(3):
            sealed(astray, ask(week_number(n), programme="other"), f"artefact-{n}")
        restored = Ledger.open(backup, clock=noon, **places)  # type: ignore[arg-type]
        with pytest.raises(IntegrityError, match="history was replaced"):
            restored.reserve(ask(week_number(9)))
        assert any("history was replaced" in str(finding) for finding in restored.verify())

    def test_lets_no_hold_go(self, stores: Stores, url: str, tmp_path: Path) -> None:
        """What it wrote now would part it from its witness for good."""
        places = {"witnesses": [tmp_path / "second"], "key": tmp_path / "key.pem"}
        ledger = Ledger.open(url, clock=noon, **places)  # type: ignore[arg-type]
        held = ledger.reserve(ask())
        backup = stores.copy_of(url)
        ledger.begin_draw(held.attempt_id, BINDINGS)
        restored = Ledger.open(backup, clock=noon, **places)  # type: ignore[arg-type]
        head = restored.head()
        with pytest.raises(IntegrityError):
            restored.void(held.attempt_id, "files changed")
        assert restored.head() == head

    def test_that_is_the_newest_copy_may_draw(
        self, stores: Stores, url: str, tmp_path: Path
    ) -> None:
        places = {"witnesses": [tmp_path / "second"], "key": tmp_path / "key.pem"}
        sealed(Ledger.open(url, clock=noon, **places), ask())  # type: ignore[arg-type]
        moved = Ledger.open(stores.copy_of(url), clock=noon, **places)  # type: ignore[arg-type]
        assert sealed(moved, ask(week_number(1)), "artefact-2").is_sealed


def publish_package(ledger: Ledger, public: Path, n: int) -> Path:
    """Publish a week with a manifest that exists."""
    attempt = sealed(ledger, ask(week_number(n)), f"artefact-{n}")
    stated = {"key": str(attempt.key), "sealed_sha256": f"artefact-{n}", "files": []}
    manifest = canonical(stated)
    digest = hashlib.sha256(manifest.encode()).hexdigest()
    folder = public / "opal" / week_number(n) / "r0"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(manifest)
    ledger.publish(attempt.key, digest)
    ledger.sign_public_zone()
    return folder


class TestAPublication:
    def test_whose_manifest_was_changed_is_named(self, url: str, tmp_path: Path) -> None:
        ledger = Ledger.open(url, clock=noon, public=tmp_path / "public")
        folder = publish_package(ledger, tmp_path / "public", 0)
        assert ledger.verify() == ()
        (folder / "manifest.json").write_text("{}")
        checks = [finding.check for finding in ledger.verify()]
        assert checks == ["manifest", "package", "public zone"]

    def test_that_appears_a_moment_after_its_entry_is_waited_for(
        self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger = Ledger.open(url, clock=noon, public=tmp_path / "public")
        folder = publish_package(ledger, tmp_path / "public", 0)
        folder.rename(tmp_path / "staged")
        monkeypatch.setattr(release_files.time, "sleep", lambda _: late.append(1))
        late: list[int] = []
        assert [finding.check for finding in ledger.verify()] == ["manifest", "public zone"]
        monkeypatch.setattr(
            release_files.time, "sleep", lambda _: (tmp_path / "staged").rename(folder)
        )
        assert ledger.verify() == ()
        assert late == [1]

    def test_that_is_gone_is_named_unless_it_was_withdrawn(self, url: str, tmp_path: Path) -> None:
        ledger = Ledger.open(url, clock=noon, public=tmp_path / "public")
        folder = publish_package(ledger, tmp_path / "public", 0)
        shutil.rmtree(folder)
        assert [finding.check for finding in ledger.verify()] == ["manifest", "public zone"]
        ledger.withdraw(ask().key, "officer", "wrong stops")
        assert ledger.verify() == ()


class TestACheckpoint:
    @pytest.fixture
    def witnessed(self, url: str, tmp_path: Path) -> Ledger:
        ledger = Ledger.open(
            url, clock=noon, witnesses=[tmp_path / "second"], key=tmp_path / "key.pem"
        )
        sealed(ledger, ask())
        assert ledger.verify() == ()
        return ledger

    def test_with_another_text_under_its_signature_is_named(
        self, witnessed: Ledger, tmp_path: Path
    ) -> None:
        notes = (tmp_path / "second/checkpoints").iterdir()
        note = next(file for file in notes if "\n5\n" in file.read_text())
        note.write_text(note.read_text().replace("\n5\n", "\n4\n"))
        (finding,) = witnessed.verify()
        assert "no signature" in finding.problem
        with pytest.raises(IntegrityError, match="no signature"):
            witnessed.reserve(ask(week_number(1)))

    def test_signed_by_another_key_is_named(self, witnessed: Ledger, tmp_path: Path) -> None:
        note = Signer.make(tmp_path / "other.pem").sign(witnessed.head())
        (tmp_path / "second/checkpoints/000000000009.note").write_text(note)
        assert any("no signature" in finding.problem for finding in witnessed.verify())

    def test_that_is_no_note_is_named(self, witnessed: Ledger, tmp_path: Path) -> None:
        (tmp_path / "second/checkpoints/000000000009.note").write_text("sequence 9")
        assert any("no readable" in finding.problem for finding in witnessed.verify())

    def test_needs_a_place_for_a_key(self, url: str, tmp_path: Path) -> None:
        key = tmp_path / "key.pem"
        Ledger.open(url, clock=noon, witnesses=[tmp_path / "second"], key=key).checkpoint()
        assert key.stat().st_mode & 0o077 == 0
        assert (tmp_path / "second/ledger.pub").read_text().startswith("turnstile.ledger+")


def test_a_note_written_while_verification_reads_is_no_sign_of_an_old_copy(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"witnesses": [tmp_path / "second"], "key": tmp_path / "key.pem"}
    ledger = Ledger.open(url, clock=noon, **places)  # type: ignore[arg-type]
    sealed(ledger, ask())
    fold = verification.Fold

    def fold_while_another_draws() -> object:
        other = Ledger.open(url, clock=noon, **places)  # type: ignore[arg-type]
        sealed(other, ask(week_number(1)), "artefact-2")
        return fold()

    monkeypatch.setattr(verification, "Fold", fold_while_another_draws)
    assert ledger.verify() == ()
