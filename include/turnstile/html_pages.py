"""The one Jinja2 environment of HTML pages: it escapes everything and refuses what is missing."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def environment_of(package: str) -> Environment:
    """Return the environment of a package's own folder `templates`.

    Args:
        package: dotted name, `turnstile.assessment`.
    """
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
