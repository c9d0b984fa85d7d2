"""The deployment's own ledger, opened with its witnesses and zones as the settings name them."""

from __future__ import annotations

from turnstile.ledger.ledger import Ledger
from turnstile.settings import Settings, system_clock


def open_ledger(settings: Settings, *, read_only: bool = False) -> Ledger:
    """Open the ledger of a deployment.

    Args:
        settings: where it lies; the home is made if need be.
        read_only: make nothing and change nothing.
    """
    if not read_only:
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
