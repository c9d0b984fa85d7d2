"""The faults of the benchmark on the smallest programme: a sample each time, all in long runs."""

from __future__ import annotations

import pytest
from assessment_chances import honest
from assessment_faults import FAULTS, UNSEEN
from assessment_releases import Case, case_of

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
def test_correct_releases_are_let_go() -> None:
    """Seven gates on numbers at 1e-9 each: one refusal here has a chance of 4e-6."""
    assert honest(600) == 0
