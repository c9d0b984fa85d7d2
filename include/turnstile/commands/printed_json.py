"""What commands print for scripts."""

from __future__ import annotations

import json


def print_json(value: object, *, sort_keys: bool = False) -> None:
    """Write a value to standard output, as every `--json` does."""
    print(json.dumps(value, indent=1, sort_keys=sort_keys))
