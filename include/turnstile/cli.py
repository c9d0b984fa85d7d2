"""The console script `turnstile`: the same steps by hand, with exit codes that say what happened.

0 done, 1 a check failed, 2 bad input or usage, 3 refused (budget, approval, finality), 4 integrity.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from turnstile.commands import (
    assess,
    check,
    domain,
    estimates,
    itms,
    lab,
    ledger,
    new,
    package,
    plan,
    portal,
    report,
    retention,
    run,
    sample,
)
from turnstile.errors import TurnstileError

_INTERRUPTED = 130
_CLOSED_PIPE = 141  # as a shell reports it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a failure is one sentence on standard error."""
    parser = argparse.ArgumentParser(prog="turnstile", description=__doc__)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    releases = (sample, new, check, domain, plan, run, report, itms, ledger, retention)
    for command in (*releases, assess, lab, package, portal, estimates):
        command.add_parser(subparsers)
    args = parser.parse_args(arguments)
    try:
        return int(args.command(args))
    except TurnstileError as error:
        print(f"turnstile: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # whoever read the output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE
    except KeyboardInterrupt:
        print("turnstile: stopped; run the same command again to go on", file=sys.stderr)
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
