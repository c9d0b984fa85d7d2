"""Small releases in memory, of three programmes: exact counts, honest noise, and what spoils it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from turnstile.ledger.records import Attempt, Bindings, ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.programme.domain.public_domain import (
    Dimension,
    ModeCells,
    PublicDomain,
    layout,
    public_domain,
)
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import Programme
from turnstile.release.drawn import Drawn
from turnstile.release.plan import make_plan
from turnstile.release.sealed import Artefact, NoisyTable
from turnstile.service_calendar import ServiceWeek
from turnstile_lab.baselines import uniforms

INCLUDE = Path(__file__).resolve().parents[1] / "include"
WEEK = ServiceWeek(2016, 30)
PROGRAMMES = ("opal_trip", "opal", "itms")
FIVE = ("opal_trip", "opal", "opal_year", "itms", "itms_delays")
_KMH = 10
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A release of made-up counts.

    Args:
        drawn: with honest noise.
        exact: vectors of the draws, in the plan's order.
    """

    drawn: Drawn
    exact: tuple[Ints, ...]

    @property
    def honest(self) -> list[Ints]:
        """The published vectors."""
        return [table.values for table in self.drawn.artefact.tables]

    @property
    def noise(self) -> list[Ints]:
        """What was added."""
        return [noisy - exact for noisy, exact in zip(self.honest, self.exact, strict=True)]

    def with_vectors(self, vectors: Sequence[Ints]) -> Drawn:
        """Return the release with other vectors."""
        tables = tuple(
            replace(table, values=values)
            for table, values in zip(self.drawn.artefact.tables, vectors, strict=True)
        )
        return replace(self.drawn, artefact=Artefact(tables))


@cache
def case_of(name: str, *, slots: int = 96, stops: int = 40, label: str = "week") -> Case:
    """Return a release of a programme on a domain of one mode.

    Args:
        name: of the programme.
        slots: of the day.
        stops: or cells.
        label: that the counts depend on.
    """
    programme = _programme(name)
    domain = _domain(name, slots, stops)
    plan = make_plan(programme, domain, WEEK)
    exact = tuple(_exact(name, domain, event, label) for event in plan.events)
    tables = []
    for event, cells in zip(plan.events, exact, strict=True):
        days = {block.service_date for block in event.blocks}
        day = min(days) if len(days) == 1 else None
        tables.append(NoisyTable(event.table, event.statistic, day, draw(event, cells)))
    attempt = Attempt(
        attempt_id="a1",
        key=ReleaseKey(name, str(WEEK)),
        family=programme.family,
        week=str(WEEK),
        state=ReleaseState.SEALED,
        bindings=Bindings("0" * 64, "1" * 64, domain.digest),
        plan_digest=plan.digest,
        artefact_digest="3" * 64,
        manifest_digest=None,
        reserved_sequence=1,
        is_withdrawn=False,
    )
    return Case(Drawn(programme, domain, plan, attempt, Artefact(tuple(tables))), exact)


def exact_of(name: str, drawn: Drawn, label: str) -> list[Ints]:
    """Return other made-up counts for the draws of a release."""
    return [_exact(name, drawn.domain, event, label) for event in drawn.events]


@cache
def _programme(name: str) -> Programme:
    """Return a programme of the repository."""
    return load_programme(name, INCLUDE)


def _domain(name: str, slots: int, stops: int) -> PublicDomain:
    """Return the domain: both taps of four modes with a quarter of the stops each, or cells."""
    is_of_buses = name.startswith("itms")
    starts = tuple(f"{n * 24 // slots:02}:{n * 24 * 60 // slots % 60:02}" for n in range(slots))
    places = tuple(f"place {n:03}" for n in range(stops if is_of_buses else stops // 4))
    names = ("slot", "cell")
    if not is_of_buses:
        names = ("tap_on_slot", "tap_on_location", "tap_off_slot", "tap_off_location")
    axes = tuple(Dimension(axis, (starts, places)[n % 2]) for n, axis in enumerate(names))
    modes = ("bus",) if is_of_buses else ("bus", "ferry", "light_rail", "train")
    return public_domain("made up", tuple(ModeCells(mode, axes) for mode in modes))


def _exact(name: str, domain: PublicDomain, event: DrawEvent, label: str) -> Ints:
    """Return made-up counts of a day: two peaks, few busy stops, many empty cells at night."""
    tables = {table.name: table for table in _programme(name).tables}
    table = tables[event.table]
    is_of_buses = name.startswith("itms")
    taps = "off" if event.table.startswith("off") else "on"
    segments = layout(domain, table if is_of_buses else tables[f"{taps}_time_location"])
    slots, stops = segments[0].shape[0], len(segments) * segments[0].shape[1]
    hours = np.arange(slots) * 24 / slots
    peaks = np.exp(-((hours - 8) ** 2) / 3) + np.exp(-((hours - 17.5) ** 2) / 5) + 0.01
    sizes = np.exp(np.linspace(3, -4, stops))
    rates = np.outer(peaks / peaks.sum(), sizes / sizes.sum()) * 20_000
    day = min((block.service_date for block in event.blocks), default="")
    seed = f"{label} {taps} {day}"
    spread = np.exp(np.sqrt(-2 * np.log(uniforms(seed, rates.size))).reshape(rates.shape) - 1)
    again = uniforms(f"{seed} again", rates.size).reshape(rates.shape)
    cells = np.floor(rates * spread / 2 + again * 0.9).astype(np.int64)
    if is_of_buses:
        part = {"sum": -80, "buses": 1}.get(event.statistic)
        return (cells * part if part is not None else cells // 3).ravel()
    axes = tuple(
        n
        for n, axis in enumerate((f"tap_{taps}_slot", f"tap_{taps}_location"))
        if axis not in table.by
    )
    by_mode = np.split(cells, len(segments), axis=1)
    return np.concatenate([np.asarray(mode_cells.sum(axis=axes)).ravel() for mode_cells in by_mode])
