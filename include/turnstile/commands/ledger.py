"""`turnstile ledger`: what people and scripts read of the ledger; what they add is beside."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.commands.ledger_facts import add_facts
from turnstile.commands.ledger_opened import open_to_read
from turnstile.commands.ledger_weeks import add_weeks
from turnstile.commands.printed_json import print_json
from turnstile.errors import InputError, IntegrityError
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from turnstile.ledger.records import Finding
    from turnstile.ledger.verification import Scope


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("ledger", help="what has been spent, by whom, and what is left")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    balance = actions.add_parser("balance", help="spent, held and cap of the most spent accounts")
    balance.add_argument("--family", help="one budget group only")
    balance.add_argument(
        "--all", action="store_true", help="every account, not the most spent only"
    )
    _finish(balance, _balance)
    entries = actions.add_parser("entries", help="every fact, oldest first")
    entries.add_argument("--key", help="of one release only, opal/2016-W30/r0")
    _finish(entries, _entries)
    forecast = actions.add_parser("forecast", help="in which week each cap is reached")
    forecast.add_argument("--family", help="one budget group only")
    forecast.add_argument("--plot", type=Path, help="write a picture (SVG) there")
    _finish(forecast, _forecast)
    verify = actions.add_parser("verify", help="recompute everything; exit 4 if anything differs")
    verify.add_argument("--export", type=Path, help="verify an exported folder, not the database")
    verify.add_argument("--key", type=Path, help="public key (ledger.pub), obtained another way")
    verify.add_argument(
        "--private", action="store_true", help="rows, exact counts and bounding key too"
    )
    _finish(verify, _verify)
    export = actions.add_parser("export", help="a complete copy that verifies without the database")
    export.add_argument("folder", type=Path, help="a new folder")
    _finish(export, _export)
    add_weeks(actions)
    add_facts(actions)


def _finish(parser: argparse.ArgumentParser, command: object) -> None:
    """Add what every action has."""
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.set_defaults(command=command)


def _print(lines: Iterable[str]) -> None:
    """Write lines to standard output."""
    for line in lines:
        sys.stdout.write(f"{line}\n")


def _balance(args: argparse.Namespace) -> int:
    """Show balances."""
    from turnstile.ledger.presentation import balance_json, balance_lines, most_spent

    balances = open_to_read().balance(args.family)
    shown = balances if args.all else most_spent(balances)
    if args.json:
        print_json([balance_json(balance) for balance in shown])
    else:
        _print(balance_lines(shown))
    return 0


def _entries(args: argparse.Namespace) -> int:
    """Show facts."""
    from turnstile.ledger.presentation import entry_json, entry_line

    entries = (e for e in open_to_read().entries() if args.key in (None, e.key))
    _print(json.dumps(entry_json(e)) if args.json else entry_line(e) for e in entries)
    return 0


def _forecast(args: argparse.Namespace) -> int:
    """Show when caps are reached."""
    from turnstile.ledger.presentation import forecast_lines
    from turnstile.operations.budget_page.forecast_picture import forecast_svg

    forecasts = open_to_read().forecast(args.family)
    if args.plot:
        args.plot.write_text(forecast_svg(forecasts), encoding="utf-8")
    if args.json:
        print_json([asdict(forecast) for forecast in forecasts])
    else:
        _print(forecast_lines(forecasts))
    return 0


def _scope(args: argparse.Namespace) -> Scope:
    """Return how far a verification goes, and whose signature it trusts.

    Raises:
        InputError: the key cannot be read.
    """
    from turnstile.ledger.custody.signed_note import is_public_line
    from turnstile.ledger.verification import Scope

    if args.key is None:
        return Scope()
    try:
        lines = tuple(args.key.read_text("utf-8").strip().splitlines(keepends=True))
    except (OSError, ValueError) as error:
        raise InputError(where=str(args.key), field="--key", rule="cannot be read") from error
    if not lines or not all(is_public_line(line) for line in lines):
        rule = "is no list of public keys; give the ledger.pub that you kept"
        raise InputError(where=str(args.key), field="--key", rule=rule)
    return Scope(trusted=lines, trusted_in=str(args.key))


def _verify(args: argparse.Namespace) -> int:
    """Recompute everything."""
    if args.export:
        from turnstile.ledger.custody.export import verify_export

        where, findings = args.export, tuple(verify_export(args.export, trusted=args.key))
    else:
        where, findings = "the ledger", _findings(args)
    if args.json:
        print_json(
            [{"check": f.check, "entry": f.sequence, "problem": f.problem} for f in findings]
        )
    else:
        _print(str(finding) for finding in findings)
    if findings:
        raise IntegrityError(
            f"{where} does not verify: {findings[0]} ({len(findings)} findings); stop releasing, "
            "keep every copy, and compare with the witnesses"
        )
    if not args.json:
        _print([f"{where}: chain, promises, balances, guards, witnesses and files agree"])
    return 0


def _findings(args: argparse.Namespace) -> tuple[Finding, ...]:
    """Verify the ledger, and private data where they are asked for; tell the page of both.

    Raises:
        InputError: private data are asked for where none are read.
    """
    from turnstile.operations.watchdog.last_verification import tell_verification
    from turnstile.operations.watchdog.private_comparison import compared, tell_comparison
    from turnstile.operations.watchdog.watch import audited
    from turnstile.pipeline.private_zone.private_verification import (
        private_findings,
        require_private,
    )

    settings = Settings.from_environment()
    if args.private:
        require_private(settings, "ledger verify", "--private")
    ledger = open_to_read()
    head, findings = ledger.head(), ledger.verify(_scope(args))
    if args.key is None:  # another's key, or a wrong one, tells of itself
        _tell_page(
            lambda journal, now: tell_verification(
                journal, now, head, audited(lambda: findings, settings)
            )
        )
    if args.private:
        look = partial(private_findings, settings, ledger)
        findings += compared(look, partial(_tell_page, tell_comparison))
    return findings


def _tell_page(tell: Callable[..., None], *said: object) -> None:
    """Let the budget page know what was found, where there is a journal that can be written."""
    from turnstile.operations.journal import FOLDER, Journal

    settings = Settings.from_environment()
    if (settings.home / FOLDER).is_dir():
        with suppress(OSError):
            tell(Journal.of(settings), system_clock(), *said)


def _export(args: argparse.Namespace) -> int:
    """Write a complete copy."""
    length = open_to_read().export(args.folder)
    if args.json:
        print_json({"folder": str(args.folder), "entries": length})
    else:
        check = f"turnstile ledger verify --export {args.folder}"
        _print([f"{length} entries in {args.folder}; check: {check}"])
    return 0
