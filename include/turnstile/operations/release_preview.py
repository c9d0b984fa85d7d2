"""What releasing some weeks would charge, week by week, before anybody clicks. Pure.

The weeks are admitted one after the other against a copy of the ledger's accounts, by the ledger's
own rule, so that the week is named from which on a cap is passed. Nothing is reserved: what is
shown is what these runs would charge if nobody else charges meanwhile.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from turnstile.ledger.amounts import amount_text, cap_text
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.folded_accounts import FoldedAccounts
from turnstile.operations.calendar_of_weeks import PUBLIC, WeekMark
from turnstile.operations.plan_view import cost_in_words
from turnstile.programme.spec import Programme
from turnstile.release.ledger_caps import ledger_cap
from turnstile.release.plan import ReleasePlan


@dataclass(frozen=True, slots=True)
class WeekPreview:
    """One week.

    Args:
        week: name.
        state: of the calendar.
        effect: what its run would do, in one sentence.
        charge: what it would charge, in words; empty for nothing.
        is_refused: whether a cap would be passed.
    """

    week: str
    state: str
    effect: str
    charge: str
    is_refused: bool = False


def preview(
    programme: Programme,
    plans: Sequence[ReleasePlan],
    marks: Mapping[str, WeekMark],
    accounts: FoldedAccounts | None,
    in_the_way: str = "",
) -> tuple[WeekPreview, ...]:
    """Return what each week would do.

    Args:
        programme: to be released.
        plans: of the weeks, in the order in which they run.
        marks: the calendar's, by week.
        accounts: of the programme's budget group; None before its first release.
        in_the_way: the end of a refusal, naming other programmes of the group that were charged.
    """
    trial = copy.deepcopy(accounts) if accounts is not None else FoldedAccounts()
    trial.caps[programme.name] = tuple(ledger_cap(cap) for cap in programme.caps)
    found = (_week(one, marks.get(str(one.week)), trial) for one in plans)
    return tuple(
        replace(one, effect=f"{one.effect}{in_the_way}") if one.is_refused else one for one in found
    )


def _week(planned: ReleasePlan, mark: WeekMark | None, trial: FoldedAccounts) -> WeekPreview:
    """Try one week, and post it to the copy."""
    week, state = str(planned.week), mark.state if mark else "missing"
    if state in PUBLIC:
        return WeekPreview(week, state, "public already: its bytes are re-issued", "")
    if state in {"withheld", "asked", "rejected"}:
        return WeekPreview(week, state, "drawn already: the same bytes go on", "")
    if state in {"under_way", "waiting"} and mark is not None and mark.run_id:
        return WeekPreview(week, state, "a run works on it or waits for it already", "")
    charged_in, charge = str(planned.charged_in), cost_in_words(planned)
    if state == "held":
        return WeekPreview(week, state, "a reservation is there and is resumed, then drawn", charge)
    excess = trial.excess(planned.postings, charged_in)
    if excess is not None:
        name = excess.coordinate
        left = None if excess.taken is None else max(0, excess.limit - excess.taken)
        effect = (
            f"refused: it asks {name} {amount_text(name, excess.asked)} of {cap_text(excess.cap)}, "
            f"which has {amount_text(name, left) if left is not None else 'nothing'} left"
        )
        return WeekPreview(week, state, effect, "", is_refused=True)
    trial.apply(EntryKind.RESERVED, planned.postings, charged_in)
    effect = "drawn and charged once its files are there and pass validation"
    if state == "charged":
        effect = "its draw died and stays charged; another draw is charged"
    return WeekPreview(week, state, effect, charge)


def seen(programme: Programme, weeks: Sequence[WeekPreview]) -> str:
    """Return a digest of what was shown, by which a click says what it agreed to."""
    shown = [[one.week, one.state, one.effect, one.charge] for one in weeks]
    content = json.dumps([programme.name, programme.digest, shown])
    return hashlib.sha256(content.encode()).hexdigest()[:16]
