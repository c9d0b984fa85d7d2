"""`turnstile run`: the steps of one week by hand, without Airflow."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from turnstile.commands.ledger_opened import who_asks
from turnstile.errors import InputError
from turnstile.pipeline.context import open_release, state_revision
from turnstile.pipeline.landing.redelivered_files import require_change
from turnstile.pipeline.ledger_preview import refusal_before_reading
from turnstile.pipeline.public_package import of_withdrawn
from turnstile.pipeline.steps import STEPS, draw, step_named


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("run", help="release one week, step by step")
    parser.add_argument("programme")
    parser.add_argument(
        "--week", required=True, help="ISO week, for example 2016-W30; or days FIRST..LAST"
    )
    parser.add_argument("--revision", type=int, default=0, help="number of an approved correction")
    parser.add_argument("--reason", help="why the week is corrected; needed with --revision")
    parser.add_argument("--public-note", default="", help="what the public is told; published")
    parser.add_argument("--approver", help="who approved the correction; you, by default")
    again = "draw the same counts once more: bytes are lost, or the code counted wrongly"
    parser.add_argument("--although-nothing-changed", action="store_true", help=again)
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> int:
    """Run every step and print the package folder."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("turnstile").setLevel(logging.INFO)
    release = open_release(args.programme, args.week, args.revision)
    if args.revision and not args.reason:
        rule = "a correction is charged in full; say why with --reason TEXT"
        raise InputError(where="turnstile run", field="--reason", rule=rule)
    if (args.reason or args.public_note) and not args.revision:
        rule = "goes with --revision N, a correction's number; a first release has no reason"
        raise InputError(where="turnstile run", field="--reason", rule=rule)
    asked = release.ledger, release.programme, release.plan, release.settings
    if refusal := refusal_before_reading(*asked):
        raise refusal
    if args.revision:
        approver = args.approver or who_asks("--approver")
        words = {"reason": args.reason, "approver": approver, "public_note": args.public_note}
        with release.copies.in_step(raw=True, files=True):
            if not args.although_nothing_changed:
                require_change(release)
            state_revision(release, words, although_nothing_changed=args.although_nothing_changed)
    was_sealed = release.sealed is not None
    for place, name in enumerate(STEPS, start=1):
        print(f"[{place}/{len(STEPS)}] {name}", file=sys.stderr)
        with _to_its_seal() if name == draw.__name__ else nullcontext():
            step_named(name)(args.programme, args.week, args.revision)
    if was_sealed:
        said = f"{of_withdrawn(release)}sealed before: the same bytes, 0 charged"
        print(said, file=sys.stderr)
    print(release.folders.public)
    return 0


@contextmanager
def _to_its_seal() -> Iterator[None]:
    """Let a draw that is charged go to its seal, whatever person or terminal asks meanwhile.

    Raises:
        KeyboardInterrupt: somebody asked to stop; before the charge at once, else after the seal.
    """
    from turnstile.pipeline.draw.drawing import ASKED, stops_are_heard

    with stops_are_heard(lambda said: print(said, file=sys.stderr)) as heard:

        def require_asked() -> None:
            if heard:
                raise KeyboardInterrupt

        waited_for = ASKED.set(require_asked)
        try:
            yield
        finally:
            ASKED.reset(waited_for)
    require_asked()
