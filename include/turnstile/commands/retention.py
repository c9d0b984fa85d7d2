"""`turnstile retention`: until when private data stay; with `--delete`, what is due goes."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from typing import TYPE_CHECKING

from turnstile.commands.ledger_opened import who_asks
from turnstile.commands.printed_json import print_json
from turnstile.errors import InputError

if TYPE_CHECKING:
    from turnstile.pipeline.private_zone.retention import Verdict


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("retention", help="until when private data stay, and why longer")
    parser.add_argument("--delete", action="store_true", help="delete what is due, as the DAG does")
    parser.add_argument("--all", action="store_true", help="however much is due at once")
    parser.add_argument("--person", help="who says --all; you, by default")
    parser.add_argument("--reason", default="", help="why --all; kept in the ledger")
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.set_defaults(command=_retention)


def _retention(args: argparse.Namespace) -> int:
    """Print what becomes of private data; a line for each kind of each period."""
    from turnstile.ledger.presentation import table_lines
    from turnstile.operations.retention_day import RetentionDay
    from turnstile.settings import Settings, system_clock

    now = system_clock()
    if args.all and not args.reason.strip():
        rule = "is wanted where more goes than goes without a person; it stays in the ledger"
        raise InputError(where="retention", field="--reason", rule=rule)
    said = (args.person or who_asks("--person"), args.reason) if args.all else ()
    day = RetentionDay(Settings.from_environment(), now, said)
    verdicts = (*day.act(), *day.waiting()) if args.delete else day.verdicts()
    rows = [_row(verdict, now) for verdict in verdicts]
    if args.json:
        print_json(rows)
    elif rows:
        heads = {name: name for name in rows[0]}
        for line in table_lines([tuple(row.values()) for row in (heads, *rows)]):
            sys.stdout.write(f"{line}\n")
    else:
        sys.stdout.write("nothing is due\n" if args.delete else "no private data\n")
    return 0


def _row(verdict: Verdict, now: datetime) -> dict[str, str]:
    """Return what is printed of data: names, a day and a reason."""
    users = (programme.name for programme, _ in verdict.kept.users)
    names = dict.fromkeys([*users, *verdict.kept.gone])
    return {
        "programme": ", ".join(names),
        "period": verdict.kept.name,
        "data": verdict.kept.part.value,
        "until": "for ever" if verdict.due is None else f"{verdict.due:%Y-%m-%d}",
        "now": "goes" if verdict.may_go(now) else verdict.held or "stays",
    }
