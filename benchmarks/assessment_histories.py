"""Risks of histories beside simulated attackers: corrections, two programmes, gaps, burned draws.

Each history is charged to a real ledger. The attacker draws every charged draw again with the
product's noise, with one unit in it or not, and guesses by the likelihood of all numbers together.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from cards_of_weeks import History, shipped

from turnstile.assessment.attacks.presence import log_ratios
from turnstile.assessment.attacks.risk import Forecast, Span, UnitRisk, forecast
from turnstile.ledger.balances.charged_releases import ChargedRelease
from turnstile.ledger.records import ReleaseKey
from turnstile.privacy.accounts import vectors
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import VEHICLE_UNITS, ProtectionUnit, scope_of
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServiceWeek

CANARIES = 60_000
_POOL = 100_000
_WORKDAYS = 5
_WEEK = ServiceWeek(2016, 30)


def _uncapped(name: str) -> Programme:
    """A shipped programme with caps that any history fits."""
    known = shipped(name)
    caps = (
        replace(cap, **{n: 1000 * a for n in ("epsilon", "rho") if (a := getattr(cap, n))})
        for cap in known.caps
    )
    return replace(known, caps=tuple(caps))


def _corrections(ledger: History) -> None:
    """A week, and the next one with a correction."""
    ledger.released(_uncapped("opal"), _WEEK.plus(-1))
    ledger.released(_uncapped("opal"), _WEEK)
    ledger.released(_uncapped("opal"), _WEEK, 1)


def _two_programmes(ledger: History) -> None:
    """Two programmes of one group, and a correction of the other."""
    ledger.released(_uncapped("opal_flows"), _WEEK)
    ledger.released(_uncapped("opal_flows"), _WEEK, 1)
    ledger.released(_uncapped("opal"), _WEEK)


def _gaps(ledger: History) -> None:
    """A week that was withdrawn, two that were skipped, a burned draw."""
    ledger.released(_uncapped("opal"), _WEEK.plus(-3))
    key = ReleaseKey("opal", str(_WEEK.plus(-3)))
    ledger.ledger.withdraw(key, person="ada", reason="wrong stops")
    ledger.burned(_uncapped("opal"), _WEEK)
    ledger.released(_uncapped("opal"), _WEEK)


def _year(ledger: History) -> None:
    """Weeks that carry those before along."""
    for number in (-2, -1, 0):
        ledger.released(_uncapped("opal_year"), _WEEK.plus(number))


def _buses(ledger: History) -> None:
    """Buses, a correction, and delays of the same week."""
    ledger.released(_uncapped("itms"), _WEEK)
    ledger.released(_uncapped("itms"), _WEEK, 1)
    ledger.released(_uncapped("itms_delays"), _WEEK)


HISTORIES: dict[str, tuple[str, Callable[[History], None]]] = {
    "corrections": ("opal", _corrections),
    "two programmes": ("opal", _two_programmes),
    "skipped, withdrawn, burned": ("opal", _gaps),
    "weeks of a year": ("opal_year", _year),
    "buses": ("itms", _buses),
}


@dataclass
class Attacker:
    """Sees every number that a unit could have moved, and knows everything else."""

    canaries: int = CANARIES
    _known: dict[tuple[NoiseFamily, Fraction], NDArray[np.int64]] = field(default_factory=dict)

    def right(self, moved: Iterator[tuple[DrawEvent, list[int]]]) -> float:
        """Return the share of right guesses, of units half of which are there.

        Args:
            moved: draws, and how far the unit moves each of its cells in them.
        """
        is_in = self._coins()
        ratios = np.zeros(self.canaries)
        for event, changes in moved:
            for by in changes:
                values = self._noise(event) + np.where(is_in, by, 0)
                ratios += log_ratios(event.noise, event.scale, values, by)
        guessed = np.where(ratios == 0, self._coins(), ratios > 0)
        return float(np.mean(guessed == is_in))

    def _coins(self) -> NDArray[np.bool_]:
        """Toss a coin for each unit."""
        return np.frombuffer(secrets.token_bytes(self.canaries), dtype=np.uint8) % 2 == 0

    def _noise(self, event: DrawEvent) -> NDArray[np.int64]:
        """Return noise of the product's sampler, drawn again from many draws, with fair signs."""
        kind = (event.noise, event.scale)
        if kind not in self._known:
            dense = replace(event, threshold=None, delta=Fraction(0))
            self._known[kind] = draw(dense, np.zeros(_POOL, dtype=np.int64))
        chosen = np.frombuffer(secrets.token_bytes(4 * self.canaries), dtype="<u4")
        noise = self._known[kind][(chosen >> 1) % _POOL]
        return np.where(chosen & 1, noise, -noise)


def moved_by(
    charged: Sequence[ChargedRelease], unit: ProtectionUnit, scope: str, *, is_worst: bool
) -> Iterator[tuple[DrawEvent, list[int]]]:
    """Yield every charged draw that holds one unit's records, and how far each cell moves."""
    for release in charged:
        for _ in range(release.times):
            touched = [(e, t) for e in release.events if (t := _times(e, unit, scope))]
            if is_worst:
                times = {id(event): t for event, t in touched}
                for vector in vectors([event for event, _ in touched]):
                    yield vector[0], _largest(vector[0], unit, times[id(vector[0])])
            else:
                yield from _of_habits(touched, unit)


def _times(event: DrawEvent, unit: ProtectionUnit, scope: str) -> int:
    """Return how many times a draw holds the counts of a scope."""
    if any(scope_of(unit, block) == scope for block in event.blocks):
        return event.step
    carried = {
        scope_of(unit, replace(block, service_date=day)): times
        for day, times in event.carried
        for block in event.blocks
    }
    return carried.get(scope, 0)


def _bound(event: DrawEvent, unit: ProtectionUnit) -> Sensitivity:
    """Return how far a unit moves a draw; 0 cells without a bound."""
    return dict(event.sensitivities)[unit] or Sensitivity(0, 0, 0, 1)


def _largest(event: DrawEvent, unit: ProtectionUnit, times: int) -> list[int]:
    """Fill cells as far as the sensitivity allows."""
    bound = _bound(event, unit)
    share = Fraction(1) if unit.is_lifetime else Fraction(times, event.step)
    most, cells = round(bound.linf * share), []
    left = bound.l1 if event.noise.record.is_pure else int(bound.l2_squared * share**2)
    while left > 0:
        cell = min(most, left if event.noise.record.is_pure else isqrt(left))
        cells.append(cell)
        left -= cell if event.noise.record.is_pure else cell**2
        if cell == 0:
            return cells[:-1]
    return cells


def _of_habits(
    touched: Sequence[tuple[DrawEvent, int]], unit: ProtectionUnit
) -> Iterator[tuple[DrawEvent, list[int]]]:
    """Let a commuter make two trips on five days, a bus call in half of its cells every day."""
    days = sorted({block.service_date for event, _ in touched for block in event.blocks})
    out = set(days) if unit in VEHICLE_UNITS else set(days[:_WORKDAYS])
    for event, times in touched:
        dates = {block.service_date for block in event.blocks} & out
        if not dates:
            continue
        if unit in VEHICLE_UNITS:
            bound = _bound(event, ProtectionUnit.BUS_DAY)
            by, cells = max(1, bound.linf // 2), max(1, bound.l0 // 2)
        else:
            by, cells = times, 1 if unit is ProtectionUnit.TRIP else 2
            if unit.is_lifetime:
                by += sum(carried for _, carried in event.carried)
        one_day = unit.days_max in (0, 1)
        yield event, [by * (1 if one_day else len(dates))] * cells


def risk_of(name: str, folder: Path) -> tuple[Forecast, tuple[ChargedRelease, ...]]:
    """Charge a history, and return what is said of its last release, and all that was charged."""
    programme, charge = HISTORIES[name]
    ledger = History(folder)
    charge(ledger)
    charged = ledger.ledger.charged(shipped(programme).family)
    last = [release for release in charged if release.key.programme == programme][-1]
    return forecast(last.events, charged, (1, 52)), charged


def simulated(risk: UnitRisk, charged: Sequence[ChargedRelease], attacker: Attacker) -> float:
    """Return the share of right guesses on the scope of the last week that shows most."""
    events = [event for release in charged for event in release.events]
    days = {block.service_date for event in events for block in event.blocks}
    last = ServiceWeek.containing(max(days))
    scopes = {
        scope_of(risk.unit, block)
        for event in events
        for block in event.blocks
        if block.service_date in last.days
    }
    cells = {
        scope: sum(len(c) for _, c in moved_by(charged, risk.unit, scope, is_worst=risk.is_worst))
        for scope in scopes
    }
    scope = max(cells, key=lambda name: (cells[name], name))
    return attacker.right(moved_by(charged, risk.unit, scope, is_worst=risk.is_worst))


def histories() -> float:
    """Print stated and simulated chances of every unit; return the farthest difference."""
    attacker, farthest = Attacker(), 0.0
    print("| history | unit | who | releases | stated | simulated | this release alone |")
    print("|---|---|---|---|---|---|---|")
    for name in HISTORIES:
        with TemporaryDirectory() as folder:
            known, charged = risk_of(name, Path(folder))
        for risk in known.units:
            if risk.span is not Span.LEDGER or risk.guess_right is None:
                continue
            share = simulated(risk, charged, attacker)
            farthest = max(farthest, abs(share - risk.guess_right))
            print(
                f"| {name} | {risk.unit} | {'worst' if risk.is_worst else 'typical'} | "
                f"{risk.releases} | {risk.guess_right:.4f} | {share:.4f} | {risk.alone or 0:.4f} |",
                flush=True,
            )
    print(f"\nfarthest {farthest:.4f} (bar: .01); deviation of a share {0.5 / CANARIES**0.5:.4f}")
    return farthest
