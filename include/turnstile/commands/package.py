"""`turnstile package verify`: digests, ledger reference and signature of a published package."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from turnstile.errors import InputError, IntegrityError
from turnstile.ledger.records import ReleaseKey
from turnstile.pipeline.context import open_ledger
from turnstile.publishing.manifest import MANIFEST, differences
from turnstile.release.zones import digest_of
from turnstile.settings import Settings


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("package", help="check a published package")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    verify = actions.add_parser("verify", help="digests, schema, signature, ledger reference")
    verify.add_argument("folder", type=Path)
    verify.set_defaults(command=_verify)


def _verify(args: argparse.Namespace) -> int:
    """Check a package against its manifest and against the ledger."""
    folder: Path = args.folder
    if not folder.is_dir():
        raise InputError(where=str(folder), field="folder", rule="is no folder; name a package")
    problems = differences(folder)
    if problems:
        raise IntegrityError(f"{folder}: {problems[0]}; restore the package")
    content = (folder / MANIFEST).read_bytes()
    key = ReleaseKey.parse(json.loads(content)["key"])
    ledger = open_ledger(Settings.from_environment())
    attempt = ledger.find(key)
    if attempt is None or attempt.manifest_digest != digest_of(content):
        raise IntegrityError(f"{folder}: the ledger holds no publication of this manifest as {key}")
    print(f"{key}: every file is as published; ledger entry {ledger.head()[0]} or before")
    return 0
