"""What the schema says of every key: the page, the JSON Schema for editors, and the examples."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from turnstile.cli import main
from turnstile.programme.loading import parse_programme
from turnstile.programme.reference import json_schema, reference
from turnstile.programme.schema import PROGRAMME, entry_of, fields_of
from turnstile.programme.yaml_text import compose, values_of

ROOT = Path(__file__).parents[2]
PROGRAMMES = ROOT / "include/programmes"
FIRST_LINE = "# yaml-language-server: $schema=programme.schema.json\n"
SHIPPED = sorted(PROGRAMMES.glob("*.yaml"))


def keys(section: FieldInfo, path: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every key of the schema that stands in a section, by its path."""
    for key, field in fields_of(section).items():
        yield f"{path}{key}", field
        yield from keys(field, f"{path}{key}.")
    if (entry := entry_of(section)) is not None:
        yield f"{path}NAME", entry
        yield from keys(entry, f"{path}NAME.")


KEYS = dict(keys(FieldInfo.from_annotation(PROGRAMME)))
del KEYS["caps.NAME"]  # an entry of a list: it has keys, and no name


def said(field: FieldInfo) -> dict[str, str]:
    extra: Any = field.json_schema_extra
    return extra["said"]


def _type_of(path: str) -> Any:
    field = KEYS[path]
    return Annotated[(field.annotation, field, *field.metadata)]


def read(path: str, text: str) -> object:
    """Return what a key reads where a file says so."""
    written = values_of(compose(f"it: {text}", "x"))["it"]
    return TypeAdapter(_type_of(path)).validate_python(written)


def as_an_editor_reads(path: Path) -> Any:
    """Return a file with the types that YAML gives its scalars, dates as they are written."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: node.value)
    return yaml.load(path.read_text(), Loader)  # noqa: S506 - a safe loader


def test_the_page_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--keys"]) == 0
    printed = capsys.readouterr().out
    assert printed == reference() == (ROOT / "docs/PROGRAMMES.md").read_text()


def test_the_schema_beside_the_programmes_is_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "--schema"]) == 0
    printed = capsys.readouterr().out
    assert printed == (PROGRAMMES / "programme.schema.json").read_text()
    Draft202012Validator.check_schema(json.loads(printed))


@pytest.mark.parametrize("path", sorted(KEYS))
def test_every_key_says_what_it_means_and_its_example_is_one(path: str) -> None:
    field = KEYS[path]
    assert field.description
    example = said(field)["example"]
    if not example:
        assert fields_of(field) or entry_of(field) or path == "meant_for"
        return
    read(path, example)
    with pytest.raises(ValidationError):
        TypeAdapter(_type_of(path)).validate_python(3.5)


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("domain.slots", '"05:00-24:30"', (300, 1470)),
        ("domain.slots", '"24:00-47:59"', (1440, 2879)),
        ("domain.slots", "all_day", None),
        ("domain.slots", "domains/hours.csv", "domains/hours.csv"),
        ("domain.periods.NAME", '"07:05-25:59"', (425, 1559)),
        ("time.day_starts", '"12:00"', 720),
        ("tables.NAME.limits_kmh", "[60, 1]", (1, 60)),
        ("tables.NAME.limits_kmh", "[40, '040']", (40,)),
        ("domain.h3_resolution", "15", 15),
        (
            "source.absent_days",
            "[2016-12-26, 2016-12-25]",
            (date(2016, 12, 25), date(2016, 12, 26)),
        ),
        ("source.extent.north", '"-90"', -90),
        ("mechanism.epsilon", '"1e-6"', Fraction(1, 10**6)),
        ("mechanism.epsilon", '"1/8"', Fraction(1, 8)),
        ("mechanism.epsilon", "4", 4),
        ("typical_volume", "9" * 18, 10**18 - 1),
        ("source.files_at_least", "0x10", 16),
    ],
)
def test_a_value_is_read_exactly(path: str, text: str, value: object) -> None:
    assert read(path, text) == value


@pytest.mark.parametrize(
    ("path", "text"),
    [
        *(("domain.slots", f'"{text}"') for text in ("09:00-09:00", "21:00-48:00", "09:00-24:60")),
        *(("domain.slots", f'"{text}"') for text in ("0900-2100", "09:00:30-21:00", "09:00")),
        *(("domain.periods.NAME", f'"{text}"') for text in ("7:00-09:00", "07:00-09:00-10:00")),
        *(("time.day_starts", f'"{text}"') for text in ("12:01", "04:00:30", "0400", "04")),
        *(("schedule.weekly_at", f'"{text}"') for text in ("10:00+02:00", "24:00", "10")),
        *(
            ("tables.NAME.limits_kmh", text)
            for text in ("[0, 1]", "[]", "40", "[40, 40]", "[40, [9]]")
        ),
        ("source.extent.north", '"90.1"'),
        ("source.absent_days", "[2016-12-25, tomorrow]"),
        *(("mechanism.epsilon", text) for text in ('"0"', '"1/0"', "0.5", "-1", '"1e100"')),
        ("typical_volume", "9" * 19),
        ("domain.h3_resolution", "16"),
        ("caps.NAME.window_weeks", "0"),
        ("publish.curator", "decide"),
        ("units.trip.once_per_cell", '"true"'),
    ],
)
def test_a_value_that_is_none_is_refused(path: str, text: str) -> None:
    with pytest.raises(ValidationError):
        read(path, text)


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_a_shipped_programme_names_the_schema_and_keeps_it(path: Path) -> None:
    assert path.read_text().startswith(FIRST_LINE)
    read = as_an_editor_reads(path)
    validator = Draft202012Validator(json_schema())
    assert list(validator.iter_errors(read)) == []
    for section, key, value in (
        ("time", "slot_minute", 15),
        ("time", "slot_minutes", "15"),
        ("source", "feed", "opal"),
        ("mechanism", "rho", 0.125),
    ):
        broken = {**read, section: {**read[section], key: value}}
        assert list(validator.iter_errors(broken)), (section, key)


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_the_line_that_names_the_schema_changes_no_digest(path: Path) -> None:
    text = path.read_text()
    without = text.removeprefix(FIRST_LINE)
    assert without != text
    digest = parse_programme(text, path.name).digest
    assert parse_programme(without, path.name).digest == digest


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
