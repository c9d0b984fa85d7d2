"""Bad input ends in one clear sentence and the right exit code: nothing charged or published."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from deployment_fixtures import small_home
from made_homes import MadeHomes
from small_deployment import WEEK, Deployment

Cli = Callable[..., int]
Spoil = Callable[[Path], None]
NOT_ALL = "no file of service day 2016-07-25; nothing is read before all is there"


def _first(folder: Path) -> Path:
    return min(folder.glob("*.csv"))


def missing_day(folder: Path) -> None:
    _first(folder).unlink()


def header_only(folder: Path) -> None:
    path = _first(folder)
    path.write_text(path.read_text().splitlines()[0] + "\n")


def truncated_gzip(folder: Path) -> None:
    path = _first(folder)
    packed = gzip.compress(path.read_bytes())
    path.with_suffix(".csv.gz").write_bytes(packed[: len(packed) // 2])
    path.unlink()


def wrong_delimiter(folder: Path) -> None:
    path = _first(folder)
    path.write_text(path.read_text().replace(",", "^"))


def other_columns(folder: Path) -> None:
    path = _first(folder)
    path.unlink()
    pd.DataFrame({"a": [1], "b": ["x"]}).to_parquet(path.with_suffix(".parquet"))


def empty_folder(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def no_folder(folder: Path) -> None:
    empty_folder(folder)
    folder.rmdir()


def unknown_mode(folder: Path) -> None:
    path = _first(folder)
    path.write_text(path.read_text().replace(",bus,", ",hovercraft,"))


def future_date(folder: Path) -> None:
    path = _first(folder)
    path.write_text(path.read_text().replace("2016-07-2", "2116-07-2"))


def metres_a_second(folder: Path) -> None:
    for path in folder.glob("*.csv"):
        frame = pd.read_csv(path, dtype=str)
        frame["speed"] = (pd.to_numeric(frame["speed"]) / 3.6).round(2)
        frame.to_csv(path, index=False)


def swapped_columns(folder: Path) -> None:
    swap = {"location/coordinates/0": "location/coordinates/1"}
    swap |= {new: old for old, new in swap.items()}
    for path in folder.glob("*.csv"):
        pd.read_csv(path, dtype=str).rename(columns=swap).to_csv(path, index=False)


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes) -> Path:
    """Landing files of both programmes, of `itms` in two files a day; only to be read."""
    rows = ("--weeks", WEEK, "--rows", "14000", "--seed", "3")
    samples = (("sample", "opal", *rows), ("sample", "itms", *rows, "--shape", "split"))
    return small_home(homes, tmp_path_factory.mktemp("delivered"), *samples).home / "landing"


@pytest.mark.parametrize(
    ("programme", "spoil", "exit_code", "words"),
    [
        ("opal", missing_day, 3, NOT_ALL),
        ("opal", header_only, 3, "days_present"),
        ("opal", truncated_gzip, 2, "opal-2016-07-25.csv.gz"),
        ("opal", wrong_delimiter, 2, "opal-2016-07-25.csv"),
        ("opal", other_columns, 2, "opal-2016-07-25.parquet"),
        ("opal", empty_folder, 2, "opal/2016-W30"),
        ("opal", no_folder, 2, "opal/2016-W30"),
        ("opal", unknown_mode, 2, "unknown_mode"),
        ("opal", future_date, 2, "future_date"),
        ("itms", metres_a_second, 2, "speed_unit"),
        ("itms", swapped_columns, 2, "coordinates_swapped"),
        ("itms", missing_day, 3, NOT_ALL),
    ],
)
def test_bad_input_is_one_sentence_and_costs_nothing(
    deployment: Deployment,
    turnstile: Cli,
    capsys: pytest.CaptureFixture[str],
    delivered: Path,
    programme: str,
    spoil: Spoil,
    exit_code: int,
    words: str,
) -> None:
    shutil.copytree(delivered / programme, deployment.home / "landing" / programme)
    spoil(deployment.landing(programme))
    capsys.readouterr()
    assert turnstile("run", programme, "--week", WEEK) == exit_code
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("turnstile:")]
    assert len(error) == 1
    assert words in error[0]
    assert deployment.nothing_happened()


@pytest.mark.long
def test_a_mended_week_is_released_after_it_was_refused(
    landed: Deployment, turnstile: Cli, generated: Path
) -> None:
    folder = landed.landing("opal")
    missing_day(folder)
    assert turnstile("run", "opal", "--week", WEEK) == 3
    back = _first(generated / "opal" / WEEK)
    (folder / back.name).write_bytes(back.read_bytes())
    assert turnstile("run", "opal", "--week", WEEK) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "opel", "--week", WEEK),
        ("run", "opal", "--week", "2016-30"),
        ("plan", "opal", "--week", "soon"),
        ("plan", "opal", "--week", "9999-W52"),
        ("plan", "opal", "--week", "\uff12\uff10\uff11\uff16-W30"),  # digits of another width
        ("ledger", "void", f" opal/{WEEK}/r0", "--reason", "a slip"),
        ("ledger", "void", f"opal/{WEEK}/r0", "--reason", "caf\udce9"),  # as of a Latin-1 terminal
        ("package", "verify", "nowhere"),
    ],
)
def test_wrong_usage_exits_with_two(
    deployment: Deployment, turnstile: Cli, arguments: tuple[str, ...]
) -> None:
    assert turnstile(*arguments) == 2
    assert deployment.nothing_happened()
