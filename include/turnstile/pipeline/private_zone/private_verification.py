"""The private zone against the ledger: what is gone or altered, while backups still hold it.

Behind `turnstile ledger verify --private` and the daily retention. Rows and counts are compared by
their keyed commitments, and files of rows with the record of their snapshot; a finding names a
release and a rule, and no figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from turnstile.counting.exact_store import load_exact
from turnstile.errors import InputError, TurnstileError
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Attempt, Finding
from turnstile.pipeline.private_zone.bounding_key import (
    REPAIR,
    earlier_keys_gone,
    require_present_key,
    secret_as_sealed,
)
from turnstile.pipeline.private_zone.private_data import Part
from turnstile.release.zone_copies import zones
from turnstile.release.zones import commitment
from turnstile.settings import Settings
from turnstile.sources.ingest.snapshot import load_snapshot, require_whole


@dataclass(frozen=True, slots=True)
class PrivateFinding(Finding):
    """Something of the private zone that is gone or altered.

    Args:
        name: of it, by which it is told outside of the zone: `opal/2016-W30/exact counts, r0`, or
            `ledger/all/bounding key` of what is of no week.
    """

    name: str


def sees_private(settings: Settings) -> bool:
    """Return whether private data are read here; of several machines with stores, not by all."""
    private = settings.private
    if private.is_dir() and not settings.store_of("private"):
        # Of a worker that reads none only what its own failures said is mounted there.
        others = {path.name for path in private.iterdir()} - {"failures"}
        return bool(others) or not (private / "failures").is_mount()
    return bool(settings.store_of("private") or not settings.stores)


def require_private(settings: Settings, command: str, asked: str) -> None:
    """Refuse what needs private data where none are read.

    Raises:
        InputError: none are read here.
    """
    if not sees_private(settings):
        rule = "no private zone is here; ask where one is (under Compose: worker-private)"
        if not settings.private.exists():
            rule += f", or, if it was here and is lost for good, mkdir -p {settings.private}"
        raise InputError(where=command, field=asked, rule=rule)


def private_findings(settings: Settings, ledger: Ledger) -> Iterator[PrivateFinding]:
    """Yield what of the private zone is not as it was when a release was reserved.

    What retention has deleted is not missed; what is deleted before its day is. Of a period that a
    step works on here nothing is told: it brings what it needs itself, and no more.

    Raises:
        StoreError: the store of the private zone is away, so that nobody can say.
    """
    in_work = zones(settings).fetch_private()
    keys = ledger.bounding_keys()
    try:
        require_present_key(settings, ledger, keys)
    except TurnstileError as error:
        yield PrivateFinding("private", None, str(error), "ledger/all/bounding key")
        return
    entries = list(ledger.entries())
    if lost := earlier_keys_gone(settings, keys):
        name = "ledger/all/earlier bounding key"
        yield PrivateFinding("private", None, f"{lost}: {REPAIR}", name)
    deleted = {  # last, since what goes before a revision is reserved is nothing of that revision
        (entry.body["programme"], entry.body["period"], entry.body["part"]): entry.sequence
        for entry in entries
        if entry.kind is EntryKind.DELETED
    }
    reserved = {e.body["attempt"]: e for e in entries if e.kind is EntryKind.RESERVED}
    has_rows = cache(partial(_holds, _require_rows, settings.private))  # revisions may share them
    for programme in dict.fromkeys(entry.body["key"].split("/")[0] for entry in reserved.values()):
        for week in ledger.weeks(programme).values():
            if f"{programme}/{week.period}" in in_work:
                continue
            for taken in week.taken:
                gone = {
                    part
                    for (*of, part), at in deleted.items()
                    if of == [programme, week.period] and at > taken.reserved_sequence
                }
                entry = reserved.get(taken.attempt_id)
                if entry and Part.EXACT not in gone:
                    # Until it is sealed it may be counted again: then only what is there is read.
                    secret = (
                        secret_as_sealed(settings, keys, taken) if taken in week.sealed else None
                    )
                    rows = (lambda *_: True) if Part.ROWS in gone else has_rows
                    yield from _of_release(settings.private, secret, taken, entry, rows)


def _require_rows(private: Path, programme: str, period: str, digest: str) -> None:
    require_whole(load_snapshot(private, programme, period, digest))


def _holds(look: Callable[..., object], *of: object) -> bool:
    """Return whether data are as their digest says, and can be read."""
    try:
        look(*of)
    except (TurnstileError, OSError, ValueError, LookupError):  # a disk, rights, a hand
        return False
    return True


def _of_release(
    private: Path,
    secret: bytes | None,
    taken: Attempt,
    reserved: Entry,
    has_rows: Callable[[str, str, str], bool],
) -> Iterator[PrivateFinding]:
    """Compare what is kept of one release."""
    key, sequence = taken.key, taken.reserved_sequence
    folder = private / str(key)

    def finding(what: str, problem: str, place: str = str(key)) -> PrivateFinding:
        told = f"{key.programme}/{key.period}/{what}, r{key.revision}"
        sentence = f"{key}: {problem}; restore private/{place}"
        return PrivateFinding("private", sequence, sentence, told)

    notes = {"snapshot": taken.bindings.snapshot_digest, "exact": reserved.body.get("exact", "")}
    places = {"snapshot": f"{key.programme}/{key.period}/snapshots", "exact": str(key)}
    for name, committed in notes.items():
        note, what = folder / name, _WORDS[name]
        if not note.is_file():
            yield finding(what, f"the record of its {what} is gone")
            continue
        digest = note.read_text(encoding="ascii", errors="replace")
        # None: it is not sealed, or that key is lost, which is told by itself or was declared
        if committed and secret is not None and commitment(secret, digest) != committed:
            yield finding(what, f"its {what} are others than it was reserved with")
            continue
        if name == "exact":
            is_there = _holds(load_exact, folder, digest)
        else:
            is_there = has_rows(key.programme, key.period, digest)
        if not is_there:
            yield finding(what, f"its {what} are gone or altered", places[name])


_WORDS = {"snapshot": "rows", "exact": "exact counts"}
