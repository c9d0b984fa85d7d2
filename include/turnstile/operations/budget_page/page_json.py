"""The page's views as plain values, for scripts: the same figures as `turnstile ledger --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from turnstile.ledger.presentation import balance_json, most_spent
from turnstile.operations.ledger_snapshot import EntryLine, LedgerSnapshot

PAGE_LINES = 100


def balance_view(snapshot: LedgerSnapshot, families: frozenset[str]) -> list[dict[str, Any]]:
    """Return what `turnstile ledger balance --json` prints, of some budget groups."""
    return [
        balance_json(balance)
        for balance in most_spent(snapshot.balances)
        if balance.family in families
    ]


def forecast_view(snapshot: LedgerSnapshot, families: frozenset[str]) -> list[dict[str, Any]]:
    """Return what `turnstile ledger forecast --json` prints, of some budget groups."""
    return [asdict(forecast) for forecast in snapshot.forecasts if forecast.family in families]


def entries_view(
    lines: Sequence[EntryLine], programmes: frozenset[str], wanted: dict[str, str]
) -> list[EntryLine]:
    """Return the facts about some programmes, newest first, as asked for.

    Args:
        lines: every fact, oldest first.
        programmes: that the reader may see.
        wanted: any of `programme`, `kind` and `key` (a part of it); empty texts do not filter.
    """
    programme, kind, key = (wanted.get(name, "") for name in ("programme", "kind", "key"))
    return [
        line
        for line in reversed(lines)
        if line.programme in programmes
        and programme in {"", line.programme}
        and kind in {"", line.kind.value}
        and key in line.key
    ]
