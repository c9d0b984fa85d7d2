"""Cells of one tap beside one marginal of the other: estimates are made again from the package."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_deployment import WEEK, Deployment

Cli = Callable[..., int]
LONE = {
    "cells of tap-ons, times of tap-offs": ("[tap_on_slot, tap_on_location]", "[tap_off_slot]"),
    "cells of tap-offs, places of tap-ons": (
        "[tap_off_slot, tap_off_location]",
        "[tap_on_location]",
    ),
}


@pytest.mark.parametrize("design", LONE)
def test_estimates_are_made_again_where_an_axis_has_no_table(
    landed: Deployment, turnstile: Cli, design: str, tmp_path: Path
) -> None:
    path = landed.include / "programmes/opal.yaml"
    before, _, after = path.read_text().partition("tables:")
    mechanism, caps = after[after.index("mechanism:") :].split("caps:")
    cells, lone = LONE[design]
    tables = f"tables:\n  cells: {{by: {cells}}}\n  lone: {{by: {lone}}}\n"
    split = '  split: {cells: "1/2", lone: "1/2"}\n'
    path.write_text(f"{before}{tables}{mechanism[: mechanism.index('  split:')]}{split}caps:{caps}")
    assert turnstile("check", "opal") == 0
    assert turnstile("run", "opal", "--week", WEEK) == 0
    package = landed.public / "opal" / WEEK / "r0"
    assert turnstile("package", "verify", package) == 0
    assert turnstile("estimates", "verify", package) == 0
    copy = tmp_path / "public/opal" / WEEK / "r0"  # negative control: another estimate is found
    shutil.copytree(package, copy)
    table = copy / "estimates/cells.csv"
    table.write_text(table.read_text().replace("0", "1", 1))
    assert turnstile("estimates", "verify", copy) == 4
