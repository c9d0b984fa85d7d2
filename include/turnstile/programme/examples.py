"""Which programmes are examples: to be read, planned and run by hand, without a live DAG."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from turnstile.errors import InputError
from turnstile.programme.people import PEOPLE_FILE, holders
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


def readable_examples(include: Path) -> frozenset[str]:
    """Return the examples; none while the list cannot be read, which `broken_beside` says.

    So no programme that was adopted loses its page or DAG to a slip in another's line.
    """
    try:
        return example_programmes(include)
    except InputError:
        return frozenset()


def broken_beside(include: Path) -> Iterator[tuple[str, InputError]]:
    """Yield the files beside the programmes that cannot be read, by name, and what is wrong."""
    readers: tuple[tuple[str, Callable[[Path], object]], ...] = (
        (PEOPLE_FILE, partial(holders, "any role")),
        (EXAMPLES_FILE, example_programmes),
    )
    for name, read in readers:
        try:
            read(include)
        except InputError as error:
            yield name, error
