"""`turnstile dossier`: what somebody reads who signs for a programme, as one page to print."""

from __future__ import annotations

import argparse
from pathlib import Path

from turnstile.settings import Settings, system_clock


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "what is promised, spent and decided, for those who sign: HTML that prints on A4"
    parser = subparsers.add_parser("dossier", help=text)
    parser.add_argument("programme")
    parser.add_argument("--out", type=Path, help="file to write (default: dossier-PROGRAMME.html)")
    parser.set_defaults(command=_dossier)


def _dossier(args: argparse.Namespace) -> int:
    """Write the page and name the file."""
    from turnstile.ledger.of_deployment import require_not_lost
    from turnstile.operations.deployment_state import DeploymentState
    from turnstile.operations.people.dossier import dossier_page

    settings = Settings.from_environment()
    state = DeploymentState(settings, system_clock)
    require_not_lost(settings, len(state.snapshot().lines))
    page = dossier_page(state, args.programme)
    out = args.out or Path(f"dossier-{args.programme}.html")
    out.write_text(page, encoding="utf-8")
    print(out)
    return 0
