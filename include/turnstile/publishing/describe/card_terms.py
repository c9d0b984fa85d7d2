"""The terms of a release card: every public number from which its losses follow. Pure.

Bounds, calendar, draws and what the ledger charged decide them, and nothing of the data (PRIVACY
2.3, 4). `verify_losses.py`, which packages carry, derives every loss from them again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from turnstile.ledger.balances.amounts import COORDINATES, amount_text, word_of
from turnstile.ledger.custody.evidence_of_draws import charged_by
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.records import AccountBalance, Attempt
from turnstile.privacy.year_to_date import multiples
from turnstile.programme.bounding_rule import rule_of
from turnstile.programme.source_spec import Feed, RowShape
from turnstile.programme.spec import Programme, TableSpec
from turnstile.publishing.carried.sums import RIDES
from turnstile.release.carried_weeks import age_in_year
from turnstile.release.plan import ReleasePlan

_BUSES = "buses"  # rows of theirs are of all service days together
_OPENING = (EntryKind.RESERVED, EntryKind.LOSS_DECLARED)


def stated_terms(programme: Programme, plan: ReleasePlan) -> dict[str, Any]:
    """Return what is counted and what is drawn as one, as plain values.

    Args:
        programme: whose bounds hold.
        plan: of the release, with its draws.
    """
    joint: defaultdict[str, list[str]] = defaultdict(list)
    for event in plan.events:
        if event.joint is not None and event.table not in joint[event.joint]:
            joint[event.joint].append(event.table)
    drawn_as_one = {tuple(tables) for tables in joint.values() if len(tables) > 1}
    return {
        "records": _records(programme.source.feed),
        "rows_outside": str(programme.domain.outside),
        "modes": list(programme.source.modes),
        "joint": sorted(map(list, drawn_as_one)),
        "tables": {table.name: _table(programme, table, plan) for table in programme.tables},
    }


def _records(feed: Feed) -> str:
    """Say what a record is: it decides how far one can move a table (PRIVACY 4.3, 4.9, 4.13)."""
    if feed.shape is RowShape.TELEMETRY:
        return _BUSES
    if feed.names_nobody:
        return RIDES
    return "pairs of taps" if feed.joins_taps else "trips"


def has_days(card: dict[str, Any]) -> bool:
    """Whether rows of a release are of one service day each, by its card."""
    return bool(card["terms"]["records"] != _BUSES)


def _table(programme: Programme, table: TableSpec, plan: ReleasePlan) -> dict[str, Any]:
    """Return what a table counts, the range of its mean, and what it carries along."""
    rule = rule_of(programme, table)
    stated: dict[str, Any] = {"by": list(table.by)}
    if rule is not None:
        limits = [{"by": list(limit.by), "at_most": limit.at_most} for limit in rule.limits]
        stated |= {"bounded": str(rule.unit), "records_at_most": rule.records_max, "limits": limits}
    if table.mean_range is not None:
        stated["range"] = table.mean_range
    if table.year_from is not None:
        days = programme.days_of(plan.week)
        stated["year_to_date"] = {
            "from": str(table.year_from),
            "multiples": multiples()[: age_in_year(table.year_from, days[0]) + 1],
            "not_held": [str(day) for day in programme.source.absent_days if day < days[0]],
        }
    return stated


def stated_charges(
    entries: Sequence[Entry], drawn: Iterable[Attempt], plan_digest: str
) -> list[dict[str, Any]]:
    """Return every draw that was charged to a key: of another plan with all that was charged.

    By the entry that charged it a recovery knows which of them a ledger holds that came back.

    Args:
        entries: of the key.
        drawn: attempts at the key that were charged.
        plan_digest: of the release.
    """
    charged = {attempt.attempt_id for attempt in drawn}
    opened = [e.body for e in entries if e.kind in _OPENING and e.attempt_id in charged]
    by = charged_by(entries)
    return [
        {"draws": body.get("draws", 1), "entry_sha256": by[body["attempt"]].hash}
        | ({} if body["plan_digest"] == plan_digest else {"postings": body["postings"]})
        for body in opened
    ]


def stated_windows(balances: Iterable[AccountBalance]) -> list[dict[str, Any]]:
    """Return what the most spent window of each cap over a window has lost.

    Args:
        balances: of a family.
    """
    return [
        {
            "unit": str(account.unit),
            "weeks": account.cap.window_weeks,
            "window": account.scope,
            **{
                word_of(name): ledger_text(word_of(name), getattr(account.spent, name))
                for name in COORDINATES
            },
        }
        for account in balances
        if account.cap is not None and account.cap.window_weeks is not None
    ]


def ledger_text(name: str, amount: int | None) -> str | None:
    """Return a ledger amount as a decimal text; None is infinite."""
    return None if amount is None else amount_text(name, amount)
