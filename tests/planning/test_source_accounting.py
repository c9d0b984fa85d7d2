"""The ITMS report's arithmetic comes out of its inputs, with what it is worth beside it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from turnstile.cli import main
from turnstile_design.private_reports.source_accounting import SourceAccounting, source_accounting


def accounting(bus_days: list[int], days: int = 31) -> SourceAccounting:
    return source_accounting(
        bus_days, cells_of_a_bus=89, noise_b=Fraction(1), clamp_kmh=65, days=days
    )


def test_15_232_comes_out_of_n_k_b_v_and_days() -> None:
    figures = accounting([468] * 89)
    assert figures.speeding_day == Fraction(89, 31)
    assert round(float(figures.speed_day), 3) == 12.361
    assert round(float(figures.cumulative), 3) == 15.232
    assert round(float(figures.replaced_day), 2) == 30.46
    assert int(figures.present_every_day) == 472


def test_the_smallest_n_gives_the_largest_epsilon_of_a_hat() -> None:
    figures = accounting([314, *[468] * 300])
    assert figures.speed_hat_max == Fraction(65, 314)
    assert figures.speed_day == Fraction(65, 314) + 88 * Fraction(65, 468)
    assert round(float(accounting([314] * 89).speed_day), 2) == 18.42


def test_only_the_k_largest_are_added_up() -> None:
    assert accounting([468] * 1000).speed_day == accounting([468] * 89).speed_day
    assert accounting([468] * 88).speed_day < accounting([468] * 89).speed_day


def test_epsilon_falls_with_b() -> None:
    halved = source_accounting(
        [468] * 89, cells_of_a_bus=89, noise_b=Fraction(2), clamp_kmh=65, days=31
    )
    assert halved.cumulative == accounting([468] * 89).cumulative / 2


@pytest.mark.parametrize("bus_days", [[], [0], [468, -1]])
def test_inputs_that_cannot_be_are_refused(bus_days: list[int]) -> None:
    with pytest.raises(ValueError, match="positive"):
        accounting(bus_days)


def test_the_command_labels_the_figures_as_the_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["itms", "accounting"]) == 0
    output = capsys.readouterr().out
    assert "not a guarantee" in output
    for figure in ("12.361", "2.871", "15.232", "30.46", "472.2"):
        assert figure in output
    assert main(["itms", "accounting", "--n", "0"]) == 2
