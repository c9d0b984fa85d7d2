"""Strict reading of a YAML mapping: every key is asked for by name, every amount is exact.

Works on the nodes of the parser rather than on its values, so that a complaint names file, line and
field, and so that `0.1` (a float, not exact) differs from `"1/10"`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import NoReturn, TypeVar

import yaml

from turnstile.errors import ProgrammeError

_INTEGER = "tag:yaml.org,2002:int"
_BOOLEAN = "tag:yaml.org,2002:bool"
_FLOAT = "tag:yaml.org,2002:float"
# As many digits as an exact amount may need; without a bound a short text is a number of gigabytes.
_AMOUNT = re.compile(r"\d{1,40}(/\d{1,40}|\.\d{1,40})?(e-?\d{1,2})?")
_DIGITS_AT_MOST = 18  # of an integer: all that 64 bits hold
_DEEPEST = 20  # levels; a programme has five
_LONGEST = 1 << 18  # characters of a file
_SURE = 0.8  # likeness of two keys, one of which is meant for the other
_OPENS = (
    yaml.BlockMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.FlowSequenceStartToken,
)
_CLOSES = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
_Choice = TypeVar("_Choice", bound=StrEnum)


@dataclass(slots=True)
class Section:
    """One mapping of a YAML file, with the file and the path that lead to it.

    Call `finish` when every known key was taken: a key that is left is unknown.
    """

    file: str
    path: str
    node: yaml.MappingNode
    _taken: set[str] = field(default_factory=set)
    _known: set[str] = field(default_factory=set)

    def fail(self, key: str, rule: str) -> NoReturn:
        """Raise the error that names file, line and field.

        Raises:
            ProgrammeError: always.
        """
        node = self._pairs().get(key, self.node)
        mark = node.start_mark or self.node.start_mark
        where = f"{self.file}:{mark.line + 1 if mark else 1}"
        raise ProgrammeError(where=where, field=self._name(key), rule=rule)

    @property
    def line(self) -> int:
        """Line of the file on which the mapping starts."""
        return int(self.node.start_mark.line) + 1

    def has(self, key: str) -> bool:
        """Return whether an optional key is there; it is one that may be meant by another."""
        self._known.add(key)
        return key in self._pairs()

    def free_keys(self) -> tuple[str, ...]:
        """Return the keys in the order of the file, for mappings whose keys are free names."""
        return tuple(self._pairs())

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string; an unquoted number or date is read as it is written."""
        node = self._take(key, optional=default is not None)
        if node is None:
            return str(default)
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            self.fail(key, "must be a text; write one")
        return str(node.value)

    def integer(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        """Return an integer of at least `least`."""
        node = self._take(key, optional=default is not None)
        if node is None:
            return int(str(default))
        if not isinstance(node, yaml.ScalarNode) or node.tag != _INTEGER:
            self.fail(key, "must be an integer; write one without quotes")
        if len(node.value) > _DIGITS_AT_MOST:
            self.fail(key, f"has more than {_DIGITS_AT_MOST} digits; write a smaller number")
        number = int(yaml.safe_load(node.value))
        if number < least:
            self.fail(key, f"{number} is too small; write {least} or more")
        return number

    def flag(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        node = self._take(key, optional=True)
        if node is None:
            return default
        if node.tag != _BOOLEAN:
            self.fail(key, "must be true or false")
        return bool(yaml.safe_load(str(node.value)))

    def amount(self, key: str) -> Fraction:
        """Return an exact positive amount, written as a text: "4", "1/8", "0.05" or "1e-6"."""
        node = self._take(key, optional=False)
        if not isinstance(node, yaml.ScalarNode) or node.tag == _FLOAT:
            self.fail(key, 'must be exact; write it in quotes, for example "1/8" or "1e-6"')
        try:
            exact = Fraction(node.value) if _AMOUNT.fullmatch(node.value) else Fraction(0)
        except ZeroDivisionError:
            exact = Fraction(0)
        if exact <= 0:
            self.fail(
                key,
                f"{node.value[:80]!r} is no positive amount of at most 40 digits; write for "
                'example "1/8" or "1e-6"',
            )
        return exact

    def choice(self, key: str, choices: type[_Choice], default: _Choice | None = None) -> _Choice:
        """Return one of the names that are allowed."""
        name = self.text(key, default)
        try:
            return choices(name)
        except ValueError:
            near = difflib.get_close_matches(name, list(choices), n=1)
            meant = f" (did you mean {near[0]}?)" if near else ""
            self.fail(key, f"{name!r} is unknown{meant}; write one of {', '.join(choices)}")

    def texts(self, key: str, *, optional: bool = False) -> tuple[str, ...]:
        """Return a non-empty list of different strings; nothing where an optional key is absent."""
        node = self._take(key, optional=optional)
        if node is None:
            return ()
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            self.fail(key, "must be a list with at least one entry")
        entries = tuple(str(entry.value) for entry in node.value)
        if len(set(entries)) < len(entries):
            self.fail(key, "has an entry twice; remove one")
        return entries

    def is_empty_list(self, key: str) -> bool:
        """Return whether a key holds the list of nothing, `[]`."""
        node = self._pairs().get(key)
        if isinstance(node, yaml.SequenceNode) and not node.value:
            self._taken.add(key)
            return True
        return False

    def section(self, key: str, *, optional: bool = False) -> Section:
        """Return a mapping; an empty one where an optional key is absent."""
        node = self._take(key, optional=optional)
        if node is None:
            empty = yaml.MappingNode("map", [], self.node.start_mark, self.node.end_mark)
            return Section(self.file, self._name(key), empty)
        if not isinstance(node, yaml.MappingNode):
            self.fail(key, "must be a mapping of keys and values")
        return Section(self.file, self._name(key), node)

    def sections(self, key: str) -> tuple[Section, ...]:
        """Return a list of mappings."""
        node = self._take(key, optional=False)
        if not isinstance(node, yaml.SequenceNode):
            self.fail(key, "must be a list")
        found = []
        for place, entry in enumerate(node.value):
            if not isinstance(entry, yaml.MappingNode):
                self.fail(key, "must be a list of mappings")
            found.append(Section(self.file, f"{self._name(key)}[{place}]", entry))
        return tuple(found)

    def finish(self) -> None:
        """Refuse whatever was not asked for.

        Raises:
            ProgrammeError: a key is unknown.
        """
        for key in self._pairs():
            if key not in self._taken:
                every = sorted(self._taken | self._known)
                known = ", ".join(every)
                near = difflib.get_close_matches(key, every, n=1)
                meant = f" (did you mean {near[0]}?)" if near else ""
                self.fail(key, f"is unknown here{meant}; remove it, or use one of {known}")

    def misspelt(self, key: str) -> str | None:
        """Return the key of the file that may be meant for one that is missing."""
        others = [own for own in self._pairs() if own not in self._taken]
        return next(iter(difflib.get_close_matches(key, others, n=1, cutoff=_SURE)), None)

    def _take(self, key: str, *, optional: bool) -> yaml.Node | None:
        """Return the node of a key and mark the key as known."""
        self._taken.add(key)
        node = self._pairs().get(key)
        if node is None and not optional:
            near = self.misspelt(key)
            self.fail(key, f"is missing; {f'is {near} meant for it?' if near else 'add it'}")
        return node

    def _pairs(self) -> dict[str, yaml.Node]:
        """Return the nodes by key."""
        return {str(key.value): value for key, value in self.node.value}

    def _name(self, key: str) -> str:
        """Return the path of a key from the top of the file."""
        return ".".join(part for part in (self.path, key) if part)


def compose(text: str, file: str) -> yaml.MappingNode:
    """Parse a YAML file into the nodes of its top mapping.

    Raises:
        ProgrammeError: not YAML, or not a mapping.
    """
    node = composed(text, file)
    if not isinstance(node, yaml.MappingNode):
        raise ProgrammeError(where=f"{file}:1", field="file", rule="must be a mapping of keys")
    return node


def composed(text: str, file: str) -> yaml.Node | None:
    """Parse a YAML file into nodes; None if it holds nothing.

    Raises:
        ProgrammeError: not YAML, or what no file here needs: references, depth, keys of keys.
    """
    try:
        _refuse_unusual(text, file)
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        rule = f"is not YAML ({error.problem}); mend the syntax"
        raise ProgrammeError(where=f"{file}:{line}", field="file", rule=rule) from None
    except yaml.YAMLError:
        rule = "is not YAML (a character that YAML does not allow); mend the syntax"
        raise ProgrammeError(where=f"{file}:1", field="file", rule=rule) from None
    if node is not None:
        _refuse_keys(node, file)
    return node


def _refuse_unusual(text: str, file: str) -> None:
    """Refuse what YAML can do and no programme needs: references and depth."""
    if len(text) > _LONGEST:
        rule = f"has more than {_LONGEST} characters; that is no programme"
        raise ProgrammeError(where=f"{file}:1", field="file", rule=rule)
    depth = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        where = f"{file}:{token.start_mark.line + 1}"
        depth += isinstance(token, _OPENS) - isinstance(token, _CLOSES)
        if depth > _DEEPEST:
            rule = f"is more than {_DEEPEST} levels deep; that is no programme"
            raise ProgrammeError(where=where, field="file", rule=rule)
        if isinstance(token, yaml.AliasToken):
            rule = "refers to another place of the file; write it out"
            raise ProgrammeError(where=where, field=f"*{token.value}", rule=rule)


def _refuse_keys(node: yaml.Node, file: str) -> None:
    """Refuse keys that are no texts, at any depth; not every such key has a token of its own."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                where = f"{file}:{key.start_mark.line + 1}"
                raise ProgrammeError(where=where, field="file", rule="has a key that is no text")
            _refuse_keys(value, file)
    elif isinstance(node, yaml.SequenceNode):
        for entry in node.value:
            _refuse_keys(entry, file)


def open_section(text: str, file: str) -> Section:
    """Parse a YAML file into its top mapping.

    Raises:
        ProgrammeError: not YAML, not a mapping, or a key twice.
    """
    node = compose(text, file)
    for complaint in remove_twice(node, file):
        raise complaint
    return Section(file, "", node)


def canonical_text(section: Section) -> str:
    """Return the content without comments or layout, for a digest."""
    return json.dumps(plain(section.node), sort_keys=True, separators=(",", ":"))


def plain(node: yaml.Node) -> object:
    """Return nodes as plain values, scalars as they are written."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [plain(entry) for entry in node.value]
    return str(node.value)


def remove_twice(node: yaml.Node, file: str, path: str = "") -> Iterator[ProgrammeError]:
    """Yield a complaint for every key that stands twice, at any depth, and take its repeats out.

    YAML itself would keep the last one without a word.

    Args:
        node: changed.
        file: name of the file.
        path: that leads to the node.
    """
    if isinstance(node, yaml.SequenceNode):
        for place, entry in enumerate(node.value):
            yield from remove_twice(entry, file, f"{path}[{place}]")
    if not isinstance(node, yaml.MappingNode):
        return
    kept: dict[str, tuple[yaml.Node, yaml.Node]] = {}
    for key, value in node.value:
        name = f"{path}.{key.value}" if path else str(key.value)
        if key.value in kept:
            where = f"{file}:{key.start_mark.line + 1}"
            yield ProgrammeError(where=where, field=name, rule="stands twice; remove one")
        else:
            kept[key.value] = (key, value)
            yield from remove_twice(value, file, name)
    node.value = list(kept.values())
