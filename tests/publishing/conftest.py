"""One published package of each shape of rows, made once for this room's tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deployment_fixtures import deployment_in
from made_homes import MadeHome, MadeHomes
from small_deployment import WEEK


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes, generated: Path) -> Path:
    """The public zone of a small deployment: `opal` and `itms`, one week of each."""
    folder = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as environment:
        begun = deployment_in(folder, environment)
    shutil.copytree(generated, begun.home / "landing")
    begun.edit("opal", "  contact:", "  tides_shapes: true\n  contact:")
    # So few buses under the shipped amount show a hexagon in most draws, not in all.
    begun.edit("itms", 'rho: "1/10"', 'rho: "4"')
    begun.edit("itms", 'rho: "38/100"', 'rho: "9"')
    made = homes.get(folder, *[("run", name, "--week", WEEK) for name in ("opal", "itms")])
    return made.home / "public"


@pytest.fixture(params=["opal", "itms"])
def package(request: pytest.FixtureRequest, published: Path) -> Path:
    """A published package of either shape; only to be read."""
    return published / str(request.param) / WEEK / "r0"


@pytest.fixture
def copied(package: Path, tmp_path: Path) -> Path:
    """A copy of a package that a test may alter, with the public key where it lies beside it."""
    programme, week = package.parts[-3:-1]
    folder = tmp_path / programme / week / "r0"
    shutil.copytree(package, folder)
    shutil.copy(package.parents[2] / "ledger.pub", tmp_path)
    return folder


@pytest.fixture
def copied_home(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the published home, whose ledger and public zone a test may write to."""
    ignored = shutil.ignore_patterns("landing", "rows")
    shutil.copytree(published.parents[1], tmp_path / "root", symlinks=True, ignore=ignored)
    copy = MadeHome(tmp_path / "root", ())
    copy.enter(monkeypatch)
    return copy.home
