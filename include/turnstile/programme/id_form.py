"""How the ids of cards and vehicles are spelt: which texts name the same one (PRIVACY 1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from turnstile.programme.key import Key, whole

_DIGITS_MOST = 64  # of an id


class IdKind(StrEnum):
    """What an id is."""

    TEXT = "text"
    DIGITS = "digits"


class LetterCase(StrEnum):
    """What the letters of an id become."""

    KEEP = "keep"
    UPPER = "upper"
    LOWER = "lower"


@dataclass(frozen=True, slots=True)
class IdForm:
    """The one spelling that every id is brought to before it names anything."""

    kind: Annotated[IdKind, Key("what an id is", "digits")]
    length: Annotated[
        Annotated[int, whole(2, _DIGITS_MOST)] | None,
        Key(
            "of digits: how many; leading zeros are added, or left out, up to it",
            "9",
            default="required",
        ),
    ] = None
    case: Annotated[
        LetterCase | None, Key("of text: what its letters become", "upper", default="keep")
    ] = None

    def sentence(self, what: str) -> str:
        """Say what names one card, or one vehicle; for people.

        Examples:
            >>> IdForm(IdKind.DIGITS, length=9).sentence("card")
            'One card is one number of 9 digits, leading zeros included.'
        """
        if self.kind is IdKind.DIGITS:
            return f"One {what} is one number of {self.length} digits, leading zeros included."
        letters = "" if self.case is LetterCase.KEEP else f", its letters in {self.case} case"
        return (
            f"One {what} is one text in Unicode's form NFC, without invisible characters and "
            f"outer blanks, a run of blanks as one{letters}."
        )
