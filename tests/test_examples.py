"""The examples of docstrings hold: one test for each module that has any."""

from __future__ import annotations

import doctest
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import pytest
from made_homes import ROOT

MODULES = sorted(
    ".".join(path.relative_to(place).with_suffix("").parts)
    for place in (ROOT / "include", *(ROOT / "extensions").iterdir())
    for path in place.glob("turnstile*/**/*.py")
    if ">>> " in path.read_text() and find_spec(path.relative_to(place).parts[0])
)


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_hold(module: str) -> None:
    outcome = doctest.testmod(import_module(module), optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_an_example_that_does_not_hold_is_found() -> None:
    wrong = ModuleType("wrong", "\n>>> 1 + 1\n3\n")
    assert doctest.testmod(wrong).failed == 1


def test_every_module_with_examples_is_among_them() -> None:
    assert len(MODULES) > 50
