"""From what stands in a programme file to its records, section by section, with every fault.

A *form* is what stands in a section: the fields of its record that say with `Key` what they mean,
and what the file states in another way than the record. Pydantic reads a form; the functions here
make the record of it, with what the file leaves to the feed or to another section.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from turnstile.measures.registry import USUAL
from turnstile.privacy.units import ProtectionUnit, Subject, units_of
from turnstile.programme.id_form import IdForm, IdKind, LetterCase
from turnstile.programme.key import Amount, Key, Named, Positive, Read, Slots
from turnstile.programme.mechanism_spec import WINDOW_WEEKS, CapSpec, MechanismSpec
from turnstile.programme.source_spec import STOP_WITHIN_M, Feed, RowShape, SourceSpec
from turnstile.programme.spec import (
    ApprovalSpec,
    DomainSpec,
    Outside,
    Period,
    Programme,
    PublishSpec,
    Query,
    RetentionSpec,
    ScheduleSpec,
    TableSpec,
    TimeSpec,
    UnitBound,
)
from turnstile.programme.yaml_text import Loc

_SURE = 0.8  # likeness of two keys, one of which is meant for the other
_NONE: Mapping[str, Any] = MappingProxyType({})
_STRICT = ConfigDict(extra="forbid", defer_build=True)
_WORD = re.compile(r"'([^']*)'")  # of those that pydantic says are allowed
Fault = tuple[Loc, str]
T = TypeVar("T")
_RECORDS: dict[Any, Any] = {}  # form: record
_STATED_AS: dict[Any, Any] = {}  # type of a record's field: what the file has in its place


def _form(
    record: type[Any],
    keys: Mapping[str, Any] = _NONE,
    *,
    of: str = "",
    defaults: Mapping[str, Any] = _NONE,
) -> type[BaseModel]:
    """Return the form of a section that becomes a record.

    Args:
        record: its class.
        keys: what the file states in another way than the record.
        of: what it is of, where a record has several forms.
        defaults: of fields for which the file has a default and the record has none.
    """
    hints, stated = get_type_hints(record, include_extras=True), {}
    for field in fields(record):
        kind, said, is_optional = _parts(hints[field.name])
        if not any(isinstance(note, FieldInfo) for note in said):
            continue  # made from other keys
        if kind in _STATED_AS:
            kind = _STATED_AS[kind]
        elif is_dataclass(kind) and len(said) == 1:
            kind = _STATED_AS.setdefault(kind, _form(cast("type[Any]", kind)))
        default = defaults.get(field.name, field.default)
        default = None if is_optional and default is MISSING else default
        known = Annotated[(kind, *said)]  # type: ignore[valid-type]
        stated[field.name] = known if default is MISSING else (known, default)
    made = create_model(f"{record.__name__}{of}", __config__=_STRICT, **(dict(keys) | stated))
    if record is not MechanismSpec:  # made of what is written by `rules.mechanism_of`
        _RECORDS[made] = record
    return made


def _parts(hint: Any) -> tuple[Any, tuple[Any, ...], bool]:  # noqa: ANN401 - any type
    """Return a type without None, what is said of it, and whether it may be None."""
    kind, *said = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    others = [member for member in get_args(kind) if member is not NoneType]
    is_optional = NoneType in get_args(kind)
    return (others[0] if is_optional else kind), tuple(said), is_optional


_BOUNDED = {
    "contributes": "must be 1",
    "trips_at_most": "trips of a unit that are counted, over all modes",
    "cells_at_most": "pairs of slot and cell of a unit that are counted, each day its own",
}


def _units(units: Iterable[ProtectionUnit]) -> Any:  # noqa: ANN401 - a form
    """Return the form of the bounds of units."""
    bounds: dict[str, Any] = {}
    for unit in units:
        if (key := unit.bound_key) is not None:
            most = Key(_BOUNDED[key], "1" if unit.is_record else "20", name=key)
            bound = _form(
                UnitBound, {"contributions_max": Annotated[Positive, most]}, of=unit.title()
            )
            said = Key(f"bound of a {unit.replace('_', '-')}")
            bounds[str(unit)] = (Annotated[bound, said], None)
    return create_model("Units", __config__=_STRICT, **bounds)


def _monday(value: object) -> str:
    """Return the day on which weeks start."""
    if value != "monday":
        raise ValueError("must be monday: a service week is an ISO week")
    return "monday"


_WEEK_STARTS = Annotated[
    str,
    Read(_monday, json_schema={"const": "monday"}),
    Key("monday: a service week is an ISO week", "monday"),
]
_ANY_SLOTS = 'all_day, a stretch "HH:MM-HH:MM", or a file of service hours by mode'
_SHARE = "in place of rho or epsilon, of a unit of a week: the share of the cap over window_weeks"


def _mechanism_key(kind: Any, meaning: str, example: str = "") -> tuple[Any, None]:  # noqa: ANN401
    """Return a key of the mechanism that some kinds need."""
    return (Annotated[kind, Key(meaning, example, default="required")], None)


_BUDGETS = dict[str, Annotated[Amount, Key("replace-one epsilon of a table", '"1"')]]
_SHARES = dict[str, Annotated[Amount, Key("share of a draw", '"1/4"')]]
_TABLE: Any = Annotated[(_form(TableSpec), Key("one table"))]
_STATED_AS |= {
    TimeSpec: _form(TimeSpec, {"week_starts": (_WEEK_STARTS, "monday")}),
    DomainSpec: _form(
        DomainSpec,
        {"slots": Annotated[Slots, Key(_ANY_SLOTS, '"09:00-21:00"')]},
        defaults={"ring_cells": 0, "outside": None},
    ),
    tuple[UnitBound, ...]: _units(ProtectionUnit),
    tuple[TableSpec, ...]: dict.__class_getitem__((str, _TABLE)),
    MechanismSpec: _form(
        MechanismSpec,
        {
            "rho": _mechanism_key(Amount, "dense_gaussian: zCDP of one unit", '"1/8"'),
            "epsilon": _mechanism_key(Amount, "Laplace kinds: epsilon of one unit", '"4"'),
            "share_of_cap": _mechanism_key(Amount, _SHARE, '"1/52"'),
            "budgets": _mechanism_key(_BUDGETS, "calibration source: epsilons by table"),
            "split": _mechanism_key(_SHARES, "share of each draw; adds up to 1"),
        },
    ),
    tuple[CapSpec, ...]: list.__class_getitem__(_form(CapSpec)),
}
PROGRAMME = _form(Programme, defaults={"schedule": {}, "approval": {}})
_SUBJECTS = {RowShape.TRIPS: Subject.CARD, RowShape.TELEMETRY: Subject.BUS}
_READERS: dict[str, TypeAdapter[Any]] = {
    key: TypeAdapter(Annotated[(field.annotation, field, *field.metadata)])  # type: ignore[arg-type]
    for key, field in PROGRAMME.model_fields.items()
}
_READERS_OF_UNITS = {
    shape: TypeAdapter(_units(units_of(subject))) for shape, subject in _SUBJECTS.items()
}


class Unjudged(Exception):  # noqa: N818 - it is no fault of the file's
    """A rule looks at a section that is not in order, and so cannot be judged."""


class _Section(Generic[T]):
    """One section of a file as its record, made when it is first asked for."""

    def __init__(self, make: Callable[[Any], T] | None = None) -> None:
        self._make = make

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, file: Sections, _: type | None = None) -> T:
        """Return the record.

        Raises:
            Unjudged: the section, or one that it looks at, is not in order.
        """
        if self._name not in file.forms or self._name in file.faulty:
            raise Unjudged
        if self._name not in file.made:
            form = file.forms[self._name]
            file.made[self._name] = _record(form) if self._make is None else self._make(file)
        made: T = file.made[self._name]
        return made


class Sections:
    """The sections of one file.

    Args:
        values: what stands in the file.
        forms: the sections whose keys are in order.
        file: its name.
        line: of the file, on which a value stands.
    """

    name = _Section[str]()
    time = _Section[TimeSpec]()
    mechanism = _Section[Any]()  # as it is written: its amount may be a share of a cap
    schedule = _Section[ScheduleSpec]()
    publish = _Section[PublishSpec]()
    meant_for = _Section[tuple[Query, ...]]()
    retention = _Section[RetentionSpec | None]()

    def __init__(
        self, values: dict[str, Any], forms: dict[str, Any], file: str, line: Callable[[Loc], int]
    ) -> None:
        self.values, self.forms, self.file, self._line = values, forms, file, line
        self.faulty: set[str] = set()  # sections of which a rule complained
        self.made: dict[str, Any] = {}

    def stated(self, *loc: str | int) -> bool:
        """Return whether a key stands in the file."""
        return value_at(self.values, loc) is not None

    @_Section
    def source(self) -> SourceSpec:
        """Where the rows come from; the feed says the unit of speeds, a timetable what is near."""
        source: SourceSpec = _record(self.forms["source"])
        if not self.stated("source", "speed_unit"):
            source = replace(source, speed_unit=source.feed.speed_unit)
        if source.timetable is not None and source.stop_within_m is None:
            source = replace(source, stop_within_m=STOP_WITHIN_M)
        return replace(
            source,
            card_form=_with_case(source.card_form),
            vehicle_form=_with_case(source.vehicle_form),
        )

    @_Section
    def domain(self) -> DomainSpec:
        """The public cells; slots and periods in minutes after midnight."""
        filled, time = self.forms["domain"], self.time
        trips = self.source.feed.shape is RowShape.TRIPS
        whole_day = (time.day_starts, time.day_ends)
        slots = whole_day if filled.slots is None else filled.slots
        hours = slots if isinstance(slots, str) else None
        first, last = whole_day if isinstance(slots, str) else slots
        periods = [Period(name, *minutes) for name, minutes in filled.periods]
        domain: DomainSpec = _record(
            filled,
            first_minute=first,
            last_minute=last,
            service_hours=hours,
            outside=filled.outside or (Outside.UNKNOWN if trips else Outside.DROP),
            periods=tuple(sorted(periods, key=lambda period: period.first_minute)),
        )
        return domain

    @_Section
    def units(self) -> tuple[UnitBound, ...]:
        """Bounds, in the order of the file."""
        filled = self.forms["units"]
        units = [ProtectionUnit(key) for key in self.values["units"]]
        return tuple(_record(getattr(filled, unit), unit=unit) for unit in units)

    @_Section
    def tables(self) -> tuple[TableSpec, ...]:
        """Tables, in the order of the file; the shape of rows says what is usually measured."""
        trips = self.source.feed.shape is RowShape.TRIPS
        usual = USUAL[trips]
        return tuple(
            _record(
                filled,
                name=name,
                measure=filled.measure if self.stated("tables", name, "measure") else usual,
            )
            for name, filled in self.forms["tables"].items()
        )

    @_Section
    def caps(self) -> tuple[CapSpec, ...]:
        """Caps; that on a card or bus holds for a window of weeks."""
        caps = []
        for place, filled in enumerate(self.forms["caps"]):
            line = self._line(("caps", place))
            weeks = (filled.window_weeks or WINDOW_WEEKS) if filled.unit.is_lifetime else None
            caps.append(_record(filled, window_weeks=weeks, line=line))
        return tuple(caps)

    @_Section
    def approval(self) -> ApprovalSpec:
        """Who must say yes; where two persons must, whoever started does not count."""
        approval: ApprovalSpec = _record(self.forms["approval"])
        if not self.stated("approval", "not_the_starter"):
            approval = replace(approval, not_the_starter=approval.persons > 1)
        return approval

    def programme(self, mechanism: MechanismSpec, digest: str) -> Programme:
        """Return the whole record.

        Raises:
            Unjudged: a section is not in order.
        """
        sections = {
            key: getattr(self, key) if key in vars(Sections) else _record(self.forms[key])
            for key in PROGRAMME.model_fields
            if key != "mechanism"
        }
        return Programme(**sections, mechanism=mechanism, digest=digest)


def _record(filled: Any, **made: Any) -> Any:  # noqa: ANN401 - any form and its record
    """Return the record of a form; `made` are fields that it states in another way."""
    of = _RECORDS.get(type(filled))
    if of is None:  # a value, or a form that is its own record
        return filled
    stated = {name: _record(getattr(filled, name)) for name in type(filled).model_fields}
    return of(
        **{field.name: stated[field.name] for field in fields(of) if field.name in stated} | made
    )


def _with_case(form: IdForm | None) -> IdForm | None:
    """Return a form of ids; letters of a text are kept unless it says otherwise."""
    if form is None or form.kind is IdKind.DIGITS or form.case is not None:
        return form
    return replace(form, case=LetterCase.KEEP)


def shape_of(values: dict[str, Any]) -> RowShape:
    """Return what the feed becomes; where it is misspelt, what the domain looks like."""
    source, domain = values.get("source"), values.get("domain")
    feed = source.get("feed") if isinstance(source, dict) else None
    if isinstance(feed, str) and feed in set(Feed):
        return Feed(feed).shape
    is_of_cells = isinstance(domain, dict) and "h3_resolution" in domain
    return RowShape.TELEMETRY if is_of_cells else RowShape.TRIPS


def read_sections(
    values: dict[str, Any], file: str, line: Callable[[Loc], int]
) -> tuple[Sections, tuple[Fault, ...]]:
    """Read every section by itself; return those in order and what is wrong with the others.

    Args:
        values: what stands in the file.
        file: its name.
        line: of the file, on which a value stands.
    """
    forms: dict[str, Any] = {}
    shape = shape_of(values)
    faults = list(_key_faults((), values, shape))
    for key, reader in _READERS.items():
        value = values.get(key, PROGRAMME.model_fields[key].get_default())
        if value is PydanticUndefined:
            continue
        if key not in values and not isinstance(value, dict):
            forms[key] = value
            continue
        try:
            of_shape = _READERS_OF_UNITS[shape] if key == "units" else reader
            forms[key] = of_shape.validate_python(value)
        except ValidationError as error:
            faults += _faults(error, key, values, shape)
    return Sections(values, forms, file, line), tuple(faults)


def _faults(
    error: ValidationError, section: str, values: dict[str, Any], shape: RowShape
) -> Iterator[Fault]:
    """Yield what is wrong with a section, as sentences."""
    told = set()
    for problem in error.errors(include_url=False):
        loc: Loc = (section, *problem["loc"])
        if problem["type"] not in {"missing", "extra_forbidden"}:
            yield loc, _sentence(problem)
        elif loc[:-1] not in told:
            told.add(loc[:-1])
            yield from _key_faults(loc[:-1], values, shape)


def _sentence(problem: Any) -> str:  # noqa: ANN401 - as pydantic types it
    """Return what a value must be."""
    kind, value = problem["type"], problem["input"]
    if kind == "value_error":
        return str(problem["ctx"]["error"])
    if kind == "enum":
        if not isinstance(value, str) or not value:
            return "must be a text; write one"
        known = _WORD.findall(problem["ctx"]["expected"])
        return f"{str(value)!r} is unknown{meant_by(value, known)}; write one of {', '.join(known)}"
    what = "list of mappings" if kind == "list_type" else "mapping of keys and values"
    return f"must be a {what}"


def meant_by(word: str, known: Iterable[str]) -> str:
    """Return the question whether the nearest known word is meant; empty where none is near."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _key_faults(loc: Loc, values: dict[str, Any], shape: RowShape) -> Iterator[Fault]:
    """Yield the keys of a mapping that are missing, and those that are unknown."""
    stated, keys = value_at(values, loc), fields_of(key_at(loc))
    if loc == ("units",):
        known = [key for key in keys if ProtectionUnit(key).subject is _SUBJECTS[shape]]
        for key in stated:
            if key not in known:
                of = ", ".join(known)
                rule = f"cannot be bounded here{meant_by(key, known)}; bound one of {of}"
                yield (*loc, key), rule
        return
    needed = [key for key, field in keys.items() if field.is_required()]
    yield from faults_of_keys(loc, stated, needed, keys)


def faults_of_keys(
    loc: Loc, stated: Iterable[str], needed: Iterable[str], known: Iterable[str]
) -> Iterator[Fault]:
    """Yield the keys of a mapping that are missing, and those that are unknown.

    Args:
        loc: of the mapping.
        stated: its keys.
        needed: keys that it must have.
        known: keys that it may have.
    """
    known = sorted(known)
    unknown = [key for key in stated if key not in known]
    for key in needed:
        if key in stated:
            continue
        near = next(iter(difflib.get_close_matches(key, unknown, n=1, cutoff=_SURE)), None)
        if near is not None:
            unknown.remove(near)
        yield (*loc, key), f"is missing; {f'is {near} meant for it?' if near else 'add it'}"
    for key in unknown:
        of = ", ".join(known)
        yield (*loc, key), f"is unknown here{meant_by(key, known)}; remove it, or use one of {of}"


def value_at(values: Any, loc: Loc) -> Any:  # noqa: ANN401 - YAML
    """Return what stands at a place of a file; None where nothing does."""
    for step in loc:
        try:
            values = values[step]
        except (KeyError, IndexError, TypeError):
            return None
    return values


def fields_of(field: FieldInfo | None) -> dict[str, FieldInfo]:
    """Return the keys of a section; none where it is no section of keys that are known."""
    form: Any = None if field is None else field.annotation
    if not isinstance(form, type) or not issubclass(form, BaseModel):
        return {}
    return {field.alias or name: field for name, field in form.model_fields.items()}


def entry_of(field: FieldInfo) -> FieldInfo | None:
    """Return what stands under a free name, or in a list of sections; None where neither is."""
    named = next((note.value for note in field.metadata if isinstance(note, Named)), None)
    if named is None and get_origin(field.annotation) in {dict, list}:
        named = get_args(field.annotation)[-1]
    return None if named is None else FieldInfo.from_annotation(named)


def key_at(loc: Loc) -> FieldInfo | None:
    """Return what the schema says of a place of a file; None where it knows none."""
    field: FieldInfo | None = FieldInfo.from_annotation(PROGRAMME)
    for step in loc:
        if field is not None:
            field = entry_of(field) or fields_of(field).get(str(step))
    return field
