"""A card id and a plate planted in the input are found nowhere outside of the private zone.

The canaries sit in good rows, in rows that go to quarantine, in duplicates and in a week that fails
validation, so every message that the product can write about rows had its chance.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_deployment import INCLUDE, WEEK, Deployment

Cli = Callable[..., int]
CARD, PLATE = "CANARY7731CARD", "GJ05CANARY77"
FAILING_WEEK = "2016-W31"


def plant(folder: Path, canary: str, *, column: str) -> None:
    """Give the canary the rows of the first card (or bus), and break and repeat some of them."""
    for path in sorted(folder.glob("*.csv")):
        header, *lines = path.read_text().splitlines()
        place = header.replace('"', "").split(",").index(column)
        victim = lines[0].split(",")[place]
        own = [line.replace(victim, canary) for line in lines if victim in line]
        broken = [own[0].replace("2016-07", "not-a-date"), own[0] + ",more"]
        path.write_text("\n".join([header, *lines, *own, own[0], own[0], *broken]) + "\n")


def fail(folder: Path, canary: str) -> None:
    """Make validation fail on the canary's rows: a mode that does not exist, a far future."""
    for path in sorted(folder.glob("*.csv")):
        lines = path.read_text().splitlines()
        spoiled = [
            line.replace(",bus,", ",hovercraft,").replace("2016-08", "2116-08")
            if canary in line
            else line
            for line in lines
        ]
        path.write_text("\n".join(spoiled) + "\n")


def texts_of(path: Path) -> Iterator[bytes]:
    """Everything that a file says, Parquet columns decoded."""
    content = path.read_bytes()
    yield content
    if content[:4] == b"PAR1":
        for column in pq.read_table(path).columns:
            yield repr(column.to_pylist()).encode()


def leaks(home: Path) -> list[str]:
    """Files outside of the landing and private zones in which a canary is found."""
    found = []
    for path in sorted(home.rglob("*")):
        zone = path.relative_to(home).parts[0]
        if path.is_file() and zone not in ("landing", "private"):
            texts = list(texts_of(path))
            if any(canary.encode() in text for canary in (CARD, PLATE) for text in texts):
                found.append(path.relative_to(home).as_posix())
    return found


@pytest.fixture
def planted(deployment: Deployment, turnstile: Cli) -> Deployment:
    for programme, canary, column in (
        ("opal", CARD, "card_id"),
        ("itms", PLATE, "license_plate"),
    ):
        shape = ["--shape", "split"] if programme == "itms" else []
        weeks = f"{WEEK}:{FAILING_WEEK}"
        assert turnstile("sample", programme, "--weeks", weeks, "--rows", 15_000, *shape) == 0
        for week in (WEEK, FAILING_WEEK):
            plant(deployment.landing(programme, week), canary, column=column)
        fail(deployment.landing(programme, FAILING_WEEK), canary)
    return deployment


def test_no_canary_leaves_the_private_zone_by_hand(
    planted: Deployment,
    turnstile: Cli,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    codes = [
        turnstile("run", programme, "--week", week)
        for programme in ("opal", "itms")
        for week in (WEEK, FAILING_WEEK)
    ]
    assert codes == [0, 2, 0, 2]
    turnstile("ledger", "entries")
    said = "".join(capfd.readouterr()) + caplog.text
    assert CARD not in said
    assert PLATE not in said
    assert leaks(planted.home) == []


def test_the_search_finds_a_canary_that_is_there(planted: Deployment) -> None:
    """The negative control: in text, in a database file, in a Parquet file."""
    import pyarrow as pa

    public = planted.public
    public.mkdir(parents=True)
    (public / "log.txt").write_text(f"row of {CARD} rejected")
    pq.write_table(pa.table({"plate": [PLATE] * 9}), public / "t.parquet", compression="zstd")
    assert leaks(planted.home) == ["public/log.txt", "public/t.parquet"]


@pytest.mark.long
def test_no_canary_leaves_the_private_zone_through_airflow(planted: Deployment) -> None:
    """Logs, XComs, the metadata database, the ledger, public files: all of them are searched."""
    for folder in ("dags", "plugins"):  # a deployment has them beside its include folder
        (planted.include.parent / folder).symlink_to(INCLUDE.parent / folder)
    ran = subprocess.run(
        [sys.executable, "-m", "turnstile.deployment.weekly_release", "--weeks", "2"],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    said = ran.stdout + ran.stderr
    assert ran.returncode != 0  # the second week fails validation, as it must
    assert list(planted.public.glob(f"*/{WEEK}/r0"))
    assert not list(planted.public.glob(f"*/{FAILING_WEEK}/r0"))
    assert list(planted.home.rglob("airflow.db"))
    assert list(planted.home.rglob("*.log"))
    assert CARD not in said
    assert PLATE not in said
    assert leaks(planted.home) == []
