"""Renders the pages of the assessment: Jinja2 templates with autoescape, kept inside the package.

A picture is the only text that goes into a page as it is: a template made it (`pictures`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment

from turnstile.html_pages import environment_of


def render(name: str, **values: Any) -> str:  # noqa: ANN401 - a template takes what it names
    """Return a page.

    Args:
        name: of the template, `assessment.html`.
        values: that the template names; one that is missing is an error.
    """
    return _environment().get_template(name).render(**values)


@cache
def _environment() -> Environment:
    return environment_of("turnstile.assessment")
