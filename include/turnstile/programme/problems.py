"""Every problem of a programme file in one reading, not the first one only.

All keys of all sections are judged at once, and every rule whose sections are in order. What is
wrong is then mended in a copy of the values: the nearest word that is allowed, the example of the
schema, or without the key; a section that cannot be mended is given up. What was hidden behind a
fault is so judged in the next round. A complaint about what was mended already says nothing of the
file, and is left out.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import EnumMeta
from fractions import Fraction
from functools import partial
from typing import Any

from turnstile.errors import ProgrammeError
from turnstile.privacy.mechanisms.registry import MechanismKind
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.key import UNDECIDED, Written
from turnstile.programme.mechanism_spec import MechanismSpec
from turnstile.programme.rules import broken_rules, mechanism_of
from turnstile.programme.schema import (
    Fault,
    Sections,
    fields_of,
    key_at,
    read_sections,
    shape_of,
    value_at,
)
from turnstile.programme.source_spec import Feed, RowShape
from turnstile.programme.spec import Programme
from turnstile.programme.yaml_text import Loc, compose, line_of, path_of, remove_twice, values_of

_MEANT_FOR = re.compile(r"^is missing; is (.+) meant for it\?$")
_MEANT = re.compile(r"^(?:is unknown|cannot be bounded) here \(did you mean (.+)\?\)")
_ROUNDS_AT_MOST = 30
_OPEN = "is for a person to decide; the page of decisions says between what"
# what else is given up stands in the way of every question about the public cells
_EMPTY: dict[str, Callable[[], Any]] = {"units": dict, "caps": list, "mechanism": dict}
_UNKNOWN_NOISE = MechanismSpec(
    MechanismKind.DENSE_GAUSSIAN, ProtectionUnit.TRIP, Fraction(1), split=()
)
_KIND_OF = {
    "delta": MechanismKind.STABILITY_HISTOGRAM,
    "epsilon": MechanismKind.DENSE_LAPLACE,
    "rho": MechanismKind.DENSE_GAUSSIAN,
}
_OF_TELEMETRY = {
    "feed": "itms",
    "modes": "[bus]",
    "by": "[slot, cell]",
    "measure": "buses",
    "unit": "bus_day",
}
_OF_THE_OTHER_SHAPE = {
    RowShape.TRIPS: {"bus_day": "card_day", "bus_week": "card_week"},
    RowShape.TELEMETRY: {"card_day": "bus_day", "card_week": "bus_week"},
}


@dataclass(frozen=True, slots=True)
class Checked:
    """What one file has.

    Args:
        problems: complaints, in the order of the file's lines.
        programme: what the file says, mended where it has problems; None where that is unknown.
        mended: sections at the top of the file in which something was mended.
    """

    problems: tuple[ProgrammeError, ...]
    programme: Programme | None
    mended: frozenset[str]


def problems_of(text: str, file: str) -> Checked:
    """Return every problem of a programme file.

    Args:
        text: of the file.
        file: its name.
    """
    try:
        node = compose(text, file)
    except ProgrammeError as complaint:
        return Checked((complaint,), None, frozenset())
    problems = list(remove_twice(node, file))
    mending = _Mending(values_of(node))
    for _ in range(_ROUNDS_AT_MOST):
        sections, faults = read_sections(mending.values, file, partial(line_of, node))
        sections.faulty.update(mending.given_up)
        faults = mending.of_sections_left((*faults, *broken_rules(sections)))
        for loc, rule in faults:
            if not mending.touches(loc):
                where = f"{file}:{line_of(node, loc)}"
                is_open = value_at(mending.values, loc) == UNDECIDED  # of a number as of a text
                said = _OPEN if is_open else rule
                problems.append(ProgrammeError(where=where, field=path_of(loc), rule=said))
        if not faults:
            break
        for loc, rule in faults:
            mending.mend(loc, rule)
    in_order = sorted(problems, key=lambda it: int(it.where.rpartition(":")[2]))
    programme = None if faults else _programme(sections, mending)
    return Checked(tuple(in_order), programme, mending.sections)


def _programme(sections: Sections, mending: _Mending) -> Programme | None:
    """Return what a mended file says; None where a section that decides the cells is given up."""
    if not mending.given_up <= set(_EMPTY):
        return None
    sections.faulty.clear()
    noise = _UNKNOWN_NOISE if mending.given_up else mechanism_of(sections)
    return sections.programme(noise, digest="")


class _Mending:
    """The values of one file while they are mended.

    Args:
        values: what stands in the file; changed.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.times: Counter[Loc] = Counter()
        self.given_up: set[str] = set()

    @property
    def sections(self) -> frozenset[str]:
        """Sections at the top of the file in which something was mended."""
        return frozenset(str(loc[0]) for loc in self.times)

    def touches(self, loc: Loc) -> bool:
        """Tell whether a value, what holds it, or a part of it is no longer the file's own."""
        if any(loc[:length] in self.times for length in range(1, len(loc) + 1)):
            return True
        return len(loc) > 1 and any(mended[: len(loc)] == loc for mended in self.times)

    def of_sections_left(self, faults: Iterable[Fault]) -> tuple[Fault, ...]:
        """Return the faults of sections that are not given up."""
        return tuple(fault for fault in faults if fault[0][0] not in self.given_up)

    def mend(self, loc: Loc, rule: str) -> None:
        """Mend what a complaint is about, or take out what holds it, or give up its section."""
        while loc and not self._mended(loc, rule):
            if len(loc) == 1:
                section = str(loc[0])
                self.given_up.add(section)
                self.values.pop(section, None)
                if section in _EMPTY:
                    self.values[section] = _EMPTY[section]()
            loc, rule = loc[:-1], ""
            if loc[:-1] == ("tables",):  # of another table than the file's are other draws
                self.times["mechanism", "split"] += 1

    def _mended(self, loc: Loc, rule: str) -> bool:
        """Mend one key, each time in another way; return whether there was one left."""
        self.times[loc] += 1
        above, last = value_at(self.values, loc[:-1]), str(loc[-1])
        if not isinstance(above, dict):
            return False
        known, shape = fields_of(key_at(loc[:-1])), shape_of(self.values)
        if _renamed(above, last, rule):
            return True
        if loc[0] == "units" and last in _OF_THE_OTHER_SHAPE[shape]:
            above[_OF_THE_OTHER_SHAPE[shape][last]] = above.pop(last)
        elif self.times[loc] == 1 and (good := _good_value(loc, above, shape)):
            above[last] = good
        elif last in above and (last not in known or not known[last].is_required()):
            del above[last]
        else:
            return False
        return True


def _renamed(above: dict[str, Any], key: str, rule: str) -> bool:
    """Put a known key in the place of the one that is meant for it; tell whether there was one."""
    if (meant := _MEANT_FOR.search(rule)) is not None and meant[1] in above:
        above[key] = above.pop(meant[1])
    elif (meant := _MEANT.search(rule)) is not None and key in above and meant[1] not in above:
        above[meant[1]] = above.pop(key)
    else:
        return False
    return True


def _good_value(loc: Loc, above: dict[str, Any], shape: RowShape) -> Any:  # noqa: ANN401 - YAML
    """Return a value that a key may have: the nearest word that is allowed, or the example."""
    field = key_at(loc)
    if field is None:
        return None
    if loc == ("mechanism", "kind"):  # the one that goes with the amount that is there
        for key, kind in _KIND_OF.items():
            if key in above:
                return Written.of(kind, "")
    allowed = [str(it) for it in field.annotation] if isinstance(field.annotation, EnumMeta) else []
    if loc == ("source", "feed"):
        allowed = [str(feed) for feed in Feed if feed.shape is shape]
    written_value = above.get(str(loc[-1]))
    word = written_value if isinstance(written_value, str) and written_value not in allowed else ""
    near = difflib.get_close_matches(word, allowed, n=1)
    said: Any = field.json_schema_extra
    example = said["said"]["example"]
    if shape is RowShape.TELEMETRY:
        example = _OF_TELEMETRY.get(str(loc[-1]), example)
    if near or example:
        return values_of(compose(f"it: {near[0] if near else example}", ""))["it"]
    needed = [key for key, below in fields_of(field).items() if below.is_required()]
    section = {key: _good_value((*loc, key), {}, shape) for key in needed}
    return section if section and None not in section.values() else None
