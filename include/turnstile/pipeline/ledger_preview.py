"""What a week or a correction will meet in the ledger, looked at first: may it, is there room?

Nothing here is a gate: `reserve` asks again, in the transaction that charges.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from turnstile.errors import BudgetExceeded, RefusedError, TurnstileError
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Bindings, ReleaseKey, Request
from turnstile.pipeline.context import Release, correction_of
from turnstile.programme.loading import load_programme, programme_files
from turnstile.programme.spec import Programme
from turnstile.programme.terms import binding_terms
from turnstile.release.ledger_caps import ledger_cap
from turnstile.release.plan import ReleasePlan
from turnstile.release.zones import landing_place
from turnstile.settings import Settings

_NOTHING = Bindings("", "", "")


def refusal_before_reading(
    ledger: Ledger, programme: Programme, planned: ReleasePlan, settings: Settings
) -> RefusedError | None:
    """Return how the ledger would refuse a first release now, or None if it would not.

    The sentence of a budget names the programmes of the same budget group whose caps or charges
    stand in the way: a cap holds for everybody who touches the same people.

    Args:
        ledger: to ask.
        programme: to be released.
        planned: its plan of the week.
        settings: where the other programmes are.
    """
    asked = _asking(programme, planned, settings)
    key = asked.key
    if any(attempt.key == key for attempt in ledger.week(key.programme, key.period).taken):
        return None  # charged or held already
    refusal = ledger.refusal_of(asked)
    if not isinstance(refusal, BudgetExceeded):
        return refusal
    charged = (ReleaseKey.parse(e.key) for e in ledger.entries() if e.attempt_id and e.key)
    others = in_the_way(programme, charged, settings.include)
    return BudgetExceeded(f"{refusal}{others}") if others else refusal


def refusal_of_files(
    ledger: Ledger, programme: Programme, planned: ReleasePlan, settings: Settings
) -> RefusedError | None:
    """Return how the ledger would refuse files and units, in any week, whatever room there is.

    Args:
        ledger: to ask.
        programme: names the files and their budget group.
        planned: its plan of any week.
        settings: where the landing zone is.
    """
    refusal = ledger.refusal_of(_asking(programme, planned, settings))
    return None if isinstance(refusal, BudgetExceeded) else refusal


def refusal_of_correction(release: Release) -> RefusedError | None:
    """Return how the ledger would refuse the next correction now, or None if it has room.

    Raises:
        TurnstileError: the release is not sealed.
    """
    if release.sealed is None:
        raise TurnstileError(f"{release.key} is not sealed; there is nothing to correct")
    asked = correction_of(release)
    return release.ledger.refusal_of(_asking(asked.programme, asked.plan, release.settings))


def _asking(programme: Programme, planned: ReleasePlan, settings: Settings) -> Request:
    """Return what the ledger has to know to say whether it would refuse."""
    return Request(
        key=ReleaseKey(programme.name, str(planned.week), planned.revision),
        family=planned.family,
        bindings=_NOTHING,
        plan_digest=planned.digest,
        events=(),
        postings=planned.postings,
        week=str(planned.charged_in),
        first_week=str(planned.week.weeks[0]),
        terms=binding_terms(programme, planned.week),
        caps=tuple(ledger_cap(cap) for cap in programme.caps),
        reason="not reserved, only asked about",
        approver="nobody",
        landing=landing_place(settings, programme.source.landing),
    )


def in_the_way(programme: Programme, charged: Iterable[ReleaseKey], include: Path) -> str:
    """Name, as the end of a refusal, the other programmes of the budget group that were charged.

    Args:
        programme: that is refused.
        charged: release keys that were ever taken up.
        include: where the other programmes are.
    """
    known = {file.name for file in programme_files(include)}
    known &= {key.programme for key in charged} - {programme.name}
    names = [n for n in sorted(known) if load_programme(n, include).family == programme.family]
    group = f"; in the way, of the same budget group {programme.family}: "
    return f"{group}{', '.join(names)}" if names else ""
