"""A word allows one correction: said once, of what is sealed, and used up by that correction."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from ledger_asks import (
    LOSS_MICRO,
    TRIP,
    Task,
    ask,
    drawn,
    noon,
    published,
    sealed,
    spent_micro,
)

from turnstile.errors import BudgetExceeded, RefusedError
from turnstile.ledger import facts
from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.revisions import RevisionDecision
from turnstile.pipeline import revision_in_force as rule_of_revisions
from turnstile.pipeline.private_zone.unfinished import is_unfinished
from turnstile.pipeline.revision_in_force import revision_in_force
from turnstile.programme.loading import load_programme
from turnstile.release.zones import sealed_path
from turnstile.settings import Settings

WEEK = "2016-W30"
INCLUDE = Path(__file__).resolve().parents[2] / "include"
OPAL = load_programme("opal", INCLUDE)


def word(
    revision: int, person: str = "admin", *, files: str = "files-1", is_allowed: bool = True
) -> RevisionDecision:
    key = ReleaseKey("opal", WEEK, revision)
    return RevisionDecision(key, is_allowed, person, "release_officer", "late rows", files)


def test_a_word_is_written_once(ledger: Ledger) -> None:
    published(ledger, ask())
    for _ in range(2):
        ledger.decide_on_revision(word(1))
    (said,) = ledger.decisions_on_revision(ReleaseKey("opal", WEEK, 1))
    assert said == word(1)
    assert spent_micro(ledger) == LOSS_MICRO  # words cost nothing
    assert ledger.verify() == ()


def test_another_mind_and_other_files_are_other_words(ledger: Ledger) -> None:
    published(ledger, ask())
    words = [word(1), word(1, is_allowed=False), word(1, files="files-2"), word(1, "ada")]
    for decision in words:
        ledger.decide_on_revision(decision)
    assert list(ledger.decisions_on_revision(word(1).key)) == words


@pytest.mark.parametrize("revision", [0, 2])
def test_only_the_next_correction_of_a_sealed_release_is_spoken_of(
    ledger: Ledger, revision: int
) -> None:
    published(ledger, ask())
    with pytest.raises(RefusedError):
        ledger.decide_on_revision(word(revision))
    ledger.decide_on_revision(word(1))


def test_nothing_is_said_of_a_correction_of_what_was_never_sealed(ledger: Ledger) -> None:
    ledger.reserve(ask())
    with pytest.raises(RefusedError, match="not sealed"):
        ledger.decide_on_revision(word(1))


def test_a_word_is_used_up_by_its_correction(ledger: Ledger) -> None:
    published(ledger, ask())
    ledger.decide_on_revision(word(1))
    sealed(ledger, ask(revision=1), "artefact-2")
    with pytest.raises(RefusedError, match="sealed already"):
        ledger.decide_on_revision(word(1, "ada"))
    ledger.decide_on_revision(word(2))
    assert ledger.verify() == ()


def test_an_entry_that_allows_the_correction_of_nothing_is_found(ledger: Ledger) -> None:
    body = {
        "key": "opal/2016-W30/r1",
        "person": "eve",
        "role": "r",
        "reason": "",
        "files_digest": "",
    }
    ledger._store.write(
        lambda c: facts.append(c, "2016-08-09T12:00:00+00:00", EntryKind.REVISION_ALLOWED, body)
    )
    assert [finding.check for finding in ledger.verify()] == ["meaning"]


def test_the_ledger_says_beforehand_whether_a_correction_fits(ledger: Ledger) -> None:
    published(ledger, ask())
    assert ledger.refusal_of(ask(revision=1)) is None
    before = ledger.head()
    tight = (Cap(TRIP, epsilon_micro=LOSS_MICRO + 1),)
    published(ledger, ask("2016-W31", caps=tight), "artefact-2")
    refusal = ledger.refusal_of(ask("2016-W31", revision=1, caps=tight))
    assert isinstance(refusal, BudgetExceeded)
    with pytest.raises(BudgetExceeded, match=str(refusal)[:40]):
        ledger.reserve(ask("2016-W31", revision=1, caps=tight))
    assert ledger.refusal_of(ask("2016-W31", revision=1, caps=tight)) is not None
    assert ledger.head() != before


class Corrections(RuleBasedStateMachine):
    """Files come again, people answer, runs begin anywhere and die anywhere."""

    folder: ClassVar[Path]
    people_needed: ClassVar[int] = 1

    @initialize()
    def start(self) -> None:
        self.home = Path(tempfile.mkdtemp(dir=type(self).folder))
        (self.home / "include").mkdir()
        people = "release_officer: [admin, ada, olga]\n"
        (self.home / "include/people.yaml").write_text(people, encoding="utf-8")
        (self.home / "zone").mkdir()
        self.settings = Settings(self.home, "", (), self.home / "include")
        self.ledger = Ledger.open(f"sqlite:///{self.home / 'ledger.sqlite'}", clock=noon)
        self.task = Task(self.ledger, self.home / "zone")
        self.files = 0
        self.allowed: set[int] = set()
        self.bytes_of: dict[int, str] = {}

    def in_force(self) -> int:
        approval = replace(OPAL.approval, persons=type(self).people_needed)
        programme = replace(OPAL, approval=approval)
        return revision_in_force(self.ledger, programme, WEEK, self.settings)

    @rule(stop_after=st.sampled_from(["reserve", "begin", "draw", "seal", "", ""]))
    def a_run_begins(self, stop_after: str) -> None:
        """A retry, a clear, a backfill: each works on the revision in force."""
        revision = self.in_force()
        caps = (Cap(TRIP, epsilon_micro=1_000 * LOSS_MICRO),)
        try:
            self.task.run(ask(revision=revision, caps=caps), stop_after=stop_after)
        except RefusedError:
            return  # two draws of a key died: a person's turn
        attempt = self.ledger.find(ReleaseKey("opal", WEEK, revision))
        if attempt is not None and attempt.is_sealed:
            digest = attempt.artefact_digest or ""
            assert self.bytes_of.setdefault(revision, digest) == digest

    @rule()
    def files_come_again(self) -> None:
        self.files += 1

    @rule(person=st.sampled_from(["admin", "ada", "eve"]), is_allowed=st.booleans())
    def somebody_answers(self, person: str, is_allowed: bool) -> None:  # noqa: FBT001 - drawn
        """Eve holds no role; the ledger keeps her word, and nobody counts it."""
        revision = self.in_force() + 1
        said = word(revision, person, files=f"files-{self.files}", is_allowed=is_allowed)
        try:
            self.ledger.decide_on_revision(said)
        except RefusedError:
            return
        if is_allowed and person != "eve":
            self.allowed.add(revision)

    @invariant()
    def no_correction_without_a_word_and_no_word_for_two(self) -> None:
        if not hasattr(self, "ledger"):
            return
        for revision in range(1, 10):
            attempts = self.ledger.attempts(ReleaseKey("opal", WEEK, revision))
            assert not attempts or revision in self.allowed
            assert len([attempt for attempt in attempts if attempt.is_sealed]) <= 1
        assert (spent_micro(self.ledger) or 0) >= self.task.draws() * LOSS_MICRO

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            assert self.ledger.verify() == ()


@pytest.mark.parametrize("people", [1, 2])
def test_no_history_draws_a_correction_that_nobody_allowed(tmp_path: Path, people: int) -> None:
    class History(Corrections):
        folder = tmp_path
        people_needed = people

    run_state_machine_as_test(History, settings=_settings())


def test_the_word_of_somebody_without_the_role_puts_nothing_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger: Ledger
) -> None:
    settings_of = Settings(tmp_path, "", (), tmp_path)
    (tmp_path / "people.yaml").write_text("release_officer: [admin]\n", encoding="utf-8")
    published(ledger, ask())
    ledger.decide_on_revision(word(1, "eve"))
    assert revision_in_force(ledger, OPAL, WEEK, settings_of) == 0
    monkeypatch.setattr(rule_of_revisions, "holders", lambda *_: frozenset({"eve"}))
    assert revision_in_force(ledger, OPAL, WEEK, settings_of) == 1  # so the role is what decides


def published_with_bytes(ledger: Ledger, home: Path) -> None:
    """A first release is public, and its sealed bytes are there."""
    digest = hashlib.sha256(b"noise").hexdigest()
    published(ledger, ask(), digest)
    there = sealed_path(home / "embargoed/opal/2016-W30/r0", digest)
    there.parent.mkdir(parents=True)
    there.write_bytes(b"noise")


def test_a_correction_that_was_stated_to_have_no_release_needs_words_that_are_said_since(
    tmp_path: Path, ledger: Ledger
) -> None:
    place = Settings(tmp_path, "", (), tmp_path)
    (tmp_path / "people.yaml").write_text("release_officer: [admin]\n", encoding="utf-8")
    published_with_bytes(ledger, tmp_path)

    def stands() -> tuple[int, bool]:
        week = ledger.week("opal", WEEK)
        return revision_in_force(ledger, OPAL, WEEK, place), is_unfinished(
            ledger, place, "opal", week
        )

    for files in ("files-1", "files-1", "files-2"):
        ledger.decide_on_revision(word(1, files=files))
        assert stands() == (1, True)
        entries = {ledger.declare_no_release(word(1).key, "ana", "none").sequence for _ in range(2)}
        assert len(entries) == 1, "a repeat writes nothing"
        assert stands() == (0, False)


def test_a_correction_that_was_made_by_hand_after_its_statement_is_not_finished(
    tmp_path: Path, ledger: Ledger
) -> None:
    """It has no word in the ledger, and its data went while people were asked about it."""
    place = Settings(tmp_path, "", (), tmp_path)
    published_with_bytes(ledger, tmp_path)

    def stands() -> bool:
        return is_unfinished(ledger, place, "opal", ledger.week("opal", WEEK))

    correction = ask(revision=1, epsilon_micro=1)
    for is_burned in (True, False):
        ledger.declare_no_release(correction.key, "ana", "not worth it")
        assert not stands()
        attempt = drawn(ledger, correction)
        assert stands()
        if is_burned:
            ledger.burn(attempt.attempt_id, "its process died")
            assert stands()
    ledger.seal(attempt.attempt_id, "artefact-2")
    assert stands()


def _settings() -> settings:
    return settings(
        max_examples=10,
        stateful_step_count=20,
        deadline=None,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
