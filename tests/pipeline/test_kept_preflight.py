"""Homes of tests share what preflight found of one programme, domain and code, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

import grimp
import kept_preflight
import pandas as pd
import pytest
from deployment_fixtures import PATCHES
from kept_preflight import OUT_OF_SIGHT, KeptPreflight, KeptWorlds, of_look, of_trials
from small_deployment import WEEK, Deployment

from turnstile.assessment import assessment
from turnstile.assessment.audits.pipeline_copy import (
    ObservedSensitivity,
    PipelineCopy,
    draw_once,
)
from turnstile.assessment.gates import pipeline_copy
from turnstile.commands import run
from turnstile.errors import RefusedError
from turnstile.look.asked import Asked
from turnstile.look.looking import look_at
from turnstile.pipeline import preflight
from turnstile.pipeline.context import Release, open_release
from turnstile.pipeline.draw import drawing
from turnstile.pipeline.landing import first_look
from turnstile.pipeline.steps import step_named
from turnstile.pipeline.trials import canaries, sampler_fits, small_worlds
from turnstile.privacy.mechanisms import dispatch
from turnstile.privacy.units import ProtectionUnit
from turnstile.quality import checks
from turnstile.quality.expectations import Outcome
from turnstile.quality.findings import Severity
from turnstile.quality.rules import RANGE, Frame, Rule


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line for each time that synthetic units were tried; they take no time here."""
    times: list[str] = []
    monkeypatch.setattr(canaries, "observed_sensitivities", lambda *_: times.append("tried") or {})
    for judging in ("audits_of", "plan_gates"):
        monkeypatch.setattr(pipeline_copy, judging, lambda *_: ())
    return times


@pytest.fixture
def kept(tmp_path: Path) -> KeptPreflight:
    return KeptPreflight(tmp_path / "kept", lambda: True)


@pytest.fixture
def release(deployment: Deployment) -> Release:
    assert deployment.home
    return open_release("itms", WEEK)


def in_a_new_home(release: Release, folder: Path, **changes: object) -> Release:
    """The release, or another one, in a home without its files."""
    return replace(release, settings=replace(release.settings, home=folder), **changes)


def test_the_next_home_of_the_same_programme_tries_nothing(
    kept: KeptPreflight, release: Release, tried: list[str], tmp_path: Path
) -> None:
    kept.require_preflight(release)
    second = in_a_new_home(release, tmp_path / "second")
    kept.require_preflight(second)
    assert tried == ["tried"]
    assert preflight.trials(second) == {}  # as the assessment reads it
    assert tried == ["tried"]


@pytest.mark.some(1)
@pytest.mark.parametrize("changed", ["programme", "domain", "code"])
def test_another_programme_domain_or_code_is_tried_anew(
    kept: KeptPreflight,
    release: Release,
    tried: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changed: str,
) -> None:
    kept.require_preflight(release)
    second = in_a_new_home(release, tmp_path / "second")
    if changed == "code":
        for module in (preflight, kept_preflight):
            monkeypatch.setattr(module, "code_version", lambda: "other code")
    else:
        other = replace(getattr(release, changed), digest="1" * 64)
        second = replace(second, **{changed: other})
    kept.require_preflight(second)
    assert len(tried) == 2


def test_a_file_of_something_else_under_the_name_of_this_is_not_believed(
    kept: KeptPreflight, release: Release, tried: list[str], tmp_path: Path
) -> None:
    kept.require_preflight(release)
    (file,) = (tmp_path / "kept").glob("*.json")
    file.write_bytes(file.read_bytes().replace(b"programme_digest", b"program_digest"))
    kept.require_preflight(in_a_new_home(release, tmp_path / "second"))
    assert len(tried) == 2


def test_what_was_refused_is_not_kept(release: Release, tmp_path: Path) -> None:
    def refuse(_: Release) -> None:
        raise RefusedError("a gate would fail")

    kept = KeptPreflight(tmp_path / "kept", lambda: True, refuse)
    with pytest.raises(RefusedError):
        kept.require_preflight(release)
    assert not list((tmp_path / "kept").glob("*.json"))


def test_while_a_test_replaces_code_nothing_is_shared(
    release: Release, tried: list[str], tmp_path: Path
) -> None:
    shared = KeptPreflight(tmp_path / "kept", PATCHES.are_none)
    shared.require_preflight(release)  # `tried` replaces a function
    assert tried == ["tried"]
    assert not list((tmp_path / "kept").iterdir())


def test_a_replaced_attribute_or_item_is_known_until_it_is_put_back() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNHEARD_OF", "1")
        assert PATCHES.are_none()
        patch.setitem({}, "unheard_of", 1)
        assert not PATCHES.are_none()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "step_named", None)  # above the pipeline
        assert PATCHES.are_none()
        patch.setattr(preflight, "trials", None)
        assert not PATCHES.are_none()
    assert PATCHES.are_none()


def test_nothing_that_is_judged_by_imports_what_is_out_of_sight() -> None:
    graph = grimp.build_graph("turnstile", cache_dir=None)
    judged_by = graph.find_upstream_modules("turnstile.pipeline.preflight")
    for kept in ("assessment.assessment", "look.looking", "quality.expectations"):
        judged_by |= graph.find_upstream_modules(f"turnstile.{kept}")
    assert {"turnstile.counting.bounding", "turnstile.privacy.mechanisms.dispatch"} <= judged_by
    assert not [module for module in judged_by if module.startswith(OUT_OF_SIGHT)]
    assert set(OUT_OF_SIGHT) <= graph.modules, "what is no module is patched by nobody"


def test_a_look_is_one_of_files_and_of_what_reads_them_alone(
    landed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Asked] = []
    monkeypatch.setattr(first_look, "look_at", lambda one: asked.append(one) or look_at(one))
    assert landed.home
    step_named("ingest")("opal", WEEK, 0)
    (one,) = asked
    programme, snapshot = one.programme, one.snapshot
    assert snapshot is not None
    quieter = replace(programme.mechanism, amount=programme.mechanism.amount / 2)
    promise = replace(programme, mechanism=quieter, caps=(), digest="1" * 64)
    assert of_look(replace(one, programme=promise)) == of_look(one)
    blind = replace(programme, mechanism=None, caps=(), approval=None)  # type: ignore[arg-type]
    whole = replace(one, snapshot=None)  # with every line of its page
    assert look_at(replace(whole, programme=blind)) == look_at(whole)
    for other in (
        replace(one, programme=replace(programme, source=replace(programme.source, modes=()))),
        replace(one, programme=replace(programme, name="other")),
        replace(one, snapshot=replace(snapshot, digest="1" * 64)),
    ):
        assert of_look(other) != of_look(one)


def test_figures_are_judged_once_by_the_same_rules() -> None:
    least = {"column": "rows", "min_value": 1, "max_value": None}
    rules = (Rule("rows", Severity.WARN, Frame.WEEK, RANGE, "holds", least),)
    for figures, outcome in (([1], Outcome.KEPT), ([0], Outcome.NOT_KEPT), ([1], Outcome.KEPT)):
        frames = {Frame.WEEK: pd.DataFrame({"rows": figures})}
        assert checks.judge(rules, frames) == (outcome,)
    assert checks.judge((*rules, *rules), frames) == (Outcome.KEPT,) * 2


@pytest.mark.long
def test_the_same_plan_is_audited_once_and_another_anew(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    programme, events = release.programme, release.plan.events
    first = assessment.audits_of(programme, events, PipelineCopy())
    assert assessment.audits_of(programme, list(events), PipelineCopy()) is first
    observed = {(events[0].label, programme.mechanism.unit): ObservedSensitivity(0, 0)}
    for asked in (
        (replace(programme, digest="1" * 64), events, PipelineCopy()),
        (programme, events[:1], PipelineCopy()),
        (programme, events, PipelineCopy(observed)),
        (programme, events, PipelineCopy(draw=partial(draw_once))),
    ):
        assert assessment.audits_of(*asked) is not first
    monkeypatch.setattr(dispatch, "draw", dispatch.draw)
    assert assessment.audits_of(programme, events, PipelineCopy()) is not first


def test_synthetic_units_are_tried_once_for_what_decides_how_far_they_move(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    programme, domain = release.programme, release.domain
    first = canaries.observed_sensitivities(programme, domain)
    other_promise = replace(
        programme,
        caps=(),
        digest="1" * 64,
        mechanism=replace(programme.mechanism, amount=programme.mechanism.amount / 2),
        source=replace(
            programme.source, landing="{week}/elsewhere/*", absent_days=(date(2016, 7, 26),)
        ),
    )
    assert canaries.observed_sensitivities(other_promise, domain) is first
    bound = replace(programme.units[0], contributions_max=programme.units[0].contributions_max + 1)
    for other in (
        replace(programme, units=(bound,)),
        replace(programme, tables=programme.tables[:1]),
        replace(programme, source=replace(programme.source, vehicle_form=None)),
        replace(programme, time=replace(programme.time, day_starts=240)),
    ):
        assert of_trials(other, domain) != of_trials(programme, domain)
    assert of_trials(programme, replace(domain, digest="1" * 64)) != of_trials(programme, domain)
    monkeypatch.setattr(dispatch, "draw", dispatch.draw)
    assert canaries.observed_sensitivities(programme, domain) is not first


def test_a_noise_is_looked_at_very_often_once_for_all_homes(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first/small_worlds", tmp_path / "second/small_worlds"
    for home in (first, second):
        home.parent.mkdir()
    misfits = sampler_fits.misfits_of(release.plan.events, first)
    assert not any(misfits.values())
    assert sampler_fits.misfits_of(release.plan.events, second) == misfits
    assert not second.exists()
    monkeypatch.setattr(dispatch, "draw", lambda _, exact: exact)  # a fault, on no disk
    assert all(sampler_fits.misfits_of(release.plan.events, second).values())


def test_small_worlds_are_searched_once_for_all_homes(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = tmp_path / "one/small_worlds", tmp_path / "other/small_worlds"
    for home in (one, other):
        home.parent.mkdir()
    programme = replace(
        release.programme, source=replace(release.programme.source, modes=("tram",))
    )
    shared = KeptWorlds(tmp_path / "kept", lambda: True)
    monkeypatch.setattr(small_worlds, "_kept_or_found", shared.kept_or_found)
    searched: list[object] = []
    search = small_worlds._farthest.__wrapped__
    monkeypatch.setattr(
        small_worlds, "_farthest", lambda *asked: searched.append(asked) or search(*asked)
    )
    first = small_worlds.small_worlds(programme, one)
    assert searched
    searched.clear()
    assert small_worlds.small_worlds(programme, other) == first
    assert searched == []
    assert {file.name for file in one.iterdir()} == {file.name for file in other.iterdir()}
    assert small_worlds.small_worlds(programme, tmp_path / "third/small_worlds") == first
    assert searched == []
    bound = replace(programme.units[0], unit=ProtectionUnit.BUS_WEEK)
    small_worlds.small_worlds(replace(programme, units=(bound,)), other)
    assert searched  # another shape
    searched.clear()
    assert small_worlds.small_worlds(programme) == first
    assert searched  # no home knows anything
    searched.clear()
    anew = KeptWorlds(tmp_path / "kept", PATCHES.are_none)
    monkeypatch.setattr(small_worlds, "_kept_or_found", anew.kept_or_found)
    assert small_worlds.small_worlds(programme, tmp_path / "third/small_worlds") == first
    assert searched  # something is replaced
    assert not (tmp_path / "third").exists()


def test_the_steps_of_tests_share() -> None:
    assert isinstance(drawing.require_preflight.__self__, KeptPreflight)


@pytest.mark.usefixtures("judged_anew")
def test_tests_of_preflight_do_not() -> None:
    assert drawing.require_preflight is preflight.require_preflight
