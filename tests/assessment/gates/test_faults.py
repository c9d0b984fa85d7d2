"""The faults of the benchmark on the smallest programme: a sample each time, all in long runs."""

from __future__ import annotations

import json
from pathlib import Path

import assessment_chances
import numpy as np
import pytest
from assessment_any_counts import whatever_the_counts
from assessment_chances import honest
from assessment_faults import FAULTS, WHY_MISSED, Fault
from assessment_noises import CERTAIN, Gain, declared
from assessment_releases import FIVE, Case, case_of
from scipy.stats import poisson

from assessment import after, before, failed
from turnstile.assessment.gates.noise_kind import noise_kind
from turnstile.assessment.gates.numbers import judged_release

_SAMPLE = {
    "no noise on one day's finest table",
    "one vector of noise on two days",
    "one vector of noise, sign turned",
    "floating-point Laplace noise, rounded",
    "normal noise of the same variance, for Laplace",
    "no noise in random cells (share)",
}


@pytest.fixture(scope="module")
def case() -> Case:
    """A release of the programme with Laplace noise."""
    return case_of("opal_trip")


def test_an_honest_release_is_let_go_before_and_after_its_publication(case: Case) -> None:
    assert failed(before(case.drawn)) == []
    assert failed(after(case.drawn)) == []


@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if fault.name in _SAMPLE], ids=lambda fault: fault.name
)
def test_a_fault_is_caught_before_and_after_a_publication(case: Case, fault: object) -> None:
    planted_fault = next(known for known in FAULTS if known is fault)
    spoiled = planted_fault.spoil(case, planted_fault.sizes[-1])
    assert failed(before(spoiled))
    assert failed(after(spoiled))


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("name", "fault", "size"),
    [
        ("opal_year", "noise clipped (deviations)", 3.0),
        ("opal_year", "no noise in random cells (share)", 0.01),
        ("opal_year", "scale too small, all tables (times)", 0.95),
        ("itms", "scale too large, all tables (times)", 1.1),
        ("opal", "scale too small, one table (times)", 0.9),
        ("opal", "noise clipped from above alone (deviations)", 2.0),
    ],
)
def test_small_faults_are_bet_on_in_all_tables_together(name: str, fault: str, size: float) -> None:
    test_small_faults_are_bet = case_of(name)
    bet = next(known for known in FAULTS if known.name == fault)
    assert not noise_kind(judged_release(bet.spoil(test_small_faults_are_bet, size))).passed
    assert noise_kind(judged_release(test_small_faults_are_bet.drawn)).passed


def test_what_a_likelihood_ratio_test_is_told_is_what_it_finds(case: Case) -> None:
    """Simulated: noise of .9 of its scale, the log likelihood ratio of which has this law."""
    event = next(draw for draw in case.drawn.events if draw.scale == 2)
    faulty_law, other = declared(event, 0.9), declared(event)
    told = faulty_law.against(other)
    for number, law in enumerate((faulty_law, other)):
        drawn = law.sampled(f"ratios {number}", 400_000) - other.values[0]
        ratios = np.log(faulty_law.chances[drawn] / other.chances[drawn])
        if law is faulty_law:
            assert ratios.mean() == pytest.approx(told.mean, rel=0.1)
            assert ratios.var() == pytest.approx(told.variance, rel=0.05)
        else:
            assert np.exp(ratios).mean() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("gain", "is_seen"),
    [
        (Gain(20.0), False),  # what is certain under the fault, and has e^-20 without it
        (Gain(21.0), True),
        (Gain(33.0, 66.0), False),  # a normal mean 8.1 deviations off: 1e-9 and 99 % ...
        (Gain(36.0, 72.0), True),  # ... need 6.0 and 2.33
        (CERTAIN, True),
    ],
)
def test_a_fault_is_seen_by_a_ratio_that_passes_with_99_percent_at_1e9(
    gain: Gain, *, is_seen: bool
) -> None:
    assert gain.is_seen is is_seen


def test_without_the_raw_counts_no_more_is_told_and_of_busy_cells_next_to_nothing() -> None:
    case = case_of("opal")
    fault = next(
        candidate
        for candidate in FAULTS
        if candidate.name == "no noise in the busiest cells (share)"
    )
    blind = whatever_the_counts(fault, case, 0.01)
    assert blind is not None
    assert blind.mean < fault.told(case, 0.01).mean / 10
    zeros = next(
        candidate for candidate in FAULTS if candidate.name.startswith("empty cells left alone")
    )
    assert (whatever_the_counts(zeros, case, 1.0) or CERTAIN).is_seen


@pytest.mark.long
@pytest.mark.parametrize("name", FIVE)
def test_every_fault_that_can_be_seen_without_raw_counts_is_caught_at_its_largest_size(
    name: str,
) -> None:
    programme_case = case_of(name)

    def is_missed(fault: Fault) -> bool:
        if name not in fault.only or failed(before(fault.spoil(programme_case, fault.sizes[-1]))):
            return False
        blind = whatever_the_counts(fault, programme_case, fault.sizes[-1])
        return fault.told(programme_case, fault.sizes[-1]).is_seen and (
            blind is None or blind.is_seen
        )

    busy = {"no noise in the first cells of one table (share)"}  # who knew them could tell
    assert {fault.name for fault in FAULTS if is_missed(fault)} <= busy | set(WHY_MISSED)


def test_what_gates_said_of_a_release_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "var" / "kept.jsonl"
    first = honest(4, path)
    assert first.judged.total() > 4
    with monkeypatch.context() as nobody:
        nobody.setattr(assessment_chances, "_said", None)
        assert honest(4, path) == first
    other = dict(assessment_chances._codes(), drawn_once="another code")
    monkeypatch.setattr(assessment_chances, "_codes", lambda: other)
    lines = len(path.read_text().splitlines())
    honest(4, path)
    assert [json.loads(text)[2] for text in path.read_text().splitlines()[lines:]] == (
        4 * ["drawn_once"]
    )


@pytest.mark.long
def test_correct_releases_are_let_go_and_stated_chances_are_the_chances(tmp_path: Path) -> None:
    """Nine gates on numbers at 1e-9 each: one refusal here has a chance of 6e-6."""
    tally = honest(600, tmp_path / "kept.jsonl")
    assert not tally.refused
    (stated, stopped), (most, bounded) = (
        tally.sums(is_itself=is_itself) for is_itself in (True, False)
    )
    assert poisson.sf(stopped - 1, stated) > 1e-9
    assert poisson.cdf(stopped, stated) > 1e-3
    assert poisson.sf(bounded - 1, most) > 1e-9
