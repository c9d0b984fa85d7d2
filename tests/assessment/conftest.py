"""A small dense release in memory, and noise that depends on a label alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from bare_programme import bare_programme

from turnstile.ledger.records import Attempt, Bindings, ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.privacy.mechanisms.registry import MechanismKind
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.public_domain import (
    Dimension,
    ModeCells,
    PublicDomain,
    public_domain,
)
from turnstile.programme.mechanism_spec import MechanismSpec
from turnstile.programme.spec import (
    Programme,
    TableSpec,
    UnitBound,
)
from turnstile.release.drawn import Drawn
from turnstile.release.plan import make_plan
from turnstile.release.sealed import Artefact, NoisyTable
from turnstile.service_calendar import ServiceWeek

_SLOTS, _STOPS = 24, 10


@pytest.fixture(scope="session")
def programme() -> Programme:
    """Three tap-on tables of one mode, epsilon 2 a trip, no more than 2 trips a card and day."""
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    return bare_programme(
        units=(UnitBound(ProtectionUnit.CARD_DAY, 2),),
        tables=(
            TableSpec("on_time", ("tap_on_slot",)),
            TableSpec("on_location", ("tap_on_location",)),
            TableSpec("on_time_location", ("tap_on_slot", "tap_on_location")),
        ),
        mechanism=MechanismSpec(
            MechanismKind.DENSE_LAPLACE,
            ProtectionUnit.TRIP,
            Fraction(4),
            (("on_time", quarter), ("on_location", quarter), ("on_time_location", half)),
        ),
    )


@pytest.fixture(scope="session")
def domain() -> PublicDomain:
    """24 slots, 10 stops, one mode."""
    slots = Dimension("tap_on_slot", tuple(f"{hour:02}:00" for hour in range(_SLOTS)))
    stops = Dimension("tap_on_location", tuple(f"stop {n}" for n in range(_STOPS)))
    return public_domain("test", (ModeCells("bus", (slots, stops)),))


def _exact(table: str) -> np.ndarray:
    """A made-up day: most cells empty."""
    cells = np.zeros((_SLOTS, _STOPS), dtype=np.int64)
    cells[7:10, :4] = 12
    cells[17:19, :6] = 7
    sums = {"on_time": cells.sum(axis=1), "on_location": cells.sum(axis=0)}
    return np.asarray(sums.get(table, cells)).ravel()


Redraw = Callable[[str, np.ndarray, float, str], np.ndarray]


def honest(label: str, exact: np.ndarray, scale: float, table: str) -> np.ndarray:
    """Noise every cell at the declared scale."""
    del table
    discrete_laplace = pytest.importorskip("turnstile_lab.baselines").discrete_laplace
    return exact + discrete_laplace(label, exact.size, scale)


@pytest.fixture
def drawn_with(programme: Programme, domain: PublicDomain) -> Callable[..., Drawn]:
    """Build a sealed release whose vectors a function draws."""

    def build(redraw: Redraw = honest) -> Drawn:
        plan = make_plan(programme, domain, ServiceWeek(2016, 30))
        tables = tuple(
            NoisyTable(
                event.table,
                event.statistic,
                event.blocks[0].service_date,
                redraw(
                    f"{event.table} {event.blocks[0].service_date}",
                    _exact(event.table),
                    float(event.scale),
                    event.table,
                ),
            )
            for event in plan.events
        )
        return Drawn(programme, domain, plan, _attempt(plan.digest), Artefact(tables))

    return build


@pytest.fixture
def release(drawn_with: Callable[..., Drawn]) -> Drawn:
    """An honest sealed release."""
    return drawn_with()


@pytest.fixture
def unsealed(release: Drawn) -> Drawn:
    """The same release, burned."""
    attempt = replace(release.attempt, state=ReleaseState.BURNED, artefact_digest=None)
    return replace(release, attempt=attempt)


def _attempt(plan_digest: str) -> Attempt:
    """A sealed attempt."""
    return Attempt(
        attempt_id="a1",
        key=ReleaseKey("small", "2016-W30"),
        family="cards",
        week="2016-W30",
        state=ReleaseState.SEALED,
        bindings=Bindings("0" * 64, "1" * 64, "2" * 64),
        plan_digest=plan_digest,
        artefact_digest="3" * 64,
        manifest_digest=None,
        reserved_sequence=1,
        is_withdrawn=False,
    )
