"""Renders the budget page: Jinja2 templates with autoescape, kept inside the package.

Values are plain: texts, numbers, frozen records. Nothing but a template writes HTML or SVG.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment

from turnstile.html_pages import environment_of
from turnstile.ledger.balances.amounts import amount_text, cap_text, word_of
from turnstile.ledger.presentation import next_correction
from turnstile.operations.amount_words import (
    capped_words,
    epsilon_words,
    exact_value,
    exact_words,
    figures_words,
    share_left,
)
from turnstile.operations.budget_page.picture_shapes import number
from turnstile.publishing.card import day_above_week

_WORDS = (
    amount_text,
    cap_text,
    capped_words,
    day_above_week,
    epsilon_words,
    exact_value,
    exact_words,
    figures_words,
    next_correction,
    share_left,
    word_of,
)
SECTIONS = (
    ("", "Budget"),
    ("calendar", "Weeks"),
    ("release", "Release weeks"),
    ("plan", "Next week"),
    ("ledger", "Ledger"),
    ("quality", "Quality"),
)


def render(name: str, *, root: str, **values: Any) -> str:  # noqa: ANN401 - a template takes what it names
    """Return a page.

    Args:
        name: of the template, `budget.html`.
        root: relative way back to the page's own root: empty, or `../` as often as needed.
        values: that the template names; one that is missing is an error.
    """
    return _environment().get_template(name).render(root=root, sections=SECTIONS, **values)


@cache
def _environment() -> Environment:
    made = environment_of("turnstile.operations.budget_page")
    made.globals |= {function.__name__: function for function in _WORDS} | {"figure": number}
    return made
