"""Risks of what the ledger charged: its rho, all revisions and programmes, simulated attacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from assessment_histories import HISTORIES, Attacker, risk_of, simulated
from cards_of_weeks import History, shipped

from turnstile.assessment.attacks.risk import Span, forecast
from turnstile.privacy.units import ProtectionUnit

DAY, WEEK, CARD = ProtectionUnit.CARD_DAY, ProtectionUnit.CARD_WEEK, ProtectionUnit.CARD


@pytest.mark.parametrize("name", HISTORIES)
def test_each_rho_is_that_of_the_ledgers_costliest_account(name: str, tmp_path: Path) -> None:
    known, charged = risk_of(name, tmp_path)
    family = shipped(HISTORIES[name][0]).family
    ledger = History(tmp_path).ledger
    last = max(b.service_date for one in charged for e in one.events for b in e.blocks)
    for one in known.units:
        if one.span is not Span.LEDGER:
            continue
        spent = [
            account.spent.rho_nano
            for account in ledger.balance(family)
            if account.unit is one.unit
            and (account.scope in ("ever", "2016-W30") or account.scope >= str(last)[:8])
        ]
        assert one.rho is not None
        assert None not in spent
        assert one.rho * 10**9 == pytest.approx(max(spent), abs=5 * len(charged))


def test_a_correction_and_a_second_programme_show_more_than_the_release_alone(
    tmp_path: Path,
) -> None:
    known, charged = risk_of("two programmes", tmp_path)
    by_unit = {one.unit: one for one in known.units if one.is_worst and one.span is Span.LEDGER}
    assert all(
        one.guess_right and one.alone and one.guess_right > one.alone + 0.015
        for one in by_unit.values()
    )
    assert {one.releases for one in by_unit.values()} == {3}
    week = by_unit[WEEK]
    assert "from all 3 charged releases of it" in week.sentence.lower()
    assert "77 times in 100 (50 by chance; 71 from this release alone)" in week.sentence
    alone = forecast(charged[-1].events).units
    assert all(
        one.releases == 1 and one.guess_right == one.alone
        for one in alone
        if one.span is Span.LEDGER
    )


def test_a_first_week_is_one_week_whatever_another_programme_lost(tmp_path: Path) -> None:
    known, _ = risk_of("two programmes", tmp_path)
    cards = [one for one in known.units if one.unit is CARD]
    assert {(one.span, one.weeks) for one in cards} == {(Span.LEDGER, 1), (Span.YEAR, 52)}
    assert not any("weeks" in one.sentence.partition(",")[0] for one in known.units)


def test_why_a_day_may_show_more_than_its_week_is_said(tmp_path: Path) -> None:
    known, _ = risk_of("weeks of a year", tmp_path)
    worst = {
        o.unit: o.guess_right or 0 for o in known.units if o.is_worst and o.span is Span.LEDGER
    }
    assert worst[DAY] > worst[WEEK]
    assert any(
        note.startswith("The day of a card may show more than the week of a card: of the week")
        and "others are counted in their place" in note
        for note in known.notes
    )


@pytest.mark.long
@pytest.mark.parametrize("name", HISTORIES)
def test_every_unit_is_recognised_as_often_as_by_a_simulated_attacker(
    name: str, tmp_path: Path
) -> None:
    known, charged = risk_of(name, tmp_path)
    attacker, off = Attacker(), 0.0
    for one in known.units:
        if one.span is Span.LEDGER and one.guess_right is not None:
            share = simulated(one, charged, attacker)
            assert abs(share - one.guess_right) < 0.01, one
            off = max(off, abs(share - (one.alone or 0)))
    assert off > 0.02  # what a release alone shows is not what was charged
