"""Which mechanisms a programme may name, and what stored events say of theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_deployment import INCLUDE

from turnstile.errors import ProgrammeError
from turnstile.privacy.mechanisms.registry import KNOWN_BAD, MechanismKind, module_of
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme, parse_programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek


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
