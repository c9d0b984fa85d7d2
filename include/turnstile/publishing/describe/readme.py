"""`README.md` of a package: what to use for what, what the noise means, examples that run."""

from __future__ import annotations

from typing import Any

from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.source_spec import RowShape
from turnstile.publishing.contents import PARTS, Contents, label_of
from turnstile.publishing.pages import rendered
from turnstile.publishing.week.numbers import usable_tables

_USES = {
    "estimates": "single numbers, maps, rankings, changes",
    "tables": "tables to print, and reconciled sums",
    "measurements": "your own models, and any sums",
}
_LET_THROUGH = "Presentation: the numbers that the thresholds let through, with their errors."
_PLURALS = {"card": "cards", "bus": "buses", "trip": "trips"}
_UNIT_TEXTS = {
    ProtectionUnit.TRIP: "one trip",
    ProtectionUnit.CARD_DAY: "the trips of one card on one day",
    ProtectionUnit.BUS_DAY: "the readings of one bus on one day",
}


def write(contents: Contents) -> bytes:
    """Return the text."""
    programme, plan = contents.drawn.programme, contents.drawn.plan
    present = {table.part for table in contents.tables}
    is_thresholded = any(draw.get("threshold") is not None for draw in contents.card["draws"])
    abouts = PARTS | ({"tables": _LET_THROUGH} if is_thresholded else {})
    return rendered(
        "README.md.j2",
        title=programme.title,
        period=str(plan.week),
        revision=plan.revision,
        description=programme.description,
        curator=programme.publish.curator,
        contact=programme.publish.contact,
        licence=programme.publish.licence,
        key=str(contents.drawn.attempt.key),
        parts=[
            {"name": name, "about": about, "use": _USES[name]}
            for name, about in abouts.items()
            if name in present
        ],
        has_shapes=bool(contents.features),
        unit_text=unit_text(programme.mechanism.unit),
        guarantee=guarantee_sentence(contents.card, programme.mechanism.unit),
        cumulative=cumulative_sentence(contents.card),
        example=_example(contents),
        is_thresholded=is_thresholded,
        usable=usable_tables(contents),
    ).encode()


def unit_text(unit: ProtectionUnit) -> str:
    """Say what one unit is."""
    return _UNIT_TEXTS.get(unit, str(unit))


def guarantee_sentence(card: dict[str, Any], unit: ProtectionUnit) -> str:
    """State the guarantee of this release in one sentence."""
    figures = card["guarantee"]["units"][str(unit)]
    pure, shown = figures["epsilon"], figures["epsilon_at_delta_1e-6"]
    if pure is not None and figures["delta"] == "0":
        amount = f"{pure}-differentially private"
    else:
        amount = f"({shown}, 0.000001)-differentially private"
    return f"With respect to {unit_text(unit)}, added or removed, this release is {amount}."


def cumulative_sentence(card: dict[str, Any]) -> str:
    """State in one sentence what all releases together cost the most spent account."""
    lines = [line for line in card["cumulative"] if line["rho_after"] or line["epsilon_after"]]
    if not lines:
        return "What all releases together cost is not bounded; the release card says why."
    name = "rho" if lines[0]["rho_after"] else "epsilon"
    shown = max(lines, key=lambda line: float(line[f"{name}_after"] or 0))
    return (
        f"All releases so far that touch the same {_PLURALS[shown['unit'].split('_')[0]]} add up "
        f"to {name} {shown[f'{name}_after']} for the most spent {shown['unit'].replace('_', '-')}."
    )


def _example(contents: Contents) -> dict[str, str | bool]:
    """Choose the table, label and number that the examples use."""
    spec = contents.drawn.programme.shared_tables[-1]
    label = next((axis for axis in spec.by if not axis.endswith("slot")), spec.by[0])
    is_trips = contents.drawn.programme.source.feed.shape is RowShape.TRIPS
    shown = next(table for table in contents.tables if table.stem == f"tables/{spec.name}")
    kinds = {"integer", "number"}
    numbers = [name for name, kind in shown.columns if kind in kinds and name != "gap_days"]
    return {
        "table": spec.name,
        "measured_table": spec.name,
        "label": label,
        "shape_label": label_of(contents),
        "value": numbers[0],
        "sums_of_tables": any(name == "reconciled" for name, _ in shown.columns),
        "measured": "count" if is_trips else spec.statistics[0],
    }
