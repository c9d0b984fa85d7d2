"""Packages of version 1 verify, are read, stand in series; what follows them is of version 2.

The kept home was made by the last sources that wrote version 1: `opal` 2016-W30 is published,
2016-W31 staged and not yet published, 2016-W32 delivered; `itms` 2016-W30 is published.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from kept_homes import OF_PACKAGES_1, lived_in, unpacked
from made_homes import MadeHome, MadeHomes
from small_deployment import digests

from turnstile.cli import main
from turnstile.estimates import week_estimates
from turnstile.pipeline.context import open_release
from turnstile.publishing import estimates_check
from turnstile.publishing.contents_check import unknown_contents
from turnstile.publishing.data_tables import NUMBERS
from turnstile.publishing.explore.site import _handed_over
from turnstile.publishing.package_numbers import numbers_of_package
from turnstile.publishing.package_reader import Tables
from turnstile.publishing.week.sums import Sums
from turnstile_lab import scale_intervals

FIRST, STAGED, NEXT = "2016-W30", "2016-W31", "2016-W32"
EARLIER = "shrunken singular values with earlier weeks, version 7"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The public zone of the kept home, in a folder of its own."""
    return lived_in(OF_PACKAGES_1, tmp_path, monkeypatch) / "public"


@pytest.fixture(scope="module")
def staged_published(tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes) -> MadeHome:
    """The kept home in which the staged week was published, made once."""
    folder = tmp_path_factory.mktemp("kept")
    unpacked(OF_PACKAGES_1, folder).rename(folder / "var")
    (folder / "var/private").chmod(0o700)
    return homes.get(folder, ("run", "opal", "--week", STAGED))


@pytest.fixture(scope="module")
def all_published(staged_published: MadeHome, homes: MadeHomes) -> MadeHome:
    """The same, and the next week, made once."""
    return homes.get(staged_published.root, ("run", "opal", "--week", NEXT))


def entered(made: MadeHome, folder: Path, environment: pytest.MonkeyPatch) -> Path:
    """Enter a copy; return its public zone."""
    home_copy = made.copy(folder / "copy")
    home_copy.enter(environment)
    return home_copy.home / "public"


@pytest.mark.some(1)
@pytest.mark.parametrize("key", [f"itms/{FIRST}/r0", f"opal/{FIRST}/r0"])
def test_a_package_of_version_1_verifies_and_is_read_as_one_of_version_2(
    kept: Path, key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scale_intervals, "_STEPS", 0)  # how fine an interval is, is not asked here
    package = kept / key
    before = digests(package)
    assert main(["package", "verify", str(package)]) == 0
    assert main(["estimates", "verify", str(package)]) == 2
    assert EARLIER in capsys.readouterr().err  # by what it was made
    for module in (estimates_check, week_estimates):
        monkeypatch.setattr(module, "MODEL", EARLIER)
    assert main(["estimates", "verify", str(package)]) == 4  # errors of sums go together otherwise
    assert "correlations" in capsys.readouterr().err
    assert main(["assess", str(package), "--json"]) == 0
    assert unknown_contents(package) == ()
    tables = Tables(package)
    assert tables.version == 1
    for name in tables.layouts:
        names = tables.rows(name).column_names
        assert names[names.index("value") :][:6] == list(NUMBERS[:6])
    assert digests(package) == before


def test_its_values_intervals_and_draws_are_those_that_it_published(kept: Path) -> None:
    package = kept / f"opal/{FIRST}/r0"
    tables, old = Tables(package), package / "estimates/on_location.parquet"
    rows = tables.rows("location").to_pandas()
    on = rows[rows["tap"] == "on"].reset_index(drop=True)
    stated = pq.read_table(old).to_pandas()
    drawn = pq.read_table(package / "measurements/on_location.parquet").to_pandas()
    assert on["location"].tolist() == stated["tap_on_location"].tolist()
    for new, name in (("value", "estimate"), ("low_90", "low_90"), ("high_95", "high_95")):
        assert np.allclose(on[new], stated[name])
    assert on["measured"].tolist() == drawn["count"].tolist()
    total = Sums(package).total("location", lambda row: row["tap"] == "on", "measured")
    assert total.value == drawn["count"].sum()


@pytest.mark.long
def test_what_is_staged_is_published_as_it_stands(
    kept: Path, staged_published: MadeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digests(kept.parent / f"embargoed/opal/{STAGED}/r0/package")
    package = entered(staged_published, tmp_path, monkeypatch) / f"opal/{STAGED}/r0"
    assert digests(package) == before
    assert Tables(package).version == 1
    assert main(["package", "verify", str(package)]) == 0
    assert main(["ledger", "verify"]) == 0


@pytest.mark.long
def test_what_is_sealed_and_not_staged_and_every_correction_is_of_version_2(kept: Path) -> None:
    staged = kept.parent / f"embargoed/opal/{STAGED}/r0/package"
    staged.rename(kept.parent / "aside")  # as if it had only been sealed, by earlier sources
    assert main(["run", "opal", "--week", STAGED]) == 0
    assert Tables(kept / f"opal/{STAGED}/r0").version == 2
    assert main(["sample", "opal", "--weeks", f"{FIRST}:{FIRST}", "--rows", "3000"]) == 0
    said = ("--reason", "late rows", "--approver", "ada", "--although-nothing-changed")
    assert main(["run", "opal", "--week", FIRST, "--revision", "1", *said]) == 0
    first, again = (kept / f"opal/{FIRST}/r{n}" for n in (0, 1))
    assert (Tables(first).version, Tables(again).version) == (1, 2)
    for package in (first, again, kept / f"opal/{STAGED}/r0"):
        assert main(["package", "verify", str(package)]) == 0


@pytest.mark.long
def test_a_series_holds_both_and_says_from_which_week_on(
    all_published: MadeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = entered(all_published, tmp_path, monkeypatch)
    series = kept / "opal/series"
    index = json.loads((series / "index.json").read_bytes())
    versions = [{"version": 1, "from": FIRST}, {"version": 2, "from": NEXT}]
    assert index["package_versions"] == versions
    assert f"version 2 from {NEXT} on" in (kept / "opal/index.html").read_text()
    weeks = pd.read_parquet(series / "data/location/v1")
    assert sorted(set(weeks["period"])) == [FIRST, STAGED, NEXT]
    assert set(weeks.groupby("period").size()) == {len(weeks) // 3}
    assert not list((series / "tables").rglob("*.parquet"))
    # the explorer shows both alike
    index = _handed_over((kept / "opal/explore/index.js").read_bytes())
    assert [entry["period"] for entry in index["weeks"]] == [FIRST, STAGED, NEXT]
    for week in (FIRST, NEXT):
        week_data = _handed_over((kept / f"opal/explore/weeks/{week}-r0.js").read_bytes())
        sums, (mode, label) = Sums(kept / f"opal/{week}/r0"), week_data["places"][0]
        labels = {"tap": "on", "mode": mode, "location": label}
        whole = sums.total("location", lambda row, labels=labels: labels.items() <= row.items())
        shown = week_data["week"][0]
        assert (
            len(shown) == 4
            if whole.no_interval
            else np.allclose(shown, (whole.value, *whole[5:7]), atol=0.051)
        )
    # the later week's estimates borrowed from both that were published before
    card = json.loads((kept / f"opal/{NEXT}/r0/release_card.json").read_bytes())
    earlier = [entry["release"] for entry in card["estimates"]["earlier"]]
    assert earlier == [f"opal/{week}/r0" for week in (STAGED, FIRST)]
    assert main(["estimates", "verify", str(kept / f"opal/{NEXT}/r0")]) == 0


def test_both_versions_say_the_same_of_what_was_drawn(
    all_published: MadeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_published.enter(monkeypatch)
    package = all_published.home / f"public/opal/{NEXT}/r0"
    release = open_release("opal", NEXT)
    numbers = numbers_of_package(package)
    parts = Tables(release.folders.embargoed)  # as version 1 published them
    for (table, statistic), days in numbers.vectors.items():
        rows = parts.drawn(table)
        joined = np.concatenate([days[day] for day in sorted(days)])  # type: ignore[type-var]
        assert joined.tolist() == rows[statistic].to_pylist()


def test_estimates_of_another_model_name_the_version_that_verifies_them(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = kept / f"opal/{FIRST}/r0"
    card = json.loads((package / "release_card.json").read_bytes())
    card["estimates"]["model"] = "an earlier one"
    (package / "release_card.json").write_text(json.dumps(card))
    manifest = json.loads((package / "manifest.json").read_bytes())
    content = (package / "release_card.json").read_bytes()
    for file in manifest["files"]:
        if file["path"] == "release_card.json":
            file |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (package / "manifest.json").write_text(json.dumps(manifest))
    assert main(["estimates", "verify", str(package)]) == 2
    said = capsys.readouterr().err
    assert "an earlier one" in said
    assert f"turnstile {card['libraries']['turnstile']}" in said
