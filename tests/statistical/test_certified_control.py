"""A biased sampler that was really released: the fit that each release makes must reject it.

OpenDP 0.14.1 draws discrete Gaussian noise that is too wide (opendp/opendp issue 2638, mended in
0.14.2). It is installed into a folder of its own, and draws in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from of_an_index import uv

from turnstile.assessment.audits.pipeline_copy import draw_once
from turnstile.assessment.audits.sampler import DRAWS, misfit
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise_families import NoiseFamily

pytestmark = pytest.mark.long
_DRAW = """
import json, sys
import opendp.prelude as dp
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
drawn = dp.m.make_gaussian(*space, scale=float(sys.argv[1]))([0] * int(sys.argv[2]))
json.dump(drawn, sys.stdout)
"""


@pytest.fixture(scope="module")
def biased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the biased version."""
    folder = tmp_path_factory.mktemp("opendp")
    uv("pip", "install", "--quiet", "--no-deps", "--target", folder, "opendp==0.14.1")
    return folder


@pytest.mark.parametrize(("scale", "draws"), [("2", DRAWS), ("4", 100_000)])
def test_the_fit_of_each_release_rejects_the_sampler_of_opendp_0_14_1(
    biased: Path, scale: str, draws: int
) -> None:
    drawn = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", _DRAW, scale, str(draws)],
        env={"PYTHONPATH": str(biased)},
        check=True,
        capture_output=True,
        timeout=300,
    )
    noise = np.array(json.loads(drawn.stdout), dtype=np.int64)
    event = DrawEvent("t", "count", NoiseFamily.DISCRETE_GAUSSIAN, Fraction(scale), (), ())
    reason = misfit(event, lambda _event, _cells: (noise,), alpha=1e-9)
    assert reason is not None
    assert "does not fit" in reason
    assert misfit(event, draw_once, alpha=1e-9) is None  # the version that the lock pins
