"""A whole week through `turnstile run`: published once, re-issued for ever, charged once."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM, Signals
from threading import Barrier, Timer
from typing import Any

import pyarrow.parquet as pq
import pytest
from deployment_fixtures import STEADY_ITMS, PublishedWeeks, deployment_in
from made_homes import MadeHome, MadeHomes
from small_deployment import WEEK, Deployment, digests

from turnstile.durable_files import exclusively
from turnstile.errors import DrawGoesOn, InputError, TurnstileError
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.pipeline import after_seal
from turnstile.pipeline.context import open_release
from turnstile.pipeline.draw import charged_draw, drawing
from turnstile.pipeline.steps import STEPS, step_named
from turnstile.publishing.package_reader import csv_content
from turnstile.publishing.series import writing
from turnstile.release.zones import write_once

Cli = Callable[..., int]


@pytest.fixture(autouse=True)
def steady_itms(deployment: Deployment) -> None:
    """These tests are about steps, so the shipped programme may change without them."""
    shutil.copyfile(STEADY_ITMS, deployment.include / "programmes/itms.yaml")


ROOMY = 'bus_day, relation: add_remove, epsilon: "8"', 'bus_day, epsilon: "80"'
OF_TWO = "approval: {required: false}", "approval: {required: true, persons: 2}"


def steady_home(homes: MadeHomes, folder: Path, generated: Path, *edit: str, to: str) -> MadeHome:
    """A home in which the steps of a week of an edited `itms` are done up to one, made once."""
    with pytest.MonkeyPatch.context() as environment:
        begun = deployment_in(folder, environment)
    shutil.copyfile(STEADY_ITMS, begun.include / "programmes/itms.yaml")
    begun.edit("itms", *edit)
    shutil.copytree(generated / "itms", begun.landing("itms").parent)
    return homes.get(folder, *((step, "itms", WEEK) for step in STEPS[: STEPS.index(to)]))


@pytest.fixture(scope="module")
def reserved_once(
    tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes, generated: Path
) -> MadeHome:
    """Reserved, by a programme with budget for ten draws."""
    return steady_home(homes, tmp_path_factory.mktemp("reserved"), generated, *ROOMY, to="draw")


@pytest.fixture(scope="module")
def asked_once(
    tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes, generated: Path
) -> MadeHome:
    """Before its approval, which two persons give."""
    return steady_home(homes, tmp_path_factory.mktemp("asked"), generated, *OF_TWO, to="approve")


@pytest.fixture
def reserved(
    reserved_once: MadeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    return own_copy(reserved_once, tmp_path, monkeypatch)


@pytest.fixture
def asked(asked_once: MadeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    return own_copy(asked_once, tmp_path, monkeypatch)


def own_copy(made: MadeHome, folder: Path, environment: pytest.MonkeyPatch) -> Deployment:
    home_copy = made.copy(folder / "own")
    home_copy.enter(environment)
    return Deployment(home_copy.home, home_copy.include)


@pytest.mark.parametrize("programme", ["opal", "itms"])
def test_a_week_is_published_and_run_again_it_is_the_same_bytes_at_no_charge(
    published: Deployment,
    published_weeks: PublishedWeeks,
    turnstile: Cli,
    programme: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = published_weeks.home / "public" / programme / WEEK / "r0"
    assert published_weeks.printed[programme].splitlines()[-1] == str(made)
    package = published.public / programme / WEEK / "r0"
    first, spent, head = digests(package), published.spent(), published.ledger.head()
    for name in ("manifest.json", "release_card.json", "release_card.md", "datapackage.json"):
        assert name in first

    assert turnstile("run", programme, "--week", WEEK) == 0
    assert "0 charged" in capsys.readouterr().err
    assert digests(package) == first
    assert published.spent() == spent
    assert published.ledger.head() == head
    assert turnstile("ledger", "verify") == 0
    assert turnstile("package", "verify", package) == 0
    assert (published.public / programme / "latest").resolve() == package.resolve()


def test_a_lost_public_folder_comes_back_with_the_same_bytes(
    published: Deployment, turnstile: Cli
) -> None:
    package = published.public / "itms" / WEEK / "r0"
    first, spent = digests(package), published.spent()
    shutil.rmtree(package)
    shutil.rmtree(published.home / "landing")  # retention has dropped the rows by then
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert digests(package) == first
    assert published.spent() == spent


def test_csv_and_parquet_hold_the_same_numbers_for_every_cell(
    published: Deployment,
) -> None:
    package = published.public / "opal" / WEEK / "r0"
    paths = [*package.glob("data/*.parquet")]
    assert paths
    for path in paths:
        text = csv_content(package, path.stem).decode()
        rows = list(csv.DictReader(text.splitlines()))
        table = pq.read_table(path)
        of_numbers = [f.name for f in table.schema if str(f.type) in {"double", "int64"}]
        assert {"value", "low_95", "high_95", "unbiased"} <= set(of_numbers)
        for name in of_numbers:
            assert [float(row[name]) for row in rows] == table[name].to_pylist(), name
        assert len(rows) % 7 == 0


def test_cells_add_up_to_the_published_time_and_location_tables(published: Deployment) -> None:
    package = published.public / "opal" / WEEK / "r0"
    fine = pq.read_table(package / "data/location_slot.parquet").to_pandas()
    for name in ("slot", "location"):
        keys = ["service_date", "mode", "tap", name]
        parts = fine.groupby(keys, observed=True)
        sums = parts[["value", "unbiased"]].sum().sort_index()
        coarse = pq.read_table(package / f"data/{name}.parquet").to_pandas()
        direct = coarse.set_index(keys).sort_index()
        assert (sums["value"] - direct["value"]).abs().max() < 1e-6
        rounded = 0.05 * (parts.size().sort_index() + 1) + 1e-6  # each of them to a tenth
        assert ((sums["unbiased"] - direct["unbiased"]).abs() < rounded).all()


def test_the_card_states_the_loss_of_every_unit_before_and_after(
    published: Deployment, turnstile: Cli
) -> None:
    turnstile("sample", "itms", "--weeks", "2016-W31", "--rows", 20_000)
    turnstile("run", "itms", "--week", "2016-W31")
    path = published.public / "itms" / "2016-W31" / "r0" / "release_card.json"
    card = json.loads(path.read_text())
    lines = {line["unit"]: line for line in card["cumulative"]}
    assert (lines["bus"]["epsilon_before"], lines["bus"]["epsilon_after"]) == ("56", "112")
    assert (lines["bus_day"]["epsilon_before"], lines["bus_day"]["epsilon_after"]) == ("0", "8")
    assert card["guarantee"]["units"]["bus_day"]["epsilon_replace"] == "16"
    assert card["burned_draws"] == 0


def test_changed_files_after_sealing_are_noticed_and_change_nothing(
    published: Deployment, turnstile: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="turnstile")
    first = digests(published.public / "itms" / WEEK / "r0")
    turnstile("sample", "itms", "--weeks", WEEK, "--rows", 20_000, "--seed", 4, "--replace")
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert "files changed since this week was sealed" in caplog.text
    assert f"turnstile run itms --week {WEEK} --revision 1 --reason TEXT" in caplog.text
    assert digests(published.public / "itms" / WEEK / "r0") == first


@pytest.mark.usefixtures("deployment")
def test_a_revision_that_nobody_explained_says_how_it_is_started() -> None:
    started = f"turnstile run itms --week {WEEK} --revision 2 --reason TEXT$"
    with pytest.raises(InputError, match=started):
        assert open_release("itms", WEEK, 2).statement


def test_a_revision_needs_a_reason_and_is_charged_in_full(
    reserved: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    turnstile("run", "itms", "--week", WEEK)
    assert turnstile("run", "itms", "--week", WEEK, "--revision", 1) == 2
    assert "--reason" in capsys.readouterr().err
    spent = reserved.spent()["bus_day:2016-07-25"]
    said = (
        "--reason",
        "SECRET of lovelace",
        "--approver",
        "lovelace",
        "--public-note",
        "late rows",
    )
    assert turnstile("run", "itms", "--week", WEEK, "--revision", 1, *said) == 2
    said_why = capsys.readouterr().err
    assert "the same counts get new noise, charged in full" in said_why
    assert "if bytes are lost, or the code counted wrongly, say --although-nothing" in said_why
    assert reserved.spent()["bus_day:2016-07-25"] == spent
    said = (*said, "--although-nothing-changed")
    assert turnstile("run", "itms", "--week", WEEK, "--revision", 1, *said) == 0
    changes = (reserved.public / "itms" / WEEK / "r1/docs/GUIDE.md").read_text()
    assert "correction: late rows" in changes
    files = [path for path in reserved.public.rglob("*") if path.is_file()]
    private = (b"SECRET", b"lovelace")
    assert not [path for path in files if any(word in path.read_bytes() for word in private)]
    (reservation,) = (
        entry
        for entry in reserved.ledger.entries_of(ReleaseKey("itms", WEEK, 1))
        if entry.kind is EntryKind.RESERVED
    )
    assert reservation.body["reason"] == "SECRET of lovelace"  # it is in the ledger
    assert spent is not None
    assert reserved.spent()["bus_day:2016-07-25"] == 2 * spent
    old, new = (reserved.public / "itms" / WEEK / f"r{n}" for n in (0, 1))
    assert digests(old)["manifest.json"] != digests(new)["manifest.json"]
    assert (reserved.public / "itms/latest").resolve() == new.resolve()


def test_a_revision_beyond_the_cap_is_refused(published: Deployment, turnstile: Cli) -> None:
    spent = published.spent()
    assert turnstile("run", "itms", "--week", WEEK, "--revision", 1, "--reason", "late rows") == 3
    assert published.spent() == spent
    assert not (published.public / "itms" / WEEK / "r1").exists()


def test_a_changed_programme_without_a_revision_is_refused(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    first = digests(published.public / "itms" / WEEK / "r0")
    published.edit("itms", "limits_kmh: [40]", "limits_kmh: [50]")
    published.edit("itms", "speeding/over_40", "speeding/over_50")
    capsys.readouterr()
    assert turnstile("run", "itms", "--week", WEEK) == 3
    assert "was 40 and is 50" in capsys.readouterr().err
    assert digests(published.public / "itms" / WEEK / "r0") == first


def test_death_while_drawing_burns_the_charge_and_a_third_draw_needs_a_person(
    turnstile: Cli, monkeypatch: pytest.MonkeyPatch, reserved: Deployment
) -> None:
    def die(*_: object) -> bytes:
        raise TurnstileError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr(charged_draw, "encode", die)
        assert turnstile("run", "itms", "--week", WEEK) == 1
        once = reserved.spent()["bus_day:2016-07-25"]
        assert once  # charged, although nothing was sealed
        assert turnstile("run", "itms", "--week", WEEK) == 1
        assert reserved.spent()["bus_day:2016-07-25"] == 2 * once
    assert turnstile("run", "itms", "--week", WEEK) == 3
    assert reserved.spent()["bus_day:2016-07-25"] == 2 * once
    assert not (reserved.public / "itms" / WEEK).exists()


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("number", "is_charged"),
    [
        (SIGINT, True),
        (SIGINT, False),
        pytest.param(SIGTERM, True, marks=pytest.mark.long),
        pytest.param(SIGHUP, True, marks=pytest.mark.long),
    ],
)
def test_whoever_stops_a_run_burns_no_draw(
    turnstile: Cli,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reserved: Deployment,
    *,
    number: Signals,
    is_charged: bool,
) -> None:
    """Ctrl-C in a draw was charged again by the run that it advised, and twice ended the week."""
    place = (charged_draw, "write_once") if is_charged else (drawing, "ready_to_draw")
    real = getattr(*place)

    def stop(*given: Any) -> Any:
        os.kill(os.getpid(), number)
        return real(*given)

    before = signal.signal(number, signal.default_int_handler)  # where nobody hears it: nohup
    try:
        with monkeypatch.context() as stopped:
            stopped.setattr(*place, stop)
            assert turnstile("run", "itms", "--week", WEEK) == 130
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    said = capsys.readouterr().err
    assert "a draw that is charged goes to its seal; then this stops" in said
    assert "run the same command again to go on" in said
    states = [attempt.state for attempt in reserved.ledger.attempts(ReleaseKey("itms", WEEK))]
    assert states == [ReleaseState.SEALED if is_charged else ReleaseState.RESERVED]
    assert turnstile("run", "itms", "--week", WEEK) == 0
    card = json.loads((reserved.public / "itms" / WEEK / "r0" / "release_card.json").read_text())
    assert card["burned_draws"] == 0


def test_what_is_said_to_nobody_burns_no_draw(
    turnstile: Cli, monkeypatch: pytest.MonkeyPatch, reserved: Deployment
) -> None:
    """Ctrl-C of `turnstile run 2>&1 | tee log` ends tee too; a terminal that is closed is gone."""

    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    def stop(*given: Any) -> None:
        stopped.setattr(sys, "stderr", Gone())
        os.kill(os.getpid(), SIGINT)
        write_once(*given)

    with monkeypatch.context() as stopped, suppress(BrokenPipeError):
        stopped.setattr(charged_draw, "write_once", stop)
        turnstile("run", "itms", "--week", WEEK)
    states = [attempt.state for attempt in reserved.ledger.attempts(ReleaseKey("itms", WEEK))]
    assert states == [ReleaseState.SEALED]


def test_whoever_waits_for_another_draw_can_be_stopped(
    reserved: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C was heard, and nothing ended before the other draw did, here or elsewhere."""
    release = open_release("itms", WEEK)

    def goes_on(*_: object) -> None:
        raise DrawGoesOn("drawn elsewhere")

    def ask() -> None:
        if asked.pop():
            raise KeyboardInterrupt

    waited_for = drawing.ASKED.set(ask)
    try:
        with exclusively(release.folders.private / ".draw.lock") as other:
            asked = [True]
            ends = Timer(60, other.close)
            ends.start()
            with pytest.raises(KeyboardInterrupt):
                drawing.draw(release)
            assert not other.closed
            ends.cancel()
        asked = [True, False]
        monkeypatch.setattr(drawing, "reserved", goes_on)
        monkeypatch.setattr(drawing, "BEAT_S", 0)
        with pytest.raises(KeyboardInterrupt):
            drawing.draw(release)
    finally:
        drawing.ASKED.reset(waited_for)
    (attempt,) = reserved.ledger.attempts(ReleaseKey("itms", WEEK))
    assert attempt.state is ReleaseState.RESERVED


def test_one_death_while_drawing_is_stated_on_the_card_and_its_bytes_set_aside(
    turnstile: Cli, monkeypatch: pytest.MonkeyPatch, reserved: Deployment
) -> None:
    def write_and_die(sealed: Path, content: bytes) -> None:
        write_once(sealed, content)
        write_once(sealed.with_stem("sealed-" + "0" * 16), content)
        raise TurnstileError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr(charged_draw, "write_once", write_and_die)
        turnstile("run", "itms", "--week", WEEK)
    assert turnstile("run", "itms", "--week", WEEK) == 0
    card = json.loads((reserved.public / "itms" / WEEK / "r0" / "release_card.json").read_text())
    assert card["burned_draws"] == 1
    aside = sorted(
        path.name.partition("-")[0] for path in reserved.home.glob("*/itms/*/*/set-aside/*")
    )
    assert aside == ["sealed", "sealed"]


def test_death_between_the_ledgers_word_and_the_rename_is_mended_by_running_again(
    turnstile: Cli,
    monkeypatch: pytest.MonkeyPatch,
    assessed: Deployment,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`ledger weeks` and the page said "published" where `doctor` said that it is missing."""

    def weeks() -> str:
        capsys.readouterr()
        assert turnstile("ledger", "weeks", "--programme", "itms") == 0
        return capsys.readouterr().out

    def die(*_: object) -> None:
        raise TurnstileError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr(after_seal, "_appear", die)
        assert turnstile("run", "itms", "--week", WEEK) == 1
    package = assessed.public / "itms" / WEEK / "r0"
    assert not package.exists()
    assert turnstile("ledger", "verify") == 4  # said to be public, and is not there
    said = weeks()
    assert f"{WEEK}  withheld: the ledger says that it is public, and its package is not" in said
    assert "nothing is out yet" in said
    spent = assessed.spent()
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert assessed.spent() == spent
    assert turnstile("ledger", "verify") == 0
    assert turnstile("package", "verify", package) == 0
    assert f"{WEEK}  published\n" in weeks()


def test_a_publication_that_was_killed_before_the_signed_list_is_told_at_once(
    turnstile: Cli,
    monkeypatch: pytest.MonkeyPatch,
    reserved: Deployment,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """For an hour `doctor` said that nothing is wrong; while a process publishes it still does."""
    corrected = ("run", "itms", "--week", WEEK, "--revision", "1", "--reason", "late files")
    corrected += ("--although-nothing-changed",)
    seen, package, point_latest = [], reserved.public / "itms" / WEEK / "r1", writing._point_latest

    def told() -> list[str]:
        capsys.readouterr()
        turnstile("doctor", "--json")
        return [finding["problem"] for finding in json.loads(capsys.readouterr().out)]

    def look(*asked: Any) -> None:
        seen.append(told())  # of the first publication of all there is no list yet
        if package.exists():
            raise TurnstileError("power cut")
        point_latest(*asked)

    with monkeypatch.context() as broken:
        broken.setattr(writing, "_point_latest", look)
        assert turnstile("run", "itms", "--week", WEEK) == 0
        assert turnstile(*corrected) == 1
    assert seen == [[], []]
    shutil.copytree(reserved.home, tmp_path / "stopped", symlinks=True)
    for mended_by in (corrected, ("ledger", "republish")):
        (problem,) = told()
        said = f"{package} is public, and whoever published it was stopped before"
        assert problem.startswith(said)
        assert turnstile(*mended_by) == 0
        assert told() == []
        shutil.rmtree(reserved.home)
        shutil.copytree(tmp_path / "stopped", reserved.home, symlinks=True)


def test_what_a_killed_publication_left_goes_with_the_next(
    turnstile: Cli, monkeypatch: pytest.MonkeyPatch, assessed: Deployment
) -> None:
    """A hidden copy of the package stayed in the public zone, and nothing named it."""
    embargoed = assessed.home / "embargoed/itms" / WEEK / "r0"
    public, sync_tree = assessed.public / "itms" / WEEK, after_seal.sync_tree

    def left() -> list[str]:
        return [path.name[:5] for path in (*embargoed.glob(".pack*"), *public.glob(".r0*"))]

    def die_at(name: str) -> None:
        def die(folder: Path) -> None:
            if folder.name.startswith(name):
                raise TurnstileError("power cut")
            sync_tree(folder)

        with monkeypatch.context() as broken:
            broken.setattr(after_seal, "sync_tree", die)
            assert turnstile("run", "itms", "--week", WEEK) == 1

    die_at(".package-")
    assert left() == [".pack"]
    die_at(".r0-")
    assert left() == [".r0-" + path.name[4] for path in public.glob(".r0*")]
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert left() == []


def test_of_two_who_publish_at_once_both_succeed_and_the_package_is_one(
    turnstile: Cli, assessed: Deployment
) -> None:
    barrier = Barrier(2, timeout=600)

    def publish(_: int) -> str:
        release = open_release("itms", WEEK, 0)
        barrier.wait()
        return after_seal.publish(release)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(publish, range(2))
    assert first == second
    assert turnstile("package", "verify", assessed.public / "itms" / WEEK / "r0") == 0


def test_altered_sealed_bytes_stop_everything(published: Deployment, turnstile: Cli) -> None:
    (sealed,) = (published.home / "embargoed/itms" / WEEK / "r0").glob("sealed-*.parquet")
    sealed.chmod(0o644)
    sealed.write_bytes(sealed.read_bytes()[:-1] + b"x")
    assert turnstile("run", "itms", "--week", WEEK) == 4


def test_an_altered_package_is_named(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    package = published.public / "itms" / WEEK / "r0"
    card = package / "release_card.md"
    card.write_text(card.read_text().replace("| 8 |", "| 1 |"))
    assert turnstile("package", "verify", package) == 4
    assert "release_card.md was altered" in capsys.readouterr().err
    manifest = json.loads((package / "manifest.json").read_text())
    for file in manifest["files"]:  # a forger who mends the manifest too meets the ledger
        file["sha256"] = hashlib.sha256((package / file["path"]).read_bytes()).hexdigest()
        file["bytes"] = (package / file["path"]).stat().st_size
    (package / "manifest.json").write_text(json.dumps(manifest))
    assert turnstile("package", "verify", package) == 4
    assert turnstile("ledger", "verify") == 4


def test_a_week_that_is_not_over_is_refused(deployment: Deployment, turnstile: Cli) -> None:
    assert turnstile("run", "itms", "--week", "2099-W01") == 3
    assert deployment.nothing_happened()


@pytest.mark.long
def test_a_programme_that_asks_for_two_people_publishes_after_both_have_said_yes(
    asked: Deployment, turnstile: Cli
) -> None:
    key = ReleaseKey("itms", WEEK)
    package = asked.public / "itms" / WEEK / "r0"
    assert turnstile("run", "itms", "--week", WEEK) == 3
    asked.ledger.approve(key, "ada", "release_officer", "looked at it")
    asked.ledger.approve(key, "ada", "release_officer", "looked again")
    asked.ledger.approve(key, "eve", "op", "not an officer")
    assert turnstile("run", "itms", "--week", WEEK) == 3
    assert not package.exists()
    asked.ledger.approve(key, "grace", "release_officer", "looked at it")
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert package.exists()


def test_a_rejected_week_stays_embargoed_and_charged(asked: Deployment, turnstile: Cli) -> None:
    key = ReleaseKey("itms", WEEK)
    turnstile("run", "itms", "--week", WEEK)
    asked.ledger.approve(key, "ada", "release_officer", "fine")
    asked.ledger.refuse(key, "grace", "release_officer", "no")
    assert turnstile("run", "itms", "--week", WEEK) == 3
    assert not (asked.public / "itms" / WEEK / "r0").exists()
    assert asked.spent()["bus_day:2016-07-25"]


def test_plan_touches_no_data_and_shows_what_is_left(
    deployment: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("plan", "opal", "--week", WEEK, "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert len(plan["events"]) == 42
    assert plan["loss"]["trip"]["rho"] == "0.023148149"
    assert plan["loss"]["card_day"]["rho"] == "0.083333333"
    assert not (deployment.home / "private" / "opal").exists()
    assert deployment.nothing_happened()


def test_what_is_published_is_the_assessment_that_was_read(assessed: Deployment) -> None:
    read = (assessed.home / "embargoed/itms" / WEEK / "r0/assessment.json").read_bytes()
    step_named("assess")("itms", WEEK, 0)  # cleared in Airflow: no new coins
    step_named("publish")("itms", WEEK, 0)
    assert (assessed.public / "itms" / WEEK / "r0/assessment.json").read_bytes() == read


def test_an_assessment_that_was_edited_is_made_anew(assessed: Deployment) -> None:
    report = assessed.home / "embargoed/itms" / WEEK / "r0/assessment.html"
    report.write_text(report.read_text().replace("<h1>", "<h1>All is well. "))
    step_named("publish")("itms", WEEK, 0)
    assert "All is well" not in (assessed.public / "itms" / WEEK / "r0/assessment.html").read_text()


def test_a_published_week_is_answered_without_making_anything_again(
    published: Deployment, turnstile: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = published.spent()
    for name in ("estimates.release_tables.presented", "assessment.report.page.write_report"):
        monkeypatch.setattr(f"turnstile.{name}", lambda *_: pytest.fail("made again"))
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert published.spent() == spent


@pytest.mark.usefixtures("published")
def test_a_published_week_is_answered_without_loading_what_makes_one() -> None:
    again = "import sys; from turnstile.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-c", again, "run", "itms", "--week", WEEK],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert {"vl_convert", "turnstile.publishing.series.writing"} <= loaded  # the check can fail
    unused = "altair duckdb great_expectations opendp pandas scipy.optimize"
    assert loaded & {*unused.split(), "turnstile.publishing.files"} == set()


def test_a_published_package_that_was_altered_is_not_issued_again(
    published: Deployment, turnstile: Cli
) -> None:
    card = published.public / "itms" / WEEK / "r0/release_card.md"
    card.write_text(card.read_text() + "\n")
    assert turnstile("run", "itms", "--week", WEEK) == 4


def test_a_number_that_corrects_nothing_is_refused_before_anything_is_written(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    """It left exact tables, and an alarm that the week was not finished."""
    before = {path for path in published.home.rglob("*") if path.is_file()}
    asked = ("--revision", "3", "--reason", "a typing error")
    assert turnstile("run", "itms", "--week", WEEK, *asked) == 3
    assert (
        f"itms/{WEEK}/r3 corrects itms/{WEEK}/r2, which was never drawn" in capsys.readouterr().err
    )
    assert turnstile("run", "itms", "--week", WEEK, "--reason", "no number") == 2
    assert "goes with --revision N" in capsys.readouterr().err
    assert {path for path in published.home.rglob("*") if path.is_file()} == before


def test_a_public_week_is_issued_again_though_people_are_asked_since(
    published: Deployment, turnstile: Cli
) -> None:
    """It was said to stay embargoed and charged, at exit 3."""
    published.edit("itms", "approval: {required: false}", "approval: {required: true}")
    (published.include / "people.yaml").write_text("release_officer: [ada]\n", encoding="utf-8")
    first = digests(published.public / "itms" / WEEK / "r0")
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert digests(published.public / "itms" / WEEK / "r0") == first
