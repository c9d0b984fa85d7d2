"""Of which files releases are, by what a deployment still holds when its ledger is lost.

Two budget groups over the same files are two budgets for the same people. Which group reads which
files stands in entries; where those are gone, the programmes' files and the private zone know.
"""

from __future__ import annotations

from contextlib import suppress

from turnstile.errors import TurnstileError
from turnstile.ledger.custody.recovery import Delivered
from turnstile.ledger.records import ReleaseKey
from turnstile.programme.loading import load_programme, programme_files
from turnstile.release.zones import BOUNDING_KEY, commitment, known_secrets, landing_place
from turnstile.settings import Settings


def delivered_files(settings: Settings) -> Delivered:
    """Return landing patterns by programme, and commitments to the files of a release.

    A programme whose file cannot be read has none, nor has a release whose private data are gone.
    """
    landing = {}
    for file in programme_files(settings.include):
        with suppress(TurnstileError):
            source = load_programme(file.name, settings.include).source
            landing[file.name] = landing_place(settings, source.landing)

    def files(key: ReleaseKey) -> tuple[str, ...]:
        recorded = settings.private / str(key) / "files"
        if not recorded.is_file() or not (settings.private / BOUNDING_KEY).is_file():
            return ()
        digests = recorded.read_text().split()
        return tuple(commitment(k, digest) for k in known_secrets(settings) for digest in digests)

    return Delivered(landing, files)
