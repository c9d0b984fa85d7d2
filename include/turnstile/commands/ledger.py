"""`turnstile ledger`: what people and scripts read of the ledger, and the two words they add."""

from __future__ import annotations

import argparse
import getpass
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.errors import InputError, IntegrityError
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnstile.ledger.ledger import Ledger
    from turnstile.ledger.records import Attempt, ReleaseKey


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
    verify.add_argument("--key", type=Path, help="public key for the export, obtained another way")
    _finish(verify, _verify)
    export = actions.add_parser("export", help="a complete copy that verifies without the database")
    export.add_argument("folder", type=Path, help="a new folder")
    _finish(export, _export)
    void = actions.add_parser("void", help="let a hold go that no run will take up; costs nothing")
    _name_release(void)
    _finish(void, _void)
    withdraw = actions.add_parser("withdraw", help="flag a public release as withdrawn; no refund")
    _name_release(withdraw)
    withdraw.add_argument("--person", help="who says so; you, by default")
    _finish(withdraw, _withdraw)


def _name_release(parser: argparse.ArgumentParser) -> None:
    """Add the release that an action is about, and why it is taken."""
    parser.add_argument("key", help="opal/2016-W30/r0")
    parser.add_argument("--reason", required=True, help="why; it stays in the ledger")


def _finish(parser: argparse.ArgumentParser, command: object) -> None:
    """Add what every action has."""
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.set_defaults(command=command)


def _ledger() -> Ledger:
    """Open the deployment's ledger, which has to exist already."""
    from turnstile.ledger.ledger import Ledger

    settings = Settings.from_environment()
    file = settings.ledger_url.partition("sqlite:///")[2]
    if file and not Path(file).exists():
        rule = "there is no ledger yet; release something first, or set TURNSTILE_LEDGER_URL"
        raise InputError(where=file, field="ledger", rule=rule)
    return Ledger.open(
        settings.ledger_url,
        clock=system_clock,
        witnesses=settings.witness,
        public=settings.public,
        embargoed=settings.embargoed,
    )


def _print(lines: Iterable[str]) -> None:
    """Write lines to standard output."""
    for line in lines:
        sys.stdout.write(f"{line}\n")


def _print_json(value: object) -> None:
    """Write a value as JSON."""
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


def _balance(args: argparse.Namespace) -> int:
    """Show balances."""
    from turnstile.ledger.presentation import balance_json, balance_lines, most_spent

    found = _ledger().balance(args.family)
    shown = found if args.all else most_spent(found)
    if args.json:
        _print_json([balance_json(one) for one in shown])
    else:
        _print(balance_lines(shown))
    return 0


def _entries(args: argparse.Namespace) -> int:
    """Show facts."""
    from turnstile.ledger.presentation import entry_json, entry_line

    entries = (e for e in _ledger().entries() if args.key in (None, e.key))
    _print(json.dumps(entry_json(e)) if args.json else entry_line(e) for e in entries)
    return 0


def _forecast(args: argparse.Namespace) -> int:
    """Show when caps are reached."""
    from turnstile.ledger.forecast import plot_svg
    from turnstile.ledger.presentation import forecast_json, forecast_lines

    found = _ledger().forecast(args.family)
    if args.plot:
        args.plot.write_text(plot_svg(found), encoding="utf-8")
    if args.json:
        _print_json([forecast_json(one) for one in found])
    else:
        _print(forecast_lines(found))
    return 0


def _verify(args: argparse.Namespace) -> int:
    """Recompute everything."""
    if args.export:
        from turnstile.ledger.export import verify_export

        where, findings = args.export, tuple(verify_export(args.export, trusted=args.key))
    else:
        where, findings = "the ledger", _ledger().verify()
    if args.json:
        _print_json(
            [{"check": f.check, "entry": f.sequence, "problem": f.problem} for f in findings]
        )
    else:
        _print(str(finding) for finding in findings)
    if findings:
        raise IntegrityError(
            f"{where} was altered: {findings[0]} ({len(findings)} findings); stop releasing, keep "
            "every copy, and compare with the witnesses"
        )
    if not args.json:
        _print([f"{where}: chain, meaning, balances, checkpoints and manifests agree"])
    return 0


def _export(args: argparse.Namespace) -> int:
    """Write a complete copy."""
    length = _ledger().export(args.folder)
    if args.json:
        _print_json({"folder": str(args.folder), "entries": length})
    else:
        _print([f"{length} entries in {args.folder}; check: turnstile ledger verify --export it"])
    return 0


def _void(args: argparse.Namespace) -> int:
    """Release a hold."""
    from turnstile.ledger.records import ReleaseKey

    ledger, key = _ledger(), ReleaseKey.parse(args.key)
    found = ledger.find(key)
    if found is None:
        rule = f"nothing was ever reserved under {key}; `turnstile ledger entries` lists what was"
        raise InputError(where="ledger", field="key", rule=rule)
    return _reported(args, key, ledger.void(found.attempt_id, args.reason))


def _withdraw(args: argparse.Namespace) -> int:
    """Flag a publication."""
    from turnstile.ledger.records import ReleaseKey

    key = ReleaseKey.parse(args.key)
    person = args.person or getpass.getuser()
    return _reported(args, key, _ledger().withdraw(key, person, args.reason))


def _reported(args: argparse.Namespace, key: ReleaseKey, found: Attempt) -> int:
    """Say how a release stands now."""
    state = "withdrawn" if found.is_withdrawn else found.state.value
    if args.json:
        _print_json({"key": str(key), "state": state})
    else:
        _print([f"{key}: {state}"])
    return 0
