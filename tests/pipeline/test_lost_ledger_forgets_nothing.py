"""After a ledger is lost, or a bounding key rotated: no second budget, and nothing deleted early.

Each was found by somebody who tried to break it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta

import pytest
from retention_days import ledger_at
from small_deployment import WEEK, Deployment

from turnstile.ledger.ledger import Ledger
from turnstile.operations.airflow_now import AirflowNow
from turnstile.operations.budget_page.page import BudgetPage
from turnstile.operations.retention_day import RetentionDay
from turnstile.pipeline.steps import STEPS, step_named
from turnstile.settings import Settings, system_clock

Cli = Callable[..., int]
WHO = ("--person", "olga", "--reason", "the disk")
LOST = "the ledger is gone, or holds nothing, but what it released is there"


@pytest.fixture
def second(published: Deployment) -> Deployment:
    """Another budget group whose files are copies of those that were released."""
    published.make_siblings_examples("itms")
    text = (published.include / "programmes/itms.yaml").read_text()
    for old, new in {
        "name: itms\n": "name: itms_second\n",
        "family: itms_buses": "family: second_group",
        'landing: "itms/': 'landing: "other/',
    }.items():
        assert old in text
        text = text.replace(old, new, 1)
    (published.include / "programmes/itms_second.yaml").write_text(text)
    shutil.copytree(published.home / "landing/itms", published.home / "landing/other")
    return published


def refused(turnstile: Cli, capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether the second group may not charge the week, because of the first."""
    capsys.readouterr()
    code = turnstile("run", "itms_second", "--week", WEEK)
    return code == 3 and "admit-family second_group" in capsys.readouterr().err


def test_a_rotation_of_the_bounding_key_makes_no_second_budget(
    second: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert second.home
    assert turnstile("ledger", "rotate-bounding-key", *WHO) == 0
    assert refused(turnstile, capsys)


def _lose_earlier_key(of: Deployment) -> None:
    (earlier,) = (of.home / "private").glob("bounding-*.key")
    earlier.unlink()


def test_an_earlier_bounding_key_that_is_gone_makes_no_second_budget(
    second: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of the first group are known under it alone: the second was let in without a word."""
    assert turnstile("ledger", "rotate-bounding-key", *WHO) == 0
    _lose_earlier_key(second)
    for look in (("ledger", "verify", "--private"), ("doctor",)):
        assert turnstile(*look) == 4
        assert (
            "gone or another, under which the files of earlier weeks are known"
            in capsys.readouterr().out
        )
    assert turnstile("run", "itms_second", "--week", WEEK) == 4
    assert "bounding-" in capsys.readouterr().err
    assert turnstile("ledger", "rotate-bounding-key", *WHO) == 0  # lost, says a person
    assert "declared lost: " in capsys.readouterr().out
    assert turnstile("ledger", "verify", "--private") == 0
    assert refused(turnstile, capsys)
    for place in ("itms/{week}/*", "opal/{week}/*"):
        admit = ("ledger", "admit-family", "second_group", "--landing", place, *WHO)
        assert turnstile(*admit) == 0
    for name in STEPS[: STEPS.index("draw")]:  # admitted
        step_named(name)("itms_second", WEEK, 0)


def test_a_present_bounding_key_that_is_lost_makes_no_second_budget_either(
    second: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    (second.home / "private/bounding.key").unlink()
    assert turnstile("ledger", "rotate-bounding-key", *WHO) == 0
    assert refused(turnstile, capsys)


@pytest.mark.parametrize("place", ["other/", "itms/"])
def test_a_recovery_from_files_alone_makes_no_second_budget(
    second: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    """Neither over copies of the files, nor over the same landing path."""
    second.edit("itms_second", 'landing: "other/', f'landing: "{place}')
    second.lose_ledger()
    assert turnstile("ledger", "recover", *WHO) == 0
    assert turnstile("ledger", "confirm-clock", *WHO) == 0
    assert refused(turnstile, capsys)


def test_the_clock_of_a_ledger_that_came_back_from_nothing_is_not_known(
    published: Deployment,
) -> None:
    published.make_siblings_examples("itms")
    published.lose_ledger()
    later = system_clock() + timedelta(days=200)
    ledger_at(later, new=True).recover("olga", "the disk")
    due = [
        verdict
        for verdict in RetentionDay(Settings.from_environment(), later).verdicts()
        if verdict.due
    ]
    assert due
    assert all(
        "confirm-clock" in verdict.held for verdict in due if verdict.due and verdict.due <= later
    )
    assert RetentionDay(Settings.from_environment(), later).act() == ()
    ledger_at(later).confirm_clock("olga", "it is right")
    assert RetentionDay(Settings.from_environment(), later).act()


def test_no_command_makes_an_empty_ledger_in_the_place_of_a_lost_one(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused `run` made one, by which nothing was spent and no week had ever been released."""
    published.lose_ledger()
    for command in ("run", "plan"):
        assert turnstile(command, "itms", "--week", "2016-W31") == 4
        assert LOST in capsys.readouterr().err
    for command in ("balance", "weeks", "verify"):
        assert turnstile("ledger", command) == 4
    assert not (published.home / "ledger.sqlite").exists()
    assert turnstile("ledger", "recover", *WHO, "--family", "itms=itms_buses") == 0
    assert turnstile("ledger", "verify") == 0


@pytest.mark.parametrize("left", ["nothing", "no byte", "tables alone"])
def test_no_command_reads_a_ledger_that_forgot_everything(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str], left: str
) -> None:
    """Each said that nothing is out yet and that nothing is spent."""
    published.make_siblings_examples("itms")
    published.lose_ledger()
    if left == "no byte":
        (published.home / "ledger.sqlite").touch()
    elif left == "tables alone":
        Ledger.open(f"sqlite:///{published.home}/ledger.sqlite", clock=system_clock)
    for words in (
        ("ledger", "weeks"),
        ("plan", "itms", "--week", "2016-W31"),
        ("run", "itms", "--week", "2016-W31"),
        ("dossier", "itms", "--out", str(published.home / "dossier.html")),
        ("retention",),
    ):
        assert turnstile(*words) == 4, words
        assert "ledger recover" in capsys.readouterr().err, words
    page = BudgetPage(Settings.from_environment(), system_clock)
    assert LOST in page.budget(frozenset({"itms"}), AirflowNow())
    assert turnstile("ledger", "recover", *WHO) == 0
    assert turnstile("ledger", "weeks") == 0


def test_a_mistyped_address_of_the_ledger_is_a_setting_to_mend(
    published: Deployment,
    turnstile: Cli,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A recovery made a second ledger, which charged everything again."""
    with monkeypatch.context() as mistyped:
        mistyped.setenv("TURNSTILE_LEDGER_URL", f"sqlite:///{published.home}/legder.sqlite")
        for words, code in (
            (("doctor",), 4),
            (("ledger", "recover", *WHO), 2),
            (("plan", "itms", "--week", "2016-W31"), 2),
        ):
            assert turnstile(*words) == code, words
            said = "".join(capsys.readouterr())
            assert "TURNSTILE_LEDGER_URL" in said
            assert "mend the setting" in said
        assert not (published.home / "legder.sqlite").exists()
    assert turnstile("ledger", "verify") == 0


def test_an_empty_database_is_a_damaged_one(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    published.lose_ledger()
    (published.home / "ledger.sqlite").write_bytes(b"")
    for words in (("ledger", "verify"), ("ledger", "balance"), ("doctor",)):
        assert turnstile(*words) == 4, words
        said = "".join(capsys.readouterr())
        assert "ledger recover" in said
    assert turnstile("ledger", "recover", *WHO) == 0
    assert turnstile("ledger", "verify") == 0


def test_a_staged_package_of_a_lost_ledger_has_a_repair(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(
        published.home / f"public/itms/{WEEK}/r0",
        published.home / f"embargoed/itms/{WEEK}/r1/package",
    )
    assert turnstile("doctor") == 4
    assert "staged" in capsys.readouterr().out
