"""The Helm example has the doors of docker-compose.yaml, and no name that the chart does not have.

It is not rendered: no Helm and no copy of the chart are at hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docker/helm/values.yaml").read_text(encoding="utf-8")
VALUES: Any = yaml.safe_load(TEXT)
POLICY: Any = yaml.safe_load((ROOT / "docker/helm/network-policy.yaml").read_text())
SERVICES: Any = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"]
CHART = Draft7Validator(
    json.loads(Path(__file__).with_name("airflow_chart.schema.json").read_text())
)
SETS = {worker_set["name"]: worker_set for worker_set in VALUES["workers"]["celery"]["sets"]}
SAME = {"private": "worker-private", "default": "worker", "page": "api-server"}
SECRETS = {"password", "pass", "fernetKey", "apiSecretKey", "jwtSecret", "webserverSecretKey"}
PLACES = {**SETS, "page": VALUES["apiServer"]}


def _mounts_of_chart(name: str) -> set[tuple[str, bool]]:
    pod = PLACES[name]
    assert {its["name"] for its in pod["extraVolumes"]} == {
        its["name"] for its in pod["extraVolumeMounts"]
    }
    return {
        (its["mountPath"], bool(its.get("readOnly")))
        for its in pod["extraVolumeMounts"]
        if its["mountPath"].startswith("/var/lib")
    }


def _mounts_of_compose(service: str) -> set[tuple[str, bool]]:
    parts = [text.split(":") for text in SERVICES[service]["volumes"]]
    return {(its[1], its[2:] == ["ro"]) for its in parts if its[1].startswith("/var/lib")}


@pytest.mark.parametrize("name", SAME)
def test_each_pod_sees_what_its_service_sees_and_no_more(name: str) -> None:
    assert _mounts_of_chart(name) == _mounts_of_compose(SAME[name])


def test_only_the_private_pod_sees_raw_data_and_it_reaches_no_web() -> None:
    sees = {name for name in PLACES for path, _ in _mounts_of_chart(name)
            if path.endswith(("/landing", "/private"))}  # fmt: skip
    assert sees == {"private"}
    (selector,) = POLICY["spec"]["podSelector"]["matchLabels"].items()
    assert selector in SETS["private"]["labels"].items()
    assert "labels" not in SETS["default"]
    assert POLICY["spec"]["policyTypes"] == ["Egress"]
    assert all("ipBlock" not in to for rule in POLICY["spec"]["egress"] for to in rule["to"])


@pytest.mark.parametrize("name", SAME)
def test_each_pod_has_the_ledgers_role_of_its_service(name: str) -> None:
    given = {
        variable["name"]: variable["value"] for variable in (*VALUES["env"], *PLACES[name]["env"])
    }
    compose = SERVICES[SAME[name]]["environment"]
    ours = {n: v for n, v in compose.items() if n.startswith(("TURNSTILE", "GX"))}
    empty = ("TURNSTILE_ADOPTED", "TURNSTILE_LANDING_FROM", "TURNSTILE_MEMORY_LIMIT")
    for optional in empty:  # unless somebody sets it
        assert f"{{{optional}:-}}" in ours.pop(optional, f"{{{optional}:-}}")
    assert given == ours


def test_airflow_is_set_as_under_compose() -> None:
    compose = SERVICES["scheduler"]["environment"]
    for section, options in VALUES["config"].items():
        for name, value in options.items():
            assert compose[f"AIRFLOW__{section}__{name}".upper()] == value, name
    queues = {name: SERVICES[SAME[name]]["command"] for name in SETS}
    assert all(SETS[name]["queue"] in command for name, command in queues.items())
    assert VALUES["workers"]["celery"]["terminationGracePeriodSeconds"] == 600
    assert SERVICES["worker"]["stop_grace_period"] == "10m"


def _walk(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value with the key that it stands under."""
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _walk(child, name)
    elif isinstance(value, list):
        for child in value:
            yield from _walk(child, key)
    else:
        yield key, str(value)


def test_no_secret_and_no_default_password_stands_in_it() -> None:
    keys, values = zip(*_walk(VALUES), strict=True)
    assert not SECRETS & set(keys)
    assert not [value for value in values if re.search(r"://[^@/]*:[^@/]*@", value)]
    assert list(_walk({"a": [{"password": "b"}]})) == [("password", "b")]
    assert VALUES["postgresql"] == {"enabled": False}  # the chart's own has a password
    assert VALUES["createUserJob"] == {"enabled": False}  # admin, admin
    named = [value for key, value in VALUES.items() if key.endswith("SecretName")]
    assert len(named) == 3
    assert all(name.startswith("turnstile-") for name in (*named, *VALUES["data"].values()))


def test_the_chart_knows_every_name_and_takes_every_value() -> None:
    CHART.check_schema(CHART.schema)
    assert [error.message for error in CHART.iter_errors(VALUES)] == []


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        ((), "createUserJobs", {"enabled": False}),
        (("data",), "metadataSecret", "turnstile-metadata"),
        (("workers",), "enabled", True),
        (("workers", "celery", "sets", 0), "extraVolumeMount", []),
        (("workers", "celery", "sets", 0, "env", 0), "value", 5),
        (("workers", "celery"), "terminationGracePeriodSeconds", "600"),
        (("apiServer", "extraVolumeMounts", 0), "readonly", True),
        (("createUserJob",), "enabled", "false"),
        (("config", "core"), "parallelism", [8]),
    ],
)
def test_a_name_that_the_chart_does_not_have_is_seen(
    place: tuple[str | int, ...], name: str, value: object
) -> None:
    changed = json.loads(json.dumps(VALUES))  # YAML shares what has an anchor
    part = changed
    for step in place:
        part = part[step]
    part[name] = value
    (error,) = CHART.iter_errors(changed)
    assert name in (*error.path, *re.findall(r"'(\w+)' was unexpected", error.message))
