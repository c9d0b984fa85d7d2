"""Trials of synthetic units whose files are made, and read, once for all faults put into counting.

A fault in reading needs `READ` back in its place: what was read without it would hide it, and the
test that plants it would fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kept_preflight import made_once, of_trials

from turnstile.pipeline.trials import canaries
from turnstile.pipeline.trials.canaries import raw_files
from turnstile.pipeline.trials.canary_units import trials_of
from turnstile.sources.ingest import week

READ = week.ingest


@contextmanager
def trials_once(folder: Path) -> Iterator[None]:
    """Keep trials and files in this process, and what was read of them in a folder.

    A snapshot is that of its files and settings, so the product itself knows it again.
    """
    of_files = made_once(
        raw_files,
        lambda programme, others, records, *, hostile: (
            repr((programme.source, programme.time, programme.domain)),
            (*others, None, *records),
            hostile,
        ),
        lambda: True,
    )
    of_trial = made_once(trials_of, lambda *asked: (of_trials(*asked[:2]), asked[2]), lambda: True)

    def read(*known: Any, private: Path, **named: Any) -> Any:
        assert private != folder
        return READ(*known, private=folder, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canaries, "raw_files", of_files)
        patch.setattr(canaries, "trials_of", of_trial)
        patch.setattr(week, "ingest", read)
        yield
