"""Which programmes are examples: to be read, planned and run by hand, without a live DAG."""

from __future__ import annotations

from pathlib import Path

from turnstile.errors import InputError
from turnstile.programme.yaml_text import plain_yaml

EXAMPLES_FILE = "examples.yaml"


def example_programmes(include: Path) -> frozenset[str]:
    """Return the programmes that nobody has adopted; none where there is no list.

    Args:
        include: folder of the reviewed files.

    Raises:
        InputError: the file is no list of names.
    """
    path = include / EXAMPLES_FILE
    if not path.exists():
        return frozenset()
    names = plain_yaml(path) or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(where=EXAMPLES_FILE, field="-", rule="write a list of programmes' names")
    return frozenset(names)
