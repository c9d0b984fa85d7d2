"""`turnstile stores`: which stores of zones this process reaches; folders that become copies."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from turnstile.errors import TurnstileError
from turnstile.settings import ZONES, Settings


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("stores", help="zones in object storage: reach, first use")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    check = commands.add_parser("check", help="which stores this environment reaches")
    check.set_defaults(command=_check)
    adopt = commands.add_parser(
        "adopt", help="put the private, embargoed and public folders into their empty stores"
    )
    adopt.set_defaults(command=_adopt)
    restore = commands.add_parser(
        "restore", help="put back what is here and lost, or altered, in a store"
    )
    restore.set_defaults(command=_restore)


def _check(_: argparse.Namespace) -> int:
    """List every store; a line a zone.

    Raises:
        StoreError: one does not answer, or refuses.
    """
    from turnstile_stores.opened import opened
    from turnstile_stores.zone_stores import store_of

    settings = Settings.from_environment()
    for zone in ZONES:
        store = store_of(settings, zone)
        if store is None:
            print(f"{zone}: no store is named here")
            continue
        bucket = opened(store)
        bucket.listed("index/")
        print(f"{zone}: {bucket.name} answers")
    return 0


def _adopt(_: argparse.Namespace) -> int:
    """Put every zone that is a folder so far into its store.

    Raises:
        InputError: a store holds something already, or another one something that is not here.
        StoreError: one does not answer; the same command goes on.
    """
    from turnstile_stores.public_zone import adopt_public, require_listed
    from turnstile_stores.zone_stores import adopt_units, adopting, require_all_here

    settings = Settings.from_environment()
    require_all_here(settings)
    require_listed(settings)
    with adopting(settings):
        for zone in ("private", "embargoed"):
            for unit in adopt_units(settings, zone):
                print(f"{zone}: {unit} is in the store")
        for name in adopt_public(settings):
            print(f"public: {name} is in the store, every byte read back")
    return 0


def _restore(_: argparse.Namespace) -> int:
    """Put back every file that is here and lost in a store, from a home that has seen it.

    Raises:
        TurnstileError: a store does not answer, this user may not write it, or it holds other
            sealed bytes than this home; what can be put back into the others is.
    """
    settings, units = Settings.from_environment(), 0
    problems: list[TurnstileError] = []
    for zone in ("private", "embargoed", "public"):
        try:
            for line in _restored(settings, zone):
                print(line)
                units += 1
        except TurnstileError as error:
            problems.append(error)
    problems.sort(key=lambda problem: problem.exit_code)
    for problem in problems[:-1]:
        print(problem, file=sys.stderr)
    if problems:
        raise problems[-1]  # the gravest
    if not units:
        print("no store lacks what was seen here and is here: nothing to restore")
    return 0


def _restored(settings: Settings, zone: str) -> Iterator[str]:
    """Put a zone back; yield a line a unit or package."""
    from turnstile_stores.public_zone import restore_public
    from turnstile_stores.zone_stores import restore_units

    if zone == "public":
        for key in restore_public(settings):
            yield f"public: {key} is back in the store, every byte read back"
        return
    for unit, back, kept in restore_units(settings, zone):
        others = f"; {kept} differ and stay as others wrote them since" if kept else ""
        yield f"{zone}: {unit}: {back} files are back in the store{others}"
