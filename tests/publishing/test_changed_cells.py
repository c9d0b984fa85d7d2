"""A programme whose slots change in mid-year: what is compared and added up means the same."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from made_homes import MadeHome, MadeHomes
from small_deployment import WEEK

from turnstile.cli import main
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.publishing.explore import site
from turnstile.publishing.package import _earlier
from turnstile.publishing.week.sums import sum_of
from turnstile.settings import Settings

CHANGED, GAP = "2016-W31", "2016-W32"
GAP_DAY, DAY_BEFORE = "2016-08-09", "2016-08-02"


@pytest.fixture(scope="module")
def home(published: Path, homes: MadeHomes, tmp_path_factory: pytest.TempPathFactory) -> MadeHome:
    """A week of slots of 4 hours, two of slots of 2, of which the last lacks its Tuesday."""
    folder = tmp_path_factory.mktemp("changed") / "root"
    shutil.copytree(published.parents[1], folder, symlinks=True)
    programme = folder / "include/programmes/opal.yaml"
    text = programme.read_text()
    for old, new in (
        ("slot_minutes: 240", "slot_minutes: 120"),
        ("missing_day: refuse", "missing_day: publish_with_gap"),
    ):
        assert old in text
        text = text.replace(old, new)
    programme.write_text(text)
    weeks = ("sample", "opal", "--weeks", f"{CHANGED}:{GAP}", "--rows", "3000")
    changed = homes.get(folder, weeks, ("run", "opal", "--week", CHANGED))
    again = changed.copy(tmp_path_factory.mktemp("gap") / "root")
    next((again.home / f"landing/opal/{GAP}").glob(f"*{GAP_DAY}*")).unlink()
    return homes.get(again.root, ("run", "opal", "--week", GAP))


def run(tool: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-B", tool, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_series_says_where_the_meaning_of_its_rows_changed(home: MadeHome) -> None:
    folder = home.home / "public/opal"
    index = json.loads((folder / "series/index.json").read_bytes())
    versions = {table["name"]: table["versions"] for table in index["tables"]}
    before, since = versions["location_slot"]
    assert (before["periods"], since["periods"]) == ([WEEK], [CHANGED, GAP])
    slots = [version["terms"]["slot_minutes"] for version in (before, since)]
    assert slots == ["240", "120"]
    weeks = pd.read_csv(folder / "series/four_weeks/location_slot.csv", dtype=str)
    slots_named = set(weeks["slot"])
    assert "02:00" in slots_named
    assert set(weeks["weeks"]) == {"1"}  # a week with a gap is in none
    days = pd.read_csv(folder / "series/typical_weekday/location_slot.csv")
    assert set(days["days"]) == {9}
    assert f"location_slot</a></td><td>{CHANGED}</td>" in (folder / "index.html").read_text()


def test_the_explorer_knows_which_weeks_count_the_same(home: MadeHome) -> None:
    folder = home.home / "public/opal/explore/weeks"
    terms = [site._handed_over(path.read_bytes())["terms"] for path in sorted(folder.iterdir())]
    assert terms[0] != terms[1] == terms[2]


def test_a_mean_day_of_the_explorer_is_one_of_the_days_with_input(home: MadeHome) -> None:
    folder = home.home / "public/opal"
    for week, known in ((GAP, 4), (CHANGED, 5)):
        path = folder / f"explore/weeks/{week}-r0.js"
        record = site._handed_over(path.read_bytes())
        rows = pd.read_parquet(folder / f"{week}/r0/data/location.parquet").query("tap == 'on'")
        rows = rows[[day.weekday() < 5 for day in rows["service_date"]]]
        sums = rows.groupby(["mode", "location"], observed=True)[["value", "unbiased"]].sum()
        for place, numbers in zip(record["places"], record["weekday"], strict=True):
            column = "unbiased" if len(numbers) > 3 else "value"  # without an interval
            assert numbers[0] == pytest.approx(sums.loc[tuple(place), column] / known, abs=0.1)


def test_a_report_compares_days_that_both_weeks_have_and_that_count_the_same(
    home: MadeHome,
) -> None:
    """A day without input was a fall by a seventh, and what other slots bound a change."""
    public = home.home / "public/opal"
    assert "week before" not in (public / f"{CHANGED}/r0/report.html").read_text()
    said = (public / f"{GAP}/r0/report.html").read_text()
    said = re.findall(r"against the week before, on days that both have: ([^\"]*)\.\"", said)[0]
    sums = []
    for week in (GAP, CHANGED):
        rows = pd.read_parquet(public / f"{week}/r0/data/day.parquet").query("tap == 'on'")
        rows = rows[~rows["service_date"].astype(str).isin([GAP_DAY, DAY_BEFORE])]
        sums.append(rows.groupby("mode", observed=True)["unbiased"].sum())
    changes = (sums[0] - sums[1]).to_dict()
    found = re.findall(r"(\w[\w ]*) ([+-][\d,]+) ±", said)
    shown = {mode: int(change.replace(",", "")) for mode, change in found}
    assert shown == pytest.approx(changes, rel=0, abs=0.501)  # a half is rounded either way


def test_the_week_before_is_the_one_just_before(
    home: MadeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.enter(monkeypatch)
    ledger, public = open_ledger(Settings.from_environment()), home.home / "public"
    assert _earlier(public, ReleaseKey("opal", "2016-W33", 0), ledger) == public / f"opal/{GAP}/r0"
    assert _earlier(public, ReleaseKey("opal", "2016-W34", 0), ledger) is None


@pytest.mark.long
def test_a_change_between_other_slots_is_refused_and_says_what_differs(home: MadeHome) -> None:
    public = home.home / "public/opal"
    tool = public / f"{CHANGED}/r0/tools/draws.py"
    asked = ("location_slot", "tap=on", "slot=08:00", "--since")
    refused = run(tool, *asked, public / f"{WEEK}/r0")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "slot_minutes is 120 here and 240 there" in refused.stderr
    # one trip of a card in each slot and place: the slots decide what totals count, too
    assert "tables that count the same in both: none" in refused.stderr
    day = ("location_slot", "tap=on", "slot=08:00", "service_date=2016-08-01", "--since")
    alike = run(tool, *day, public / f"{GAP}/r0", "service_date=2016-08-08")
    assert (alike.returncode, "warning" in alike.stderr) == (0, False), alike.stderr


def test_a_change_from_a_week_with_a_gap_is_asked_over_the_days_that_both_have(
    home: MadeHome,
) -> None:
    public = home.home / "public/opal"
    tool, other = public / f"{GAP}/r0/tools/draws.py", public / f"{CHANGED}/r0"
    asked = ("location", "tap=on", "mode=train")
    refused = run(tool, *asked, "--since", other)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"6 days with input here less 7 in {other}: ask for days" in refused.stderr
    offered = refused.stderr.split("both have: ")[1].split()
    answered = run(tool, *asked, *offered)
    assert answered.returncode == 0, answered.stderr
    assert DAY_BEFORE not in " ".join(offered)
    rows = answered.stdout.split("rows")[1].split()
    assert rows[0] == rows[2]


def test_a_gap_is_called_one_by_both_tools(home: MadeHome) -> None:
    """In each column: what was drawn of it is noise alone, and no number of its trips."""
    tools = home.home / f"public/opal/{GAP}/r0/tools"
    said = {
        run(
            tools / name, "location", "tap=on", f"service_date={GAP_DAY}", "--column", column
        ).stderr
        for name in ("sums.py", "draws.py")
        for column in ("value", "measured")
    }
    assert said == {"there is no value of these cells: no row was chosen, or their days are gaps\n"}
    none = run(tools / "draws.py", "location", "tap=on", "service_date=2016-08-19").stderr
    assert "no row has service_date=2016-08-19" in none  # the negative control


def test_what_was_drawn_of_a_gap_is_in_no_sum(home: MadeHome) -> None:
    package = home.home / f"public/opal/{GAP}/r0"
    rows = pd.read_csv(package / "data/location.csv").query("tap == 'on'")
    known = rows[rows["usable"] != "gap"]
    assert rows["measured"].notna().all()  # published as drawn
    asked = ("location", "tap=on", "--column", "measured")
    total = dict(
        line.split(None, 1) for line in run(package / "tools/sums.py", *asked).stdout.splitlines()
    )
    assert int(total["cells"].replace(",", "")) == len(known) < len(rows)
    assert float(total["value"].replace(",", "")) == known["measured"].sum()
    drawn = run(package / "tools/draws.py", *asked).stdout
    assert drawn.splitlines()[-1].split()[1] == total["cells"]
    assert sum_of(package, "location", ["tap=on"]).measured == known["measured"].sum()


def test_series_made_by_earlier_code_are_made_anew(
    home: MadeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What earlier code kept of packages names no terms: both meanings stood in version 1."""
    copy = home.copy(tmp_path / "root")
    copy.enter(monkeypatch)
    kept = copy.home / "public/opal/series/packages.json"
    right = kept.read_bytes()
    kept.write_text(json.dumps({"columns": [], "packages": {}}))
    assert main(["ledger", "republish"]) == 0
    assert kept.read_bytes() == right
    assert main(["ledger", "verify"]) == 0
