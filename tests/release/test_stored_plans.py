"""Plans of version 0.1.0: texts that were shipped promise, byte for byte, what they did."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from turnstile.programme.calendar.release_schedule import period_containing
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import parse_programme
from turnstile.release.plan import make_plan

INCLUDE = Path(__file__).parents[2] / "include"
# Plan digests of the period of 2021-11-24 by the text, computed by version 0.1.0.
OF_0_1_0 = {
    "itms.c57c4a93eaec": "c87ee60ced5801daf62b18eb5f302c505cf43d6857a607b43acfc1e702670cdb",
    "itms_month.521fe692774b": "d0954db952b4e5e3a40bae9a5fc6ea11f779978c32d45a3bc462c984dd8870c5",
    "itms_survey.b1cdb7773f88": "9abec3a7d7349be801cfb09e5fd5241dd89814aa934695a67b07ed3f8571643b",
    "opal.729415fa846f": "63dc6a35e060d478e321c33c9a47fb5e0ef4a72736d06f25c5ab2a5d6f53287c",
    "opal_2017.c23fae3cc9f2": "398821d0df24cd7bb322e4c60df9c39eb84180b8adbe3e26a59acdd014df6234",
    "opal_trip.163976d8975d": "cdaea8cc2e37406d98b6e34d3540898213c26e4157b4c5cb4e8150b45585f5bb",
}


@pytest.mark.parametrize("text", OF_0_1_0)
def test_a_programme_of_0_1_0_plans_what_it_planned(text: str) -> None:
    path = next((INCLUDE / "programmes").rglob(f"{text}.yaml"))  # as it is, or kept
    programme = parse_programme(path.read_text(), f"{path.name.partition('.')[0]}.yaml")
    period = period_containing(date(2021, 11, 24), programme.schedule)
    plan = make_plan(programme, load_domain(programme, INCLUDE), period)
    assert plan.digest == OF_0_1_0[text]
