"""Small reviewed files beside the programmes: lists and mappings of texts, read as strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from turnstile.errors import ProgrammeError
from turnstile.programme.yaml_section import composed, plain, remove_twice


def plain_yaml(path: Path) -> Any:  # noqa: ANN401 - YAML
    """Return the content of a file, every scalar as it is written; None if it holds nothing.

    Raises:
        ProgrammeError: not UTF-8, not YAML, a reference, too deep or too long, or a key twice.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        rule = "is not UTF-8; save it as UTF-8"
        raise ProgrammeError(where=path.name, field="encoding", rule=rule) from None
    node = composed(text, path.name)
    if node is None:
        return None
    for complaint in remove_twice(node, path.name):
        raise complaint
    return plain(node)
