"""How the keys of a programme file are written: types that read texts strictly, and what is said.

A scalar of YAML comes as it is written, with its tag, so that `0.1` (a float, not exact) differs
from `"1/10"`, and a key that takes a text takes an unquoted number or date as it stands. A record
names a type from here for each of its fields and says with `Key` what the key means.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, time
from fractions import Fraction
from typing import Annotated, Any, Self
from zoneinfo import ZoneInfo

import yaml
from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from turnstile.errors import InputError
from turnstile.service_calendar import MINUTES_PER_DAY, minute_of, zone_named

UNDECIDED = "decide"
"""What stands in a new programme for what nobody has decided yet: no value of any key."""
_INTEGER = "tag:yaml.org,2002:int"
_BOOLEAN = "tag:yaml.org,2002:bool"
_FLOAT = "tag:yaml.org,2002:float"
# As many digits as an exact amount may need; without a bound a short text is a number of gigabytes.
_AMOUNT = re.compile(r"\d{1,40}(/\d{1,40}|\.\d{1,40})?(e-?\d{1,2})?")
_DIGITS_AT_MOST = 18  # of an integer: all that 64 bits hold
_DAY_STARTS_AT_MOST = 720  # minutes; a later begin would be another day's
_OF_A_TEXT: dict[str, Any] = {"type": ["string", "number"]}  # 2016 without quotes is a text too


class Written(str):
    """A scalar of a YAML file as it is written, with the tag that YAML resolves it to."""

    __slots__ = ("tag",)
    tag: str

    @classmethod
    def of(cls, text: str, tag: str) -> Self:
        """Return a text with its tag."""
        written = cls(text)
        written.tag = tag
        return written


@dataclass(frozen=True, slots=True, eq=False)  # a type that it is a note of has to have a hash
class Read:
    """How a value is read: from what stands in the file, by a function that raises ValueError.

    Args:
        read: returns the value of a record.
        kind: what the reference calls it.
        json_schema: what an editor is told of it.
    """

    read: Callable[[Any], Any]
    kind: str = "text"
    json_schema: dict[str, Any] | None = None

    def __get_pydantic_core_schema__(self, _: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read by the function alone."""
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Tell an editor."""
        return dict(self.json_schema or _OF_A_TEXT)


@dataclass(frozen=True, slots=True)
class Named:
    """A mapping of free names, read as pairs in the order of the file.

    Args:
        value: type of what a name stands for, with its `Key`.
    """

    value: Any

    def __get_pydantic_core_schema__(self, _: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read a mapping and keep its pairs."""
        mapping = handler.generate_schema(dict[str, self.value])  # type: ignore[name-defined]
        return core_schema.no_info_after_validator_function(lambda it: tuple(it.items()), mapping)


def Key(  # noqa: N802 - it stands where a class of metadata would
    meaning: str, example: str = "", *, default: str = "", name: str | None = None
) -> Any:  # noqa: ANN401 - as pydantic types it
    """Say what a key means.

    Args:
        meaning: in one sentence.
        example: as it stands in a file.
        default: in words, where the record's own default does not say it.
        name: its name in the file, where the record has another.
    """
    said: dict[str, Any] = {"example": example, "default": default}
    return Field(description=meaning, alias=name, json_schema_extra={"said": said})


def read_text(value: object) -> str:
    """Return a text; an unquoted number or date is read as it is written.

    Raises:
        ValueError: a list, a mapping or nothing.
    """
    if not isinstance(value, str) or not value:
        raise ValueError("must be a text; write one")
    if value == UNDECIDED:
        raise ValueError("is for a person to decide; the page of decisions says between what")
    return str(value)


def read_texts(value: object) -> tuple[str, ...]:
    """Return a list of different texts.

    Raises:
        ValueError: no list, an empty one, or an entry twice.
    """
    if not isinstance(value, list) or not value:
        raise ValueError("must be a list with at least one entry")
    if not all(isinstance(text, str) for text in value):
        raise ValueError("must be a list of texts")
    if len(set(value)) < len(value):
        raise ValueError("has an entry twice; remove one")
    return tuple(map(str, value))


def whole(least: int, most: int | None = None) -> Read:
    """Return how an integer within bounds is read."""
    allowed = f"{least} or more" if most is None else f"{least} to {most}"

    def read(value: object) -> int:
        if not isinstance(value, Written) or value.tag != _INTEGER:
            raise ValueError("must be an integer; write one without quotes")
        if len(value) > _DIGITS_AT_MOST:
            raise ValueError(f"has more than {_DIGITS_AT_MOST} digits; write a smaller number")
        number = int(yaml.safe_load(value))
        if number < least:
            raise ValueError(f"{number} is too small; write {allowed}")
        if most is not None and number > most:
            raise ValueError(f"{number} is too large; write {allowed}")
        return number

    bounds = {"minimum": least} | ({} if most is None else {"maximum": most})
    return Read(read, f"integer, {allowed}", {"type": "integer", **bounds})


def _flag(value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, Written) or value.tag != _BOOLEAN:
        raise ValueError("must be true or false")
    return bool(yaml.safe_load(value))


def _amount(value: object) -> Fraction:
    """Return an exact positive amount, written as a text: "4", "1/8", "0.05" or "1e-6"."""
    if not isinstance(value, Written) or value.tag == _FLOAT:
        raise ValueError('must be exact; write it in quotes, for example "1/8" or "1e-6"')
    try:
        exact = Fraction(value) if _AMOUNT.fullmatch(value) else Fraction(0)
    except ZeroDivisionError:
        exact = Fraction(0)
    if exact <= 0:
        rule = f"{value[:80]!r} is no positive amount of at most 40 digits; write for example "
        raise ValueError(f'{rule}"1/8" or "1e-6"')
    return exact


def _limits(value: object) -> tuple[int, ...]:
    """Return positive integers in rising order."""
    texts = read_texts(value)
    if not all(text.isdecimal() and int(text) > 0 for text in texts):
        raise ValueError("must be positive integers, km/h; write for example [40, 60]")
    return tuple(sorted(set(map(int, texts))))


def _days(value: object) -> tuple[date, ...]:
    """Return service days in their order."""
    texts = read_texts(value)
    try:
        return tuple(sorted(map(date.fromisoformat, texts)))
    except ValueError:
        raise ValueError("must be service days; write for example 2016-12-25") from None


def parsed(parse: Callable[[str], object], rule: str) -> Read:
    """Return how a text is read that `parse` understands; `rule` says what it is not."""

    def read(value: object) -> object:
        text = read_text(value)
        try:
            return parse(text)
        except (ValueError, InputError):
            raise ValueError(f"{text!r} {rule}") from None

    return Read(read)


def degrees(most: int) -> Read:
    """Return how degrees are read: from a text, as amounts are, because floats are not exact."""

    def read(value: object) -> Fraction:
        try:
            number = Fraction(read_text(value))
        except (ValueError, ZeroDivisionError):
            raise ValueError("must be degrees; write for example 72.6") from None
        if abs(number) > most:
            raise ValueError(f"must lie between -{most} and {most} degrees")
        return number

    return Read(read)


def _day_starts(text: str) -> int:
    """Return the hour at which a service day begins, in minutes after midnight."""
    minute = minute_of(text)
    if minute > _DAY_STARTS_AT_MOST:
        raise ValueError
    return minute


def _slots(text: str) -> str | tuple[int, int] | None:
    """Return the file of hours by mode, a stretch of the service day, or None for all of it."""
    if text == "all_day" or text.endswith(".csv"):
        return None if text == "all_day" else text
    first, last = _stretch(text)
    if not first < last < 2 * MINUTES_PER_DAY:
        raise ValueError
    return first, last


def _stretch(text: str) -> tuple[int, int]:
    """Return first and last minute of a stretch of the service day."""
    first, _, last = text.partition("-")
    return minute_of(first), minute_of(last)


def _time_of_day(text: str) -> time:
    return time(*divmod(minute_of(text), 60))


_NO_SLOTS = (
    'is no stretch of a day; write all_day, "09:00-21:00", or the file of hours by mode, for '
    "example domains/x.csv"
)
_LIST = {"type": "array", "items": _OF_A_TEXT, "minItems": 1, "uniqueItems": True}
Text = Annotated[str, Read(read_text)]
Texts = Annotated[tuple[str, ...], Read(read_texts, "texts", _LIST)]
Dimensions = Annotated[  # of a table, which may be a total
    tuple[str, ...],
    Read(lambda it: () if it == [] else read_texts(it), "texts", _LIST | {"minItems": 0}),
]
Limits = Annotated[tuple[int, ...], Read(_limits, "texts", _LIST)]
Days = Annotated[tuple[date, ...], Read(_days, "texts", _LIST)]
Day = Annotated[
    date, parsed(date.fromisoformat, "is no date; write the first service day, 2021-11-15")
]
Clock = Annotated[time, parsed(_time_of_day, 'is no time of day; write "10:00"')]
DayStarts = Annotated[
    int, parsed(_day_starts, 'is no begin of a slot from 00:00 to 12:00; write "04:00"')
]
Slots = Annotated[str | tuple[int, int] | None, parsed(_slots, _NO_SLOTS)]
Stretch = Annotated[
    tuple[int, int], parsed(_stretch, 'is no stretch of a day; write "07:00-09:30"')
]
_NO_ZONE = "is no IANA time zone; write for example Australia/Sydney"
Zone = Annotated[ZoneInfo, parsed(lambda name: zone_named(name, where="zone"), _NO_ZONE)]
Flag = Annotated[bool, Read(_flag, "flag", {"type": "boolean"})]
Amount = Annotated[Fraction, Read(_amount, "amount", {"type": ["string", "integer"]})]
Whole = Annotated[int, whole(0)]
Positive = Annotated[int, whole(1)]
