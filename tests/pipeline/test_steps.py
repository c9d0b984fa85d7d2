"""Steps by name, and what they do to the process that runs them."""

from __future__ import annotations

import gc
from unittest.mock import patch

import pytest

from turnstile.errors import TurnstileError
from turnstile.pipeline import context
from turnstile.pipeline.steps import STEPS, step_named


@pytest.mark.parametrize("name", STEPS)
def test_garbage_is_looked_for_rarely_within_a_step_alone(name: str) -> None:
    before, within = gc.get_threshold(), []

    def refuse(*_: object) -> None:
        within.append(gc.get_threshold())
        raise TurnstileError("enough")

    with patch.object(context, "open_release", refuse), pytest.raises(TurnstileError):
        step_named(name)("opal", "2016-W30", 0)
    assert gc.get_threshold() == before
    assert within[0][0] > before[0]
    assert step_named(name).__name__ == name


def test_a_step_of_another_name_is_refused() -> None:
    with pytest.raises(TurnstileError, match="is no step"):
        step_named("guess")
