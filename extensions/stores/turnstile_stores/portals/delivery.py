"""Brings every release of a programme to a portal; the ledger notes it once all was read back.

A release that the ledger knows to be there is not sent again; `verify` reads it back again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from turnstile.errors import InputError
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.weeks import PublishedRevision
from turnstile.publishing.series.packages import is_here
from turnstile_stores.portals import sending, site
from turnstile_stores.portals.addresses import CKAN, FOLDER, PortalAddress, portal_address
from turnstile_stores.portals.ckan import Ckan
from turnstile_stores.portals.folder import FolderStore
from turnstile_stores.portals.s3 import S3Store
from turnstile_stores.portals.store import Store


@dataclass(frozen=True, slots=True)
class Delivery:
    """A programme and the portal that it goes to.

    Args:
        programme: name.
        portal: where to.
        ledger: which says what is published, and records what arrived.
        public: zone of published packages, with the series.
        token: of a CKAN portal.
        say: called with every release that arrived.
    """

    programme: str
    portal: PortalAddress
    ledger: Ledger
    public: Path
    token: str | None
    say: Callable[[str], None]

    def send(self) -> int:
        """Send what is not there yet, then series and pages; return how many releases were sent.

        Raises:
            IntegrityError: the portal holds something else under a name of a release.
            RefusedError: it shows a newer state of the ledger.
            PortalError: it does not answer.
        """
        published = self._published()
        missing = [
            candidate
            for candidate in published
            if candidate.withdrawn is None and not self._is_delivered(candidate)
        ]
        if self.portal.kind == CKAN:
            catalogue = self._catalogue()
            for revision in missing:
                catalogue.send_release(self._package(revision), str(revision.key))
                self._arrived(revision)
            for revision in published:
                if revision.withdrawn is not None and self._is_delivered(revision):
                    catalogue.withdraw(str(revision.key), revision.withdrawn.public_note)
            return len(missing)
        store = self._store()
        for revision in missing:
            package, key = self._package(revision), str(revision.key)
            sending.send_release(store, self.portal.name, package, key)
            self._arrived(revision)
        list_of = self.ledger.public_list
        site.send_site(store, self.portal.name, self.public, self.programme, list_of)
        site.send_log(store, self.portal.name, self.public, list_of())
        return len(missing)

    def verify(self) -> int:
        """Read every release back that the ledger knows to be there; return how many there are.

        Raises:
            IntegrityError: the portal holds other bytes.
            PortalError: it does not answer, or lacks a file.
        """
        there = [candidate for candidate in self._published() if self._is_delivered(candidate)]
        for revision in there:
            package, key = self._package(revision), str(revision.key)
            if self.portal.kind == CKAN:
                self._catalogue().verify_release(package, key)
            else:
                sending.verify_release(self._store(), self.portal.name, package, key)
            self.say(f"{key}: every byte is as published")
        if there and self.portal.kind != CKAN:
            site.verify_site(self._store(), self.portal.name, self.programme)
        return len(there)

    def _published(self) -> list[PublishedRevision]:
        """Return every published revision, oldest first, withdrawn ones too."""
        revisions = [
            revision
            for week in self.ledger.weeks(self.programme).values()
            for revision in week.published
        ]
        if not revisions:
            rule = "has no published release; release a week first"
            raise InputError(where="turnstile portal", field=self.programme, rule=rule)
        return revisions

    def _is_delivered(self, revision: PublishedRevision) -> bool:
        """Whether the ledger says that a release is at the portal."""
        return self.portal.name in self.ledger.deliveries(revision.key)

    def _package(self, revision: PublishedRevision) -> Path:
        """Return the package of a release here.

        Raises:
            IntegrityError: it is another one than the ledger names.
        """
        is_here(revision, self.public)
        return self.public / str(revision.key)

    def _arrived(self, revision: PublishedRevision) -> None:
        """Tell the ledger, and whoever listens."""
        self.ledger.record_delivery(revision.key, self.portal.name, revision.manifest_sha256)
        self.say(f"{revision.key}: at {self.portal.name}, every byte read back")

    def _store(self) -> Store:
        if self.portal.kind == FOLDER:
            return FolderStore(self.portal.folder)
        prefix = self.portal.path.strip("/")
        return S3Store(self.portal.host, prefix, self.portal.options.get("endpoint"))

    def _catalogue(self) -> Ckan:
        options = self.portal.options
        return Ckan(
            self.portal.host,
            organization=options["organization"],
            token=self.token,
            files=options.get("files"),
        )


def delivery(  # noqa: PLR0913, PLR0917 - as the record
    programme: str,
    address: str,
    ledger: Ledger,
    public: Path,
    token: str | None,
    say: Callable[[str], None],
) -> Delivery:
    """Return the delivery of a programme to the portal of an address."""
    return Delivery(programme, portal_address(address), ledger, public, token, say)
