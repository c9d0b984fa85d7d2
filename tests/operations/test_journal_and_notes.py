"""The journal survives crashes and writers; the note says what the ledger will do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.records import Attempt, Bindings, ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.ledger.weeks import Revision
from turnstile.operations.journal import Happening, Journal, Line, open_runs
from turnstile.operations.people.run_notes import effect_on_budget

AT = "2026-11-20T10:00:00+00:00"
COST = "epsilon 4 for a trip"


def _line(happening: Happening, run_id: str = "a") -> Line:
    return Line(AT, happening, "opal", "2016-W30", run_id)


def _attempt(state: ReleaseState, number: int = 1) -> Attempt:
    return Attempt(
        attempt_id=f"opal/2016-W30/r0#{number}",
        key=ReleaseKey("opal", "2016-W30"),
        family="opal_cards",
        week="2016-W30",
        state=state,
        bindings=Bindings("p", "d", "s"),
        plan_digest="plan",
        artefact_digest=None,
        manifest_digest=None,
        reserved_sequence=number,
        is_withdrawn=False,
    )


def _sealed_entry() -> Entry:
    body = {"attempt": "opal/2016-W30/r0#1", "key": "opal/2016-W30/r0"}
    return Entry(3, "", AT, EntryKind.SEALED, 1, body, "", "")


def test_lines_come_back_as_they_were_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    line = Line(AT, Happening.JUDGED, "opal", "2016-W30", "a", {"verdicts": {"rule": "pass"}})
    journal.write(line)
    assert journal.of_week("opal", "2016-W30") == (line,)
    assert journal.of_programme("opal") == (line,)
    assert journal.of_week("opal", "2016-W31") == ()


def test_a_line_that_a_crash_truncated_is_passed_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(_line(Happening.BEGUN))
    with (tmp_path / "opal/2016-W30.jsonl").open("a") as file:
        file.write('{"at": "2026')
    assert journal.of_week("opal", "2016-W30") == (_line(Happening.BEGUN),)
    journal.write(_line(Happening.FAILED))
    journal.write(_line(Happening.RESUMED))
    said = [line.happening for line in journal.of_week("opal", "2016-W30")]
    assert said == [Happening.BEGUN, Happening.FAILED, Happening.RESUMED]


def test_no_line_is_lost_among_many_writers(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: journal.write(_line(Happening.BEGUN, str(n))), range(100)))
    assert {line.run_id for line in journal.of_week("opal", "2016-W30")} == set(
        map(str, range(100))
    )


@pytest.mark.parametrize(
    ("happenings", "is_open"),
    [
        ([Happening.BEGUN], True),
        ([Happening.BEGUN, Happening.JUDGED], True),
        ([Happening.BEGUN, Happening.FAILED], False),
        ([Happening.BEGUN, Happening.ENDED], False),
        ([Happening.BEGUN, Happening.FAILED, Happening.BEGUN], True),
    ],
)
def test_a_run_is_open_until_it_says_how_it_ended(
    happenings: list[Happening], *, is_open: bool
) -> None:
    assert bool(open_runs(tuple(map(_line, happenings)))) is is_open


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ([], "never drawn: once its rows pass validation, epsilon 4 for a trip is charged"),
        ([ReleaseState.VOID], "never drawn"),
        ([ReleaseState.RESERVED], "a hold exists and is resumed, no second one"),
        ([ReleaseState.DRAWING], "stays charged; another epsilon 4 for a trip is charged"),
        ([ReleaseState.BURNED], "stays charged; another epsilon 4 for a trip is charged"),
        ([ReleaseState.BURNED, ReleaseState.VOID], "stays charged; another epsilon 4"),
        ([ReleaseState.BURNED, ReleaseState.RESERVED], "a hold exists and is resumed, no second"),
        ([ReleaseState.BURNED, ReleaseState.BURNED], "no draw is left, a person decides"),
        ([ReleaseState.BURNED, ReleaseState.DRAWING], "no draw is left, a person decides"),
    ],
)
def test_a_note_says_what_the_ledger_will_do(states: list[ReleaseState], said: str) -> None:
    attempts = [_attempt(state, n) for n, state in enumerate(states, 1)]
    effect = effect_on_budget(Revision(tuple(attempts)), (), COST)
    assert said in effect.sentence
    stated = replace(_sealed_entry(), kind=EntryKind.NO_RELEASE)
    words = f"that it has no release was stated on 2026-11-20, in public; {effect.sentence}"
    note = effect_on_budget(Revision(tuple(attempts)), [stated], COST)
    assert note == replace(effect, sentence=words)


def test_a_sealed_week_says_when_it_was_sealed_and_that_nothing_is_charged() -> None:
    published = Revision((_attempt(ReleaseState.PUBLISHED),))
    note = effect_on_budget(published, [_sealed_entry()], COST)
    assert note.sentence == "week sealed on 2026-11-20: re-issued, 0 charged"
    embargoed = effect_on_budget(
        Revision((_attempt(ReleaseState.SEALED),)), [_sealed_entry()], COST
    )
    assert embargoed.sentence.endswith("not published yet: the same bytes go on, 0 charged")


def test_a_draw_that_lives_is_waited_for_and_only_a_dead_one_costs_another() -> None:
    drawing = _attempt(ReleaseState.DRAWING)
    revision = Revision((drawing,))
    alive = effect_on_budget(revision, (), COST, frozenset({drawing.attempt_id}))
    dead = effect_on_budget(revision, (), COST, frozenset({"another"}))
    assert (alive.charges, dead.charges) == (False, True)
    assert "its seal is waited for, 0 charged; should its process have died, " in alive.sentence
    assert alive.sentence.endswith(dead.sentence)  # its lease outlasts it for some seconds
