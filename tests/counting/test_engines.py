"""A counting engine is one module and one entry."""

from __future__ import annotations

from pathlib import Path

import pytest
from scratch_copy import ScratchCopy

from turnstile.counting.engines import engine_named
from turnstile.counting.tables import count
from turnstile.errors import InputError

ENGINE = '''"""Counts twice and compares."""

import numpy as np

from turnstile.counting import tables


def count(*args, **kwargs):
    """Count twice."""
    first, second = tables.count(*args, **kwargs), tables.count(*args, **kwargs)
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one.reveal_to_mechanism(), other.reveal_to_mechanism())
    kwargs["progress"]("counted twice")
    return first
'''
WEEK = """
import logging, sys
from turnstile.cli import main
from turnstile.pipeline.steps import step_named
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
main(["sample", "opal", "--weeks", "2016-W30", "--rows", "300", "--seed", "1"])
for name in ("ingest", "count"):
    print(name, step_named(name)("opal", "2016-W30", 0))
"""


@pytest.fixture
def copy(tmp_path: Path) -> ScratchCopy:
    made = ScratchCopy(tmp_path)
    opal = "include/programmes/opal.yaml"
    made.replace(opal, "slot_minutes: 15", "slot_minutes: 240")
    made.touched.clear()
    return made


def test_an_engine_is_one_module_and_one_entry(copy: ScratchCopy) -> None:
    assert "counted twice" not in copy.run(WEEK)
    copy.add("include/turnstile/counting/twice.py", ENGINE)
    entry = '"duckdb": "turnstile.counting.tables",'
    added = f'{entry}\n    "twice": "turnstile.counting.twice",'
    copy.replace("include/turnstile/counting/engines.py", entry, added)
    assert len(copy.touched_sources) <= 3
    setting = 'import os; os.environ["TURNSTILE_COUNTING_ENGINE"] = "twice"\n'
    assert "counted twice" in copy.run(setting + WEEK)


def test_the_usual_engine_is_duckdb_and_an_unknown_one_is_refused() -> None:
    assert engine_named("duckdb") is count
    with pytest.raises(InputError, match="TURNSTILE_COUNTING_ENGINE"):
        engine_named("abacus")
