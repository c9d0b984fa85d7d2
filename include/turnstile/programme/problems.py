"""Every problem of a programme file in one reading, not the first one only.

The readers stop at the first rule that is broken, and stay that simple. Here the file is read again
after each complaint, with the key that it names mended in a copy of the YAML nodes: the nearest
word that is allowed, the example of the reference, or without the key. What cannot be mended gives
way to a whole section that is known to be good. A complaint about what was mended already, or about
a section that looks at one that gave way, says nothing of the file, and is left out.
"""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass, field

import yaml

from turnstile.errors import ProgrammeError
from turnstile.privacy.mechanisms.registry import MechanismKind
from turnstile.programme.key import OPTIONAL, REQUIRED, Key
from turnstile.programme.keys import KEYS, key_at
from turnstile.programme.loading import read_programme
from turnstile.programme.source_spec import Feed, RowShape
from turnstile.programme.spec import Programme
from turnstile.programme.yaml_section import Section, compose, remove_twice

_READINGS_AT_MOST = 200  # each mends something; a file of more problems has its first ones named
_GOOD = {
    RowShape.TRIPS: """
source: {feed: opal_trips, landing: "x/{week}/*", modes: [bus]}
time: {zone: UTC, slot_minutes: 60}
domain: {locations: domains/x.csv, slots: all_day}
units: {card_day: {trips_at_most: 1}}
tables: {x: {by: [tap_on_slot]}}
mechanism: {kind: dense_gaussian, unit: card_day, rho: "1", split: {x: "1"}}
caps: [{unit: card_day, rho: "1"}]
schedule: {}
approval: {}
publish: {licence: x, curator: x, contact: x}
""",
    RowShape.TELEMETRY: """
source: {feed: itms, landing: "x/{week}/*", modes: [bus]}
time: {zone: UTC, slot_minutes: 60}
domain: {service_area: domains/x.csv, h3_resolution: 7, slots: all_day}
units: {bus_day: {cells_at_most: 1}}
tables: {x: {by: [slot, cell], measure: buses}}
mechanism: {kind: dense_gaussian, unit: bus_day, rho: "1", split: {x/buses: "1"}}
caps: [{unit: bus_day, rho: "1"}]
schedule: {}
approval: {}
publish: {licence: x, curator: x, contact: x}
""",
}
_OF_TELEMETRY = {
    "source.feed": "itms",
    "tables.NAME.by": "[slot, cell]",
    "tables.NAME.measure": "buses",
    "mechanism.unit": "bus_day",
    "caps[N].unit": "bus_day",
}
_OF_THE_OTHER_SHAPE = {
    RowShape.TRIPS: {"units.bus_day": "card_day", "units.bus_week": "card_week"},
    RowShape.TELEMETRY: {"units.card_day": "bus_day", "units.card_week": "bus_week"},
}
# section -> sections and keys whose rules look at it, and so cannot be judged where it gave way
_LOOKED_AT_BY = {
    "domain": ("tables",),
    "source": ("domain", "units", "tables", "mechanism", "caps", "meant_for"),
    "units": ("mechanism",),
    "tables": ("source.timetable", "mechanism", "publish.tides_shapes"),
    "mechanism": ("publish.tides_shapes",),
    "caps": ("mechanism",),
}
# read before it, so they have no complaint left
_GIVES_WAY_WITH = {"mechanism": ("tables", "units", "caps")}


@dataclass(slots=True)
class _Reading:
    """One file while it is mended.

    Args:
        top: the file's nodes; changed.
        shape: what its feed becomes, as far as the file tells.
        mended: fields that are no longer the file's own, with how often each was mended.
        unjudged: sections that are no longer the file's own, or with keys look at one that is not.
    """

    top: yaml.MappingNode
    shape: RowShape
    mended: Counter[str] = field(default_factory=Counter)
    unjudged: set[str] = field(default_factory=set)

    def is_of_the_file(self, complaint: ProgrammeError) -> bool:
        """Tell whether a complaint is about what stands in the file."""
        about = {complaint.field, _first(complaint.field)}
        return complaint.field not in self.mended and not about & self.unjudged

    def mend(self, complaint: ProgrammeError) -> None:
        """Mend what a complaint is about, or let its section give way."""
        path = complaint.field
        self.mended[path] += 1
        if not _mend_key(self.top, path, self.shape, self.mended[path]):
            above = path.rpartition(".")[0]
            key = key_at(above)
            if key is not None and key.default == OPTIONAL:
                self.mended[above] += 1
                _remove(_section_of(self.top, above), above.rpartition(".")[2])
            else:
                self._give_way(_first(path))

    def _give_way(self, section: str) -> None:
        """Put a good section in the place of one."""
        good = compose(_GOOD[self.shape], "good")
        for name in (section, *_GIVES_WAY_WITH.get(section, ())):
            _remove(self.top, name)
            self.top.value.extend(pair for pair in good.value if pair[0].value == name)
        self.unjudged.update((section, *_LOOKED_AT_BY.get(section, ())))


@dataclass(frozen=True, slots=True)
class Checked:
    """What one file has.

    Args:
        problems: complaints, in the order of the file's lines.
        programme: what the file says, mended where it has problems; None if it is no mapping.
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
        top = compose(text, file)
    except ProgrammeError as complaint:
        return Checked((complaint,), None, frozenset())
    found = list(remove_twice(top, file))
    reading = _Reading(top, _shape(top))
    programme = None
    for _ in range(_READINGS_AT_MOST):
        try:
            programme = read_programme(Section(file, "", top))
            break
        except ProgrammeError as complaint:
            if reading.is_of_the_file(complaint):
                found.append(complaint)
            reading.mend(complaint)
    mended = frozenset({_first(path) for path in reading.mended} | reading.unjudged)
    return Checked(tuple(sorted(found, key=_line)), programme, mended)


def _line(complaint: ProgrammeError) -> int:
    """Return the line that a complaint names."""
    return int(complaint.where.rpartition(":")[2])


def _first(path: str) -> str:
    """Return the section at the top of the file that a path begins with."""
    return path.partition(".")[0].partition("[")[0]


def _shape(top: yaml.MappingNode) -> RowShape:
    """Return what the feed becomes; where it is misspelt, what the domain looks like."""
    keys = {str(key.value): node for key, node in top.value}
    of_source = {str(k.value): n for k, n in getattr(keys.get("source"), "value", ()) or ()}
    try:
        return Feed(of_source["feed"].value).shape
    except (KeyError, ValueError, AttributeError):
        pass
    domain = keys.get("domain")
    names = {str(k.value) for k, _ in domain.value} if isinstance(domain, yaml.MappingNode) else ()
    return RowShape.TELEMETRY if "h3_resolution" in names else RowShape.TRIPS


def _section_of(top: yaml.MappingNode, path: str) -> yaml.MappingNode:
    """Return the mapping that holds the last key of a path; an empty one if there is none."""
    section: yaml.Node | None = top
    for way in path.split(".")[:-1]:
        name, _, index = way.partition("[")
        section = _value(section, name)
        if index and isinstance(section, yaml.SequenceNode):
            section = section.value[int(index.rstrip("]"))]
    return section if isinstance(section, yaml.MappingNode) else yaml.MappingNode("map", [])


def _mend_key(top: yaml.MappingNode, path: str, shape: RowShape, times: int) -> bool:
    """Mend one key, each time in another way; return whether there was one left."""
    section, last = _section_of(top, path), path.rpartition(".")[2]
    key, own = key_at(path), _value(section, last)
    if own is None and (meant := Section("", "", section).misspelt(last)):
        _put(section, meant, last, _value(section, meant))
    elif path in _OF_THE_OTHER_SHAPE[shape] and own is not None:
        _put(section, last, _OF_THE_OTHER_SHAPE[shape][path], own)
    elif key is None:
        near = difflib.get_close_matches(last, _absent_siblings(section, path), n=1)
        _put(section, last, near[0], own) if near and own else _remove(section, last)
        return own is not None
    elif times == 1 and (good := _good_value(key, section, own, shape)) is not None:
        _put(section, last, last, good)
    elif own is not None and key.default != REQUIRED:
        _remove(section, last)
    else:
        return False
    return True


def _absent_siblings(section: yaml.MappingNode, path: str) -> list[str]:
    """Return the keys that the reference has beside one, and the file has not."""
    above = path.rpartition(".")[0]
    found = (key.path.rpartition(".") for key in KEYS)
    return [last for parent, _, last in found if parent == above and not _value(section, last)]


def _good_value(
    key: Key, section: yaml.MappingNode, own: yaml.Node | None, shape: RowShape
) -> yaml.Node | None:
    """Return a value that a key may have: the nearest word, or the example."""
    word = str(own.value) if isinstance(own, yaml.ScalarNode) else ""
    allowed = [str(choice) for choice in key.choices or ()]
    if key.path == "mechanism.kind":  # the one that goes with the amount that is there
        kind = MechanismKind.DENSE_GAUSSIAN
        if _value(section, "delta"):
            kind = MechanismKind.STABILITY_HISTOGRAM
        elif _value(section, "epsilon"):
            kind = MechanismKind.DENSE_LAPLACE
        return _scalar(kind)
    if key.path == "source.feed":
        allowed = [str(feed) for feed in Feed if feed.shape is shape]
    near = [] if word in allowed else difflib.get_close_matches(word, allowed, n=1)
    if near:
        return _scalar(near[0])
    of_shape = _OF_TELEMETRY if shape is RowShape.TELEMETRY else {}
    example = of_shape.get(key.path, key.example)
    return yaml.compose(example, Loader=yaml.SafeLoader) if example else None


def _scalar(text: str) -> yaml.Node:
    """Return a text as a node."""
    return yaml.ScalarNode("tag:yaml.org,2002:str", str(text))


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the value of a key."""
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _put(node: yaml.MappingNode, old: str, new: str, value: yaml.Node | None) -> None:
    """Put a key in the place of one, which may be the same or not be there."""
    _remove(node, old)
    node.value.append((_scalar(new), value))


def _remove(node: yaml.MappingNode, key: str) -> None:
    """Take a key out."""
    node.value = [pair for pair in node.value if pair[0].value != key]
