"""A year of a card: the cap is the promise for every 52 weeks in a row, and the plan divides it."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random

import pytest

from turnstile.cli import main
from turnstile.errors import BudgetExceeded, ProgrammeError
from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.encoding import decode_event, encode_event
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.presentation import forecast_lines
from turnstile.ledger.records import Bindings, ReleaseKey, Request
from turnstile.ledger.states import ReleaseState
from turnstile.privacy.accounts import NANO, loss_by_unit, postings
from turnstile.privacy.guarantees import Zcdp, epsilon_tight
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme, parse_programme
from turnstile.publishing.carried import sums
from turnstile.release.ledger_caps import ledger_cap
from turnstile.release.plan import ReleasePlan, make_plan
from turnstile.service_calendar import ServiceWeek

INCLUDE = Path(__file__).parents[2] / "include"
FILE = INCLUDE / "programmes/opal_year.yaml"
FIRST = ServiceWeek.parse("2016-W01")
BINDINGS = Bindings("programme", "domain", "snapshot")
PROGRAMME = load_programme("opal_year", INCLUDE)
WEEKS = 52
SHARES = 54  # of the weeks, a draw that dies and a correction


@cache
def planned(week: ServiceWeek) -> ReleasePlan:
    return make_plan(PROGRAMME, load_domain(PROGRAMME, INCLUDE), week)


def asked(number: int, *, revision: int = 0, caps: tuple[Cap, ...] | None = None) -> Request:
    """What the product asks of the ledger for a week; its events are of no interest here."""
    week = FIRST.plus(number)
    return Request(
        key=ReleaseKey("opal_year", str(week), revision),
        family=PROGRAMME.family,
        bindings=BINDINGS,
        plan_digest=f"plan of {week}",
        events=(),
        postings=planned(week).postings,
        week=str(week),
        caps=caps or tuple(ledger_cap(cap) for cap in PROGRAMME.caps),
        reason="late file" if revision else None,
        approver="release officer" if revision else None,
    )


def filled(number: int, *, revision: int = 0, weeks: int = WEEKS) -> Request:
    """The same under a cap that a year of weeks fills: what there was before room was left."""
    (cap,) = (ledger_cap(cap) for cap in PROGRAMME.caps)
    cost = next(p.rho_nano or 0 for p in planned(FIRST).postings if p.scope == "ever")
    full = Cap(cap.unit, rho_nano=weeks * cost, window_weeks=cap.window_weeks)
    return asked(number, revision=revision, caps=(full,))


def released(ledger: Ledger, request: Request) -> None:
    attempt = ledger.begin_draw(ledger.reserve(request).attempt_id, BINDINGS)
    ledger.seal(attempt.attempt_id, f"artefact of {request.key}")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    return Ledger.open(url, clock=lambda: datetime(2017, 1, 9, 12, tzinfo=UTC))


def spent_nano(ledger: Ledger) -> int:
    return next(b.spent.rho_nano or 0 for b in ledger.balance() if b.scope == "ever")


@pytest.mark.long
def test_a_year_holds_every_week_a_draw_that_dies_and_a_correction(ledger: Ledger) -> None:
    for number in range(WEEKS):
        released(ledger, asked(number))
    last = asked(WEEKS)
    ledger.begin_draw(ledger.reserve(last).attempt_id, BINDINGS)
    released(ledger, last)  # reserved again: the draw that died is burned and stays charged
    states = [attempt.state for attempt in ledger.attempts(last.key)]
    assert states == [ReleaseState.BURNED, ReleaseState.SEALED]
    released(ledger, asked(WEEKS, revision=1))
    with pytest.raises(BudgetExceeded):  # the window is full: SHARES of them are charged in it
        ledger.reserve(asked(WEEKS, revision=2))
    released(ledger, asked(WEEKS + 1))  # and the next week comes out all the same
    (window,) = (b.spent.rho_nano or 0 for b in ledger.balance() if b.cap is not None)
    assert NANO * (SHARES - 1) // SHARES < window <= NANO


def test_a_year_that_fills_its_cap_passes_none_and_the_window_rolls(ledger: Ledger) -> None:
    for number in range(WEEKS):
        released(ledger, filled(number))
        (forecast,) = ledger.forecast(PROGRAMME.family)
        assert (
            forecast.reached_in is None
        )  # every week since was ordered knowing that all others fit
        assert forecast.path[number][1] == spent_nano(ledger) <= forecast.limit
    assert forecast.correction == forecast.weekly
    assert forecast.correction_in is None
    assert "none while every week is released" in "".join(forecast_lines([forecast]))
    refused = ledger.refusal_of(filled(WEEKS - 1, revision=1))
    assert isinstance(refused, BudgetExceeded)  # a correction waits until a week was left out
    released(ledger, filled(WEEKS))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(filled(WEEKS, revision=1))


def test_the_share_of_a_week_that_was_left_out_pays_for_one_correction(ledger: Ledger) -> None:
    for number in range(WEEKS):
        if number != 3:
            released(ledger, filled(number))
    (forecast,) = ledger.forecast(PROGRAMME.family)
    assert forecast.correction_in == str(FIRST.plus(WEEKS - 1))
    assert forecast.refused_then == str(FIRST.plus(3 + WEEKS))  # when the share has left the window
    released(ledger, filled(WEEKS - 1, revision=1))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(filled(WEEKS - 1, revision=2))


def test_a_correction_takes_the_share_of_a_later_week_and_the_forecast_says_of_which(
    ledger: Ledger,
) -> None:
    for number in range(3):
        released(ledger, filled(number))
    (forecast,) = ledger.forecast(PROGRAMME.family)
    refused = forecast.refused_then
    assert (forecast.correction_in, refused) == (str(FIRST.plus(2)), str(FIRST.plus(WEEKS - 1)))
    assert f"of {FIRST.plus(2)}; then {refused} is refused" in "".join(forecast_lines([forecast]))
    released(ledger, filled(2, revision=1))
    (forecast,) = ledger.forecast(PROGRAMME.family)
    assert forecast.reached_in == refused
    for number in range(3, WEEKS - 1):
        released(ledger, filled(number))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(filled(WEEKS - 1))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_no_order_of_weeks_and_corrections_passes_the_cap(ledger: Ledger, seed: int) -> None:
    """An auditor's search: weeks in any order and number; each window is summed apart."""
    spent: Counter[int] = Counter()
    revisions: Counter[int] = Counter()
    order = Random(seed)  # noqa: S311 - which week is tried, not noise
    cost = next(p.rho_nano or 0 for p in planned(FIRST).postings if p.scope == "ever")
    for _ in range(90):
        number = order.choice((0, 5, 50, 51, 52, 60, 103, order.randrange(110)))
        try:
            released(ledger, asked(number, revision=revisions[number]))
        except BudgetExceeded:
            windows = (sum(spent[n] for n in range(w, w + WEEKS)) for w in range(-51, number + 1))
            assert max(windows) + cost > NANO  # no refusal without need
            continue
        revisions[number] += 1
        spent[number] += cost
        assert all(sum(spent[n] for n in range(w, w + WEEKS)) <= NANO for w in range(-51, 111))
    assert revisions.total() > WEEKS


@pytest.mark.long
def test_a_smaller_cap_refuses_the_last_week_as_the_forecast_said(ledger: Ledger) -> None:
    # Negative control: a cap that holds 51 weeks.
    for number in range(WEEKS - 1):
        released(ledger, filled(number, weeks=WEEKS - 1))
        (forecast,) = ledger.forecast(PROGRAMME.family)
        assert forecast.reached_in == str(FIRST.plus(WEEKS - 1))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(filled(WEEKS - 1, weeks=WEEKS - 1))


def test_the_promise_is_an_epsilon_of_a_census_for_a_year() -> None:
    (loss,) = {
        loss_by_unit(planned(FIRST).events)[unit].rho
        for unit in (ProtectionUnit.CARD_WEEK, ProtectionUnit.CARD)
    }
    assert loss is not None
    assert Fraction(1, SHARES) - Fraction(2, NANO) < loss <= Fraction(1, SHARES)
    year = epsilon_tight(Zcdp(SHARES * loss), Fraction(1, 10**6))
    assert year is not None
    assert 7.7 < year <= 7.77  # 8.43 by the simple conversion


def test_a_week_is_one_vector_and_survives_the_ledger() -> None:
    events = planned(FIRST).events
    assert {event.joint for event in events} == {
        f"{table.name}/2016-W01" for table in PROGRAMME.tables
    }
    written = tuple(decode_event(encode_event(event)) for event in events)
    assert written == events
    assert postings(written) == planned(FIRST).postings
    alone = postings([decode_event(encode_event(e) | {"joint": None}) for e in events])
    (seven,) = (p.rho_nano for p in alone if p.unit is ProtectionUnit.CARD)
    (joint,) = (p.rho_nano for p in planned(FIRST).postings if p.unit is ProtectionUnit.CARD)
    assert seven is not None
    assert joint is not None
    assert (
        seven > 6.99 * joint
    )  # what seven draws would cost if the bound did not hold over the week


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"1/54"', '"1/51"', "1/51 of 52 weeks is above 1"),
        ('window_weeks: 52, rho: "1"', 'window_weeks: 52, epsilon: "8"', "stated in rho"),
        ("  card_week: {", "  card_day: {trips_at_most: 6}\n  card_week: {", "two units of a day"),
        ("by: [], trips_at_most: 40, per", "by: [tap_on_slot], per", "goes with trips_at_most"),
        ("by: [], trips_at_most: 40, per_cell_at_most: 8", "by: []", "at least one entry"),
    ],
)
def test_a_year_that_cannot_hold_is_refused(old: str, new: str, said: str) -> None:
    text = FILE.read_text()
    assert old in text
    with pytest.raises(ProgrammeError, match=said):
        parse_programme(text.replace(old, new, 1), "opal_year.yaml")


@pytest.mark.long
def test_a_week_is_published_and_verifies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path))
    week = "2016-W30"
    assert main(["sample", "opal", "--weeks", f"{week}:{week}", "--rows", "400"]) == 0
    assert main(["run", "opal_year", "--week", week]) == 0
    package = tmp_path / f"public/opal_year/{week}/r0"
    assert main(["package", "verify", str(package)]) == 0
    assert main(["estimates", "verify", str(package)]) == 0
    card = json.loads((package / "release_card.json").read_text())
    assert [table["name"] for table in card["estimates"]["promise"]["totals"]] == ["totals"]
    assert (package / "data/totals.csv").exists()
    assert (package / "data/location_slot.parquet").exists()
    assert "at most 20 of a card_week" in (package / "release_card.md").read_text()
    guide = (package / "docs/GUIDE.md").read_text()
    added = next(line for line in guide.splitlines() if "add up: places to hours" in line)
    assert "totals" not in added
    assert "location_slot" in added
    assert "count other trips, and add up with none of these: totals." in guide
    assert sums.Package(package).total("totals", column="measured").standard_deviation > 0
    with pytest.raises(ValueError, match="can be summed: .*measured"):
        sums.Package(package).total("totals")
    assert {"tap", "unbiased"} & {*sums.Package(package).rows("totals")[0]} == {"unbiased"}
    assert "value" in sums.Package(package).rows("location_hour")[0]
    capsys.readouterr()
