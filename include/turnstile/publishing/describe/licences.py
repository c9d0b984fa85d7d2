"""Licences that programmes name, by SPDX name: where their text is."""

from __future__ import annotations

_PATHS = {
    "CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "ODbL-1.0": "https://opendatacommons.org/licenses/odbl/1-0/",
    "PDDL-1.0": "https://opendatacommons.org/licenses/pddl/1-0/",
}


def path_of(licence: str) -> str | None:
    """Return the address of a licence's text; None for one that is not listed.

    Examples:
        >>> path_of("CC-BY-4.0")
        'https://creativecommons.org/licenses/by/4.0/'
    """
    return _PATHS.get(licence)
