"""Read a programme from its YAML file, strictly: unknown keys, floats and loose ends are errors.

Every complaint is one sentence with file, line and field. What the file alone shows is checked
here; that the caps hold the planned loss is checked by `release.plan`, which computes it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from turnstile.errors import InputError, ProgrammeError
from turnstile.programme.rules import broken_rules, mechanism_of
from turnstile.programme.schema import read_sections
from turnstile.programme.spec import Programme
from turnstile.programme.yaml_text import (
    canonical_text,
    compose,
    line_of,
    path_of,
    read_file,
    remove_twice,
    values_of,
)

_DIGITS_OF_EARLIER = 12
_PARSED_AT_MOST = 16  # texts of programmes that a process keeps


@dataclass(frozen=True, slots=True)
class ProgrammeFile:
    """Names a programme's file."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the programme: the file's, without suffix."""
        return self.path.stem

    @property
    def text(self) -> str:
        """Text of the file.

        Raises:
            ProgrammeError: it is not UTF-8, or cannot be read.
        """
        return read_file(self.path)


def programme_files(include: Path) -> tuple[ProgrammeFile, ...]:
    """List the programmes there are, by name; hidden files, as editors leave them, are none."""
    paths = sorted((include / "programmes").glob("[!.]*.yaml"))
    return tuple(ProgrammeFile(path) for path in paths)


def programme_file(name: str, include: Path) -> ProgrammeFile:
    """Return the file of a programme.

    Raises:
        InputError: there is no such programme.
    """
    files = {file.name: file for file in programme_files(include)}
    if name not in files:
        known = ", ".join(files) or "none"
        rule = f"{name!r} is no programme; choose one of: {known}"
        raise InputError(where="include/programmes", field="programme", rule=rule)
    return files[name]


def load_programme(name: str, include: Path) -> Programme:
    """Read `include/programmes/<name>.yaml`.

    Raises:
        InputError: there is no such programme.
        ProgrammeError: the file breaks a rule.
    """
    file = programme_file(name, include)
    return parse_programme(file.text, file.path.name)


def bound_programme(name: str, digest: str, include: Path) -> Programme | None:
    """Return the programme of a digest that a sealed key is bound to; None where no text has it.

    It is the file as it is, or an earlier text of it that is kept as
    `include/programmes/earlier/<name>.<first twelve digits of its digest>.yaml`.

    Raises:
        InputError: there is no such programme.
        ProgrammeError: the file, or the earlier text, breaks a rule.
    """
    present = load_programme(name, include)
    if present.digest == digest:
        return present
    kept = include / f"programmes/earlier/{name}.{digest[:_DIGITS_OF_EARLIER]}.yaml"
    if not kept.is_file():
        return None
    earlier = parse_programme(ProgrammeFile(kept).text, f"{name}.yaml")
    return earlier if earlier.digest == digest else None


@lru_cache(_PARSED_AT_MOST)  # every step of a week opens its programme anew
def parse_programme(text: str, file: str) -> Programme:
    """Read a programme from the text of its file; the same text is parsed once.

    Raises:
        ProgrammeError: the text breaks a rule; the message names file, line and field.
    """
    node = compose(text, file)
    for complaint in remove_twice(node, file):
        raise complaint
    values = values_of(node)
    sections, faults = read_sections(values, file, partial(line_of, node))
    for loc, rule in faults or broken_rules(sections):
        raise ProgrammeError(where=f"{file}:{line_of(node, loc)}", field=path_of(loc), rule=rule)
    digest = hashlib.sha256(canonical_text(values).encode()).hexdigest()
    return sections.programme(mechanism_of(sections), digest)
