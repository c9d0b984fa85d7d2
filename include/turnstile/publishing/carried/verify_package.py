"""Checks a published package with Python alone: `python3 tools/verify_package.py DIR|URL [...]`.

Digests, the signed statement (by `--key` or the `ledger.pub` beside the packages), schemas, card
against plan, losses (by `verify_losses.py`), sums, intervals; that seal and publication are in the
ledger's log, which grew from a checkpoint that you kept (`--since`); `--series`: that no card
states less than all given ones cost. Exit 4. `verify_losses.py` and `sums.py` lie beside it.
"""

from __future__ import annotations

import argparse
import base64
import csv
import datetime
import gzip
import hashlib
import io
import json
import re
import runpy
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from functools import cache, partial
from itertools import permutations
from pathlib import Path
from typing import Any, Iterator
from urllib import parse, request

MANIFEST, SUMS, STATEMENT = "manifest.json", "SHA256SUMS", "statement.intoto.json"
PLAN, CARD, PAYLOAD = "plan.json", "release_card.json", b"application/vnd.in-toto+json"
SEALED_PROOF, ZONE = "sealed.tlog-proof", "zone-index"
ALONE = "; alone: without a zone-index.txt around it nothing else was checked"
SUCH_AS = ", such as public/opal/2016-W30/r0"
ZONE_KIND = b"application/vnd.turnstile.public-zone+json"
UNLISTED = re.compile(  # signed itself, or of whoever writes just now
    rf"{ZONE}\.(txt|sig\.json)|\.store/(adopting|zone\.lock|copies\.json|arriving-[0-9a-f]{{8}})"
    r"|ledger-checkpoint\.note"
    r"|(.*/)?\.([^/]+\.([0-9a-f]{16}|lock)|(space|latest)-[0-9a-f]{8,16}|r\d+-[0-9a-f]{8}/.+)"
)
WRITES = "or somebody publishes at this moment: check it again in a minute"
WEB = ("http://", "https://", "file://")
PRIME, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, -1, PRIME) % PRIME
BASE_X = 0x216936D3CD6E53FEC0A4E231FDD6DC5C692CC7609525A7B2C9562D608F25D51A
BASE = (BASE_X, 4 * pow(5, -1, PRIME) % PRIME, 1)
MOVED, GRADED = ("l0", "l1", "l2_squared"), ("usable", "value", "low_90", "high_90")
ROUNDED = 0.01  # of what is compared, which is published rounded
READERS: dict[str, Any] = {"integer": int, "number": float, "string": str}
READERS |= {"date": datetime.date.fromisoformat, "datetime": datetime.datetime.fromisoformat}
READERS["boolean"] = {"true": True, "false": False}.__getitem__


def findings(folder: Path, key: str | None = None) -> list[str]:
    """Return every difference of a package; empty if there is none."""
    problems: list[str] = []
    try:
        there = sorted(program("sums.py")["files_in"](folder))
        # Whoever opens a pipe waits for ever; a link may lead to one, or to nothing.
        if odd := [name for name in there if not (folder / name).is_file()]:
            return [f"{name} is no ordinary file, so nothing was opened" for name in odd]
        manifest = json.loads((folder / MANIFEST).read_bytes())
        listed = {file["path"]: file["sha256"] for file in manifest["files"]}
        there.remove(MANIFEST)
        digests = {n: hashlib.sha256((folder / n).read_bytes()).hexdigest() for n in there}
        problems += [f"{name} is missing" for name in sorted(listed.keys() - digests.keys())]
        problems += [f"{name} is not listed" for name in sorted(digests.keys() - listed.keys())]
        altered = (n for n, digest in digests.items() if listed.get(n, digest) != digest)
        problems += [f"{name} was altered" for name in altered]
        if not problems:  # what follows would say it again
            plan, card = (json.loads((folder / name).read_bytes()) for name in (PLAN, CARD))
            problems += _statements(folder, digests, manifest, key)
            columns = cache(_columns)
            problems += [*_tables(folder, columns), *_plan(plan, card, manifest)]
            problems += [*_losses([folder]), *_added_up(card, folder, plan, columns)]
    except program()["UNREADABLE"] as error:
        problems.append(f"cannot be read as a package: {type(error).__name__} {error}")
    return problems


def _statements(folder: Path, digests: Any, manifest: Any, key: str | None) -> Iterator[str]:
    """Check SHA256SUMS and the signed statement: signature, release, and that all is named."""
    stated = {}  # digests by file, by the file that states them
    if SUMS in digests:
        stated[SUMS] = digests_of((folder / SUMS).read_text("utf-8"))
    if STATEMENT in digests:
        envelope = json.loads((folder / STATEMENT).read_bytes())
        payload = base64.b64decode(envelope["payload"], validate=True)
        statement = json.loads(payload)
        stated[STATEMENT] = {
            subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]
        }
        if key is not None and not is_enveloped(envelope, PAYLOAD, key):
            yield f"{STATEMENT} is not signed by the given key"
        if statement["predicate"]["releaseId"] != manifest["key"]:
            yield f"{STATEMENT} is of another release"
    elif key is not None:
        yield f"{STATEMENT} is missing, so nothing is signed"
    for file, listed in stated.items():
        wrong = digests.keys() - listed.keys() - {SUMS, file}
        wrong |= {name for name in listed if digests.get(name) != listed[name]}
        yield from (f"{file} and {name} do not agree" for name in sorted(wrong))


def is_enveloped(envelope: Any, kind: bytes, key: str) -> bool:
    """Verify a DSSE envelope by the lines of a `ledger.pub`."""
    payload = base64.b64decode(envelope["payload"], validate=True)
    framed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    signatures = [base64.b64decode(signature["sig"]) for signature in envelope["signatures"]]
    return any(is_signed(k, framed, s) for k in _raw_keys(key) for s in signatures)


def is_noted(note: str, key: str) -> bool:
    """Verify a signed note (C2SP) by the lines of a `ledger.pub` or `log.pub`."""
    text, _, lines = note.partition("\n\n")
    signatures = [base64.b64decode(line.split(" ")[2])[4:] for line in lines.splitlines()]
    return any(is_signed(k, f"{text}\n".encode(), s) for k in _raw_keys(key) for s in signatures)


def _raw_keys(key: str) -> list[bytes]:
    """Return the public keys of verifier lines."""
    lines = [line for line in key.splitlines() if line.count("+") > 1]
    return [base64.b64decode(line.split("+", 2)[2])[1:] for line in lines]


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """Verify an Ed25519 signature (RFC 8032, sections 5.1.3 and 5.1.7)."""
    y, s = int.from_bytes(key, "little"), int.from_bytes(signature[32:], "little")
    sign, y = y >> 255, y & (2**255 - 1)
    x2 = (y * y - 1) * pow(CURVE * y * y + 1, -1, PRIME) % PRIME
    root = pow(x2, (PRIME + 3) // 8, PRIME)
    both = (root, root * pow(2, (PRIME - 1) // 4, PRIME) % PRIME)
    roots = [x for x in both if (x * x - x2) % PRIME == 0 and x >= sign]
    if (len(key), len(signature)) != (32, 64) or y >= PRIME or s >= ORDER or not roots:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    point, minus_key = (0, 1, 1), (roots[0] if roots[0] & 1 != sign else PRIME - roots[0], y, 1)
    for bit in reversed(range(ORDER.bit_length())):  # s times the base minus h times the key
        point = _add(point, point)
        point = _add(point, BASE) if s >> bit & 1 else point
        point = _add(point, minus_key) if h >> bit & 1 else point
    x, y = (part * pow(point[2], -1, PRIME) % PRIME for part in point[:2])
    return (y | (x & 1) << 255).to_bytes(32, "little") == signature[:32]


def _add(p: tuple[int, int, int], q: tuple[int, int, int]) -> tuple[int, int, int]:
    """Add two points (RFC 8032, section 5.1) whose x and y are over the third number."""
    x, y, z = p[0] * q[0] % PRIME, p[1] * q[1] % PRIME, p[2] * q[2] % PRIME
    less, more = z * z - CURVE * x * y, z * z + CURVE * x * y
    crossed = (p[0] + p[1]) * (q[0] + q[1]) - x - y
    return z * less * crossed % PRIME, z * more * (x + y) % PRIME, less * more % PRIME


def _tables(folder: Path, columns_of: Any) -> Iterator[str]:
    """Check every CSV table against the schema in its descriptor, and its intervals."""
    for resource in json.loads((folder / "datapackage.json").read_bytes())["resources"]:
        if resource["format"] != "csv" or "schema" not in resource:
            continue
        path, fields = resource["path"], resource["schema"]["fields"]
        if not (folder / path).resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"datapackage.json names {path}, which lies outside of the package")
        columns = columns_of(folder / path)
        if list(columns) != [field["name"] for field in fields]:
            raise ValueError(f"{path} has other columns than its schema")
        for field in fields:
            try:
                for value in set(columns[field["name"]]) - {""}:
                    READERS[field["type"]](value)
            except (ValueError, KeyError):
                yield f"{path}: {field['name']} holds what is no {field['type']}"
        number = "value" if "value" in columns else "estimate"  # of packages of version 1
        rows = list(zip(*(columns.get(n, []) for n in ("low_95", number, "high_95"))))
        if not all(float(a) <= float(b) <= float(c) for a, b, c in rows if a and b and c):
            yield f"{path}: an interval does not hold its {number}"
        if "usable" in columns and not all(map(_is_said, *map(columns.get, GRADED))):
            yield f"{path}: usable is not what an interval says"


def _is_said(said: str, value: str, low: str, high: str) -> bool:
    """Whether `usable` follows from a number and its 90 % interval."""
    if not value or not high:
        return said in ({"poor", "not told from 0"} if value else {"gap", "withheld"})
    reach, size = max(float(high) - float(value), float(value) - float(low)), abs(float(value))
    edge = ROUNDED * max(size, 1)  # both are rounded
    named = {
        "good" if reach + step <= size / 5 else "fair" if reach + step <= size / 2 else "poor"
        for step in (-edge, 0, edge)
    }
    if float(low) <= 0 <= float(high):
        named = {"not told from 0", *(named if len(named) > 1 else ())}
    return said in named


def _columns(path: Path) -> dict[str, list[str]]:
    """Read a CSV file by columns."""
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    header, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"{path.name} has a row of another length")
    return {name: [row[n] for row in rows] for n, name in enumerate(header)}


def _added_up(card: Any, folder: Path, plan: Any, columns_of: Any) -> Iterator[str]:
    """Check that numbers of trips add up to the coarser tables of the same end of the trip."""
    if any(event["threshold"] is not None for event in plan["events"]):
        return  # what was left out is in no sum
    estimates = card.get("estimates") or {}
    regions = estimates.get("promise", {}).get("regions", {})  # by location, of sums of regions
    tables: Any = {}
    known = estimates.get("correlations", {})
    pairs_of = ((t, source) for t in card.get("data", ()) for source in t["sources"])
    for table, source in pairs_of:  # packages of version 1 carry a program that adds theirs up
        if table["unit"] != "trips" or source["estimates"] not in known:
            continue
        columns = columns_of(csv_of(folder, name := f"data/{table['name']}"))
        axes = list(columns)[: list(columns).index("value")]
        if regions and "location" in axes:
            region_of_row = [regions.get(location, "UNKNOWN") for location in columns["location"]]
            axes, columns = [*axes, "region"], {**columns, "region": region_of_row}
        tenths = [round(10 * float(n or 0)) for n in columns["value"]]  # published in tenths
        tables[name] = axes, columns, "a tap" if "tap" in source["where"] else name, tenths
    pairs = permutations(tables.items(), 2)
    for (name, (axes, coarse, end, counted)), (other, (finer, fine, other_end, parts)) in pairs:
        if set(axes) < set(finer) and end == other_end:
            counts, total = Counter[Any](), Counter[Any]()
            for added, columns, tenths in ((counts, coarse, counted), (total, fine, parts)):
                for cell, count in zip(zip(*(columns[n] for n in axes)), tenths):
                    added[cell] += count
            if total.keys() == counts.keys() and total != counts:  # hours are no quarters
                yield f"{name} is not the sum of {other}"


def csv_of(folder: Path, name: str) -> Path:
    """Return the CSV file of a table, which is packed where it is large."""
    plain = folder / f"{name}.csv"
    return plain if plain.is_file() else folder / f"{name}.csv.gz"


def _plan(plan: Any, card: Any, manifest: Any) -> Iterator[str]:
    """Check card and plan: digests, release, draws."""
    identity = (manifest["key"], manifest["sealed_sha256"], plan["plan_digest"])
    if (card["release"], card["sealed_sha256"], card["plan_sha256"]) != identity:
        yield "release_card.json is of another release, sealed bytes or plan"
    promised = {"programme": plan["programme_digest"], "domain": plan["domain_digest"]}
    promised |= {name: plan[name] for name in ("week", "revision", "events")}
    text = json.dumps(promised, sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(text.encode()).hexdigest() != plan["plan_digest"]:
        yield "plan.json is not what its digest says"
    keys, events = ("table", "statistic", "noise", "scale", "threshold"), plan["events"]
    moved = [{u: m and dict(zip(MOVED, m)) for u, m in event["sensitivities"]} for event in events]
    drawn = [(*map(draw.get, keys), draw["sensitivity"]) for draw in card["draws"]]
    if any((*map(event.get, keys), of) not in drawn for event, of in zip(events, moved)):
        yield "release_card.json states other noise or sensitivities than plan.json"


def _losses(folders: list[Path]) -> list[str]:
    """Check what cards state of losses, each by its terms and all together; see `is_old`."""
    releases, problems = dict[str, Any](), list[str]()
    for folder in (folder for folder in folders if not is_old(folder)):
        problems += program()["held"](releases, json.loads((folder / CARD).read_bytes()))
    problems += program()["differences"](releases, None)
    return [f"{CARD} of {problem}" for problem in problems]


def is_old(folder: Path) -> bool:
    """Whether a package is of version 1, whose card may be older than the terms of cards."""
    return not (folder / "data").exists()


@cache
def program(name: str = "verify_losses.py") -> dict[str, Any]:
    """Return what another program defines, the accountant, which packages carry beside this."""
    path = Path(__file__).with_name(name)
    if not path.is_file():
        sys.stderr.write(f"{name} is missing: it has to lie beside this program, as in a package\n")
        raise SystemExit(2)
    return runpy.run_path(str(path))


def zone_findings(address: str, folder: Path, key: str) -> Iterator[str]:
    """Compare package and zone with the signed list of all that is public.

    Of a web address only the package and a withdrawal are looked at: nothing lists what is there.
    """
    listed, envelope = listed_in(address), json.loads(beside(address, f"{ZONE}.sig.json"))
    said = json.loads(base64.b64decode(envelope["payload"], validate=True))
    zone_digest = hashlib.sha256(read(address, f"../../../{ZONE}.txt")).hexdigest()
    if said["sha256"] != zone_digest or not is_enveloped(envelope, ZONE_KIND, key):
        yield f"{ZONE}.txt is not signed by the given key"
    manifest = (folder / MANIFEST).read_bytes()
    release = json.loads(manifest)["key"]
    if listed.get(f"{release}/{MANIFEST}") != hashlib.sha256(manifest).hexdigest():
        yield f"{ZONE}.txt, which lists all that is public, does not hold this package"
    logs = [name for name in listed if name.endswith("/log.pub")]  # a later one may count anew
    newest = beside(address, logs[0].replace("log.pub", "checkpoint")) if len(logs) == 1 else "\n0"
    if said["ledger_entries"] < int(newest.split("\n")[1]):
        yield f"{ZONE}.txt is older than the log: a zone of before was put back, {WRITES}"
    names, links = {"/withdrawn-".join(release.rsplit("/", 1)) + ".json"}, set[str]()
    if not address.startswith(WEB):
        there = program("sums.py")["files_in"](Path(address).resolve().parents[2])
        names |= listed.keys() | there.keys()
        links = {name for name, is_odd in there.items() if is_odd}
    is_of_log, at = program("sums.py")["is_of_log"], partial(beside, address)
    for name in sorted(names):
        file_digest = None
        with suppress(OSError):
            file_digest = hashlib.sha256(read(address, f"../../../{parse.quote(name)}")).hexdigest()
        is_of_package = f"{'/'.join(name.split('/')[:3])}/{MANIFEST}" in listed
        is_free = name not in listed and (
            is_of_package or UNLISTED.fullmatch(name) or is_of_log(name, listed, at, opened)
        )
        if name in links or (file_digest != listed.get(name) and not is_free):
            yield f"{name}, in the zone of the package, is not what {ZONE}.txt lists"


def listed_in(address: str) -> dict[str, str]:
    """Return the digests of the list of all that is public."""
    return digests_of(beside(address, f"{ZONE}.txt"))


def digests_of(sums: str) -> dict[str, str]:
    """Return digests by path, of lines as `sha256sum` writes them."""
    return {path: digest for digest, _, path in (x.partition("  ") for x in sums.splitlines())}


def climbed(at: int, last: int, path: Any, node: bytes, *, is_old: bool) -> Any:
    """Hash upwards from a node, as it was and is; None if the path has another length."""
    old = new = node
    for other in path:
        if not last:
            return None
        if at & 1 or at == last:
            old, new = _node(other, old), _node(other, new)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            old, new = old if is_old else _node(old, other), _node(new, other)
        at, last = at >> 1, last >> 1
    return None if last else (old, new)


def _node(left: bytes, right: bytes) -> bytes:
    if len(left) != 32 or len(right) != 32:
        raise ValueError("a hash has 32 bytes")
    return hashlib.sha256(b"\x01" + left + right).digest()


def is_grown(size: int, root: bytes, to: int, new: bytes, path: list[bytes]) -> bool:
    """Check that a tree begins with an older one (RFC 9162, section 2.1.4.2)."""
    if not 0 < size < to:
        return size == to > 0 and root == new and not path
    first, *rest = path if size & (size - 1) else [root, *path]
    at, last = size - 1, to - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    return bool(climbed(at, last, rest, first, is_old=True) == (root, new))


def opened(note: str, key: str) -> tuple[int, bytes]:
    """Return size and root of a checkpoint that a log signed (C2SP tlog-checkpoint)."""
    origin, size, root = note.split("\n")[:3]
    if origin != key.partition("+")[0] or not is_noted(note, key):
        raise ValueError("a checkpoint is not signed by the log's key")
    return int(size), base64.b64decode(root, validate=True)


def proven(text: str, key: str) -> tuple[bytes, int, bytes]:
    """Return an entry's hash, and size and root of the log that it is in (C2SP tlog-proof)."""
    head, _, note = text.partition("\n\n")
    _, extra, index, *path = head.split("\n")
    (size, root), at = opened(note, key), int(index.removeprefix("index "))
    data = base64.b64decode(extra.removeprefix("extra "))
    leaf, hashes = hashlib.sha256(b"\x00" + data).digest(), map(base64.b64decode, path)
    ends = climbed(at, size - 1, hashes, leaf, is_old=False)
    if not 0 <= at < size or ends is None or ends[1] != root:
        raise ValueError("an entry is not in the log")
    return data, size, root


def log_findings(
    address: str, folder: Path, ledger_key: str | None, key: str | None, kept: str | None
) -> Iterator[str]:
    """Check that seal and publication are in the log, which grew from a kept checkpoint."""
    content, is_asked = (folder / MANIFEST).read_bytes(), bool(key or kept)
    release = json.loads(content)["key"]
    period, _, revision = release.rpartition("/")
    sealed = (folder / SEALED_PROOF).read_text("utf-8")
    published = beside(address, f"{period}/proof-{revision}.tlog-proof")
    log, other = (  # the id of the key that signed each
        base64.b64decode(proof.rpartition("\n— ")[2].split(" ")[1])[:4].hex()
        for proof in (sealed, published)
    )
    key = key or beside(address, f"ledger-log/{log}/log.pub")
    note, name = beside(address, f"{period}/checkpoint-{revision}.note"), f"checkpoint-{revision}"
    said = note.partition("\n\n")[0].split("\n")
    if said[3].split(" ") != ["release", release, hashlib.sha256(content).hexdigest()]:
        yield f"{name}.note is of another release"
    if ledger_key is not None and not is_noted(note, ledger_key):
        yield f"{name}.note is not signed by the given key"
    points = [proven(sealed, key)[1:], *([opened(kept, key)] if kept else [])]
    begun = f"ledger-log/{other}/log.pub"  # perhaps of a log that was begun since
    data, size, root = proven(published, key if log == other else beside(address, begun))
    if log == other:
        points.append((size, root))
    elif is_asked and begun not in listed_in(address):
        yield f"proof-{revision}.tlog-proof is of a log that the ledger is not known to have begun"
    if data != base64.b64decode(said[2]):
        yield f"proof-{revision}.tlog-proof is of another entry than the note beside it"
    newest = opened(beside(address, f"ledger-log/{log}/checkpoint"), key)
    for point in points:
        at = point
        while at[0] < newest[0]:  # climb to the newest
            step = beside(address, f"ledger-log/{log}/steps/{at[0]}")
            head, _, later_note = step.partition("\n\n")
            later, path = opened(later_note, key), map(base64.b64decode, head.split("\n")[1:])
            if not (at[0] < later[0] and is_grown(*at, *later, list(path))):
                break
            at = later
        if at != newest:
            yield "the log does not grow from a checkpoint of before: its ledger was rewritten"
            return


def beside(address: str, name: str) -> str:
    """Read a file of the zone that a package lies in."""
    return read(address, f"../../../{name}").decode()


def read(address: str, below: str = "") -> bytes:
    """Read a file or a web address, or what lies below a folder: only of files, no pipe there."""
    url = address if address.startswith(WEB) else Path(address).resolve().as_uri()
    url = parse.urljoin(f"{url.rstrip('/')}/", below) if below else url
    if below and url[:5] == "file:" and not Path(parse.unquote(parse.urlsplit(url)[2])).is_file():
        raise FileNotFoundError(f"{below} is no ordinary file")
    with request.urlopen(url, timeout=60) as answer:
        return bytes(answer.read())


def fetched(address: str, folder: Path) -> Path:
    """Return the folder of a package; of a web address a copy, by the names in its manifest."""
    if not address.startswith(WEB):
        return Path(address)
    names = [MANIFEST]
    for name in names:
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{MANIFEST} names {name}, which lies outside of the package")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(read(address, parse.quote(name)))
        if name == MANIFEST:
            names += [file["path"] for file in json.loads(path.read_bytes())["files"]]
    return folder


def is_package(folder: Path) -> bool:
    """Whether a folder holds anything of a package: a zone, a programme and a period do not."""
    return any((folder / name).exists() for name in (MANIFEST, PLAN, CARD, SUMS))


def noted(address: str, folder: Path) -> str:
    """Say what its zone says of a package that is as published: an answer is no other for it."""
    sums = program("sums.py")
    release, names = json.loads((folder / MANIFEST).read_bytes())["key"], set[str]()
    with suppress(OSError, ValueError):
        names |= listed_in(address).keys()
    if not address.startswith(WEB):
        names |= sums["names_beside"](folder, release)
    said = [sums["standing"](release, names)]
    if is_old(folder):
        said.append("its losses are checked by the program that it carries, as of old packages")
    return str(sums["elsewhere"](folder) + "".join(f"; note: {line}" for line in said if line))


def main(arguments: list[str] | None = None) -> int:
    """Check packages, and print what differs."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("packages", nargs="+", metavar="DIR|URL")
    parser.add_argument("--key", help="the ledger's public key: a file, an address or the line")
    parser.add_argument("--log-key", help="the log's public key, log.pub, as --key")
    parser.add_argument("--since", help="a checkpoint of the log that you kept: file or address")
    parser.add_argument("--series", action="store_true", help="no card states less than all cost")
    args = parser.parse_args(arguments)
    for address in args.packages:
        if not (address.startswith(WEB) or is_package(Path(address))):
            parser.error(f"{address} is no package: give the folder of a revision{SUCH_AS}")
    problems, folders = list[str](), list[Path]()
    try:
        given, log_key = (
            option if "+" in (option or "+") else read(option).decode()
            for option in (args.key, args.log_key)
        )
        kept = args.since and read(args.since).decode()
    except (OSError, ValueError):
        parser.error("--key (ledger.pub), --log-key (log.pub) or --since cannot be read")
    with tempfile.TemporaryDirectory() as scratch:
        for number, address in enumerate(args.packages):
            key, around = given, ALONE
            try:
                folder = fetched(address, Path(scratch) / str(number))
                folders.append(folder)
                is_asked = bool(args.since or args.log_key)  # then a package without proof differs
                no_zone = () if is_asked or given else (OSError,)  # a package alone is no zone
                if key is None and (is_asked or (folder / STATEMENT).is_file()):
                    with suppress(*no_zone, ValueError):
                        key = beside(address, "ledger.pub")
                differences = findings(folder, key)
                if not differences and key is not None:
                    with suppress(*no_zone):
                        differences += zone_findings(address, folder, key)
                        around = ""
                if not differences and (is_asked or (folder / SEALED_PROOF).is_file()):
                    with suppress(*no_zone):
                        differences += log_findings(address, folder, key, log_key, kept)
            except program()["UNREADABLE"] as error:
                differences = [f"cannot be fetched: {error}"]
            problems += [f"{address}: {problem}" for problem in differences]
            signed = f"signed{around}" if key else "signature not checked: no key or no statement"
            signed += ", in a log that grew from yours" if kept else ""
            as_published = "" if differences else f"as published; {signed}{noted(address, folder)}"
            print(f"{address}: {as_published or 'differs'}")
        if args.series and not problems:
            problems += _losses(folders)
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return 4 if problems else 0


if __name__ == "__main__":
    sys.exit(program("sums.py")["ended"](main))
