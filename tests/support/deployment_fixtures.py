"""Fixtures: a small deployment of its own for each test, and the console script in this process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_deployment import INCLUDE, WEEK, Deployment

from turnstile.cli import main


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    include = tmp_path / "include"
    shutil.copytree(INCLUDE / "programmes", include / "programmes")
    shutil.copytree(INCLUDE / "domains", include / "domains")
    (include / "people.yaml").write_text("release_officer: [ada, grace]\n")
    home = tmp_path / "var"
    monkeypatch.setenv("TURNSTILE_HOME", str(home))
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(include))
    monkeypatch.delenv("TURNSTILE_LEDGER_URL", raising=False)
    made = Deployment(home, include)
    made.edit("opal", "slot_minutes: 15", "slot_minutes: 240")  # few cells, quick draws
    return made


@pytest.fixture
def turnstile(deployment: Deployment) -> Callable[..., int]:
    """The console script, in this process."""
    assert deployment.home
    return lambda *arguments: main([str(argument) for argument in arguments])


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated week of both programmes, made once."""
    landing = tmp_path_factory.mktemp("landing")
    for programme in ("opal", "itms"):
        made = ["sample", programme, "--weeks", WEEK, "--rows", "20000", "--seed", "3"]
        assert main([*made, "--out", str(landing)]) == 0
    return landing


@pytest.fixture
def landed(deployment: Deployment, generated: Path) -> Deployment:
    """A deployment whose landing zone holds a generated week of both programmes."""
    shutil.copytree(generated, deployment.home / "landing")
    return deployment
