"""The ledger: what every passenger unit has lost, over every week ever released (PRIVACY 1, 3, 6).

One class in four steps, each on the one before: what charges and seals (`charging`, of the trusted
core), what is read (`view`), what people say (`stewardship`), and publication here. One durable
transaction per call; time comes from a clock, signatures from `witness`.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType

from sqlalchemy.engine import Connection

from turnstile.errors import IntegrityError
from turnstile.ledger import attempts
from turnstile.ledger.custody.known_history import read_history
from turnstile.ledger.custody.notes import PUBLIC_KEY
from turnstile.ledger.custody.witness import naming
from turnstile.ledger.custody.zone_index import LOG, Written, write_index
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.parties import LogBegun
from turnstile.ledger.records import Publication, ReleaseKey
from turnstile.ledger.states import ReleaseState, Transition
from turnstile.ledger.stewardship import Stewardship
from turnstile.ledger.tlog.beginning import log_signer
from turnstile.ledger.tlog.checkpoints import Verifier
from turnstile.ledger.tlog.cosigners import Answer, ask_all, cosigners_of
from turnstile.ledger.tlog.merkle import Tree
from turnstile.ledger.tlog.public_log import PublicLog

_log = logging.getLogger("turnstile")
_OF_PACKAGE = ("r{}/manifest.json", "checkpoint-r{}.note", "proof-r{}.tlog-proof")
_RECORDS = {
    EntryKind.PUBLISHED: _OF_PACKAGE,
    EntryKind.LOSS_DECLARED: _OF_PACKAGE,
    EntryKind.WITHDRAWN: ("withdrawn-r{}.json",),
    EntryKind.NO_RELEASE: ("no-release-r{}.json",),
}
"""What stands in the public zone for an entry, in the folder of its period."""
_NOTHING: Mapping[str, str] = MappingProxyType({})
_SEALS = {EntryKind.SEALED, EntryKind.LOSS_DECLARED}


class Ledger(Stewardship):
    """A durable account. Open it with `Ledger.open`."""

    @property
    def has_key(self) -> bool:
        """Something can be signed here."""
        key = self._custody.witnesses.key
        return key is not None and key.exists()

    def sign_payload(self, kind: str, payload: bytes) -> tuple[str, bytes]:
        """Return the ledger's public key and its signature of a payload of a media type.

        Raises:
            InputError: there is no key, or it cannot be read.
        """
        signer = self._custody.witnesses.signer()
        return signer.public_line, signer.sign_payload(kind, payload)

    def publish(self, key: ReleaseKey, manifest_digest: str) -> Publication:
        """Say that a sealed release is public, and write signed checkpoints.

        A second call with the same manifest answers the same.

        Raises:
            IntegrityError: it was published with another manifest.
            RefusedError: nothing is sealed under the key.
        """

        def act(connection: Connection) -> Publication:
            attempt = self._locked(connection, attempts.sealed(connection, key).attempt_id)
            if (
                attempt.state is ReleaseState.PUBLISHED
                and attempt.manifest_digest != manifest_digest
            ):
                raise IntegrityError(
                    f"{key} is published with another manifest; restore the published package, "
                    "or release a revision"
                )
            words = {"manifest_digest": manifest_digest, "zone_index": "signed"}
            self._move(connection, attempt, Transition.PUBLISH, **words)
            public = attempts.publication(connection, key)
            if public is None:  # pragma: no cover - the move wrote it
                raise IntegrityError(f"{key} has no entry of its publication")
            return public

        publication = self._write(act)
        self._custody.adopt()  # the public zone may be another copy than that of the draw
        self._custody.note((key, manifest_digest.removeprefix("sha256:")))
        return publication

    def sign_public_zone(self, series: Mapping[str, str] = _NOTHING) -> tuple[Answer, ...]:
        """Bring log and signed list to what is public now; called after every change of the zone.

        Args:
            series: digests of what this process wrote of series and pages, by path in the zone;
                of a file that nobody says to have written the list of before holds on.

        Returns:
            what each cosigner of the log said, where some are named.

        Raises:
            InputError: the key cannot be read, or the zone cannot be written.
        """
        public = self._custody.witnesses.public
        if public is not None and public.is_dir() and self.has_key:
            with naming(public):
                length, logs = self.head()[0], self._logs()
                log = logs[-1] if logs else None
                proofs = {} if log is None else log.write(self._sign_as(log.begun))
                for left in logs[:-1]:
                    left.join()  # what a killed process owed it: that takes no key
                answers = () if log is None else self._cosigned(log)
                write_index(public, length, self._written({**proofs, **series}), self.sign_payload)
                return answers
        return ()

    def _written(self, made: Mapping[str, str]) -> Written:
        """Return what of the public zone may be signed."""
        told = [entry for entry in self.entries() if entry.kind in _RECORDS]
        published = [entry for entry in told if entry.kind is EntryKind.PUBLISHED]
        of_ledger = {
            f"{entry.key}/manifest.json": entry.body["manifest_digest"].removeprefix("sha256:")
            for entry in published
        }
        parties = self.parties()
        if lines := "".join(parties.key_lines):
            of_ledger[PUBLIC_KEY] = hashlib.sha256(lines.encode()).hexdigest()
        for log in parties.logs:
            path = f"{LOG}/{Verifier.of(log.public_line).digits}/log.pub"
            of_ledger[path] = hashlib.sha256(log.public_line.encode()).hexdigest()
        earlier = {f"{LOG}/{name}/log.pub" for log in parties.logs for name in log.earlier}
        gone = {str(entry.key) for entry in told if entry.kind is EntryKind.WITHDRAWN}
        is_listed = sum("zone_index" in entry.body for entry in published)
        return Written(
            stated=frozenset((*chain.from_iterable(map(_records_of, told)), *earlier)),
            made={**of_ledger, **made},
            trusted=self.trusted_to_list(),
            gone=frozenset(gone | {name.removesuffix(" package") for name in parties.lost}),
            is_first=is_listed <= 1 and is_listed < len(published),
        )

    def _cosigned(self, log: PublicLog) -> tuple[Answer, ...]:
        """Ask the cosigners that are named; none of them delays a publication by its silence."""
        named = cosigners_of(self._custody.witnesses.log_policy)
        answers = tuple(ask_all(log, named)) if named else ()
        for answer in answers:
            _log.log(logging.ERROR if answer.is_alarm else logging.INFO, "%s", answer.sentence)
        return answers

    def proof_of_seal(self, key: ReleaseKey) -> str | None:
        """Return the proof that the seal of a release is in the transparency log.

        None where the ledger has begun no log.

        Args:
            key: of a sealed release.

        Raises:
            InputError: the log's key cannot be read.
        """
        logs = self._logs()
        if not logs:
            return None
        seals = (entry.sequence for entry in self.entries_of(key) if entry.kind in _SEALS)
        return str(logs[-1].proof(max(seals), self._sign_as(logs[-1].begun)))

    def _logs(self) -> list[PublicLog]:
        """Return every log, that in force last; none where there is nowhere to keep them."""
        public, history = self._custody.witnesses.public, self._store.read(read_history)
        if public is None:
            return []
        tree = Tree.of(history.of_entries)
        return [PublicLog(public, begun, tree) for begun in history.parties.logs]

    def _sign_as(self, begun: LogBegun) -> Callable[[str], str]:
        signer = log_signer(self._custody.witnesses, begun)
        return lambda text: signer.note(begun.origin, text)


def _records_of(entry: Entry) -> Iterator[str]:
    """Yield the public files that an entry is stated by."""
    names = _RECORDS.get(entry.kind, ())
    if names and entry.key is not None:
        key = ReleaseKey.parse(entry.key)
        for name in names:
            yield f"{key.programme}/{key.period}/{name.format(key.revision)}"
