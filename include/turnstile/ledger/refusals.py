"""Sentences of a refusal: what was asked, what is left, since when, and what would fit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from turnstile.errors import BudgetExceeded, RevisionNeeded
from turnstile.ledger.admission import Excess
from turnstile.ledger.balances.amounts import amount_text, cap_text
from turnstile.ledger.records import Attempt, Difference, ReleaseKey

_PERCENT = 100
_DIGEST_DIGITS = 64


def budget_exceeded(
    key: ReleaseKey, excess: Excess, releases: Sequence[str], set_by: Sequence[str]
) -> BudgetExceeded:
    """Build the refusal of a reservation.

    Args:
        key: what was to be released.
        excess: the cap that would be passed.
        releases: keys that hold or spent something from the same account, oldest first.
        set_by: programmes that state the cap.
    """
    name, account = excess.coordinate, _account(excess)
    if excess.asked is None:
        return BudgetExceeded(
            f"{key} states no finite {name} for {account}, and a cap of "
            f"{amount_text(name, excess.limit)} is set; bound that unit's contributions in the "
            f"programme, use noise with a finite {name}, or take the cap out of the programme file"
        )
    left = 0 if excess.taken is None else max(0, excess.limit - excess.taken)
    return BudgetExceeded(
        f"{key} asks for {name} {amount_text(name, excess.asked)} on {account}, and "
        f"{amount_text(name, left)} of the cap {amount_text(name, excess.limit)} is left"
        f"{_setters(set_by)}{_since(releases)}; {_what_fits(excess, left)}"
    )


def _account(excess: Excess) -> str:
    """Name unit and account."""
    if excess.scope == "unstated":
        return cap_text(excess.cap)
    return f"{cap_text(excess.cap)} ({excess.scope})"


def _setters(set_by: Sequence[str]) -> str:
    """Name the programmes that state a cap."""
    return f" (set by {', '.join(set_by)})" if set_by else ""


def _since(releases: Sequence[str]) -> str:
    """Name the first release that took from the account, and how many did."""
    if not releases:
        return ""
    if len(releases) == 1:
        return f" since {releases[0]}"
    return f" since {releases[0]} ({len(releases)} releases up to {releases[-1]})"


def _what_fits(excess: Excess, left: int) -> str:
    """Say which part of the release, and how many weeks like it, would fit."""
    asked = excess.asked or 0
    weeks = excess.limit // asked if asked else 0
    part = Fraction(left, asked) if asked else Fraction(0)
    advice = [f"at most {_percent(part)} % of this {excess.coordinate} would fit"]
    if part:
        times = amount_text("epsilon", -(-asked * 10**6 // left))
        power = ", or its square root for Gaussian noise" if excess.coordinate == "rho" else ""
        advice.append(f"that is noise {times} times wider{power}")
    if excess.cap.window_weeks:
        last = excess.scope.split("..")[-1]
        advice.append(f"the cap holds {weeks} weeks of this size, and the window ends in {last}")
    else:
        advice.append(f"the cap holds {weeks} releases of this size")
    return "; ".join(advice) + "; lower the programme's loss, or raise the cap in its file"


def _percent(part: Fraction) -> str:
    """Write a part in percent, rounded down to one decimal."""
    return amount_text("epsilon", int(part * _PERCENT * 10) * 10**5)


def weeks_of(scope: str, week: str) -> tuple[str, str]:
    """Return the first and last week that an account or window covers."""
    if scope == "ever":
        return "0000-W01", "9999-W53"
    first, _, last = scope.partition("..")
    return (first, last) if last else (week, week)


def revision_needed(attempt: Attempt, differences: Sequence[Difference]) -> RevisionNeeded:
    """Build the refusal of a key that is bound to something else; it lists every difference."""
    key = attempt.key
    if attempt.is_sealed:
        digits = attempt.bindings.programme_digest[:12]
        text = f"include/programmes/earlier/{key.programme}.{digits}"
        advice = (
            f"put that back, or keep the text that it is bound to as {text}.yaml, at no cost; or "
            f"publish a correction, charged in full: turnstile run {key.programme} --week "
            f"{key.period} --revision N --reason TEXT, N the number after its last revision"
        )
    else:
        advice = f"go back to what was reserved, or {letting_go(attempt)}"
    listed = "; ".join(
        f"{difference.name} was {_brief(difference.old)} and is {_brief(difference.new)}"
        for difference in differences
    )
    return RevisionNeeded(
        f"{key} is {attempt.state.value} and bound to other terms: {listed}; {advice}"
    )


def letting_go(attempt: Attempt) -> str:
    """Return the command that ends an open attempt: a hold costs nothing, a draw stays charged."""
    verb = "void" if attempt.is_held else "burn"
    return f"turnstile ledger {verb} {attempt.key} --reason TEXT"


def _brief(value: str) -> str:
    """Shorten a digest; say so where there is nothing."""
    if len(value) == _DIGEST_DIGITS and set(value) <= set("0123456789abcdef"):
        return f"{value[:12]}..."
    return value or "not stated"
