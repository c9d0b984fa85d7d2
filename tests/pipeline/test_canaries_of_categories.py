"""A value of a categorical column that no public list has reaches no output."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from small_deployment import WEEK, Deployment

Cli = Callable[..., int]
# category: the column of TIDES that stands for it, and what its public list knows
COLUMNS = {
    "route": ("pattern_id", [f"p{n}" for n in range(12)]),
    "direction": ("fare_period", ["peak"]),
    "fare_product": ("fare_product", ["stored value"]),
    "vehicle_trip": ("trip_id_scheduled", [f"t{n}" for n in range(300)]),
}
MARKS = {name: f"CANARY{number}Q" for number, name in enumerate(COLUMNS)}


@pytest.fixture
def tides(deployment: Deployment, turnstile: Cli) -> Deployment:
    """A week of taps with tables by each category, and a mark in a record of each column."""
    assert turnstile("sample", "tides", "--weeks", WEEK, "--rows", 2000) == 0
    files = sorted(deployment.landing("tides").glob("*.csv"))
    feed = deployment.home / "tides_gtfs.zip"
    assert turnstile("new", "tides", "--from", *files, "--gtfs", feed) == 0
    for name, (_, values) in COLUMNS.items():
        lines = "\n".join(["value,label", *(f"{value},label of {value}" for value in values)])
        (deployment.include / f"domains/{name}.csv").write_text(lines + "\n")
    lists = ", ".join(f"{name}: domains/{name}.csv" for name in COLUMNS)
    columns = ", ".join(f"{name}: {column}" for name, (column, _) in COLUMNS.items())
    own = "".join(f"  by_{name}: {{by: [{name}]}}\n" for name in COLUMNS)
    crossed = "  crossed: {by: [direction, tap_on_slot], trips_at_most: 4, per_cell_at_most: 4}\n"
    deployment.edit("tides", "  outside:", f"  lists: {{{lists}}}\n  outside:")
    deployment.edit("tides", "  landing:", f"  columns: {{{columns}}}\n  landing:")
    deployment.edit("tides", "  on_time: ", f"{own}{crossed}  on_time: ")
    shares = "".join(f'by_{name}: "1/20", ' for name in COLUMNS)
    deployment.edit("tides", 'on_time: "1/4"', f'{shares}crossed: "1/20", on_time: "1/8"')
    deployment.edit("tides", 'on_location: "1/4"', 'on_location: "1/8"')
    plant(files[0])
    return deployment


def plant(file: Path) -> None:
    """Add a record for each category, of a card of its own, that names what no list has."""
    with file.open(newline="") as stream:
        header, first, *_ = csv.reader(stream)
    with file.open("a", newline="") as stream:
        for name, (column, _) in COLUMNS.items():
            fields = dict(zip(header, first, strict=True))
            fields |= {
                "transaction_id": f"x-{name}",
                "token_id": f"x-{name}",
                "fare_action": "Enter",
            }
            csv.DictWriter(stream, header, lineterminator="\n").writerow(
                fields | {column: MARKS[name]}
            )


def seen(tides: Deployment, said: str) -> set[str]:
    """The marks that some output holds: packages, ledger, what was printed or logged."""
    outputs = [
        path.read_bytes()
        for path in tides.home.rglob("*")
        if path.is_file() and not {"private", "landing"} & set(path.relative_to(tides.home).parts)
    ]
    text = b"\n".join([*outputs, said.encode()])
    return {name for name, mark in MARKS.items() if mark.encode() in text}


def test_no_categorical_column_leaks(
    tides: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("check", "tides") == 0
    assert turnstile("run", "tides", "--week", WEEK) == 0
    package = tides.public / "tides" / WEEK / "r0"
    assert turnstile("package", "verify", package) == 0
    assert turnstile("estimates", "verify", package) == 0
    said = capsys.readouterr()
    assert seen(tides, said.out + said.err) == set()
    private = b"".join(p.read_bytes() for p in (tides.home / "private").rglob("*.parquet"))
    assert all(mark.encode() in private for mark in MARKS.values())


def test_a_value_that_a_list_names_would_be_seen(
    tides: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    """Negative control: each list knows its mark, so each output has it as a public label."""
    for name, mark in MARKS.items():
        with (tides.include / f"domains/{name}.csv").open("a") as stream:
            stream.write(f"{mark},{mark}\n")
    assert turnstile("run", "tides", "--week", WEEK) == 0
    said = capsys.readouterr()
    assert seen(tides, said.out + said.err) == set(MARKS)
