"""JSON as the package's files write it: indented, sorted, one line feed at the end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence


def json_bytes(content: Mapping[str, object] | Sequence[object]) -> bytes:
    """Return plain values as JSON."""
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()
