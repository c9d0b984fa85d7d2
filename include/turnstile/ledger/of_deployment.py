"""The deployment's own ledger, opened with its witnesses and zones as the settings name them."""

from __future__ import annotations

import atexit
import logging
import shutil
import tempfile

from turnstile.errors import InputError, IntegrityError
from turnstile.ledger.custody.traces import traces
from turnstile.ledger.database.damaged_database import newest_aside, remains_of
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
    is_needed = not (read_only or new)
    if is_needed and not may_hold(settings):
        require_not_lost(settings)
    if not read_only:
        _require_named(settings)
        settings.home.mkdir(parents=True, exist_ok=True)
    ledger = Ledger.open(
        settings.ledger_url,
        clock=system_clock,
        witnesses=settings.witness,
        public=settings.public,
        embargoed=settings.embargoed,
        key=settings.ledger_key,
        read_only=read_only,
    )
    if is_needed:
        require_not_lost(settings, ledger.head()[0])
    return ledger


def require_not_lost(settings: Settings, entries: int = 0) -> None:
    """Refuse where a ledger holds nothing, or is not there, and something is that one released.

    Or what it was, moved aside as damaged: a recovery that was stopped left it there.

    Args:
        settings: where both lie.
        entries: that the ledger holds.

    Raises:
        InputError: the settings name another place than the home's own ledger lies in.
        IntegrityError: it is gone.
    """
    if entries or not (traces(settings.public, settings.embargoed) or _is_set_aside(settings)):
        return
    _require_named(settings)
    raise IntegrityError(
        f"{settings.ledger_file or 'the database'}: the ledger is gone, or holds nothing, but what "
        "it released is there; restore it, or bring it back: turnstile ledger recover --reason TEXT"
    )


def _is_set_aside(settings: Settings) -> bool:
    """Return whether a damaged ledger was moved aside, and its recovery did not come to its end."""
    aside = None if settings.ledger_file is None else newest_aside(settings.ledger_file)
    if aside is None:
        return False
    remains = remains_of(aside)
    return any((remains.entries, remains.attempts))


def may_hold(settings: Settings) -> bool:
    """Return whether a ledger can be asked: a server, or a file that is there and not empty."""
    file = settings.ledger_file
    return file is None or (file.exists() and file.stat().st_size > 0)


def _require_named(settings: Settings) -> None:
    """Refuse a setting that names no ledger where the home has its own: a second one would charge.

    Raises:
        InputError: so it is.
    """
    beside = settings.home / "ledger.sqlite"
    if may_hold(settings) or beside == settings.ledger_file or not beside.exists():
        return
    rule = (
        f"names no ledger, and {beside} is one: mend the setting; if that one is out of use, move "
        "it away"
    )
    raise InputError(where="TURNSTILE_LEDGER_URL", field="ledger", rule=rule)


def open_ledger_to_look(settings: Settings) -> Ledger:
    """Open the ledger to read; where there is none, an empty one elsewhere, and nothing is made.

    A mistyped home gets no ledger, which would verify and forget everything that was released.
    """
    if may_hold(settings):
        return open_ledger(settings)
    require_not_lost(settings)
    _log.warning(
        "there is no ledger at %s: shown is what a first release would find", settings.ledger_file
    )
    folder = tempfile.mkdtemp(prefix="turnstile-no-ledger-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Ledger.open(f"sqlite:///{folder}/empty.db", clock=system_clock)
