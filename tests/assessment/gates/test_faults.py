"""The faults of the benchmark on the smallest programme: a sample each time, all in long runs."""

from __future__ import annotations

import pytest
from assessment_chances import honest
from assessment_faults import FAULTS, UNSEEN
from assessment_releases import Case, case_of
from scipy.stats import poisson

from assessment import after, before, failed

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
    "fault", [one for one in FAULTS if one.name in _SAMPLE], ids=lambda one: one.name
)
def test_a_fault_is_caught_before_and_after_a_publication(case: Case, fault: object) -> None:
    one = next(known for known in FAULTS if known is fault)
    spoiled = one.spoil(case, one.sizes[-1])
    assert failed(before(spoiled))
    assert failed(after(spoiled))


@pytest.mark.long
@pytest.mark.parametrize("name", ["opal_trip", "opal", "itms"])
def test_every_fault_that_can_be_seen_is_caught_at_its_largest_size(name: str) -> None:
    own = case_of(name)
    missed = {
        fault.name
        for fault in FAULTS
        if name in fault.only
        and not any(failed(before(fault.spoil(own, size))) for size in fault.sizes)
    }
    assert missed <= set(UNSEEN)


@pytest.mark.long
def test_correct_releases_are_let_go_and_stated_chances_are_the_chances() -> None:
    """Nine gates on numbers at 1e-9 each: one refusal here has a chance of 6e-6."""
    tally = honest(600)
    assert tally.refused == 0
    (stated, stopped), (most, bounded) = (tally.sums(is_itself=own) for own in (True, False))
    assert poisson.sf(stopped - 1, stated) > 1e-9
    assert poisson.cdf(stopped, stated) > 1e-3
    assert poisson.sf(bounded - 1, most) > 1e-9
