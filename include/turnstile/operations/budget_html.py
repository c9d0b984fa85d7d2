"""The first section of the budget page as HTML: programmes, accounts, and how caps fill up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from turnstile.ledger.amounts import AccountLoss, amount_text, cap_text
from turnstile.ledger.forecast import CapForecast
from turnstile.ledger.presentation import epsilon_at_delta
from turnstile.ledger.records import AccountBalance
from turnstile.operations import pictures
from turnstile.operations.page_html import dag_link, key, number, table

_CAPPED = ("epsilon", "rho")


def budget_body(
    states: Sequence[Mapping[str, Any]],
    balances: Sequence[AccountBalance],
    forecasts: Sequence[CapForecast],
    problems: int,
) -> str:
    """Return the first section: programmes, balances, and how caps fill up."""
    trouble = ""
    if problems:
        trouble = (
            '<p class="alarm" role="alert">The ledger contradicts itself: run '
            "<code>turnstile ledger verify</code>, stop releasing, call a human.</p>"
        )
    filling = [one for one in forecasts if len(one.path) > 1 and one.weekly != 0]
    burned = "".join(
        f"<figure><figcaption>{escape(_cap_words(one))}</figcaption>"
        f"{pictures.burn_down(one)}</figure>"
        for one in filling
    )
    return (
        trouble
        + table(
            ("programme", "state", "in Airflow", "last published", "published", "approval", "next"),
            (_state_row(state) for state in states),
            "Programmes",
        )
        + table(
            ("family", "unit", "account", "spent", "held", "cap", "left", "of the cap"),
            (_balance_row(one) for one in balances),
            "Fullest account of each unit",
        )
        + _LEGEND
        + "<h2>What is left, and when it ends</h2>"
        + (burned or "<p>No cap fills up over the weeks.</p>")
        + table(
            ("family", "cap", "a week costs", "52 weeks cost", "reached"),
            (_forecast_row(one) for one in forecasts),
            "Forecast at the present rate",
        )
    )


_LEGEND = (
    '<ul class="legend"><li><span class="swatch spent"></span>spent</li>'
    '<li><span class="swatch held"></span>held by a reservation</li>'
    '<li><span class="swatch left"></span>left</li></ul>'
)


def _state_row(state: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the row of a programme."""
    trouble = state["trouble"]
    told = "in order" if state["is_begun"] else "never run"
    if trouble:
        told = f'<strong class="alarm">{escape(trouble["week"])} stopped</strong>: '
        told += escape(trouble["sentence"])
    last, name = state["last_published"], escape(state["programme"])
    shown = (
        f'<a class="key" href="week/{quote(name)}/{quote(last)}">{last}</a>' if last else "never"
    )
    in_airflow = state["in_airflow"]
    return (
        f'<span data-programme="{name}">{escape(state["title"])}</span><br><small>{name}</small>',
        told,
        escape(in_airflow) if in_airflow == "no DAG" else dag_link(name, in_airflow),
        shown,
        number(str(state["weeks_published"])),
        key(state["approval"]),
        key(state["next_week"] or "its first week"),
    )


def _balance_row(one: AccountBalance) -> tuple[str, ...]:
    """Return the row of an account, with a bar where a cap holds."""
    cap, left, bar = "none", "", ""
    for name in _CAPPED:
        field = "epsilon_micro" if name == "epsilon" else "rho_nano"
        limit = getattr(one.cap, field) if one.cap else None
        if limit is None:
            continue
        taken, waiting = getattr(one.spent, field), getattr(one.held, field)
        cap = f"{name} {amount_text(name, limit)}"
        if taken is None or waiting is None:
            left = "nothing"
            continue
        left = f"{name} {amount_text(name, max(0, limit - taken - waiting))}"
        words = f"{amount_text(name, taken)} of {amount_text(name, limit)} {name} spent"
        if waiting:
            words += f", {amount_text(name, waiting)} held"
        bar = pictures.gauge(taken, waiting, limit, words)
    place = f"{one.family}/{one.unit}/{one.scope}"
    spent = (
        f'<data class="spent-figure" value="{escape(_figure(one))}">{_loss_words(one.spent)}</data>'
    )
    scope = f'<span class="key" data-account="{escape(place)}">{escape(one.scope)}</span>'
    unit, held = key(one.unit.value), _loss_words(one.held)
    return (key(one.family), unit, scope, spent, held, key(cap), key(left), bar)


def _figure(one: AccountBalance) -> str:
    """Return the exact spent figures, for scripts and tests."""
    parts = (one.spent.epsilon_micro, one.spent.rho_nano, one.spent.delta_femto)
    return ",".join("infinite" if part is None else str(part) for part in parts)


def _loss_words(loss: AccountLoss) -> str:
    """Write a loss: what bounds it, exactly, and below it the epsilon at delta 1e-6."""
    if loss == AccountLoss():
        return "nothing"
    bounds = [
        f"{name} {amount_text(name, amount)}"
        for name, amount in (("epsilon", loss.epsilon_micro), ("rho", loss.rho_nano))
        if amount is not None
    ]
    if loss.delta_femto:
        bounds.append(f"delta {amount_text('delta', loss.delta_femto)}")
    shown = epsilon_at_delta(loss)
    lines = [key(bound) for bound in bounds] or ["not bounded"]
    if shown is not None:
        lines.append(f'<small class="key">epsilon {float(shown):.4g} at delta 1e-6</small>')
    return "<br>".join(lines)


def _cap_words(one: CapForecast) -> str:
    """Name a cap with its end."""
    name = one.coordinate.partition("_")[0]
    end = f"reached in {one.reached_in}" if one.reached_in else "not reached at this rate"
    return f"{one.family}: {name} left for one {cap_text(one.cap)}; {end}"


def _forecast_row(one: CapForecast) -> tuple[str, ...]:
    """Return the row of a forecast."""
    name = one.coordinate.partition("_")[0]
    reached = f"in {one.reached_in}" if one.reached_in else "never at this rate"
    return (
        key(one.family),
        escape(f"{cap_text(one.cap)}, {name} {amount_text(name, one.limit)}"),
        number(amount_text(name, one.weekly)),
        number(amount_text(name, one.year)),
        reached,
    )
