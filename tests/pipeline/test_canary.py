"""A card id and a plate planted in the input are found nowhere outside of the private zone.

The canaries sit in good rows, in rows that go to quarantine, in duplicates and in a week that fails
validation, so every message that the product can write about rows had its chance.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_deployment import INCLUDE, WEEK, Deployment

from turnstile.commands import run
from turnstile.pipeline import steps
from turnstile.pipeline.context import open_release
from turnstile.release.zones import bounding_secret, commitment
from turnstile.settings import Settings

Cli = Callable[..., int]
CARD, PLATE = "CANARY7731CARD", "GJ05CANARY77"
FAILING_WEEK = "2016-W31"
_BEGIN = 12  # hexadecimal digits that name a file or a folder somewhere
_HEXADECIMAL = re.compile(rb"[0-9a-f]{%d,}" % _BEGIN)


def plant(folder: Path, canary: str, *, column: str) -> None:
    """Give the canary the rows of the first card (or bus), and break and repeat some of them."""
    for path in sorted(folder.glob("*.csv")):
        header, *lines = path.read_text().splitlines()
        place = header.replace('"', "").split(",").index(column)
        victim = lines[0].split(",")[place]
        victim_lines = [line.replace(victim, canary) for line in lines if victim in line]
        broken = [victim_lines[0].replace("2016-07", "not-a-date"), victim_lines[0] + ",more"]
        path.write_text(
            "\n".join([header, *lines, *victim_lines, victim_lines[0], victim_lines[0], *broken])
            + "\n"
        )


def fail(folder: Path, canary: str) -> None:
    """Make validation fail on the canary's rows, and some more: no such mode, a far future."""
    for path in sorted(folder.glob("*.csv")):
        lines = path.read_text().splitlines()
        spoiled = [
            line.replace(",bus,", ",hovercraft,").replace("2016-08", "2116-08")
            if canary in line or number % 20 == 0
            else line
            for number, line in enumerate(lines)
        ]
        path.write_text("\n".join(spoiled) + "\n")


def texts_of(path: Path) -> Iterator[bytes]:
    """Everything that a file says, Parquet columns decoded."""
    content = path.read_bytes()
    yield content
    if content[:4] == b"PAR1":
        for column in pq.read_table(path).columns:
            yield repr(column.to_pylist()).encode()


def private_digests(home: Path) -> frozenset[str]:
    """Begins of the plain digests of everything that is private: files, their lines, snapshots.

    Exact tables begin with 32 random bytes, so that theirs say nothing.
    """
    digests = set()
    for zone in ("landing", "private"):
        for path in (home / zone).rglob("*"):
            if path.is_file() and not path.name.startswith("exact"):
                content = path.read_bytes()
                digests |= {
                    hashlib.sha256(part).hexdigest() for part in (content, *content.split(b"\n"))
                }
    noted = (home / "private").glob("*/*/r*/snapshot")
    empty = hashlib.sha256(b"").hexdigest()
    return frozenset(
        digest[:_BEGIN] for digest in (digests | {p.read_text() for p in noted}) - {empty}
    )


def holds_a_digest(content: bytes, digests: frozenset[str]) -> bool:
    """Whether any of them stands in a text, whole or its begin."""
    return any(word.decode()[:_BEGIN] in digests for word in _HEXADECIMAL.findall(content))


def leaks(home: Path) -> list[str]:
    """Files outside of the landing and private zones in which a canary or a digest is found."""
    leaking_files = []
    digests = private_digests(home)
    for path in sorted(home.rglob("*")):
        zone = path.relative_to(home).parts[0]
        if path.is_file() and zone not in ("landing", "private"):
            texts = list(texts_of(path))
            has_canary = any(c.encode() in text for c in (CARD, PLATE) for text in texts)
            if has_canary or any(holds_a_digest(text, digests) for text in texts):
                leaking_files.append(path.relative_to(home).as_posix())
    return leaking_files


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
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("DEBUG")
    returned: dict[str, str] = {}
    monkeypatch.setattr(run, "step_named", partial(recorded, returned))
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
    check_what_is_returned(returned, private_digests(planted.home))


def recorded(returned: dict[str, str], name: str) -> steps.Step:
    """A step that also notes what it returned."""
    step = steps.step_named(name)

    def act(programme: str, week: str, revision: int = 0) -> str:
        value = step(programme, week, revision)
        returned[f"{programme} {week} {name}"] = value
        return value

    return act


def check_what_is_returned(returned: dict[str, str], digests: frozenset[str]) -> None:
    """Every value that a step of a published week returned, and what it is computed from."""
    settings = Settings.from_environment()
    for programme in ("opal", "itms"):
        release = open_release(programme, WEEK)
        sealed, private = release.sealed, release.folders.private
        assert sealed is not None
        sealed_digest = str(sealed.artefact_digest)
        computed_from = {
            "ingest": commitment(
                bounding_secret(settings), (private / "snapshot").read_text()
            ),  # under a secret
            "validate": "warn",  # one word
            "plan": release.plan.digest,  # programme and calendar
            "count": returned[f"{programme} {WEEK} count"],  # a random name, see below
            "reserve": sealed.attempt_id,  # release key and number
            "draw": sealed_digest,  # noisy numbers
            "reconcile": sealed_digest,
            "assess": returned[f"{programme} {WEEK} assess"],
            "approve": "not required",
            "publish": sealed.manifest_digest,  # public bytes
            "audit": returned[f"{programme} {WEEK} audit"],
        }
        step_values = {
            name.split()[-1]: v for name, v in returned.items() if f"{programme} {WEEK}" in name
        }
        assert step_values == computed_from
        assert step_values["count"] not in (private / "exact").read_text()
        assert step_values["assess"] == "passed"
        assert not holds_a_digest(step_values["audit"].encode(), digests)
    assert tuple(step_values) == steps.STEPS
    assert not any(holds_a_digest(value.encode(), digests) for value in returned.values())


def test_the_search_finds_a_digest_that_is_there(landed: Deployment) -> None:
    """The negative control: of a file, of a line, of a snapshot; the begin of one."""
    digests = private_digests(landed.home)
    line = (landed.landing("opal") / "opal-2016-07-25.csv").read_bytes().split(b"\n")[7]
    identifier = hashlib.sha256(line).hexdigest()
    assert holds_a_digest(b"ingest returned " + identifier.encode(), digests)
    assert holds_a_digest(identifier[:_BEGIN].encode(), digests)
    assert not holds_a_digest(hashlib.sha256(b"else").hexdigest().encode(), digests)
    landed.public.mkdir(parents=True)
    (landed.public / "log.txt").write_text(identifier)
    assert leaks(landed.home) == ["public/log.txt"]


def test_the_search_finds_a_canary_that_is_there(deployment: Deployment) -> None:
    """The negative control: in text, in a database file, in a Parquet file."""
    import pyarrow as pa

    public = deployment.public
    public.mkdir(parents=True)
    (public / "log.txt").write_text(f"row of {CARD} rejected")
    pq.write_table(pa.table({"plate": [PLATE] * 9}), public / "t.parquet", compression="zstd")
    assert leaks(deployment.home) == ["public/log.txt", "public/t.parquet"]


@pytest.mark.long
def test_no_canary_leaves_the_private_zone_through_airflow(planted: Deployment) -> None:
    """Logs, XComs, the metadata database, the ledger, public files: all of them are searched."""
    for folder in ("dags", "plugins"):  # a deployment has them beside its include folder
        (planted.include.parent / folder).symlink_to(INCLUDE.parent / folder)
    ran = subprocess.run(
        [sys.executable, "-m", "turnstile_native.weekly_release", "--weeks", "2"],
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
