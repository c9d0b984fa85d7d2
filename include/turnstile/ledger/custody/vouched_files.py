"""Which files of the public zone the ledger vouches for: what of it may be signed. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from turnstile.ledger.custody.notes import PUBLIC_KEY
from turnstile.ledger.custody.zone_index import LOG, Written
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.parties import Parties
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.tlog.checkpoints import Verifier
from turnstile.service_calendar import is_period

_PUBLISHED = (EntryKind.PUBLISHED, EntryKind.LOSS_DECLARED)
TOLD = (*_PUBLISHED, EntryKind.WITHDRAWN, EntryKind.NO_RELEASE)
"""Kinds of entries for which something stands in the public zone."""


def vouched_files(
    entries: Iterable[Entry], parties: Parties, made: Mapping[str, str], trusted: tuple[str, ...]
) -> Written:
    """Return what of the public zone may be signed.

    Args:
        entries: all of the ledger.
        parties: its keys and logs.
        made: digests of what this process wrote, by path in the zone.
        trusted: public lines of which one has to have signed the list of before.
    """
    told = [entry for entry in entries if entry.kind in TOLD]
    published = [entry for entry in told if entry.kind is EntryKind.PUBLISHED]
    of_ledger = {f"{key}/manifest.json": digest for key, digest in _manifests(told).items()}
    for path, record in public_records(told).items():
        of_ledger[path] = hashlib.sha256(record_bytes(record)).hexdigest()
    if lines := "".join(parties.key_lines):
        of_ledger[PUBLIC_KEY] = hashlib.sha256(lines.encode()).hexdigest()
    for log in parties.logs:
        path = f"{LOG}/{Verifier.of(log.public_line).digits}/log.pub"
        of_ledger[path] = hashlib.sha256(log.public_line.encode()).hexdigest()
    earlier = {f"{LOG}/{name}/log.pub" for log in parties.logs for name in log.earlier}
    gone = {str(entry.key) for entry in told if entry.kind is EntryKind.WITHDRAWN}
    is_listed = sum("zone_index" in entry.body for entry in published)
    return Written(
        stated=frozenset((*chain.from_iterable(map(_beside, told)), *earlier)),
        made={**of_ledger, **made},
        trusted=trusted,
        gone=frozenset(gone | {name.removesuffix(" package") for name in parties.lost}),
        is_first=is_listed <= 1 and is_listed < len(published),
    )


def public_records(entries: Iterable[Entry]) -> dict[str, dict[str, Any]]:
    """Return what is stated of withdrawn releases and periods without one, by path in the zone.

    They are made of the ledger alone: one that only lies there may have been put there.
    """
    told = [entry for entry in entries if entry.kind in TOLD]
    manifests, records = _manifests(told), dict[str, dict[str, Any]]()
    for entry in told:
        key = ReleaseKey.parse(str(entry.key))
        folder, record = (
            f"{key.programme}/{key.period}",
            {
                "release": entry.key,
                "ledger": {"sequence": entry.sequence, "entry_sha256": entry.hash},
            },
        )
        if entry.kind is EntryKind.NO_RELEASE and is_period(key.period):
            said = {"state": "no release", "stated_at": entry.at}
            records[f"{folder}/no-release-r{key.revision}.json"] = record | said
        elif entry.kind is EntryKind.WITHDRAWN and str(key) in manifests:
            said = {
                "state": "withdrawn",
                "withdrawn_at": entry.at,
                "reason": entry.body.get("public_note", ""),
                "manifest_sha256": manifests[str(key)],
            }
            records[f"{folder}/withdrawn-r{key.revision}.json"] = record | said
    return records


def record_bytes(record: Mapping[str, Any]) -> bytes:
    """Return a record as its file holds it."""
    return (json.dumps(record, indent=1, sort_keys=True) + "\n").encode()


def _manifests(told: Iterable[Entry]) -> dict[str, str]:
    """Return the digest of each manifest that the ledger names, by release key."""
    return {
        str(entry.key): str(entry.body["manifest_digest"])
        for entry in told
        if entry.kind in _PUBLISHED and entry.body["manifest_digest"]
    }


def beside_package(key: ReleaseKey) -> tuple[str, str]:
    """Return the paths in the zone of the note and the proof beside the package of a release."""
    folder = f"{key.programme}/{key.period}"
    return f"{folder}/checkpoint-r{key.revision}.note", f"{folder}/proof-r{key.revision}.tlog-proof"


def _beside(entry: Entry) -> Iterator[str]:
    """Yield what lies beside the package of an entry, which is signed itself."""
    key = ReleaseKey.parse(str(entry.key))
    if entry.kind in _PUBLISHED:
        yield from beside_package(key)
