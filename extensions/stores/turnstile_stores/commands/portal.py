"""`turnstile portal`: send published releases to folders, S3 stores and CKAN; check them there."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from turnstile.commands.ledger_opened import open_to_read, open_to_write
from turnstile.errors import InputError, TurnstileError
from turnstile.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnstile_stores.portals.delivery import Delivery


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("portal", help="send releases to portals, and check them there")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    for name, about, command in (
        ("send", "send what is not there yet, and read every byte back", _send),
        ("verify", "read back what the ledger says is there", _verify),
        ("list", "say which release is at which portal", _list),
    ):
        action = actions.add_parser(name, help=about)
        action.add_argument("programme")
        if command is not _list:
            action.add_argument(
                "--to",
                action="append",
                metavar="ADDRESS",
                help="a portal; those of the programme's publish.to by default",
            )
        action.set_defaults(command=command)


def _send(args: argparse.Namespace) -> int:
    for delivery in _deliveries(args):
        number = delivery.send()
        print(f"{delivery.portal.name}: {number} sent, the rest was there; pages are as here")
    return 0


def _verify(args: argparse.Namespace) -> int:
    """Read back from every portal."""
    for delivery in _deliveries(args):
        number = delivery.verify()
        if not number:
            raise TurnstileError(
                f"{delivery.portal.name}: no release of {delivery.programme} was ever sent there; "
                "name another portal, or send them (turnstile portal send)"
            )
        print(f"{delivery.portal.name}: {number} releases are as published")
    return 0


def _list(args: argparse.Namespace) -> int:
    """Print release and portal, a line each."""
    from turnstile.programme.loading import load_programme

    load_programme(args.programme, Settings.from_environment().include)
    ledger = open_to_read()
    for week in ledger.weeks(args.programme).values():
        for revision in week.published:
            for portal in sorted(ledger.deliveries(revision.key)):
                print(f"{revision.key}\t{portal}")
    return 0


def _deliveries(args: argparse.Namespace) -> Iterator[Delivery]:
    """Yield the programme with each of its portals.

    Raises:
        InputError: there is no portal, or an address is none.
    """
    from turnstile.programme.loading import load_programme
    from turnstile_stores.portals.addresses import portal_address
    from turnstile_stores.portals.delivery import Delivery

    settings = Settings.from_environment()
    # one whose file is gone has releases that were withdrawn, which a portal has to be told
    addresses = args.to or load_programme(args.programme, settings.include).publish.to
    if not addresses:
        rule = "has no portal; name one with --to, or in its file under publish.to"
        raise InputError(where="turnstile portal", field=args.programme, rule=rule)
    ledger = open_to_write()
    for portal in [portal_address(address) for address in addresses]:
        yield Delivery(args.programme, portal, ledger, settings.public, settings.ckan_token, print)
