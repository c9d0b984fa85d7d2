"""The private zone against the ledger: a key that is lost, counts that are gone or altered."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from deployment_fixtures import BegunWeek
from retention_days import Cli
from small_deployment import WEEK, Deployment

from turnstile.counting.exact_store import load_exact
from turnstile.errors import IntegrityError
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.operations.journal import FOLDER, Journal
from turnstile.operations.watchdog.private_comparison import private_differences
from turnstile.pipeline.before_charge import RESTATED
from turnstile.pipeline.context import open_release
from turnstile.pipeline.steps import step_named
from turnstile.settings import Settings

WHO = ("--person", "olga", "--reason", "the disk died")
_EXACT, _SNAPSHOT = "exact-*", "snapshot"


def _of(published: Deployment) -> Path:
    return published.home / "private/itms" / WEEK / "r0"


def test_by_hand_it_is_told_to_the_page_as_by_the_day_of_retention(
    published: Deployment, turnstile: Cli
) -> None:
    """The ledger's own verification, which finds nothing, told it that all is in order."""
    settings = Settings.from_environment()
    assert turnstile("ledger", "verify", "--private") == 0  # as it was, it agrees
    assert turnstile("doctor") == 0
    assert not (settings.home / FOLDER).exists(), "without Airflow there is no page"
    (settings.home / FOLDER).mkdir()
    journal = Journal.of(settings)
    for path, names in (
        (published.home / "private/bounding.key", ["ledger/all/bounding key"]),
        (_of(published) / "exact", [f"itms/{WEEK}/exact counts, r0"]),
        (_of(published) / _SNAPSHOT, [f"itms/{WEEK}/rows, r0"]),
    ):
        whole = path.read_bytes()
        path.unlink()
        assert turnstile("ledger", "verify", "--private") == 4
        assert turnstile("ledger", "verify") == 0
        assert [*private_differences(journal)] == names
        path.write_bytes(whole)
    assert turnstile("ledger", "verify", "--private") == 0
    assert private_differences(journal) == {}


def test_where_no_private_zone_is_nothing_of_it_is_missed(
    published: Deployment,
    turnstile: Cli,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As `worker` of docker-compose.yaml, where the failures of its own tasks are mounted."""
    failures = published.home / "private/failures"
    shutil.rmtree(failures.parent)
    failures.mkdir(parents=True)
    (published.home / FOLDER).mkdir()
    with monkeypatch.context() as compose:
        compose.setattr(Path, "is_mount", lambda path: path == failures)
        assert turnstile("ledger", "verify", "--private") == 2
        assert "no private zone is here" in capsys.readouterr().err
        assert turnstile("ledger", "recover", "--person", "olga", "--reason", "lost") == 2
        assert "files of lost releases: no private zone is here" in capsys.readouterr().err
        assert turnstile("ledger", "verify") == 0
    journal = Journal.of(Settings.from_environment())
    assert private_differences(journal) == {}
    assert turnstile("ledger", "verify", "--private") == 4  # a zone that lost all else
    assert [*private_differences(journal)] == ["ledger/all/bounding key"]


def _remove(pattern: str) -> Callable[[Path], None]:
    return lambda folder: next(path.unlink() for path in folder.glob(pattern))


def _alter(folder: Path) -> None:
    (path,) = [file for file in folder.iterdir() if file.name.startswith("exact") and file.suffix]
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1] + b"\x07")


def _alter_rows(folder: Path) -> None:
    path = next(folder.parent.glob("snapshots/*/rows/*/*"))
    path.write_bytes(path.read_bytes()[:-1] + b"\x07")


def _count_again(folder: Path) -> None:
    """Other counts under a digest of their own, as whoever restores a wrong folder has them."""
    from turnstile.counting.exact_store import save_exact

    (folder / "exact").write_text(save_exact([], folder))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_remove("exact"), "the record of its exact counts is gone"),
        (_remove("exact?*"), "its exact counts are gone or altered"),
        (_alter, "its exact counts are gone or altered"),
        (_count_again, "its exact counts are others than it was reserved with"),
        (_remove("snapshot"), "the record of its rows is gone"),
        (lambda folder: shutil.rmtree(folder.parent / "snapshots"), "its rows are gone or altered"),
        (
            lambda folder: shutil.rmtree(next(folder.parent.glob("snapshots/*/rows/*"))),
            f"its rows are gone or altered; restore private/itms/{WEEK}/snapshots",
        ),
        (_alter_rows, "its rows are gone or altered"),
        (lambda folder: shutil.rmtree(folder.parents[2]), "bounding.key is gone"),
        (
            lambda folder: (folder.parents[2] / "bounding.key").write_bytes(b"x" * 32),
            "is another one than the ledger names",
        ),
    ],
)
def test_what_is_gone_or_altered_is_found(
    published: Deployment,
    turnstile: Cli,
    capsys: pytest.CaptureFixture[str],
    harm: Callable[[Path], object],
    said: str,
) -> None:
    harm(_of(published))
    for look in (("ledger", "verify", "--private"), ("doctor",)):
        assert turnstile(*look) == 4
        assert said in capsys.readouterr().out


def test_a_lost_key_is_never_replaced_in_silence_and_a_person_can_go_on(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    key = published.home / "private/bounding.key"
    key.unlink()
    later = ("run", "itms", "--week", "2016-W31")
    shutil.copytree(published.landing("itms"), published.landing("itms", "2016-W31"))
    assert turnstile(*later) == 4
    assert "rotate-bounding-key" in capsys.readouterr().err
    assert not key.exists()
    assert turnstile("ledger", "rotate-bounding-key", *WHO) == 0
    assert key.exists()
    assert turnstile("ledger", "verify", "--private") == 0
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert not (_of(published) / RESTATED).exists()


def test_a_key_that_was_lost_before_the_ledger_named_any_accuses_nobody(
    published: Deployment, turnstile: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home of an earlier version: its reservations name no key; nothing tells which it was."""
    plain = Ledger.entries

    def unnamed(view: Ledger) -> Iterator[Entry]:
        for entry in plain(view):
            body = {name: said for name, said in entry.body.items() if name != "bounding_key"}
            yield entry if entry.kind is EntryKind.BOUNDING_KEY else replace(entry, body=body)

    monkeypatch.setattr(Ledger, "entries", unnamed)
    (published.home / "private/bounding.key").unlink()
    assert turnstile("ledger", "rotate-bounding-key", *WHO) == 0
    assert turnstile("ledger", "verify", "--private") == 0
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert not (_of(published) / RESTATED).exists()


def test_after_a_rotation_earlier_weeks_are_compared_under_their_own_key(
    published: Deployment, turnstile: Cli
) -> None:
    assert turnstile("ledger", "rotate-bounding-key", *WHO) == 0
    assert turnstile("ledger", "verify", "--private") == 0
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert not (_of(published) / RESTATED).exists()
    (published.home / "private/itms" / WEEK / "r0/snapshot").write_text("another")
    assert turnstile("ledger", "verify", "--private") == 4
    file = next(published.landing("itms").iterdir())
    file.write_bytes(file.read_bytes() + b"\n")
    turnstile("run", "itms", "--week", WEEK)
    assert (_of(published) / RESTATED).exists()


def test_no_key_is_rotated_while_a_release_is_held(
    begun_week: BegunWeek,
    turnstile: Cli,
    capsys: pytest.CaptureFixture[str],
) -> None:
    held = begun_week("itms", "draw")
    assert turnstile("ledger", "rotate-bounding-key", *WHO) == 3
    assert "let it end" in capsys.readouterr().err
    assert held.ledger.bounding_keys().at() is not None


@pytest.mark.parametrize("command", ["ledger verify", "doctor"])
def test_a_plan_that_is_gone_beside_sealed_bytes_is_named_and_made_again_by_a_run(
    assessed: Deployment,
    turnstile: Cli,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    """Without it no recovery could charge again for bytes that are not public."""
    plan = assessed.home / f"embargoed/itms/{WEEK}/r0/plan.json"
    whole = plan.read_bytes()
    assert turnstile(*command.split()) == 0
    plan.unlink()
    capsys.readouterr()
    assert turnstile(*command.split()) == 4
    assert (
        f"{plan} is gone; restore it, or turnstile run writes it again" in capsys.readouterr().out
    )
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert plan.read_bytes() == whole
    plan.unlink()  # its package has it from now on
    assert turnstile(*command.split()) == 0


@pytest.mark.parametrize("is_charged", [False, True], ids=["held", "drawing"])
@pytest.mark.parametrize(
    ("gone", "said"),
    [("exact-*", "its exact counts are gone or altered"), ("snapshot", "the record of its rows")],
)
def test_what_a_draw_to_come_needs_is_compared_too(
    begun_week: BegunWeek,
    turnstile: Cli,
    capsys: pytest.CaptureFixture[str],
    gone: str,
    said: str,
    *,
    is_charged: bool,
) -> None:
    """Of what was held or charged and not sealed nothing was looked at."""
    begun = begun_week("itms", "draw")
    if is_charged:  # by a process that died
        (held,) = begun.ledger.week("itms", WEEK).held
        begun.ledger.begin_draw(held.attempt_id, held.bindings)
    assert turnstile("ledger", "verify", "--private") == 0
    next((begun.home / "private/itms" / WEEK / "r0").glob(gone)).unlink()
    assert turnstile("ledger", "verify", "--private") == 4
    assert said in capsys.readouterr().out


def test_a_week_that_was_counted_again_under_its_hold_is_as_it_was_reserved(
    begun_week: BegunWeek, turnstile: Cli
) -> None:
    """As after a full disk, or a stop, between reserve and draw: it was accused for ever."""
    begun_week("itms", "draw")
    first, again = (step_named("count")("itms", WEEK, 0) for _ in range(2))
    assert first != again  # whether counts are those of before is told to nobody
    for name in ("reserve", "draw"):
        step_named(name)("itms", WEEK, 0)
    assert turnstile("ledger", "verify", "--private") == 0


@pytest.mark.parametrize("step", ["validate", "count"])
def test_rows_that_went_since_they_were_ingested_are_not_counted_as_zeros(
    begun_week: BegunWeek, step: str
) -> None:
    """A judgement of before does not help the count, which is cleared alone; ingest makes them."""
    home = begun_week("itms", "draw").home
    rows = next(home.glob(f"private/itms/{WEEK}/snapshots/*/rows/*"))
    shutil.rmtree(rows)
    with pytest.raises(IntegrityError, match="or ingest the week again"):
        step_named(step)("itms", WEEK, 0)
    for again in ("ingest", "validate", "count"):
        step_named(again)("itms", WEEK, 0)
    assert rows.exists()


def test_a_delivery_with_the_same_counts_is_told_to_nobody(
    begun_week: BegunWeek, turnstile: Cli
) -> None:
    """The ledger was told the same commitment: whether a card's records moved a count, unnoised."""
    delivered = next(begun_week("itms", "draw").landing("itms").iterdir())
    release = open_release("itms", WEEK)
    exact = [release.recorded("exact", step="count")]
    lines = delivered.read_text().splitlines(keepends=True)
    delivered.unlink()  # it is a link
    delivered.write_text("".join((*lines, lines[-1])))  # what came twice counts once
    for name in ("ingest", "validate", "count", "reserve"):
        step_named(name)("itms", WEEK, 0)
    exact.append(release.recorded("exact", step="count"))
    of_tables = [load_exact(release.folders.private, digest) for digest in exact]
    assert all(
        np.array_equal(a.reveal_to_mechanism(), b.reveal_to_mechanism())
        for a, b in zip(*of_tables, strict=True)
    )
    told = [e.body["exact"] for e in release.ledger.entries() if e.kind is EntryKind.RESERVED]
    assert len(set(told)) == len(told) == len(set(exact)) == 2
    step_named("draw")("itms", WEEK, 0)
    assert turnstile("ledger", "verify", "--private") == 0


@pytest.mark.parametrize("changed", ["delivery", "text"])
def test_a_hold_whose_inputs_changed_and_came_back_is_as_its_counts_are(
    begun_week: BegunWeek, turnstile: Cli, changed: str
) -> None:
    """It kept the commitment of the first count, and was accused for ever."""
    begun = begun_week("itms", "draw")
    file = next(begun.landing("itms").iterdir())
    file = begun.include / "programmes/itms.yaml" if changed == "text" else file
    before = file.read_text()
    other = before.replace('epsilon: "8"\n', 'epsilon: "7"\n', 1)
    other = other if changed == "text" else before + before.splitlines(keepends=True)[-1]
    assert other != before
    for content in (other, before):
        file.unlink()
        file.write_text(content)
        for name in ("ingest", "validate", "plan", "count"):
            step_named(name)("itms", WEEK, 0)
    for name in ("reserve", "draw"):
        step_named(name)("itms", WEEK, 0)
    assert turnstile("ledger", "verify", "--private") == 0
