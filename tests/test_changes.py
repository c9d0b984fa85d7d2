"""Every row of "Where a change goes", done in one scratch copy, which then releases a week.

Without one of them the programme, the engine or the portal is refused, or the package of a usual
week shows that it is not there.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from contributed import CHANGES, CRAWLING, NOISE_FAMILY, programme_text
from deployment_fixtures import PublishedWeeks
from scratch_copy import ROOT, ScratchCopy
from small_deployment import WEEK, Deployment

from turnstile.counting.engines import engine_named
from turnstile.errors import InputError, ProgrammeError
from turnstile.programme.loading import parse_programme
from turnstile_stores.portals.addresses import portal_address

SOURCES = {  # files that each touches: at most three
    "dimension": 1,
    "feed": 2,
    "column of a released table": 2,
    "check of the rows": 1,
    "mechanism": 2,
    "unit": 2,
    "counting engine": 2,
    "gate": 2,
    "kind of portal": 3,
    "figure on the budget page": 2,
    "file in the package": 2,
}
USED = ("dimension", "feed", "mechanism", "unit")  # what a programme says that it uses
RELEASE = f"""
import csv, logging, os, sys
from pathlib import Path
from turnstile.assessment.audits import sampler
from turnstile.cli import main
from turnstile.operations.airflow_now import AirflowNow
from turnstile.operations.budget_page.page import BudgetPage
from turnstile.settings import Settings, system_clock

logging.basicConfig(stream=sys.stdout, format="%(message)s")
logging.getLogger("turnstile").setLevel(logging.INFO)
os.environ["TURNSTILE_COUNTING_ENGINE"] = "twice"
sampler.MANY_DRAWS = sampler.DRAWS  # a minute of each home, in which nothing is changed
home = Path(os.environ["TURNSTILE_HOME"])
assert main(["sample", "opal", "--weeks", "{WEEK}", "--rows", "20000", "--seed", "1"]) == 0
for path in (home / "landing/opal/{WEEK}").glob("*.csv"):
    with path.open() as stream:
        rows = list(csv.DictReader(stream))
    ferry = [{{f"ferry_{{name}}": row[name] for name in row}} for row in rows]
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*ferry[0], "rider_category"])
        writer.writeheader()
        writer.writerows(row | {{"rider_category": "adult"}} for row in ferry)
for command in (
    ["run", "ferries", "--week", "{WEEK}"],
    ["package", "verify", str(home / "public/ferries/{WEEK}/r0")],
    ["portal", "send", "ferries", "--to", f"depot://north{{home}}/depot"],
    ["ledger", "verify"],
    ["ledger", "balance"],
):
    assert main(command) == 0, command
page = BudgetPage(Settings.from_environment(), system_clock)
print(page.budget(frozenset({{"ferries"}}), AirflowNow()))
"""
OF_RECORDS = f"""
from turnstile.cli import main

for command in (
    ["sample", "opal", "--weeks", "{WEEK}", "--rows", "20000", "--seed", "1"],
    ["sample", "itms", "--weeks", "{WEEK}", "--rows", "20000", "--seed", "1"],
    ["check", "opal_trip"],
    ["run", "opal_trip", "--week", "{WEEK}"],
    ["run", "itms", "--week", "{WEEK}"],
    ["ledger", "verify"],
):
    assert main(command) == 0, command
"""


def adults(measured: Path) -> int:
    """Adults minus children; all riders are adults."""
    if not measured.is_file():
        return 0
    with measured.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    sign = {"adult": 1, "child": -1, "UNKNOWN": 0}
    return sum(sign[row["rider_category"]] * int(row["measured"]) for row in rows)


def seen(home: Path, programme: str, said: str) -> set[str]:
    """The changes that a released week shows: its package, its findings, what was said."""
    package = home / "public" / programme / WEEK / "r0"
    (judged,) = (home / "private" / programme / WEEK).rglob("quality.json")
    plan, gates = ((package / name).read_text() for name in ("plan.json", "assessment.json"))
    shown = {
        "dimension": "Category of the card." in (package / "datapackage.json").read_text(),
        # 8,200 of them, and noise of 56 cells with a standard deviation of 58 in all
        "feed": adults(package / "data/riders.csv") > 7_500,
        "column of a released table": "Pairs of trips"
        in (package / "datapackage.json").read_text(),
        "check of the rows": '"rows_a_week"' in judged.read_text(),
        "mechanism": '"dense_clipped"' in plan and "clipped" in said,
        "unit": '"card_month"' in plan and "card_month  2016-07  " in said,
        "counting engine": "counted twice" in said,
        "gate": '"not_empty"' in gates,
        "kind of portal": (home / "depot" / programme / WEEK / "r0/manifest.json").is_file(),
        "figure on the budget page": "to be downloaded: 1; " in said,
        "file in the package": (package / "counts.txt").is_file(),
    }
    return {name for name, is_there in shown.items() if is_there}


def test_all_changes_together_release_a_week(tmp_path: Path) -> None:
    copy = ScratchCopy(tmp_path)
    Deployment(tmp_path / "var", tmp_path / "include").keep_few_places()
    assert {name: len(change.make(copy)) for name, change in CHANGES.items()} == SOURCES
    copy.add("include/programmes/ferries.yaml", programme_text(ROOT / "include", *USED))
    said = copy.run(RELEASE)
    assert seen(tmp_path / "var", "ferries", said) == {*CHANGES}
    spent = re.search(r"card_month  2016-07 .*?rho (\S+)", said)
    assert spent is not None
    assert 7.9999 < float(spent[1]) <= 8  # what is done with drawn numbers costs nothing


def test_a_week_of_the_sources_as_they_are_shows_none(published_weeks: PublishedWeeks) -> None:
    assert seen(published_weeks.home, "opal", published_weeks.printed["opal"]) == set()


@pytest.mark.long
def test_a_noise_family_and_a_measure_are_one_record_each(tmp_path: Path) -> None:
    """Beside a mechanism that draws it, and what a bus-day adds; a week of either is released."""
    copy = ScratchCopy(tmp_path)
    Deployment(tmp_path / "var", tmp_path / "include").keep_few_places()
    assert [len(change.make(copy)) for change in (NOISE_FAMILY, CRAWLING)] == [2, 2]
    trip, buses = (f"include/programmes/{name}.yaml" for name in ("opal_trip", "itms"))
    copy.replace(trip, "kind: dense_laplace", "kind: dense_geometric")
    for old, new in (
        (
            "  speeding: {by: [slot, cell], measure: buses_over, limits_kmh: [40, 60]}",
            "  slow: {by: [slot, cell], measure: crawling}",
        ),
        ('    speeding/over_40: "1/10"\n    speeding/over_60: "1/10"', '    slow/buses: "1/5"'),
        ('  rho: "1/10"', '  rho: "9"'),  # sums over all cells have a noise of a hundred buses
        ('rho: "38/100"', 'rho: "40"'),
        ('rho: "1368"', 'rho: "5000"'),
    ):
        copy.replace(buses, old, new)
    copy.run(OF_RECORDS)
    slow_buses_are_some(tmp_path / "var/public/itms" / WEEK / "r0")
    package = tmp_path / "var/public/opal_trip" / WEEK / "r0"
    assert '"two_sided_geometric"' in (package / "plan.json").read_text()
    gates = json.loads((package / "assessment.json").read_text())["gates"]
    judged = {gate["gate"]: gate["statement"] for gate in gates}
    assert (
        "are geometric" in judged["geometric_below_zero"]
    )  # a family's tail, not its name, is asked for


def slow_buses_are_some(package: Path) -> None:
    slow, every = (
        pq.read_table(package / f"data/{name}.parquet")["measured"].to_numpy().sum()
        for name in ("slow", "speed_buses")
    )
    assert 0.05 * every < slow < 0.95 * every


def test_the_page_lists_the_same_changes() -> None:
    page = (ROOT / "docs/ARCHITECTURE.md").read_text().partition("## Where a change goes")[2]
    listed = re.findall(
        r"^\| (?:another|a third|a further) (.*?)(?: \(column\))? \|", page, re.MULTILINE
    )
    assert sorted(listed) == sorted(["programme", "noise family", "measure of buses", *CHANGES])


@pytest.mark.parametrize("change", USED)
def test_a_programme_that_uses_what_is_not_there_is_refused(change: str) -> None:
    name = {"dimension": "rider_category", "feed": "ferry_trips", "unit": "card_month"}
    with pytest.raises(ProgrammeError, match=name.get(change, "dense_clipped")):
        parse_programme(programme_text(ROOT / "include", change), "ferries.yaml")


@pytest.mark.parametrize(
    "ask", [lambda: engine_named("twice"), lambda: portal_address("depot://north/open")]
)
def test_an_engine_or_portal_that_is_not_there_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=r"counting engine|write file:///"):
        ask()
