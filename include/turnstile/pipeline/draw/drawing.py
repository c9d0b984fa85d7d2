"""Reserve and draw, each from top to bottom: charge before draw, one sealed byte string for a key.

What must be right for the promise stands in `charged_draw`, of the trusted core. Here is what the
house adds: preflight, one process at a time, and what a draw is told by it (PRIVACY 6).
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from signal import SIG_IGN, SIGHUP, SIGINT, SIGTERM

from turnstile.durable_files import exclusively, name_of_lock
from turnstile.errors import DrawGoesOn, TurnstileError
from turnstile.ledger.leases import BEAT_S
from turnstile.ledger.records import Attempt
from turnstile.pipeline.code_version import code_version
from turnstile.pipeline.context import Release
from turnstile.pipeline.draw.charged_draw import Outside, charged_draw, reserved
from turnstile.pipeline.draw.drawn_release import require_carried
from turnstile.pipeline.draw.planned_release import Statement
from turnstile.pipeline.draw.ready_to_draw import ready_to_draw
from turnstile.pipeline.draw.year_state import require_state
from turnstile.pipeline.preflight import require_preflight
from turnstile.pipeline.trials.publishable import package_space
from turnstile.programme.people import require_people

ASKED: ContextVar[Callable[[], None]] = ContextVar("asked", default=lambda: None)
"""Refuses if nobody waits for the draw any more; set by who draws for somebody else."""
LOOK_S = 0.2
"""Between two looks whether a draw is over."""


def reserve(release: Release) -> str:
    """Hold the planned loss in the ledger and return the attempt's name.

    Raises:
        BudgetExceeded: a cap would be passed.
        ProgrammeError: fewer people hold the role of its approval than are asked.
        RefusedError: what needs no sealed byte would stop the release after its charge.
        RevisionNeeded: the key is bound to other inputs or to another programme.
        RefusedError: a week that its draws carry along was made under another promise, or is gone.
        TurnstileError: a public file beside the cells cannot be read.
    """
    from turnstile.pipeline.trials.public_files import require_public_files

    if release.sealed is not None:
        return "sealed"
    require_state(release)
    require_carried(release)
    require_people(release.programme, release.settings.include)
    require_public_files(release.programme, release.settings.include, release.week.days)
    with alone(release) as holder:
        require_preflight(release)
        return _reserved(release, release.statement, holder).attempt_id


def draw(release: Release) -> str:
    """Charge, draw, store and seal; return the digest of the sealed bytes.

    A key that is sealed answers with its digest and draws nothing. A draw that another process has
    under way is waited for. An attempt that died while drawing is burned and charged again in full.

    Raises:
        RefusedError: the reservation is refused.
        IntegrityError: plan and mechanism disagree on the loss, or the exact tables were altered.
    """
    sealed = release.sealed
    if sealed is not None and sealed.artefact_digest is not None:
        return sealed.artefact_digest
    with alone(release) as holder:
        ASKED.get()()  # whoever waited for the lock may be gone: a dead draw is not burned for them
        require_preflight(release)  # programme or code may be others than when it was reserved
        require_carried(release)
        attempt = _reserved(release, release.statement, holder)
        if attempt.artefact_digest is not None:
            return attempt.artefact_digest
        return charged_draw(
            ready_to_draw(release), release.ledger, attempt, _around(release, holder)
        )


@contextlib.contextmanager
def stops_are_heard(say: Callable[[str], object]) -> Iterator[list[int]]:
    """Let a draw that is charged go to its seal, whatever person, terminal or machine stops it.

    Yields:
        The signals that were heard so far; `ASKED` may stop a draw for them before its charge.
    """
    heard: list[int] = []

    def hear(number: int, _: object) -> None:
        heard.append(number)
        with contextlib.suppress(Exception):  # whoever reads it may be gone: a terminal, `| tee`
            say("a draw that is charged goes to its seal; then this stops")

    before = {number: signal.getsignal(number) for number in (SIGINT, SIGTERM, SIGHUP)}
    before = {number: handler for number, handler in before.items() if handler != SIG_IGN}  # nohup
    for number in before:
        signal.signal(number, hear)
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def report_death(release: Release) -> None:
    """End the lease of a drawing process that died, unless another process draws by now.

    Until it ends the draw passes for a living one, and what another draw costs is not said.
    """
    with contextlib.suppress(OSError, TurnstileError), alone(release, waits=False) as holder:
        release.ledger.end_lease(holder)


def _reserved(release: Release, statement: Statement, holder: str) -> Attempt:
    """Reserve; wait for the seal of a draw that a process elsewhere has under way."""
    while True:
        try:
            return reserved(release, statement, holder)
        except DrawGoesOn as goes_on:
            release.say(f"waiting: {goes_on}")
            time.sleep(BEAT_S)
            ASKED.get()()


def say_it_waits(release: Release) -> None:
    """Say why nothing happens: another process draws the week."""
    release.say(f"waiting: another process draws {release.key} at this moment")


def _around(release: Release, holder: str) -> Outside:
    """Return what the house around the core says of a draw."""
    return Outside(
        space=package_space(release),
        code=code_version(),
        copies=release.copies,
        holder=holder,
        require_asked=ASKED.get(),
    )


@contextlib.contextmanager
def alone(release: Release, *, waits: bool = True) -> Iterator[str]:
    """Keep a second process on this machine from a release whose draw is under way here.

    It would take the draw for a dead one, or put another plan beside its bytes.

    Yields:
        The name of the lock: what was drawn under it before is drawn by nobody now.

    Raises:
        BlockingIOError: another process draws, and this call does not wait.
    """
    lock = release.folders.private / ".draw.lock"
    with contextlib.ExitStack() as held:
        file, is_told = None, False
        while file is None:
            try:
                file = held.enter_context(exclusively(lock, waits=False))
            except BlockingIOError:
                if not waits:
                    raise
                if not is_told:
                    say_it_waits(release)
                is_told = True
                ASKED.get()()  # in the system's own wait nobody who stops this would be heard
                time.sleep(LOOK_S)
        yield name_of_lock(file)
