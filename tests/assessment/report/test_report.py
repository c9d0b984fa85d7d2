"""The report: one file, no network, complete, and written whether or not a gate failed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from assessment_releases import case_of

from turnstile.assessment.assessment import LIMITS, assess_release
from turnstile.assessment.attacks.risk import Span, forecast, percent, weeks_left
from turnstile.assessment.evidence import Evidence
from turnstile.assessment.report.answers import answers_of
from turnstile.assessment.report.page import JSON_NAME, PAGE_NAME, write_report
from turnstile.ledger.balances.amounts import AccountLoss, Cap
from turnstile.ledger.balances.charged_releases import ChargedRelease
from turnstile.ledger.records import AccountBalance, ReleaseKey
from turnstile.privacy.accounts import UNBOUNDED
from turnstile.privacy.accounts import Loss as DrawLoss
from turnstile.privacy.units import ProtectionUnit
from turnstile.release.drawn import Drawn
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

_ELSEWHERE = re.compile(r"""(?:src|href)\s*=\s*["']?\s*(?:https?:)?//|@import|url\(\s*["']?http""")


def balances() -> tuple[AccountBalance, ...]:
    """One account."""
    spent = AccountLoss(epsilon_micro=4_000_000, rho_nano=1_000, delta_femto=0)
    return (AccountBalance("cards", ProtectionUnit.CARD, "ever", spent, AccountLoss(), None),)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder under embargo."""
    return tmp_path_factory.mktemp("embargoed")


def test_a_report_is_one_page_and_one_json_file_without_any_network_reference(
    release: Drawn, folder: Path
) -> None:
    assessment = assess_release(release, Evidence(balances=balances()))
    write_report(assessment, folder)
    assert assessment.passed
    page = (folder / PAGE_NAME).read_text(encoding="utf-8")
    assert _ELSEWHERE.search(page) is None
    assert "<script" not in page
    assert "<svg" in page
    assert "gates judged, all passed" in page
    assert "infinite" not in page
    assert "noticeably" not in page  # at epsilon 4 a trip is recognised 80 times in 100
    assert "/bus/b0" not in page
    assert "Name, role, date" in page
    content = json.loads((folder / JSON_NAME).read_bytes())
    assert content["passed"]
    assert content["sealed_sha256"] == release.attempt.artefact_digest
    assert content["limits"] == list(LIMITS)
    assert [week["weeks"] for week in content["risk_over_weeks"]][-2:] == [39, 52]
    assert content["ledger"][0]["epsilon"] == 4.0
    assert {gate["gate"] for gate in content["gates"]} >= {"support", "one_run_audit"}
    assert len(content["averaging"]) == 3
    assert content["differencing"][0]["terms"] == 10
    assert sorted(path.name for path in folder.iterdir()) == [PAGE_NAME, JSON_NAME]


def test_the_first_page_has_four_figures_and_no_digest(release: Drawn, tmp_path: Path) -> None:
    write_report(assess_release(release), tmp_path)
    page = (tmp_path / PAGE_NAME).read_text(encoding="utf-8")
    first, _, below = page.partition("</section>")
    digest = str(release.attempt.artefact_digest)
    assert digest not in first
    assert not re.search(r"[0-9a-f]{32}", first)
    assert digest in below
    assert len(re.findall(r"<b>(\d+|more than 99)</b>", first)) in (2, 4)
    for asked in ("Who is protected?", "From whom?", "For how long?", "What is not protected?"):
        assert asked in first


def test_of_a_card_the_first_page_shows_what_was_charged_where_that_is_more_than_a_year() -> None:
    """It said 93 of a commuter in the year ahead, where the ledger of 110 weeks said 98."""
    case = case_of("opal", slots=24, stops=20)
    plan = partial(make_plan, case.drawn.programme, case.drawn.domain)
    weeks = [ServiceWeek(year, week) for year in (2013, 2014, 2015) for week in range(1, 53)]
    history = [
        ChargedRelease(ReleaseKey("opal", str(week)), tuple(plan(week).events)) for week in weeks
    ]
    for number, span, in_words in (
        (2, Span.YEAR, "in the year that begins with this week"),
        (110, Span.LEDGER, "from all 110 charged releases of it in 110 weeks"),
    ):
        known = forecast(history[-1].events, history[-number:])
        figures = answers_of(case.drawn.programme, known).figures
        commuter = next(
            risk
            for risk in known.units
            if risk.unit is ProtectionUnit.CARD and not risk.is_worst and risk.span is span
        )
        assert (percent(commuter.guess_right or 0), f"{commuter.who}, {in_words}") in figures
        assert len(figures) == 4


def test_the_search_for_references_finds_one() -> None:
    assert _ELSEWHERE.search('<script src="https://cdn.example.org/x.js">')
    assert _ELSEWHERE.search("<style>@import 'x'</style>")


def test_a_stopped_release_is_reported_as_stopped(
    drawn_with: Callable[..., Drawn], tmp_path: Path
) -> None:
    bad = drawn_with(lambda _label, exact, _scale, _table: exact)
    assessment = assess_release(bad)
    write_report(assessment, tmp_path)
    assert not assessment.passed
    page = (tmp_path / PAGE_NAME).read_text(encoding="utf-8")
    assert "Stopped: " in page
    assert "noised_zeros" in page
    assert not json.loads((tmp_path / JSON_NAME).read_bytes())["passed"]


def test_risk_never_falls_as_weeks_are_added(release: Drawn) -> None:
    known = forecast(release.events, weeks=(1, 4, 13, 52))
    assert [course.weeks for course in known.course] == [1, 4, 13, 52]
    for who in known.course[0].guess_right:
        assert all(np.diff([course.guess_right[who] or 0 for course in known.course]) >= -1e-6)
    assert all(np.diff([course.half_width for course in known.course]) < 0)
    trips = [risk for risk in known.units if risk.unit is ProtectionUnit.TRIP]
    assert {risk.epsilon for risk in trips} == {4.0}
    assert {risk.weeks for risk in trips} == {1}  # a trip is in one week only
    first, *_, last = [course.epsilon[ProtectionUnit.CARD] for course in known.course]
    assert first is not None
    assert last is not None
    assert 20 * first < last <= 52 * first


@pytest.mark.parametrize(
    ("spent_micro", "weeks"), [(0, 10), (1, 9), (95_000_000, 0), (None, 0)], ids=str
)
def test_weeks_left_are_those_that_fit_completely(spent_micro: int | None, weeks: int) -> None:
    cap = Cap(ProtectionUnit.CARD, epsilon_micro=100_000_000)
    spent = AccountLoss(epsilon_micro=spent_micro)
    account = AccountBalance("cards", ProtectionUnit.CARD, "ever", spent, AccountLoss(), cap)
    weekly = DrawLoss(Fraction(10), Fraction(50))
    assert weeks_left(account, weekly) == weeks
    assert weeks_left(replace(account, cap=None), weekly) is None
    assert weeks_left(replace(account, unit=ProtectionUnit.TRIP), weekly) is None
    assert weeks_left(account, UNBOUNDED) == 0
