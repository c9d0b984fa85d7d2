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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from turnstile.durable_files import exclusively, replace_durably, sha256_of
from turnstile.ledger.custody.notes import LATEST_NOTE
from turnstile.ledger.custody.signed_note import is_payload_signed_by
from turnstile.ledger.records import Finding, revision_of

INDEX, SIGNATURE = "zone-index.txt", "zone-index.sig.json"
KIND = "application/vnd.turnstile.public-zone+json"
_OWN = {INDEX, SIGNATURE, LATEST_NOTE}
LOG = "ledger-log"
"""Folder of the transparency log, which is compared with the entries themselves."""
_PARTS_OF_PACKAGE = 4  # opal/2016-W30/r0/manifest.json
_OF_SERIES = re.compile(
    r"index\.html|ledger\.pub|[^/]+/((index|explore)\.html|feed\.(atom|json)|(series|explore)/.+)"
)
Sign = Callable[[str, bytes], tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class ZoneState:
    """What the ledger lets be otherwise than the list says.

    Args:
        trusted: public lines of which one has to have signed.
        is_wanted: whether a list was made before.
        may_be_gone: release keys whose packages were withdrawn or declared lost.
        in_change: programmes of which something was published a moment ago, by the list's length.
    """

    trusted: tuple[str, ...]
    is_wanted: bool
    may_be_gone: frozenset[str]
    in_change: Callable[[int], frozenset[str]]


def write_index(public: Path, length: int, stated: frozenset[str], sign: Sign) -> None:
    """List and sign what is in the zone now; what is listed already is not written again.

    A file that neither the ledger states nor a series makes is not listed: planted today, it would
    be signed tomorrow.

    Args:
        public: zone.
        length: of the ledger, before the zone was looked at.
        stated: manifests, notes and records of releases, by the ledger.
        sign: returns the public line and the signature of a payload of a kind.
    """
    with exclusively(public / ".zone-index.lock"):
        own = {n: d for n, d in _here(public).items() if n in stated or _OF_SERIES.fullmatch(n)}
        text = "".join(f"{digest}  {path}\n" for path, digest in sorted(own.items()))
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


def zone_findings(public: Path, state: ZoneState) -> Iterator[Finding]:
    """Yield every file of the public zone that is foreign, missing or altered by the list."""
    if not (public / INDEX).exists() and not (public / SIGNATURE).exists():
        if state.is_wanted:
            yield _finding(public / INDEX, "is gone; publish a week again, which makes it")
        return
    length = _signed_length(public, state.trusted)
    if length is None:
        problem = "is not what the ledger's key signed; restore it, or publish a week again"
        yield _finding(public / INDEX, problem)
        return
    listed, here, changing = _listed(public), _here(public), state.in_change(length)
    for path in sorted(listed.keys() | here.keys()):
        if path.partition("/")[0] in changing or listed.get(path) == here.get(path):
            continue
        if path not in listed:
            yield _finding(public / path, "is a file that nobody published; find out what it holds")
        elif path in here:
            yield _finding(public / path, "was altered since it was published; restore it")
        elif str(PurePosixPath(path).parent) not in state.may_be_gone:
            yield _finding(public / path, "is missing since it was published; restore it")


def _is_signed_already(public: Path, text: str, line: str) -> bool:
    """Return whether this very list stands there, under the present key."""
    try:
        is_same = (public / INDEX).read_text(encoding="utf-8") == text
    except (OSError, ValueError):
        return False
    return is_same and _signed_length(public, (line,)) is not None


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
    """Return the digest of every file of the zone, of packages that of their manifests."""
    found = {}
    for path in sorted(public.rglob("*")):
        name = path.relative_to(public).as_posix()
        if _is_listed(name) and path.is_file() and not path.is_symlink():
            found[name] = sha256_of(path)
    return found


def _is_listed(name: str) -> bool:
    """Return whether a file stands in the list; hidden ones are drafts and locks."""
    parts = name.split("/")
    if name in _OWN or parts[0] == LOG or any(part.startswith(".") for part in parts):
        return False
    is_of_package = len(parts) >= _PARTS_OF_PACKAGE and revision_of(parts[2]) is not None
    return not is_of_package or parts[3:] == ["manifest.json"]
