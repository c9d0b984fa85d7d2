"""A new mechanism is one module and its record, a new unit one record: done in a scratch copy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from scratch_copy import ROOT, ScratchCopy

from turnstile.errors import ProgrammeError
from turnstile.privacy.mechanisms.registry import KNOWN_BAD, MechanismKind, module_of
from turnstile.programme.domain_files import load_domain
from turnstile.programme.loading import load_programme, parse_programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

INCLUDE = ROOT / "include"
_TENS = '''"""Dense Gaussian draws, rounded to tens. Proof: dense_tens.proof.md."""

from __future__ import annotations

import numpy as np

from turnstile.privacy.mechanisms import dense


def draw(event, exact):
    """Return the noisy table in tens: post-processing of a dense draw."""
    return np.int64(10) * np.rint(dense.noised(event, exact) / 10).astype(np.int64)
'''
_PROOF = "# dense_tens: proof of the loss\n\nRounding is post-processing (dense.proof.md).\n"
_RECORD = """    STABILITY_HISTOGRAM = (
        "stability_histogram","""
_DRAWN = """
import numpy as np
from dataclasses import replace
from pathlib import Path
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.programme.domain_files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

include = Path("include")
programme = load_programme("opal", include)
plan = make_plan(programme, load_domain(programme, include), ServiceWeek(2016, 30))
print(plan.postings)
noisy = draw(plan.events[0], np.full(500, 1_000, dtype=np.int64))
assert (noisy % 10 == 0).all(), noisy
assert len(set(noisy.tolist())) > 5
"""
_RUN = """
from turnstile.cli import main

assert main(["sample", "opal", "--weeks", "2016-W30:2016-W30", "--rows", "300", "--seed", "1"]) == 0
assert main(["run", "opal_year", "--week", "2016-W30"]) == 0
assert main(["ledger", "balance"]) == 0
assert main(["ledger", "verify"]) == 0
"""


def test_a_mechanism_is_one_module_and_its_record(tmp_path: Path) -> None:
    copy = ScratchCopy(tmp_path)
    mechanisms = "include/turnstile/privacy/mechanisms"
    copy.add(f"{mechanisms}/dense_tens.py", _TENS)
    copy.add(f"{mechanisms}/dense_tens.proof.md", _PROOF)
    line = '    DENSE_TENS = "dense_tens", NoiseFamily.DISCRETE_GAUSSIAN, "rho", gaussian_noise, '
    copy.replace(f"{mechanisms}/registry.py", _RECORD, f'{line}"dense_tens"\n{_RECORD}')
    copy.replace("include/programmes/opal.yaml", "kind: dense_gaussian", "kind: dense_tens")
    opal = load_programme("opal", INCLUDE)
    plan = make_plan(opal, load_domain(opal, INCLUDE), ServiceWeek(2016, 30))
    assert copy.run(_DRAWN).strip() == str(plan.postings)  # rounding costs nothing, saves nothing
    assert len(copy.touched_sources) == 2


@pytest.mark.long
def test_a_unit_is_one_record_from_the_bound_to_the_ledger(tmp_path: Path) -> None:
    copy = ScratchCopy(tmp_path)
    line = '    CARD = "card", '
    copy.replace(
        "include/turnstile/privacy/units.py",
        line,
        '    CARD_MONTH = ("card_month", "the month of a card", Subject.CARD, 31,\n'
        '                  lambda block: f"{block.service_date:%Y-%m}", "trips_at_most")\n' + line,
    )
    year = "include/programmes/opal_year.yaml"
    copy.replace(year, "card_week: {trips_at_most: 20", "card_month: {trips_at_most: 60")
    copy.replace(year, "unit: card_week", "unit: card_month")
    said = copy.run(_RUN)
    assert "card_month" in said
    assert "2016-07" in said
    assert len(copy.touched_sources) == 1


@pytest.mark.parametrize("name", [*KNOWN_BAD, "laplace_from_a_blog"])
def test_a_known_bad_or_unknown_mechanism_is_refused(name: str) -> None:
    text = (INCLUDE / "programmes/opal.yaml").read_text()
    with pytest.raises(ProgrammeError, match=r"may not publish|is unknown"):
        parse_programme(text.replace("kind: dense_gaussian", f"kind: {name}"), "opal.yaml")


def test_noise_and_threshold_identify_the_module_of_stored_events() -> None:
    opal = load_programme("opal_2017", INCLUDE)
    event = make_plan(opal, load_domain(opal, INCLUDE), ServiceWeek(2016, 30)).events[0]
    assert module_of(event) == "stability_histogram"
    assert module_of(replace(event, threshold=None, delta=event.delta * 0)) == "dense"
    with pytest.raises(ValueError, match="laplace_from_a_blog"):
        module_of(replace(event, mechanism="laplace_from_a_blog"))
    assert {kind.named_in_events for kind in MechanismKind} == {None}
