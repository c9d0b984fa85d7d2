"""`README.md` of one screen, `START_HERE.csv`, and the rest for people in `docs/GUIDE.md`."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from turnstile.estimates.table_names import OF_COUNTS, QUARTER, YEAR
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.field_registry import title_of
from turnstile.publishing.carried.sums import NESTED
from turnstile.publishing.contents import Contents, TableFile, period_word
from turnstile.publishing.data_tables import BUSES, Layout
from turnstile.publishing.describe.card_terms import has_days
from turnstile.publishing.describe.licences import path_of
from turnstile.publishing.pages import rendered
from turnstile.publishing.week.numbers import opened, usable_tables

_PLURALS = {"card": "cards", "bus": "buses", "trip": "trips"}
_UNIT_TEXTS = {
    ProtectionUnit.TRIP: "one trip",
    ProtectionUnit.CARD_DAY: "the trips of one card on one day",
    ProtectionUnit.CARD_WEEK: "the trips of one card in one week",
    ProtectionUnit.BUS_DAY: "the readings of one bus on one day",
}


def write_start(contents: Contents) -> bytes:
    """Return the table that the package leads with, as CSV."""
    lead, _ = usable_tables(contents)[0]
    return (contents.folder / lead.csv).read_bytes()


def write(contents: Contents) -> bytes:
    """Return the first screen: which file, which column, how sure."""
    return rendered("README.md.j2", **_said(contents)).encode()


def write_guide(contents: Contents) -> bytes:
    """Return what there is to know beside it: columns, noise, examples, card, gaps, changes."""
    said = _said(contents)
    sums_of = opened(contents).sums_of
    bounded = {event.table for event in contents.drawn.plan.events if event.own_records}
    separate = [
        table.name for table in contents.tables if counts_other_trips(table.layout, bounded)
    ]
    drawn = (table for table in contents.tables if not table.layout.is_mean)
    columns = dict.fromkeys(name for table in contents.tables for name, _ in table.columns)
    return rendered(
        "GUIDE.md.j2",
        **said,
        unit_text=unit_text(contents.drawn.programme.mechanism.unit),
        guarantee=guarantee_sentence(contents.card, contents.drawn.programme.mechanism.unit),
        cumulative=cumulative_sentence(contents.card),
        columns=[
            (name, title_of(name), about) for name in columns if (about := contents.about(name))
        ],
        has_shapes=bool(contents.features),
        counts_buses=any(
            table.layout.unit == BUSES[1] and "slot" in table.labels for table in contents.tables
        ),
        slot_minutes=contents.drawn.programme.time.slot_minutes,
        measured=next((table for table in drawn if _is_example(table, sums_of(table.name))), None),
        adding=[
            table
            for table in said["counts"]
            if "value" in sums_of(table.name) and table.name not in separate
        ],
        separate=separate,
        of_weeks=[table.name for table in contents.tables if table.name.endswith((QUARTER, YEAR))],
        for_changes=_for_changes(contents.tables),
        has_days=has_days(contents.card),
        gaps=[day for day in contents.card["gaps"] if day not in contents.card["absent_days"]],
        absent_days=contents.card["absent_days"],
        changes=contents.history,
    ).encode()


def _said(contents: Contents) -> dict[str, Any]:
    """Return what both texts say."""
    programme, plan = contents.drawn.programme, contents.drawn.plan
    tables = usable_tables(contents)
    lead, share = tables[0]
    return {
        "title": programme.title,
        "period": str(plan.week),
        "word": period_word(contents),
        "revision": plan.revision,
        "description": programme.description,
        "curator": programme.publish.curator,
        "contact": programme.publish.contact,
        "licence": programme.publish.licence,
        "licence_path": path_of(programme.publish.licence),
        "key": str(contents.drawn.attempt.key),
        "tables": tables,
        "lead": lead,
        "share": share,
        "ends": contents.ends,
        "counts": [table for table, _ in tables if table.layout.is_count],
        "has_unbiased": any("unbiased" in dict(table.columns) for table, _ in tables),
        "has_measured": any("measured" in dict(table.columns) for table, _ in tables),
        "is_thresholded": any(draw.get("threshold") is not None for draw in contents.card["draws"]),
    }


def _for_changes(tables: Sequence[TableFile]) -> str:
    """Say which column of which tables borrows nothing: the unbiased one, or as drawn."""
    names: dict[str, list[str]] = {}
    for table in tables:
        known = dict(table.columns)
        if column := next((name for name in ("unbiased", "measured") if name in known), ""):
            names.setdefault(column, []).append(table.name)
    return "; ".join(f"`{column}` of {', '.join(of)}" for column, of in names.items())


def _is_example(table: TableFile, summed: AbstractSet[str]) -> bool:
    """Whether drawn numbers of any rows of a table add up: those above several limits do not."""
    return "measured" in summed and NESTED not in table.labels


def counts_other_trips(layout: Layout, separate: set[str]) -> bool:
    """Whether a table is one with a bound of its own, or made of one: its 13 weeks, its year.

    Args:
        layout: of the table.
        separate: drawn tables with a bound of their own.
    """
    apart = {name + suffix for name in separate for suffix in OF_COUNTS}
    return any({source.table, source.unbiased} & apart for source in layout.sources)


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
