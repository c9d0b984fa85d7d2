"""Ids of made-up cards and vehicles, in many of the spellings that a form brings to one."""

from __future__ import annotations

from functools import lru_cache
from unicodedata import normalize

from turnstile.programme.id_form import IdForm, IdKind, LetterCase
from turnstile.sources.ingest.identity import EXACT_FLOAT

_LETTERS = 26
_EVEN = "02468"
_COMPOSED = str.maketrans("aou", "\u00e4\u00f6\u00fc")
_HIDDEN = ("\u200b", "\u00ad")
_BEFORE, _WITHIN, _AFTER = ("\u200b", " "), ("\u00a0", "\u00ad\u00a0"), ("\t", "\ufeff ")


def spelt(name: str, form: IdForm | None, turn: int) -> object:
    """Return an id under one of its spellings, as a record holds it.

    Args:
        name: of a made-up card or vehicle, `canary 1`.
        form: that the programme states; without one an id has one spelling.
        turn: which spelling; they come in turns.

    Examples:
        >>> [spelt("other 2", IdForm(IdKind.DIGITS, length=4), turn) for turn in (0, 1)]
        ['0092', 92]
    """
    if form is None:
        return name
    variants = spellings(name, form)
    return variants[turn % len(variants)]


@lru_cache(maxsize=4096)  # a unit has many records
def spellings(name: str, form: IdForm) -> tuple[object, ...]:
    """Return the spellings of an id: as many as a form brings to one, in kind."""
    if form.kind is IdKind.TEXT:
        return _of_text(name, form.case)
    return _of_number(_number(name, form.length or 1), form.length or 1)


def _of_number(number: int, length: int) -> tuple[object, ...]:
    """Spellings of a number: padded, as an integer, as a float wrote it, with what is not seen."""
    padded = f"{number:0{length}d}"
    amid = (f"{padded[:1]}{blank}{padded[1:]}" for blank in _WITHIN)
    around = (f"{b}{padded}{a}" for b, a in zip(_BEFORE, _AFTER, strict=True))
    floats = (f"{number}.0", f"{padded}.") if length <= EXACT_FLOAT else ()
    return padded, number, f"00{padded}", *amid, *around, *floats


def _of_text(name: str, case: LetterCase | None) -> tuple[object, ...]:
    """Spellings of a text: with what does not show, and in another case if that is folded.

    Every other one has a letter that Unicode writes in two ways, and a run of blanks within.
    """
    composed = name.translate(_COMPOSED)
    if name[-1:] in _EVEN:
        return _seen_alike(name.replace(" ", "-"), case)
    return *_seen_alike(composed, case), normalize("NFD", composed), composed.replace(" ", "  ")


def _seen_alike(name: str, case: LetterCase | None) -> tuple[object, ...]:
    """Spellings of a text with what does not show, and of its letters in other cases."""
    amid = (f"{name[:2]}{hidden}{name[2:]}" for hidden in _HIDDEN)
    around = (f"{b}{name}{a}" for b, a in zip(_BEFORE, _AFTER, strict=True))
    folded = () if case in (None, LetterCase.KEEP) else (name.upper(), name.title())
    return name, *folded, *amid, *around


def _number(name: str, length: int) -> int:
    """A number of a name's first letter and its own number."""
    word, _, number = name.partition(" ")
    ordinal = int(number) + 1 if number else 0
    return int((_LETTERS * ordinal + ord(word[0]) - ord("a")) % 10**length)
