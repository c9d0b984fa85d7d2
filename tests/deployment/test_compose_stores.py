"""docker-compose.stores.yaml: valid, and to each service the stores that its policy opens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_natively import added
from object_store import ZONES, may

ROOT = Path(__file__).resolve().parents[2]
OVERRIDE = ROOT / "docker-compose.stores.yaml"
USER_OF = {"worker-private": "worker-private", "worker": "worker", "api-server": "page"}
EXAMPLE = ROOT / ".env.example"
MANUAL = ROOT / "docs/OPERATIONS.md"
ADDRESS = re.compile(r"\$\{(\w+)_STORE(:\?[^}]*)?\}")


@pytest.fixture(scope="module")
def override() -> Any:
    return yaml.safe_load(OVERRIDE.read_text())


@pytest.fixture(scope="module")
def services(override: Any) -> dict[str, Any]:
    base = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"]
    return {name: added(base[name], more) for name, more in override["services"].items()}


def test_the_file_is_valid() -> None:
    words = ["check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(OVERRIDE)]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", *words], capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stdout


def test_each_service_is_given_the_stores_of_its_user(services: dict[str, Any]) -> None:
    assert services.keys() == USER_OF.keys()
    for name, user in USER_OF.items():
        environment = services[name]["environment"]
        named = {
            zone: environment[f"TURNSTILE_{zone.upper()}_STORE"]
            for zone in ZONES
            if f"TURNSTILE_{zone.upper()}_STORE" in environment
        }
        assert named.keys() == {zone for zone in ZONES if "s3:GetObject" in may(user, zone)}, name
        for zone, address in named.items():
            match = ADDRESS.fullmatch(address)
            assert match is not None
            assert match[1] == zone.upper()
            file = environment[f"TURNSTILE_{zone.upper()}_STORE_CREDENTIALS"]
            assert file.removeprefix("/run/secrets/") in services[name]["secrets"]


def test_no_two_services_share_a_secret_or_a_copy(services: dict[str, Any]) -> None:
    secrets = [
        secret for each in services.values() for secret in each["secrets"] if "store" in secret
    ]
    assert len(secrets) == len(set(secrets)) == len(services)
    copies = [
        mount.split(":")[0]
        for each in services.values()
        for mount in each["volumes"]
        if mount.split(":")[1].removeprefix("/var/lib/turnstile/") in ZONES
    ]
    assert len(copies) == len(set(copies)) == 8


def test_whatever_is_named_is_declared(override: Any) -> None:
    base = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())
    for service in override["services"].values():
        assert set(service["secrets"]) <= override["secrets"].keys()
        for volume in service.get("volumes", ()):
            assert volume.split(":")[0] in override["volumes"]
    assert not override["volumes"].keys() & base["volumes"].keys()


def test_example_and_manual_name_every_variable_and_secret(override: Any) -> None:
    asked = set(re.findall(r"\$\{(\w+)(?::\?[^}]*)?\}", OVERRIDE.read_text(encoding="utf-8")))
    lines = [EXAMPLE.read_text(encoding="utf-8"), MANUAL.read_text(encoding="utf-8")]
    example, manual = (
        dict(re.findall(rf"^{mark}(\w+_STORE|COMPOSE_FILE)=(.*)$", text, re.MULTILINE))
        for mark, text in zip(("#", ""), lines, strict=True)
    )
    assert asked == example.keys() - {"COMPOSE_FILE"}
    assert example == manual
    assert example["COMPOSE_FILE"] == f"docker-compose.yaml:{OVERRIDE.name}"
    for text in lines:
        assert set(re.findall(r"secrets/(store_\w+)", text)) == override["secrets"].keys()
