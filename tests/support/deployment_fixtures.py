"""Fixtures: a small deployment of its own for each test, and the console script in this process."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from kept_preflight import (
    KeptPreflight,
    KeptWorlds,
    Patches,
    made_once,
    of_judgement,
    of_look,
    of_trials,
    with_kept_noise,
)
from lent_engines import OPENED, LentEngines
from made_homes import Command, MadeHome, MadeHomes
from small_deployment import INCLUDE, WEEK, Deployment

from turnstile.assessment import assessment
from turnstile.assessment.attacks import risk
from turnstile.assessment.attacks.presence import best_guess
from turnstile.assessment.audits import release_audit, sampler
from turnstile.assessment.audits.pipeline_copy import run_canaries
from turnstile.assessment.gates.pipeline_copy import audits_of
from turnstile.cli import main
from turnstile.look.looking import look_at
from turnstile.pipeline.draw import drawing, planned_release
from turnstile.pipeline.landing import first_look
from turnstile.pipeline.preflight import require_preflight
from turnstile.pipeline.steps import STEPS
from turnstile.pipeline.trials import canaries, sampler_fits, small_worlds
from turnstile.pipeline.trials.canaries import observed_sensitivities
from turnstile.quality import checks
from turnstile.quality.expectations import judge
from turnstile.release.plan import make_plan

STEADY_ITMS = Path(__file__).parent / "programmes/itms.yaml"
STAGES = ("reserve", "draw", "assess", "approve")  # before which tests take up a week
PATCHES = Patches()
BegunWeek = Callable[[str, str], Deployment]


def deployment_in(folder: Path, environment: pytest.MonkeyPatch) -> Deployment:
    """Make a deployment of small programmes, and enter it."""
    include = folder / "include"
    shutil.copytree(INCLUDE / "programmes", include / "programmes")
    shutil.copytree(INCLUDE / "domains", include / "domains")
    (include / "people.yaml").write_text("release_officer: [ada, grace]\n")
    made = Deployment(folder / "var", include)
    made.enter(environment)
    made.edit("opal", "slot_minutes: 15", "slot_minutes: 240")  # few cells, quick draws
    made.keep_few_places()
    return made


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    return deployment_in(tmp_path, monkeypatch)


@pytest.fixture
def turnstile(deployment: Deployment) -> Callable[..., int]:
    """The console script, in this process."""
    assert deployment.home
    return lambda *arguments: main([str(argument) for argument in arguments])


@pytest.fixture
def check_refuses(
    deployment: Deployment, turnstile: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> Callable[[str, str, str, str], None]:
    """Edit a programme, and see `turnstile check` refuse it by a sentence that names a field."""

    def refused(programme: str, old: str, new: str, field: str) -> None:
        deployment.edit(programme, old, new)
        capsys.readouterr()
        assert turnstile("check", programme) == 2
        said = capsys.readouterr().err
        assert field in said
        assert "Traceback" not in said

    return refused


@pytest.fixture(scope="session", autouse=True)
def judged_once(pytestconfig: pytest.Config) -> None:
    """Let a programme be tried by synthetic units once, each plan be made and audited once.

    Equal files are looked at, and equal figures judged, once a process too.
    """
    assert pytestconfig.cache is not None
    kept = KeptPreflight(pytestconfig.cache.mkdir("preflight"), PATCHES.are_none)
    drawing.require_preflight = kept.require_preflight
    canaries.observed_sensitivities = made_once(observed_sensitivities, of_trials, PATCHES.are_none)
    worlds = KeptWorlds(pytestconfig.cache.mkdir("small_worlds"), PATCHES.are_none)
    small_worlds._kept_or_found = worlds.kept_or_found
    sampler.MANY_DRAWS = sampler.DRAWS  # a minute of each home; test_audits draws as many
    sampler_fits._kept_or_found = made_once(
        sampler_fits._kept_or_found,
        lambda event, _: (event.noise, event.scale),  # of the code as it stands
        PATCHES.are_none,
    )
    release_audit.run_canaries = with_kept_noise(run_canaries, PATCHES.are_none)
    first_look.look_at = made_once(look_at, of_look, PATCHES.are_none)
    checks.judge = made_once(judge, of_judgement, PATCHES.are_none)
    assessment.audits_of = made_once(
        audits_of,
        lambda programme, events, copy: (
            programme,
            tuple(events),
            frozenset(copy.observed.items()),
            copy.draw,
        ),
        PATCHES.are_none,
    )
    risk.best_guess = made_once(
        best_guess, lambda changes: frozenset(changes.items()), PATCHES.are_none
    )
    planned_release.make_plan = made_once(
        make_plan,
        lambda programme, domain, week, revision: (programme, domain.digest, week, revision),
        PATCHES.are_none,
    )


@pytest.fixture(scope="session", autouse=True)
def engines_lent() -> None:
    """Let one engine serve many who connect."""
    duckdb.connect = LentEngines().connect  # type: ignore[assignment]


@pytest.fixture
def own_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test open engines of its own."""
    monkeypatch.setattr(duckdb, "connect", OPENED)


@pytest.fixture
def judged_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test's own homes find everything themselves."""
    monkeypatch.setattr(drawing, "require_preflight", require_preflight)


@pytest.fixture(scope="session")
def homes(pytestconfig: pytest.Config) -> MadeHomes:
    """Homes that were made once, in the folder of pytest's cache."""
    assert pytestconfig.cache is not None
    return MadeHomes.of_sources(pytestconfig.cache.mkdir("homes"))


def small_home(homes: MadeHomes, folder: Path, *commands: Command) -> MadeHome:
    """Return the home that commands make of a small deployment; the folder is used for it."""
    with pytest.MonkeyPatch.context() as environment:
        deployment_in(folder, environment)
    return homes.get(folder, *commands)


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes) -> Path:
    """A generated week of both programmes, made once; only to be read."""
    rows = ("--weeks", WEEK, "--rows", "20000", "--seed", "3")
    folder = tmp_path_factory.mktemp("generated")
    made = small_home(homes, folder, ("sample", "opal", *rows), ("sample", "itms", *rows))
    return made.home / "landing"


@pytest.fixture
def landed(deployment: Deployment, generated: Path) -> Deployment:
    """A deployment whose landing zone holds a generated week of both programmes."""
    shutil.copytree(generated, deployment.home / "landing")
    return deployment


@pytest.fixture(scope="session")
def begun_homes(
    tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes, generated: Path
) -> Callable[[str, str], MadeHome]:
    """Homes in which the steps of a week of `opal` or the steady `itms` are done before one."""
    made: dict[tuple[str, str], MadeHome] = {}

    def of(programme: str, before: str) -> MadeHome:
        if (programme, before) not in made:
            folder = tmp_path_factory.mktemp("begun")
            with pytest.MonkeyPatch.context() as environment:
                begun = deployment_in(folder, environment)
            shutil.copyfile(STEADY_ITMS, begun.include / "programmes/itms.yaml")
            shutil.copytree(generated, begun.home / "landing")
            made[programme, before] = done_before(homes, folder, programme, before)
        return homes.unchanged(made[programme, before])

    return of


@pytest.fixture
def begun_week(deployment: Deployment, begun_homes: Callable[[str, str], MadeHome]) -> BegunWeek:
    """A copy of such a home."""
    return lambda programme, before: with_home(deployment, begun_homes(programme, before).home)


def done_before(homes: MadeHomes, folder: Path, programme: str, before: str) -> MadeHome:
    """Return the home of the steps before one, made of that before an earlier stage."""
    ends = [STEPS.index(stage) for stage in STAGES[: STAGES.index(before) + 1]]
    for begin, end in itertools.pairwise([0, *ends]):
        made = homes.get(folder, *((step, programme, WEEK) for step in STEPS[begin:end]))
        folder = made.root
    return made


@dataclass(frozen=True)
class PublishedWeeks:
    """Homes of one week: before approval and public; and what `run` printed. Only to be read."""

    assessed: Path
    home: Path
    printed: dict[str, str]


@pytest.fixture(scope="session")
def published_weeks(
    tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes, generated: Path
) -> PublishedWeeks:
    """A week of `opal` and the steady `itms`, made once; tests ask for copies, as below."""
    root = tmp_path_factory.mktemp("published_weeks")
    with pytest.MonkeyPatch.context() as environment:
        begun = deployment_in(root, environment)
    shutil.copyfile(STEADY_ITMS, begun.include / "programmes/itms.yaml")
    shutil.copytree(generated, begun.home / "landing")
    assessed = done_before(homes, root, "itms", "approve")
    runs = [("run", programme, "--week", WEEK) for programme in ("opal", "itms")]
    public = homes.get(assessed.root, *runs)
    return PublishedWeeks(
        assessed.home, public.home, dict(zip(("opal", "itms"), public.printed, strict=True))
    )


@pytest.fixture(scope="session")
def public_week(tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes) -> MadeHome:
    """A public week of opal, made once; the files of the next one have landed."""
    sample = ("sample", "opal", "--weeks", f"{WEEK}:2016-W31", "--rows", "2000", "--seed", "3")
    run = ("run", "opal", "--week", WEEK)
    return small_home(homes, tmp_path_factory.mktemp("deployment"), sample, run)


@pytest.fixture(scope="session")
def half_hour_weeks(tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes) -> MadeHome:
    """Two weeks of `opal` by half hours and by regions, made once; only to be read."""
    folder = tmp_path_factory.mktemp("half_hours")
    with pytest.MonkeyPatch.context() as environment:
        begun = deployment_in(folder, environment)
    begun.edit("opal", "slot_minutes: 240", "slot_minutes: 30")
    begun.edit("opal", "  slots: all_day", "  slots: all_day\n  regions: domains/opal_regions.csv")
    weeks = (WEEK, "2016-W31")
    sample = ("sample", "opal", "--weeks", ":".join(weeks), "--rows", "20000", "--seed", "3")
    return homes.get(folder, sample, *(("run", "opal", "--week", week) for week in weeks))


@pytest.fixture
def published(deployment: Deployment, published_weeks: PublishedWeeks) -> Deployment:
    """A deployment in which a week of `opal` and of the steady `itms` is public already."""
    return with_home(deployment, published_weeks.home)


@pytest.fixture
def assessed(deployment: Deployment, published_weeks: PublishedWeeks) -> Deployment:
    """A deployment in which a week of the steady `itms` waits for approval."""
    return with_home(deployment, published_weeks.assessed)


def with_home(deployment: Deployment, home: Path) -> Deployment:
    """Give a deployment a copy of a home, and the steady `itms`."""
    shutil.copyfile(STEADY_ITMS, deployment.include / "programmes/itms.yaml")
    shutil.copytree(home, deployment.home, symlinks=True)
    return deployment
