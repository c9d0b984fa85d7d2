"""What the schema says of every key: for people as a page, for editors as a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator
from enum import EnumMeta
from typing import Any, get_origin

from pydantic.fields import FieldInfo

from turnstile.programme.key import Read
from turnstile.programme.schema import PROGRAMME, entry_of, fields_of

_OF_ONE_UNIT = 2  # rows: the bound of a unit, and how many of its records count
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def reference() -> str:
    """Return the reference as Markdown."""
    head = (
        "# Programme files: every key\n\n"
        "Printed by `turnstile check --keys`, from `programme/schema.py`. NAME stands for a free "
        "name, N for an index in a list. Amounts are exact and stand in quotes.\n\n"
        "| key | type | default | meaning | example |\n|---|---|---|---|---|\n"
    )
    rows = _rows(FieldInfo.from_annotation(PROGRAMME), "")
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a programme file; it knows the keys, not the rules between them."""
    schema = _without_noise(PROGRAMME.model_json_schema())
    return {"$schema": _DIALECT, "title": "Programme file of Turnstile", **schema}


def _rows(section: FieldInfo, path: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a section's keys: path, type, default, meaning, example."""
    for key, field in fields_of(section).items():
        if path == "units.":  # what every bound may have stands once, under NAME
            yield from list(_row(field, f"{path}{key}"))[:_OF_ONE_UNIT]
        else:
            yield from _row(field, f"{path}{key}")
    if path == "units.":
        yield from list(_rows(field, "units.NAME."))[1:]
    if (entry := entry_of(section)) is not None:
        if get_origin(section.annotation) is list:
            yield from _rows(entry, f"{path.removesuffix('.')}[N].")
        else:
            yield from _row(entry, f"{path}NAME")


def _row(field: FieldInfo, path: str) -> Iterator[tuple[str, ...]]:
    """Yield the row of a key, and those of the keys below it."""
    said: Any = field.json_schema_extra or {}
    default = said["said"]["default"] or _default(field)
    example = said["said"]["example"]
    meaning = str(field.description)
    yield f"`{path}`", _kind(field), default, meaning, f"`{example}`" if example else ""
    yield from _rows(field, f"{path}.")


def _kind(field: FieldInfo) -> str:
    """Return how a value is written."""
    kinds = [note.kind for note in field.metadata if isinstance(note, Read)]
    if kinds:
        return kinds[0]
    if isinstance(field.annotation, EnumMeta):
        return f"choice: {', '.join(str(choice) for choice in field.annotation)}"
    return "sections" if get_origin(field.annotation) is list else "section"


def _default(field: FieldInfo) -> str:
    """Return what holds where a key is left out."""
    if field.is_required():
        return "required"
    if field.default in (None, (), {}):
        return "none"
    return str(field.default).lower() if isinstance(field.default, bool) else str(field.default)


def _without_noise(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a schema without what an editor has no use for."""
    if isinstance(schema, list):
        return [_without_noise(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_noise(value)
        for key, value in schema.items()
        if key != "said"
        and not (key == "title" and isinstance(value, str))
        and (key, value) != ("default", None)
    }
