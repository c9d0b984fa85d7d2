"""What would stop a week at its publication stops it at `reserve`, and nothing is charged."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deployment_fixtures import BegunWeek, with_home
from made_homes import MadeHome, MadeHomes
from small_deployment import WEEK, Deployment

from turnstile.errors import TurnstileError
from turnstile.estimates import release_tables
from turnstile.ledger.custody import space
from turnstile.pipeline import after_seal
from turnstile.pipeline.public_package import require_intact
from turnstile.pipeline.steps import STEPS, step_named

AFTER = "2016-W31"
PACKAGE = Path(__file__).parents[2] / "include/turnstile"
Plant = Callable[[Deployment, pytest.MonkeyPatch], None]


def _a_new_column(_: Deployment, patch: pytest.MonkeyPatch) -> None:
    whole = release_tables.with_gap_days

    def with_one_more(rows: pa.Table, gaps: object) -> pa.Table:
        made = whole(rows, gaps)
        return made.append_column("riders_aboard", pa.nulls(made.num_rows, pa.int64()))

    patch.setattr(release_tables, "with_gap_days", with_one_more)


def _a_full_disk(_: Deployment, patch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    patch.setattr(space.os, "posix_fallocate", full)


def _a_public_zone_that_is_a_file(deployment: Deployment, _: pytest.MonkeyPatch) -> None:
    deployment.public.mkdir(exist_ok=True)
    (deployment.public / "opal").write_text("in the way")


def _an_embargoed_zone_that_is_a_file(deployment: Deployment, _: pytest.MonkeyPatch) -> None:
    folder = deployment.home / "embargoed/opal"
    shutil.rmtree(folder)
    folder.write_text("in the way")


def _in_the_way(place: str, *, is_folder: bool = False) -> Plant:
    def plant(deployment: Deployment, _: pytest.MonkeyPatch) -> None:
        path = deployment.home / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_folder:
            path.mkdir()
        else:
            path.write_text("in the way")

    return plant


# cause, and what its refusal says
CAUSES: dict[str, tuple[Plant, str]] = {
    "a column that nothing declares": (_a_new_column, "riders_aboard has no source"),
    "a full disk": (_a_full_disk, "No space left on device"),
    "a file where measurements go": (
        _in_the_way(f"embargoed/opal/{WEEK}/r0/measurements"),
        "measurements: zone: stands where a folder is made",
    ),
    "a file where the week goes": (_in_the_way(f"public/opal/{WEEK}"), "a folder is made"),
    "a folder where the pointer goes": (
        _in_the_way("public/opal/latest", is_folder=True),
        "latest: zone: stands where a file is made",
    ),
    "a public zone that cannot be written": (_a_public_zone_that_is_a_file, "public"),
    "an embargoed zone that cannot be written": (_an_embargoed_zone_that_is_a_file, "embargoed"),
}


@pytest.fixture
def counted(begun_week: BegunWeek) -> Deployment:
    return begun_week("opal", "reserve")


@pytest.mark.usefixtures("judged_anew")
@pytest.mark.parametrize("cause", CAUSES)
def test_it_is_refused_at_reserve_with_nothing_charged(
    counted: Deployment, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    plant, said = CAUSES[cause]
    with monkeypatch.context() as patch:
        plant(counted, patch)
        with pytest.raises(TurnstileError, match=said):
            step_named("reserve")("opal", WEEK)
    assert counted.nothing_happened()


def test_a_snapshot_that_is_away_at_the_draw_costs_nothing(counted: Deployment) -> None:
    step_named("reserve")("opal", WEEK)
    rows = counted.home / f"private/opal/{WEEK}/snapshots"
    aside = rows.rename(rows.with_name("snapshots.aside"))
    for _ in range(2):  # clearing it again costs nothing either
        with pytest.raises(TurnstileError, match="snapshot"):
            step_named("draw")("opal", WEEK)
    assert not any(counted.spent().values())
    aside.rename(rows)
    assert step_named("draw")("opal", WEEK)  # negative control: nothing else was in the way
    assert any(counted.spent().values())


@pytest.fixture
def next_counted(deployment: Deployment, homes: MadeHomes, public_week: MadeHome) -> Deployment:
    """A public week of opal, and the next one counted."""
    steps = STEPS[: STEPS.index("reserve")]
    made = homes.get(public_week.root, *((step, "opal", AFTER) for step in steps))
    return with_home(deployment, made.home)


def test_an_earlier_package_that_was_altered_is_refused_at_reserve(
    next_counted: Deployment,
) -> None:
    spent = next_counted.spent()
    table = next_counted.public / f"opal/{WEEK}/r0/data/slot.csv"
    intact = table.read_bytes()
    table.write_bytes(intact.replace(b"\n", b"\n\n", 1))
    with pytest.raises(TurnstileError, match="restore the package, from which"):
        step_named("reserve")("opal", AFTER)
    assert next_counted.spent() == spent
    table.write_bytes(intact)  # negative control: nothing else was in the way
    assert step_named("reserve")("opal", AFTER)


def test_a_log_key_that_is_gone_is_found_before_the_charge_and_before_a_week_is_public(
    next_counted: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent, key = next_counted.spent(), next_counted.home / "log-key.pem"
    aside = key.rename(key.with_name("aside.pem"))
    with pytest.raises(TurnstileError, match="restore it, or begin another log"):
        step_named("reserve")("opal", AFTER)
    assert next_counted.spent() == spent
    aside.rename(key)
    for step in ("reserve", "draw", "reconcile", "assess"):
        step_named(step)("opal", AFTER)

    def and_lose_the_key(staged: Path, *written: str) -> str:  # as between staging and publication
        if key.exists():
            key.rename(aside)
        return require_intact(staged, *written)

    with monkeypatch.context() as patch:
        patch.setattr(after_seal, "require_intact", and_lose_the_key)
        with pytest.raises(TurnstileError, match="restore it, or begin another log"):
            step_named("publish")("opal", AFTER)
    assert not (next_counted.public / f"opal/{AFTER}/r0").exists()
    aside.rename(key)  # negative control: nothing else was in the way
    assert step_named("publish")("opal", AFTER)
    assert (next_counted.public / f"opal/{AFTER}/r0").exists()


# What the steps after the charge may raise, function by function: a new one has to be put here, as
# found at `reserve` by one of the causes above, or with the reason why nothing knows it before.
_BYTES = "what was sealed or written after the charge was altered since"
_PEOPLE = "people said no, or nothing yet"
_GATES = "reads the sealed numbers; gates that read the plan alone are judged in preflight"
_ORDER = "a step was called before the step that it needs"
AFTER_THE_CHARGE: dict[str, tuple[str, ...]] = {
    "pipeline/assessing.py": (f"assess: {_GATES}",),
    "pipeline/approvals.py": (f"standing_of: {_ORDER}", f"require_approval: {_PEOPLE}"),
    "pipeline/auditing.py": (f"audit: {_BYTES}",),
    "pipeline/public_package.py": (
        f"is_public: {_BYTES}",
        f"require_intact: {_BYTES}",
        f"require_own: {_BYTES}",
    ),
    "pipeline/draw/sealed_release.py": (
        f"sealed_attempt: {_ORDER}, or the programme was changed since",
    ),
    "pipeline/draw/drawn_release.py": (
        f"read_sealed_bytes: {_BYTES}",
        f"_add_carried: {_BYTES}; the step reserve asks for them by require_carried",
        f"require_carried: {_ORDER}; reserve and draw ask it before a charge",
    ),
    "pipeline/after_seal.py": (),
    "pipeline/estimating.py": (),
    "publishing/package.py": ("build_package: a column that nothing declares",),
    "publishing/package_numbers.py": (
        "earlier_numbers: an earlier package",
        f"estimates_record: {_BYTES}",
        f"read_week: {_ORDER}",
        "_json: an earlier package",
    ),
    "publishing/series/packages.py": (
        f"is_here: {_BYTES}; of earlier weeks every charge reads the manifests",
    ),
    "publishing/series/writing.py": ("write_series: a column that nothing declares",),
    "release/sealed.py": (f"decode: {_BYTES}", f"_noisy: {_BYTES}"),
    "release/zones.py": (
        "write_atomically: a full disk",
        f"write_once: {_BYTES}",
    ),
}


def _raising(path: Path) -> set[str]:
    """Name the functions of a module that raise an error of their own."""
    return {
        function.name
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
    }


@pytest.mark.parametrize("module", AFTER_THE_CHARGE)
def test_every_refusal_after_the_charge_is_found_at_reserve_or_has_a_reason(module: str) -> None:
    stated = dict(line.split(": ", 1) for line in AFTER_THE_CHARGE[module])
    assert _raising(PACKAGE / module) == set(stated)
    for function, reason in stated.items():
        found_before = [cause for cause in (*CAUSES, "an earlier package") if reason == cause]
        when = "at reserve" if found_before else "after the draw"
        print(f"{module}, {function}, {when}: {reason}")  # noqa: T201 - the list
        assert found_before or reason.startswith((_BYTES, _PEOPLE, _GATES, _ORDER))


def test_a_refusal_that_nobody_classed_would_be_seen(tmp_path: Path) -> None:
    # Negative control.
    module = tmp_path / "new.py"
    module.write_text("def publish():\n    raise RefusedError('no')\n")
    assert _raising(module) == {"publish"}
