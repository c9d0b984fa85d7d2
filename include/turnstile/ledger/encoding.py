"""Canonical bytes of facts, and how events, postings and caps are written in them. Pure.

Canonical JSON: keys sorted, no white space, UTF-8, integers and strings only (a float is refused,
fractions are strings). What version 1 of a fact means never changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Any, NoReturn

from turnstile.ledger.balances.amounts import Cap
from turnstile.privacy.accounts import Posting
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import Block, NeighboringRelation, ProtectionUnit


def canonical(value: object) -> str:
    """Return the one text that stands for a value.

    Raises:
        TypeError: the value holds a float, or something JSON does not know.

    Examples:
        >>> canonical({"b": 1, "a": ["x", None]})
        '{"a":["x",null],"b":1}'
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    json.loads(text, parse_float=_refuse_float, parse_constant=_refuse_float)
    return text


def _refuse_float(_: str) -> NoReturn:
    """Stop at a number with a point, an exponent, or none at all."""
    msg = "a float has no place in the ledger; write an integer or a fraction"
    raise TypeError(msg)


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def encode_event(event: DrawEvent) -> dict[str, Any]:
    """Write a draw event so that its loss can be computed again in ten years."""
    # Keys of later versions are written where they say something: older facts stay as they are.
    later: dict[str, Any] = {} if event.joint is None else {"joint": event.joint}
    if event.own_records:
        later["own_records"] = True
    if event.mechanism is not None:
        later["mechanism"] = event.mechanism
    if event.step > 1:
        later["step"] = event.step
    if event.carried:
        later["carried"] = [[str(day), multiple] for day, multiple in event.carried]
    return {
        "table": event.table,
        "statistic": event.statistic,
        "noise": event.noise.value,
        "scale": str(event.scale),
        "delta": str(event.delta),
        "threshold": event.threshold,
        "blocks": [[str(b.service_date), b.mode, b.batch] for b in event.blocks],
        "sensitivities": [
            [unit.value, None if s is None else [s.l0, s.l1, s.l2_squared, s.linf]]
            for unit, s in event.sensitivities
        ],
        **later,
    }


def decode_event(written: Mapping[str, Any]) -> DrawEvent:
    """Read a draw event back, equal to the one that was written."""
    return DrawEvent(
        table=written["table"],
        statistic=written["statistic"],
        noise=NoiseFamily(written["noise"]),
        scale=_fraction(written["scale"]),
        blocks=tuple(Block(date.fromisoformat(d), m, b) for d, m, b in written["blocks"]),
        sensitivities=tuple(
            (ProtectionUnit(unit), None if bounds is None else Sensitivity(*bounds))
            for unit, bounds in written["sensitivities"]
        ),
        delta=_fraction(written["delta"]),
        threshold=written["threshold"],
        joint=written.get("joint"),
        own_records=written.get("own_records", False),
        mechanism=written.get("mechanism"),
        step=written.get("step", 1),
        carried=tuple((date.fromisoformat(day), n) for day, n in written.get("carried", ())),
    )


@lru_cache(maxsize=1024)
def _fraction(text: str) -> Fraction:
    """Read a fraction; the draws of a release share a few."""
    return Fraction(text)


def encode_posting(posting: Posting) -> list[Any]:
    """Write a posting as `[unit, scope, epsilon_micro, rho_nano, delta_femto]`."""
    return [
        posting.unit.value,
        posting.scope,
        posting.epsilon_micro,
        posting.rho_nano,
        posting.delta_femto,
    ]


def decode_posting(written: list[Any]) -> Posting:
    """Read a posting back."""
    unit, scope, epsilon_micro, rho_nano, delta_femto = written
    return Posting(
        unit=ProtectionUnit(unit),
        scope=scope,
        epsilon_micro=epsilon_micro,
        rho_nano=rho_nano,
        delta_femto=delta_femto,
    )


def encode_cap(cap: Cap) -> dict[str, Any]:
    """Write a cap."""
    return {
        "unit": cap.unit.value,
        "relation": cap.relation.value,
        "epsilon_micro": cap.epsilon_micro,
        "rho_nano": cap.rho_nano,
        "delta_femto": cap.delta_femto,
        "window_weeks": cap.window_weeks,
    }


def decode_cap(written: Mapping[str, Any]) -> Cap:
    """Read a cap back."""
    return Cap(
        unit=ProtectionUnit(written["unit"]),
        relation=NeighboringRelation(written["relation"]),
        epsilon_micro=written["epsilon_micro"],
        rho_nano=written["rho_nano"],
        delta_femto=written["delta_femto"],
        window_weeks=written["window_weeks"],
    )
