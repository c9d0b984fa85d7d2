"""What releasing some weeks would charge, week by week, before anybody clicks. Pure.

The weeks are admitted one after the other against a copy of the ledger's accounts, by the ledger's
own rule, after the runs that are asked for already, so that the week is named from which on a cap
is passed. Nothing is reserved: what is shown is what these runs would charge if nobody else charges
meanwhile.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from turnstile.ledger.balances.amounts import SUMS, amount_text, cap_text, is_lifetime_unit, word_of
from turnstile.ledger.balances.folded_accounts import FoldedAccounts
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.presentation import left_under
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.weeks import Week
from turnstile.operations.budget_page.plan_view import cost_in_words
from turnstile.operations.ledger_snapshot import LedgerSnapshot
from turnstile.operations.people.run_notes import Effect, effect_on_budget
from turnstile.operations.week_states import LIVE, WeekMark
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
        is_refused: whether the ledger would refuse it.
    """

    week: str
    state: str
    effect: str
    charge: str
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class Preview:
    """What a click would do.

    Args:
        weeks: one after the other.
        before: weeks whose runs are asked for already, and charge first.
        left: what is left of each cap that fills up, after all of it, in words.
    """

    weeks: tuple[WeekPreview, ...]
    before: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def charged(self) -> str:
        """How many draws are charged, and what each costs; empty if none is."""
        costs: dict[str, int] = {}
        for week in self.weeks:
            if week.charge:
                costs[week.charge] = costs.get(week.charge, 0) + 1
        return "; ".join(f"{times} x {cost}" for cost, times in costs.items())


def preview(
    programme: Programme,
    plans: Sequence[ReleasePlan],
    before: Sequence[ReleasePlan],
    marks: Mapping[str, WeekMark],
    snapshot: LedgerSnapshot,
) -> Preview:
    """Return what each week would do.

    Args:
        programme: to be released.
        plans: of its weeks, in the order in which they run.
        before: of weeks of the budget group whose runs are asked for already.
        marks: the programme's calendar, by week.
        snapshot: of the ledger.
    """
    accounts = snapshot.accounts.get(programme.family)
    trial = copy.deepcopy(accounts) if accounts is not None else FoldedAccounts()
    trial.caps[programme.name] = tuple(ledger_cap(cap) for cap in programme.caps)
    for planned in before:
        trial.apply(EntryKind.RESERVED, planned.postings, planned.weeks)
    weeks, previews, last = snapshot.weeks_of(programme.name), [], None
    for planned in plans:
        week = str(planned.week)
        mark = marks.get(week)
        key = ReleaseKey(programme.name, week, planned.revision)
        ledger_week = weeks.get(week, Week(week))
        facts = [line for line in snapshot.lines if line.key == str(key)]
        is_drawn = mark is not None and mark.state == "under_way"
        drawing = frozenset(attempt.attempt_id for attempt in ledger_week.drawing if is_drawn)
        revision = ledger_week.revision(key.revision)
        effect = effect_on_budget(revision, facts, cost_in_words(planned), drawing)
        previews.append(_week(planned, mark, effect, trial, is_held=revision.has_hold))
        last = planned if previews[-1].charge else last
    left = tuple(_left(trial, last)) if last is not None else ()
    names = (f"{plan.programme} {plan.week}" for plan in before)
    return Preview(tuple(previews), tuple(names), left)


def _week(
    planned: ReleasePlan,
    mark: WeekMark | None,
    effect: Effect,
    trial: FoldedAccounts,
    *,
    is_held: bool,
) -> WeekPreview:
    """Try one week, and post it to the copy, which has its hold already if it is held."""
    week, state = str(planned.week), mark.state if mark else "missing"
    if state == "under_way" and mark is not None and mark.of_budget == "charged":
        return WeekPreview(week, state, effect.sentence, "")  # what it costs if it has died, too
    if state == "under_way" or (mark is not None and mark.run_id and state in LIVE - {"asked"}):
        return WeekPreview(week, state, "a run works on it or waits for it already", "")
    if not effect.charges:
        return WeekPreview(week, state, effect.sentence, "", is_refused=effect.is_refused)
    excess = None if is_held else trial.excess(planned.postings, planned.weeks)
    if excess is not None:
        name = excess.coordinate
        left = None if excess.taken is None else max(0, excess.limit - excess.taken)
        words = (
            f"refused: it asks {name} {amount_text(name, excess.asked)} of {cap_text(excess.cap)}, "
            f"which has {amount_text(name, left) if left is not None else 'nothing'} left"
        )
        return WeekPreview(week, state, words, "", is_refused=True)
    if not is_held:
        trial.apply(EntryKind.RESERVED, planned.postings, planned.weeks)
    return WeekPreview(week, state, effect.sentence, cost_in_words(planned))


def _left(trial: FoldedAccounts, planned: ReleasePlan) -> Iterator[str]:
    """Say what is left, after all weeks, of the caps that fill up from week to week."""
    for cap, taken in trial.most_taken(planned.postings, planned.weeks).items():
        if not is_lifetime_unit(cap.unit):
            continue
        for name, amount in left_under(cap, taken.loss).items():
            if name in SUMS:
                figure = word_of(name)
                limit = amount_text(figure, getattr(cap, name))
                yield f"{cap_text(cap)}: {figure} {amount_text(figure, amount)} of {limit}"


def named(release_preview: Preview, in_the_way: str) -> Preview:
    """Return a preview whose refusals name the programmes that stand in the way."""
    weeks = (
        replace(week, effect=f"{week.effect}{in_the_way}") if week.is_refused else week
        for week in release_preview.weeks
    )
    return replace(release_preview, weeks=tuple(weeks))


def seen(programme: Programme, release_preview: Preview) -> str:
    """Return a digest of what was shown, by which a click says what it agreed to."""
    shown = [[week.week, week.state, week.effect, week.charge] for week in release_preview.weeks]
    content = json.dumps(
        [programme.name, programme.digest, shown, release_preview.before, release_preview.left]
    )
    return hashlib.sha256(content.encode()).hexdigest()[:16]
