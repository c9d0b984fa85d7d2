"""The steps of one week, each safe to repeat: what Airflow's tasks and `turnstile run` call.

Every step opens what it needs from the zones and the ledger by the release key alone, checks there
what it depends on, and returns a short identifier. A key that is sealed answers with its bytes:
no step charges or draws for it again, whatever the landing zone holds now (PRIVACY 6).
"""

from __future__ import annotations

from collections.abc import Callable

from turnstile.errors import TurnstileError
from turnstile.release import drawing, inputs, outputs
from turnstile.release.context import open_release

Step = Callable[[str, str, int], str]


def ingest(programme: str, week: str, revision: int = 0) -> str:
    """Read the landing zone's files into canonical rows; quarantine what breaks a rule."""
    return inputs.ingest(open_release(programme, week, revision))


def validate(programme: str, week: str, revision: int = 0) -> str:
    """Judge the rows by the expectation suites; an error stops the week before any charge."""
    return inputs.validate(open_release(programme, week, revision))


def plan(programme: str, week: str, revision: int = 0) -> str:
    """List the draws and their losses, from programme and calendar alone."""
    return inputs.plan(open_release(programme, week, revision))


def count(programme: str, week: str, revision: int = 0) -> str:
    """Count bounded contributions into the public cells, sealed in the private zone."""
    return inputs.count(open_release(programme, week, revision))


def reserve(programme: str, week: str, revision: int = 0) -> str:
    """Hold the loss in the ledger; refused when a cap would be passed."""
    return drawing.reserve(open_release(programme, week, revision))


def draw(programme: str, week: str, revision: int = 0) -> str:
    """Charge, draw the noise once, store and seal the bytes."""
    return drawing.draw(open_release(programme, week, revision))


def reconcile(programme: str, week: str, revision: int = 0) -> str:
    """Make consistent estimates and presentation tables from the sealed bytes."""
    return outputs.reconcile(open_release(programme, week, revision))


def assess(programme: str, week: str, revision: int = 0) -> str:
    """Put the sealed bytes through the gates."""
    return outputs.assess(open_release(programme, week, revision))


def approve(programme: str, week: str, revision: int = 0) -> str:
    """Check in the ledger that the people whom the programme asks for have said yes."""
    return outputs.approve(open_release(programme, week, revision))


def publish(programme: str, week: str, revision: int = 0) -> str:
    """Publish the package, whole or not at all."""
    return outputs.publish(open_release(programme, week, revision))


def audit(programme: str, week: str, revision: int = 0) -> str:
    """Recompute chain, balances, manifests and bytes."""
    return outputs.audit(open_release(programme, week, revision))


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
STEPS: tuple[str, ...] = tuple(step.__name__ for step in _ALL)


def step_named(name: str) -> Step:
    """Return a step by its name.

    Raises:
        TurnstileError: there is no such step.
    """
    for step in _ALL:
        if step.__name__ == name:
            return step
    raise TurnstileError(f"{name!r} is no step; the steps are {', '.join(STEPS)}")
