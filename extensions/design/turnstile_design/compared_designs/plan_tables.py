"""The planning tables of `turnstile plan`: a family's losses, alternatives, and many weeks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from statistics import NormalDist

from turnstile.errors import InputError
from turnstile.pipeline.context import Release
from turnstile.privacy.accounts import Loss, loss_by_unit
from turnstile.privacy.events import DrawEvent, one_of_each_label
from turnstile.privacy.guarantees import SHOWN_AT_DELTA
from turnstile.privacy.units import CARD_UNITS, ProtectionUnit
from turnstile.privacy.year_to_date import YEAR_WEEKS
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.loading import load_programme, programme_files
from turnstile.programme.mechanism_spec import CapSpec
from turnstile.programme.spec import Programme
from turnstile.publishing.card import loss_figures
from turnstile.release.carried_weeks import rho_over_weeks, with_later_draws
from turnstile.release.ledger_caps import ledger_cap
from turnstile.release.plan import make_plan
from turnstile_design.compared_designs.accounting import (
    Draw,
    epsilon_by_pld,
    largest_fit,
    optimal_pure,
    scale_for_weeks,
)
from turnstile_design.compared_designs.designs import (
    ANY_WEEK,
    Alternative,
    largest_mode,
)
from turnstile_design.compared_designs.noise_errors import DesignErrors, compared, errors_of
from turnstile_design.compared_designs.predicted_errors import draws_cells
from turnstile_design.markdown_tables import table_lines

_ERRORS = ("cell", "time", "location", "location_hour", "day")
_SHOWN = ("cell", "slot", "place", "hour at a place", "day")
_HEADS = ("varied", "design", *_SHOWN, "left out below", "trips left out")


def comparison(release: Release) -> Iterator[str]:
    """Yield the lines of `--compare`: losses of the family, then errors of alternatives.

    Raises:
        InputError: the programme counts no trips by slot and location of tap-ons.
    """
    programme = release.programme
    if not draws_cells(programme):
        rule = (
            "is compared for programmes of trips with a table by slot and location of tap-ons; "
            "read turnstile plan without --compare"
        )
        raise InputError(where=programme.name, field="--compare", rule=rule)
    include = release.settings.include
    mode = largest_mode(release.domain)

    def domain_of(other: Programme) -> PublicDomain:
        return load_domain(other, include)

    yield "What one unit loses, as epsilon at delta 1e-6 under add/remove (replace-one: "
    yield "twice a pure epsilon, four times rho). Last: how often an attacker who knows everything "
    yield "else says rightly after 52 weeks whether a card was in them (50 % by chance)."
    yield ""
    programmes = [load_programme(file.name, include) for file in programme_files(include)]
    family = [member for member in programmes if member.family == programme.family]
    yield from table_lines(
        ("programme", "trip", "card-day", "card-week", "card, 52 weeks", "the card is recognised"),
        ((member.name, *_family_losses(member, domain_of(member))) for member in family),
    )
    yield ""
    yield f"Errors at the same loss of one {programme.mechanism.unit} (sd of the noise,"
    yield f"{mode}, tap-on, after least squares)."
    yield ""
    yield "Trips left out by the bound: of generated trips, in no error bar."
    yield ""
    others = [member for member in family if member.name != programme.name]
    designs = compared(programme, domain_of, include, mode=mode)
    written = (Alternative("at its own loss", member.name, member) for member in others)
    family_errors = (errors_of(member, domain_of, include, mode=mode) for member in written)
    yield from table_lines(_HEADS, map(_row, chain(designs, family_errors)))


def many_weeks(release: Release, weeks: int) -> Iterator[str]:
    """Yield the lines of `--weeks`: the loss of so many releases, and the noise that would fit."""
    events = release.plan.events
    weekly = loss_by_unit(events)
    lifetime = ProtectionUnit.CARD if ProtectionUnit.CARD in weekly else ProtectionUnit.BUS
    yield f"One {lifetime} over {weeks} weekly releases:"
    for name, loss in (
        ("a week", weekly[lifetime]),
        ("all", _of_weeks(release.programme, events, lifetime, weeks)),
    ):
        figures = loss_figures(loss)
        shown = figures["epsilon_at_delta_1e-6"] or "not bounded"
        yield f"  {name:8} rho {figures['rho'] or 'not bounded'}, epsilon at 1e-6 {shown}"
    yield from _tighter(events, lifetime, weeks)
    for cap in release.programme.caps:
        if cap.unit is not lifetime or weekly[lifetime].rho is None:
            continue
        factor = largest_fit(weekly[lifetime], _cap_loss(cap), weeks)
        if factor == 0:
            yield "  no scale fits under the cap: a threshold's delta is too large"
            continue
        verdict = "fits" if factor >= 1 else "does not fit"
        yield f"  {verdict} under the cap; scales may be divided by {float(factor):.4f}:"
        for event in one_of_each_label(events):
            scale = scale_for_weeks(event.scale, factor)
            yield f"    {event.label:32} {float(event.scale):>10.4g} -> {float(scale):.4g}"


def _tighter(events: tuple[DrawEvent, ...], unit: ProtectionUnit, weeks: int) -> Iterator[str]:
    """Yield what tighter accountants say of the same draws: a report, never the gate (PRIVACY 3.4).

    Distributions of privacy loss are made for draws that move a cell by one, or of Laplace noise;
    optimal composition is for pure losses alone.
    """
    if any(event.joint for event in events):
        return  # pieces of one vector are charged once, and these accountants take draws
    draws = [
        Draw(e, s, weeks)
        for e in events
        for draw_unit, s in e.sensitivities
        if draw_unit is unit and s
    ]
    if not draws or len(draws) < len(events):
        return
    try:
        tight = f"epsilon at 1e-6 {epsilon_by_pld(draws, float(SHOWN_AT_DELTA)):.2f}"
    except ValueError:
        tight = "no figure where Gaussian draws move a cell by more than one"
    yield f"  privacy loss distributions: {tight} (a report, not the gate)"
    weekly = loss_by_unit(events)[unit]
    if weekly.epsilon is not None and weekly.delta == 0:
        pure = float(optimal_pure(weekly.epsilon, weeks, SHOWN_AT_DELTA))
        yield f"  optimal composition: epsilon at 1e-6 {pure:.2f} (a report, not the gate)"


def _cap_loss(cap: CapSpec) -> Loss:
    """Return a cap as a loss under add/remove, as the ledger enforces it."""
    kept = ledger_cap(cap)
    return Loss(
        None if kept.epsilon_micro is None else Fraction(kept.epsilon_micro, 10**6),
        None if kept.rho_nano is None else Fraction(kept.rho_nano, 10**9),
        Fraction(kept.delta_femto or 0, 10**15),
    )


def _family_losses(programme: Programme, domain: PublicDomain) -> Iterator[str]:
    """Yield the losses of a trip, a card-day, a card-week and of a card over a year."""
    events = make_plan(programme, domain, ANY_WEEK).events
    known = loss_by_unit(with_later_draws(events))
    year = _of_weeks(programme, events, ProtectionUnit.CARD, YEAR_WEEKS)
    for unit in CARD_UNITS:
        loss = year if unit is ProtectionUnit.CARD else known[unit]
        shown = loss_figures(loss)["epsilon_at_delta_1e-6"]
        delta = f" (of it delta {float(loss.delta):.1e})" if loss.delta and shown else ""
        yield f"{float(shown):.2f}{delta}" if shown else "not bounded"
    yield "not bounded" if year.rho is None else f"{_recognised(float(year.rho)):.1%}"


def _of_weeks(
    programme: Programme, events: tuple[DrawEvent, ...], unit: ProtectionUnit, weeks: int
) -> Loss:
    """Return what so many weeks in a row cost a card or bus that is there in all of them."""
    if all(event.step == 1 for event in events):
        return loss_by_unit(events)[unit].times(weeks)
    return Loss(None, rho_over_weeks(programme, events, unit, weeks))


def _recognised(rho: float) -> float:
    """Return how often the best guess is right, for Gaussian noise of this loss.

    The likelihood ratio of two normal distributions that lie sqrt(2 rho) deviations apart.

    Examples:
        >>> round(_recognised(1.0), 3)
        0.76
    """
    return NormalDist().cdf(math.sqrt(rho / 2))


def _row(row: DesignErrors) -> list[str]:
    """Return one design as a row of the table."""
    numbers = [getattr(row, name) for name in _ERRORS]
    shown = ["no formula" if math.isnan(number) else f"{number:.2f}" for number in numbers]
    threshold = "" if row.threshold is None else str(row.threshold)
    bias = "" if row.left_out is None else f"{row.left_out:.1%}"
    return [row.varied, row.design, *shown, threshold, bias]
