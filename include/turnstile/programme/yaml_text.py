"""The text of a reviewed YAML file: parsed strictly, the line of each path, canonical text.

Works on the nodes of the parser rather than on its values, so that a complaint names file, line and
field. No references, no depth, no keys of keys, no key twice; a scalar stays as it is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from turnstile.errors import ProgrammeError
from turnstile.programme.key import Written

_DEEPEST = 20  # levels; a programme has five
_LONGEST = 1 << 18  # characters of a file
_OPENS = (
    yaml.BlockMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.FlowSequenceStartToken,
)
_CLOSES = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
Loc = tuple[str | int, ...]
"""Way from the top of a file to a value: keys, and places in lists."""


def read_file(path: Path) -> str:
    """Return the text of a file.

    Raises:
        ProgrammeError: it is not UTF-8, or cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        rule = f"cannot be read ({error.strerror}); mend its rights, or take it away"
        raise ProgrammeError(where=path.name, field="file", rule=rule) from None
    except UnicodeDecodeError:
        rule = "is not UTF-8; save it as UTF-8"
        raise ProgrammeError(where=path.name, field="encoding", rule=rule) from None


def plain_yaml(path: Path) -> Any:  # noqa: ANN401 - YAML
    """Return the content of a small reviewed file beside the programmes; None if it holds nothing.

    Raises:
        ProgrammeError: not UTF-8, not YAML, a reference, too deep or too long, or a key twice.
    """
    node = _composed(read_file(path), path.name)
    if node is None:
        return None
    for complaint in remove_twice(node, path.name):
        raise complaint
    return values_of(node)


def compose(text: str, file: str) -> yaml.MappingNode:
    """Parse a YAML file into the nodes of its top mapping.

    Raises:
        ProgrammeError: not YAML, or not a mapping.
    """
    node = _composed(text, file)
    if not isinstance(node, yaml.MappingNode):
        raise ProgrammeError(where=f"{file}:1", field="file", rule="must be a mapping of keys")
    return node


def _composed(text: str, file: str) -> yaml.Node | None:
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


def remove_twice(node: yaml.Node, file: str, loc: Loc = ()) -> Iterator[ProgrammeError]:
    """Yield a complaint for every key that stands twice, at any depth, and take its repeats out.

    YAML itself would keep the last one without a word.

    Args:
        node: changed.
        file: name of the file.
        loc: that leads to the node.
    """
    if isinstance(node, yaml.SequenceNode):
        for place, entry in enumerate(node.value):
            yield from remove_twice(entry, file, (*loc, place))
    if not isinstance(node, yaml.MappingNode):
        return
    kept: dict[str, tuple[yaml.Node, yaml.Node]] = {}
    for key, value in node.value:
        way = (*loc, key.value)
        if key.value in kept:
            where = f"{file}:{key.start_mark.line + 1}"
            yield ProgrammeError(where=where, field=path_of(way), rule="stands twice; remove one")
        else:
            kept[key.value] = (key, value)
            yield from remove_twice(value, file, way)
    node.value = list(kept.values())


def values_of(node: yaml.Node) -> Any:  # noqa: ANN401 - YAML
    """Return nodes as mappings, lists and scalars as they are written."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): values_of(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [values_of(entry) for entry in node.value]
    return Written.of(node.value, node.tag)


def canonical_text(values: Any) -> str:  # noqa: ANN401 - YAML
    """Return the content without comments or layout, for a digest."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def path_of(loc: Loc) -> str:
    """Return a way as people write it.

    Examples:
        >>> path_of(("caps", 0, "rho"))
        'caps[0].rho'
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc)
    return "".join(steps).removeprefix(".")


def line_of(node: yaml.Node, loc: Loc) -> int:
    """Return the line on which a value starts; of what holds it, where there is none."""
    for step in loc:
        if isinstance(node, yaml.MappingNode):
            below = next((value for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            below = node.value[step] if step < len(node.value) else None
        else:
            below = None
        if below is None:
            break
        node = below
    return int(node.start_mark.line) + 1
