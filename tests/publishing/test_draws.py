"""Plausible weeks: intervals of any question hold the truth; `draws.py` needs a package alone."""

from __future__ import annotations

import functools
import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compared_weeks import Compared, compared
from estimate_weeks import LOCATION, OPAL, YEARLY, Noise, made_rates
from numpy.typing import NDArray

from turnstile.estimates.intervals import BEYOND_0
from turnstile.estimates.labelled import csv_bytes
from turnstile.publishing.carried import sums

Floats = NDArray[np.float64]
MADE = made_rates(60)
SIZES = MADE.sum(axis=(1, 2), keepdims=True)
# Places of nearly one size, so that their ranks are in doubt.
RATES = MADE / SIZES * SIZES.mean() * np.linspace(0.95, 1.05, len(SIZES))[:, None, None]
SEEDS = (1, 2, 3, 4)  # of days; hours, which take longer, the first two
HOURS = "location_hour"
KINDS = ("sums", "shares", "ratios", "changes", "days", "ranks")
ASKED = """
import functools, json, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import draws

draws.Weeks.week = functools.cache(draws.Weeks.week)  # for all five questions
this, last = (draws.Weeks(folder, sys.argv[3]) for folder in sys.argv[1:3])
found = {}
places = sorted({row["location"] for row in this.rows})
codes = np.array([places.index(row["location"]) for row in this.rows])
days = np.array([row["service_date"] for row in this.rows])
early = days < sorted(set(days))[5]
of = lambda week, rows=slice(None): np.bincount(codes[rows], week[rows], len(places))
found["sums"] = draws.ask(lambda week: of(week, early), this)
found["shares"] = draws.ask(lambda week: of(week) / week.sum(), this)
found["ratios"] = draws.ask(lambda week: of(week, early) / of(week, ~early), this)
found["changes"] = draws.ask(lambda week, other: of(week) - of(other), this, last)
found["days"] = draws.ask(lambda week, same: of(week, early) - of(same, ~early), this, this)
ranked = draws.ranks(this, "location", codes >= 0)
found["ranks"] = np.transpose([one for _, one in ranked])
assert not any(name.startswith("turnstile") for name in sys.modules)
found = {name: np.array(one).tolist() for name, one in found.items()}
print(json.dumps(found | {"labels": [label for label, _ in ranked]}))
"""


def written(folder: Path, comparison: Compared) -> Path:
    """What `draws.py` reads of a package, and the two files."""
    record = {
        "correlations": comparison.found.correlations,
        "errors": comparison.found.errors,
        "beyond_0": BEYOND_0,
    }
    (folder / "data").mkdir(parents=True)
    data = []
    for name, estimated in (("location", "on_location"), (HOURS, "on_time_location_hourly")):
        if (rows := comparison.found.tables.get(estimated)) is None:
            continue
        names = {"estimate": "value", "tap_on_location": "location", "tap_on_slot": "hour"}
        rows = rows.rename_columns([names.get(column, column) for column in rows.column_names])
        (folder / f"data/{name}.csv").write_bytes(csv_bytes(rows))
        data.append({"name": name, "sources": [{"where": {}, "estimates": estimated}]})
    card = {"draws": [], "estimates": record, "data": data}
    (folder / "release_card.json").write_text(json.dumps(card))
    for name in ("draws.py", "sums.py"):
        source = resources("turnstile.publishing.carried").joinpath(name)
        (folder / name).write_bytes(source.read_bytes())
    return folder


def held(
    answers: Mapping[str, list[list[float]]], this: Compared, last: Compared
) -> Iterator[float]:
    """Yield for every kind of question how often its 90 % intervals hold the truth."""
    now, before = (comparison.truth[LOCATION.name] for comparison in (this, last))
    ranks = (-now.sum(axis=0)).argsort().argsort() + 1
    truths = {
        "sums": now[:5].sum(axis=0),
        "shares": now.sum(axis=0) / now.sum(),
        "ratios": now[:5].sum(axis=0) / now[5:].sum(axis=0),
        "changes": now.sum(axis=0) - before.sum(axis=0),
        "days": now[:5].sum(axis=0) - now[5:].sum(axis=0),
        "ranks": ranks[[int(label.split()[1]) for label in answers["labels"]]],
    }
    for name in KINDS:
        _, low, high, *_ = np.array(answers[name])
        yield float(((low <= truths[name]) & (truths[name] <= high)).mean())


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def coverage(folder: Path, noise: Noise, table: str, *, alone: bool = False) -> dict[str, float]:
    """Share of the intervals of each kind of question that hold the truth, over made weeks."""
    shares = []
    for seed in SEEDS[:2] if table == HOURS else SEEDS:
        weeks = [compared(RATES, noise, [], seed=week_seed) for week_seed in (seed, seed + 100)]
        folders = [written(folder / f"{seed}/{n}", week) for n, week in enumerate(weeks)]
        for card in folder.glob("*/*/release_card.json") if alone else ():
            stated = json.loads(card.read_bytes())
            stated["estimates"]["correlations"]["on_time_location_hourly"] = []
            card.write_text(json.dumps(stated))
        asked = run("-c", ASKED, *folders, table)
        assert asked.returncode == 0, asked.stderr
        shares.append(list(held(json.loads(asked.stdout), *weeks)))
    return dict(zip(KINDS, np.mean(shares, axis=0), strict=True))


@pytest.mark.some(1)
@pytest.mark.parametrize(("noise", "table"), [(OPAL, "location"), (YEARLY, HOURS)])
def test_nine_of_ten_intervals_hold_the_truth(noise: Noise, table: str, tmp_path: Path) -> None:
    # 240 answers of each kind, 40 ranks (of hours half as many); coins are fixed, so a run that
    # passed passes again.
    shares = coverage(tmp_path, noise, table)
    assert all(share >= 0.85 for share in shares.values()), shares
    # How far hours of a place go together is known roughly: their sums get wide intervals.
    assert table == HOURS or all(shares[kind] <= 0.98 for kind in KINDS[:5]), shares


@pytest.mark.long
def test_errors_that_go_together_must_be_known_to(tmp_path: Path) -> None:
    assert coverage(tmp_path, YEARLY, HOURS, alone=True)["sums"] < 0.8


WAYS = [
    sums.Way(["place", "day"], 0.1, 0.0),
    sums.Way(["place", "kind", "slot"], 0.2, 0.0),
    sums.Way(["place", "stretch"], 0.05, 0.0),
    sums.Way(["place", "kind"], 0.1, 0.0),
    sums.Way(["day", "stretch"], 0.03, 0.0),
    sums.Way(["day"], 0.02, 0.0),
]


def test_plausible_weeks_vary_as_sums_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(sums.__file__).parent))
    draws = importlib.import_module("draws")
    rows = [
        {"service_date": f"2016-07-{day}", "location": place, "hour": hour}
        | {"value": "9", "low_90": "8", "high_90": f"{9 + sums.LEVELS[90]}"}  # an error of 1
        for day in range(25, 32)
        for place in "ab"
        for hour in ("07:00", "08:00", "09:00")
    ]
    labels = [sums.labels_of(row, sums.places_of(row)) for row in rows]
    drawn = draws.block(list(enumerate(labels)), WAYS)
    shares = [(way.alike, way.share) for way in WAYS]
    moved = np.array([draws.alike(drawn, shares, deviates) for deviates in np.eye(len(rows))]).T

    def apart(days: int, ways: list[sums.Way]) -> float:
        """By how much the variance of the sum over the first days differs."""
        chosen = rows[: 6 * days]
        return abs(float((moved[: 6 * days].sum(axis=0) ** 2).sum()) - variance(chosen, ways))

    def variance(chosen: list[sums.Row], ways: list[sums.Way]) -> float:
        return sums.Together(ways, 0.0).error(chosen)[0]

    assert all(apart(days, WAYS) < 1e-9 for days in range(1, 8))
    # Shares that are drawn may add up to more than 1: each number varies by its error all the same.
    above_1 = [(way.alike, 3 * way.share) for way in WAYS]
    cells = [draws.alike(drawn, above_1, deviates) for deviates in np.eye(len(rows))]
    assert np.allclose(np.square(cells).sum(axis=0), 1)
    # The negative control: as if Saturday and Sunday were days like the others.
    blind = [way._replace(alike=[name for name in way.alike if name != "kind"]) for way in WAYS]
    assert apart(5, blind) < 1e-9
    assert apart(7, blind) > 1


@pytest.mark.some(1)
def test_the_file_in_the_package_answers_by_itself(package: Path, tmp_path: Path) -> None:
    shutil.copytree(package, tmp_path / "alone")
    file = tmp_path / "alone/tools/draws.py"
    card = json.loads((package / "release_card.json").read_bytes())
    drawn = (entry["name"] for entry in card["data"] if "draw" in entry["sources"][0])
    table, column = next(drawn), ("--column", "measured")
    tap = ["tap=on"] if table == "location" else []
    once, again = run(file, table, *column, *tap), run(file, table, *column, *tap)
    assert once.returncode == 0, once.stderr
    assert once.stdout == again.stdout
    said = dict(line.split(None, 1) for line in once.stdout.splitlines())
    ends = [float(said[name].replace(",", "")) for name in ("low_95", "value", "high_95")]
    assert ends == sorted(set(ends))
    assert not list(file.parent.rglob("__pycache__"))
    assert said["unit"] == ("trips" if tap else "0.1 km/h")
    rows = drawn_rows(package, table)
    label, known = next(iter(rows[-1])), rows[-1][next(iter(rows[-1]))]
    assert said["rows"] == f"{len([row for row in rows if row.get('tap', 'on') == 'on']):,}"
    unknown = f"{label}=No Such Place"
    for slip, words in {
        (table, *column, "foo=1"): "no column foo; there are",
        ("elsewhere",): "there is no table elsewhere",
        (table, "--column", "unbiased"): "can be summed" if tap else "means",
        (table, *column, *tap, unknown): f"no row has {unknown}; labels of {label} are ",
        (table, *column, *tap, "--of", *tap, unknown): f"no row has {unknown}",
        (table, *column, *tap, known): "write COLUMN=LABEL",
        (table, *column, *tap, "--since", package): "same package",
        (table, *column, "--ranks", label, "--of"): "--ranks takes",
        (table, *column, "--ranks", label, "--since", package): "--ranks takes",
        **({(table, *column): "tap=on and in tap=off"} if tap else {}),
    }.items():
        done = run(file, *slip)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done
        assert words in done.stderr
        assert "tables in which" not in done.stderr, "these programs take no unbiased numbers"
    means = [draw["table"] for draw in card["draws"] if draw["statistic"] == "sum"]
    for stderr in (run(file, name).stderr for name in means):
        assert "means do not add up; the tables of means are " in stderr
        assert "unbiased" not in stderr


def drawn_rows(package: Path, table: str) -> list[sums.Row]:
    return sums.Package(package).rows(table)


def test_a_share_of_nothing_is_refused(published: Path, tmp_path: Path) -> None:
    package = next(published.glob("opal/*/r0"))
    shutil.copytree(package, tmp_path / "alone")
    path = tmp_path / "alone/data/location.csv"
    rows = drawn_rows(package, "location")
    nothing = [row | {name: "0" for name in row if name in ("value", "high_90")} for row in rows]
    text = [",".join(rows[0]), *(",".join(row.values()) for row in nothing)]
    path.write_text("\n".join(text) + "\n")
    done = run(tmp_path / "alone/tools/draws.py", "location", "tap=on", "--of", "tap=on")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "rows after --of" in done.stderr


MEANS = np.linspace(12, 34, 12)  # km/h
CLAMP_KMH, NOISE = 65, (300.0, 8.0)  # of sums, of bus-days


def made_means(folder: Path, means: Floats, deviates: Iterator[float]) -> Path:
    """What `draws.py` reads of a package of one table of means, drawn with normal noise."""
    buses = [50 + 30 * (n % 3) for n in range(means.size)]
    sums_drawn = [(10 * mean - 5 * CLAMP_KMH) * n for mean, n in zip(means, buses, strict=True)]
    (folder / "data").mkdir(parents=True)
    card: dict[str, Any] = {"terms": {"tables": {"speed": {"range": CLAMP_KMH}}}}
    card |= {"draws": [], "data": []}
    for name, of, exact, noise in zip(
        ("speed", "speed_buses"), ("sum", "buses"), (sums_drawn, buses), NOISE, strict=True
    ):
        lines = [f"{n},,{round(x + noise * next(deviates))}\n" for n, x in enumerate(exact)]
        (folder / f"data/{name}.csv").write_text("cell,value,measured\n" + "".join(lines))
        draw = {"table": "speed", "statistic": of, "noise": "discrete_gaussian"}
        card["draws"].append(draw | {"standard_deviation": noise})
        source = {"where": {}, "estimates": "", "draw": f"speed/{of}"}
        card["data"].append({"name": name, "what": "", "unit": "km/h", "sources": [source]})
    (folder / "release_card.json").write_text(json.dumps(card))
    return folder


def test_means_their_changes_and_ranks_hold_the_truth(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(Path(sums.__file__).parent))
    draws = importlib.import_module("draws")
    deviates = iter(draws.normals("weeks of means", 10_000).tolist())
    of_each, later = np.arange(MEANS.size), MEANS[::-1]
    places = (MEANS.argsort().argsort() + 1).tolist()
    shares: dict[str, list[float]] = {name: [] for name in ("mean", "change", "rank", "blind")}

    def note(name: str, answer: Any, truth: Floats) -> None:
        shares[name].append(float(np.mean((answer[1] <= truth) & (truth <= answer[2]))))

    for n in range(30):
        week, last = (
            draws.Means(made_means(tmp_path / f"{n}/{name}", means, deviates), "speed")
            for name, means in (("this", MEANS), ("last", later))
        )
        each = functools.partial(week.of, rows=of_each, codes=of_each)
        note("mean", draws.ask(each, week), MEANS)
        note("change", draws.ask(lambda a, b: each(a) - each(b), week, last), MEANS - later)  # noqa: B023
        ranked = draws.ranks(week, "cell", of_each >= 0, is_lowest=True)
        ranks = np.array([places[int(label)] for label, _ in ranked])
        note("rank", np.transpose([answer for _, answer in ranked]), ranks)
        week.buses.deviations[:] = 0  # the negative control: as if bus-days were known
        note("blind", draws.ask(each, week), MEANS)
    held = {name: float(np.mean(values)) for name, values in shares.items()}
    # 360 answers of each kind, 300 ranks; coins are fixed, so a run that passed passes again.
    assert all(0.87 <= held[name] <= 0.94 for name in ("mean", "change")), held
    assert held["rank"] >= 0.87, held
    assert held["blind"] < 0.75, held
    week.buses.deviations[:] = week.buses.values.max()
    with pytest.raises(ValueError, match="no label of cell can be ranked"):
        draws.ranks(week, "cell", of_each >= 0)


def test_means_are_asked_of_a_package_of_buses(published: Path) -> None:
    file = next(published.glob("itms/*/r0")) / "tools/draws.py"
    mean = run(file, "speed", "--column", "mean")
    said = dict(line.split(None, 1) for line in mean.stdout.splitlines())
    city = next(iter(drawn_rows(file.parents[1], "speed_city")))
    assert float(said["low_95"]) < float(said["value"]) < float(said["high_95"]), mean.stderr
    assert abs(float(said["value"]) - float(city["value"])) < 3  # another estimate of the same
    assert said["unit"] == "km/h"
    first, other = sorted({row["slot"] for row in drawn_rows(file.parents[1], "speed")})[:2]
    hours = ("speed", "--column", "mean", f"slot={first}")
    change = run(file, *hours, "--since", file.parents[1], f"slot={other}")
    assert change.stdout.split()[-3:] == ["120", "less", "120"], change.stderr
    slowest = run(file, "speed", "--column", "mean", "--ranks", "slot", "--lowest")
    assert slowest.stdout.split()[:3:2] == [slowest.stdout.split()[0], "1"], slowest.stderr
    one_cell = next(iter(drawn_rows(file.parents[1], "speed")))["cell"]
    for slip, words in {
        ("speed_buses", "--column", "mean"): "tables of drawn means: speed",
        ("speed", "--column", "mean", "--of"): "leave out --of",
        (*hours, f"cell={one_cell}"): "too few bus-days",
        (*hours, "--since", file.parents[1], "cell=nix"): "say which cell",
        (*hours, "--since", file.parents[1]): "same package",
    }.items():
        done = run(file, *slip)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert words in done.stderr
    buses = run(file, "speed_buses", "--column", "measured")
    assert "bus-days, a bus once in each row" in buses.stdout


def test_two_days_of_one_week_are_compared_and_a_coarser_table_is_named(published: Path) -> None:
    """Of one sum: how exact a change is hangs on how errors of its sides go together."""
    file = next(published.glob("opal/*/r0")) / "tools/draws.py"
    first, second = sorted({row["service_date"] for row in drawn_rows(file.parents[1], "day")})[:2]
    asked = ("tap=on", "mode=train", f"service_date={second}", "--since", file.parents[1])
    answers = []
    for table in ("day", "location"):
        done = run(file, table, *asked, f"service_date={first}")
        said = dict(line.split(None, 1) for line in done.stdout.splitlines())
        answers.append([float(said[name].replace(",", "")) for name in ("value", "high_90")])
        assert done.stderr == ""
    drawn = run(file, "location_slot", *asked[:3], "--column", "measured")
    assert drawn.stderr == "note: the table slot answers this more exactly\n"
    (value, high), (of_places, _) = answers
    assert value == pytest.approx(of_places, abs=0.01)
    assert high > value
    # A place is not in the table of days.
    place = drawn_rows(file.parents[1], "location")[0]["location"]
    assert run(file, "location", "tap=on", f"location={place}").stderr == ""


@pytest.mark.long
def test_shares_changes_and_ranks_are_asked_on_the_command_line(published: Path) -> None:
    file = next(published.glob("opal/*/r0")) / "tools/draws.py"
    table = "location"
    share = run(file, table, "tap=on", "mode=train", "--of", "tap=on").stdout.split()
    assert 0 < float(share[3]) <= float(share[1]) <= float(share[5]) < 1
    ranks = run(file, table, "tap=on", "mode=train", "--ranks", "location").stdout.splitlines()
    other_order = run(file, table, "--ranks", "location", "tap=on", "mode=train")
    assert other_order.stdout.splitlines() == ranks
    assert len(ranks) == 10 * 6 + 2
    assert [line.split()[1] for line in ranks[1:-2:6]] == [str(n) for n in range(1, 11)]


def test_a_plausible_week_has_the_noise_that_was_drawn(published: Path) -> None:
    folder = next(published.glob("opal/*/r0"))
    code = (
        "import sys; sys.path.insert(0, sys.argv[1] + '/tools'); import draws; "
        "weeks = draws.Weeks(sys.argv[1], 'location_slot', 'measured'); "
        "print(len(weeks.rows), (weeks.week(1) - weeks.values).std() / weeks.deviations[0])"
    )
    numbers, spread = map(float, run("-B", "-c", code, folder).stdout.split())
    assert spread == pytest.approx(1, abs=6.1 / (2 * numbers) ** 0.5)  # by chance 1 in 1e9


def test_sides_of_other_days_or_rows_are_warned_of_where_no_row_names_a_day(
    published: Path, tmp_path: Path
) -> None:
    package, other = next(published.glob("itms/*/r0")), tmp_path / "other"
    shutil.copytree(package, other)
    for name in ("manifest.json", "release_card.json"):
        (other / name).chmod(0o644)
    (other / "manifest.json").write_bytes((package / "manifest.json").read_bytes() + b"\n")
    asked = (package / "tools/draws.py", "speed_buses", "--column", "measured")
    first, second = sorted({row["slot"] for row in drawn_rows(package, "speed")})[:2]
    same = run(*asked, f"slot={first}", "--since", other)
    assert (same.returncode, "warning" in same.stderr) == (0, False), same.stderr
    more = run(*asked, f"slot={first}", "--since", other, f"slot={first},{second}")
    assert "one side has more rows than the other" in more.stderr
    card = json.loads((other / "release_card.json").read_bytes())
    gap = {"gaps": card["service_days"][:1]}
    (other / "release_card.json").write_text(json.dumps(card | gap))
    fewer = run(*asked, f"slot={first}", "--since", other)
    assert (fewer.returncode, "7 days with input here less 6" in fewer.stderr) == (0, True)
