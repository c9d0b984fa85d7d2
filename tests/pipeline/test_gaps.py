"""Days without service are neither read, drawn nor charged; every gap is marked in every table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_deployment import WEEK, Deployment
from worked_examples import run_examples

from turnstile.pipeline.before_charge import verdicts
from turnstile.pipeline.context import open_release
from turnstile.pipeline.draw.current_snapshot import gaps_of
from turnstile.pipeline.draw.drawn_release import drawn_of
from turnstile.pipeline.draw.sealed_release import sealed_attempt
from turnstile.pipeline.steps import step_named
from turnstile.publishing.carried import sums

Cli = Callable[..., int]
MONDAY, TUESDAY = "2016-07-25", "2016-07-26"
MISSING = "missing_day: refuse"
WITH_BOTH = f"missing_day: publish_with_gap\n  absent_days: [{TUESDAY}]"


def published(landed: Deployment, turnstile: Cli, programme: str) -> Path:
    """A week whose Monday did not arrive, and whose Tuesday, declared without service, did."""
    landed.edit(programme, MISSING, WITH_BOTH)
    monday = next(landed.landing(programme).glob(f"*{MONDAY}*"))
    monday.unlink()
    assert turnstile("run", programme, "--week", WEEK) == 0
    return landed.public / programme / WEEK / "r0"


@pytest.mark.long
def test_every_row_of_a_day_without_input_says_that_it_is_a_gap(
    landed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    package = published(landed, turnstile, "opal")
    tables = sorted(package.glob("data/*.parquet"))
    for path in tables:
        rows = pq.read_table(path).to_pylist()
        gaps = {str(row["service_date"]) for row in rows if row["usable"] == "gap"}
        days = {str(row["service_date"]) for row in rows}
        assert days - gaps == {f"2016-07-{n}" for n in range(27, 32)}
        assert gaps == {MONDAY, TUESDAY}
        gap_rows = [row for row in rows if row["usable"] == "gap"]
        assert {(row["value"], row["high_95"], row["unbiased"]) for row in gap_rows} == {
            (None,) * 3
        }
        # what was not drawn has no number; what was drawn of a gap is noise alone
        if "measured" in rows[0]:
            drawn = {str(row["service_date"]) for row in rows if row["measured"] is not None}
            assert drawn == days - {TUESDAY}
    assert f"No input on {MONDAY}: rows of that day" in (package / "docs/GUIDE.md").read_text()
    card = json.loads((package / "release_card.json").read_bytes())
    assert (card["gaps"], card["absent_days"]) == ([MONDAY, TUESDAY], [TUESDAY])
    assert len(card["built_at"]) == len("2016-08-01")  # nobody reads the hour of a run off it
    told = (package / "release_card.md").read_text()
    assert f"No service on {TUESDAY}" in told
    assert f"No input on {MONDAY}" in told
    guide = (package / "docs/GUIDE.md").read_text()
    assert f"No input on {MONDAY}" in guide
    assert f"No service on {TUESDAY}" in guide
    spent = landed.spent()
    assert spent[f"card_day:{MONDAY}"]  # a gap that only the data tell of costs as any day does
    assert f"card_day:{TUESDAY}" not in spent
    assert turnstile("estimates", "verify", package) == 0
    # sums are of what was drawn of days with input
    rows = pq.read_table(package / "data/location.parquet").to_pandas()
    drawn = rows[(rows["tap"] == "on") & (rows["usable"] != "gap")]["measured"]
    capsys.readouterr()
    asked = ("--table", "location", "--where", "tap=on")
    assert turnstile("estimates", "sum", package, *asked) == 0
    assert f"measured: {drawn.sum():.0f}, 90 %" in capsys.readouterr().out
    assert turnstile("estimates", "sum", package, *asked, "--where", f"service_date={TUESDAY}") == 2
    assert sums.NO_VALUE in capsys.readouterr().err
    total = sums.Package(package).total("location", lambda row: row["tap"] == "on", "measured")
    assert (total.cells, total.value) == (len(drawn), drawn.sum())
    assert turnstile("package", "regions", package, "--table", "location", "--h3", "6") == 0
    assert run_examples(package) == 7


def test_a_week_of_buses_is_of_the_days_with_input(landed: Deployment, turnstile: Cli) -> None:
    package = published(landed, turnstile, "itms")
    assert json.loads((package / "release_card.json").read_bytes())["gaps"] == [MONDAY, TUESDAY]
    rows = pq.read_table(package / "data/speed_buses.parquet").to_pylist()
    assert all(abs(row["unbiased"] - row["measured"] / 5) < 0.06 for row in rows)
    assert f"bus_day:{TUESDAY}" not in landed.spent()
    for name in ("docs/GUIDE.md", "report.html", "release_card.md"):
        said = (package / name).read_text()  # no row is of a day, and each holds trips of others
        assert f"o input on {MONDAY}: the numbers are of the other days." in said
        assert "noise alone" not in said.partition(f"input on {MONDAY}")[2].partition("\n")[0]
        assert "rows of that day" not in said
    assert turnstile("estimates", "verify", package) == 0


@pytest.mark.long
def test_a_week_of_buses_with_service_on_one_day_is_published(
    landed: Deployment, turnstile: Cli
) -> None:
    days = ", ".join(f"2016-07-{n}" for n in range(26, 32))
    landed.edit("itms", MISSING, f"{MISSING}\n  absent_days: [{days}]")
    assert turnstile("run", "itms", "--week", WEEK) == 0
    package = landed.public / "itms" / WEEK / "r0"
    rows = pq.read_table(package / "data/speed_buses.parquet").to_pylist()
    assert "service_date" not in rows[0]  # a table of the week, as that of every other week
    assert all(abs(row["unbiased"] - row["measured"]) < 0.06 for row in rows)
    assert [key for key in landed.spent() if key.startswith("bus_day")] == [f"bus_day:{MONDAY}"]
    assert turnstile("estimates", "verify", package) == 0
    assert turnstile("package", "verify", package) == 0


@pytest.mark.some(1)
@pytest.mark.parametrize("has_file", [True, False])
def test_no_trip_decides_whether_a_day_is_a_gap(landed: Deployment, *, has_file: bool) -> None:
    """Its file is a header alone, or is not there; then one trip of the day, in any file, more."""
    landed.edit("opal", MISSING, "missing_day: publish_with_gap")
    monday, tuesday = (next(landed.landing("opal").glob(f"*{day}*")) for day in (MONDAY, TUESDAY))
    header, trip, *_ = monday.read_text().splitlines(keepends=True)
    rest = tuesday.read_text()
    outcomes = []
    for more in ("", trip):
        monday.write_text(f"{header}{more}")
        if not has_file:
            monday.unlink()
            tuesday.write_text(f"{rest}{more}")
        for step in ("ingest", "validate", "plan", "count"):
            step_named(step)("opal", WEEK, 0)
        release = open_release("opal", WEEK)
        outcomes.append((gaps_of(release), verdicts(release)))
    assert outcomes[0] == outcomes[1]
    gaps, words = outcomes[0]
    assert [str(day) for day in gaps] == ([] if has_file else [MONDAY])
    assert words["days_present"] == ("pass" if has_file else "warn")
    assert words["days_complete"] == "pass"
    for step in ("reserve", "draw"):
        step_named(step)("opal", WEEK, 0)
    sealed = open_release("opal", WEEK)
    assert drawn_of(sealed, sealed_attempt(sealed)).artefact.gaps == gaps


def test_no_trip_decides_what_ingest_logs_and_how_many_files_the_ledger_is_told(
    landed: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    landed.edit("opal", MISSING, "missing_day: publish_with_gap")
    monday = next(landed.landing("opal").glob(f"*{MONDAY}*"))
    header, trip, *_ = monday.read_text().splitlines(keepends=True)
    tuesday = next(path for path in monday.parent.iterdir() if path != monday)
    caplog.set_level("INFO", logger="turnstile")
    outcomes = []
    for content in (header, header + trip, tuesday.read_text()):
        monday.write_text(content)
        caplog.clear()
        step_named("ingest")("opal", WEEK, 0)
        noted = open_release("opal", WEEK).recorded("files", step="ingest")
        said = [record.getMessage() for record in caplog.records if record.name == "turnstile"]
        outcomes.append((said, len(set(noted.split()))))
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert outcomes[0][1] == len(list(monday.parent.iterdir()))


@pytest.mark.parametrize("has_trip", [False, True])
def test_a_file_has_one_commitment_in_its_group_whether_it_holds_a_record_or_not(
    landed: Deployment, *, has_trip: bool
) -> None:
    monday = next(landed.landing("opal").glob(f"*{MONDAY}*"))
    header, trip, *_ = monday.read_text().splitlines(keepends=True)
    monday.write_text(f"{header}{trip * has_trip}")
    noted = []
    for programme in ("opal", "opal_trip"):
        landed.edit(programme, MISSING, "missing_day: publish_with_gap")
        step_named("ingest")(programme, WEEK, 0)
        noted.append(open_release(programme, WEEK).recorded("files", step="ingest"))
    assert noted[0] == noted[1]


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_week_without_a_day_of_service_is_refused(
    command: str, landed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    days = ", ".join(f"2016-07-{n}" for n in range(25, 32))
    landed.edit("opal", MISSING, f"{MISSING}\n  absent_days: [{days}]")
    assert turnstile(command, "opal", "--week", WEEK) == 2
    assert "no service day of 2016-W30 is left" in capsys.readouterr().err


@pytest.mark.parametrize("asked", ["marker", "files_at_least", "missing_day"])
def test_a_week_that_has_not_arrived_complete_is_not_read_by_hand_either(
    landed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str], asked: str
) -> None:
    """`wait` alone asked: whoever marked it drew from what was there."""
    landed.edit("opal", MISSING, "missing_day: publish_with_gap")
    days = sorted(landed.landing("opal").iterdir())
    lacks = {
        "marker": f"no landing/opal/{WEEK}.done yet, which says that the week is complete",
        "files_at_least": f"{len(days)} of {len(days) + 1} files in landing/opal/{WEEK}",
        "missing_day": f"no file of service day {MONDAY}",
    }
    line = {
        "marker": '"opal/{week}.done"',
        "files_at_least": len(days) + 1,
        "missing_day": "refuse",
    }
    if asked == "missing_day":
        landed.edit("opal", "missing_day: publish_with_gap", "missing_day: refuse")
        days[0].unlink()
    else:
        landed.edit("opal", "\nsource:\n", f"\nsource:\n  {asked}: {line[asked]}\n")
    assert turnstile("run", "opal", "--week", WEEK) == 3
    assert f"opal/{WEEK}/r0: {lacks[asked]}; nothing is read before" in capsys.readouterr().err
    assert not (landed.home / "private/opal" / WEEK / "snapshots").exists()
    assert not landed.spent()


def test_a_week_whose_files_are_all_of_other_days_is_refused_before_its_charge(
    landed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    landed.edit("opal", MISSING, "missing_day: publish_with_gap")
    for path in landed.landing("opal").iterdir():
        if MONDAY in path.name:
            path.rename(path.with_name(path.name.replace(MONDAY, "2016-08-01")))
        else:
            path.unlink()
    assert turnstile("run", "opal", "--week", WEEK) == 2
    assert "no file is named by a day of 2016-W30 that has service" in capsys.readouterr().err
    assert not landed.spent()
