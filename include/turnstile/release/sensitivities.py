"""How far one unit can move each drawn vector: the stability of its counting, step by step.

PRIVACY 1, 4 and 5. A vector's chain (`programme.counting_chain`) is what the engines run; what one
unit moves is composed of the chain's steps alone (`privacy.stability`), so no case is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from turnstile.privacy.events import Sensitivity
from turnstile.privacy.units import ProtectionUnit, Subject, units_of
from turnstile.programme.counting_chain import chain_of_vector
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme, TableSpec

Bounds = tuple[tuple[ProtectionUnit, Sensitivity | None], ...]


def sensitivities(
    programme: Programme, tables: Sequence[TableSpec], statistic: str, days: Sequence[date]
) -> Bounds:
    """Return the add/remove sensitivity of one vector for every unit; None where it is unbounded.

    Args:
        programme: whose bounds hold.
        tables: whose draws make up the vector; of one rule. Several are marginals of one tap.
        statistic: which of their vectors.
        days: service days of the vector: added up in each cell for telemetry, side by side for
            trips.
    """
    chain = chain_of_vector(programme, tuple(tables), statistic)
    is_of_vehicles = programme.source.feed.shape is RowShape.TELEMETRY
    subject = Subject.BUS if is_of_vehicles else Subject.CARD
    return tuple((unit, chain.sensitivity(unit, days)) for unit in units_of(subject))
