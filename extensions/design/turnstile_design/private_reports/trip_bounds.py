"""The exact trips of a week under other bounds, for private reports: what each would leave out.

Counted anew from raw rows without a charge (PRIVACY 6.4), so nothing of it is published. Trips
whose rows were set aside by ingest are in none of these counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from turnstile.counting.exact_tables import count
from turnstile.pipeline.before_charge import room_to_spill
from turnstile.pipeline.context import Release
from turnstile.pipeline.draw.current_snapshot import current_snapshot
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.spec import Outside, UnitBound
from turnstile.release.zones import bounding_secret
from turnstile.sources.ingest.snapshot import require_whole
from turnstile_design.markdown_tables import table_lines

Counts = dict[str, list[NDArray[np.int64]]]  # a table's vectors, day by day
_RULES = (
    ("nothing", False, False),
    ("a slot at a place: once_per_finest_cell", False, True),
    ("a slot, or a place: once_per_cell", True, False),
)


def with_every_row(release: Release) -> Release:
    """Return the release with cells for what it drops: rows outside are UNKNOWN, none is lost."""
    domain = replace(release.programme.domain, outside=Outside.UNKNOWN)
    programme = replace(release.programme, domain=domain)
    public_cells = load_domain(programme, release.settings.include)
    return replace(release, programme=programme, domain=public_cells)


def counts_under(release: Release, bound: UnitBound) -> Counts:
    """Count the week's rows under one bound, table by table and day by day.

    Args:
        release: its programme's own bounds are not used.
        bound: of a trip for all rows; of a card-day.
    """
    other = replace(release.programme, units=(bound,))
    snapshot = current_snapshot(release)
    require_whole(snapshot)
    with room_to_spill(snapshot) as work:
        tables = count(
            other,
            release.domain,
            release.week.days,
            snapshot.folder / "rows",
            secret=bounding_secret(release.settings),
            work=work,
            progress=lambda _: None,
        )
    counts: Counts = {}
    for table in tables:
        counts.setdefault(table.table, []).append(table.reveal_to_mechanism())
    return counts


def left_out_by_rule(release: Release, trips: int) -> Iterator[str]:
    """Yield the share of all trips that each rule of the bound leaves out, at the programme's k.

    Args:
        release: with or without a bound on card-days; without one, nothing is yielded.
        trips: all trips of the week.
    """
    written_bound = release.programme.bound_of(ProtectionUnit.CARD_DAY)
    if written_bound is None:
        return
    most = written_bound.contributions_max
    yield f"## Trips left out by each rule of the bound, at most {most} a card-day"
    yield ""
    rows = []
    first = release.programme.tables[0].name
    for rule, once, finest in _RULES:
        bound = replace(written_bound, once_per_cell=once, once_per_finest_cell=finest)
        kept = sum(int(day.sum()) for day in counts_under(release, bound)[first])
        name = f"{rule} (as it is)" if bound == written_bound else rule
        rows.append((name, share(trips - kept, trips)))
    yield from table_lines(("two trips of a card-day may not share", "left out"), rows)
    yield ""


def share(part: int, total: int) -> str:
    """Return a share in per cent."""
    return f"{part / total:.2%}" if total else "no trip"
