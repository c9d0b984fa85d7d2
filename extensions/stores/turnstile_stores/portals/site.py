"""Sends series and pages of a programme to a store: files are replaced, the index last.

The index says which state of the ledger it shows. An older state never takes the place of a newer
one: of publishers that race, the one with the newer ledger wins, and the other is refused. A ledger
that was recovered is newer than what it was before, with however few entries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from hashlib import md5
from pathlib import Path

from turnstile.errors import RefusedError
from turnstile.ledger.custody import zone_index
from turnstile.ledger.custody.notes import LATEST_NOTE, PUBLIC_KEY
from turnstile.ledger.custody.shown_age import shown_age
from turnstile.ledger.parties import is_overlooked
from turnstile.ledger.tlog.public_log import log_files
from turnstile.publishing.series.index import EXPLORER, EXPLORER_PAGE, FOLDER, INDEX
from turnstile.release.zones import digest_of
from turnstile_stores.portals.store import LINK, PortalError, Store

_TRIES = 3
_TRIES_OF_LIST = 6
_PAGES = ("index.html", "feed.atom", "feed.json")
_OF_LEDGER = (PUBLIC_KEY, LATEST_NOTE)
_RECORDS = ("*/withdrawn-r*.json", "*/no-release-r*.json", "*/checkpoint-r*.note")


def send_site(
    store: Store, portal: str, public: Path, programme: str, *, with_list: bool = True
) -> None:
    """Bring series, pages and records of a programme in a store to those of the public zone.

    Args:
        store: to write.
        portal: its name, for messages.
        public: zone.
        programme: name.
        with_list: whether the signed list of the zone goes too, as it is here.

    Raises:
        RefusedError: the store shows a newer state of the ledger.
        PortalError: the store does not answer, or is written to all the time.
    """
    for _ in range(_TRIES):
        if _is_sent(store, portal, public / programme):
            break
    else:
        raise PortalError(portal, f"{INDEX} was replaced by others {_TRIES} times")
    signed_list = (zone_index.INDEX, zone_index.SIGNATURE) if with_list else ()
    log = log_files(public) if with_list else ()
    _put_what_is_there(store, portal, public, ("index.html", *_OF_LEDGER, *log, *signed_list))


def send_list(store: Store, portal: str, public: Path, renew: Callable[[], None]) -> None:
    """Replace the signed list in a store by one of what is there, whoever else publishes meanwhile.

    Of publishers that race, each looks again after the other has signed: the last list has both.

    Args:
        store: to write.
        portal: its name, for messages.
        public: zone.
        renew: brings the zone here as it is in the store, lists and signs it.

    Raises:
        PortalError: the store does not answer, or is written to all the time.
    """
    for _ in range(_TRIES_OF_LIST):
        before = store.read(zone_index.SIGNATURE)
        _put_what_is_there(store, portal, public, _OF_LEDGER)
        renew()
        signature = public / zone_index.SIGNATURE
        if not signature.is_file():
            return  # no key yet
        signature_bytes = signature.read_bytes()
        _put_what_is_there(store, portal, public, log_files(public))
        _put(store, portal, zone_index.INDEX, (public / zone_index.INDEX).read_bytes())
        is_same = before is not None and before.content == signature_bytes
        if is_same or store.replace(signature.name, signature_bytes, before and before.tag):
            return
    problem = f"{zone_index.SIGNATURE} was replaced by others {_TRIES_OF_LIST} times"
    raise PortalError(portal, problem)


def _is_sent(store: Store, portal: str, folder: Path) -> bool:
    """Send files, then the index; False if either side was written to meanwhile.

    What lies in the store is compared, not what its index says: somebody may have altered, deleted
    or added a file there. Of what its list tags by an MD5, as buckets do, no byte is read.
    """
    programme, index_bytes = folder.name, (folder / INDEX).read_bytes()
    before, about = store.read(f"{programme}/{INDEX}"), json.loads(index_bytes)
    shown = shown_age(before.content if before else b"")
    ours, over = shown_age(index_bytes), dict(about.get("ledger_recovered_over") or ())
    if shown > ours or is_overlooked(shown, ours[0], over):
        raise RefusedError(
            f"{portal} shows entry {shown[1]} of a ledger that was brought back {shown[0]} "
            f"times, and here it ends at {ours[1]} after {ours[0]}: another publisher knows more "
            "or was not seen when this ledger was brought back, or an old one was restored. Stop "
            "one of both, have what is shown there in the public zone (packages, "
            "series/index.json), then turnstile ledger recover; nothing was changed"
        )
    there = _there(store, programme)
    if links := [path for path, tag in there.items() if tag == LINK]:
        for path in links:  # what is written below one, or read, lies elsewhere
            store.delete(path)
        return False
    wanted = {f"{programme}/{entry['path']}" for entry in about["files"]}
    try:
        for path in (*sorted(wanted), *(f"{programme}/{name}" for name in _others(folder))):
            content = (folder.parent / path).read_bytes()
            if there.get(path) != f'"{md5(content, usedforsecurity=False).hexdigest()}"':
                _put(store, portal, path, content)
    except FileNotFoundError:
        return False
    if (folder / INDEX).read_bytes() != index_bytes:
        return False
    is_same = before is not None and before.content == index_bytes
    if not (is_same or store.replace(f"{programme}/{INDEX}", index_bytes, before and before.tag)):
        return False
    return _is_tidy(store, programme, {*there}, wanted)


def _is_tidy(store: Store, programme: str, there: set[str], wanted: set[str]) -> bool:
    """Delete what the index does not name; False if something that it names is not there.

    Another publisher, whose index was replaced a moment ago, may have taken ours for strays.
    """
    page = f"{programme}/{EXPLORER_PAGE}"
    if page not in wanted and store.read(page):
        there.add(page)
    for path in sorted(there - wanted - {f"{programme}/{INDEX}"}):
        store.delete(path)
    there = {*_there(store, programme)}
    return all(path in there or store.read(path) for path in wanted)


def _there(store: Store, programme: str) -> dict[str, str]:
    """Return the tag of every file of series and explorer in a store."""
    parts = (store.tags(f"{programme}/{part}/") for part in (FOLDER, EXPLORER))
    return {path: tag for tags in parts for path, tag in tags.items()}


def verify_site(store: Store, portal: str, programme: str) -> None:
    """Compare the series in a store with its own index.

    Raises:
        PortalError: a file is not there, or not what the index says.
    """
    index = store.read(f"{programme}/{INDEX}")
    if index is None:
        raise PortalError(portal, f"{programme}/{INDEX} is not there")
    try:
        files = {entry["path"]: entry["sha256"] for entry in json.loads(index.content)["files"]}
    except (ValueError, LookupError, TypeError, RecursionError):
        problem = f"{programme}/{INDEX} cannot be read; turnstile portal send writes it again"
        raise PortalError(portal, problem) from None
    for path, digest in files.items():
        file = store.read(f"{programme}/{path}")
        if file is None or digest_of(file.content) != digest:
            raise PortalError(portal, f"{programme}/{path} is not what the index says")


def _others(folder: Path) -> list[str]:
    """Return pages and records of a programme."""
    records = (path for pattern in _RECORDS for path in sorted(folder.glob(pattern)))
    return [*_PAGES, *(path.relative_to(folder).as_posix() for path in records)]


def _put_what_is_there(store: Store, portal: str, public: Path, names: Iterable[str]) -> None:
    """Write those of the zone's own files that it has."""
    for name in names:
        if (public / name).is_file():
            _put(store, portal, name, (public / name).read_bytes())


def _put(store: Store, portal: str, path: str, content: bytes) -> None:
    """Write a file in the place of whatever stands there, and read it back."""
    for _ in range(_TRIES):
        stored = store.read(path)
        if stored is not None and stored.content == content:
            return
        store.replace(path, content, stored and stored.tag)
    stored = store.read(path)
    if stored is None or stored.content != content:
        raise PortalError(portal, f"{path} does not hold what was written")
