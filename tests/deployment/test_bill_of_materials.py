"""The bill of materials comes from the lock; the audit says when it has nothing to compare with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from audit_dependencies import findings
from audit_dependencies import main as audit
from bill_of_materials import ROOT, Pin, bill, pins

RUNTIME = (ROOT / "requirements-runtime.lock").read_text(encoding="utf-8")


def test_every_pin_of_the_image_is_on_the_bill() -> None:
    components: Any = bill(RUNTIME)["components"]
    names = {component["name"] for component in components}
    assert {"apache-airflow", "opendp", "duckdb"} <= names
    assert len(components) == sum(line[0].isalnum() for line in RUNTIME.splitlines())
    assert all(component["externalReferences"] for component in components)
    assert "pytest" not in names


def _advisory(folder: Path, **affected: Any) -> Path:
    package = {"ecosystem": "PyPI", "name": "Jinja2"}
    text = {"id": "X-1", "affected": [{"package": package, **affected}]}
    (folder / "X-1.json").write_text(json.dumps(text))
    return folder


@pytest.mark.parametrize(
    ("events", "is_named"),
    [
        ([{"introduced": "0"}], True),
        ([{"introduced": "0"}, {"fixed": "3.1.6"}], True),
        ([{"introduced": "0"}, {"fixed": "3.1.5"}], False),
        ([{"introduced": "3.2"}], False),
        ([{"introduced": "0"}, {"last_affected": "3.1.5"}], True),
        ([{"introduced": "0"}, {"last_affected": "3.1.4"}], False),
    ],
)
def test_an_advisory_names_the_versions_of_its_range(
    tmp_path: Path, events: Any, *, is_named: bool
) -> None:
    folder = _advisory(tmp_path, ranges=[{"type": "ECOSYSTEM", "events": events}])
    vulnerabilities = list(findings({"jinja2": Pin("jinja2", "3.1.5", ())}, folder))
    assert bool(vulnerabilities) is is_named


def test_a_version_that_is_listed_is_named_and_a_withdrawn_advisory_names_nothing(
    tmp_path: Path,
) -> None:
    folder = _advisory(tmp_path, versions=["3.1.5"])
    locked = {"jinja2": Pin("jinja2", "3.1.5", ())}
    assert list(findings(locked, folder)) == ["jinja2 3.1.5: X-1 "]
    text = json.loads((folder / "X-1.json").read_text())
    (folder / "X-1.json").write_text(json.dumps(text | {"withdrawn": "2026-01-01"}))
    assert list(findings(locked, folder)) == []


def test_without_a_database_the_audit_says_that_nothing_was_audited(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for arguments in ([], [str(tmp_path)]):
        monkeypatch.setattr("sys.argv", ["audit", *arguments])
        assert audit() == 2
        assert "nothing was audited" in capsys.readouterr().out


def test_the_lock_is_read_whole() -> None:
    assert len(list(pins("a==1 \\\n    --hash=sha256:" + "0" * 64 + "\nb==2 ; x \\\n"))) == 2
