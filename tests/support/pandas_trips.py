"""Trips counted by pandas and hashlib alone: a third way to the same exact tables."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
from bounding_messages import message

from turnstile.counting.trip_queries import axes_of, trip_bounding
from turnstile.privacy.stability import Bound, OnceInACell
from turnstile.privacy.units import Block
from turnstile.programme.counting_chain import chain_of
from turnstile.programme.domain.public_domain import UNKNOWN, PublicDomain, layout
from turnstile.programme.spec import Programme

Label = tuple[str, str, date | None]


def pandas_tables(
    programme: Programme,
    domain: PublicDomain,
    days: Sequence[date],
    rows_folder: Path,
    secret: bytes,
) -> dict[Label, np.ndarray]:
    """Return the exact vectors by label."""
    trips = pd.concat(
        [_indexed(programme, domain, rows_folder, day, number) for number, day in enumerate(days)],
        ignore_index=True,
    )
    kept = {
        (once, bound): trips
        if bound is None
        else _lowest(trips, programme, (once, bound), days, secret)
        for once, bound in {chain_of(programme, table).selection for table in programme.tables}
    }
    vectors: dict[Label, np.ndarray] = {}
    for table in programme.tables:
        of_rule = kept[chain_of(programme, table).selection]
        for number, day in enumerate(days):
            counts = np.zeros(domain.cells(table), dtype=np.int64)
            of_day = of_rule[of_rule["day_index"] == number]
            for mode_index, segment in enumerate(layout(domain, table)):
                of_mode = of_day[of_day["mode_index"] == mode_index]
                cells = np.zeros(segment.shape, dtype=np.int64)
                if table.by:
                    np.add.at(cells, tuple(of_mode[axis].to_numpy() for axis in table.by), 1)
                else:
                    cells += len(of_mode)
                counts[segment.offset : segment.offset + segment.cells] = cells.reshape(-1)
            vectors[table.name, "count", day] = counts
    return vectors


def _indexed(
    programme: Programme, domain: PublicDomain, rows_folder: Path, day: date, number: int
) -> pd.DataFrame:
    """Return the trips of one day with the indices of their cells; all have a label here."""
    rows = pd.read_parquet(rows_folder / f"service_date={day}" / "part-000.parquet")
    area = {(stop.mode, stop.location): stop.area for stop in domain.places}
    made: dict[str, list[object]] = {"day_index": [], "card_id": [], "mode_index": []}
    made |= {axis: [] for axis in axes_of(programme)}
    for row in rows.itertuples():
        made["day_index"].append(number)
        made["card_id"].append(row.card_id)
        made["mode_index"].append(domain.modes.index(row.mode))
        for tap in ("tap_on", "tap_off"):
            minute = getattr(row, f"{tap}_minute")
            slot = UNKNOWN
            if not pd.isna(minute):
                begin = int(minute) // programme.time.slot_minutes * programme.time.slot_minutes
                slot = f"{begin // 60:02d}:{begin % 60:02d}"
            place = area.get((row.mode, getattr(row, f"{tap}_location")), UNKNOWN)
            for axis, label in ((f"{tap}_slot", slot), (f"{tap}_location", place)):
                made[axis].append(domain.dimension(row.mode, axis).labels.index(label))
    whole = {name: "int64" for name in made if name != "card_id"}
    return pd.DataFrame(made).astype(whole)  # of a day without trips, too


def _lowest(
    trips: pd.DataFrame,
    programme: Programme,
    selection: tuple[OnceInACell | None, Bound],
    days: Sequence[date],
    secret: bytes,
) -> pd.DataFrame:
    """Return the trips of each unit that count."""
    once, bound = selection
    bounding = trip_bounding(programme, once, bound)
    scopes = [bound.unit.scope(Block(days[number], "")) for number in trips["day_index"]]
    records = trips[["card_id", *bounding.cell]].itertuples(index=False, name=None)
    hashes = [
        hmac.new(secret, message(scope, cell, card), hashlib.sha256).hexdigest()
        for scope, (card, *cell) in zip(scopes, records, strict=True)
    ]
    ordered = trips.assign(scope=scopes, hash=hashes).sort_values("hash", kind="stable")
    unit = ["scope", "card_id"]
    for_all = np.ones(len(ordered), dtype=np.bool_)
    for limit in bounding.limits:
        for_all &= ordered.groupby([*unit, *limit.columns]).cumcount() < limit.at_most
    left = ordered[for_all]
    return left[left.groupby(unit).cumcount() < bounding.at_most]
