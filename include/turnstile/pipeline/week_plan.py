"""What `turnstile plan` says of one week: draws, losses, what is left; no data is touched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from turnstile.ledger.presentation import left_text
from turnstile.pipeline.before_charge import described
from turnstile.pipeline.context import Release
from turnstile.pipeline.trials.small_worlds import small_worlds
from turnstile.privacy.accounts import loss_by_unit
from turnstile.privacy.events import one_of_each_label
from turnstile.privacy.mechanisms.registry import Calibration
from turnstile.privacy.mechanisms.thresholds import source_threshold
from turnstile.programme.spec import Programme
from turnstile.publishing.card import loss_figures
from turnstile.publishing.package_size import package_size

_FRACTION = re.compile(r"\d+/\d+")
_DIGITS = 12


def week_plan(release: Release) -> dict[str, Any]:
    """Return the plan with the loss of each unit and what each cap has left; decimals, for people.

    The exact fractions stand in `plan.json` of the package, from which digests are made.
    """
    size = package_size(release.programme, release.domain, release.plan)
    return {
        **{name: _decimal(part) for name, part in described(release.plan).items()},
        "loss": losses(release),
        "left": left_under_caps(release),
        "source_thresholds": {
            label: f"{threshold:.3f}" for label, threshold, _ in source_thresholds(release)
        },
        "package": {"rows": dict(size.rows), "files": size.files, "bytes": size.size_bytes},
        "small_worlds": [
            {
                "vector": moved.vector,
                "unit": str(moved.unit),
                "bound": moved.bound,
                "records": moved.records,
                "composed": asdict(moved.composed),
                "found": asdict(moved.farthest),
            }
            for moved in small_worlds(release.programme, release.settings.small_worlds)
            if moved.composed is not None
        ],
    }


def losses(release: Release) -> dict[str, dict[str, str | None]]:
    """Return the loss of each unit by its names."""
    return {str(u): loss_figures(loss) for u, loss in loss_by_unit(release.plan.events).items()}


def source_thresholds(release: Release) -> Iterator[tuple[str, float, int]]:
    """Yield draw, the source's own threshold and the integer that it becomes.

    Only under the calibration of the 2017 release (Asghar, Tyler and Kaafar 2017, section 3): a
    value is released at 1 + 2 ln(2/delta)/epsilon or more, which for integers is the next integer.
    """
    mechanism = release.programme.mechanism
    if mechanism.calibration is not Calibration.SOURCE or mechanism.delta is None:
        return
    shares = dict(mechanism.split)
    for event in one_of_each_label(release.plan.events):
        budget = shares[_share_of(release.programme, event.label)] * mechanism.amount * 2
        if event.threshold is not None:
            yield event.label, source_threshold(budget, mechanism.delta), event.threshold


def _share_of(programme: Programme, label: str) -> str:
    """Return the name under which a draw has its share: a table of counts has one draw."""
    table, _, _ = label.partition("/")
    return table if table in dict(programme.mechanism.split) else label


def left_under_caps(release: Release) -> list[dict[str, Any]]:
    """Return what every capped account that this week would touch has left before it.

    Of a cap over some weeks it is the window that has taken most.
    """
    touched = {(posting.unit, posting.scope) for posting in release.plan.postings}
    units = {posting.unit for posting in release.plan.postings}
    return [
        {"unit": str(account.unit), "scope": account.scope, "left": left_text(account)}
        for account in release.ledger.balance(release.programme.family)
        if account.cap is not None
        and (
            (account.unit, account.scope) in touched
            or (account.cap.window_weeks is not None and account.unit in units)
        )
    ]


def _decimal(part: object) -> object:
    """Return a part of the plan with its fractions as decimals of twelve digits."""
    if isinstance(part, dict):
        return {name: _decimal(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_decimal(value) for value in part]
    if isinstance(part, str) and _FRACTION.fullmatch(part):
        return f"{float(Fraction(part)):.{_DIGITS}g}"
    return part
