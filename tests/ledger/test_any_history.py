"""No history of retries, clears, backfills, voids, restarts and crashes overspends or forgets.

A hypothesis state machine drives the real stores the way tasks, schedulers and people do, dying at
every step boundary, and keeps its own small account of what was truly drawn.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from ledger_asks import BINDINGS, CARD, LOSS_MICRO, TRIP, Task, ask, noon, trip_scope, week_number

from conftest import Stores
from turnstile.errors import RefusedError
from turnstile.ledger import charging
from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import ReleaseKey, Request
from turnstile.ledger.states import ReleaseState

WINDOW_WEEKS = 3
CAPS = (
    Cap(TRIP, epsilon_micro=3 * LOSS_MICRO),
    Cap(CARD, epsilon_micro=6 * LOSS_MICRO, window_weeks=WINDOW_WEEKS),
)
WEEKS = st.integers(0, 5)
PROGRAMMES = st.sampled_from(["opal", "ferries"])
STEPS_LONG = 10_000


class History(RuleBasedStateMachine):
    """Everything that may happen to a ledger."""

    stores: ClassVar[Stores]
    steps: ClassVar[Counter[str]] = Counter()

    @initialize()
    def start(self) -> None:
        self.url = type(self).stores.new()
        self.zone = Path(tempfile.mkdtemp(prefix="turnstile-zone-"))
        self.sealed: dict[ReleaseKey, str] = {}
        self.drawn: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self.seen_files: set[str] = set()
        self.ledger = Ledger.open(self.url, clock=noon)

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            shutil.rmtree(self.zone)
            type(self).stores.give_back(self.url)

    def request(self, week: int, programme: str, **other: object) -> Request:
        snapshot = other.pop("snapshot", "snapshot-1")
        bindings = replace(BINDINGS, snapshot_digest=str(snapshot))
        return ask(week_number(week), programme=programme, caps=CAPS, bindings=bindings, **other)  # type: ignore[arg-type]

    @rule(
        week=WEEKS,
        programme=PROGRAMMES,
        stop_after=st.sampled_from(["reserve", "begin", "draw", "seal", "", ""]),
        snapshot=st.sampled_from(["snapshot-1", "snapshot-1", "snapshot-2"]),
    )
    def a_task_runs_or_dies(
        self, week: int, programme: str, stop_after: str, snapshot: str
    ) -> None:
        """A first run, a retry, a clear, a re-trigger and a backfill are all this call."""
        self.run(self.request(week, programme, snapshot=snapshot), stop_after)

    @precondition(lambda self: self.sealed)
    @rule(data=st.data(), stop_after=st.sampled_from(["begin", "draw", ""]))
    def a_person_revises(self, data: st.DataObject, stop_after: str) -> None:
        key = data.draw(st.sampled_from(sorted(self.sealed)))
        week = next(n for n in range(6) if week_number(n) == key.period)
        self.run(self.request(week, key.programme, revision=key.revision + 1), stop_after)

    def run(self, request: Request, stop_after: str) -> None:
        task, before = Task(self.ledger, self.zone), dict(self.sealed)
        with suppress(RefusedError):
            task.run(request, stop_after=stop_after)
        self.see_draws(request)
        attempt = self.ledger.find(request.key)
        if attempt is not None and attempt.is_sealed:
            self.sealed[request.key] = attempt.artefact_digest or ""
            assert before.get(request.key, attempt.artefact_digest) == attempt.artefact_digest

    def see_draws(self, request: Request) -> None:
        """Count the files that appeared: noise that truly exists, whatever the ledger says."""
        files = {path.name for path in self.zone.iterdir()}
        for _ in files - self.seen_files:
            self.drawn[request.week][0] += 1
        assert not (files - self.seen_files and request.key in self.sealed), "a sealed key drew"
        self.seen_files = files

    @rule(week=WEEKS, programme=PROGRAMMES, move=st.sampled_from(["void", "burn"]))
    def a_person_ends_an_attempt(self, week: int, programme: str, move: str) -> None:
        attempt = self.ledger.find(ReleaseKey(programme, week_number(week)))
        if attempt is not None:
            with suppress(RefusedError):
                getattr(self.ledger, move)(attempt.attempt_id, "by hand")

    @rule(week=WEEKS, programme=PROGRAMMES)
    def a_zombie_seals_late(self, week: int, programme: str) -> None:
        """Of burned attempts, a late artefact is refused."""
        for attempt in self.ledger.attempts(ReleaseKey(programme, week_number(week))):
            if attempt.state is ReleaseState.BURNED:
                with pytest.raises(RefusedError):
                    self.ledger.seal(attempt.attempt_id, "late")

    @rule()
    def holds_time_out(self) -> None:
        self.ledger.void_stale(timedelta(seconds=-1))

    @rule()
    def the_machine_restarts(self) -> None:
        self.ledger = Ledger.open(self.url, clock=noon)

    @precondition(lambda self: self.sealed)
    @rule(data=st.data())
    def a_person_decides_or_withdraws(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.sealed)))
        self.ledger.approve(key, "ada", "release_officer", "looks right")
        with suppress(RefusedError):
            self.ledger.withdraw(key, "ada", "second thoughts")

    @invariant()
    def what_was_drawn_is_spent_and_no_cap_is_passed(self) -> None:
        if not hasattr(self, "ledger"):
            return
        type(self).steps[self.url.partition(":")[0]] += 1
        balances = {(b.unit, b.scope): b for b in self.ledger.balance()}
        taken: dict[str, int] = {}
        for n in range(6):
            week = week_number(n)
            trip = balances.get((TRIP, trip_scope(week)))
            spent = trip.spent.epsilon_micro or 0 if trip else 0
            held = trip.held.epsilon_micro or 0 if trip else 0
            assert spent >= self.drawn[week][0] * LOSS_MICRO
            assert spent + held <= 3 * LOSS_MICRO
            taken[week] = spent + held
        figures = [taken[week_number(n)] for n in range(6)]
        for n in range(6):
            assert sum(figures[n : n + WINDOW_WEEKS]) <= 6 * LOSS_MICRO
        for key, artefact in self.sealed.items():
            attempt = self.ledger.find(key)
            assert attempt is not None
            assert attempt.artefact_digest == artefact

    @invariant()
    def chain_and_accounts_agree(self) -> None:
        if hasattr(self, "ledger"):
            assert self.ledger.verify() == ()


def run_histories(stores: Stores, *, examples: int, steps: int) -> None:
    """Run so many histories of so many steps."""
    machine = type("Histories", (History,), {"stores": stores})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],  # a failing history is shown as it was found
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_few_histories_never_overspend_or_forget(stores: Stores) -> None:
    examples = 8 if stores.kind == "sqlite" else 3
    run_histories(stores, examples=examples, steps=20)


@pytest.mark.long
def test_ten_thousand_steps_never_overspend_or_forget(stores: Stores) -> None:
    before = History.steps.total()
    run_histories(stores, examples=260, steps=50)
    assert History.steps.total() - before >= STEPS_LONG


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
def test_histories_notice_a_ledger_that_opens_sealed_keys_again(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = charging.answer_to_reserve
    opens = charging.ReserveAnswer.OPEN_NEW
    sealed = charging.ReserveAnswer.ANSWER_SEALED
    monkeypatch.setattr(
        charging,
        "answer_to_reserve",
        lambda state: opens if real(state) is sealed else real(state),
    )
    with pytest.raises(Exception, match=r"sealed key drew|guard|disagree|differ|assert"):
        run_histories(stores, examples=20, steps=30)
