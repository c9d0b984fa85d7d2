"""What a published package gives away: the findings of `turnstile assess` on a package folder.

Read as an outsider reads it: the plan, and the measurements as drawn. The declared parameters are
compared with those recovered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from turnstile.assessment.attacks.noise_sums import half_width, term_of
from turnstile.assessment.attacks.presence import guess_after, proof_integer
from turnstile.assessment.attacks.rows import RowBalance
from turnstile.assessment.attacks.scale_of_noise import (
    ScaleEstimate,
    from_negatives,
    gaussian_at_least,
    negatives_p_value,
)
from turnstile.assessment.findings import Finding
from turnstile.assessment.risk import GROUPS, WeekRisk, forecast, kinds_of
from turnstile.errors import InputError
from turnstile.ledger.encoding import decode_event
from turnstile.privacy.events import DrawEvent, NoiseFamily
from turnstile.privacy.noise import noise_variance
from turnstile.publishing.manifest import MANIFEST, differences

_LEVELS = (0.9, 0.95, 0.99)
_REFUTED = 1e-6
_KEYS = ("service_date", "mode")


@dataclass(frozen=True, slots=True)
class Package:
    """A published package as an outsider reads it.

    Args:
        folder: where it lies.
        events: draws of its plan.
        tables: measurements by the name of the table.
    """

    folder: Path
    events: tuple[DrawEvent, ...]
    tables: Mapping[str, pa.Table]

    @property
    def kinds(self) -> dict[str, DrawEvent]:
        """One draw of each label."""
        return {event.label: event for event in kinds_of(self.events)}

    def values(self, event: DrawEvent) -> NDArray[np.int64] | None:
        """Return the published numbers of a kind of draw; None if they are not there."""
        table = self.tables.get(event.table)
        if table is None or event.statistic not in table.column_names:
            return None
        return np.asarray(table.column(event.statistic).to_numpy())


def is_package(path: Path) -> bool:
    """Tell whether a folder is a published package."""
    return (path / MANIFEST).is_file()


def read_package(folder: Path) -> Package:
    """Read plan and measurements of a package.

    Raises:
        InputError: it lacks one of them, or one cannot be read.
    """
    try:
        plan = json.loads((folder / "plan.json").read_bytes())
        events = tuple(decode_event(event) for event in plan["events"])
        tables = {event.table: _measured(folder, event.table) for event in events}
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowInvalid):
        rule = "plan.json or measurements are missing or cannot be read; give a whole package"
        raise InputError(where=str(folder), field="package", rule=rule) from None
    return Package(folder, events, tables)


def assess_package(package: Package) -> tuple[Finding, ...]:
    """Return everything that the attacks find in a package, in a fixed order."""
    risk = forecast(package.events)
    return (
        _bytes(package),
        *_cuts(package),
        *_scales(package),
        *_nested(package),
        *_rows(package),
        _presence(package, risk),
        *_differencing(package),
        risk_finding(risk),
    )


def _measured(folder: Path, name: str) -> pa.Table:
    """Read one measured table, from Parquet or CSV."""
    path = folder / "measurements" / f"{name}.parquet"
    if path.is_file():
        return pq.read_table(path)
    return pcsv.read_csv(path.with_suffix(".csv"))


def _bytes(package: Package) -> Finding:
    """Compare the files with the manifest."""
    problems = differences(package.folder)
    statement = problems[0] if problems else "every file is as the manifest says"
    return Finding("bytes", bool(problems), statement, {"differences": list(problems)})


def _cuts(package: Package) -> list[Finding]:
    """Tell whether numbers were cut off, and where."""
    found = []
    for label, event in package.kinds.items():
        values = package.values(event)
        if values is None:
            continue
        if event.threshold is None:
            lowest = int(values.min())
            statement = f"{label}: numbers down to {lowest} are published: nothing was cut off"
            found.append(Finding("cut", False, statement, {"table": label, "cut": None}))
            continue
        released = values[values > 0]
        least = int(released.min()) if released.size else None
        found.append(
            Finding(
                "cut",
                least is not None and least < event.threshold,
                f"{label}: released from {least} on, threshold {event.threshold} declared",
                {"table": label, "cut": least, "declared": event.threshold},
            )
        )
    return found


def _scales(package: Package) -> list[Finding]:
    """Recover the scale of each dense Laplace table from its numbers below zero."""
    found = []
    for label, event in package.kinds.items():
        values = package.values(event)
        tested = event.noise is NoiseFamily.DISCRETE_LAPLACE and event.threshold is None
        if values is None:
            continue
        if not tested or event.statistic == "sum":
            found.append(_not_identified(label, event, values))
            continue
        estimate = from_negatives(values.astype(np.int64))
        if estimate is not None:
            chance = negatives_p_value(values.astype(np.int64), float(event.scale))
            found.append(_scale(label, event, estimate, chance))
    return found


def _not_identified(label: str, event: DrawEvent, values: NDArray[np.int64]) -> Finding:
    """Say what is declared, and what can be said where the numbers do not identify the scale."""
    declared = float(event.scale)
    least = None
    if event.noise is NoiseFamily.DISCRETE_GAUSSIAN and event.statistic != "sum":
        least = gaussian_at_least(values)
    words = f"; from its numbers below zero, about {least:.3g} or more" if least else ""
    return Finding(
        "scale",
        False,
        f"{label}: {event.noise} of scale {declared:.4g} declared; one such table alone does not "
        f"identify the scale of its noise{words}",
        {"table": label, "identified": False, "declared": declared, "at_least": least},
    )


def _scale(label: str, event: DrawEvent, estimate: ScaleEstimate, chance: float) -> Finding:
    """Return a recovered scale beside the declared one."""
    declared = float(event.scale)
    return Finding(
        "scale",
        chance < _REFUTED,
        f"{label}: noise scale {estimate.scale:.3f} recovered from {estimate.samples} numbers "
        f"below zero, between {estimate.low:.3f} and {estimate.high:.3f} "
        f"({estimate.confidence:.0%}); declared {declared:g}",
        {
            "table": label,
            "identified": True,
            "source": "negatives",
            "declared": declared,
            "scale": round(estimate.scale, 5),
            "low": round(estimate.low, 5),
            "high": round(estimate.high, 5),
            "confidence": estimate.confidence,
            "samples": estimate.samples,
            "p_value": chance,
        },
    )


def _pairs(package: Package) -> list[tuple[DrawEvent, DrawEvent]]:
    """Return pairs of a coarse and a finer dense table of counts."""
    counts = [
        event
        for event in package.kinds.values()
        if event.statistic == "count" and event.threshold is None and event.table in package.tables
    ]
    axes = {event.table: set(_axes(package.tables[event.table])) for event in counts}
    return [
        (coarse, fine)
        for coarse in counts
        for fine in counts
        if axes[coarse.table] < axes[fine.table]
    ]


def _axes(table: pa.Table) -> list[str]:
    """Return the columns that label a cell."""
    return [
        name
        for name in table.column_names
        if name in _KEYS
        or pa.types.is_string(table.schema.field(name).type)
        or pa.types.is_dictionary(table.schema.field(name).type)
    ]


def _nested(package: Package) -> list[Finding]:
    """Recover the scale from totals with all their parts, as a multiple of what is declared."""
    found = []
    for coarse, fine in _pairs(package):
        ratios = _standardized(package, coarse, fine)
        mean = float(np.mean(ratios**2))
        spread = max(2**0.5, float(np.std(ratios**2))) / ratios.size**0.5
        found.append(
            Finding(
                "scale",
                abs(mean - 1) > 6 * spread,
                f"{fine.table} added up against {coarse.table}: noise {mean**0.5:.3f} times as "
                f"large as declared ({ratios.size} totals with all their parts)",
                {
                    "table": f"{coarse.table} and {fine.table}",
                    "identified": True,
                    "source": "totals",
                    "over_declared": round(mean**0.5, 4),
                    "declared": float(fine.scale),
                    "scale": round(mean**0.5 * float(fine.scale), 4),
                    "low": round(max(0.0, mean - 2 * spread) ** 0.5, 4),
                    "high": round((mean + 2 * spread) ** 0.5, 4),
                    "samples": int(ratios.size),
                },
            )
        )
    return found


def _standardized(package: Package, coarse: DrawEvent, fine: DrawEvent) -> NDArray[np.float64]:
    """Return (sum of parts - total) over its declared deviation."""
    total, parts = package.tables[coarse.table], package.tables[fine.table]
    keys = _axes(total)
    added = (
        _plain(parts, keys, "count")
        .group_by(keys)
        .aggregate([("count", "sum"), ("count", "count")])
    )
    joined = _plain(total, keys, "count").join(added, keys=keys, join_type="inner")
    terms = joined.column("count_count").to_numpy()
    variance = terms * noise_variance(fine.noise, fine.scale)
    variance = variance + noise_variance(coarse.noise, coarse.scale)
    difference = joined.column("count_sum").to_numpy() - joined.column("count").to_numpy()
    return np.asarray(difference / np.sqrt(variance))


def _plain(table: pa.Table, keys: list[str], value: str) -> pa.Table:
    """Return keys as texts and one column of numbers."""
    columns = {name: pc.cast(table.column(name), pa.string()) for name in keys}
    return pa.table({**columns, value: table.column(value)})


def _rows(package: Package) -> list[Finding]:
    """Compare each table's rows with the domain that its labels span, a mode at a time."""
    found = []
    for name, table in package.tables.items():
        axes = _axes(table)
        modes = table.column("mode").unique().to_pylist() if "mode" in axes else [None]
        expected = 0
        for mode in modes:
            own = table if mode is None else table.filter(pc.equal(_texts(table, "mode"), mode))
            cells = 1
            for axis in axes:
                cells *= len(own.column(axis).unique()) if axis != "mode" else 1
            expected += cells
        balance = RowBalance(expected, table.num_rows)
        figures = {"table": name, "expected": expected, "published": table.num_rows}
        found.append(Finding("rows", balance.missing != 0, f"{name}: {balance.statement}", figures))
    return found


def _texts(table: pa.Table, name: str) -> Any:  # noqa: ANN401 - Arrow carries no types
    """Return a column as texts."""
    return pc.cast(table.column(name), pa.string())


def _presence(package: Package, risk: tuple[WeekRisk, ...]) -> Finding:
    """Return the probability that a number proves, or suggests, that somebody was there."""
    kinds = list(package.kinds.values())
    cut = [event for event in kinds if event.threshold is not None]
    proofs = {
        event.label: {
            str(group): proof_integer(
                group, threshold=event.threshold or 0, scale=float(event.scale)
            )
            for group in GROUPS
        }
        for event in cut
    }
    guesses = {str(group): round(chance, 6) for group, chance in risk[0].guess_right}
    statement = (
        "no number proves that anybody was there: every cell is noised, empty ones too"
        if not cut
        else "a released cell proves that somebody was there, with the probabilities listed"
    )
    return Finding(
        "presence",
        bool(cut),
        f"{statement}; best guess whether one of them was in a known cell of every table, "
        f"knowing all else: right with {guesses['1']:.3f} (0.5 by chance), a group of 12 with "
        f"{guesses['12']:.3f}",
        {
            "proof_probability": proofs,
            "best_guess": guesses,
            "best_guess_by_table": {event.label: round(guess_after([event]), 6) for event in kinds},
        },
    )


def _differencing(package: Package) -> list[Finding]:
    """Return how well a cell is known from a total minus its other parts, and on its own."""
    found = []
    for coarse, fine in _pairs(package):
        parts = package.tables[fine.table].num_rows // package.tables[coarse.table].num_rows
        terms = [term_of(fine, max(1, parts - 1)), term_of(coarse)]
        widths = {f"{level:g}": half_width(terms, level) for level in _LEVELS}
        own = half_width([term_of(fine)], 0.95)
        found.append(
            Finding(
                "differencing",
                False,
                f"a cell of {fine.table} from {coarse.table} minus its {parts - 1} other parts: "
                f"+-{widths['0.95']:g} (95 %), against +-{own:g} from the cell itself",
                {
                    "total": coarse.table,
                    "parts": fine.table,
                    "terms": parts,
                    "half_widths": widths,
                    "own_half_width_95": own,
                },
            )
        )
    return found


def risk_finding(risk: tuple[WeekRisk, ...]) -> Finding:
    """Return the forecast as a finding."""
    last = risk[-1]
    chance = dict(last.guess_right)[1]
    weeks = [
        {
            "weeks": one.weeks,
            "best_guess": {str(group): round(value, 6) for group, value in one.guess_right},
            "average_half_width_95": round(one.average_half_width_95, 4),
            "epsilon_at_delta_1e-6": {str(unit): value for unit, value in one.epsilon_by_unit},
        }
        for one in risk
    ]
    return Finding(
        "risk_over_weeks",
        False,
        f"after {last.weeks} weeks like this one, the best guess whether somebody is in the same "
        f"known cells every week is right with {chance:.3f}; a steady cell is known within "
        f"+-{last.average_half_width_95:.2f} (95 %)",
        {"weeks": weeks},
    )
