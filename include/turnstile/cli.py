"""The console script `turnstile`: the same steps by hand, with exit codes that say what happened.

0 done, 1 a check failed, 2 bad input or usage, 3 refused (budget, approval, finality), 4 integrity.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from turnstile import extensions
from turnstile.errors import InputError, TurnstileError

_COMMANDS = (
    "sample",
    "new",
    "look",
    "check",
    "domain",
    "plan",
    "run",
    "report",
    "itms",
    "ledger",
    "doctor",
    "dossier",
    "retention",
    "stores",
    "assess",
    "lab",
    "package",
    "portal",
    "estimates",
)
_INTERRUPTED = 130
_CLOSED_PIPE = 141  # as a shell reports it


class _Version(argparse.Action):
    """Print what the ledger records of the code that draws."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it and exit."""
        code = import_module("turnstile.pipeline.code_version").code_version()
        print(f"turnstile {code}")
        parser.exit()


def _present() -> list[str]:
    """Return the commands that are here: the core's, and those of installed extensions."""
    missing = {*extensions.names(extensions.COMMANDS)} - extensions.installed(extensions.COMMANDS)
    return [command for command in _COMMANDS if command not in missing]


def _module_of(command: str) -> Any:  # noqa: ANN401 - a module with `add_parser`
    """Return the module of a command.

    Raises:
        InputError: the extension that brings it is not installed.
    """
    if command not in extensions.names(extensions.COMMANDS):
        return import_module(f"turnstile.commands.{command}")
    asked_by = f"the command {command}"
    return extensions.brought(extensions.COMMANDS, command, asked_by=asked_by)


def _parser_of(*commands: str) -> argparse.ArgumentParser:
    """Return what reads the words of these commands.

    Raises:
        InputError: the extension that brings one is not installed.
    """
    parser = argparse.ArgumentParser(prog="turnstile", description=__doc__)
    parser.add_argument("--version", action=_Version, nargs=0, help="which code this is; then exit")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in commands:
        _module_of(command).add_parser(subparsers)
    return parser


def _require_text(given: Sequence[str]) -> None:
    """Refuse words that nobody could print or keep.

    Raises:
        InputError: a word is not in the encoding of this terminal.
    """
    try:
        "".join(given).encode()
    except UnicodeEncodeError:
        rule = "is not UTF-8; write it in UTF-8, or in plain letters"
        raise InputError(where="turnstile", field="a word that was given", rule=rule) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a failure is one sentence on standard error."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _require_text(given)
        # only what is asked for: the others import for a second
        asked = given[:1] if given[:1] and given[0] in _COMMANDS else _present()
        args = _parser_of(*asked).parse_args(given)
        code = int(args.command(args))
        sys.stdout.flush()  # here, where a pipe that was closed is no failure
    except TurnstileError as error:
        print(f"turnstile: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # whoever read the output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE
    except OSError as error:  # a name or place that was given; steps say more of their own
        print(
            f"turnstile: {error.filename or 'a file'}: {error.strerror or type(error).__name__}; "
            "name another one, or make its folder and let it be written",
            file=sys.stderr,
        )
        return InputError.exit_code
    except KeyboardInterrupt:
        print("turnstile: stopped; run the same command again to go on", file=sys.stderr)
        return _INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(main())
