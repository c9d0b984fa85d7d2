"""How balances, entries and forecasts read: tables for people, dictionaries for `--json`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from turnstile.ledger.balances.amounts import (
    COORDINATES,
    SUMS,
    AccountLoss,
    Cap,
    amount_text,
    cap_text,
    word_of,
)
from turnstile.ledger.balances.forecast import CapForecast
from turnstile.ledger.entries import Entry
from turnstile.ledger.records import AccountBalance
from turnstile.privacy.accounts import FEMTO, MICRO, NANO, Loss
from turnstile.privacy.guarantees import epsilon_of


def most_spent(balances: Iterable[AccountBalance]) -> tuple[AccountBalance, ...]:
    """Return for each family, unit and window the account with most taken, the last of equals."""
    best: dict[tuple[str, str, int], AccountBalance] = {}
    for balance in balances:
        account = (balance.family, balance.unit.value, _window(balance))
        known = best.get(account, balance)
        best[account] = max(balance, known, key=lambda one: (one.spent + one.held).rank)
    return tuple(best[account] for account in sorted(best))


def _window(balance: AccountBalance) -> int:
    """Return the weeks of a window, 0 without one."""
    return (balance.cap.window_weeks or 0) if balance.cap else 0


def epsilon_at_delta(loss: AccountLoss) -> Fraction | None:
    """Return the epsilon of an account's loss at delta 1e-6, or None if no figure holds."""
    epsilon, rho = loss.epsilon_micro, loss.rho_nano
    return epsilon_of(
        Loss(
            None if epsilon is None else Fraction(epsilon, MICRO),
            None if rho is None else Fraction(rho, NANO),
            Fraction(loss.delta_femto, FEMTO),
        )
    )


def loss_text(loss: AccountLoss) -> str:
    """Write a loss: both sums, delta if there is one, and the figure at delta 1e-6."""
    parts = [
        f"epsilon {amount_text('epsilon', loss.epsilon_micro)}",
        f"rho {amount_text('rho', loss.rho_nano)}",
    ]
    if loss.delta_femto:
        parts.append(f"delta {amount_text('delta', loss.delta_femto)}")
    return ", ".join(parts)


def cap_figures(cap: Cap) -> str:
    """Write the figures of a cap."""
    figures = [(word_of(name), getattr(cap, name)) for name in COORDINATES]
    return ", ".join(f"{word} {amount_text(word, figure)}" for word, figure in figures if figure)


def left(balance: AccountBalance) -> dict[str, int] | None:
    """Return what is left of each figure of an account's cap, None without a cap."""
    return None if balance.cap is None else left_under(balance.cap, balance.spent + balance.held)


def left_under(cap: Cap, taken: AccountLoss) -> dict[str, int]:
    """Return what is left of each figure of a cap, by its name.

    Figures are in the ledger's units, never below 0; 0 where an infinite loss was posted.
    """
    pairs = {name: (getattr(cap, name), getattr(taken, name)) for name in COORDINATES}
    return {
        name: 0 if gone is None else max(0, limit - gone)
        for name, (limit, gone) in pairs.items()
        if limit is not None
    }


def left_text(balance: AccountBalance) -> str:
    """Write what is left of a cap's epsilon or rho."""
    figures = left(balance) or {}
    words = [
        f"{word_of(name)} {amount_text(word_of(name), figures[name])}"
        for name in SUMS
        if name in figures
    ]
    return ", ".join(words) or "-"


def balance_lines(balances: Sequence[AccountBalance]) -> list[str]:
    """Write balances as a table."""
    rows = [("family", "unit", "account", "spent", "at delta 1e-6", "held", "cap", "left")]
    for balance in balances:
        at_delta = epsilon_at_delta(balance.spent)
        rows.append(
            (
                balance.family,
                balance.unit.value,
                balance.scope,
                loss_text(balance.spent),
                "infinite" if at_delta is None else f"epsilon {float(at_delta):g}",
                loss_text(balance.held) if balance.held != AccountLoss() else "-",
                cap_figures(balance.cap) if balance.cap else "none",
                left_text(balance),
            )
        )
    return table_lines(rows)


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def balance_json(balance: AccountBalance) -> dict[str, Any]:
    """Return a balance for `--json`; amounts in the ledger's integers, None for infinite."""
    at_delta = epsilon_at_delta(balance.spent)
    return {
        "family": balance.family,
        "unit": balance.unit.value,
        "scope": balance.scope,
        "spent": asdict(balance.spent),
        "spent_epsilon_at_delta_1e_6": None if at_delta is None else str(at_delta),
        "held": asdict(balance.held),
        "cap": asdict(balance.cap) if balance.cap else None,
        "cap_set_by": list(balance.cap_set_by),
        "left": left(balance),
    }


def entry_line(entry: Entry) -> str:
    """Write an entry as one line."""
    said = (f"{name}={value}" for name, value in entry.particulars)
    words = [entry.key or entry.body.get("programme", ""), *said]
    return f"{entry.sequence:>6}  {entry.at}  {entry.kind.value:<17}  {'  '.join(words)}"


def entry_json(entry: Entry) -> dict[str, Any]:
    """Return an entry for `--json`, complete."""
    return {
        "sequence": entry.sequence,
        "previous": entry.previous,
        "hash": entry.hash,
        "at": entry.at,
        "kind": entry.kind.value,
        "version": entry.version,
        "body": dict(entry.body),
    }


def forecast_lines(forecasts: Sequence[CapForecast]) -> list[str]:
    """Write forecasts as a table."""
    heads = ("family", "cap", "figure", "a week costs", "52 weeks cost", "reached")
    rows = [(*heads, "a correction costs", "next correction")]
    for forecast in forecasts:
        name = word_of(forecast.coordinate)
        reached = f"in {forecast.reached_in}" if forecast.reached_in else "never at this rate"
        rows.append(
            (
                forecast.family,
                cap_text(forecast.cap),
                f"{name} {amount_text(name, forecast.limit)}",
                amount_text(name, forecast.weekly),
                amount_text(name, forecast.year),
                reached,
                amount_text(name, forecast.correction),
                next_correction(forecast),
            )
        )
    return table_lines(rows)


def next_correction(forecast: CapForecast) -> str:
    """Say of which week a correction fits next, and what becomes of the weeks after it."""
    if forecast.correction_in is None:
        return "none while every week is released"
    then = f"; then {forecast.refused_then} is refused" if forecast.refused_then else ""
    return f"of {forecast.correction_in}{then}"
