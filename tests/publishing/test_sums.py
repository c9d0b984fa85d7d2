"""Sums of any cells: the stated interval holds the truth as often as it says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from made_homes import MadeHomes

from turnstile.estimates.fitting.reconciliation import Measured, Partition, reconcile_pair
from turnstile.publishing.carried import sums
from turnstile.publishing.contents import ends_in_words

_TRIALS = 1_000
_ON, _OFF = (24, 15), (24, 16)
_SD = {"cells": 17.0, "rows": 12.0, "columns": 9.0}


def _noise(rng: np.random.Generator, shape: tuple[int, int]) -> Partition:  # noqa: TID251
    """Measure a table of zeros."""
    of = {"cells": shape, "rows": shape[:1], "columns": shape[1:]}
    drawn = {
        name: Measured(np.rint(rng.normal(0, _SD[name], size)).astype(np.int64), _SD[name] ** 2)
        for name, size in of.items()
    }
    return Partition(shape, **drawn)


def _parts(shape: tuple[int, int]) -> sums.Parts:
    return sums.parts(shape, *(_SD[name] ** 2 for name in ("cells", "rows", "columns")))


def _covered(*, naive: bool = False) -> float:
    rng = np.random.default_rng(7)  # noqa: TID251 - a simulation, not a release
    precisions = sums.with_shared_total(_parts(_ON), _ON, _parts(_OFF), _OFF)
    held = 0
    for _ in range(_TRIALS):
        on, _off = reconcile_pair(_noise(rng, _ON), _noise(rng, _OFF))
        chosen = rng.random(_ON) < rng.choice([0.01, 0.1, 0.5, 0.9])
        chosen[rng.integers(24), :] |= rng.random() < 0.5  # whole rows too
        rows, columns = np.nonzero(chosen)
        assert on.cells is not None
        variance = sums.variance_of_sum(
            precisions, _ON, Counter(map(str, rows)), Counter(map(str, columns))
        )
        if naive:
            variance = len(rows) * on.cell_variance
        interval = sums.interval(len(rows), float(on.cells[chosen].sum()), variance)
        held += interval.low_95 <= 0 <= interval.high_95
    return held / _TRIALS


def test_intervals_of_a_thousand_sums_of_reconciled_cells_hold_the_truth() -> None:
    assert 0.93 <= _covered() <= 0.97


def test_adding_up_variances_of_reconciled_cells_would_not() -> None:
    assert not 0.93 <= _covered(naive=True) <= 0.97


@pytest.mark.parametrize("cells", [1, 2, 5, 40])
@pytest.mark.parametrize("noise", ["laplace", "normal"])
def test_intervals_of_sums_of_measured_cells_hold_the_truth(cells: int, noise: str) -> None:
    rng = np.random.default_rng(cells)  # noqa: TID251 - a simulation, not a release
    drawn = getattr(rng, noise)(0, 8, (20_000, cells)).sum(axis=1)
    deviation = 8 * (2**0.5 if noise == "laplace" else 1)
    excess = sums.EXCESS_OF_LAPLACE / cells if noise == "laplace" else 0.0
    interval = sums.interval(cells, 0.0, cells * deviation**2, excess)
    assert 0.93 <= (np.abs(drawn) <= interval.high_95).mean() <= 0.97
    assert 0.88 <= (np.abs(drawn) <= interval.high_90).mean() <= 0.92


def test_one_cell_has_the_error_that_its_table_states(published: Path) -> None:
    package = sums.Package(next(published.glob("opal/*/r0")))
    for table, place in (("location_slot", 3), ("slot", 3), ("location", -3)):
        row = package.rows(table)[place]
        total = package.total(table, lambda candidate, row=row: candidate == row, "unbiased")
        assert total.standard_deviation == pytest.approx(float(row["unbiased_sd"]), abs=0.01)
        assert total.value == float(row["unbiased"])


def test_a_sum_of_all_cells_has_the_error_of_the_total_not_more(published: Path) -> None:
    package = sums.Package(next(published.glob("opal/*/r0")))
    totals = [
        package.total(table, lambda row, tap=tap: row["tap"] == tap, "unbiased").standard_deviation
        for table, tap in (
            ("location_slot", "on"),
            ("slot", "on"),
            ("location", "on"),
            ("location_slot", "off"),
        )
    ]
    assert totals == pytest.approx([totals[0]] * 4, rel=1e-3)
    with pytest.raises(ValueError, match="tap=on and in tap=off"):
        package.total("slot", bool, "unbiased")


def _of_rides(package: Path, to: Path) -> sums.Package:
    """A copy whose card says that no boarding is joined to an alighting."""
    shutil.copytree(package, to)
    card = json.loads((to / "release_card.json").read_bytes())
    card["terms"] |= {"records": "rides", "rows_outside": "drop"}
    card["domain"]["rows_outside"] = "left out of every table; how many is private"
    (to / "release_card.json").write_text(json.dumps(card))
    return sums.Package(to)


def test_entries_and_exits_that_nothing_joins_add_up(published: Path, tmp_path: Path) -> None:
    """They were refused as one trip in both taps, of gates as well."""
    package = _of_rides(next(published.glob("opal/*/r0")), tmp_path / "r0")
    for column in ("measured", "unbiased", "value"):
        taps = ("on", "off")
        on, off = (
            package.total("location_slot", lambda row, tap=tap: row["tap"] == tap, column)
            for tap in taps
        )
        both = package.total("location_slot", column=column)
        assert (both.cells, both.no_interval) == (on.cells + off.cells, "")
        assert both.value == pytest.approx(on.value + off.value)
        errors = on.standard_deviation, off.standard_deviation
        # How far values of both go together is not stated: at most wholly.
        error = sum(errors) if column == "value" else np.hypot(*errors)
        assert both.standard_deviation == pytest.approx(error)
        assert both.low_90 < both.value < both.high_90
    command = [sys.executable, "-B", str(tmp_path / "r0/tools/draws.py"), "location_slot"]
    for column, words in (("measured", "low_90"), ("value", "--column measured")):
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [*command, "--column", column], capture_output=True, text=True, check=False
        )
        assert words in done.stdout + done.stderr, done


def test_the_ends_of_trips_are_said_to_go_together_as_they_do(published: Path) -> None:
    """Programmes of gates, and of tap-ons alone, said that every trip is in both."""
    assert ends_in_words({"on", "off"}, "trips") == "Every trip is in both: do not add them up."
    assert ends_in_words({"on", "off"}, "rides").startswith("Boardings and alightings are counted")
    assert ends_in_words({"on"}, "trips") == ends_in_words({"off"}, "rides") == ""
    of_trips = next(published.glob("opal/*/r0"))
    for name in ("README.md", "docs/GUIDE.md", "datapackage.json", "../../index.html"):
        assert "very trip is in both" in (of_trips / name).read_text()


def test_the_file_in_the_package_runs_alone_and_refuses_what_has_no_error(package: Path) -> None:
    card = json.loads((package / "release_card.json").read_bytes())
    table = next(entry["name"] for entry in card["data"] if "draw" in entry["sources"][0])
    command = [sys.executable, "-I", "-S", "-B", str(package / "tools/sums.py")]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own interpreter
            [*command, *arguments], capture_output=True, text=True, check=False
        )

    tap = ["tap=on"] if table == "location" else []
    said = run(table, "--column", "measured", *tap)
    assert "high_95" in said.stdout
    assert said.stdout.splitlines()[-1].split(None, 1)[1] == ("trips" if tap else "0.1 km/h")
    assert said.stderr == ""
    if tap:  # an answer that `day` holds names it, for values and not where it is as exact
        finer = ("location_slot", "tap=on")
        assert run(*finer).stderr == "note: the table day answers this more exactly\n"
        assert "the table slot answers" in run(*finer, "--column", "measured").stderr
        assert run(*finer, "--column", "unbiased").stderr == run("day", "tap=on").stderr == ""
    label = "location" if tap else "cell"
    for slip, words in {
        (table, "--column", "measured", *tap, f"{label}=Nix"): f"no row has {label}=Nix; labels",
        (table, "--column", "measured", "Nix"): "Nix: write COLUMN=LABEL",
        ("location", "--column", "low_90"): "be summed: value, unbiased, measured",
        ("location", "--column", "measured"): "tap=on and in tap=off",
        ("day", "--column", "unbiased"): "in which unbiased can be: location, slot",
        ("day", "--column", "unbiased", "location=2001"): "in which unbiased can be: location, l",
        ("speed_city",): "means do not add up; the tables of means are speed, speed_city, ",
        ("speeding", "limit_kmh=40"): "be summed: measured",
        ("speeding", "--column", "measured"): "above each lower one, too: choose one",
    }.items():
        if (package / f"data/{slip[0]}.csv").exists():
            done = run(*slip)
            assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done
            assert words in done.stderr
            assert "nan" not in done.stdout
    assert "there is no table elsewhere" in run("elsewhere").stderr
    for slip in ((table, "foo=1"), ("elsewhere",), (table, "--column", "usable")):
        done = run(*slip)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
    assert "sums.py" in run("--help").stdout
    means = [draw["table"] for draw in card["draws"] if draw["statistic"] == "sum"]
    assert all("means do not add up" in run(name).stderr for name in means)


def test_a_sum_of_estimates_has_an_interval_of_its_own_not_the_sum_of_intervals(
    published: Path,
) -> None:
    package = sums.Package(next(published.glob("opal/*/r0")))
    rows = [r for r in package.rows("location") if (r["mode"], r["tap"]) == ("bus", "on")]
    estimate = package.estimated("location", rows)
    assert estimate.value == pytest.approx(sum(float(row["value"]) for row in rows))
    if not estimate.no_interval and all(row["high_95"] for row in rows):
        assert estimate.value < estimate.high_95 < sum(float(row["high_95"]) for row in rows)
    # A week may withhold every interval of a small table, so the row's own is stated here.
    ends = {"low_90": "23.6", "high_90": "56.4", "low_95": "20.4", "high_95": "59.6"}
    alone = package.estimated("location", [rows[0] | {"value": "40"} | ends])
    assert alone.high_90 == pytest.approx(56.4, abs=0.1)


@pytest.mark.parametrize(("share", "times"), [(0.5, 1.5), (1.0, 2.0), (1.7, 2.0)])
def test_a_sum_is_not_less_exact_than_numbers_that_err_alike(share: float, times: float) -> None:
    """Shares of a card are on the safe side, and may add up to more than all of an error."""
    where, ends = {"mode": "train", "tap": "on", "location": "Acacia"}, {"low_90": "90"}
    rows = [
        {"service_date": day, **where, "value": "100", **ends, "high_90": "110"}
        for day in ("2016-07-25", "2016-07-26")
    ]
    together = sums.Together([sums.Way(["place"], share, 0.0)], 0.0)
    alone = 2 * together.deviation(rows[0]) ** 2
    variance, _ = together.error(rows)
    assert variance == pytest.approx(times * alone)


def test_what_to_take_where_an_error_is_unknown_is_there(
    published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buses have no table that adds up the cells of others, and one was named."""
    for name, table, advice in (
        ("itms", "speed_buses", "; sum the column measured"),
        ("opal", "day", ""),  # not drawn: it has none
    ):
        package = sums.Package(next(published.glob(f"{name}/*/r0")))
        of_unknown = sums.Together([sums.Way([], 0.1, 100.0)], 1.0)
        monkeypatch.setattr(sums.Package, "together", lambda _self, _name, of=of_unknown: of)
        first, *others = package.rows(table)
        same = [row for row in others if all(row.get(n) == first.get(n) for n in ("tap", "mode"))]
        rows = [first, same[0]]
        ends = {"value": "40", "low_90": "23.6", "high_90": "56.4"}
        said = package.estimated(table, [row | ends for row in rows]).no_interval
        assert said == sums.NO_SUM_ERROR + advice
        assert "table" not in said


def test_the_guide_names_columns_for_changes_that_tables_have(published: Path) -> None:
    """Means of a city or of an hour have none without what they borrow."""
    package = next(published.glob("itms/*/r0"))
    guide = (package / "docs/GUIDE.md").read_text()
    said = guide.partition("For changes take ")[2].partition(".")[0]
    told = {}
    for part in said.split("; "):
        column, _, names = part.partition(" of ")
        told |= dict.fromkeys(names.split(", "), column.strip("`"))
    columns = {
        path.stem: path.read_text().partition("\n")[0] for path in package.glob("data/*.csv")
    }
    assert told.keys() == {name for name, header in columns.items() if "measured" in header}
    assert all(f'"{column}"' in columns[name] for name, column in told.items())


def test_labels_with_commas_are_those_that_there_are_and_a_column_is_named_once() -> None:
    rows = [
        {"location": label, "value": "1"} for label in ("Gate 1", "Gate 1, North", "Hay", "A,B,C")
    ]
    where = sums.conditions(["location=Gate 1, North,Hay,A,B,C"])
    assert sums.marked(rows, where) == [False, True, True, True]
    assert sums.marked(rows, sums.conditions(["location=Gate 1"])) == [True, False, False, False]
    with pytest.raises(ValueError, match="no row has location=B; labels of location are"):
        sums.marked(rows, sums.conditions(["location=Hay,B"]))
    with pytest.raises(ValueError, match="tap is named twice: write tap=LABEL,LABEL once"):
        sums.conditions(["tap=on", "location=Hay", "tap=off"])


def test_a_sum_of_estimates_without_known_errors_has_no_interval(published: Path) -> None:
    package = sums.Package(next(published.glob("opal/*/r0")))
    assert package.estimated("location", []).no_interval == sums.NO_VALUE
    for column in ("value", "unbiased", "measured"):
        nothing = package.total("location", lambda row: row["location"] == "Nix", column)
        assert (np.isnan(nothing.value), nothing.no_interval) == (True, sums.NO_VALUE)
    rows = package.rows("location")[:5]
    for row in rows:
        row["high_90"] = ""
    estimate = package.estimated("location", rows)
    assert estimate.no_interval == sums.NO_CELL_ERROR
    assert np.isnan([estimate.low_90, estimate.high_90, estimate.low_95, estimate.high_95]).all()


def test_rows_that_one_tap_draws_and_the_other_adds_up_have_the_error_of_what_they_share(
    published: Path, homes: MadeHomes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Places of tap-ons are sums of cells there: their variances were added up."""
    folder = tmp_path_factory.mktemp("mixed") / "root"
    shutil.copytree(published.parents[1], folder, symlinks=True)
    path = folder / "include/programmes/opal.yaml"
    text, count = re.subn(r"\n +(on_location|off_time|off_time_location): .*", "", path.read_text())
    assert count == 6  # a table and its share each
    for old, new in (
        ('on_time: "1/8"', 'on_time: "1/4"'),
        ('off_location: "1/8"', 'off_location: "1/4"'),
        ('on_time_location: "1/4"', 'on_time_location: "1/2"'),
    ):
        assert old in text
        text = text.replace(old, new)
    path.write_text(re.sub(r"meant_for:.*\n", "", text))
    weeks = ("sample", "opal", "--weeks", "2016-W31:2016-W31", "--rows", "3000")
    home = homes.get(folder, weeks, ("run", "opal", "--week", "2016-W31"))
    package = sums.Package(home.home / "public/opal/2016-W31/r0")
    errors = {}
    for table, tap in (("location", "on"), ("location", "off"), ("location_slot", "on")):
        total = package.total(table, lambda row, tap=tap: row["tap"] == tap, "unbiased")
        errors[table, tap] = total.standard_deviation
    assert list(errors.values()) == pytest.approx([errors["location_slot", "on"]] * 3, rel=1e-3)
    row = next(row for row in package.rows("location") if row["tap"] == "on")
    one = package.total("location", lambda candidate: candidate == row, "unbiased")
    assert one.standard_deviation == pytest.approx(float(row["unbiased_sd"]), abs=0.01)
