"""Compares the image's packages with a copy of a database of advisories; asks no network.

Usage: `audit_dependencies.py FOLDER`: a folder of advisories in the OSV format, one JSON file each,
such as the unpacked `all.zip` of the ecosystem PyPI that osv.dev offers. Exits 1 if an advisory
names a pinned version, 2 if there is no database: nothing was audited then.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bill_of_materials import ROOT, Pin, pins
from packaging.version import InvalidVersion, Version


def findings(locked: dict[str, Pin], folder: Path) -> Iterator[str]:
    """Yield a sentence for each advisory that names a pinned version."""
    for file in sorted(folder.rglob("*.json")):
        advisory = json.loads(file.read_text(encoding="utf-8"))
        if advisory.get("withdrawn"):
            continue
        for affected in advisory.get("affected", ()):
            package = affected.get("package", {})
            pin = locked.get(_normal(str(package.get("name", ""))))
            if package.get("ecosystem") == "PyPI" and pin and _names(affected, pin.version):
                yield f"{pin.name} {pin.version}: {advisory['id']} {advisory.get('summary', '')}"


def _names(affected: dict[str, Any], version: str) -> bool:
    """Return whether an advisory names a version, by list or by range."""
    if version in affected.get("versions", ()):
        return True
    ranges = (
        version_range
        for version_range in affected.get("ranges", ())
        if version_range.get("type") == "ECOSYSTEM"
    )
    return any(
        _is_within(version_range.get("events", ()), Version(version)) for version_range in ranges
    )


def _is_within(events: Any, version: Version) -> bool:  # noqa: ANN401 - JSON
    """Return whether a version lies in a range of OSV: after `introduced`, before `fixed`."""
    inside = False
    for event in events:
        try:
            if "introduced" in event:
                begin = event["introduced"]
                inside |= begin == "0" or version >= Version(begin)
            if "fixed" in event:
                inside &= version < Version(event["fixed"])
            if "last_affected" in event:
                inside &= version <= Version(event["last_affected"])
        except InvalidVersion:
            continue
    return inside


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Print the findings; say so if there is nothing to compare with."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if folder is None or not any(folder.rglob("*.json")):
        print("no database of advisories: nothing was audited; give ADVISORIES=FOLDER (OSV, PyPI)")
        return 2
    lock = (ROOT / "requirements-runtime.lock").read_text(encoding="utf-8")
    locked = {_normal(pin.name): pin for pin in pins(lock)}
    advisories = list(findings(locked, folder))
    print("\n".join(advisories) or f"{len(locked)} packages: no advisory names a pinned version")
    return 1 if advisories else 0


if __name__ == "__main__":
    sys.exit(main())
