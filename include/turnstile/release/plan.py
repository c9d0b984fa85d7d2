"""The plan of one week: every draw that will be made and what it costs, before any data is seen.

Made from the programme, its public domain and the calendar alone (PRIVACY 2). Trips are drawn once
for each table and service day, over all modes of the day; telemetry once for each table and
statistic, over all service days of the week.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property

from turnstile.errors import ProgrammeError
from turnstile.ledger.balances.changes import weeks_between
from turnstile.ledger.encoding import encode_event
from turnstile.ledger.promise import plan_digest
from turnstile.privacy.accounts import Posting, loss_by_unit, postings
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms.registry import Spending
from turnstile.privacy.units import Block, NeighboringRelation
from turnstile.privacy.year_to_date import UNIT, over_the_year
from turnstile.programme.bounding_rule import rule_of
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.fields import TAPS
from turnstile.programme.mechanism_spec import CapSpec
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme, TableSpec
from turnstile.release.carried_weeks import age_in_year, carried_days, check_year, in_draw
from turnstile.release.sensitivities import sensitivities
from turnstile.service_calendar import ServicePeriod, ServiceWeek

_LONGEST_EXACT = 16
_MOST_SCALE = Fraction(2**18)  # gates tabulate 40 scales to either side before and after a draw
_LEAST_SCALE = Fraction(1, 8)  # Laplace noise changes one number in 1,500, Gaussian none at all


@dataclass(frozen=True)  # without slots: what it costs and its digest are made once
class ReleasePlan:
    """What one release will draw and cost.

    Args:
        programme: name.
        family: budget group.
        week: service week, or the service days of a longer period.
        revision: 0, or the number of an approved correction.
        programme_digest: of the programme's content.
        domain_digest: of the public cells.
        events: every draw, in the order of drawing.
    """

    programme: str
    family: str
    week: ServicePeriod
    revision: int
    programme_digest: str
    domain_digest: str
    events: tuple[DrawEvent, ...]

    @property
    def charged_in(self) -> ServiceWeek:
        """Last week of rolling windows that is charged; every week with a day of the period is."""
        return self.week.weeks[-1]

    @property
    def weeks(self) -> str:
        """All of these weeks, as the ledger writes them: one, or FIRST..LAST."""
        return weeks_between(str(self.week.weeks[0]), str(self.charged_in))

    @cached_property
    def postings(self) -> tuple[Posting, ...]:
        """What the ledger adds to every account, rounded up once."""
        return postings(self.events)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that is promised."""
        events = [encode_event(event) for event in self.events]
        bound = (self.programme_digest, self.domain_digest)
        return plan_digest(*bound, str(self.week), self.revision, events)


def require_service(programme: Programme, week: ServicePeriod) -> None:
    """Refuse a period that has no day of service.

    Raises:
        ProgrammeError: every day of it is declared absent.
    """
    if not programme.days_of(week):
        raise ProgrammeError(
            where=f"{programme.name}.yaml",
            field="source.absent_days",
            rule=f"no service day of {week} is left; there is nothing to release",
        )


def make_plan(
    programme: Programme, domain: PublicDomain, week: ServicePeriod, *, revision: int = 0
) -> ReleasePlan:
    """Plan one week.

    Raises:
        ProgrammeError: one week alone would pass a cap of the programme, or no day has service.
    """
    require_service(programme, week)
    plan = ReleasePlan(
        programme=programme.name,
        family=programme.family,
        week=week,
        revision=revision,
        programme_digest=programme.digest,
        domain_digest=domain.digest,
        events=tuple(
            event
            for table in programme.tables
            for statistic in table.statistics
            for event in _events(programme, table, statistic, week)
        ),
    )
    for index, cap in enumerate(programme.caps):
        _check_cap(programme, index, cap, plan.events)
    check_year(programme, plan.events, week)
    return plan


def _events(
    programme: Programme, table: TableSpec, statistic: str, period: ServicePeriod
) -> tuple[DrawEvent, ...]:
    """Return the draws of one vector of a table."""
    by_day = programme.source.feed.shape is RowShape.TRIPS
    drawn = programme.days_of(period)
    days_of_draw: tuple[tuple[date, ...], ...] = (
        tuple((day,) for day in drawn) if by_day else (drawn,)
    )
    return tuple(
        _event(programme, statistic, days, _vector_of(programme, table, days, period))
        for days in days_of_draw
    )


def _vector_of(
    programme: Programme, table: TableSpec, days: tuple[date, ...], period: ServicePeriod
) -> _Vector:
    """Return the vector that the draw of a table on some days is a piece of.

    A bound over a week holds for all its days together, and where no two records share a finest
    cell, both marginals of a tap have a bound together: such draws are pieces of one vector.
    """
    rule = rule_of(programme, table)
    tables: tuple[TableSpec, ...] = (table,)
    name = table.name
    is_of_tap = table.by in [(axis,) for tap in TAPS for axis in tap]
    if programme.mechanism.joint_marginals and is_of_tap and table.trips_max is None:
        tap = table.by[0].rsplit("_", 1)[0]
        tables = tuple(spec for spec in programme.tables if spec.by in marginals_of(tap))
        name = f"{tap}_marginals" if len(tables) > 1 else name
    scope = str(days[0])
    of_days = days
    if rule is not None and len(days) == 1 and (rule.unit.days_max or 0) > 1:
        scope = rule.unit.scope(Block(days[0], ""))
        drawn = programme.days_of(period)
        of_days = tuple(day for day in drawn if rule.unit.scope(Block(day, "")) == scope)
    is_joint = len(tables) > 1 or len(of_days) > len(days)
    return _Vector(table, tables, of_days, f"{name}/{scope}" if is_joint else None)


def marginals_of(tap: str) -> tuple[tuple[str, ...], ...]:
    """Return the dimensions of both marginals of the tap-on or tap-off table."""
    return ((f"{tap}_slot",), (f"{tap}_location",))


@dataclass(frozen=True, slots=True)
class _Vector:
    """What is drawn as one: a table on some days, or several tables, or several days.

    Args:
        table: the one whose draw is meant.
        tables: of the vector.
        days: of the vector.
        joint: its name; None if the draw is all of it.
    """

    table: TableSpec
    tables: tuple[TableSpec, ...]
    days: tuple[date, ...]
    joint: str | None


def _event(
    programme: Programme, statistic: str, days: tuple[date, ...], vector: _Vector
) -> DrawEvent:
    """Return one draw, with the scale that the share of its vector in the amount buys."""
    mechanism = programme.mechanism
    bounds = sensitivities(programme, vector.tables, statistic, vector.days)
    sensitivity = dict(bounds)[mechanism.unit]
    age = None if vector.table.year_from is None else age_in_year(vector.table.year_from, days[0])
    if sensitivity is None:
        raise ProgrammeError(
            where=f"{programme.name}.yaml",
            field="mechanism.unit",
            rule=f"{mechanism.unit} is not bounded; add a bound under units",
        )
    # A bounded unit touches one vector of each kind: its bound holds over all pieces together.
    shares = dict(mechanism.split)
    share = sum(shares[table.label_of(statistic)] for table in vector.tables)
    paid_for = sensitivity if age is None else over_the_year(sensitivity)
    spending = Spending(mechanism.amount * share, paid_for, mechanism.delta, mechanism.calibration)
    noise = mechanism.kind.noise_for(spending)
    if noise.scale > _MOST_SCALE:
        raise ProgrammeError(
            where=f"{programme.name}.yaml",
            field=f"mechanism.{mechanism.kind.amount}",
            rule=f"buys noise of scale {float(noise.scale):.3g} on {vector.table.name}, "
            f"which hides every number; at most {_MOST_SCALE} is drawn and judged: "
            "raise the amount",
        )
    if noise.scale < _LEAST_SCALE:
        raise ProgrammeError(
            where=f"{programme.name}.yaml",
            field=f"mechanism.{mechanism.kind.amount}",
            rule=f"buys noise of scale {float(noise.scale):.3g} on {vector.table.name}, "
            f"which leaves nearly every number as it is; at least {_LEAST_SCALE} is drawn: "
            "lower the amount",
        )
    blocks = tuple(Block(day, mode) for day in days for mode in programme.source.modes)
    return DrawEvent(
        table=vector.table.name,
        statistic=statistic,
        noise=mechanism.kind.noise,
        scale=noise.scale,
        blocks=blocks,
        sensitivities=bounds if age is None else in_draw(bounds, age),
        delta=noise.delta,
        threshold=noise.threshold,
        joint=vector.joint,
        own_records=vector.table.trips_max is not None,
        mechanism=mechanism.kind.named_in_events,
        step=1 if age is None else UNIT,
        carried=() if age is None else carried_days(programme, days[0], age),
    )


def _check_cap(
    programme: Programme, index: int, cap: CapSpec, events: tuple[DrawEvent, ...]
) -> None:
    """Refuse a programme whose own week passes one of its caps."""
    loss = loss_by_unit(events)[cap.unit]
    asked, allowed, amount = loss.rho, cap.rho, "rho"
    factor = 4
    if cap.epsilon is not None:
        asked, allowed, amount, factor = loss.epsilon, cap.epsilon, "epsilon", 2
    if asked is not None and cap.relation is NeighboringRelation.REPLACE:
        asked *= factor  # group privacy of two steps, PRIVACY 2
    if asked is not None and allowed is not None and asked <= allowed:
        asked, allowed, amount = loss.delta, cap.delta or Fraction(0), "delta"
    if asked is None or allowed is None or asked > allowed:
        needed = "an infinite amount" if asked is None else f"{amount} {_shown(asked)}"
        raise ProgrammeError(
            where=f"{programme.name}.yaml:{cap.line}",
            field=f"caps[{index}]",
            rule=f"one week costs a {cap.unit} {needed}, above the cap of {_shown(allowed)}; "
            "raise the cap or lower the mechanism's amount",
        )


def _shown(amount: Fraction | None) -> str:
    """Return an amount as it is written in a programme, or as a decimal where that is too long."""
    exact = str(amount)
    return exact if amount is None or len(exact) <= _LONGEST_EXACT else f"{float(amount):.6g}"
