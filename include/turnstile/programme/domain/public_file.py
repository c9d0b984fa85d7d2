"""One public file under `include/`: read once, named in every complaint about it."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from turnstile.errors import ProgrammeError
from turnstile.programme.spec import Programme

_DIGEST_SHOWN = 12
_BEGINS_A_FORMULA = ("=", "+", "-", "@")


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A public file that was read once: its name for messages, and its bytes."""

    name: str
    content: bytes

    @property
    def version(self) -> str:
        """File and start of the digest of its bytes."""
        return f"{self.name}@{hashlib.sha256(self.content).hexdigest()[:_DIGEST_SHOWN]}"

    def rows(self, *columns: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield (file and line, values of these columns) of a CSV file; no value is empty."""
        reader = csv.DictReader(io.StringIO(self.text(), newline=""))
        for column in columns:
            if column not in (reader.fieldnames or ()):
                refuse(self.name, column, f"no such column; the header needs {', '.join(columns)}")
        for row in reader:
            where = f"{self.name}:{reader.line_num}"
            values = tuple((row[column] or "").strip() for column in columns)
            for column, value in zip(columns, values, strict=True):
                if not value:
                    refuse(where, column, "is empty; fill it or delete the line")
            yield where, values

    def columns(self) -> tuple[str, ...]:
        """Return the header of a CSV file."""
        return tuple(next(csv.reader(io.StringIO(self.text(), newline="")), ()))

    def text(self) -> str:
        """Return the text, which must be UTF-8."""
        try:
            return self.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            refuse(self.name, "encoding", "is not UTF-8; save it as UTF-8")


def refuse(where: str, field: str, rule: str) -> NoReturn:
    """Raise the sentence.

    Raises:
        ProgrammeError: always.
    """
    raise ProgrammeError(where=where, field=field, rule=rule)


def check_label(where: str, field: str, label: str) -> None:
    """Refuse a published label that a spreadsheet could take for a formula.

    Raises:
        ProgrammeError: it is one.
    """
    if label.startswith(_BEGINS_A_FORMULA) or not label.isprintable():
        rule = f"begins as a formula or holds a control character; name the {field} another way"
        refuse(where, field, rule)


def open_public_file(
    programme: Programme, field: str, name: str | None, include: Path
) -> PublicFile:
    """Read a file under `include/`, and no other.

    Args:
        programme: whose file names it.
        field: YAML path of the name.
        name: path below `include/`.
        include: that folder.

    Raises:
        ProgrammeError: no name, no such file, or one outside of the folder.
    """
    where = f"{programme.name}.yaml"
    if name is None:
        refuse(where, field, "is missing; name a file under include/domains")
    root = include.resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        refuse(where, field, f"{name} lies outside of include/; public domains are kept there")
    if not path.is_file():
        refuse(where, field, f"there is no file include/{name}; add it, or correct the name")
    return PublicFile(name, path.read_bytes())
