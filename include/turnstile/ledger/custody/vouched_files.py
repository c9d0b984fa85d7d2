"""Which files of the public zone the ledger vouches for: what of it may be signed. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from turnstile.ledger.custody.notes import PUBLIC_KEY
from turnstile.ledger.custody.zone_index import LOG, Written
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.parties import Parties
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.tlog.checkpoints import Verifier

_OF_PACKAGE = ("r{}/manifest.json", "checkpoint-r{}.note", "proof-r{}.tlog-proof")
_RECORDS = {
    EntryKind.PUBLISHED: _OF_PACKAGE,
    EntryKind.LOSS_DECLARED: _OF_PACKAGE,
    EntryKind.WITHDRAWN: ("withdrawn-r{}.json",),
    EntryKind.NO_RELEASE: ("no-release-r{}.json",),
}
"""What stands in the public zone for an entry, in the folder of its period."""


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
    told = [entry for entry in entries if entry.kind in _RECORDS]
    published = [entry for entry in told if entry.kind is EntryKind.PUBLISHED]
    of_ledger = {
        f"{entry.key}/manifest.json": entry.body["manifest_digest"].removeprefix("sha256:")
        for entry in published
    }
    if lines := "".join(parties.key_lines):
        of_ledger[PUBLIC_KEY] = hashlib.sha256(lines.encode()).hexdigest()
    for log in parties.logs:
        path = f"{LOG}/{Verifier.of(log.public_line).digits}/log.pub"
        of_ledger[path] = hashlib.sha256(log.public_line.encode()).hexdigest()
    earlier = {f"{LOG}/{name}/log.pub" for log in parties.logs for name in log.earlier}
    gone = {str(entry.key) for entry in told if entry.kind is EntryKind.WITHDRAWN}
    is_listed = sum("zone_index" in entry.body for entry in published)
    return Written(
        stated=frozenset((*chain.from_iterable(map(_records_of, told)), *earlier)),
        made={**of_ledger, **made},
        trusted=trusted,
        gone=frozenset(gone | {name.removesuffix(" package") for name in parties.lost}),
        is_first=is_listed <= 1 and is_listed < len(published),
    )


def _records_of(entry: Entry) -> Iterator[str]:
    """Yield the public files that an entry is stated by."""
    names = _RECORDS.get(entry.kind, ())
    if names and entry.key is not None:
        key = ReleaseKey.parse(entry.key)
        for name in names:
            yield f"{key.programme}/{key.period}/{name.format(key.revision)}"
