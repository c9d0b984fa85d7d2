"""A search for neighbours: raw files that differ by units, ingested and counted by the product."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from raw_lab import PERIOD, WEEK, Lab, Vectors
from raw_units import Generator

from turnstile.counting.exact_tables import count_scopes
from turnstile.privacy.events import Sensitivity
from turnstile.sources.ingest.week import ingest


def counts_of(lab: Lab, files: dict[str, bytes]) -> Vectors:
    """Read files and count them, each service day (or week, where the unit has one) by itself."""
    programme, domain = lab.programme, lab.domain
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "landing" / str(WEEK)).mkdir(parents=True)
        for name, content in files.items():
            (root / "landing" / str(WEEK) / name).write_bytes(content)
        snapshot = ingest(
            programme,
            PERIOD,
            landing=root / "landing",
            private=root,
            progress=lambda _: None,
            timetable=lab.timetable,
        )
        tables = count_scopes(
            programme,
            domain,
            PERIOD.days,
            snapshot.folder / "rows",
            secret=b"one for both weeks",
            work=root / "work",
        )
        return {
            (f"{t.table}/{t.statistic}", t.service_date or WEEK.monday): t.reveal_to_mechanism()
            for t in tables
        }


def pairs_of(lab: Lab) -> int:
    """Neighbouring pairs of one run: of each unit."""
    return 24 if lab.days_of_unit == 1 else len(PERIOD.days) // lab.days_of_unit


def violations(lab: Lab, runs: int, *, seed: int, per_base: int = 8) -> Iterator[str]:
    """Search: yield what moved farther than is declared."""
    declared = lab.declared()
    for run in range(runs):
        make = Generator(lab, seed * 10_000 + run)
        if run % per_base == 0:
            others = Generator(lab, seed * 10_000 - 1 - run).others()
            before = counts_of(lab, make.files(others, ([], [])))
        after = counts_of(lab, make.files(others, make.units()))
        for (label, scope), pieces in lab.moved(before, after).items():
            norms = _measured(np.concatenate(pieces))
            bound = (0, 0, 0, 0) if scope in make.idle else _numbers(declared[label])
            if any(a > b for a, b in zip(norms, bound, strict=True)):
                yield f"run {run}, {label} in {scope}: {norms}, declared {bound}"


def _measured(change: np.ndarray) -> tuple[int, int, int, int]:
    size = np.abs(change)
    return (
        int((size > 0).sum()),
        int(size.sum()),
        int((change**2).sum()),
        int(size.max(initial=0)),
    )


def _numbers(sensitivity: Sensitivity) -> tuple[int, int, int, int]:
    return sensitivity.l0, sensitivity.l1, sensitivity.l2_squared, sensitivity.linf
