"""Images that are pulled can be pinned by digest: names from variables, and a command that asks."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
PULLED = dict(re.findall(r"^([A-Z]+_IMAGE)=(.*)$", EXAMPLE, re.MULTILINE))
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
# What an engine answers, from a registry that has everything, or for an image that was built here.
ENGINE = """#!/bin/sh
if [ "$1" = image ]; then for last; do :; done; {answer}; fi
"""


def _pin(folder: Path, answer: str, text: str) -> subprocess.CompletedProcess[str]:
    engine = folder / "docker"
    engine.write_text(ENGINE.format(answer=answer))
    engine.chmod(0o755)
    given = folder / "env"
    given.write_text(text)
    return subprocess.run(  # noqa: S603 - our own script
        [ROOT / "docker/pin-images.sh", given],
        env={"PATH": f"{folder}{os.pathsep}{os.defpath}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_pulled_image_has_a_variable_that_takes_a_digest() -> None:
    services: Any = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"]
    names = {service["image"] for service in services.values()} - {services["scheduler"]["image"]}
    names.add(services["scheduler"]["build"]["args"]["PYTHON_IMAGE"])
    assert names == {f"${{{variable}:-{name}}}" for variable, name in PULLED.items()}
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    bases = set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE))
    assert bases == {"${PYTHON_IMAGE}"}


def test_one_command_pins_every_image_and_moves_a_pinned_one_on(tmp_path: Path) -> None:
    answer = f'echo "${{last%:*}}@{DIGEST}"'
    pinned = _pin(tmp_path, answer, EXAMPLE)
    assert pinned.returncode == 0, pinned.stderr
    expected = [f"{variable}={name}@{DIGEST}" for variable, name in PULLED.items()]
    assert pinned.stdout.splitlines() == expected
    again = _pin(tmp_path, answer, pinned.stdout.replace("0123", "ffff"))
    assert again.stdout.splitlines() == expected


@pytest.mark.parametrize("answer", ["true", "echo no-digest"])
def test_an_image_without_a_digest_is_named(tmp_path: Path, answer: str) -> None:
    pinned = _pin(tmp_path, answer, EXAMPLE)
    assert pinned.returncode == 1
    assert "python:3.11-slim-bookworm has no digest" in pinned.stderr
    assert pinned.stdout == ""
