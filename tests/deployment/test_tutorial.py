"""docs/TUTORIAL.md, its commands run exactly as they are printed; and that no raw column leaks."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from printed_commands import ROOT, clone_in, run

PAGE = (ROOT / "docs/TUTORIAL.md").read_text()
TAPS, COUNTERS, BUSES = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
# A fresh clone's environment is that of this test; the rest of the line is as printed.
NOT_RUN = ("make env", "export PATH")
COMMANDS_AT_MOST = 9
PRIVATE = ("var/private", "var/landing")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with what a clone holds that people edit."""
    return clone_in(tmp_path)


def plant(clone: Path) -> list[str]:
    """Put a mark into each of the 24 columns, each in a record of its own, beside a good one."""
    monday = min((clone / "var/landing/tides/2016-W30").glob("*.csv"))
    header, first, *_ = csv.reader(monday.read_text().splitlines())
    marks = [f"CANARY{number:02d}Q" for number in range(len(header))]
    with monday.open("a", newline="") as stream:
        for place, mark in enumerate(marks):
            fields = [*first]
            fields[0] = f"planted-{place}"
            fields[place] = mark
            csv.writer(stream, lineterminator="\n").writerow(fields)
    return marks


@pytest.mark.long
def test_a_week_of_taps_is_published_and_no_raw_column_leaks(clone: Path) -> None:
    lines = TAPS.strip().splitlines()
    assert len(lines) <= COMMANDS_AT_MOST
    said, marks = [], []
    for line in lines:
        if not line.startswith(NOT_RUN):
            said.append(run(line, clone))
        if "sample" in line:
            marks = plant(clone)
    assert "as published; signed" in said[-1]
    assert len(marks) == 24
    files = {path for path in clone.rglob("*") if path.is_file()}
    outputs = [p for p in files if not str(p.relative_to(clone)).startswith(PRIVATE)]
    seen = b"\n".join([*(path.read_bytes() for path in outputs), *(s.encode() for s in said)])
    assert [mark for mark in marks if mark.encode() in seen] == []
    private = b"".join(p.read_bytes() for p in files if "private" in p.parts)
    assert any(mark.encode() in private for mark in marks), "the marks were read at all"
    sheet = (clone / "include/programmes/tides.decisions.md").read_text()
    header = next(iter((clone / "var/landing/tides/2016-W30").glob("*.csv"))).read_text()
    for column in header.splitlines()[0].split(","):
        assert f"| `{column}` | " in sheet


@pytest.mark.long
@pytest.mark.parametrize("lines", [COUNTERS, BUSES], ids=["door counters", "buses"])
def test_a_week_of_another_feed_is_published(clone: Path, lines: str) -> None:
    said = [run(line, clone) for line in lines.strip().splitlines()]
    assert "as published; signed" in said[-1]


def test_the_sample_is_tides(clone: Path) -> None:
    schemas = ROOT.parent / "shared/data/tides_1.0"
    if not schemas.is_dir():
        pytest.skip("the TIDES schemas are not there")
    import frictionless

    run("turnstile sample tides --weeks 2016-W30 --rows 200", clone)
    file = min((clone / "var/landing/tides/2016-W30").glob("*.csv"))
    schema = frictionless.Schema(str(schemas / "fare_transactions.schema.json"))
    with frictionless.system.use_context(trusted=True):
        report = frictionless.Resource(path=str(file), schema=schema).validate()
        assert report.valid, report.flatten(["fieldName", "note"])
        text = file.read_text().replace("Smart card or ticket", "a card")
        (file.parent / "broken.csv").write_text(text)
        broken = frictionless.Resource(path=str(file.parent / "broken.csv"), schema=schema)
        assert not broken.validate().valid
