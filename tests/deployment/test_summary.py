"""The summary says what happened to each package, and an altered one stops everything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turnstile.errors import IntegrityError
from turnstile.service_calendar import ServiceWeek
from turnstile_native.summary import (
    above_noise_lines,
    find_packages,
    folder_digest,
    outcome,
    summary_lines,
)

WEEKS = (ServiceWeek(2016, 30), ServiceWeek(2016, 31))


def _publish(public: Path, week: ServiceWeek, content: str) -> None:
    folder = public / "opal" / str(week) / "r0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "datapackage.json").write_text(content, encoding="utf-8")


def test_a_new_package_is_published_and_an_old_one_is_the_same(tmp_path: Path) -> None:
    _publish(tmp_path, WEEKS[0], "a")
    before = find_packages(tmp_path, ["opal"], WEEKS)
    _publish(tmp_path, WEEKS[1], "b")
    after = find_packages(tmp_path, ["opal"], WEEKS)
    first, second = summary_lines(before, after)
    assert "2016-W30  re-issued, same bytes: nothing was redrawn" in first
    assert "2016-W31  published" in second
    assert str(after[1].folder) in second


def test_a_week_without_a_package_is_not_published(tmp_path: Path) -> None:
    (package,) = find_packages(tmp_path, ["opal"], WEEKS[:1])
    assert package.digest is None
    assert outcome(package, package) == "not published"


@pytest.mark.parametrize("change", ["edit", "add", "remove"])
def test_a_published_package_that_changes_is_an_integrity_error(
    tmp_path: Path, change: str
) -> None:
    _publish(tmp_path, WEEKS[0], "a")
    (before,) = find_packages(tmp_path, ["opal"], WEEKS[:1])
    if change == "edit":
        _publish(tmp_path, WEEKS[0], "b")
    elif change == "add":
        (before.folder / "more.csv").touch()
    else:
        (before.folder / "datapackage.json").unlink()
    (after,) = find_packages(tmp_path, ["opal"], WEEKS[:1])
    with pytest.raises(IntegrityError, match="bytes changed"):
        outcome(before, after)


def test_a_digest_distinguishes_names_from_contents(tmp_path: Path) -> None:
    for name, content in (("x", "yz"), ("xy", "z")):
        folder = tmp_path / f"folder-{name}"
        folder.mkdir()
        (folder / name).write_text(content, encoding="utf-8")
    assert folder_digest(tmp_path / "folder-x") != folder_digest(tmp_path / "folder-xy")


def test_the_share_of_cells_above_their_noise_stands_beside_what_noise_alone_lifts(
    tmp_path: Path,
) -> None:
    _publish(tmp_path, WEEKS[0], "a")
    line = {"table": "on_time", "statistic": "count", "cells": 200}
    lines = [line | {"above": 130, "by_noise_at_most": 5}]
    card = tmp_path / "opal/2016-W30/r0/release_card.json"
    card.write_text(json.dumps({"above_noise": lines}), encoding="utf-8")
    (said,) = above_noise_lines(find_packages(tmp_path, ["opal"], WEEKS))
    assert said.endswith("at most): on_time count 65.0 % (2.5 %)")
