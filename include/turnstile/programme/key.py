"""What the reference says of one key of a programme file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

REQUIRED = "required"
OPTIONAL = "none"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a programme file.

    Args:
        path: from the top of the file, `source.feed`.
        kind: how it is written: text, integer, flag, amount, choice, texts, section, sections.
        default: as written; REQUIRED, or OPTIONAL where it may be left out without one.
        meaning: in one sentence.
        example: as it stands in a file.
        choices: the names that are allowed.
        least: smallest integer.
    """

    path: str
    kind: str
    default: str
    meaning: str
    example: str
    choices: type[StrEnum] | None = None
    least: int | None = None
