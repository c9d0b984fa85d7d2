"""A drawing process that is killed between charge and seal: an alarm of its own, with its cost."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from deployment_fixtures import BegunWeek
from small_deployment import WEEK, Deployment

from turnstile.ledger.balances.amounts import AccountLoss, Cap
from turnstile.ledger.presentation import left_text
from turnstile.ledger.records import AccountBalance, ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.operations.airflow_now import AirflowNow
from turnstile.operations.burned_draws import _left
from turnstile.operations.deployment_state import DeploymentState
from turnstile.operations.journal import Happening, Journal
from turnstile.operations.watchdog.alerts import Alert, Severity, digest
from turnstile.operations.watchdog.delivery import deliver
from turnstile.pipeline.context import open_release
from turnstile.pipeline.draw.drawing import report_death
from turnstile.pipeline.steps import step_named
from turnstile.privacy.accounts import Posting
from turnstile.privacy.units import ProtectionUnit
from turnstile.settings import Settings, system_clock

# The process kills itself, as the kernel would for want of memory, when the noise is drawn and
# nothing is stored yet.
DRAW_AND_DIE = f"""
import os, signal
from turnstile.pipeline import steps
from turnstile.pipeline.draw import charged_draw
charged_draw.write_once = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
steps.draw("opal", "{WEEK}")
"""


def seen() -> list[Alert]:
    """What the watchdog finds now."""
    alerts = DeploymentState(Settings.from_environment(), system_clock).watched(AirflowNow(runs={}))
    return [alert for alert in alerts if alert.rule.startswith("draw")]


def draw_and_be_killed() -> None:
    died = subprocess.run([sys.executable, "-c", DRAW_AND_DIE], check=False)  # noqa: S603 - our own words
    assert died.returncode == -signal.SIGKILL


@pytest.fixture
def reserved(begun_week: BegunWeek) -> Deployment:
    return begun_week("opal", "draw")


def test_a_draw_that_is_killed_is_reported_once_with_what_it_cost_and_what_is_left(
    reserved: Deployment,
) -> None:
    draw_and_be_killed()
    assert seen() == []  # it may yet be at work: draw_stuck tells after an hour
    step_named("draw")("opal", WEEK)
    key = ReleaseKey("opal", WEEK)
    states = [attempt.state for attempt in reserved.ledger.attempts(key)]
    assert states == [ReleaseState.BURNED, ReleaseState.SEALED]
    (alert,) = seen()
    assert (alert.rule, alert.programme, alert.week) == ("draw_burned", "opal", WEEK)
    assert "card_day epsilon 1.94 at delta 1e-6" in alert.sentence
    assert "card epsilon 5.7 at delta 1e-6" in alert.sentence
    assert "card_day rho 0.083333334 of 0.25, room for 1 draw like it" in alert.sentence
    sent: list[str] = []
    journal = Journal.of(Settings.from_environment())

    def post(_: object, subject: str, text: str, severity: Severity) -> bool:
        assert severity is Severity.WARN
        sent.append(f"{subject}\n{text}")
        return True

    addresses = dict.fromkeys(Severity, ("officer",))
    for _ in range(2):
        deliver(seen(), addresses, journal, send=post, now=system_clock())
    (message,) = sent
    assert message.endswith("docs/RUNBOOK.md#draw_burned")
    told = [line for line in journal.of_week("opal", WEEK) if line.happening is Happening.NOTIFIED]
    assert [str(line.details["identity"]).partition(":")[0] for line in told] == ["draw_burned"]


def test_the_form_says_what_another_draw_costs_while_the_lease_outlasts_a_killed_one(
    reserved: Deployment,
) -> None:
    def previewed() -> tuple[str, str]:
        page = DeploymentState(Settings.from_environment(), system_clock)
        asked = {"first": WEEK}
        (week,) = page.weeks_previewed("opal", asked, AirflowNow(runs={"opal": ()})).weeks
        return week.effect, week.charge

    draw_and_be_killed()
    assert reserved.ledger.living_draws()
    words, charge = previewed()
    assert charge == ""
    assert "should its process have died, a draw that died stays charged; another epsi" in words
    report_death(open_release("opal", WEEK))
    words, charge = previewed()
    assert words.startswith("a draw that died stays charged; another epsi")
    assert charge in words


@pytest.mark.usefixtures("reserved")
def test_a_draw_that_is_sealed_is_no_burned_one() -> None:
    # Negative control.
    step_named("draw")("opal", WEEK)
    assert seen() == []


@pytest.mark.long
def test_of_a_programme_without_room_nothing_is_left_after_one_death(landed: Deployment) -> None:
    landed.edit("opal", 'rho: "1/12"', 'rho: "1/8"')
    for step in ("ingest", "validate", "plan", "count", "reserve"):
        step_named(step)("opal", WEEK)
    draw_and_be_killed()
    step_named("draw")("opal", WEEK)
    (alert,) = seen()
    assert "card_day rho 0.00000001 of 0.25, room for no draw like it" in alert.sentence
    assert alert.sentence in digest([alert])[1]


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        (3_000, "card_day rho 0.000001 of 0.000004, room for no draw like it"),
        (1_000, "card_day rho 0.000003 of 0.000004, room for 1 draw like it"),
        (5_000, "card_day rho 0 of 0.000004, room for no draw like it"),  # of declared losses
        (None, "card_day rho 0 of 0.000004, room for no draw like it"),
    ],
)
def test_what_is_left_after_a_burned_draw_is_what_balances_say(
    taken: int | None, said: str
) -> None:
    unit, spent = ProtectionUnit.CARD_DAY, AccountLoss(None, taken)
    cap = Cap(unit, rho_nano=4_000)
    balance = AccountBalance("opal_cards", unit, "2016-07-25", spent, AccountLoss(0, 0), cap)
    assert list(_left([Posting(unit, "2016-07-25", None, 2_000, 0)], [balance])) == [said]
    assert left_text(balance) == said.partition(" of ")[0].removeprefix("card_day ")
