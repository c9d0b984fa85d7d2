"""Release cards and a ledger of weeks that were charged as the product charges them, undrawn."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from turnstile.ledger.encoding import encode_event
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Attempt, Bindings, ReleaseKey, Request
from turnstile.privacy.events import DrawEvent
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import Programme
from turnstile.publishing.card import stated_losses
from turnstile.release.ledger_caps import ledger_cap
from turnstile.release.plan import ReleasePlan, make_plan
from turnstile.service_calendar import ServicePeriod

INCLUDE = Path(__file__).parents[2] / "include"


@cache
def shipped(name: str) -> Programme:
    return load_programme(name, INCLUDE)


@dataclass
class History:
    """A ledger in a folder, and the cards of what was published.

    Args:
        folder: of the ledger, and of the cards and the export that `write` leaves.
        changed: what a slip of the product makes of each planned draw.
        cards: by release key, in the order of publication.
    """

    folder: Path
    changed: Callable[[DrawEvent], DrawEvent] = lambda event: event
    cards: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        url = f"sqlite:///{self.folder / 'ledger.sqlite'}"
        self.ledger = Ledger.open(url, clock=lambda: datetime(2018, 1, 9, 12, tzinfo=UTC))

    def planned(
        self, programme: Programme, period: ServicePeriod, revision: int = 0
    ) -> ReleasePlan:
        """Plan a period."""
        plan = make_plan(programme, load_domain(programme, INCLUDE), period, revision=revision)
        return replace(plan, events=tuple(map(self.changed, plan.events)))

    def begun(self, plan: ReleasePlan, programme: Programme) -> Attempt:
        """Reserve and charge."""
        request = _request(plan, programme)
        reserved = self.ledger.reserve(request)
        return self.ledger.begin_draw(reserved.attempt_id, request.bindings)

    def burned(self, programme: Programme, period: ServicePeriod, revision: int = 0) -> None:
        """Charge a draw that nothing comes of."""
        attempt = self.begun(self.planned(programme, period, revision), programme)
        self.ledger.burn(attempt.attempt_id, "power cut")

    def released(self, programme: Programme, period: ServicePeriod, revision: int = 0) -> Any:
        """Charge, seal and publish; return the card."""
        plan = self.planned(programme, period, revision)
        key = ReleaseKey(programme.name, str(period), revision)
        attempt = self.begun(plan, programme)
        self.ledger.seal(attempt.attempt_id, f"artefact of {key}")
        card = stated_losses(programme, plan, ledger=self.ledger, key=key)
        self.ledger.publish(key, f"manifest of {key}")
        self.cards[str(key)] = json.loads(json.dumps(card))
        return self.cards[str(key)]

    def write(self) -> list[str]:
        """Leave cards and export in the folder; return the arguments that name them."""
        for key, card in self.cards.items():
            path = self.folder / "public" / key / "release_card.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(card))
        if not (self.folder / "export").exists():
            self.ledger.export(self.folder / "export")
        return [str(self.folder / "public"), "--ledger", str(self.folder / "export")]


def _request(plan: ReleasePlan, programme: Programme) -> Request:
    """What the product asks of the ledger for a plan."""
    return Request(
        key=ReleaseKey(plan.programme, str(plan.week), plan.revision),
        family=plan.family,
        bindings=Bindings(plan.programme_digest, plan.domain_digest, "snapshot"),
        plan_digest=plan.digest,
        events=tuple(encode_event(event) for event in plan.events),
        postings=plan.postings,
        week=str(plan.charged_in),
        first_week=str(plan.week.weeks[0]),
        caps=tuple(map(ledger_cap, programme.caps)),
        reason="late file" if plan.revision else None,
        approver="release officer" if plan.revision else None,
    )
