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
    last = max(b.service_date for release in charged for e in release.events for b in e.blocks)
    for risk in known.units:
        if risk.span is not Span.LEDGER:
            continue
        spent = [
            account.spent.rho_nano
            for account in ledger.balance(family)
            if account.unit is risk.unit
            and (account.scope in ("ever", "2016-W30") or account.scope >= str(last)[:8])
        ]
        assert risk.rho is not None
        assert None not in spent
        assert risk.rho * 10**9 == pytest.approx(max(spent), abs=5 * len(charged))


def test_a_correction_and_a_second_programme_show_more_than_the_release_alone(
    tmp_path: Path,
) -> None:
    known, charged = risk_of("two programmes", tmp_path)
    by_unit = {
        risk.unit: risk for risk in known.units if risk.is_worst and risk.span is Span.LEDGER
    }
    assert all(
        risk.guess_right and risk.alone and risk.guess_right > risk.alone + 0.015
        for risk in by_unit.values()
    )
    assert {risk.releases for risk in by_unit.values()} == {3}
    week = by_unit[WEEK]
    assert "from all 3 charged releases of it" in week.sentence.lower()
    assert "77 times in 100 (50 by chance; 71 from this release alone)" in week.sentence
    alone = forecast(charged[-1].events).units
    assert all(
        risk.releases == 1 and risk.guess_right == risk.alone
        for risk in alone
        if risk.span is Span.LEDGER
    )


def test_a_first_week_is_one_week_whatever_another_programme_lost(tmp_path: Path) -> None:
    known, _ = risk_of("two programmes", tmp_path)
    cards = [risk for risk in known.units if risk.unit is CARD]
    assert {(risk.span, risk.weeks) for risk in cards} == {(Span.LEDGER, 1), (Span.YEAR, 52)}
    assert not any("weeks" in risk.sentence.partition(",")[0] for risk in known.units)


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
    for risk in known.units:
        if risk.span is Span.LEDGER and risk.guess_right is not None:
            share = simulated(risk, charged, attacker)
            assert abs(share - risk.guess_right) < 0.01, risk
            off = max(off, abs(share - (risk.alone or 0)))
    assert off > 0.02  # what a release alone shows is not what was charged
