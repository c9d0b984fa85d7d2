"""The size of the noise: groups of differences whose limits are those of independent squares."""

from __future__ import annotations

import numpy as np
from assessment_releases import case_of
from scipy.stats import binom

from turnstile.assessment.gates.noise_scale import _apart, by_pair, nested_scale
from turnstile.assessment.gates.numbers import judged_release


def test_all_tables_together_are_pairs_that_share_no_draw() -> None:
    pairs = by_pair(judged_release(case_of("opal", slots=12, stops=8).drawn).totals)
    names = [apart.name.partition(" on ")[0] for apart in _apart(pairs)]
    assert set(names) == {"on_time and on_time_location", "off_time and off_time_location"}
    assert len(names) == 14
    assert len(pairs) == 4  # rows and columns of a table share its cells, so not all four


def test_noise_of_one_table_is_found_over_its_days() -> None:
    """As of one draw of two, too small on every day: 6 deviations of the mean beyond the limit."""
    case = case_of("opal")
    vectors = [
        exact + np.rint(z * (0.55 if event.table == "on_time" else 1)).astype(np.int64)
        for event, exact, z in zip(case.drawn.events, case.exact, case.noise, strict=True)
    ]
    test_noise = nested_scale(judged_release(case.with_vectors(vectors)))
    assert not test_noise.passed
    assert "on_time and on_time_location" in test_noise.statement
    assert nested_scale(judged_release(case.drawn)).passed


def test_right_noise_is_refused_no_more_often_than_stated() -> None:
    alpha, trials, refused = 0.05, 60, 0
    for trial in range(trials):
        drawn = case_of("opal_trip", slots=6, stops=8, label=str(trial)).drawn
        refused += not nested_scale(judged_release(drawn), alpha).passed
    assert binom.sf(refused - 1, trials, alpha) > 1e-9
