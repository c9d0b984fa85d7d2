"""The steps of one week, each safe to repeat: what Airflow's tasks and `turnstile run` call.

Every step opens what it needs from the zones and the ledger by the release key alone, checks there
what it depends on, and returns a short identifier. A key that is sealed answers with its bytes:
no step charges or draws for it again, whatever the landing zone holds now (PRIVACY 6). Importing
this module is cheap: what a step needs is imported when it runs.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from turnstile.durable_files import full_disk_named
from turnstile.errors import TurnstileError

if TYPE_CHECKING:
    from turnstile.pipeline.context import Release

Step = Callable[[str, str, int], str]
PRIVATE_STEPS = frozenset({"ingest", "validate", "count", "reserve", "draw"})
"""Steps that see private data; the others run where there is none."""
_READ_ROWS = frozenset({"ingest", "validate", "count"})
_CARRY = frozenset({"reserve", "draw"})
_OBJECTS = 50_000  # new ones between two collections; 700 by default


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Look for garbage rarely: what imports make stays, and a fifth of their time was the search.

    Great Expectations alone makes a million objects. Numbers of rows make none: they are arrays.
    """
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def ingest(programme: str, week: str, revision: int = 0) -> str:
    """Read the landing zone's files into canonical rows; quarantine what breaks a rule."""
    from turnstile.pipeline import before_charge

    return _done(ingest, before_charge.ingest, programme, week, revision)


def validate(programme: str, week: str, revision: int = 0) -> str:
    """Judge the rows by the expectation suites; an error stops the week before any charge."""
    from turnstile.pipeline import before_charge

    return _done(validate, before_charge.validate, programme, week, revision)


def plan(programme: str, week: str, revision: int = 0) -> str:
    """List the draws and their losses, from programme and calendar alone."""
    from turnstile.pipeline import before_charge

    return _done(plan, before_charge.plan, programme, week, revision)


def count(programme: str, week: str, revision: int = 0) -> str:
    """Count bounded contributions into the public cells, sealed in the private zone."""
    from turnstile.pipeline import before_charge

    return _done(count, before_charge.count, programme, week, revision)


def reserve(programme: str, week: str, revision: int = 0) -> str:
    """Hold the loss in the ledger; refused when a cap would be passed."""
    from turnstile.pipeline.draw import drawing

    return _done(reserve, drawing.reserve, programme, week, revision)


def draw(programme: str, week: str, revision: int = 0) -> str:
    """Charge, draw the noise once, store and seal the bytes."""
    from turnstile.pipeline.draw import drawing

    return _done(draw, drawing.draw, programme, week, revision)


def reconcile(programme: str, week: str, revision: int = 0) -> str:
    """Make what a package's tables are put together from, of the sealed bytes."""
    from turnstile.pipeline import after_seal

    return _done(reconcile, after_seal.reconcile, programme, week, revision)


def assess(programme: str, week: str, revision: int = 0) -> str:
    """Put the sealed bytes through the gates."""
    from turnstile.pipeline import assessing

    return _done(assess, assessing.assess, programme, week, revision)


def approve(programme: str, week: str, revision: int = 0) -> str:
    """Check in the ledger that the people whom the programme asks for have said yes."""
    from turnstile.pipeline import approvals

    return _done(approve, approvals.approve, programme, week, revision)


def publish(programme: str, week: str, revision: int = 0) -> str:
    """Publish the package, whole or not at all."""
    from turnstile.pipeline import after_seal

    return _done(publish, after_seal.publish, programme, week, revision)


def audit(programme: str, week: str, revision: int = 0) -> str:
    """Recompute chain, balances, manifests and bytes."""
    from turnstile.pipeline import auditing

    return _done(audit, auditing.audit, programme, week, revision)


def _done(
    step: Step, act: Callable[[Release], str], programme: str, week: str, revision: int
) -> str:
    """Do a step on copies of what it needs; imports late, because DAG files import this module."""
    from turnstile.pipeline.context import open_release

    release, name = open_release(programme, week, revision), step.__name__
    with (
        full_disk_named(),
        release.copies.in_step(
            raw=name in PRIVATE_STEPS,
            files=name == ingest.__name__,
            rows=name in _READ_ROWS,
            year=name in _CARRY and any(event.carried for event in release.plan.events),
            publishes=name == publish.__name__,
        ),
    ):
        return act(release)


_ALL: tuple[Step, ...] = (
    ingest,
    validate,
    plan,
    count,
    reserve,
    draw,
    reconcile,
    assess,
    approve,
    publish,
    audit,
)
_BY_NAME: dict[str, Step] = {step.__name__: _collecting_rarely()(step) for step in _ALL}
STEPS: tuple[str, ...] = tuple(_BY_NAME)


def step_named(name: str) -> Step:
    """Return a step by its name.

    Raises:
        TurnstileError: there is no such step.
    """
    if name not in _BY_NAME:
        raise TurnstileError(f"{name!r} is no step; the steps are {', '.join(STEPS)}")
    return _BY_NAME[name]
