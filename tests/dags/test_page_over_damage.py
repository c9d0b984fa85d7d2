"""The Privacy budget page over a ledger that is gone, another one or damaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lost_ledgers import LOSSES
from small_deployment import Deployment

DAMAGED = {"no database", "its entries", "its attempts", "its accounts"}
EMPTY = {"gone", "cut to nothing", "a new one"}


@pytest.mark.parametrize("loss", sorted(DAMAGED | EMPTY))
def test_a_page_over_a_lost_ledger_says_what_to_do(
    loss: str,
    published: Deployment,
    mounted_page: Callable[[], Any],
    bearer: Callable[[str], dict[str, str]],
) -> None:
    """It said that nothing is here, as of an address that names nothing (404)."""
    LOSSES[loss](published.home / "ledger.sqlite")
    site = mounted_page()
    answer = site.get("/privacy-budget/", headers=bearer("admin"))
    if loss in EMPTY:
        assert answer.status_code == 200
        assert "The ledger disagrees: " in answer.text
        return
    assert answer.status_code == 503
    assert "database is damaged" in answer.text
    assert "turnstile ledger recover --reason TEXT" in answer.text
    assert "turnstile doctor" in answer.text
    data = site.get("/privacy-budget/data/balance.json", headers=bearer("admin"))
    assert "is damaged" not in data.text or data.status_code == 503


def test_a_page_that_goes_on_over_another_ledger_shows_that_one(
    published: Deployment,
    mounted_page: Callable[[], Any],
    bearer: Callable[[str], dict[str, str]],
) -> None:
    """It showed the one that it had read, "in order", until the API server began anew."""
    site = mounted_page()
    assert (
        "The ledger disagrees: " not in site.get("/privacy-budget/", headers=bearer("admin")).text
    )
    LOSSES["a new one"](published.home / "ledger.sqlite")
    answer = site.get("/privacy-budget/", headers=bearer("admin"))
    assert "the ledger is gone, or holds nothing" in answer.text
    assert "in order" not in answer.text
