"""Reserve, charge, draw, store and seal, straight down a page (PRIVACY 6).

What is drawn was counted before and is handed in, so the time between charge and seal holds
nothing but the noise itself and one file.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Protocol

from turnstile.durable_files import SEALED, set_aside
from turnstile.errors import IntegrityError, RefusedError, TurnstileError
from turnstile.ledger.charging import ChargingLedger
from turnstile.ledger.leases import BEAT_S
from turnstile.ledger.records import Attempt
from turnstile.pipeline.draw.planned_release import PlannedRelease, Statement
from turnstile.pipeline.draw.ready_to_draw import ReadyDraw
from turnstile.release.sealed import Artefact, NoisyTable, day_of_draw, encode
from turnstile.release.zones import (
    AFTER_A_CHARGE_S,
    AGAIN_AFTER_S,
    digest_of,
    sealed_path,
    write_once,
)

_DRAWING_THREADS = 2


class Copies(Protocol):
    """The stores that zones are copies of, as far as a draw needs them."""

    def require_writable(self) -> None:
        """Refuse, before a charge, unless the store takes what is drawn."""

    def keep(self, *, is_charged: bool) -> None:
        """Put what lies under embargo into the store."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What a draw needs of the house around the core; nothing of it moves a loss or a number.

    Args:
        space: bytes that draw and package take at most, by folder.
        code: version of the code that draws.
        copies: of the zones.
        holder: names the lock that the drawing process holds.
        require_asked: refuses, before a charge, if nobody waits for the draw any more.
    """

    space: Mapping[Path, int]
    code: str
    copies: Copies
    holder: str
    require_asked: Callable[[], None]


def reserved(release: PlannedRelease, statement: Statement, holder: str) -> Attempt:
    """Hold what a release costs; a hold whose inputs changed before it was drawn is let go."""
    request = release.request(statement)
    attempt = release.ledger.find(release.key)
    if attempt is not None and attempt.is_held:
        held = (attempt.bindings, attempt.plan_digest, release.ledger.exact_of(attempt))
        if held != (request.bindings, request.plan_digest, request.exact):
            release.ledger.void(attempt.attempt_id, "inputs changed before anything was drawn")
    return release.ledger.reserve(request, holder=holder)


def charged_draw(
    ready: ReadyDraw, ledger: ChargingLedger, attempt: Attempt, outside: Outside
) -> str:
    """Draw under a reservation. Nothing before `begin_draw` costs, everything after it does."""
    from turnstile.privacy.mechanisms.dispatch import draw as draw_one

    outside.copies.require_writable()
    outside.require_asked()
    with _lease_renewed(ledger, attempt.attempt_id, outside.holder):
        ledger.begin_draw(
            attempt.attempt_id,
            ready.bindings,
            space=outside.space,
            code=outside.code,
            holder=outside.holder,
        )
        _set_leftovers_aside(ready, ledger, attempt)
        events, counts = ready.events, ready.counts
        largest_first = sorted(range(len(events)), key=lambda at: -counts[at].size)  # end at once
        with ThreadPoolExecutor(_DRAWING_THREADS) as threads:
            vectors = {at: threads.submit(draw_one, events[at], counts[at]) for at in largest_first}
        drawn = tuple(
            NoisyTable(event.table, event.statistic, day_of_draw(event), vectors[at].result())
            for at, event in enumerate(events)
        )
        content = encode(Artefact(drawn, ready.gaps, ready.carried))
        digest = digest_of(content)
        sealed = sealed_path(ready.embargoed, digest)
        write_once(sealed, content)
        outside.copies.keep(is_charged=True)
        try:
            _seal(ready, ledger, attempt, digest)
        except RefusedError:  # burned meanwhile: another draw has the key
            _set_aside(ready, sealed)  # that draw may have moved it as a leftover
            raise
    ready.say("noise drawn once, bytes sealed")
    return digest


def _seal(ready: ReadyDraw, ledger: ChargingLedger, attempt: Attempt, digest: str) -> None:
    """Write the seal; a ledger that is away is waited for, since the draw would be lost.

    Raises:
        TurnstileError: it did not come back in time; or the seal stands, and its note could not be
            written.
    """
    until, told = time.monotonic() + AFTER_A_CHARGE_S, False
    while True:
        try:
            ledger.seal(attempt.attempt_id, digest)
        except (RefusedError, IntegrityError):
            raise
        except TurnstileError as error:
            if _is_sealed(ready, ledger, digest):
                raise
            if time.monotonic() > until:
                raise TurnstileError(
                    f"{ready.key}: charged and drawn, and not sealed, for the ledger did not come "
                    "back in a quarter of an hour; mend it, then run the step again: if it does "
                    f"not find the seal, another draw is charged ({error})"
                ) from error
            if not told:
                ready.say(f"the ledger is away; the seal is written once it is back ({error})")
                told = True
            time.sleep(AGAIN_AFTER_S)
        else:
            return


def _is_sealed(ready: ReadyDraw, ledger: ChargingLedger, digest: str) -> bool:
    """Return whether the ledger is there and says that these bytes are sealed."""
    with contextlib.suppress(TurnstileError):
        leading = ledger.find(ready.key)
        return leading is not None and leading.artefact_digest == digest
    return False


@contextlib.contextmanager
def _lease_renewed(ledger: ChargingLedger, attempt_id: str, holder: str) -> Iterator[None]:
    """Say again and again that the draw lives, so that nobody burns it; late once is no harm."""
    is_over = Event()

    def beat() -> None:
        while not is_over.wait(BEAT_S):
            with contextlib.suppress(TurnstileError):  # the next beat tries again
                ledger.renew_lease(attempt_id, holder)

    beating = Thread(target=beat, name="draw-lease", daemon=True)
    beating.start()
    try:
        yield
    finally:
        is_over.set()
        beating.join()


def _set_leftovers_aside(ready: ReadyDraw, ledger: ChargingLedger, attempt: Attempt) -> None:
    """Move what a draw wrote that died before its seal: charged, burned, never to be used.

    While this draw has the key, nothing of it is sealed. Nothing is ever removed on the way to a
    draw: should the ledger be wrong, the bytes are still there.

    Raises:
        RefusedError: this draw was burned meanwhile, so that what lies there is another's.
    """
    leading = ledger.find(ready.key)
    if leading is None or leading.attempt_id != attempt.attempt_id:
        raise RefusedError(f"{attempt.attempt_id} was burned before it drew; another draw has it")
    for leftover in (*ready.embargoed.glob(f"{SEALED}*"), *ready.embargoed.glob("package")):
        _set_aside(ready, leftover)


def _set_aside(ready: ReadyDraw, leftover: Path) -> None:
    """Move one file or folder of a draw that died, unless another draw did already."""
    if set_aside(leftover):
        ready.say(f"{leftover.name} of a draw that died was set aside")
