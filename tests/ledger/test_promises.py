"""Every promise of the ledger holds on every store."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ledger_rules import PROMISES

from turnstile.ledger.ledger import Ledger


@pytest.mark.parametrize("promise", PROMISES, ids=lambda rule: rule.__name__)
def test_the_ledger_keeps_its_promise(promise: Callable[[Ledger], None], ledger: Ledger) -> None:
    promise(ledger)
    assert ledger.verify() == ()
