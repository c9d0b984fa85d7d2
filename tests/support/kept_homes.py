"""Homes of earlier versions, as archives that stay: unpacked, and lived in."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from small_deployment import Deployment

_FIXTURES = Path(__file__).parents[1] / "fixtures"
OF_0_1_0, OF_PACKAGES_1 = "home_0_1_0.tar.gz", "home_of_version_1.tar.gz"


def unpacked(name: str, folder: Path) -> Path:
    """Unpack a home into a folder of its own; return it."""
    with tarfile.open(_FIXTURES / name) as archive:
        archive.extractall(folder)  # noqa: S202 - ours; Python before 3.11.4 has no filters
    return folder / "home"


def lived_in(name: str, folder: Path, environment: pytest.MonkeyPatch) -> Path:
    """Unpack a home and let it be the deployment; return it."""
    home = unpacked(name, folder)
    (home / "private").chmod(0o700)
    Deployment(home, folder / "include").enter(environment)
    if (folder / "witness").is_dir():
        environment.setenv("TURNSTILE_WITNESS", str(folder / "witness"))
    return home
