"""The reference of every programme key agrees with what the readers ask for."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turnstile.cli import main
from turnstile.programme.key import OPTIONAL, REQUIRED, Key
from turnstile.programme.keys import KEYS, reference
from turnstile.programme.loading import load_programme, parse_programme, programme_files
from turnstile.programme.yaml_section import Section

ROOT = Path(__file__).parents[2]
PLACES = ("include/programmes", "tests/support/programmes", "tests/pipeline/programmes")
KINDS = ("text", "integer", "flag", "amount", "choice", "texts", "section", "sections")
FREE = (
    "domain.lists",
    "domain.periods",
    "source.columns",
    "source.mode_names",
    "source.action_names",
    "mechanism.split",
)
Asked = dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]]


def general(path: str, known: set[str]) -> str:
    """Return a path with free names as NAME and places as N."""
    path = re.sub(r"\[\d+\]", "[N]", path)
    if path in known:
        return path
    for free in (*FREE, "mechanism.budgets", "tables", "units"):
        if path.startswith(f"{free}."):
            rest = path.removeprefix(f"{free}.")
            _, dot, tail = rest.partition(".") if free in {"tables", "units"} else ("", "", "")
            return f"{free}.NAME{dot}{tail}"
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Asked:
    """What the readers ask for while they read every programme of the repository."""
    found: Asked = {}
    known = {key.path for key in KEYS}
    depth: list[str] = []

    def recorded(kind: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def read(self: Section, key: str, *args: Any, **options: Any) -> Any:
            if not depth:  # a choice reads a text
                found[general(self._name(key), known)] = (kind, args, options)
            depth.append(kind)
            try:
                return method(self, key, *args, **options)
            finally:
                depth.pop()

        return read

    for kind in KINDS:
        monkeypatch.setattr(Section, kind, recorded(kind, getattr(Section, kind)))
    parse_programme.cache_clear()  # a text that was parsed before asks for nothing
    shutil.copytree(ROOT / "include/domains", tmp_path / "domains")
    for area in (ROOT / "tests/pipeline/programmes").glob("*.geojson"):
        shutil.copy(area, tmp_path / "domains")
    for place in PLACES:
        shutil.rmtree(tmp_path / "programmes", ignore_errors=True)
        shutil.copytree(ROOT / place, tmp_path / "programmes")
        for file in programme_files(tmp_path):
            load_programme(file.name, tmp_path)
    return found


def test_every_key_that_is_asked_for_stands_in_the_reference(asked: Asked) -> None:
    assert set(asked) - {key.path for key in KEYS} == set()


# No programme of the repository uses these yet; the readers' own tests do.
UNUSED = {
    "domain.h3_coarsest",
    "domain.timetable",
    "mechanism.budgets.NAME",
    "mechanism.joint_marginals",
    "publish.to",
    "source.card_form.case",
    "source.vehicle_form.length",
    "units.NAME.coarse_cell_at_most",
    "units.bus_week",
    "units.bus_week.cells_at_most",
}


def test_every_key_of_the_reference_is_asked_for(asked: Asked) -> None:
    assert {key.path for key in KEYS} - set(asked) <= UNUSED


def test_type_range_and_default_are_those_of_the_readers(asked: Asked) -> None:
    for key in KEYS:
        if key.path in asked:
            kind, args, options = asked[key.path]
            assert kind == key.kind or (kind == "texts" and key.choices is not None), key.path
            assert options.get("least", 0 if kind == "integer" else None) == key.least, key.path
            if kind == "choice":
                assert args[0] is key.choices, key.path
                args = args[1:]
            assert agrees(key, args, options), key.path


def agrees(key: Key, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Tell whether a default is stated as the reader has it; one that depends is in words."""
    is_in_words = key.default.count(" ") > 0
    if args:
        return is_in_words or str(args[0]) == key.default
    if "default" in options:
        return is_in_words or str(options["default"]).lower() == key.default
    return key.default in {REQUIRED, OPTIONAL}


def test_the_page_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--keys"]) == 0
    printed = capsys.readouterr().out
    assert printed == reference() == (ROOT / "docs/PROGRAMMES.md").read_text()


def test_the_shipped_programmes_are_in_order() -> None:
    assert main(["check"]) == 0


def test_a_misspelt_key_is_named_with_the_nearest_known_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "include", tmp_path / "include", ignore=shutil.ignore_patterns("turn*"))
    broken = tmp_path / "include/programmes/opal.yaml"
    broken.write_text(broken.read_text().replace("slot_minutes", "slot_minute"))
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(tmp_path / "include"))
    assert main(["check"]) == 2
    assert "opal.yaml:" in (said := capsys.readouterr().err)
    assert "slot_minutes" in said
