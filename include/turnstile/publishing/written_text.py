"""JSON and YAML as the package's files write them, each with one line feed at the end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence


def json_bytes(
    content: Mapping[str, object] | Sequence[object], *, is_sorted: bool = True
) -> bytes:
    """Return plain values as JSON, indented."""
    return (json.dumps(content, indent=1, sort_keys=is_sorted) + "\n").encode()


def yaml_bytes(content: Mapping[str, object]) -> bytes:
    """Return plain values as YAML, in their order."""
    import yaml

    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100).encode()
