"""On a real Airflow, looked at once a second: no false trouble, no untold cost, no two truths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from looks import Look, Looks
from matrix_of_weeks import (
    SETTINGS,
    attempts,
    cleared_in_its_draw,
    kill_with_task_and_worker,
)
from real_airflow import RealAirflow, running

from turnstile.ledger.balances.amounts import AccountLoss
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.records import ReleaseKey
from turnstile.operations.amount_words import epsilon_words
from turnstile.operations.watchdog.alerts import Alert

HEALTHY, CLEARED, KILLED, GONE = WEEKS = tuple(f"2016-W{n}" for n in range(30, 34))
EXTRA = SETTINGS | {"AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False"}

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """Four weeks that nobody has released."""
    base = tmp_path_factory.mktemp("truth")
    with running(base, f"{HEALTHY}:{GONE}", edits={}, extra=EXTRA) as instance:
        yield instance


def _released(airflow: RealAirflow, week: str) -> None:
    airflow.backfilled(week)
    assert airflow.runs()[week] == "success"


def test_a_healthy_run_is_never_in_trouble(airflow: RealAirflow) -> None:
    observer = Looks(airflow, WEEKS)
    with observer.once_a_second():
        airflow.backfill(HEALTHY, HEALTHY)
        _released(airflow, HEALTHY)
        airflow.until(lambda: observer.seen[HEALTHY][-1].run == "success", what="a look at the end")
    assert observer.faults(HEALTHY) == set()
    assert not any(look.trouble for look in observer.seen[HEALTHY])
    assert {"under_way", "published"} <= set(observer.states(HEALTHY))


def test_a_run_that_is_cleared_in_its_draw_is_never_in_trouble_and_burns_nothing(
    airflow: RealAirflow,
) -> None:
    observer = Looks(airflow, WEEKS)
    airflow.hold(CLEARED, "seal")
    with observer.once_a_second():
        airflow.backfill(CLEARED, CLEARED)
        cleared_in_its_draw(airflow, CLEARED)
        airflow.let_go(CLEARED, "seal")
        _released(airflow, CLEARED)
    assert attempts(airflow, CLEARED) == ("published",)
    assert observer.faults(CLEARED) == set()
    assert not any(look.trouble for look in observer.seen[CLEARED])
    assert "under_way" in observer.states(CLEARED)


def test_advice_about_a_draw_whose_process_was_killed_says_what_it_charges(
    airflow: RealAirflow,
) -> None:
    observer = Looks(airflow, WEEKS)
    airflow.hold(KILLED, "seal")
    with observer.once_a_second():
        airflow.backfill(KILLED, KILLED)
        airflow.held(KILLED, "seal").kill()
        airflow.let_go(KILLED, "seal")
        seen = observer.until(KILLED, "charged")
        assert "may be cleared from the task draw on" in seen.words
        # Its task said so and is about to end; what is cleared before that ends with it.
        airflow.until(lambda: airflow.runs()[KILLED] == "failed", what="the end of the run")
        airflow.clear(KILLED, "draw")
        _released(airflow, KILLED)
    assert attempts(airflow, KILLED) == ("burned", "published")
    assert observer.faults(KILLED) == set()
    assert _charge_of_last_draw(airflow, KILLED) in seen.words.partition("it charges ")[2]


def test_a_run_that_died_with_its_draw_is_dead_in_the_same_words_everywhere(
    airflow: RealAirflow,
) -> None:
    observer = Looks(airflow, WEEKS)
    airflow.hold(GONE, "seal")
    with observer.once_a_second():
        airflow.backfill(GONE, GONE)
        kill_with_task_and_worker(airflow.held(GONE, "seal"))
        airflow.let_go(GONE, "seal")
        seen = observer.until(GONE, "dead")
        airflow.clear(GONE, "draw")
        _released(airflow, GONE)
    assert attempts(airflow, GONE) == ("burned", "published")
    assert observer.faults(GONE) == set()
    assert _charge_of_last_draw(airflow, GONE) in seen.words.partition("it charges ")[2]


def _charge_of_last_draw(airflow: RealAirflow, week: str) -> str:
    """Return what the last draw of a week charged a card, in words, from the ledger."""
    entries = airflow.ledger.entries_of(ReleaseKey("opal", week))
    reserved = [entry for entry in entries if entry.kind is EntryKind.RESERVED]
    assert len(reserved) == 2
    card = next(posting for posting in reserved[-1].body["postings"] if posting[0] == "card")
    return f"{epsilon_words(AccountLoss(None, card[3])).removesuffix(' at delta 1e-6')} for a card"


# -- the looks themselves must be able to fail -----------------------------------------------------

_DIED = Alert("run_died", "opal", GONE, sentence=f"{GONE}: it is over. Clear it; it charges eps 4")
_ASKED = {"state": "asked", "of_budget": "sealed"}
_DEAD = Look(
    run="failed",
    mark={"state": "dead", "of_budget": "charged"},
    trouble="dead",
    words="dead: it is over. Clear it; it charges eps 4",
    alerts=(_DIED,),
    has_failed=False,
)


@pytest.mark.parametrize(
    ("other", "fault"),
    [
        ({"run": "running"}, "trouble of a run that lives"),
        ({"run": "queued", "trouble": "", "words": ""}, "a death of a run that lives"),
        ({"run": "running", "asks": True}, "page and Airflow differ about a question"),
        ({"run": "running", "trouble": "asked", "mark": _ASKED}, "differ about a question"),
        ({"trouble": "charged"}, "list and calendar differ"),
        ({"words": "dead: it is over. Clear it"}, "advice does not say what it charges"),
        ({"alerts": ()}, "page and watchdog differ about a death"),
        ({"trouble": "", "words": ""}, "page and watchdog differ about a death"),
        ({"words": "it is gone; it charges eps 4"}, "say a death in other words"),
        (
            {"trouble": "", "words": "", "alerts": (), "has_failed": True},
            "silent about a run that failed",
        ),
    ],
)
def test_a_look_at_a_falsehood_has_a_fault(other: dict[str, object], fault: str) -> None:
    assert _DEAD.faults == ()
    assert any(fault in problem for problem in replace(_DEAD, **other).faults)  # type: ignore[arg-type]
