"""What a published package gives away: the findings of `turnstile assess` on a package folder.

The declared parameters are compared with those recovered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from turnstile.assessment.attacks.presence import guess_after
from turnstile.assessment.attacks.risk import Forecast, as_figures, forecast, over_weeks
from turnstile.assessment.gates.numbers import nested_pairs
from turnstile.assessment.gates.registry import NUMBER_GATES
from turnstile.privacy.noise import half_width, term_of
from turnstile.publishing.contents_check import unknown_contents
from turnstile.publishing.describe.manifest import differences
from turnstile.publishing.inner_contents import NOT_JUDGED
from turnstile.publishing.package_reader import Package, axes_of
from turnstile_lab.disclosures import Disclosure
from turnstile_lab.package.numbers import judged_package, layouts_of_package
from turnstile_lab.package.scales import nested_scales, scales_of
from turnstile_lab.proof_of_presence import proof_integer
from turnstile_lab.rows import RowBalance

_LEVELS = (0.9, 0.95, 0.99)
_GROUPS = (1, 5, 12)  # people in a cell that is empty without them


def assess_package(package: Package) -> tuple[Disclosure, ...]:
    """Return everything that the attacks find in a package, in a fixed order."""
    risk = forecast(package.events)
    return (
        _bytes(package),
        _contents(package),
        *_gates(package),
        *_thresholds(package),
        *scales_of(package),
        *nested_scales(package),
        *_rows(package),
        _presence(package, risk),
        *_differencing(package),
        risk_disclosure(risk),
    )


def _bytes(package: Package) -> Disclosure:
    """Compare the files with the manifest."""
    problems = differences(package.folder)
    statement = problems[0] if problems else "every file is as the manifest says"
    return Disclosure("bytes", bool(problems), statement, {"differences": list(problems)})


def _contents(package: Package) -> Disclosure:
    """Find files, columns and fields that have no declared source, whatever the manifest says."""
    unknown = unknown_contents(package.folder)
    statement = (
        f"{len(unknown)} files, columns or fields have no declared source: {'; '.join(unknown[:5])}"
        if unknown
        else "every file, column and field has a declared source, every copy of a number is one; "
        f"not judged: {'; '.join(NOT_JUDGED.values())}"
    )
    figures = {"unknown": list(unknown), "not_judged": dict(NOT_JUDGED)}
    return Disclosure("contents", bool(unknown), statement, figures)


def _gates(package: Package) -> Iterator[Disclosure]:
    """Run the gates on numbers again, on what was published."""
    numbers = judged_package(package)
    for gate in NUMBER_GATES:
        result = gate(numbers)
        words = f"{result.gate}: {result.statement} ({result.outcome})"
        yield Disclosure("gate", not result.passed, words, asdict(result))


def _thresholds(package: Package) -> list[Disclosure]:
    """Return whether numbers were suppressed, and where."""
    disclosures = []
    for label, event in package.draw_by_label.items():
        values = package.values(event)
        if values is None:
            continue
        if event.threshold is None:
            lowest = int(values.min())
            statement = f"{label}: numbers down to {lowest} are published: nothing was suppressed"
            disclosures.append(
                Disclosure("threshold", False, statement, {"table": label, "cut": None})
            )
            continue
        released = values[values > 0]
        least = int(released.min()) if released.size else None
        disclosures.append(
            Disclosure(
                "threshold",
                least is not None and least < event.threshold,
                f"{label}: released from {least} on, threshold {event.threshold} declared",
                {"table": label, "cut": least, "declared": event.threshold},
            )
        )
    return disclosures


def _rows(package: Package) -> list[Disclosure]:
    """Compare each table's rows with the domain that its labels span, a mode at a time."""
    disclosures = []
    for name, table in package.tables.items():
        labels = table.select(axes_of(table)).to_pandas()
        by_mode = labels.assign(mode=labels.get("mode", "")).groupby("mode", observed=True)
        expected = int(by_mode.nunique(dropna=False).prod(axis=1).sum())
        balance = RowBalance(expected, table.num_rows)
        figures = {"table": name, "expected": expected, "published": table.num_rows}
        disclosures.append(
            Disclosure("rows", balance.missing != 0, f"{name}: {balance.statement}", figures)
        )
    return disclosures


def _presence(package: Package, risk: Forecast) -> Disclosure:
    """Return the probability that a number proves, or suggests, that somebody was there."""
    draws = list(package.draw_by_label.values())
    threshold = [event for event in draws if event.threshold is not None]
    proofs = {
        event.label: {
            str(group): proof_integer(
                group, threshold=event.threshold or 0, scale=float(event.scale)
            )
            for group in _GROUPS
        }
        for event in threshold
    }
    unit = next(candidate for candidate in risk.units if not candidate.is_worst)
    statement = (
        "no number proves that a cell was not empty: every cell is noised, empty ones too"
        if not threshold
        else "a released cell proves that it was not empty, with the probabilities listed"
    )
    return Disclosure(
        "presence",
        bool(threshold),
        f"{statement}. {unit.sentence}",
        {
            "proof_probability": proofs,
            "best_guess": as_figures(unit),
            "best_guess_by_table": {event.label: round(guess_after([event]), 6) for event in draws},
        },
    )


def _differencing(package: Package) -> list[Disclosure]:
    """Return how well a cell is known from a total minus its other parts, and on its own."""
    disclosures = []
    events = {event.table: event for event in package.events}
    for pair in nested_pairs(layouts_of_package(package)):
        coarse, fine = (events[name] for name in pair)
        parts = package.tables[fine.table].num_rows // package.tables[coarse.table].num_rows
        terms = [term_of(fine, max(1, parts - 1)), term_of(coarse)]
        widths = {f"{level:g}": half_width(terms, level) for level in _LEVELS}
        cell_width = half_width([term_of(fine)], 0.95)
        disclosures.append(
            Disclosure(
                "differencing",
                False,
                f"a cell of {fine.table} from {coarse.table} minus its {parts - 1} other parts: "
                f"+-{widths['0.95']:g} (95 %), against +-{cell_width:g} from the cell itself",
                {
                    "total": coarse.table,
                    "parts": fine.table,
                    "terms": parts,
                    "half_widths": widths,
                    "own_half_width_95": cell_width,
                },
            )
        )
    return disclosures


def risk_disclosure(risk: Forecast) -> Disclosure:
    """Return the forecast as a disclosure."""
    last = risk.course[-1]
    return Disclosure(
        "risk_over_weeks",
        False,
        " ".join(unit.sentence for unit in risk.units if not unit.is_worst)
        + f" After {last.weeks} weeks like this one a steady cell is known within "
        f"+-{last.half_width:.2f} (95 %).",
        {"units": [as_figures(unit) for unit in risk.units], "weeks": over_weeks(risk)},
    )
