"""Checks a published package with Python alone: `python3 verify_package.py DIR|URL [...]`.

Digests of every file, the signed statement (with `--key FILE|URL|LINE`, else the `ledger.pub`
beside the packages), tables against their descriptor, card against plan, sums, intervals; over
packages of one family (`--series`), that no card states less than all of them cost together. Exit 4
and one line a difference. Python 3.9 or later, nothing to install.
"""

from __future__ import annotations

import argparse
import base64
import csv
import datetime
import hashlib
import json
import math
import sys
import tempfile
import urllib.parse
import urllib.request
from collections import Counter
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any, Callable, Iterator

MANIFEST, SUMS, STATEMENT = "manifest.json", "SHA256SUMS", "statement.intoto.json"
PLAN, CARD = "plan.json", "release_card.json"
PAYLOAD = "application/vnd.in-toto+json"
PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, PRIME - 2, PRIME) % PRIME
WEB, KEY_BESIDE = ("http://", "https://", "file://"), "../../../ledger.pub"
UP = {"rho": 10**9, "epsilon": 10**6}
Json = Any
Digests = dict[str, str]  # by file
Tables = dict[str, tuple[list[str], list[tuple[str, ...]], list[int]]]  # axes, labels, counts
Point = tuple[int, int, int, int]  # x, y, z, t of RFC 8032
Amount = Any  # a fraction, or infinity


def findings(folder: Path, key: str | None = None) -> list[str]:
    """Return every difference of a package; empty if there is none."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        listed = {one["path"]: one["sha256"] for one in manifest["files"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        is_missing = isinstance(error, FileNotFoundError)
        return [f"{MANIFEST} {'is missing' if is_missing else 'cannot be read'}"]
    digests = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / MANIFEST
    }
    problems = [f"{name} is missing" for name in sorted(listed.keys() - digests.keys())]
    problems += [f"{name} is not listed" for name in sorted(digests.keys() - listed.keys())]
    both = sorted(digests.keys() & listed.keys())
    problems += [f"{name} was altered" for name in both if digests[name] != listed[name]]
    if problems:
        return problems  # what follows would say it again
    try:
        plan, card = (json.loads((folder / name).read_bytes()) for name in (PLAN, CARD))
        problems += _statements(folder, digests, manifest, key)
        problems += [*_tables(folder), *_plan(plan, card, manifest), *_added_up(folder, plan)]
    except (ValueError, KeyError, TypeError, IndexError, ZeroDivisionError) as error:
        problems.append(f"cannot be read as a package: {type(error).__name__} {error}")
    return problems


def _differences(file: str, stated: Digests, digests: Digests, unstated: set[str]) -> list[str]:
    """Compare the digests that a file states with those that there are."""
    wrong = {name for name in stated if digests.get(name) != stated[name]}
    wrong |= digests.keys() - stated.keys() - unstated
    return [f"{file} and {name} do not agree" for name in sorted(wrong)]


def _statements(folder: Path, digests: Digests, manifest: Json, key: str | None) -> list[str]:
    """Check SHA256SUMS and the signed statement: signature, release, and that all is named."""
    problems = []
    if SUMS in digests:
        lines = (folder / SUMS).read_text("utf-8").splitlines()
        stated = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
        problems += _differences(SUMS, stated, digests, {SUMS})
    if STATEMENT not in digests:
        return problems + ([f"{STATEMENT} is missing, so nothing is signed"] if key else [])
    envelope = json.loads((folder / STATEMENT).read_bytes())
    payload = base64.b64decode(envelope["payload"], validate=True)
    if key is not None:
        lines = [line for line in key.splitlines() if line.count("+") > 1]
        keys = [base64.b64decode(line.split("+", 2)[2])[1:] for line in lines]
        framed = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(payload), payload)
        signatures = [base64.b64decode(one["sig"]) for one in envelope["signatures"]]
        if not any(is_signed(k, framed, s) for k in keys for s in signatures):
            problems.append(f"{STATEMENT} is not signed by the given key")
    statement = json.loads(payload)
    subjects = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    problems += _differences(STATEMENT, subjects, digests, {SUMS, STATEMENT})
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
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    left, right = _times(s, base), _add(commitment, _times(h, public))
    return all((left[n] * right[2] - right[n] * left[2]) % PRIME == 0 for n in (0, 1))


def _point(encoded: bytes) -> Point | None:
    """Decode a point; None if it is none."""
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    x2 = (y * y - 1) * pow(CURVE * y * y + 1, PRIME - 2, PRIME) % PRIME
    x = pow(x2, (PRIME + 3) // 8, PRIME)
    if (x * x - x2) % PRIME:
        x = x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    if len(encoded) != 32 or y >= PRIME or (x * x - x2) % PRIME or (x == 0 and sign):
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
    """Multiply a point, by doubling and adding."""
    if number == 0:
        return (0, 1, 1, 0)
    doubled = _times(number >> 1, _add(point, point))
    return _add(doubled, point) if number & 1 else doubled


READERS: dict[str, Callable[[str], object]] = {
    "integer": int,
    "number": float,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
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
            try:
                for value in set(columns[field["name"]]) - {""}:
                    READERS[field["type"]](value)
            except (ValueError, KeyError):
                yield f"{path}: {field['name']} holds what is no {field['type']}"
        rows = zip(*(columns.get(name, []) for name in ("low_95", "estimate", "high_95")))
        if not all(float(a) <= float(b) <= float(c) for a, b, c in rows if a and b and c):
            yield f"{path}: an interval does not hold its estimate"


def _columns(path: Path) -> dict[str, list[str]]:
    """Read a CSV file by columns."""
    with path.open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"{path.name} has a row of another length")
    return {name: [row[n] for row in rows] for n, name in enumerate(header)}


def labels_of(names: list[str]) -> list[str]:
    """Return the columns that label a row: those before the days without input."""
    if "gap_days" in names:
        return names[: names.index("gap_days")]
    return [n for n in names if n in ("service_date", "mode") or n.startswith("tap_")]  # of 0.1


def _end(name: str, tables: Tables) -> set[str]:
    """Return which end of a trip, or which category, a table is of; roll-ups are of their table."""
    drawn = name.replace("_daily.csv", ".csv").replace("_hourly.csv", ".csv")
    axes = tables.get(drawn, tables[name])[0]
    ends = {axis[:7].rstrip("_") if axis.startswith("tap_") else axis for axis in axes}
    return ends - {"service_date", "mode"}


def _added_up(folder: Path, plan: Json) -> Iterator[str]:
    """Check that presented counts of trips add up to the coarser tables of the same tap."""
    if any(event["threshold"] is not None for event in plan["events"]):
        return  # what was left out is in no sum
    own = {f"{event['table']}.csv" for event in plan["events"] if event.get("own_records")}
    tables: Tables = {}
    for path in sorted((folder / "tables").glob("*.csv")):
        columns = _columns(path)
        if "weeks" in columns:
            continue  # sums over weeks, which no table of this week makes
        if path.name not in own and "count" in columns and "standard_deviation" in columns:
            axes = labels_of(list(columns))
            labels = list(zip(*(columns[axis] for axis in axes)))
            tables[path.name] = (axes, labels, list(map(int, columns["count"])))
    pairs = permutations(tables.items(), 2)
    for (name, (axes, labels, counts)), (other, (finer, cells, fine)) in pairs:
        if set(axes) < set(finer) and _end(name, tables) == _end(other, tables):
            kept = [finer.index(axis) for axis in axes]
            total: Counter[tuple[str, ...]] = Counter()
            for cell, count in zip(cells, fine):
                total[tuple(cell[n] for n in kept)] += count
            if total.keys() == set(labels) and total != dict(zip(labels, counts)):
                yield f"tables/{name} is not the sum of tables/{other}"  # hours are no quarters


def _plan(plan: Json, card: Json, manifest: Json) -> Iterator[str]:
    """Check card and plan: digests, release, and the loss of every unit, recomputed exactly."""
    own = (manifest["key"], manifest["sealed_sha256"], plan["plan_digest"])
    if (card["release"], card["sealed_sha256"], card["plan_sha256"]) != own:
        yield "release_card.json is of another release, sealed bytes or plan"
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
            up = amount if amount == math.inf else Fraction(math.ceil(amount * UP[name]), UP[name])
            if up != (math.inf if stated is None else Fraction(stated)):
                yield f"release_card.json states {name} {stated} for a {unit}, not the plan's"


def recomputed(events: Json) -> dict[str, dict[str, Amount]]:
    """Return the exact loss of every unit: the largest over what one unit can touch.

    Draws of one joint vector, with equal noise and sensitivities, are charged once for a scope.
    """
    charged: set[tuple[str, str, str]] = set()
    totals: dict[str, dict[str, dict[str, Amount]]] = {}
    for event in events:
        names = ("joint", "noise", "scale", "sensitivities")
        vector = json.dumps([event[name] for name in names]) if event.get("joint") else ""
        for unit, moved in event["sensitivities"]:
            for scope in {_scope(unit, block) for block in event["blocks"]}:
                if vector and (unit, scope, vector) in charged:
                    continue
                charged.add((unit, scope, vector))
                own = totals.setdefault(unit, {}).setdefault(scope, dict.fromkeys(UP, Fraction(0)))
                for name, amount in _loss(event, moved).items():
                    own[name] += amount
    return {
        unit: {name: max(own[name] for own in scopes.values()) for name in UP}
        for unit, scopes in totals.items()
    }


def _loss(event: Json, moved: list[str] | None) -> dict[str, Amount]:
    """Return what a draw costs a unit that changes it by these norms at most; None: unbounded."""
    scale = Fraction(event["scale"])
    if moved is None:
        return dict.fromkeys(UP, math.inf)
    if event["noise"] == "discrete_gaussian":
        return {"epsilon": math.inf, "rho": Fraction(moved[2]) / (2 * scale**2)}
    epsilon = Fraction(moved[1]) / scale
    return {"epsilon": epsilon, "rho": epsilon**2 / 2}


def _scope(unit: str, block: list[str]) -> str:
    """Return the piece of time (mode, batch) that one unit touches."""
    if unit.endswith("_day"):
        return block[0]
    if unit.endswith("_week"):
        return "-".join(map(str, datetime.date.fromisoformat(block[0]).isocalendar()[:2]))
    return "/".join(block) if unit == "trip" else "ever"


def series_findings(folders: list[Path]) -> list[str]:
    """Check that the cards of a family state at least what all these releases cost together."""
    spent: dict[tuple[str, str], Amount] = {}
    stated: dict[tuple[str, str], Fraction] = {}
    for folder in folders:
        plan, card = (json.loads((folder / name).read_bytes()) for name in (PLAN, CARD))
        for line in card["cumulative"]:
            if line["scope"] == "ever" and line["rho_after"] is not None:
                name = (line["family"], line["unit"])
                spent[name] = spent.get(name, 0) + recomputed(plan["events"])[line["unit"]]["rho"]
                stated[name] = max(stated.get(name, Fraction(0)), Fraction(line["rho_after"]))
    return [
        f"{family}: together a {unit} loses rho {float(cost):.9f}, above what any card states"
        for (family, unit), cost in spent.items()
        if stated[family, unit] < cost
    ]


def read(address: str) -> bytes:
    """Read a file or a web address."""
    url = address if address.startswith(WEB) else Path(address).resolve().as_uri()
    with urllib.request.urlopen(url, timeout=60) as answer:
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
        url = address if address.startswith(WEB) else Path(address).resolve().as_uri()
        return read(urllib.parse.urljoin(f"{url.rstrip('/')}/", KEY_BESIDE)).decode()
    except (OSError, ValueError):
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
            into = Path(scratch) / str(number)
            try:
                folder = fetched(address, into) if address.startswith(WEB) else Path(address)
                folders.append(folder)
                key = given or (key_beside(address) if (folder / STATEMENT).is_file() else None)
                own = findings(folder, key)
                signed = "signed" if key else "signature not checked: no key or no statement"
            except (OSError, ValueError, KeyError, TypeError) as error:
                own = [f"cannot be fetched: {error}"]
            problems += [f"{address}: {problem}" for problem in own]
            print(f"{address}: {'differs' if own else f'as published; {signed}'}")
        if args.series and not problems:
            problems += series_findings(folders)
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return 4 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
