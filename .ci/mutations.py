"""Small mistakes that can be put into a Python source, one place each: what there is to sample.

Mutated are comparisons, arithmetic, `and`, `or`, `not`, `min`, `max`, `any`, `all`, conditions,
numbers, True and False; in texts that hold SQL the same, NULL tests, joins and set operations; and
lines are dropped: a call for its effect, a new value of a name that has one, of an attribute or an
element, `raise`, `break`, `continue`, `del`, an early `return`.

Not mutated are docstrings, comments, annotations, decorators, `__all__`, TYPE_CHECKING, messages
(what a `raise` or a progress call says), texts other than SQL, expressions inside f-strings (Python
3.11 does not say where they stand), and the first value of a name, which no test at all misses.

cosmic-ray and mutmut do not serve: their operators know no SQL, in which half of the counting is
written, cosmic-ray's make mutants of annotations and messages, and mutmut runs inside one process,
where commands and workers that are started would run the code without the mistake.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "is": "is not",
    "is not": "is", "in": "not in", "not in": "in", "and": "or", "or": "and", "+": "-", "-": "+",
    "*": "+", "/": "*", "//": "*", "%": "+", "**": "*", "<<": ">>", ">>": "<<", "&": "|", "|": "&",
    "+=": "-=", "-=": "+=", "*=": "+=", "|=": "&=", "min": "max", "max": "min",
    "any": "all", "all": "any",
}  # fmt: skip
_OPERATOR = re.compile(r"#[^\n]*|(is\s+not|not\s+in|\b(?:is|in|and|or)\b|[-+*/%<>=!&|^@]+)")
_OF_SQL = re.compile(r"\b(SELECT|FROM|WHERE|AND|OR|IS NULL|NOT NULL|CASE|THEN|JOIN|OVER|BETWEEN)\b")
_SWAPS_OF_SQL = (
    (r"\bROWS BETWEEN\b.*?\bAND\b", r"\g<0>"), (r"\bBETWEEN\b.*?\bAND\b", r"NOT \g<0>"),
    (r"\bIS NOT (NULL|DISTINCT FROM)\b", r"IS \1"), (r"\bIS (NULL|DISTINCT FROM)\b", r"IS NOT \1"),
    (r"\bOR REPLACE\b", r"\g<0>"), (r"\bAND\b", "OR"), (r"\bOR\b", "AND"), (r"\bNOT ", ""),
    (r"\bDISTINCT ", ""),
    (r"\bLEFT JOIN\b", "JOIN"), (r"\bUNION ALL\b", "UNION"), (r"\bDESC\b", "ASC"),
    (r"\bmin\(", "max("), (r"\bmax\(", "min("), (r"\bleast\(", "greatest("),
    (r"<=", "<"), (r">=", ">"), (r"<>|!=", "="), (r"<", "<="), (r">", ">="), (r" = ", " <> "),
    (r" \+ ", " - "), (r" - ", " + "), (r"(?<!SELECT) \* (?!FROM)", " + "), (r" // ", " * "),
    (r" % ", " + "), (r"(?<![\w.'-])\d+(?![\w.-])", None),
)  # fmt: skip
_EXPRESSION = re.compile(r"\{\{|\}\}|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_MESSAGES = {"say", "progress", "info", "warning"}
_PLAIN = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant)  # conditions with mutations inside
_DROPPED = (ast.AugAssign, ast.Raise, ast.Break, ast.Continue, ast.Delete)


@dataclass(frozen=True, slots=True, order=True)
class Mutation:
    """One mistake: the bytes from `start` to `end` of a source become `new`."""

    start: int
    end: int
    new: bytes

    def applied(self, source: bytes) -> bytes:
        """Return the source with the mistake."""
        return source[: self.start] + self.new + source[self.end :]

    def line(self, source: bytes) -> int:
        """Return the number of its line."""
        return source.count(b"\n", 0, self.start) + 1

    def shown(self, source: bytes) -> tuple[str, str]:
        """Return its line before and after."""
        at = self.line(source) - 1
        before, after = (text.split(b"\n")[at] for text in (source, self.applied(source)))
        return before.decode().strip(), after.decode().strip()


def mutations(source: bytes) -> list[Mutation]:
    """Return every mutation of a module, in the order of their places."""
    return sorted(set(_Module(source).below(ast.parse(source), None)))


class _Module:
    """A module's bytes, and where each node of its tree stands in them."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._lines = [0]
        for line in source.split(b"\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)

    def below(self, node: ast.AST, function: ast.FunctionDef | None) -> Iterator[Mutation]:
        """Yield the mutations of a node, and of what is below it."""
        if _is_left_alone(node):
            return
        if isinstance(node, ast.stmt) and function is not None and _is_dropped(node, function):
            yield self._at(node, "pass")
        if isinstance(node, ast.Raise):
            return
        if isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str):
            yield from self._in_sql(node)
            return
        yield from self._own(node)
        inside = node if isinstance(node, ast.FunctionDef) else function
        for name, value in ast.iter_fields(node):
            if name not in {"annotation", "returns", "decorator_list"}:
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from self.below(child, inside)

    def _own(self, node: ast.AST) -> Iterator[Mutation]:
        """Yield the mutations of one node."""
        yield from self._between(_operands(node))
        match node:
            case ast.Constant(value=bool() as value):
                yield self._at(node, str(not value))
            case ast.Constant(value=int() | float() as value):
                yield self._at(node, str(value + 1))
            case ast.UnaryOp(op=ast.Not() | ast.USub() as op):
                start, _ = self._span(node)
                yield Mutation(start, start + (4 if isinstance(op, ast.Not) else 1), b"")
            case ast.Call(func=ast.Name(id=name)) if name in _SWAPS:
                yield self._at(node.func, _SWAPS[name])
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield from self._negated([test])
            case ast.comprehension(ifs=ifs):
                yield from self._negated(ifs)

    def _negated(self, conditions: list[ast.expr]) -> Iterator[Mutation]:
        for condition in conditions:
            if not isinstance(condition, _PLAIN):
                start, end = self._span(condition)
                yield Mutation(start, end, b"(not (" + self._source[start:end] + b"))")

    def _between(self, operands: list[ast.expr]) -> Iterator[Mutation]:
        """Swap the operator between each two operands."""
        for left, right in pairwise(operands):
            start, end = self._span(left)[1], self._span(right)[0]
            for match in _OPERATOR.finditer(self._source[start:end].decode("latin-1")):
                if match[1] is not None:
                    new = _SWAPS.get(" ".join(match[1].split()))
                    if new is not None:
                        yield Mutation(start + match.start(), start + match.end(), new.encode())

    def _in_sql(self, node: ast.AST) -> Iterator[Mutation]:
        """Yield the mutations of a text, if it holds SQL; expressions of an f-string stay."""
        start, end = self._span(node)
        text = self._source[start:end].decode("latin-1")
        if not _OF_SQL.search(text):
            return
        if isinstance(node, ast.JoinedStr):
            text = _EXPRESSION.sub(lambda expression: "\0" * len(expression[0]), text)
        taken: list[tuple[int, int]] = []
        for pattern, new in _SWAPS_OF_SQL:
            for match in re.finditer(pattern, text, re.DOTALL):
                first, last = match.span()
                if any(first < b and a < last for a, b in taken):
                    continue
                taken.append((first, last))
                swapped = str(int(match[0]) + 1) if new is None else match.expand(new)
                if swapped != match[0]:
                    old = self._source[start + first : start + last]
                    swapped = f"NOT {old.decode()}" if "\0" in match[0] else swapped
                    yield Mutation(start + first, start + last, swapped.encode())

    def _at(self, node: ast.AST, new: str) -> Mutation:
        return Mutation(*self._span(node), new.encode())

    def _span(self, node: Any) -> tuple[int, int]:  # noqa: ANN401 - ast.AST states no place
        """Return where a node begins and ends."""
        return (
            self._lines[node.lineno - 1] + node.col_offset,
            self._lines[node.end_lineno - 1] + node.end_col_offset,
        )


def _is_left_alone(node: ast.AST) -> bool:
    """Tell docstrings, messages, `__all__` and imports for annotations from what acts."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in _MESSAGES
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name == "__all__"
        case ast.If(test=ast.Name(id=name)):
            return name == "TYPE_CHECKING"
    return False


def _operands(node: ast.AST) -> list[ast.expr]:
    """Return what operators stand between, in order."""
    match node:
        case ast.Compare():
            return [node.left, *node.comparators]
        case ast.BoolOp():
            return node.values
        case ast.BinOp() if not _is_type(node):
            return [node.left, node.right]
        case ast.AugAssign():
            return [node.target, node.value]
    return []


def _is_type(node: ast.BinOp) -> bool:
    """Tell whether `|` joins types, as in `isinstance(one, int | str)`."""
    return isinstance(node.op, ast.BitOr) and any(
        isinstance(side, ast.Constant)
        or (isinstance(side, ast.Name) and (side.id in dir(builtins) or side.id.istitle()))
        for side in (node.left, node.right)
    )


def _is_dropped(node: ast.stmt, function: ast.FunctionDef) -> bool:
    """Tell whether a line can go and what remains is still a function that may pass."""
    match node:
        case ast.Return():
            return node not in function.body
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()):
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return function.name != "__init__"
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in _bound_before(node, function)
    return isinstance(node, _DROPPED)


def _bound_before(node: ast.stmt, function: ast.FunctionDef) -> set[str]:
    """Return the names that have a value in a function above a line."""
    return {
        parameter.arg for parameter in ast.walk(function.args) if isinstance(parameter, ast.arg)
    } | {
        child.id
        for child in ast.walk(function)
        if isinstance(child, ast.Name)
        and isinstance(child.ctx, ast.Store)
        and child.lineno < node.lineno
    }
