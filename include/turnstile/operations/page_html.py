"""The budget page as HTML: written on the server, readable without scripts, from plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from turnstile.ledger.forecast import CapForecast
from turnstile.ledger.records import AccountBalance
from turnstile.ledger.refusals import amount_text, cap_text
from turnstile.operations import pictures

SECTIONS = (
    ("", "Budget"),
    ("calendar", "Weeks"),
    ("plan", "Next week"),
    ("ledger", "Ledger"),
    ("quality", "Quality"),
)
_COORDINATES = ("epsilon", "rho", "delta")


def page(section: str, title: str, body: str, *, root: str) -> str:
    """Return a whole page.

    Args:
        section: path of the section that is shown.
        title: of the page.
        body: HTML below the heading.
        root: relative way back to the page's root: empty, or `../` as often as needed.
    """
    links = "".join(
        f'<a href="{root or "./"}{path}"{_current(path == section)}>{name}</a>'
        for path, name in SECTIONS
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - privacy budget</title>"
        f'<link rel="stylesheet" href="{root}style.css"><script src="{root}page.js" defer></script>'
        '</head><body><a class="skip" href="#main">Skip to content</a>'
        f'<nav aria-label="Sections">{links}</nav><main id="main"><h1>{escape(title)}</h1>{body}'
        "</main></body></html>"
    )


def _current(is_current: bool) -> str:  # noqa: FBT001 - a claim about one link
    """Mark the link of the section that is shown."""
    return ' aria-current="page"' if is_current else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Return a table; cells are HTML already."""
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div>"
    )


def run_link(programme: str, run_id: str, text: str, *, root: str = "") -> str:
    """Return a link to a run in Airflow, to be opened in the whole window."""
    if not run_id:
        return escape(text)
    href = f"{root}../dags/release_{quote(programme)}/runs/{quote(run_id)}"
    return f'<a target="_top" class="run" href="{href}">{escape(text)}</a>'


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
    drawn = [one for one in forecasts if len(one.path) > 1]
    burned = "".join(
        f"<figure><figcaption>{escape(_cap_words(one))}</figcaption>"
        f"{pictures.burn_down(one)}</figure>"
        for one in drawn
    )
    return (
        trouble
        + table(
            ("programme", "state", "last published", "published", "approval", "next"),
            (_state_row(state) for state in states),
            "Programmes",
        )
        + table(
            ("family", "unit", "account", "spent", "held", "cap", "left", ""),
            (_balance_row(one) for one in balances),
            "Fullest account of each unit",
        )
        + "<h2>What is left, and when it ends</h2>"
        + (burned or "<p>No cap fills up over the weeks.</p>")
        + table(
            ("family", "cap", "a week costs", "52 weeks cost", "reached"),
            (_forecast_row(one) for one in forecasts),
            "Forecast at the present rate",
        )
    )


def _state_row(state: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the row of a programme."""
    trouble = state["trouble"]
    told = "in order"
    if trouble:
        told = f'<strong class="alarm">{escape(trouble["week"])} stopped</strong>: '
        told += escape(trouble["sentence"])
    last, name = state["last_published"], state["programme"]
    shown = f'<a href="week/{quote(name)}/{quote(last)}">{escape(last)}</a>' if last else "never"
    return (
        f'<span data-programme="{escape(name)}">{escape(state["title"])}</span>',
        told,
        shown,
        str(state["weeks_published"]),
        escape(state["approval"]),
        escape(state["next_week"] or "first week"),
    )


def _balance_row(one: AccountBalance) -> tuple[str, ...]:
    """Return the row of an account, with a bar where a cap holds."""
    spent, held = _loss_words(one.spent), _loss_words(one.held)
    cap, left, bar = "none", "-", ""
    for name in _COORDINATES[:2]:
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
        bar = pictures.gauge(taken, waiting, limit, words)
    place = f"{one.family}/{one.unit}/{one.scope}"
    marked = f'<data class="spent-figure" value="{escape(_figure(one))}">{escape(spent)}</data>'
    scope = f'<span data-account="{escape(place)}">{escape(one.scope)}</span>'
    return (escape(one.family), escape(one.unit.value), scope, marked, escape(held), cap, left, bar)


def _figure(one: AccountBalance) -> str:
    """Return the exact spent figures, for scripts and tests."""
    parts = (one.spent.epsilon_micro, one.spent.rho_nano, one.spent.delta_femto)
    return ",".join("infinite" if part is None else str(part) for part in parts)


def _loss_words(loss: Any) -> str:  # noqa: ANN401 - a Loss
    """Write a loss in words; a dash for nothing."""
    from turnstile.ledger.presentation import loss_text
    from turnstile.ledger.records import Loss

    return loss_text(loss) if loss != Loss() else "-"


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
        escape(one.family),
        escape(f"{cap_text(one.cap)}, {name} {amount_text(name, one.limit)}"),
        amount_text(name, one.weekly),
        amount_text(name, one.year),
        reached,
    )
