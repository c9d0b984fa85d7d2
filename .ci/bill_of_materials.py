"""Prints the packages of an image as a CycloneDX 1.5 bill of materials, from the lock alone.

Usage: `bill_of_materials.py [LOCK]`, by default `requirements-runtime.lock`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PIN = re.compile(r"^([a-z0-9._-]+)==(\S+)(?: ; (.*?))? \\?$", re.IGNORECASE | re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Pin:
    """One package of the lock.

    Args:
        name: as in the index.
        version: pinned.
        hashes: SHA-256 of the files that may be installed.
    """

    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def address(self) -> str:
        """Package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


def pins(lock: str) -> Iterator[Pin]:
    """Yield what a lock pins."""
    for block in re.split(r"\n(?=\S)", lock.strip()):
        if match := _PIN.match(block.splitlines()[0]):
            yield Pin(match[1], match[2], tuple(_HASH.findall(block)))


def bill(lock: str) -> dict[str, object]:
    """Return the bill of materials of a lock."""
    components = [
        {
            "type": "library",
            "bom-ref": pin.address,
            "name": pin.name,
            "version": pin.version,
            "purl": pin.address,
            # Each hash is of one file of the release, and one of them is installed.
            "externalReferences": [
                {
                    "type": "distribution",
                    "url": pin.address,
                    "hashes": [{"alg": "SHA-256", "content": digest}],
                }
                for digest in pin.hashes
            ],
        }
        for pin in pins(lock)
    ]
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components}


def main() -> int:
    """Print it."""
    lock = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "requirements-runtime.lock"
    print(json.dumps(bill(lock.read_text(encoding="utf-8")), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
