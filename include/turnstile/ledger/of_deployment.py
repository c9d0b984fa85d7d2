"""The deployment's own ledger, opened with its witnesses and zones as the settings name them."""

from __future__ import annotations

import atexit
import logging
import shutil
import tempfile

from turnstile.errors import IntegrityError
from turnstile.ledger.custody.traces import traces
from turnstile.ledger.ledger import Ledger
from turnstile.settings import Settings, system_clock

_log = logging.getLogger("turnstile")


def open_ledger(settings: Settings, *, read_only: bool = False, new: bool = False) -> Ledger:
    """Open the ledger of a deployment.

    Args:
        settings: where it lies; the home is made if need be.
        read_only: make nothing and change nothing.
        new: whether it may be made where one is lost: to bring it back.

    Raises:
        IntegrityError: it is gone, and what it released is there: an empty one would hide that.
    """
    if not read_only:
        if not new:
            require_not_lost(settings)
        settings.home.mkdir(parents=True, exist_ok=True)
    return Ledger.open(
        settings.ledger_url,
        clock=system_clock,
        witnesses=settings.witness,
        public=settings.public,
        embargoed=settings.embargoed,
        key=settings.ledger_key,
        read_only=read_only,
    )


def require_not_lost(settings: Settings) -> None:
    """Refuse where there is no ledger, and something that one released.

    Raises:
        IntegrityError: it is gone.
    """
    file = settings.ledger_file
    if file is None or file.exists() or not traces(settings.public, settings.embargoed):
        return
    raise IntegrityError(
        f"{file}: the ledger is gone, but what it released is there; restore it, or bring it back "
        "by turnstile ledger recover"
    )


def open_ledger_to_look(settings: Settings) -> Ledger:
    """Open the ledger to read; where there is none, an empty one elsewhere, and nothing is made.

    A mistyped home gets no ledger, which would verify and forget everything that was released.
    """
    file = settings.ledger_file
    if file is None or file.exists():
        return open_ledger(settings)
    require_not_lost(settings)
    _log.warning("there is no ledger at %s: shown is what a first release would find", file)
    folder = tempfile.mkdtemp(prefix="turnstile-no-ledger-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Ledger.open(f"sqlite:///{folder}/empty.db", clock=system_clock)
