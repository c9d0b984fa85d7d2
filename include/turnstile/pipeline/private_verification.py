"""The private zone against the ledger: what is gone or altered, while backups still hold it.

Behind `turnstile ledger verify --private` and the daily retention. Rows and counts are compared by
their keyed commitments; a finding names a release and a rule, and no figure.
"""

from __future__ import annotations

from collections.abc import Iterator

from turnstile.counting.exact_store import load_exact
from turnstile.errors import TurnstileError
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Attempt, Finding
from turnstile.pipeline.bounding_key import commitment_as_sealed, require_known_key
from turnstile.pipeline.private_data import Part
from turnstile.settings import Settings
from turnstile.sources.ingest.snapshot import load_snapshot


def private_findings(settings: Settings, ledger: Ledger) -> Iterator[Finding]:
    """Yield what of the private zone is not as it was when a release was reserved.

    What retention has deleted is not missed; what is deleted before its day is.
    """
    try:
        require_known_key(settings, ledger)
    except TurnstileError as error:
        yield Finding("private", None, str(error))
        return
    entries = list(ledger.entries())
    deleted = {
        (entry.body["programme"], entry.body["period"], entry.body["part"])
        for entry in entries
        if entry.kind is EntryKind.DELETED
    }
    reserved = {e.body["attempt"]: e for e in entries if e.kind is EntryKind.RESERVED}
    for programme in dict.fromkeys(entry.body["key"].split("/")[0] for entry in reserved.values()):
        for week in ledger.weeks(programme).values():
            for sealed in week.attempts:
                gone = {part for *of, part in deleted if of == [programme, week.period]}
                entry = reserved.get(sealed.attempt_id)
                if entry and sealed.is_sealed and Part.EXACT not in gone:
                    yield from _of_release(settings, ledger, sealed, entry, gone)


def _of_release(
    settings: Settings, ledger: Ledger, sealed: Attempt, reserved: Entry, gone: set[str]
) -> Iterator[Finding]:
    """Compare what is kept of one release."""
    key, sequence = sealed.key, sealed.reserved_sequence
    folder = settings.private / str(key)

    def finding(problem: str) -> Finding:
        return Finding("private", sequence, f"{key}: {problem}; restore private/{key}")

    notes = {
        "snapshot": sealed.bindings.snapshot_digest,
        "exact": reserved.body.get("exact", ""),
    }
    for name, committed in notes.items():
        note = folder / name
        if not note.is_file():
            yield finding(f"the record of its {_WORDS[name]} is gone")
            continue
        digest = note.read_text(encoding="ascii", errors="replace")
        own = commitment_as_sealed(settings, ledger, sealed, digest)
        if committed and own not in {None, committed}:  # None: a person declared that key lost
            yield finding(f"its {_WORDS[name]} are others than it was reserved with")
        elif name == "exact" or Part.ROWS not in gone:
            try:
                if name == "exact":
                    load_exact(folder, digest)
                else:
                    load_snapshot(settings.private, key.programme, key.period, digest)
            except TurnstileError:
                yield finding(f"its {_WORDS[name]} are gone or altered")


_WORDS = {"snapshot": "rows", "exact": "exact counts"}
