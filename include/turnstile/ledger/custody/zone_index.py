"""One signed list of everything in the public zone, made at each change of what is public.

    <public>/zone-index.txt         lines of `sha256sum`: digest, two blanks, path
    <public>/zone-index.sig.json    the list's digest and the ledger's length, signed (DSSE)

A package stands by its manifest, which lists its files. Notes are signed themselves, but those
beside packages stand here too: so a note that is removed is missed. A file that nobody listed, a
missing or altered one is named; so are raw rows that somebody drops there by mistake.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from turnstile.durable_files import (
    DRAFT,
    delete_for_good,
    exclusively,
    is_named_sealed,
    replace_durably,
    sha256_of,
)
from turnstile.ledger.custody.folders import all_below, listed, package_of
from turnstile.ledger.custody.notes import LATEST_NOTE, PUBLIC_KEY
from turnstile.ledger.custody.signed_note import is_payload_signed_by
from turnstile.ledger.custody.traces import MANIFEST
from turnstile.ledger.records import REVISION, Finding

INDEX, SIGNATURE = "zone-index.txt", "zone-index.sig.json"
KIND = "application/vnd.turnstile.public-zone+json"
_OWN = {INDEX, SIGNATURE, LATEST_NOTE}
LOG = "ledger-log"
"""Folder of the transparency log, which is compared with the entries themselves.

Of it the list names the keys alone: so the ledger vouches for every log that it began."""
_OF_SERIES = re.compile(
    r"index\.html|ledger\.pub|[^/]+/((index|explore)\.html|feed\.(atom|json)|(series|explore)/.+)"
)
_IN_WORK = re.compile(
    rf"(.*/)?({DRAFT}|\.((zone-index|series)\.lock|space-[0-9a-f]{{16}}"
    rf"|{REVISION}-[0-9a-f]{{8}}/.+))"
    r"|\.store/(adopting|zone\.lock|copies\.json|arriving-[0-9a-f]{8})"
)
_IS_DRAFT = re.compile(rf"(.*/)?{DRAFT}")
_WRITTEN_WITHIN_S = 3600
_LATEST, _RELEASE = (
    re.compile(r"[^/]+/(latest|\.latest-[0-9a-f]{8})"),
    re.compile(rf"(?!\.\.?/)[^/]+/{REVISION}"),
)
_LOG_KEY = re.compile(rf"{LOG}/[0-9a-f]+/log\.pub")
_NOTE = re.compile(rf"[^/]+/[^/]+/checkpoint-{REVISION}\.note")
BESIDE = rf"(checkpoint|proof|withdrawn|no-release)-{REVISION}\.(note|tlog-proof|json)"
"""Pattern of the files that the ledger has beside packages, and can make again."""
_BESIDE = re.compile(rf"[^/]+/[^/]+/{BESIDE}")
_STATED = re.compile(rf"[^/]+/[^/]+/(withdrawn|no-release)-{REVISION}\.json")
Sign = Callable[[str, bytes], tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class ZoneState:
    """What the ledger lets be otherwise than the list says.

    Args:
        trusted: public lines of which one has to have signed.
        is_wanted: whether a list was made before.
        may_be_gone: release keys whose packages were withdrawn or declared lost, and paths of
            proofs of entries that are lost.
        in_change: programmes of which something was published a moment ago, by the list's length.
        left: release keys that the ledger published, and that no process of this machine publishes
            now, though one did: of which none is listed, none came to its end.
        stated: records of withdrawn and missing releases that have to be there, whatever the list
            says: the zone of an earlier day lacks them in its list, too.
    """

    trusted: tuple[str, ...]
    is_wanted: bool
    may_be_gone: frozenset[str]
    in_change: Callable[[int], frozenset[str]]
    left: frozenset[str] = frozenset()
    stated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Written:
    """What may be signed, and why: nothing is, only because it lies there.

    Args:
        stated: notes and proofs beside packages, by the ledger; they are signed themselves.
        made: digests of files that this process wrote or the ledger states, by path.
        trusted: public lines of which one has to have signed the list of before.
        gone: release keys whose packages were withdrawn or declared lost.
        is_first: whether the zone is older than its list, so that nothing tells what was written.
    """

    stated: frozenset[str]
    made: Mapping[str, str]
    trusted: tuple[str, ...]
    gone: frozenset[str] = frozenset()
    is_first: bool = False


def write_index(public: Path, length: int, written: Written, sign: Sign) -> None:
    """List and sign what was written; a list that would say the same is not written again.

    What nobody says to have written stays as the list of before has it, there or not: a file that
    was planted, altered or removed today would be signed tomorrow.

    Args:
        public: zone.
        length: of the ledger, before the zone was looked at.
        written: what may be signed.
        sign: returns the public line and the signature of a payload of a kind.
    """
    with exclusively(public / ".zone-index.lock"):
        _sweep(public)
        digests = _listed_anew(_here(public), signed_list(public, written.trusted), written)
        text = "".join(f"{digest}  {path}\n" for path, digest in sorted(digests.items()))
        said = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "ledger_entries": length}
        payload = json.dumps(said, sort_keys=True).encode()
        line, signature = sign(KIND, payload)
        if _is_signed_already(public, text, line):
            return
        signed = {
            "payloadType": KIND,
            "payload": base64.b64encode(payload).decode(),
            "signatures": [{"keyid": line.strip(), "sig": base64.b64encode(signature).decode()}],
        }
        replace_durably(public / INDEX, text.encode())
        replace_durably(public / SIGNATURE, (json.dumps(signed, indent=1) + "\n").encode())


def _sweep(public: Path) -> None:
    """Delete drafts of processes that were killed: who lives has put one in its place by now."""
    for name, entry in all_below(public, closed=_is_package):
        with suppress(OSError):  # another sweeps, or may not: it is in nobody's way
            is_left = _IS_DRAFT.fullmatch(name) and entry.is_file(follow_symlinks=False)
            if is_left and time.time() - entry.stat().st_mtime > _WRITTEN_WITHIN_S:
                delete_for_good(Path(entry))


def signed_list(public: Path, trusted: tuple[str, ...]) -> Mapping[str, str]:
    """Return digests by path as the list has them; nothing where no key signed it that counts."""
    return {} if _signed_length(public, trusted) is None else _listed(public)


def _listed_anew(
    here: Mapping[str, str], before: Mapping[str, str], written: Written
) -> dict[str, str]:
    """Return what the next list holds."""
    digests = dict[str, str]()
    renewed = {name.partition("/")[0] for name in written.made if _OF_SERIES.fullmatch(name)}
    for name in here.keys() | before.keys():
        digest, made = here.get(name) or None, written.made.get(name)
        is_left = (
            digest is None and name.partition("/")[0] in renewed and name not in written.stated
        )
        is_note = _NOTE.fullmatch(name) is not None  # is signed itself, and compared with entries
        if digest is None and str(PurePosixPath(name).parent) in written.gone:
            continue
        if digest is not None and (digest == made or (is_note and name in written.stated)):
            digests[name] = digest
        elif name in before and (made or not _STATED.fullmatch(name)):  # a lost ledger stated it
            if not (is_left and made is None and _OF_SERIES.fullmatch(name)):
                digests[name] = before[name]
        elif digest is not None and made is not None:
            digests[name] = made  # was altered since
        elif digest is not None and (
            name in written.stated or (written.is_first and _OF_SERIES.fullmatch(name))
        ):
            digests[name] = digest
    return digests


def zone_findings(public: Path, state: ZoneState) -> Iterator[Finding]:
    """Yield every file of the public zone that is foreign, missing or altered by the list."""
    if not (public / INDEX).exists() and not (public / SIGNATURE).exists():
        if state.is_wanted:
            yield _finding(public / INDEX, "is gone; turnstile ledger republish makes it")
        return
    length = _signed_length(public, state.trusted)
    if length is None:
        problem = "is not what the ledger's key signed; restore it, or turnstile ledger republish"
        yield _finding(public / INDEX, problem)
        return
    listed, here, changing = _listed(public), _here(public), state.in_change(length)
    if not any(map(_LOG_KEY.fullmatch, listed)):  # a list of before they stood in it
        here = {name: digest for name, digest in here.items() if not _LOG_KEY.fullmatch(name)}
    left = _left(state, here.keys() - listed.keys())
    yield from map(_stopped, (public / path for path in sorted(left)))
    for path in sorted((listed.keys() | here.keys() | state.stated) - left):
        if path.partition("/")[0] in changing or listed.get(path) == here.get(path) is not None:
            continue
        if path in here and path not in listed:
            yield _finding(public / path, _unlisted(path, state.stated))
        elif path in here:
            problem = f"was altered since it was published; {_way_back(path, 'take it away, and ')}"
            yield _finding(public / path, problem)
        elif not state.may_be_gone & {path, str(PurePosixPath(path).parent)}:
            why = " since it was published" if path in listed else ", which the ledger states"
            yield _finding(public / path, f"is missing{why}; {_way_back(path)}")


def _left(state: ZoneState, unlisted: set[str]) -> set[str]:
    """Return the manifests of packages whose publication did not come to its end."""
    return unlisted & {f"{key}/{MANIFEST}" for key in state.left}


def _stopped(manifest: Path) -> Finding:
    """Say that whoever published a package was killed, and what ends it."""
    problem = "is public, and whoever published it was stopped before series and signed list"
    mend = "turnstile run of its week goes on, or turnstile ledger republish: 0 charged"
    return _finding(manifest.parent, f"{problem}; {mend}")


def _unlisted(path: str, stated: frozenset[str]) -> str:
    """Say what is wrong with a file that the signed list does not name."""
    if path in stated:
        return "is not in the signed list; turnstile ledger republish lists it again"
    return f"is a file that nobody published; find out what it holds{_anew(path)}"


def _is_signed_already(public: Path, text: str, line: str) -> bool:
    """Return whether this very list stands there, under the present key."""
    try:
        is_same = (public / INDEX).read_text(encoding="utf-8") == text
    except (OSError, ValueError):
        return False
    return is_same and _signed_length(public, (line,)) is not None


def _anew(path: str) -> str:
    """Say what makes a file of a series again, and who a statement; of others, nobody does."""
    if _STATED.fullmatch(path):
        return (
            "; the ledger does not state it: take it away; only where a ledger that is lost "
            "stated it, state it again (turnstile ledger withdraw KEY --reason TEXT, or turnstile "
            "ledger no-release KEY --reason TEXT)"
        )
    if not _OF_SERIES.fullmatch(path) or path == PUBLIC_KEY:
        return ""
    first = "take it away, and " if is_named_sealed(Path(path)) else ""
    return f"; {first}turnstile ledger republish makes all series anew"


def _way_back(path: str, first: str = "") -> str:
    """Say how a file comes back: from the ledger, where that makes it again, else from a backup."""
    if _BESIDE.fullmatch(path):
        return f"{first}turnstile ledger republish makes it again"
    if _LOG_KEY.fullmatch(path):
        again = f"{first}turnstile ledger republish writes it again"
        return f"{again}, if the log's key lies beside the signing key; else restore it"
    return f"restore it from a backup of the zone{_anew(path)}"


def _finding(path: Path, problem: str) -> Finding:
    return Finding("public zone", None, f"{path} {problem}")


def _signed_length(public: Path, trusted: tuple[str, ...]) -> int | None:
    """Return the ledger's length that a valid signature states; None where there is none."""
    try:
        signed = json.loads((public / SIGNATURE).read_bytes())
        payload = base64.b64decode(signed["payload"], validate=True)
        signature = base64.b64decode(signed["signatures"][0]["sig"], validate=True)
        said = json.loads(payload)
        length = int(said["ledger_entries"])
        is_own = said["sha256"] == sha256_of(public / INDEX)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    is_signed = any(is_payload_signed_by(line, KIND, payload, signature) for line in trusted)
    return length if is_own and is_signed else None


def _listed(public: Path) -> Mapping[str, str]:
    """Read the list, whose signature was checked."""
    lines = (public / INDEX).read_text(encoding="utf-8").splitlines()
    return {path: digest for digest, _, path in (line.partition("  ") for line in lines)}


def _here(public: Path) -> dict[str, str]:
    """Return the digest of every file of the zone, of packages that of their manifests.

    A link has none: it may lead out of the zone, and nothing here is one but `latest`.
    """
    digests = {}
    for name, entry in all_below(public, closed=_is_package):
        if entry.is_symlink():
            is_own = _LATEST.fullmatch(name) and _RELEASE.fullmatch(str(Path(entry).readlink()))
            if not is_own:
                digests[name] = ""
        elif _is_package(name) and entry.is_dir():
            for file in listed(entry.path):
                if file.name == MANIFEST and file.is_file(follow_symlinks=False):
                    digests[f"{name}/{MANIFEST}"] = sha256_of(Path(file))
        elif _is_listed(name) and not entry.is_dir():
            digests[name] = sha256_of(Path(entry)) if entry.is_file() else ""
    return digests


def is_in_work(name: str) -> bool:
    """Return whether a file is a lock, or a draft that a process which was killed may leave."""
    return _IN_WORK.fullmatch(name) is not None


def _is_listed(name: str) -> bool:
    """Return whether a file has to stand in the list."""
    if name.startswith(f"{LOG}/"):
        return _LOG_KEY.fullmatch(name) is not None
    return name not in _OWN and not is_in_work(name)


def _is_package(name: str) -> bool:
    """Return whether a folder is a package, whose manifest lists what is in it."""
    return package_of(name) == name
