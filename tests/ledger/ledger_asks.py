"""Factories for ledger tests: requests, and the whole life of a release in a few calls."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.encoding import encode_event
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.promise import plan_digest
from turnstile.ledger.records import Attempt, Bindings, ReleaseKey, Request
from turnstile.ledger.states import ReleaseState
from turnstile.privacy.accounts import Posting
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import Block, ProtectionUnit
from turnstile.service_calendar import ServiceWeek

TRIP, CARD = ProtectionUnit.TRIP, ProtectionUnit.CARD
BINDINGS = Bindings("programme-1", "domain-1", "snapshot-1")
FAMILY = "opal_cards"
LOSS_MICRO = 4_000_000
CAPS = (
    Cap(TRIP, epsilon_micro=8_000_000),
    Cap(CARD, epsilon_micro=12_000_000, window_weeks=4),
)


def noon() -> datetime:
    return datetime(2016, 8, 9, 12, tzinfo=UTC)


def week_number(n: int) -> str:
    return str(ServiceWeek.parse("2016-W30").plus(n))


def posting(unit: ProtectionUnit, scope: str, epsilon_micro: int | None = LOSS_MICRO) -> Posting:
    rho = None if epsilon_micro is None else -(-(epsilon_micro**2) // 2_000)
    return Posting(unit, scope, epsilon_micro, rho, 0)


def trip_scope(week: str) -> str:
    """Account of the trips of a week's first day."""
    return f"{ServiceWeek.parse(week).monday}/bus/b0"


def draw_event(week: str, epsilon_micro: int | None) -> DrawEvent:
    """One draw that costs every trip of a day, and every card, the same epsilon."""
    n = epsilon_micro or 0  # a scale has to be a float64, and any n / 10**6 is not
    bound = None if epsilon_micro is None else Sensitivity(1, n, n**2, n)
    return DrawEvent(
        table="on_time",
        statistic="count",
        noise=NoiseFamily.DISCRETE_LAPLACE,
        scale=Fraction(10**6),
        blocks=(Block(ServiceWeek.parse(week).monday, "bus"),),
        sensitivities=((TRIP, bound), (CARD, bound)),
    )


def ask(
    week: str = "2016-W30",
    *,
    programme: str = "opal",
    revision: int = 0,
    epsilon_micro: int | None = LOSS_MICRO,
    caps: tuple[Cap, ...] = CAPS,
    postings: tuple[Posting, ...] | None = None,
    **other: object,
) -> Request:
    """A release that costs every trip of the week, and every card, the same epsilon."""
    amount = epsilon_micro
    events: tuple[dict[str, Any], ...] = ()
    if postings is None:
        postings = (posting(TRIP, trip_scope(week), amount), posting(CARD, "ever", amount))
        events = (encode_event(draw_event(week, amount)),)
    bindings = cast("Bindings", other.get("bindings", BINDINGS))
    bound = (bindings.programme_digest, bindings.domain_digest)
    fields = {
        "family": FAMILY,
        "bindings": BINDINGS,
        "plan_digest": plan_digest(*bound, week, revision, events),
        "events": events,
        "reason": "late file" if revision else None,
        "approver": "release officer" if revision else None,
    } | other
    key = ReleaseKey(programme, week, revision)
    return Request(key=key, postings=postings, week=week, caps=caps, **fields)  # type: ignore[arg-type]


def drawn(ledger: Ledger, request: Request) -> Attempt:
    """Reserve and begin to draw."""
    attempt = ledger.reserve(request)
    return ledger.begin_draw(attempt.attempt_id, request.bindings)


def sealed(ledger: Ledger, request: Request, artefact: str = "artefact-1") -> Attempt:
    """Reserve, draw and seal."""
    return ledger.seal(drawn(ledger, request).attempt_id, artefact)


def published(ledger: Ledger, request: Request, artefact: str = "artefact-1") -> Attempt:
    """Reserve, draw, seal and publish."""
    attempt = sealed(ledger, request, artefact)
    ledger.publish(attempt.key, f"manifest of {artefact}")
    public_attempt = ledger.find(attempt.key)
    assert public_attempt is not None
    return public_attempt


def spent_micro(ledger: Ledger, scope: str = "ever") -> int | None:
    """Pure epsilon spent on one account."""
    return next((b.spent.epsilon_micro for b in ledger.balance() if b.scope == scope), 0)


def held_micro(ledger: Ledger, scope: str = "ever") -> int | None:
    """Pure epsilon held on one account."""
    return next((b.held.epsilon_micro for b in ledger.balance() if b.scope == scope), 0)


def in_child(act: Callable[[], int]) -> int:
    """Fork, run something, and return the child's exit status (negative: the signal)."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = act()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def killed_at_commit(ledger: Ledger, number: int, *, before: bool) -> Iterator[None]:
    """Kill this process, for real, just before or just after a ledger's n-th commit."""
    store, seen = ledger._store, 0
    from sqlalchemy import event

    def at_commit(_: object) -> None:
        nonlocal seen
        seen += 1
        if before and seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    write = store.write

    def killing_write(act: Callable[..., object]) -> object:
        nonlocal written
        answer = write(act)
        written += 1
        if not before and written == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    written = 0
    if before:
        event.listen(store._engine, "commit", counted := _writes_only(at_commit))
        yield
        event.remove(store._engine, "commit", counted)
    else:
        store.write = killing_write  # type: ignore[method-assign, assignment]
        yield


def _writes_only(act: Callable[[object], None]) -> Callable[[object], None]:
    """Count commits of writing transactions only."""

    def listener(connection: object) -> None:
        if connection.get_execution_options().get("writes"):  # type: ignore[attr-defined]
            act(connection)

    return listener


class Task:
    """One release as the weekly task does it: every step asks the ledger what to do.

    The embargoed zone is a folder: one file a draw, named by attempt, so that true draws can be
    counted whatever the ledger says.
    """

    def __init__(self, ledger: Ledger, zone: Path) -> None:
        self.ledger, self.zone = ledger, zone

    def run(self, request: Request, *, stop_after: str = "") -> str | None:
        """Run the steps, dying silently after one of them if asked to; return the sealed digest."""
        attempt = self.ledger.reserve(request)
        if stop_after == "reserve":
            return None
        if attempt.state is ReleaseState.RESERVED:
            self.ledger.begin_draw(attempt.attempt_id, request.bindings)
            if stop_after == "begin":
                return None
            artefact = self._draw(attempt)
            if stop_after == "draw":
                return None
            self.ledger.seal(attempt.attempt_id, artefact)
            if stop_after == "seal":
                return None
        else:
            assert attempt.artefact_digest is not None
            artefact = attempt.artefact_digest
        self.ledger.publish(request.key, f"manifest of {artefact}")
        return artefact

    def _draw(self, attempt: Attempt) -> str:
        """Draw: a fresh file that did not exist."""
        name = attempt.attempt_id.replace("/", "_")
        number = len(list(self.zone.glob(f"{name}.*")))
        path = self.zone / f"{name}.{number}"
        path.touch(exist_ok=False)
        return path.name

    def draws(self) -> int:
        """How often noise was truly drawn."""
        return len(list(self.zone.iterdir()))
