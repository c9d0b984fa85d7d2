"""What a reservation promises, recomputed from its own draws: plan digest and losses. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from turnstile.ledger.balances.amounts import COORDINATES
from turnstile.ledger.balances.changes import postings_in
from turnstile.ledger.encoding import decode_event
from turnstile.ledger.entries import Entry
from turnstile.ledger.records import ReleaseKey
from turnstile.privacy.accounts import Posting, postings


def plan_digest(
    programme_digest: str,
    domain_digest: str,
    period: str,
    revision: int,
    events: Sequence[Mapping[str, Any]],
) -> str:
    """Return the SHA-256 of everything that a release promises.

    Args:
        programme_digest: of the programme's content.
        domain_digest: of the public cells.
        period: service week, or FIRST..LAST.
        revision: 0, or the number of a correction.
        events: draws, encoded by `encoding.encode_event`, in the order of drawing.
    """
    content = {
        "programme": programme_digest,
        "domain": domain_digest,
        "week": period,
        "revision": revision,
        "events": list(events),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def promise_problems(entry: Entry) -> Iterator[str]:
    """Yield what a `reserved` or `loss_declared` entry states otherwise than its events do."""
    body = entry.body
    try:
        events = tuple(decode_event(event) for event in body["events"])
        key = ReleaseKey.parse(body["key"])
    except (KeyError, TypeError, ValueError):
        yield "states draws that cannot be read"
        return
    bound = (body["programme_digest"], body["domain_digest"])
    digest = plan_digest(*bound, key.period, key.revision, body["events"])
    if digest != body["plan_digest"]:
        yield "its plan digest is not that of its draws"
    stated = {(posting.unit, posting.scope): posting for posting in postings_in(body)}
    for needed in postings(events):
        if not _covers(stated.get((needed.unit, needed.scope)), needed):
            yield f"states less loss for {needed.unit} ({needed.scope}) than its draws cost"
            return
    if not events and stated:
        yield "states a loss and no draw"


def _covers(stated: Posting | None, needed: Posting) -> bool:
    """Return whether a posting is at least what its draws cost; None is infinite."""
    if stated is None:
        return False
    pairs = [(getattr(stated, name), getattr(needed, name)) for name in COORDINATES]
    return all(amount is None or (least is not None and amount >= least) for amount, least in pairs)
