"""Ten mistakes that a simulated world has to find, each put into the house while a block runs."""

# ruff: noqa: ARG001 - in the place of functions that are given more
from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sqlalchemy import text

from turnstile import durable_files
from turnstile.durable_files import replace_durably
from turnstile.ledger import attempts
from turnstile.ledger.charging import ChargingLedger
from turnstile.ledger.custody.custody import Custody
from turnstile.ledger.database import store
from turnstile.ledger.records import Attempt
from turnstile.ledger.states import Transition
from turnstile.pipeline.draw import charged_draw
from turnstile.pipeline.private_zone import retention
from turnstile_stores import unit_zone
from turnstile_stores.unit import UnitState
from turnstile_stores.unit_zone import UnitZone

Planted = Callable[[], AbstractContextManager[Any]]
_BEGIN, _SEAL, _TRANSITION = (
    ChargingLedger.begin_draw,
    ChargingLedger.seal,
    attempts.make_transition,
)


def charge_after_draw() -> AbstractContextManager[Any]:
    """The draw is charged just before its seal."""
    asked: dict[str, tuple[Any, dict[str, Any]]] = {}

    def begin(self: Any, attempt_id: str, bindings: Any, **other: Any) -> Attempt:
        asked[attempt_id] = (bindings, other)
        return Attempt.__new__(Attempt)

    def seal(self: Any, attempt_id: str, digest: str) -> Attempt:
        bindings, other = asked[attempt_id]
        _BEGIN(self, attempt_id, bindings, **other)
        return _SEAL(self, attempt_id, digest)

    return patch.multiple(ChargingLedger, begin_draw=begin, seal=seal)


def refund_of_a_burned_draw() -> AbstractContextManager[Any]:
    """A draw that is burned gives back what it cost."""

    def move(connection: Any, at: str, attempt: Any, transition: Transition, **words: str) -> Any:
        made = _TRANSITION(connection, at, attempt, transition, **words)
        if transition is Transition.BURN:
            for guard in ("account_no_refund", "account_keeps"):
                connection.execute(text(f"DROP TRIGGER IF EXISTS {guard}"))
            connection.execute(
                text("UPDATE account SET spent_epsilon_micro = 0 WHERE unit = 'bus_day'")
            )
        return made

    return patch.object(attempts, "make_transition", move)


def no_look_at_traces() -> AbstractContextManager[Any]:
    """Nobody asks whether an older ledger was put back."""
    return patch.multiple(
        Custody, require_intact=lambda _: frozenset(), require_not_behind=lambda _: None
    )


def unlink_without_guard() -> AbstractContextManager[Any]:
    """A fetch removes what its index does not name, sealed or not, whichever index it is."""

    def clear(self: UnitZone, unit: str, name: str, *_: UnitState) -> None:
        (self._place(unit) / name).unlink()

    return _two(
        patch.object(UnitZone, "_clear", clear),
        patch.object(UnitState, "has_seen_more_than", lambda *_: False),
        patch.object(unit_zone, "_gone", lambda *_: []),
        patch.object(UnitZone, "_units_seen", lambda _: []),
    )


def older_index_trusted() -> AbstractContextManager[Any]:
    """An index of a backup is taken for the newest."""
    return _two(
        patch.object(UnitState, "has_seen_more_than", lambda *_: False),
        patch.object(unit_zone, "_gone", lambda *_: []),
        patch.object(UnitZone, "_units_seen", lambda _: []),
    )


def fsync_forgotten() -> AbstractContextManager[Any]:
    """Files are renamed into their place before they are on the disk."""

    def write(path: Path, content: bytes, mode: int = 0o644) -> None:
        draft = path.with_name(f".{path.name}.draft")
        draft.write_bytes(content)
        draft.replace(path)

    return _two(
        patch("turnstile.release.zones.replace_durably", write),
        patch.object(durable_files, "sync_folder", lambda _: None),
    )


def clock_believed() -> AbstractContextManager[Any]:
    """Retention goes by the clock, however far it jumped."""

    def known(_: object, now: datetime) -> datetime:
        return now

    return patch.object(retention, "clock_known_until", known)


def a_changed_file_believed() -> AbstractContextManager[Any]:
    """Counts go as soon as a programme's file says so, by mistake or not."""
    return patch.object(retention.Retention, "_changed_since", lambda *_: "")


def drawn_again_without_a_charge() -> AbstractContextManager[Any]:
    """A draw that died is taken up under its charge, though it had begun to make noise."""
    return patch.object(attempts, "has_started", lambda *_: False)


class _two:  # noqa: N801 - reads as a function
    """Several patches as one."""

    def __init__(self, *patches: AbstractContextManager[Any]) -> None:
        self._patches = patches

    def __enter__(self) -> None:
        for patcher in self._patches:
            patcher.__enter__()

    def __exit__(self, *raised: object) -> None:
        for patcher in reversed(self._patches):
            patcher.__exit__(*raised)


def caps_of_windows_forgotten() -> AbstractContextManager[Any]:
    """No cap refuses anything."""
    return patch("turnstile.ledger.balances.accounts.excess_of", lambda *_: None)


PLANTED: Mapping[str, Planted] = {
    mistake.__name__: mistake
    for mistake in (
        charge_after_draw,
        refund_of_a_burned_draw,
        no_look_at_traces,
        unlink_without_guard,
        older_index_trusted,
        fsync_forgotten,
        clock_believed,
        a_changed_file_believed,
        drawn_again_without_a_charge,
        caps_of_windows_forgotten,
    )
}
__all__ = ["PLANTED", "charged_draw", "replace_durably", "store"]
