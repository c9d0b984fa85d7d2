"""Judges a simulated world by raw rows and bytes alone: none of the house's readers is asked.

It knows what truly happened: every draw as the mechanism was called, every file that was delivered,
the true time. It reads the database by `sqlite3`, entries as JSON, files as bytes. What must hold:

- the noise of no release is drawn before its charge stands in the database, nor twice under one;
- nothing is drawn once a release was sealed; a sealed release keeps its one digest;
- what was truly drawn passes no cap, in any window of weeks;
- rows of accounts are the sum of what entries charge, and state no less than was truly drawn;
- sealed bytes are somewhere as long as any copy existed, and unchanged;
- private data of a release are somewhere until their day; a package stays as it was published.
"""

# ruff: noqa: PTH116, PTH123 - read past what is wrapped
from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from memory_bucket import MemoryBucket


class Violation(AssertionError):  # noqa: N818 - it is what it is called
    """What must never happen."""


ZONES = ("landing", "private", "embargoed", "public")


@dataclass(frozen=True)
class Promise:
    """What one draw of a release costs, and what caps allow, in millionths of epsilon.

    Args:
        days: of each of the seven service days.
        bus: of the unit of all weeks.
        cap_of_day: of a service day.
        cap_of_bus: in a window.
        window_weeks: its length.
    """

    days: int
    bus: int
    cap_of_day: int
    cap_of_bus: int
    window_weeks: int


@dataclass(frozen=True)
class Precious:
    """Bytes that have to stay.

    Args:
        what: for a message.
        digest: of the bytes.
        until: when they may go by the days of the programme; None: never.
    """

    what: str
    digest: str
    until: datetime | None


@dataclass
class RawAuditor:
    """What was seen of a world.

    Args:
        database: path of the ledger.
        promise: of each programme.
        now: the true time.
        places: folders of machines, by zone.
        buckets: stores that live.
        changed: counts what changed in a folder; unchanged ones are not searched again.
    """

    database: Path
    promise: Promise
    now: Callable[[], datetime]
    places: Callable[[], Iterator[Path]]
    buckets: Callable[[], Iterator[MemoryBucket]]
    changed: Callable[[str], object]
    drawn: list[str] = field(default_factory=list)
    bytes_of: dict[str, str] = field(default_factory=dict)
    sealed: dict[str, str] = field(default_factory=dict)
    precious: dict[str, Precious] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    vanished: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    packages: dict[str, str] = field(default_factory=dict)
    early: timedelta = timedelta(days=1)
    _zones: dict[str, tuple[object, set[str]]] = field(default_factory=dict)
    _read_to: int = 0
    _file: int = 0
    _is_damaged: bool = False
    _connection: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(":memory:"))

    # -- what happens ------------------------------------------------------------------------

    def drew(self, key: str) -> None:
        """Noise of a release is about to be made.

        Raises:
            Violation: it is not charged, was drawn under this charge, is sealed, or passes a cap.
        """
        if key in self.sealed:
            raise Violation(f"{key} is sealed and is drawn again")
        rows = self._rows("SELECT kind, record FROM entry WHERE release_key = ?", key)
        charged = sum(kind == "draw_begun" for kind, _ in rows) + sum(
            int(json.loads(record)["body"]["draws"])
            for kind, record in rows
            if kind == "loss_declared"
        )
        self.drawn.append(key)
        times = self.drawn.count(key)
        if times > charged:
            raise Violation(f"{key} is drawn for the {times}. time, and charged {charged} times")
        states = self._rows("SELECT state FROM attempt WHERE release_key = ?", key)
        if ("drawing",) not in states:
            raise Violation(f"{key} is drawn, and no attempt of it is charged and open")

    def stored(self, key: str, path: Path) -> None:
        """Bytes of a draw have got their name: what was drawn is no longer in one memory alone.

        Raises:
            Violation: all that was stored passes a cap.
        """
        digest = _digest_of(str(path))
        if digest in self.bytes_of:
            return
        self.bytes_of[digest] = key
        self._within_caps()

    def _within_caps(self) -> None:
        """Add up what was truly drawn and stored, whatever any ledger says.

        What a disaster took before anybody could read it is nobody's loss: if the database is put
        back too, and there is no witness, nothing in the world knows of that draw.
        """
        seen = (key for digest, key in self.bytes_of.items() if digest not in self.unread)
        of_week = Counter(key.split("/")[1] for key in seen)
        promise = self.promise
        for week, times in of_week.items():
            if times * promise.days > promise.cap_of_day:
                raise Violation(f"days of {week} were drawn on {times} times")
        mondays = {date.fromisocalendar(int(w[:4]), int(w[6:]), 1): n for w, n in of_week.items()}
        for first in mondays:
            last = first + timedelta(weeks=promise.window_weeks - 1)
            total = sum(n for monday, n in mondays.items() if first <= monday <= last)
            if total * promise.bus > promise.cap_of_bus:
                raise Violation(f"{total} draws in {promise.window_weeks} weeks from {first}")

    def learn(self) -> None:
        """Read what the ledger wrote since: what is sealed from now on.

        Raises:
            Violation: a release is sealed with other bytes than before.
        """
        rows = self._rows("SELECT kind, record, sequence FROM entry", after=True)
        for kind, record, sequence in rows:
            try:
                body = json.loads(record)["body"]
            except ValueError:  # of a page that a disk damaged: read once the ledger is recovered
                return
            self._read_to = max(self._read_to, sequence)
            if kind == "sealed":
                self._seal(body["key"], body["artefact_digest"])
            if kind == "loss_declared" and body["artefact_digest"]:
                self._seal(body["key"], body["artefact_digest"])

    def close(self) -> None:
        """Let go of the database, so that its log is as the house left it."""
        self._file = 0
        self._connection.close()

    def _seal(self, key: str, digest: str) -> None:
        if self.sealed.setdefault(key, digest) != digest:
            raise Violation(f"{key} is sealed with other bytes than before")
        self.keep(Precious(f"sealed bytes of {key}", digest, None))

    def keep(self, asset: Precious) -> None:
        """Expect bytes to stay, unless they are gone already."""
        if asset.digest not in self.gone:
            self.precious.setdefault(asset.digest, asset)

    def shorten(self, what: str, until: datetime) -> None:
        """Expect bytes for less long."""
        for digest, asset in self.precious.items():
            if asset.what == what:
                self.precious[digest] = replace(asset, until=until)

    # -- what stands -------------------------------------------------------------------------

    def here(self) -> set[str]:
        """Return the digest of everything that lives anywhere."""
        digests = {blob.digest for bucket in self.buckets() for blob in bucket.objects.values()}
        for place in map(str, self.places()):
            for zone in ZONES:
                digests |= self._in_zone(f"{place}/{zone}")
        return digests

    def _in_zone(self, zone: str) -> set[str]:
        """Return the digest of everything in a zone, or a folder of it, that is looked for."""
        state = self.changed(zone)
        known = self._zones.get(zone)
        if known is None or known[0] != state:
            digests, is_landing = set[str](), "landing" in zone
            for entry in _entries(zone):
                if entry.is_dir(follow_symlinks=False):
                    digests |= self._in_zone(entry.path)
                elif is_landing or entry.name.startswith(("sealed-", "exact-", "snapshot.json")):
                    digests.add(_digest_of(entry.path))
            known = self._zones[zone] = state, digests
        return known[1]

    def lost(self, *, excused: bool = False) -> list[Precious]:
        """Forget what is due or gone by a disaster; return what went otherwise.

        Args:
            excused: whether a disaster took what is gone.
        """
        here, gone = self.here(), list[Precious]()
        if self.unread & here:  # a backup brought them back: they count again
            self.unread -= here
            self._within_caps()
        self.vanished -= here
        vanished = self.bytes_of.keys() - here - self.vanished
        self.vanished |= vanished
        if excused:
            is_public = {self.sealed.get(key) for key in self.packages}
            self.unread |= vanished - is_public
        for asset in list(self.precious.values()):
            if asset.until is not None and self.now() >= asset.until - self.early:
                del self.precious[asset.digest]
            elif asset.digest not in here:
                del self.precious[asset.digest]
                self.gone.add(asset.digest)
                gone.append(asset)
        return [] if excused else gone

    def ledger_lost(self) -> None:
        """The ledger is put back, and no witness knows what it held.

        Of draws whose bytes went before with the power nothing tells any more, but packages.
        """
        self.unread |= self.vanished - {self.sealed.get(key) for key in self.packages}

    def judge_bytes(self) -> None:
        """Look for everything that has to stay.

        Raises:
            Violation: something went.
        """
        for asset in self.lost():
            raise Violation(f"{asset.what} are nowhere, and no disaster took them")

    def judge_packages(self, public: Path) -> None:
        """Compare every package with what it was when it appeared.

        Raises:
            Violation: it is another one, or of bytes that were never sealed.
        """
        for manifest in sorted(public.glob("*/*/r*/manifest.json")):
            content = manifest.read_bytes()
            key = str(manifest.parent.relative_to(public))
            try:
                sealed = json.loads(content)["sealed_sha256"]
            except ValueError:
                if any(self.buckets()):
                    continue  # a loss of power tore this copy, which the next fetch sees
                raise Violation(f"the manifest of {key} is torn") from None
            known = self.packages.setdefault(key, hashlib.sha256(content).hexdigest())
            if known != hashlib.sha256(content).hexdigest():
                raise Violation(f"the package of {key} is another one than was published")
            if sealed != self.sealed.get(key):
                raise Violation(f"the package of {key} is of bytes that were not sealed")

    def judge_accounts(self, *, is_whole: bool) -> None:
        """Recompute accounts from entries, and hold them against what was truly drawn.

        Args:
            is_whole: whether the ledger was told of everything since an older one was put back.

        Raises:
            Violation: a row is another sum, passes a cap, or states less than was drawn.
        """
        self._is_damaged = False
        charged = self._charged()
        rows = self._rows("SELECT unit, scope, week, spent_epsilon_micro FROM account")
        if self._is_damaged:
            return
        stored = {(unit, scope, week): spent for unit, scope, week, spent in rows if spent}
        if stored != {row: spent for row, spent in charged.items() if spent}:
            raise Violation("a row of an account is not the sum of what its entries charge")
        for (unit, scope, _), spent in stored.items():
            if unit == "bus_day" and spent > self.promise.cap_of_day:
                raise Violation(f"{unit} {scope} has {spent} of {self.promise.cap_of_day}")
        if not is_whole:
            return
        here = self.here()
        truly = Counter(
            key.split("/")[1] for digest, key in self.bytes_of.items() if digest in here
        )
        for week, times in truly.items():
            monday = date.fromisocalendar(int(week[:4]), int(week[6:]), 1)
            spent = charged.get(("bus_day", str(monday), ""), 0)
            if spent < times * self.promise.days:
                raise Violation(f"{week} was drawn {times} times, and {spent} are stated")

    def _charged(self) -> Mapping[tuple[str, str, str], int]:
        """Add up the postings of every attempt that began to draw."""
        total: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        postings: dict[str, list[tuple[str, str, str, int]]] = {}
        for kind, record in self._rows("SELECT kind, record FROM entry ORDER BY sequence"):
            if kind not in {"reserved", "draw_begun", "loss_declared"}:
                continue
            body = _body_of(record)
            if kind != "draw_begun":
                postings[body["attempt"]] = list(_rows_of(body))
            times = 1 if kind == "draw_begun" else int(body.get("draws", 0))
            if kind in {"draw_begun", "loss_declared"}:
                for unit, scope, week, amount in postings[body["attempt"]]:
                    total[unit, scope, week] += times * amount
        return total

    def _rows(self, query: str, *values: object, after: bool = False) -> list[tuple]:  # type: ignore[type-arg]
        """Read the database past the house.

        Args:
            query: of rows.
            *values: in the places of its marks.
            after: whether only entries that were not read yet; of another file that is all.
        """
        try:
            file = self.database.stat().st_ino
        except OSError:
            return []
        if file != self._file:
            self._reopen(file)
        if after:
            query, values = f"{query} WHERE sequence > ?", (self._read_to,)
        try:
            return self._connection.execute(query, values).fetchall()
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # damaged: nobody charges to it
            self.close()
            self._is_damaged = True
            return []

    def _reopen(self, file: int) -> None:
        """Open the file that stands there now: what was made again counts from its beginning."""
        self._connection.close()
        self._read_to = 0
        self._file, self._connection = file, sqlite3.connect(self.database)


@lru_cache(2_000)
def _body_of(record: str) -> Mapping[str, object]:
    """Read what an entry states, which nobody changes."""
    return json.loads(record)["body"]


def _rows_of(body: Mapping[str, object]) -> Iterator[tuple[str, str, str, int]]:
    """Yield the account rows of an attempt's postings; a lifetime's has a row a week too."""
    for unit, scope, epsilon, *_ in body["postings"]:  # type: ignore[attr-defined]
        yield unit, scope, "", epsilon
        if scope == "ever":
            yield unit, scope, str(body["week"]), epsilon


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _digest_of(path: str) -> str:
    """Return the digest of a file's bytes; empty if there are none to read."""
    try:
        seen = os.stat(path)
    except OSError:
        return ""
    return _digest(path, seen.st_ino, seen.st_size, seen.st_mtime_ns)


@lru_cache(10_000)
def _digest(path: str, *_: int) -> str:
    """Read a file once, until it is another one, of another length or written to."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
