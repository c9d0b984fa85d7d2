"""Sends series and pages of a programme to a store: files are replaced, the index last.

The index says which state of the ledger it shows. An older state never takes the place of a newer
one: of publishers that race, the one with the newer ledger wins, and the other is refused. A ledger
that was recovered is newer than what it was before, with however few entries.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import md5
from pathlib import Path

from turnstile.errors import RefusedError
from turnstile.ledger.custody import zone_index
from turnstile.ledger.custody.notes import LATEST_NOTE, PUBLIC_KEY, Note
from turnstile.ledger.custody.shown_age import shown_age
from turnstile.ledger.custody.signed_note import is_signed_by
from turnstile.ledger.custody.traces import MANIFEST
from turnstile.ledger.custody.zone_index import LOG
from turnstile.ledger.parties import is_overlooked
from turnstile.ledger.tlog.public_log import is_of_its_log, log_files
from turnstile.publishing.series.index import EXPLORER, EXPLORER_PAGE, FOLDER, INDEX
from turnstile.release.zones import digest_of
from turnstile_stores.bucket import AT_ONCE
from turnstile_stores.portals.store import LINK, PortalError, Store

Named = Mapping[str, str]  # digests by path in the zone
_TRIES = 3
_TRIES_OF_LIST = 6
_OF_LEDGER = (PUBLIC_KEY, LATEST_NOTE)
_log = logging.getLogger("turnstile")


def send_site(
    store: Store, portal: str, public: Path, programme: str, list_of: Callable[[], Named]
) -> None:
    """Bring series, pages and records of a programme in a store to those of the public zone.

    What somebody put beside them, or altered, does not go; `ledger verify` names it.

    Args:
        store: to write.
        portal: its name, for messages.
        public: zone.
        programme: name.
        list_of: reads digests of what may go there: the signed list, or what goes into the next.

    Raises:
        RefusedError: the store shows a newer state of the ledger.
        PortalError: the store does not answer, or is written to all the time.
    """
    for _ in range(_TRIES):
        if _is_sent(store, portal, public / programme, list_of()):
            break
    else:
        problem = f"{INDEX} was replaced by others {_TRIES} times, or the series here is not signed"
        raise PortalError(portal, f"{problem}: turnstile ledger republish")
    if _is_signed(public, _key_lines(public, list_of())):  # `send_log` names another
        _put_what_is_there(store, portal, public, (LATEST_NOTE,))  # nobody does after a kill


def send_named(store: Store, portal: str, public: Path, named: Named) -> None:
    """Bring files of the public zone to a store that no index names yet, as they are named.

    Args:
        store: to write.
        portal: its name, for messages.
        public: zone.
        named: digests by path in the zone.

    Raises:
        PortalError: the store does not hold what was written.
    """
    for path in named:
        if (content := _named_bytes(public, named, path)) is not None:
            _put(store, portal, path, content)


def send_log(store: Store, portal: str, public: Path, named: Named) -> None:
    """Bring key, newest note, log and signed list in a store to those of the public zone.

    Keys and proofs go as the list has them; note, checkpoints and steps, which change, as those
    keys signed them. What else lies in their place is named in the log of the process, and stays.

    Args:
        store: to write.
        portal: its name, for messages.
        public: zone.
        named: digests by path, as the signed list has them: of logs their keys.

    Raises:
        PortalError: the store does not answer, or is written to all the time.
    """
    good = _good(portal, public, named, _key_lines(public, named))
    _put_what_is_there(store, portal, public, (*good, zone_index.INDEX, zone_index.SIGNATURE))


def send_list(
    store: Store, portal: str, public: Path, renew: Callable[[], None], known: frozenset[str]
) -> None:
    """Replace the signed list in a store by one of what is there, whoever else publishes meanwhile.

    Of publishers that race, each looks again after the other has signed: the last list has both.

    Args:
        store: to write.
        portal: its name, for messages.
        public: zone.
        renew: brings the zone here as it is in the store, lists and signs it.
        known: public lines of the ledger's keys.

    Raises:
        PortalError: the store does not answer, or is written to all the time.
    """
    for _ in range(_TRIES_OF_LIST):
        before = store.read(zone_index.SIGNATURE)
        _put_what_is_there(store, portal, public, _good(portal, public, {}, known))
        renew()
        signature = public / zone_index.SIGNATURE
        if not signature.is_file():
            return  # no key yet
        signature_bytes = signature.read_bytes()
        named = zone_index.signed_list(public, (*known,))
        _put_what_is_there(store, portal, public, _good(portal, public, named, known))
        _put(store, portal, zone_index.INDEX, (public / zone_index.INDEX).read_bytes())
        is_same = before is not None and before.content == signature_bytes
        if is_same or store.replace(signature.name, signature_bytes, before and before.tag):
            return
    problem = f"{zone_index.SIGNATURE} was replaced by others {_TRIES_OF_LIST} times"
    raise PortalError(portal, problem)


def _good(portal: str, public: Path, named: Named, lines: Iterable[str]) -> Iterator[str]:
    """Yield files of ledger and log that may go; name those that are there and may not."""
    files = (path for path in log_files(public) if _of_log(path) in named)
    for path in (*_OF_LEDGER, *files):
        if path in named:
            is_good = _named_bytes(public, named, path) is not None
        elif path == PUBLIC_KEY:
            is_good = {*_key_lines(public)} <= {*lines}
        else:
            is_note = path == LATEST_NOTE
            is_good = _is_signed(public, lines) if is_note else is_of_its_log(public, path)
        if is_good:
            yield path
        elif (public / path).is_file():
            problem = "is not what our keys signed, and was not sent: turnstile ledger verify"
            _log.warning("%s: %s %s", portal, public / path, problem)


def _key_lines(public: Path, named: Named | None = None) -> list[str]:
    """Return the lines of the zone's keys; none unless they are as named, if anything is."""
    with suppress(OSError):
        content = (public / PUBLIC_KEY).read_bytes()
        if named is None or named.get(PUBLIC_KEY) == digest_of(content):
            return content.decode(errors="replace").splitlines(keepends=True)
    return []


def _is_signed(public: Path, lines: Iterable[str]) -> bool:
    """Return whether one of these keys signed the newest note."""
    seen = Note.read(public / LATEST_NOTE).checkpoint
    return seen is not None and any(is_signed_by(line, seen) for line in lines)


def _is_of_older_code(shown: bytes, here: set[str]) -> bool:
    """Return whether an index is of code that counted no recoveries, and shows what is here."""
    with suppress(ValueError, AttributeError, KeyError, TypeError):
        about = json.loads(shown)
        names = {entry["path"] for entry in about["files"]}
        return "ledger_recoveries" not in about and names <= here
    return False


def _is_sent(store: Store, portal: str, folder: Path, named: Named) -> bool:
    """Send files, then the index; False if either side was written to meanwhile, or is not named.

    What lies in the store is compared, not what its index says: somebody may have altered, deleted
    or added a file there. Of what its list tags by an MD5, as buckets do, no byte is read.
    """
    programme, public, index = folder.name, folder.parent, f"{folder.name}/{INDEX}"
    index_bytes = _named_bytes(public, named, index)
    if index_bytes is None:
        return False
    before, about = store.read(index), json.loads(index_bytes)
    shown_bytes = before.content if before else b""
    shown, ours = shown_age(shown_bytes), shown_age(index_bytes)
    is_more = is_overlooked(shown, ours[0], dict(about.get("ledger_recovered_over") or ()))
    files = {entry["path"] for entry in about["files"]}
    if shown > ours or (is_more and not _is_of_older_code(shown_bytes, files)):
        raise RefusedError(
            f"{portal} shows entry {shown[1]} of a ledger that was brought back {shown[0]} "
            f"times, and here it ends at {ours[1]} after {ours[0]}: another publisher knows more "
            "or was not seen when this ledger was brought back, or an old one was restored. Stop "
            "one of both, have what is shown there in the public zone (packages, "
            "series/index.json), then turnstile ledger recover --reason TEXT; nothing was changed"
        )
    there = _there(store, programme)
    if links := [path for path, tag in there.items() if tag == LINK]:
        for path in links:  # what is written below one, or read, lies elsewhere
            store.delete(path)
        return False
    wanted = {f"{programme}/{path}" for path in files}
    own = {path for path in named if path.partition("/")[0] in {programme, "index.html"}}
    paths = [path for path in sorted((own | wanted) - {index}) if not path.endswith(MANIFEST)]

    def put(path: str) -> bool:
        content = _named_bytes(public, named, path)
        if content is not None and there.get(path) != _tag_of(content):
            _put(store, portal, path, content)
        return content is not None

    with ThreadPoolExecutor(AT_ONCE) as threads:
        is_put = dict(zip(paths, threads.map(put, paths), strict=True))
    if not all(is_put[path] for path in paths if path != "index.html"):  # of all programmes
        return False
    if (public / index).read_bytes() != index_bytes:
        return False
    is_same = before is not None and before.content == index_bytes
    if not (is_same or store.replace(index, index_bytes, before and before.tag)):
        return False
    return _is_tidy(store, programme, {*there}, wanted)


def _is_tidy(store: Store, programme: str, there: set[str], wanted: set[str]) -> bool:
    """Delete what the index does not name; False if something that it names is not there.

    Another publisher, whose index was replaced a moment ago, may have taken ours for strays.
    """
    page = f"{programme}/{EXPLORER_PAGE}"
    there |= {page} & {*store.tags(page)}  # and none whose name begins like it
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

    def digest_there(path: str) -> str | None:
        file = store.read(f"{programme}/{path}")
        return file and digest_of(file.content)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        there = dict(zip(files, threads.map(digest_there, files), strict=True))
    if other := [path for path in files if there[path] != files[path]]:
        raise PortalError(portal, f"{programme}/{other[0]} is not what the index says")


def _named_bytes(public: Path, named: Named, name: str) -> bytes | None:
    """Return a file of the zone; None unless it is the one that is named."""
    with suppress(OSError):
        content = (public / name).read_bytes()
        return content if digest_of(content) == named.get(name) else None
    return None


def _tag_of(content: bytes) -> str:
    """Return the tag of what a file holds, where a store tags by an MD5."""
    return f'"{md5(content, usedforsecurity=False).hexdigest()}"'


def _of_log(name: str) -> str:
    """Return what names a file of the transparency log: its log's key, of a proof itself."""
    return "/".join((*name.split("/")[:2], "log.pub")) if name.startswith(LOG) else name


def _put_what_is_there(store: Store, portal: str, public: Path, names: Iterable[str]) -> None:
    """Write those of the zone's own files that it has."""
    for name in names:
        if (public / name).is_file():
            _put(store, portal, name, (public / name).read_bytes())


def _put(store: Store, portal: str, path: str, content: bytes) -> None:
    """Write a file in the place of whatever stands there, and read it back."""
    for _ in range(_TRIES):
        stored = store.read(path)
        if stored is not None and stored.content == content and stored.tag != LINK:
            return
        store.replace(path, content, stored and stored.tag)
    stored = store.read(path)
    if stored is None or stored.content != content:
        raise PortalError(portal, f"{path} does not hold what was written")
