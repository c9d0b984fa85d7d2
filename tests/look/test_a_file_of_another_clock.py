"""A file of a week that was written by another clock stops the week, or is stated."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from city_week import WEEK, ZONE, Form, Tap, taps

from turnstile.service_calendar import ServiceWeek

CARDS = 300  # of which a file has 600 trips a day
DAYS = ServiceWeek.parse(str(WEEK)).days
UTC_CLOCK = Form(zone=ZoneInfo("UTC"))


def _of_day(number: int) -> list[Tap]:
    return [tap for tap in taps(CARDS) if tap.at.astimezone(ZONE).date() == DAYS[number]]


def _by_days(city: Any, form: Form, *, of_day: int) -> None:
    """A file a day, one of them in another form."""
    city.new(taps(CARDS), Form())
    for path in (city.home / "landing/city").rglob("*.csv"):
        path.unlink()
    for number, day in enumerate(DAYS):
        city.deliver(_of_day(number), form if number == of_day else Form(), f"{day}.csv")


@pytest.mark.some(1)
@pytest.mark.parametrize("of_day", [1, 5])
def test_one_day_of_seven_in_utc_stops_the_week(city: Any, of_day: int) -> None:
    _by_days(city, UTC_CLOCK, of_day=of_day)
    code, said, record = city.look()
    assert code == 2
    assert "source.file.zone" in {one["key"] for one in record["decisions"] if one["must"]}
    assert "clock: the quietest hours" in said
    city.run_stops("source.set_aside_at_most.unknown_clock")


def test_one_depot_of_four_in_utc_stops_the_week(city: Any) -> None:
    city.new(taps(CARDS), Form())
    for path in (city.home / "landing/city").rglob("*.csv"):
        path.unlink()
    for depot in range(4):
        test_one_depot = [tap for tap in taps(CARDS) if int(tap.card) % 4 == depot]
        city.deliver(test_one_depot, UTC_CLOCK if depot == 3 else Form(), f"depot{depot}.csv")
    assert "clock: the quietest hours" in city.look()[1]


def test_a_clock_that_is_stated_or_whose_files_are_few_goes_on(city: Any) -> None:
    _by_days(city, UTC_CLOCK, of_day=2)
    city.edit("\nsource:\n", '\nsource:\n  set_aside_at_most: {unknown_clock: "1/5"}\n')
    assert city.look()[0] == 0


def test_files_of_some_hours_are_of_no_other_clock(city: Any) -> None:
    """Negative control: a morning's file is quiet in the evening."""
    city.new(taps(CARDS), Form())
    for path in (city.home / "landing/city").rglob("*.csv"):
        path.unlink()
    for name, hours in (("early", range(14)), ("late", range(14, 24))):
        test_files = [tap for tap in taps(CARDS) if tap.at.astimezone(ZONE).hour in hours]
        city.deliver(test_files, Form(), f"{name}.csv")
    assert city.look()[0] == 0


def _of_instants(city: Any, times: str, *given: str) -> tuple[str, str]:
    """Look at taps that name instants; return what is said and the page."""
    file = city.deliver(taps(CARDS), Form(times=times))
    pairs = ("card_id=id_tarjeta", "place=parada", "tapped_at=momento", "mode=modo", "action=tipo")
    named = [f"--column={pair}" for pair in pairs]
    said = city.tells("look", "--from", file, "--feed", "taps", *named, *given)[1]
    return str(said), (city.home / "private/looks/a/look.md").read_text()


@pytest.mark.parametrize("times", ["offset", "epoch_s"])
def test_no_clock_is_judged_before_somebody_says_of_which_zone(city: Any, times: str) -> None:
    said, page = _of_instants(city, times)
    assert "time.zone: is not decided yet" in said
    for wrong in ("source.file.zone", "zone: UTC", "`clock`"):
        assert wrong not in said + page


def test_instants_since_1970_have_no_zone_of_their_own_to_state(city: Any) -> None:
    said, page = _of_instants(city, "epoch_s", "--zone", "Australia/Sydney")
    assert "to decide: time.zone: clock: the quietest hours" in said
    assert "zone: UTC" not in page
