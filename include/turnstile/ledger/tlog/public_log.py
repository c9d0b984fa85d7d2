"""The transparency log as it lies in the public zone: static files, each written once but one.

    <public>/ledger-log/<key id>/log.pub         verifier key; its name is the log's origin
    <public>/ledger-log/<key id>/checkpoint      the newest, with the cosignatures that came
    <public>/ledger-log/<key id>/checkpoints/<size>  as the log signed it
    <public>/ledger-log/<key id>/cosignatures/<size>.<cosigner's key id>.<seconds>
    <public>/ledger-log/<key id>/steps/<size>    from it to a later one: what tlog-witness asks
    <public>/opal/2016-W30/proof-r0.tlog-proof   that the entry of the note beside it is in the log

No entry and no tile of leaves is served: entries hold people, reasons and seconds. Whoever kept one
checkpoint climbs `steps` to the newest, and sees a rewritten ledger though all our folders were an
attacker's. Checkpoints are made at publications alone, so their sizes tell of no draw.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from turnstile.durable_files import (
    complete_durably,
    create_durably,
    replace_durably,
    sha256_of,
)
from turnstile.errors import IntegrityError
from turnstile.ledger.custody.folders import (
    all_below,
    content_of,
    listed,
    period_folders,
    release_folders,
)
from turnstile.ledger.custody.notes import Note
from turnstile.ledger.custody.signed_note import Checkpoint
from turnstile.ledger.custody.zone_index import LOG, is_in_work
from turnstile.ledger.parties import LogBegun
from turnstile.ledger.records import Finding
from turnstile.ledger.tlog.checkpoints import (
    TIME_BYTES,
    LogCheckpoint,
    Proof,
    Verifier,
    checkpoint_text,
    parse_checkpoint,
    parse_proof,
    parse_step,
    step_text,
)
from turnstile.ledger.tlog.merkle import Tree, is_consistent, is_included

PACKAGE_PROOF = "sealed.tlog-proof"
_FILES = {
    "log.pub": re.compile(""),
    "checkpoint": re.compile(""),
    "checkpoints": re.compile("[1-9][0-9]*"),
    "steps": re.compile("[1-9][0-9]*"),
    "cosignatures": re.compile(r"[1-9][0-9]*\.[0-9a-f]{8}\.[0-9]+"),
}
_NOTE, _PROOF = ("checkpoint-r", ".note"), ("proof-r", ".tlog-proof")
_WRITTEN_AGAIN = "take it away, and turnstile ledger republish writes what the log needs"


@dataclass(frozen=True)  # without slots: who signs and where it lies are found out once
class PublicLog:
    """One log of a ledger.

    Args:
        public: zone.
        begun: the fact that names it.
        tree: over the hashes of all entries.
    """

    public: Path
    begun: LogBegun
    tree: Tree

    @cached_property
    def verifier(self) -> Verifier:
        """Who signs its checkpoints."""
        return Verifier.of(self.begun.public_line)

    @cached_property
    def folder(self) -> Path:
        """Where it lies."""
        return self.public / LOG / self.verifier.digits

    def sizes(self) -> list[int]:
        """Return the sizes of its checkpoints, smallest first."""
        names = (file.name for file in listed(self.folder / "checkpoints"))
        return sorted(int(name) for name in names if _FILES["checkpoints"].fullmatch(name))

    def signed(self, size: int) -> str:
        """Return the checkpoint of a size as the log signed it."""
        return _text(self.folder / "checkpoints" / str(size))

    def cosigned(self) -> list[tuple[int, str, Path]]:
        """Return size, cosigner's key id and file of every cosignature, the newest of each last."""
        names = [file.name for file in listed(self.folder / "cosignatures")]
        return [
            (int(size), identity, self.folder / "cosignatures" / name)
            for name in names
            if _FILES["cosignatures"].fullmatch(name)
            for size, identity, _ in [name.split(".")]
        ]

    def newest(self, size: int) -> str:
        """Return a checkpoint with the newest line of each cosigner."""
        lines = {identity: path for of, identity, path in self.cosigned() if of == size}
        return self.signed(size) + "".join(map(_text, lines.values()))

    def proof(self, sequence: int, sign: Callable[[str], str]) -> Proof:
        """Return that an entry is in the log, by the smallest checkpoint that can say so."""
        index, size = sequence - 1, max(sequence, self.begun.sequence)
        signed = sign(checkpoint_text(self.begun.origin, size, self.tree.root(size)))
        return Proof(index, self.tree.leaves[index], self.tree.inclusion(index, size), signed)

    def write(self, sign: Callable[[str], str]) -> None:
        """Bring the log to what is public: proofs, checkpoints, steps, the newest checkpoint.

        Args:
            sign: returns a text as a note that the log signed.

        Raises:
            IntegrityError: a checkpoint that was signed is not of this ledger.
            OSError: a file cannot be written.
        """
        others = self.take_over()
        self.join()
        for finding in self.findings(is_last=True, in_work=True):
            raise IntegrityError(
                f"{finding}; until that is mended nothing more is signed: restore the newest "
                "ledger where this one is older; where entries are lost for good, turnstile "
                "ledger begin-log --reason TEXT begins another log"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self.write_key()
        proofs = {
            path: proof
            for note, path in _notes(self.public)
            if not _is_of(_proof(path), note) and note.sequence <= len(self.tree.leaves)
            if _is_owed(path, proof := self.proof(note.sequence, sign))
        }
        for size in others:
            raise IntegrityError(
                f"a proof holds another root of {size} entries, which this log has signed; nothing "
                "more is signed: restore the newest ledger, or turnstile ledger recover "
                "--reason TEXT, which begins another log"
            )
        for proof in proofs.values():
            self._create("checkpoints", parse_checkpoint(proof.checkpoint).size, proof.checkpoint)
        for path, proof in proofs.items():  # after the checkpoints that they name
            replace_durably(path, str(proof).encode())
        self.join()

    def made(self) -> dict[str, str]:
        """Return digests, by path in the zone, of proofs beside packages that are as it wrote them.

        Whoever wrote one may have been killed before it was listed.
        """
        return {
            path.relative_to(self.public).as_posix(): sha256_of(path)
            for note, path in _notes(self.public)
            if (proof := _proof(path)) is not None and _is_of(proof, note)
            if len((checkpoint := parse_checkpoint(proof.checkpoint)).signatures) == 1
            if self._proves(proof, checkpoint) and self._is_of(proof, checkpoint)
        }

    def write_key(self) -> None:
        """Write the log's key where it is not there, or ends early.

        What else stands in its place somebody put there, and is for people to look at.
        """
        if self.folder.is_dir():
            complete_durably(self.folder / "log.pub", self.begun.public_line.encode())

    def take_over(self) -> list[int]:
        """Write the checkpoints that proofs of the zone hold alone: whoever climbs needs them.

        A package may have been built before this log was left, and be public since.

        Returns:
            Sizes of those with another root than the ledger's.
        """
        others = []
        for text, checkpoint in self._signed_in(_in_proofs(self.public), but=self.sizes()):
            if not self._is_of_ledger(checkpoint):
                others += [checkpoint.size] * (checkpoint.size <= len(self.tree.leaves))
            elif self._is_signed_alone(checkpoint):
                self._create("checkpoints", checkpoint.size, text)
        return others

    def join(self) -> None:
        """Write its key, the steps between checkpoints that lack one, and the newest checkpoint."""
        self.write_key()
        for old, new in self._steps_missing():
            step = step_text(old, self.tree.consistency(old, new), self.signed(new))
            self._create("steps", old, step)
        sizes, path = self.sizes(), self.folder / "checkpoint"
        if not sizes or self._problem(sizes[-1], is_last=False):
            return  # what stands last is none that this log signed: nobody is led to it
        if _text(path) != (newest := self.newest(sizes[-1])):
            replace_durably(path, newest.encode())

    def _steps_missing(self) -> Iterator[tuple[int, int]]:
        """Yield checkpoints that no step leads from, and the next: both of this ledger."""
        there = {file.name for file in listed(self.folder / "steps") if file.is_file()}
        for sizes in pairwise(self.sizes()):
            is_gone = str(sizes[0]) not in there
            if is_gone and not any(self._problem(size, is_last=True) for size in sizes):
                yield sizes

    def is_beyond(self) -> bool:
        """Return whether it signed what this ledger does not hold, so that it cannot go on."""
        steps = (_text(Path(file.path)) for file in listed(self.folder / "steps"))
        newer = (text.partition("\n\n")[2] for text in steps)
        kept = (*map(self.signed, self.sizes()), _text(self.folder / "checkpoint"), *newer)
        signed = self._signed_in((*kept, *_in_proofs(self.public)))
        return not all(self._is_of_ledger(checkpoint) for _, checkpoint in signed)

    def _signed_in(
        self, texts: Iterable[str], but: Sequence[int] = ()
    ) -> Iterator[tuple[str, LogCheckpoint]]:
        """Yield the texts that are checkpoints which this log signed, but those of some sizes."""
        for text in texts:
            with suppress(ValueError):
                checkpoint = parse_checkpoint(text)
                if checkpoint.size not in but and self._is_signed(checkpoint):
                    yield text, checkpoint

    def _is_of_ledger(self, checkpoint: LogCheckpoint) -> bool:
        size = checkpoint.size
        return size <= len(self.tree.leaves) and checkpoint.root == self.tree.root(size)

    def keep_cosignature(self, size: int, identity: str, seconds: int, line: str) -> None:
        """Keep what a cosigner said."""
        self._create("cosignatures", f"{size}.{identity}.{seconds}", line)

    def _create(self, kind: str, name: int | str, text: str) -> None:
        """Write a file once."""
        path = self.folder / kind / str(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        create_durably(path, text.encode())

    def findings(self, *, is_last: bool, in_work: bool = False) -> Iterator[Finding]:
        """Yield what of the log's folder is not of this ledger.

        Args:
            is_last: of the log in force; another was left because entries of it are lost.
            in_work: whether `checkpoint` may lag behind.
        """
        sizes = self.sizes()
        for size in sizes:
            if problem := self._problem(size, is_last=is_last):
                path = self.folder / "checkpoints" / str(size)
                yield Finding("log", min(size, len(self.tree.leaves)), f"{path} {problem}")
        for file in listed(self.folder / "steps"):
            if not (is_in_work(file.name) or self._is_step(Path(file.path))):  # a draft is none
                problem = f"is no step between two checkpoints; {_WRITTEN_AGAIN}"
                yield Finding("log", None, f"{file.path} {problem}")
        for old, new in self._steps_missing():
            if new != sizes[-1]:  # that one is written a moment after its checkpoint
                path = self.folder / "steps" / str(old)
                yield Finding("log", None, f"{path} is gone; turnstile ledger republish writes it")
        if not in_work and sizes and _text(self.folder / "checkpoint") != self.newest(sizes[-1]):
            problem = "is not the newest; turnstile ledger republish writes it"
            yield Finding("log", None, f"{self.folder / 'checkpoint'} {problem}")
        path = self.folder / "log.pub"
        if not in_work and path.parent.is_dir() and _text(path) != self.begun.public_line:
            problem = "is not the log's key; take it away, and turnstile ledger republish writes it"
            yield Finding("log", None, f"{path} {problem}")
        yield from self._foreign()

    def proof_findings(self, *, is_last: bool) -> Iterator[Finding]:
        """Yield every proof of this log, beside packages and in them, that does not prove it.

        Args:
            is_last: of the log in force; an earlier one may prove entries that are lost.
        """
        for path in _proofs(self.public):
            proof = _proof(path)
            remedy = _WRITTEN_AGAIN if path.name != PACKAGE_PROOF else "restore it from a backup"
            if proof is None:
                if is_last:
                    yield Finding("log", None, f"{path} is no proof; {remedy}")
                continue
            checkpoint = parse_checkpoint(proof.checkpoint)
            if checkpoint.origin != self.begun.origin:
                continue
            is_true = self._proves(proof, checkpoint)
            if not (is_true and (not is_last or self._is_of(proof, checkpoint))):
                problem = f"{path} does not prove its entry; {remedy}"
                yield Finding("log", proof.index + 1, problem)
            elif is_last and not self._holds(path, checkpoint):
                size = checkpoint.size
                problem = f"{self.folder} has no checkpoint of {size} entries, which {path} names"
                yield Finding("log", checkpoint.size, problem)

    def cosignature_findings(self, cosigners: Iterable[Verifier]) -> Iterator[Finding]:
        """Yield every kept cosignature that is none of its checkpoint.

        Args:
            cosigners: whose keys are known; of others only form, key id and time are compared.
        """
        known = {cosigner.digits: cosigner for cosigner in cosigners}
        for size, identity, path in self.cosigned():
            if not self._is_cosignature(path, known.get(identity)):
                problem = f"{path} is no cosignature of its checkpoint; restore it, or move it away"
                yield Finding("log", size, problem)

    def _is_cosignature(self, path: Path, cosigner: Verifier | None) -> bool:
        """Return whether a file is one of its checkpoint, by its form where no key is known."""
        if _FILES["cosignatures"].fullmatch(path.name) is None:
            return False
        of, identity, seconds = path.name.split(".")
        try:
            signed = parse_checkpoint(self.signed(int(of)))
            checkpoint = parse_checkpoint(self.signed(int(of)) + _text(path))
            ((_, key_id, line),) = checkpoint.signatures[len(signed.signatures) :]
            at = int(seconds) if cosigner is None else checkpoint.cosigned_at(cosigner)
            stated = int.from_bytes(line[:TIME_BYTES], "big")
        except ValueError:
            return False
        return key_id.hex() == identity and at == stated == int(seconds)

    def is_own(self, kind: str, path: Path) -> bool:
        """Return whether a file of its folder is signed by it, or follows from one that is.

        Of a cosignature, whose key is not asked for, only the form is compared.
        """
        if kind == "steps":
            return self._is_step(path)
        if kind == "cosignatures":
            return self._is_cosignature(path, None)
        try:
            checkpoint = parse_checkpoint(_text(path))
        except ValueError:
            return False
        is_signed = self._is_signed if kind == "checkpoint" else self._is_signed_alone
        return is_signed(checkpoint) and path.name in {kind, str(checkpoint.size)}

    def _holds(self, path: Path, checkpoint: LogCheckpoint) -> bool:
        """Return whether the checkpoint of a proof beside a package is there."""
        is_in_package = path.name == PACKAGE_PROOF  # it appears a moment before the checkpoint
        return is_in_package or (self.folder / "checkpoints" / str(checkpoint.size)).exists()

    def _is_signed(self, checkpoint: LogCheckpoint) -> bool:
        try:
            return checkpoint.is_signed_by(self.verifier) and checkpoint.origin == self.begun.origin
        except ValueError:
            return False

    def _is_signed_alone(self, checkpoint: LogCheckpoint) -> bool:
        """Return whether the log's is the one line: cosignatures lie in files of their own."""
        return len(checkpoint.signatures) == 1 and self._is_signed(checkpoint)

    def _proves(self, proof: Proof, checkpoint: LogCheckpoint) -> bool:
        """Return whether the log signed a checkpoint in which the entry is."""
        size, root = checkpoint.size, checkpoint.root
        is_in = is_included(proof.data, proof.index, size, proof.path, root)
        return is_in and self._is_signed(checkpoint)

    def _is_of(self, proof: Proof, checkpoint: LogCheckpoint) -> bool:
        """Return whether entry and root are those of the ledger."""
        is_there = proof.index < checkpoint.size and self._is_of_ledger(checkpoint)
        return is_there and proof.data == self.tree.leaves[proof.index]

    def _problem(self, size: int, *, is_last: bool) -> str | None:
        """Return what is wrong with a checkpoint, or None."""
        try:
            checkpoint = parse_checkpoint(self.signed(size))
        except ValueError:
            checkpoint = None
        if checkpoint is None or not self._is_signed_alone(checkpoint) or checkpoint.size != size:
            return f"is no checkpoint that this log signed; {_WRITTEN_AGAIN}"
        if size > len(self.tree.leaves):
            return "is of more entries than the ledger has: an old copy was restored" * is_last
        if checkpoint.root != self.tree.root(size):
            return "is not of this ledger: its history was replaced" * is_last
        return None

    def _is_step(self, path: Path) -> bool:
        """Return whether a step leads from one checkpoint of this log to a later one."""
        try:
            old, proof, newer = parse_step(_text(path))
            after, before = parse_checkpoint(newer), parse_checkpoint(self.signed(old))
        except ValueError:
            return False
        is_named = path.name == str(old) and self._is_signed_alone(after)
        return is_named and is_consistent(old, after.size, before.root, after.root, proof)

    def _foreign(self) -> Iterator[Finding]:
        """Name files that no log holds."""
        for name, entry in all_below(self.folder):
            kind, _, rest = name.partition("/")
            is_folder = entry.is_dir() and not rest and kind in _FILES
            is_own = kind in _FILES and _FILES[kind].fullmatch(rest) and entry.is_file()
            if entry.is_symlink() or not (is_folder or is_own or is_in_work(entry.name)):
                problem = "is a file that nobody published; find out what it holds; take it away"
                yield Finding("log", None, f"{entry.path} {problem}")


def log_findings(
    public: Path,
    logs: Sequence[LogBegun],
    hashes: Iterable[str],
    cosigners: Sequence[Verifier] = (),
) -> Iterator[Finding]:
    """Compare every log of a ledger with its entries.

    Args:
        public: zone.
        logs: that the ledger began, in order.
        hashes: of its entries, in order.
        cosigners: whose cosignatures are verified.
    """
    tree = Tree.of(hashes)
    for begun in logs:
        log = PublicLog(public, begun, tree)
        yield from log.findings(is_last=begun == logs[-1])
        yield from log.proof_findings(is_last=begun == logs[-1])
        yield from log.cosignature_findings(cosigners)
    for name in _of_no_log(public, logs):
        yield Finding("log", None, f"{public / LOG / name} is of no log of this ledger")


def is_log_beyond(public: Path, logs: Sequence[LogBegun], hashes: Iterable[str]) -> bool:
    """Return whether a log holds what its ledger lost, so that the one in force cannot go on.

    Perhaps its beginning; but a folder of no log at all is a stranger's.
    """
    if not logs:
        return any(listed(public / LOG)) or any(_proofs(public))
    others = _of_no_log(public, logs)
    is_later = any(is_of_its_log(public, f"{LOG}/{name}/checkpoint") for name in others)
    return is_later or PublicLog(public, logs[-1], Tree.of(hashes)).is_beyond()


def _of_no_log(public: Path, logs: Sequence[LogBegun]) -> list[str]:
    """Return the folders of logs that none of these has, nor had before it."""
    known = {Verifier.of(begun.public_line).digits for begun in logs}
    known |= {name for begun in logs for name in begun.earlier}
    return [folder.name for folder in listed(public / LOG) if folder.name not in known]


def log_files(public: Path) -> tuple[str, ...]:
    """Return every file of logs and their proofs beside packages, the newest checkpoints last.

    A draft is none: somebody writes it at this moment, or was killed.
    """
    proofs = public.glob(f"*/*/{_PROOF[0]}*{_PROOF[1]}")
    written_once = (*public.glob(f"{LOG}/*/*/*"), *public.glob(f"{LOG}/*/log.pub"), *proofs)
    paths = (*sorted(written_once), *sorted(public.glob(f"{LOG}/*/checkpoint")))
    names = (path.relative_to(public).as_posix() for path in paths)
    return tuple(name for name in names if not is_in_work(name))


def is_of_its_log(public: Path, path: str) -> bool:
    """Return whether a file of a log is what the key beside it signed, or follows from that."""
    _, folder, kind, *_ = path.split("/")
    line = _text(public / LOG / folder / "log.pub")
    try:
        origin = Verifier.of(line).name
    except ValueError:
        return False
    log = PublicLog(public, LogBegun(0, origin, line), Tree.of(()))
    return log.folder.name == folder and log.is_own(kind, public / path)


def _notes(public: Path) -> Iterator[tuple[Checkpoint, Path]]:
    """Yield what the note beside each package names, and where its proof goes."""
    for _, period in period_folders(public):
        for file in listed(period.path):
            if file.name.startswith(_NOTE[0]) and file.name.endswith(_NOTE[1]):
                checkpoint = Note.read(Path(file.path)).checkpoint
                revision = file.name.removeprefix(_NOTE[0]).removesuffix(_NOTE[1])
                if checkpoint is not None:
                    yield checkpoint, Path(period.path) / f"{_PROOF[0]}{revision}{_PROOF[1]}"


def _proofs(public: Path) -> Iterator[Path]:
    """Yield every proof of the zone: beside packages, and in them."""
    for _, period in period_folders(public):
        for file in listed(period.path):
            if file.name.startswith(_PROOF[0]) and file.name.endswith(_PROOF[1]):
                yield Path(file.path)
    for _, package in release_folders(public):
        if (package / PACKAGE_PROOF).is_file():
            yield package / PACKAGE_PROOF


def _in_proofs(public: Path) -> Iterator[str]:
    """Yield the checkpoint of every proof of the zone."""
    for proof in map(_proof, _proofs(public)):
        if proof is not None:
            yield proof.checkpoint


def _is_of(proof: Proof | None, note: Checkpoint) -> bool:
    """Return whether a proof beside a package is one of the entry that its note names."""
    return proof is not None and proof.index == note.sequence - 1


def _is_owed(path: Path, proof: Proof) -> bool:
    """Return whether a proof is not there, ends early, or is of an entry that a note named before.

    What else stands in its place somebody put there, and is for people to look at.
    """
    return _proof(path) is not None or str(proof).startswith(_text(path))


def _proof(path: Path) -> Proof | None:
    """Read a proof, whose checkpoint reads too; None if it is none."""
    try:
        proof = parse_proof(_text(path))
        parse_checkpoint(proof.checkpoint)
    except ValueError:
        return None
    return proof


def _text(path: Path) -> str:
    """Return what a file holds, with marks for what is no text; nothing where it cannot be read."""
    try:
        return content_of(path).decode(errors="replace")
    except OSError:
        return ""
