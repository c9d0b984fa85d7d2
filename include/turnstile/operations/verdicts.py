"""The history of the input's quality, rule by week: one word for each, as the journal has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WEEKS_MAX = 104
_NOT_KEPT_MAX = 100
MEANING = {
    "pass": "kept",
    "warn": "not kept, the week goes on",
    "fail": "not kept, the week stops",
    "broken": "the check itself failed, the week stops",
}


@dataclass(frozen=True, slots=True)
class VerdictHistory:
    """Verdicts of one programme.

    Args:
        weeks: judged, oldest first, the last of them.
        rules: each rule with its verdicts by week; empty where it was not judged.
        not_kept: week, rule and verdict, newest first.
        meaning: of each verdict.
    """

    weeks: tuple[str, ...]
    rules: tuple[tuple[str, tuple[str, ...]], ...]
    not_kept: tuple[tuple[str, str, str], ...]
    meaning: Mapping[str, str]


def verdict_history(verdicts: Mapping[tuple[str, str], str]) -> VerdictHistory:
    """Return the history of verdicts by rule and week."""
    weeks = tuple(sorted({week for _, week in verdicts}))[-WEEKS_MAX:]
    rules = tuple(
        (rule, tuple(verdicts.get((rule, week), "") for week in weeks))
        for rule in dict.fromkeys(rule for rule, _ in verdicts)
    )
    broken = sorted(
        ((week, rule, verdict) for (rule, week), verdict in verdicts.items() if verdict != "pass"),
        reverse=True,
    )
    return VerdictHistory(weeks, rules, tuple(broken[:_NOT_KEPT_MAX]), MEANING)
