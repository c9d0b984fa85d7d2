"""A process of another user, with the environment of the page or of nobody, reads no private byte.

Zones as the pipeline makes them after a released week, the landing zone as the image makes it. The
owner is the private worker's user; the other one is what a service outside of the private zone
would be if its volumes were not kept apart: Unix rights alone have to hold.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_deployment import Deployment

ROOT = Path(__file__).resolve().parents[2]
OWNER, OTHER = 50001, 50002
CANARY = "3085220012345678"
# A process of root becomes the user before it opens anything: the interpreter may lie where only
# root comes.
BECOMES = """
import json, os, sys
def become(user):
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
user = int(sys.argv.pop(1))
"""
READS = """
become(user)
opened, closed = [], []
for folder, _, names in os.walk(sys.argv[1], onerror=lambda error: closed.append(error.filename)):
    for name in names:
        path = os.path.join(folder, name)
        try:
            with open(path, "rb") as file:
                file.read()
            opened.append(path)
        except PermissionError:
            closed.append(path)
print(json.dumps({"opened": opened, "closed": closed}))
"""

COMMAND = """
from turnstile.cli import main
*command, = sys.argv[1:]
main(command)  # loads what the other user could not
become(user)
sys.exit(main(command))
"""

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root may become two users")


@pytest.fixture
def home(published: Deployment) -> Iterator[Path]:
    """The zones of a released week, where another user may come near them."""
    with tempfile.TemporaryDirectory(prefix="turnstile-users-") as base:
        Path(base).chmod(0o755)
        home = shutil.copytree(published.home, Path(base) / "home", symlinks=True)
        made = (ROOT / "Dockerfile").read_text(encoding="utf-8")
        closed = re.findall(r"chmod -R 0700 (.*)", made)[0].split()
        assert "/var/lib/turnstile/landing" in closed
        (home / "landing").chmod(0o700)
        (home / "private/failures").mkdir(exist_ok=True)
        (home / "private/failures/opal-ingest.txt").write_text(CANARY)
        subprocess.run(["chown", "-R", f"{OWNER}:{OWNER}", base], check=True)  # noqa: S603, S607
        yield home


def _as(
    user: int, script: str, arguments: list[str], settings: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", BECOMES + script, str(user), *arguments],
        env={"PYTHONPATH": str(ROOT / "include"), "HOME": "/nonexistent", **settings},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def _settings(service: str, home: Path) -> dict[str, str]:
    """Return what docker-compose.yaml gives a service of ours, with this home."""
    services = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"]
    given = services[service]["environment"]
    ours = {name: str(value) for name, value in given.items() if name.startswith("TURNSTILE")}
    assert "TURNSTILE_LEDGER_KEY" not in ours
    return {**ours, "TURNSTILE_HOME": str(home), "TURNSTILE_INCLUDE": str(ROOT / "include")}


def _read(user: int, home: Path) -> dict[str, list[str]]:
    done = _as(user, READS, [str(home)], _settings("api-server", home))
    assert done.returncode == 0, done.stderr
    listing: Any = json.loads(done.stdout)
    return {word: [Path(path).relative_to(home).as_posix() for path in paths]
            for word, paths in listing.items()}  # fmt: skip


def _zones(paths: list[str]) -> set[str]:
    return {path.partition("/")[0] for path in paths}


def test_another_user_reads_no_private_byte_and_every_public_one(home: Path) -> None:
    owner, other = _read(OWNER, home), _read(OTHER, home)
    assert owner["closed"] == []
    private = {path for path in owner["opened"] if path.startswith(("private/", "landing/"))}
    assert {"private/bounding.key", "private/failures/opal-ingest.txt"} <= private
    assert any("exact-" in path for path in private)
    assert any("/rows/" in path for path in private)
    assert private.isdisjoint(other["opened"])
    assert {"private", "landing", "ledger-key.pem"} <= set(other["closed"])
    assert {path for path in owner["opened"] if path.startswith("public/")} <= set(other["opened"])


def test_another_user_verifies_what_is_public(home: Path) -> None:
    package = home / "public/itms/2016-W30/r0"
    done = _as(OTHER, COMMAND, ["package", "verify", str(package)], {})
    assert done.returncode == 0, done.stderr


def test_another_user_verifies_the_ledger_by_the_public_key_that_they_kept(home: Path) -> None:
    """A key that they may not read is not called another one, with advice to rotate it."""
    settings = {"TURNSTILE_HOME": str(home), "TURNSTILE_INCLUDE": str(ROOT / "include")}
    done = _as(OTHER, COMMAND, ["ledger", "verify"], settings)
    assert done.returncode == 2, done.stderr
    assert "ledger-key.pem: key: this login may not read it" in done.stderr
    kept = shutil.copy(home / "public/ledger.pub", home.parent / "kept.pub")
    done = _as(OTHER, COMMAND, ["ledger", "verify", "--key", kept], settings)
    assert done.returncode == 0, done.stderr
    (home / "ledger-key.pem").write_bytes(b"none")
    done = _as(OWNER, COMMAND, ["ledger", "verify"], settings)
    assert done.returncode == 4, done.stderr


def test_a_private_zone_that_is_open_would_be_seen(home: Path) -> None:
    (home / "private").chmod(0o755)
    assert "private" in _zones(_read(OTHER, home)["opened"])
