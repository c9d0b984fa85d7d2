"""Room to fail: beside every promised release a draw that dies and a correction are admitted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import h3
import pytest
from small_deployment import WEEK, Deployment

from turnstile.errors import BudgetExceeded
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Bindings, ReleaseKey, Request
from turnstile.pipeline.steps import step_named
from turnstile.pipeline.trials.room import crash_sentence, shortage, tightest_room, uncapped
from turnstile.programme.calendar.periods import period_named
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme, parse_programme
from turnstile.programme.spec import Programme
from turnstile.release.ledger_caps import ledger_cap
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServicePeriod, ServiceWeek
from turnstile.settings import system_clock

INCLUDE = Path(__file__).parents[2] / "include"
EARLIER = INCLUDE / "programmes/earlier"
BINDINGS = Bindings("programme", "domain", "snapshot")
DAY_OF_BUSES = "2021-W46"  # its days lie in one month of itms_month
MONTH = "2021-11-15..2021-12-15"
THREE_DAYS = [
    f"2016-{days}" for days in ("07-31..2016-08-02", "08-03..2016-08-05", "08-06..2016-08-08")
]
WITH_ROOM = ("itms", "itms_delays", "itms_month", "itms_survey", "opal", "opal_year")
WITHOUT_ROOM = ("opal_2017", "opal_flows", "opal_sums", "opal_trip")
_SINCE = EARLIER / "itms.8bde7f3bc943.yaml"  # of the same promise, in slots of an hour
WITHOUT = [
    file
    for name in ("itms", "itms_delays", "opal", "opal_year")
    for file in sorted(EARLIER.glob(f"{name}.*.yaml"))
    if file != _SINCE
]
Cli = Callable[..., int]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    return Ledger.open(url, clock=lambda: datetime(2026, 11, 20, 12, tzinfo=UTC))


def request_of(programme: Programme, period: ServicePeriod, revision: int = 0) -> Request:
    """What the product asks of the ledger; events are of no interest here."""
    planned = make_plan(programme, load_domain(programme, INCLUDE), period, revision=revision)
    return Request(
        key=ReleaseKey(programme.name, str(period), revision),
        family=planned.family,
        bindings=BINDINGS,
        plan_digest=planned.digest,
        events=(),
        postings=planned.postings,
        week=str(planned.charged_in),
        first_week=str(period.weeks[0]),
        caps=tuple(ledger_cap(cap) for cap in programme.caps),
        reason="late file" if revision else None,
        approver="release officer" if revision else None,
    )


def released(ledger: Ledger, request: Request, *, dies_first: bool = False) -> None:
    for _ in range(2 if dies_first else 1):  # reserved again, a draw that died is burned
        attempt = ledger.begin_draw(ledger.reserve(request).attempt_id, BINDINGS)
    ledger.seal(attempt.attempt_id, f"artefact of {request.key}")


def admitted_more(ledger: Ledger, programme: Programme, period: ServicePeriod) -> int:
    """How many corrections of a released period its caps admit, by the ledger alone."""
    for revision in count(1):
        try:
            released(ledger, request_of(programme, period, revision))
        except BudgetExceeded:
            return revision - 1
    raise AssertionError


def admitted_of_week(ledger: Ledger, programme: Programme, week: ServicePeriod) -> int:
    """How many draws of a week its caps admit, the first included."""
    released(ledger, request_of(programme, week))
    return 1 + admitted_more(ledger, programme, week)


@pytest.mark.parametrize("amount", ["1/4", "1/8", "1/10", "1/12", "1/13", "1/20", "1/50"])
def test_the_room_is_what_the_ledger_admits_beside_a_week(ledger: Ledger, amount: str) -> None:
    text = (INCLUDE / "programmes/opal.yaml").read_text()
    programme = parse_programme(text.replace('rho: "1/12"', f'rho: "{amount}"'), "opal.yaml")
    week = ServiceWeek.parse(WEEK)
    room = tightest_room(programme, load_domain(programme, INCLUDE), week)
    assert room is not None
    assert room.draws + 1 == admitted_of_week(ledger, programme, week)
    assert (shortage(programme, room) is None) == (room.draws >= 2)


@pytest.mark.parametrize("share", ["1/10", "1/11", "1/12", "1/14"])
def test_the_room_of_a_window_is_what_the_ledger_admits_beside_all_of_its_weeks(
    ledger: Ledger, share: str
) -> None:
    text = (INCLUDE / "programmes/opal_year.yaml").read_text()
    short = text.replace("window_weeks: 52", "window_weeks: 10").replace('"1/54"', f'"{share}"')
    programme = parse_programme(short, "opal_year.yaml")
    first = ServiceWeek.parse(WEEK)
    for number in range(10):
        released(ledger, request_of(programme, first.plus(number)))
    room = tightest_room(programme, load_domain(programme, INCLUDE), first)
    assert room is not None
    assert room.draws == admitted_more(ledger, programme, first.plus(9)) == int(share[2:]) - 10


@pytest.mark.parametrize("name", ["itms", "itms_delays"])
def test_a_day_of_a_bus_has_room_for_a_draw_that_dies_and_a_correction_beside_month_and_survey(
    ledger: Ledger, name: str
) -> None:
    for beside, period in (("itms_month", MONTH), ("itms_survey", DAY_OF_BUSES)):
        programme = load_programme(beside, INCLUDE)
        released(ledger, request_of(programme, period_named(programme, period)))
    programme, week = load_programme(name, INCLUDE), ServiceWeek.parse(DAY_OF_BUSES)
    released(ledger, request_of(programme, week), dies_first=True)
    released(ledger, request_of(programme, week, 1))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(request_of(programme, week, 2))


def test_a_day_of_a_card_has_room_for_a_draw_that_dies_and_a_correction(ledger: Ledger) -> None:
    programme, week = load_programme("opal", INCLUDE), ServiceWeek.parse(WEEK)
    released(ledger, request_of(programme, week), dies_first=True)
    released(ledger, request_of(programme, week, 1))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(request_of(programme, week, 2))


@pytest.mark.parametrize(("cap", "is_admitted"), [("81/1000", False), ("101/1000", True)])
def test_three_periods_of_three_days_may_touch_one_week(
    ledger: Ledger, cap: str, *, is_admitted: bool
) -> None:
    text = (INCLUDE / "programmes/opal_year.yaml").read_text()
    for old, new in (
        ('{unit: card, window_weeks: 52, rho: "1"}', f'{{unit: card_week, rho: "{cap}"}}'),
        ('share_of_cap: "1/54"', 'rho: "1/50"'),
        ('weekly_at: "10:00"', 'weekly_at: "10:00", period_days: 3, first_day: 2016-07-25'),
    ):
        assert old in text
        text = text.replace(old, new)
    programme = parse_programme(text, "opal_year.yaml")
    of_week = [period_named(programme, name) for name in THREE_DAYS]
    room = tightest_room(programme, load_domain(programme, INCLUDE), of_week[0])
    assert room is not None
    assert room.draws == (2 if is_admitted else 1)
    for period in of_week:
        released(ledger, request_of(programme, period), dies_first=period is of_week[1])
    correction = request_of(programme, of_week[1], 1)
    if is_admitted:
        released(ledger, correction)
    else:
        with pytest.raises(BudgetExceeded):
            ledger.reserve(correction)


@pytest.mark.parametrize("file", WITHOUT, ids=lambda file: file.stem)
def test_what_was_promised_before_had_no_such_room(ledger: Ledger, file: Path) -> None:
    # Negative control: the texts that were shipped until this room was left.
    name = file.stem.partition(".")[0]
    programme = parse_programme(file.read_text(), f"{name}.yaml")
    week = ServiceWeek.parse(WEEK)
    room = tightest_room(programme, load_domain(programme, INCLUDE), week)
    assert room is not None
    assert "write redraws: 0" in str(shortage(programme, room))
    if room.cap.window_weeks is None:
        assert admitted_of_week(ledger, programme, week) == room.draws + 1 < 3


def test_every_shipped_programme_has_room_or_says_on_purpose_that_it_has_none() -> None:
    for names, redraws in ((WITH_ROOM, 1), (WITHOUT_ROOM, 0)):
        for name in names:
            programme = load_programme(name, INCLUDE)
            assert programme.redraws == redraws
            period = (
                ServiceWeek.parse(WEEK) if name != "itms_month" else period_named(programme, MONTH)
            )
            room = tightest_room(programme, load_domain(programme, INCLUDE), period)
            assert room is not None
            assert shortage(programme, room) is None
            assert (room.draws >= 2) == bool(redraws)
            assert ("no release for ever" in crash_sentence(room)) == (room.draws == 0)


def test_check_refuses_a_programme_without_room_and_says_how_much_smaller_it_has_to_be(
    check_refuses: Callable[[str, str, str, str], None], turnstile: Cli, deployment: Deployment
) -> None:
    assert turnstile("check", "opal") == 0
    check_refuses(
        "opal", 'rho: "1/12"', 'rho: "1/8"', "at most 66.6 % of it fits, or write redraws"
    )
    deployment.edit("opal", "approval: {", "redraws: 0\napproval: {")
    assert turnstile("check", "opal") == 0
    deployment.edit("opal", "redraws: 0", "redraws: 2")
    deployment.edit("opal", 'rho: "1/8"', 'rho: "1/12"')
    assert turnstile("check", "opal") == 2


@pytest.mark.parametrize("redraws", ["", "redraws: 0\n"])
def test_check_refuses_a_programme_whose_own_releases_pass_a_cap_whatever_may_die(
    check_refuses: Callable[[str, str, str, str], None], deployment: Deployment, redraws: str
) -> None:
    deployment.edit("opal", "approval: {", f"{redraws}approval: {{")
    check_refuses(
        "opal",
        'rho: "48"',
        'rho: "10"',
        "opal.yaml: caps: the promised releases pass the cap on",
    )


def test_check_asks_for_a_cap_and_warns_where_none_is_over_weeks(
    check_refuses: Callable[[str, str, str, str], None],
    deployment: Deployment,
    turnstile: Cli,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert turnstile("check") == 0
    assert "none is over weeks" not in capsys.readouterr().err
    for programme, cap in (
        ("opal", '  - {unit: card, window_weeks: 52, rho: "48", delta: "1e-6"}\n'),
        ("itms", '  - {unit: bus, window_weeks: 52, relation: add_remove, rho: "1368"}\n'),
    ):
        deployment.edit(programme, cap, "")
        assert turnstile("check", programme) == 0
        unit = cap.split()[2]
        assert f"warning: {programme}.yaml: caps: none is over weeks" in (
            said := capsys.readouterr().err
        )
        assert f"add - {{unit: {unit} window_weeks: 52, rho: AMOUNT}}" in said
    check_refuses(
        "opal",
        'caps:\n  - {unit: card_day, rho: "1/4", delta: "1e-6"}\n',
        "caps: []\n",
        "opal.yaml: caps: is empty",
    )


def test_a_cap_that_is_advised_states_all_that_its_mechanism_spends(deployment: Deployment) -> None:
    """A cap without a delta admits none: who wrote what was advised was refused again."""
    text = (deployment.include / "programmes/opal_2017.yaml").read_text()
    caps = text[text.index("caps:  ") :].partition("\n\n")[0]
    programme = parse_programme(text.replace(caps, "caps: []"), "opal_2017.yaml")
    advised = str(uncapped(programme)).partition("write ")[2]
    assert advised == "- {unit: trip, epsilon: AMOUNT, delta: AMOUNT}"
    followed = advised.replace("epsilon: AMOUNT", 'epsilon: "99"').replace("AMOUNT", '"1e-5"')
    followed = parse_programme(text.replace(caps, f"caps:\n  {followed}"), "opal_2017.yaml")
    domain = load_domain(followed, deployment.include)
    assert make_plan(followed, domain, ServiceWeek.parse(WEEK))


@pytest.mark.parametrize(
    ("area", "key"),
    [
        ("domains/surat_area.geojson", "ring_cells"),
        ("domains/surat_area.geojson", "h3_coarsest"),
        ("domains/cells.csv", "ring_cells"),
        ("domains/stops.csv", "h3_coarsest"),
    ],
)
def test_check_refuses_a_key_that_the_service_area_does_not_go_by(
    check_refuses: Callable[[str, str, str, str], None],
    deployment: Deployment,
    turnstile: Cli,
    area: str,
    key: str,
) -> None:
    """It counted without rings, or without coarser cells; what was sealed so is still read."""
    center = h3.latlng_to_cell(21.17, 72.83, 7)
    (deployment.include / "domains/cells.csv").write_text(f"cell\n{center}\n")
    (deployment.include / "domains/stops.csv").write_text("latitude,longitude\n21.17,72.83\n")
    deployment.edit("itms", "domains/surat_area.geojson", area)
    assert turnstile("check", "itms") == 0
    check_refuses("itms", f"  service_area: {area}", f"  service_area: {area}\n  {key}: 1", key)
    programme = load_programme("itms", deployment.include)
    assert load_domain(programme, deployment.include).cells_by_mode
    heeded = {"ring_cells": "domains/stops.csv", "h3_coarsest": "domains/cells.csv"}[key]
    deployment.edit("itms", area, heeded)
    assert turnstile("check", "itms") == 0


def test_check_plans_the_next_week_of_a_programme_that_rests_for_weeks(
    turnstile: Cli, deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    """It took the week of today whatever the programme says of it: no day of it had service."""
    this_week = ServiceWeek.containing(system_clock().date())
    days = [str(day) for later in (0, 1) for day in this_week.plus(later).days]
    deployment.edit("opal", "  landing:", f"  absent_days: [{', '.join(days)}]\n  landing:")
    assert turnstile("check", "opal") == 0, capsys.readouterr().err


def test_check_warns_of_a_programme_that_has_a_sealed_week_and_goes_on(
    landed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    landed.edit("opal", 'rho: "1/12"', 'rho: "1/8"')
    for step in ("ingest", "validate", "plan", "count", "reserve"):
        step_named(step)("opal", WEEK)
    assert turnstile("check", "opal") == 2  # held, not sealed: nothing is promised by bytes
    step_named("draw")("opal", WEEK)
    capsys.readouterr()
    assert turnstile("check", "opal") == 0
    assert "warning: opal.yaml: redraws: promises room for 1 draw" in capsys.readouterr().err
