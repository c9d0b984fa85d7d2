"""Export: a complete copy of the ledger that another machine verifies without the database.

    <folder>/entries.jsonl      one line an entry: {"hash": ..., "record": ...}, in order
    <folder>/ledger.pub         public key, C2SP verifier key
    <folder>/checkpoint.note    signed note of the last entry, C2SP checkpoint

The folder holds no amount that the entries do not: balances are a fold over them. Every record's
hash is the SHA-256 of its text and names the record before, so ten lines of any language check it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from turnstile.errors import InputError
from turnstile.ledger.custody.notes import PUBLIC_KEY, Note, note_findings
from turnstile.ledger.custody.witness import Witnesses
from turnstile.ledger.encoding import canonical
from turnstile.ledger.entries import Entry, read_entry
from turnstile.ledger.fold import Fold
from turnstile.ledger.parties import Parties
from turnstile.ledger.records import Finding

ENTRIES = "entries.jsonl"
NOTE = "checkpoint.note"


def write_export(
    entries: Iterable[Entry], folder: Path, witnesses: Witnesses, lines_of_keys: tuple[str, ...]
) -> int:
    """Write a complete copy and return how many entries it has.

    Args:
        entries: of one state of the ledger, in order.
        folder: new or empty.
        witnesses: whose key signs the copy.
        lines_of_keys: public lines of every key that the ledger names; empty if it names none.

    Raises:
        InputError: the folder is not empty or cannot be written, or there is no key.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(where=str(folder), field="folder", rule="is not empty; name a new one")
        head = (0, "0" * 64)
        with (folder / ENTRIES).open("w", encoding="utf-8") as lines:
            for entry in entries:
                lines.write(canonical({"hash": entry.hash, "record": entry.record}) + "\n")
                head = (entry.sequence, entry.hash)
        signer = witnesses.make_key() if not lines_of_keys else witnesses.signer()
        public_lines = lines_of_keys or (signer.public_line,)
        (folder / PUBLIC_KEY).write_text("".join(public_lines), encoding="utf-8")
        (folder / NOTE).write_text(signer.sign(head), encoding="utf-8")
    except OSError as error:
        rule = f"{error.strerror}; free or name another folder, then export again"
        raise InputError(where=str(folder), field="folder", rule=rule) from error
    return head[0]


def verify_export(folder: Path, *, trusted: Path | None = None) -> Iterator[Finding]:
    """Yield everything that is wrong with an exported copy.

    Args:
        folder: as `write_export` left it.
        trusted: public key obtained another way; by default the copy's own, which shows that the
            copy is intact, but not who made it.

    Raises:
        InputError: the folder holds no export.
    """
    fold = Fold()
    yield from fold_export(folder, fold)
    note, public_key = folder / NOTE, trusted or folder / PUBLIC_KEY
    if not (note.is_file() and public_key.is_file()):
        yield Finding("checkpoint", None, f"{NOTE} or the public key is missing")
        return
    keys = tuple(public_key.read_text("utf-8").splitlines(keepends=True))
    yield from key_findings(fold.parties, keys, public_key)
    read = Note.read(note)
    yield from note_findings(read, fold.hash_at, lambda _: keys, fold.parties.is_superseded)
    if f"\n{fold.chain.head[0]}\n" not in note.read_text("utf-8"):
        yield Finding("checkpoint", fold.chain.head[0], f"the copy goes on after its {NOTE}")


def fold_export(folder: Path, fold: Fold) -> Iterator[Finding]:
    """Fold the entries of a copy, yielding what is wrong with them.

    Raises:
        InputError: the folder holds no export.
    """
    path = folder / ENTRIES
    if not path.is_file():
        raise InputError(
            where=str(folder), field="folder", rule=f"holds no {ENTRIES}; name an export"
        )
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                written = json.loads(line)
                entry = read_entry(written["record"], written["hash"])
            except (KeyError, TypeError, ValueError):
                yield Finding("chain", number, "its line is no entry")
                continue
            yield from fold.follow(entry)


def key_findings(
    parties: Parties, trusted: tuple[str, ...], named: Path | str
) -> Iterator[Finding]:
    """Check that the key in force is one of those that somebody trusts."""
    lines = {line.strip() for line in trusted}
    if parties.key is not None and parties.key.strip() not in lines:
        yield Finding("key", parties.keys[-1][0], f"is signed by a key that is not in {named}")
