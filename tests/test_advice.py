"""Commands that messages advise can be pasted: none lacks its reason, no option is made up."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator, Mapping

import one_of_each
import pytest

from turnstile import cli

FIELD = "{}"  # what a message fills in
_NAMED = re.compile(r"\bturnstile (?=[a-z])")
_ENDS = re.compile(r"[;,)`]|\.(?:\s|$)|:\s")
_OPTION = re.compile(r"--[a-z]+(?:-[a-z]+)*")


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    return cli._parser_of(*cli._present())


def texts_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module, and their lines: pieces put together, docstrings left out."""
    nodes: list[ast.AST] = [*ast.walk(tree)]
    joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    seen = {id(part) for node in joined for part in node.values}
    seen |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for text in joined:
        parts = (part.value if isinstance(part, ast.Constant) else FIELD for part in text.values)
        yield text.lineno, "".join(map(str, parts))
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in seen:
            yield node.lineno, node.value


def commands_in(
    text: str, parser: argparse.ArgumentParser
) -> Iterator[tuple[str, list[argparse.ArgumentParser], str]]:
    """Yield the commands that a text names, what may parse each, and what is written after it."""
    for words in _NAMED.split(text)[1:]:
        said, at, rest = "turnstile", parser, _ENDS.split(words)[0]
        while (word := rest.partition(" ")[0]) in _below(at):
            said, at, rest = f"{said} {word}", _below(at)[word], rest.partition(" ")[2]
        if said != "turnstile":
            is_filled_in = word == FIELD and _below(at)  # by any of its actions
            yield said, [*_below(at).values()] if is_filled_in else [at], rest


def _below(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the parsers of a command's actions; none if it has none."""
    actions = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    return next((action.choices for action in actions), {})


def faults(text: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield what is wrong with the commands that a text names.

    One that needs a reason has it; one that is written out has all that it needs.
    """
    for said, parsers, rest in commands_in(text, parser):
        given = _OPTION.findall(rest)
        known = {name for each in parsers for name in each._option_string_actions}
        yield from (f"{said} has no {option}" for option in given if option not in known)
        needed = {
            action.option_strings[0]
            for each in parsers
            for action in each._actions
            if action.required and action.option_strings
        }
        is_written = len(parsers) == 1 and (rest.startswith(FIELD) or bool(given))
        for option in sorted(needed - set(given)):
            if option == "--reason" or is_written:
                yield f"{said} lacks {option}"


def test_every_command_that_a_message_names_can_be_pasted(parser: argparse.ArgumentParser) -> None:
    wrong, with_reason = [], 0
    for path, tree in one_of_each.modules(one_of_each.ROOT).items():
        for line, text in texts_of(tree):
            wrong += [f"{path}:{line}: {fault}" for fault in faults(text, parser)]
            with_reason += "--reason" in text and "turnstile ledger" in text
    assert wrong == []
    assert with_reason > 20  # what is looked for is there


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('A = "stop, then turnstile ledger recover"', "turnstile ledger recover lacks --reason"),
        (
            'A = "run turnstile ledger "\\\n    "rotate-key; or wait"',
            "turnstile ledger rotate-key l",
        ),
        ('A = f"turnstile ledger withdraw {key} takes it"', "turnstile ledger withdraw lacks --r"),
        ('A = f"or turnstile ledger {verb} {key}"', "turnstile ledger lacks --reason"),
        ('A = "turnstile ledger begin-log, --reason TEXT"', "turnstile ledger begin-log lacks"),
        ('A = "turnstile ledger witness add DIR"', "turnstile ledger witness add lacks --reason"),
        ('A = f"run turnstile run {name} first"', "turnstile run lacks --week"),
        ('A = "turnstile run --revision R --reason TEXT"', "turnstile run lacks --week"),
        ('A = f"turnstile plan {name} --grain"', "turnstile plan has no --grain"),
        ('A = f"`turnstile ledger verify --deep`"', "turnstile ledger verify has no --deep"),
    ],
)
def test_advice_that_would_be_refused_is_named(
    parser: argparse.ArgumentParser, line: str, fault: str
) -> None:
    ((_, text),) = texts_of(ast.parse(line))
    (found,) = faults(text, parser)
    assert found.startswith(fault)


@pytest.mark.parametrize(
    "text",
    [
        "turnstile ledger recover --person YOU --reason WHAT HAPPENED",
        "turnstile ledger republish makes it again",
        "turnstile run of its week goes on",
        "turnstile ledger {} {} --reason TEXT",
        "the bytes of turnstile {}, --made-up",
    ],
)
def test_advice_that_can_be_pasted_is_not_named(parser: argparse.ArgumentParser, text: str) -> None:
    assert list(faults(text, parser)) == []


def test_words_of_a_docstring_are_no_advice() -> None:
    tree = ast.parse('def act():\n    """Behind turnstile ledger recover."""\n')
    assert list(texts_of(tree)) == []
