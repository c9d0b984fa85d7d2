"""Ids of made-up cards and vehicles, in many of the spellings that a form brings to one."""

from __future__ import annotations

from turnstile.programme.id_form import IdForm, IdKind, LetterCase

_LETTERS = 26
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
    found = _of_number(_number(name, form.length or 1), form.length or 1)
    if form.kind is IdKind.TEXT:
        found = _of_text(name, form.case)
    return found[turn % len(found)]


def _of_number(number: int, length: int) -> tuple[object, ...]:
    """Spellings of a number: padded, as an integer, and with what does not show."""
    padded = f"{number:0{length}d}"
    amid = (f"{padded[:1]}{blank}{padded[1:]}" for blank in _WITHIN)
    around = (f"{b}{padded}{a}" for b, a in zip(_BEFORE, _AFTER, strict=True))
    return padded, number, f"00{padded}", *amid, *around


def _of_text(name: str, case: LetterCase | None) -> tuple[object, ...]:
    """Spellings of a text: with what does not show, and in another case if that is folded."""
    amid = (name.replace(" ", blank) for blank in _WITHIN)
    around = (f"{b}{name}{a}" for b, a in zip(_BEFORE, _AFTER, strict=True))
    folded = () if case in (None, LetterCase.KEEP) else (name.upper(), name.title())
    return name, *folded, *amid, *around


def _number(name: str, length: int) -> int:
    """A number of a name's first letter and its own number."""
    word, _, number = name.partition(" ")
    own = int(number) + 1 if number else 0
    return int((_LETTERS * own + ord(word[0]) - ord("a")) % 10**length)
