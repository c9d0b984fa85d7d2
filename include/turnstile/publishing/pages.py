"""Text and HTML from templates: Jinja2, escaping everything in HTML, refusing what is undefined."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape


def rendered(template: str, **values: object) -> str:
    """Return a template of `publishing/templates` with its values.

    Args:
        template: file name; values are escaped where it ends in `.html.j2`.
        **values: what it asks for; a value that is missing is an error.
    """
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    """Return the loader of templates."""
    return Environment(
        loader=PackageLoader("turnstile.publishing"),
        autoescape=select_autoescape(enabled_extensions=("html.j2",)),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
