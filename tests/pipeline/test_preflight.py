"""What needs no sealed byte stops a week before its charge, and is not tried a second time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from small_deployment import WEEK, Deployment

from turnstile.errors import RefusedError
from turnstile.pipeline import preflight
from turnstile.pipeline.context import open_release
from turnstile.pipeline.steps import STEPS, step_named
from turnstile.pipeline.trials import canaries
from turnstile.privacy import stability
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.mechanisms import dispatch
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme

Cli = Callable[..., int]
pytestmark = pytest.mark.usefixtures("judged_anew")
OF_CHIEFS = "{required: true, persons: 2, role: datachief}"
FILE = f"embargoed/itms/{WEEK}/r0/preflight.json"


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line for each time that synthetic units were put through reading and counting."""
    times: list[str] = []
    try_them = canaries.observed_sensitivities

    def noted(programme: Programme, domain: PublicDomain) -> preflight.Trials:
        times.append(programme.name)
        return try_them(programme, domain)

    monkeypatch.setattr(canaries, "observed_sensitivities", noted)
    return times


def test_a_sensitivity_that_is_too_small_is_refused_before_any_charge(
    landed: Deployment,
    turnstile: Cli,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    packed = stability.packed

    def one_less(records: int, per_cell: int) -> Sensitivity:
        right = packed(records, per_cell)
        return replace(right, l1=right.l1 - 1)

    monkeypatch.setattr(stability, "packed", one_less)
    assert turnstile("run", "itms", "--week", WEEK) == 3
    said = capsys.readouterr().err
    assert "gate declared_sensitivity would fail" in said
    assert "nothing was charged" in said
    assert landed.spent() == {}
    assert not (landed.home / FILE).exists()  # so that nobody takes it for one that passed


@pytest.mark.parametrize(("gate", "times", "more"), [("one_run_audit", 0.5, 0), ("sampler", 1, 9)])
@pytest.mark.usefixtures("deployment")
def test_a_draw_that_is_not_as_declared_is_refused(
    monkeypatch: pytest.MonkeyPatch, gate: str, times: float, more: int
) -> None:
    draw = dispatch.draw

    def planted(event: DrawEvent, exact: NDArray[np.int64]) -> NDArray[np.int64]:
        noise = times * (draw(event, exact) - exact)
        return exact + noise.astype(np.int64) + more

    monkeypatch.setattr(dispatch, "draw", planted)
    monkeypatch.setattr(canaries, "observed_sensitivities", lambda *_: {})
    with pytest.raises(RefusedError, match=f"gate {gate} would fail"):
        preflight.require_preflight(open_release("itms", WEEK))


@pytest.mark.long
def test_a_week_is_tried_once_and_the_assessment_reads_it(
    landed: Deployment, tried: list[str]
) -> None:
    for name in STEPS[: STEPS.index("approve")]:
        step_named(name)("itms", WEEK, 0)
    assert tried == ["itms"]
    assert landed.spent()


def test_what_was_found_for_something_else_is_not_read(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[str] = []
    monkeypatch.setattr(canaries, "observed_sensitivities", lambda *_: times.append("tried") or {})
    release, file = open_release("itms", WEEK), deployment.home / FILE
    preflight.require_preflight(release)
    preflight.require_preflight(release)
    preflight.trials(release)
    assert len(times) == 1
    file.write_bytes(file.read_bytes().replace(b'"trials"', b'"trails"'))
    preflight.require_preflight(release)
    assert len(times) == 2
    file.unlink()
    preflight.require_preflight(release)
    assert len(times) == 3
    for change in (
        {"programme": replace(release.programme, digest="1" * 64)},
        {"domain": replace(release.domain, digest="2" * 64)},
    ):
        preflight.trials(replace(release, **change))
    assert len(times) == 5
    monkeypatch.setattr(preflight, "code_version", lambda: "other code")
    preflight.require_preflight(release)
    assert len(times) == 6


def test_an_approval_that_nobody_can_give_is_refused_before_any_charge(
    landed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    landed.edit("itms", "{required: false}", OF_CHIEFS)
    for names in ("", "datachief: [ada]\n"):
        (landed.include / "people.yaml").write_text(f"release_officer: [ada, grace]\n{names}")
        for command in (("check", "itms"), ("run", "itms", "--week", WEEK)):
            assert turnstile(*command) == 2
            said = capsys.readouterr().err
            assert "approval.persons: asks for 2 of the role datachief, and" in said
            assert f"names {names.count('ada')}, so that no release could be approved" in said
    landed.edit("itms", OF_CHIEFS, OF_CHIEFS.replace("true", "false"))
    assert turnstile("check", "itms") == 0  # negative control: nobody is asked
    assert landed.nothing_happened()


def test_an_approval_that_enough_people_can_give_is_waited_for(
    assessed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    """Negative control."""
    assessed.edit("itms", "{required: false}", OF_CHIEFS)
    (assessed.include / "people.yaml").write_text("datachief: [ada, grace]\n")
    assert turnstile("check", "itms") == 0
    assert turnstile("run", "itms", "--week", WEEK) == 3
    assert "0 of 2 approvals; may still answer: ada, grace" in capsys.readouterr().err
