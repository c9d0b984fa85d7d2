"""Great Expectations as a judge of small frames: pass, fail or broken, and nothing else.

The result format is BOOLEAN_ONLY, because the others carry raw values; the context is ephemeral,
its progress bars and its call home are off. Importing the library costs seconds: only the step
that validates calls this.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from enum import Enum
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any

from turnstile.quality.findings import Severity
from turnstile.quality.rules import RANGE, Frame, Rule, between

if TYPE_CHECKING:
    import pandas as pd

_GX_SEVERITY = {Severity.ERROR: "critical", Severity.WARN: "warning"}


class Outcome(Enum):
    """What became of one expectation."""

    KEPT = "kept"
    NOT_KEPT = "not kept"
    BROKEN_CHECK = "broken check"  # the check raised an exception: the data are not judged


def judge(rules: tuple[Rule, ...], frames: Mapping[Frame, pd.DataFrame]) -> tuple[Outcome, ...]:
    """Hold rules against frames; return the outcome of each, in the same order.

    Args:
        rules: what to judge.
        frames: the figures.
    """
    outcomes = _in_range(rules, frames)
    for frame, figures in frames.items():
        numbered = {
            n: rule for n, rule in enumerate(rules) if rule.frame is frame and n not in outcomes
        }
        if numbered:
            outcomes |= _judge_frame(frame, figures, numbered)
    return tuple(outcomes.get(n, Outcome.BROKEN_CHECK) for n in range(len(rules)))


def _in_range(rules: tuple[Rule, ...], frames: Mapping[Frame, pd.DataFrame]) -> dict[int, Outcome]:
    """Judge the ranges that hold as one frame of figures with their least and most.

    The library takes milliseconds for each expectation, and of fifty ranges nearly all hold. A
    comparison chooses which are judged together; each other one is judged by itself.
    """
    import numpy as np
    import pandas as pd

    ranges = {}
    for number, rule in enumerate(rules):
        if rule.expectation != RANGE or rule.frame not in frames:
            continue
        column = frames[rule.frame].get(rule.arguments["column"])
        if column is None or not pd.api.types.is_numeric_dtype(column):
            continue
        least, most = rule.arguments["min_value"], rule.arguments["max_value"]
        figures = column.dropna().to_numpy(dtype=float)
        lowest = np.full_like(figures, -inf if least is None else least)
        highest = np.full_like(figures, inf if most is None else most)
        if ((lowest <= figures) & (figures <= highest)).all():
            ranges[number] = figures, lowest, highest
    if not ranges:
        return {}
    both = dict(enumerate(between("ranges", Frame.WEEK, "least and most hold")))
    names = ("figure", "least", "most")
    ranges_of_all = map(np.concatenate, zip(*ranges.values(), strict=True))
    judged = _judge_frame(
        Frame.WEEK, pd.DataFrame(dict(zip(names, ranges_of_all, strict=True))), both
    )
    is_kept = set(judged.values()) == {Outcome.KEPT}
    return dict.fromkeys(ranges, Outcome.KEPT) if is_kept else {}


@cache
def _any_frame() -> Any:  # noqa: ANN401 - the library's own type is not imported at start
    """What any frame is judged as: one for all, because the library writes each down several times.

    Its context is ephemeral, prints no bars, writes no log lines and calls nobody.
    """
    # The library reads this switch when it is imported; nothing is read from the environment here.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # noqa: TID251
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    # The second has a level of its own, and states a temporary folder.
    for name in ("great_expectations", "great_expectations.data_context.types.base"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("figures").add_dataframe_asset("figures")
    return asset.add_batch_definition_whole_dataframe("all")


def _judge_frame(
    frame: Frame, figures: pd.DataFrame, numbered: Mapping[int, Rule]
) -> dict[int, Outcome]:
    """Run one suite on one frame."""
    whole = _any_frame()  # before the library is imported by others: it sets its switches
    import great_expectations as gx
    import great_expectations.expectations as gxe

    expectations = [
        getattr(gxe, f"Expect{rule.expectation}")(
            **rule.arguments, severity=_GX_SEVERITY[rule.severity], meta={"number": number}
        )
        for number, rule in numbered.items()
    ]
    suite = gx.ExpectationSuite(name=frame.value, expectations=expectations)
    batch = whole.get_batch(batch_parameters={"dataframe": figures})
    result = batch.validate(suite, result_format="BOOLEAN_ONLY")
    return {
        int(validation.expectation_config.meta["number"]): _outcome(validation)
        for validation in result.results
    }


def _outcome(result: Any) -> Outcome:  # noqa: ANN401
    """Read one result; an exception inside the check is no verdict on the data."""
    if result.success:
        return Outcome.KEPT
    return Outcome.BROKEN_CHECK if _raised(result.exception_info) else Outcome.NOT_KEPT


def _raised(info: object) -> bool:
    """Look for `raised_exception` in the information on a result, flat or by metric."""
    if not isinstance(info, Mapping):
        return False
    if "raised_exception" in info:
        return bool(info["raised_exception"])
    return any(_raised(inner) for inner in info.values())
