"""A SQLite ledger that is damaged: which entries are lost, what stays, what somebody put there."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict
from typing import Any

from disaster_site import Site, plan_of

from turnstile.ledger.database.damaged_database import damage_in, remains_of
from turnstile.ledger.encoding import digest_of, encode_posting
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.settings import Settings


def die(site: Site, n: int, **other: Any) -> None:
    """A draw that leaves no file."""
    request, ledger = site.request(n, **other), site.ledger
    attempt = ledger.reserve(request)
    ledger.begin_draw(attempt.attempt_id, request.bindings)
    ledger.burn(attempt.attempt_id, "it died", person="olga")


def with_holes(
    gone: Iterable[int], forged: Iterable[dict[str, Any]] = (), *, alters: str = ""
) -> None:
    """Damage the database so that these entries are no longer what they were; put others behind."""
    file = Settings.from_environment().ledger_file
    assert file is not None
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER entry_no_update")
        connection.executescript(alters)
        for sequence in gone:
            connection.execute("UPDATE entry SET record = '?' WHERE sequence = ?", (sequence,))
        for number, other in enumerate(forged, 1000):
            about = {"sequence": number, "previous": "", "at": "2016-08-09", "version": 1}
            record = json.dumps(about | other)
            connection.execute("DROP TRIGGER IF EXISTS entry_follows")
            row = (number, "x", None, None, record, digest_of(record))
            connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", row)
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE type = 'index' ORDER BY rootpage LIMIT 1"
        ).fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    pages = bytearray(file.read_bytes())
    pages[(root - 1) * 4096 : root * 4096] = b"\xab" * 4096
    file.write_bytes(pages)
    assert damage_in(file)
    assert not {entry.sequence for entry in remains_of(file).entries} & {*gone}


def of_week(entries: list[Entry], n: int, *kinds: EntryKind) -> list[int]:
    """Numbers of the entries of a week, of some kinds or all."""
    week = str(sorted({e.key for e in entries if e.key})[n])
    return [e.sequence for e in entries if e.key == week and (not kinds or e.kind in kinds)]


def states(site: Site, key: ReleaseKey) -> list[ReleaseState]:
    return [attempt.state for attempt in site.ledger.revision(key).attempts]


NO_HEAD = "DROP TABLE head;"
NO_ATTEMPTS = "DROP TABLE attempt;"


def plan(site: Site, n: int) -> None:
    """What planning a week leaves."""
    folder = site.home / "embargoed" / str(site.request(n).key)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(json.dumps(plan_of(site.request(n))))


def declared(site: Site, n: int, **other: Any) -> dict[str, Any]:
    """What a declared loss of a week says."""
    request = site.request(n, **other)
    return {
        "attempt": f"{request.key}#1",
        "key": str(request.key),
        "family": request.family,
        "week": request.week,
        **asdict(request.bindings),
        "plan_digest": request.plan_digest,
        "events": list(request.events),
        "postings": list(map(encode_posting, request.postings)),
        "state": "burned",
        "draws": 1,
        "artefact_digest": None,
        "manifest_digest": None,
    }
