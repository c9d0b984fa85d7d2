"""Checks a published package with Python alone: `python3 verify_package.py DIR|URL [...]`.

Digests of every file, the signed statement (with `--key FILE|URL|LINE`, else the `ledger.pub` that
lies beside the packages), the tables against their descriptor, the card against the plan, tables
that must add up, intervals that must hold their number; and over several packages of one family
(`--series`), that no card states less than what these releases cost together. Exit 4 and one line a
difference. Python 3.9 or later, nothing to install.
"""

from __future__ import annotations

import argparse
import base64
import csv
import datetime
import hashlib
import json
import sys
import tempfile
import urllib.parse
import urllib.request
from fractions import Fraction
from pathlib import Path
from typing import Any, Callable, Iterator

MANIFEST, SUMS, STATEMENT = "manifest.json", "SHA256SUMS", "statement.intoto.json"
PAYLOAD = "application/vnd.in-toto+json"
DIFFERS = 4
PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, PRIME - 2, PRIME) % PRIME
WEB = ("http://", "https://")
KEYS = ("service_date", "mode")
UP = {"rho": 10**9, "epsilon": 10**6}
Json = Any
Point = tuple[int, int, int, int]  # x, y, z, t of RFC 8032
Counts = dict[tuple[str, ...], int]


def findings(folder: Path, key: str | None = None) -> list[str]:
    """Return every difference of a package; empty if there is none."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        listed = {one["path"]: one["sha256"] for one in manifest["files"]}
    except FileNotFoundError:
        return [f"{MANIFEST} is missing"]
    except (ValueError, KeyError, TypeError):
        return [f"{MANIFEST} cannot be read"]
    found = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / MANIFEST
    }
    problems = [f"{name} is missing" for name in sorted(listed.keys() - found.keys())]
    problems += [f"{name} is not listed" for name in sorted(found.keys() - listed.keys())]
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in found.items()}
    both = sorted(found.keys() & listed.keys())
    problems += [f"{name} was altered" for name in both if digests[name] != listed[name]]
    if problems:
        return problems  # what follows would say it again
    try:
        problems += _sums(folder, digests) + _statement(folder, digests, manifest, key)
        problems += [*_tables(folder), *_plan(folder, manifest), *_added_up(folder)]
    except (ValueError, KeyError, TypeError, IndexError, ZeroDivisionError) as error:
        problems.append(f"cannot be read as a package: {type(error).__name__} {error}")
    return problems


def _sums(folder: Path, digests: dict[str, str]) -> list[str]:
    """Check SHA256SUMS, where there is one."""
    if SUMS not in digests:
        return []
    lines = (folder / SUMS).read_text("utf-8").splitlines()
    stated = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    wrong = {name for name in stated if digests.get(name) != stated[name]}
    wrong |= digests.keys() - stated.keys() - {SUMS}
    return [f"{SUMS} and {name} do not agree" for name in sorted(wrong)]


def _statement(folder: Path, digests: dict[str, str], manifest: Json, key: str | None) -> list[str]:
    """Check the signed statement: its signature, its release, and that it names every file."""
    if STATEMENT not in digests:
        return [f"{STATEMENT} is missing, so nothing is signed"] if key else []
    envelope = json.loads((folder / STATEMENT).read_bytes())
    payload = base64.b64decode(envelope["payload"], validate=True)
    problems = []
    if key is not None:
        lines = [line for line in key.splitlines() if line.count("+") > 1]
        keys = [base64.b64decode(line.split("+", 2)[2])[1:] for line in lines]
        framed = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(payload), payload)
        signatures = [base64.b64decode(one["sig"]) for one in envelope["signatures"]]
        if not any(is_signed(k, framed, s) for k in keys for s in signatures):
            problems.append(f"{STATEMENT} is not signed by the given key")
    statement = json.loads(payload)
    subjects = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    wrong = {name for name in subjects if digests.get(name) != subjects[name]}
    wrong |= digests.keys() - subjects.keys() - {SUMS, STATEMENT}
    problems += [f"{STATEMENT} and {name} do not agree" for name in sorted(wrong)]
    if statement["predicate"]["releaseId"] != manifest["key"]:
        problems.append(f"{STATEMENT} is of another release")
    return problems


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """Verify an Ed25519 signature (RFC 8032, section 5.1.7)."""
    base = _point((4 * pow(5, PRIME - 2, PRIME) % PRIME).to_bytes(32, "little"))
    public, commitment = _point(key), _point(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or not (base and public and commitment) or s >= ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + key + message).digest()
    h = int.from_bytes(digest, "little") % ORDER
    left, right = _times(s, base), _add(commitment, _times(h, public))
    return all((left[n] * right[2] - right[n] * left[2]) % PRIME == 0 for n in (0, 1))


def _point(encoded: bytes) -> Point | None:
    """Decode a point; None if it is none."""
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if len(encoded) != 32 or y >= PRIME:
        return None
    x2 = (y * y - 1) * pow(CURVE * y * y + 1, PRIME - 2, PRIME) % PRIME
    x = pow(x2, (PRIME + 3) // 8, PRIME)
    if (x * x - x2) % PRIME:
        x = x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    if (x * x - x2) % PRIME or (x == 0 and sign):
        return None
    x = PRIME - x if x & 1 != sign else x
    return (x, y, 1, x * y % PRIME)


def _add(p: Point, q: Point) -> Point:
    """Add two points (RFC 8032, section 5.1.4)."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % PRIME, (p[1] + p[0]) * (q[1] + q[0]) % PRIME
    c, d = 2 * p[3] * q[3] * CURVE % PRIME, 2 * p[2] * q[2] % PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME)


def _times(number: int, point: Point) -> Point:
    """Multiply a point."""
    total: Point = (0, 1, 1, 0)
    while number:
        if number & 1:
            total = _add(total, point)
        point, number = _add(point, point), number >> 1
    return total


READERS: dict[str, Callable[[str], object]] = {
    "integer": int,
    "number": float,
    "date": datetime.date.fromisoformat,
    "boolean": {"true": True, "false": False}.__getitem__,
    "string": str,
}


def _tables(folder: Path) -> Iterator[str]:
    """Check every CSV table against the schema in its descriptor, and its intervals."""
    for resource in json.loads((folder / "datapackage.json").read_bytes())["resources"]:
        if resource["format"] != "csv" or "schema" not in resource:
            continue
        path, fields = resource["path"], resource["schema"]["fields"]
        columns = _columns(folder / path)
        if list(columns) != [field["name"] for field in fields]:
            yield f"{path} has other columns than its schema"
            continue
        for field in fields:
            read = READERS[field["type"]]
            try:
                for value in set(columns[field["name"]]) - {""}:
                    read(value)
            except (ValueError, KeyError):
                yield f"{path}: {field['name']} holds what is no {field['type']}"
        if "estimate" in columns and "low_95" in columns and not _holds(columns):
            yield f"{path}: an interval does not hold its estimate"


def _holds(columns: dict[str, list[str]]) -> bool:
    """Return whether each interval holds its estimate."""
    rows = zip(columns["low_95"], columns["estimate"], columns["high_95"])
    return all(float(a) <= float(b) <= float(c) for a, b, c in rows if a and b and c)


def _columns(path: Path) -> dict[str, list[str]]:
    """Read a CSV file by columns."""
    with path.open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"{path.name} has a row of another length")
    return {name: [row[n] for row in rows] for n, name in enumerate(header)}


def _added_up(folder: Path) -> Iterator[str]:
    """Check that presented counts of trips add up to the coarser tables of the same tap."""
    events = _events(folder)
    if any(event["threshold"] is not None for event in events):
        return  # what was left out is in no sum
    own = {f"{event['table']}.csv" for event in events if event.get("own_records")}
    tables: dict[str, tuple[tuple[str, ...], Counts]] = {}
    for path in sorted((folder / "tables").glob("*.csv")):
        if path.name in own:
            continue  # it counts records of a bound of its own
        columns = _columns(path)
        if "count" in columns and "standard_deviation" in columns:
            axes = tuple(n for n in columns if n in KEYS or n.startswith("tap_"))
            labels = zip(*(columns[axis] for axis in axes))
            tables[path.name] = (axes, dict(zip(labels, map(int, columns["count"]))))
    for name, (axes, coarse) in tables.items():
        for other, (finer, fine) in tables.items():
            if set(axes) < set(finer):
                kept = [finer.index(axis) for axis in axes]
                total: Counts = {}
                for label, count in fine.items():
                    short = tuple(label[n] for n in kept)
                    total[short] = total.get(short, 0) + count
                if total.keys() == coarse.keys() and total != coarse:  # hours are no quarters
                    yield f"tables/{name} is not the sum of tables/{other}"


def _events(folder: Path) -> Json:
    """Return the draws of the plan."""
    return json.loads((folder / "plan.json").read_bytes())["events"]


def _plan(folder: Path, manifest: Json) -> Iterator[str]:
    """Check card and plan: digests, release, and the loss of every unit, recomputed exactly."""
    plan = json.loads((folder / "plan.json").read_bytes())
    card = json.loads((folder / "release_card.json").read_bytes())
    if not (card["release"] == manifest["key"] and card["plan_sha256"] == plan["plan_digest"]):
        yield "release_card.json is of another release or plan"
    if card["sealed_sha256"] != manifest["sealed_sha256"]:
        yield "release_card.json and manifest.json name other sealed bytes"
    promised = {"programme": plan["programme_digest"], "domain": plan["domain_digest"]}
    promised |= {name: plan[name] for name in ("week", "revision", "events")}
    text = json.dumps(promised, sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(text.encode()).hexdigest() != plan["plan_digest"]:
        yield "plan.json is not what its digest says"
    scales = {(one["table"], one["statistic"]): one["scale"] for one in card["draws"]}
    if any(scales.get((e["table"], e["statistic"])) != e["scale"] for e in plan["events"]):
        yield "release_card.json states other noise than plan.json"
    for unit, amounts in recomputed(plan["events"]).items():
        for name, amount in amounts.items():
            stated = card["guarantee"]["units"][unit][name]
            own = None if amount is None else Fraction(-(-amount * UP[name] // 1), UP[name])
            if own != (None if stated is None else Fraction(stated)):
                yield f"release_card.json states {name} {stated} for a {unit}, not the plan's"


def recomputed(events: Json) -> dict[str, dict[str, Fraction | None]]:
    """Return the exact loss of every unit: the largest over what one unit can touch.

    Draws of one joint vector, with equal noise and sensitivities, are charged once for a scope.
    """
    charged: set[tuple[str, str, str]] = set()
    totals: dict[str, dict[str, dict[str, list[Fraction | None]]]] = {}
    for event in events:
        scale, is_gaussian = Fraction(event["scale"]), event["noise"] == "discrete_gaussian"
        names = ("joint", "noise", "scale", "sensitivities")
        vector = json.dumps([event[name] for name in names]) if event.get("joint") else ""
        for unit, moved in event["sensitivities"]:
            epsilon = None if moved is None or is_gaussian else Fraction(moved[1]) / scale
            rho = None if epsilon is None else epsilon**2 / 2
            if is_gaussian and moved is not None:
                rho = Fraction(moved[2]) / (2 * scale**2)
            for scope in {_scope(unit, block) for block in event["blocks"]}:
                if vector and (unit, scope, vector) in charged:
                    continue
                charged.add((unit, scope, vector))
                own = totals.setdefault(unit, {}).setdefault(scope, {"epsilon": [], "rho": []})
                own["epsilon"].append(epsilon)
                own["rho"].append(rho)
    return {
        unit: {name: _largest([one[name] for one in scopes.values()]) for name in UP}
        for unit, scopes in totals.items()
    }


def _largest(scopes: list[list[Fraction | None]]) -> Fraction | None:
    """Return the largest sum; None, infinite, if any amount is."""
    sums = [sum(a for a in scope if a is not None) for scope in scopes if None not in scope]
    return Fraction(max(sums)) if len(sums) == len(scopes) else None


def _scope(unit: str, block: list[str]) -> str:
    """Return the piece of time (mode, batch) that one unit touches."""
    if unit.endswith("_day"):
        return block[0]
    if unit.endswith("_week"):
        return "-".join(map(str, datetime.date.fromisoformat(block[0]).isocalendar()[:2]))
    return "/".join(block) if unit == "trip" else "ever"


def series_findings(folders: list[Path]) -> list[str]:
    """Check that the cards of a family state at least what all these releases cost together."""
    spent: dict[tuple[str, str], Fraction] = {}
    stated: dict[tuple[str, str], Fraction] = {}
    for folder in folders:
        for line in json.loads((folder / "release_card.json").read_bytes())["cumulative"]:
            if line["scope"] == "ever" and line["rho_after"] is not None:
                name = (line["family"], line["unit"])
                own = recomputed(_events(folder))[line["unit"]]["rho"]
                spent[name] = spent.get(name, Fraction(0)) + (own or 0)
                stated[name] = max(stated.get(name, Fraction(0)), Fraction(line["rho_after"]))
    return [
        f"{family}: together a {unit} loses rho {float(cost):.9f}, above what any card states"
        for (family, unit), cost in spent.items()
        if stated[family, unit] < cost
    ]


def read(address: str) -> bytes:
    """Read a file or a web address."""
    if not address.startswith(WEB):
        return Path(address).read_bytes()
    with urllib.request.urlopen(address, timeout=60) as answer:
        return bytes(answer.read())


def fetched(address: str, folder: Path) -> Path:
    """Copy a package from a web address, by the names in its manifest."""
    names, base = [MANIFEST], f"{address.rstrip('/')}/"
    while names:
        path = folder / (name := names.pop())
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{MANIFEST} names {name}, which lies outside of the package")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(read(urllib.parse.urljoin(base, urllib.parse.quote(name))))
        if name == MANIFEST:
            names += [one["path"] for one in json.loads(path.read_bytes())["files"]]
    return folder


def key_beside(address: str) -> str | None:
    """Return the public key that lies beside the programmes' folders, if there is one."""
    try:
        if address.startswith(WEB):
            return read(
                urllib.parse.urljoin(f"{address.rstrip('/')}/", "../../../ledger.pub")
            ).decode()
        return (Path(address).resolve().parents[2] / "ledger.pub").read_text("utf-8")
    except (OSError, IndexError, ValueError):
        return None


def main(arguments: list[str] | None = None) -> int:
    """Check packages, and print what differs."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("packages", nargs="+", metavar="DIR|URL")
    parser.add_argument("--key", help="the ledger's public key: a file, an address or the line")
    parser.add_argument("--series", action="store_true", help="add up what all packages cost")
    args = parser.parse_args(arguments)
    given = None if args.key is None else args.key if "+" in args.key else read(args.key).decode()
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        folders = []
        for number, address in enumerate(args.packages):
            is_checked, into = False, Path(scratch) / str(number)
            try:
                folder = fetched(address, into) if address.startswith(WEB) else Path(address)
                folders.append(folder)
                key = given or (key_beside(address) if (folder / STATEMENT).is_file() else None)
                own, is_checked = findings(folder, key), key is not None
            except (OSError, ValueError, KeyError, TypeError) as error:
                own = [f"cannot be fetched: {error}"]
            problems += [f"{address}: {problem}" for problem in own]
            signed = "signed" if is_checked else "signature not checked: no key or no statement"
            print(f"{address}: {'differs' if own else f'as published; {signed}'}")
        if args.series and not problems:
            problems += series_findings(folders)
    for problem in problems:
        print(problem, file=sys.stderr)
    return DIFFERS if problems else 0


if __name__ == "__main__":
    sys.exit(main())
