"""What the gates get beside the sealed bytes: files under embargo, timetable, trials of units."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deployment_fixtures import BegunWeek
from small_deployment import WEEK, Deployment

from turnstile.errors import ProgrammeError, RefusedError, TurnstileError
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.pipeline.steps import step_named
from turnstile.programme.loading import load_programme
from turnstile.publishing.explore.lines_of_map import public_lines

Cli = Callable[..., int]
FEED = {
    "agency.txt": "agency_name,agency_url,agency_timezone\nA,https://a.example,Asia/Kolkata\n",
    "routes.txt": "route_id,route_short_name,route_type\n12,12,3\n",
    "trips.txt": "route_id,service_id,trip_id\n12,daily,run-7\n",
    "stops.txt": "stop_id,stop_name,stop_lat,stop_lon\nchowk,Chowk,21.195,72.819\n",
    "stop_times.txt": "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n"
    "run-7,09:20:00,09:20:00,chowk,1\n",
}


def embargoed(landed: Deployment) -> Path:
    return landed.home / "embargoed/itms" / WEEK / "r0"


def test_a_second_sealed_file_stops_the_week(
    begun_week: BegunWeek,
) -> None:
    folder = embargoed(begun_week("itms", "assess"))
    second = folder / "sealed-fedcba9876543210.parquet"
    second.write_bytes(b"another draw of the same week")
    with pytest.raises(TurnstileError, match="2 distinct sealed byte strings"):
        step_named("assess")("itms", WEEK, 0)
    report = json.loads((folder / "assessment.json").read_bytes())
    assert [gate["gate"] for gate in report["gates"] if gate["outcome"] == "FAILED"] == [
        "one_sealed"
    ]
    second.unlink()
    assert step_named("assess")("itms", WEEK, 0) == "passed"


def test_a_sealed_file_that_the_ledger_does_not_know_is_refused_before_a_charge(
    landed: Deployment, turnstile: Cli
) -> None:
    assert landed.nothing_happened()  # in a ledger that is there
    folder = embargoed(landed)
    folder.mkdir(parents=True)
    unknown = folder / "sealed-0123456789abcdef.parquet"
    unknown.write_bytes(b"of a ledger that was restored too old")
    assert turnstile("run", "itms", "--week", WEEK) == 4
    assert unknown.exists()
    assert landed.nothing_happened()


def test_a_late_draw_whose_bytes_were_removed_is_refused_in_a_sentence(
    begun_week: BegunWeek,
    turnstile: Cli,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = embargoed(begun_week("itms", "draw"))

    def seal(*_: object) -> None:  # another draw has the key, and removed what this one wrote
        for leftover in folder.glob("sealed-*"):
            leftover.unlink()
        raise RefusedError("it is burned")

    with monkeypatch.context() as late:
        late.setattr(Ledger, "seal", seal)
        assert turnstile("run", "itms", "--week", WEEK) == 3
    assert "it is burned" in capsys.readouterr().err


@pytest.mark.long
def test_a_release_shows_what_the_timetable_of_its_programme_shows(
    landed: Deployment, turnstile: Cli
) -> None:
    with zipfile.ZipFile(landed.include / "domains/feed.zip", "w") as packed:
        for name, text in FEED.items():
            packed.writestr(name, text)
    landed.edit("itms", "  outside: drop", "  outside: drop\n  timetable: domains/feed.zip")
    assert turnstile("run", "itms", "--week", WEEK) == 0
    report = json.loads((embargoed(landed) / "assessment.json").read_bytes())
    (cell,) = report["timetable"]["cells"]
    assert (cell["slot"], cell["trip_ids"], cell["stop_ids"]) == ("09:00", ["run-7"], ["chowk"])
    gates = {gate["gate"]: gate["statement"] for gate in report["gates"]}
    assert "none moves a table farther than is declared" in gates["declared_sensitivity"]


def test_a_timetable_outside_of_the_public_folder_is_refused(
    landed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    landed.edit("itms", "  outside: drop", "  outside: drop\n  timetable: ../var/feed.zip")
    assert turnstile("run", "itms", "--week", WEEK) == 2
    assert "timetable" in capsys.readouterr().err
    assert not [e for e in landed.ledger.entries() if e.kind is EntryKind.RESERVED]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("feed.zip", "no feed", "feed.zip"),
        ("holidays.csv", "service_date,holiday\n25 July,Market\n", "service_date"),
    ],
)
def test_a_public_file_that_a_later_step_reads_is_tried_before_anything_is_held(
    landed: Deployment,
    turnstile: Cli,
    capsys: pytest.CaptureFixture[str],
    file: str,
    text: str,
    said: str,
) -> None:
    """A slip in it stopped a week that was charged, or one that was public already."""
    place = landed.include / "domains" / file
    if file == "feed.zip":
        landed.edit("itms", "  outside: drop", f"  outside: drop\n  timetable: domains/{file}")
    else:
        landed.edit("itms", "publish:\n", f"publish:\n  holidays: domains/{file}\n")
    place.write_text(text)
    assert turnstile("check", "itms") == 2
    assert said in capsys.readouterr().err
    assert turnstile("run", "itms", "--week", WEEK) == 2
    assert said in capsys.readouterr().err
    assert not [e for e in landed.ledger.entries() if e.kind is EntryKind.RESERVED]


@pytest.mark.parametrize("is_whole", [True, False])
def test_ways_of_a_map_that_lack_a_column_are_refused_in_a_sentence(
    landed: Deployment, *, is_whole: bool
) -> None:
    itms = load_programme("itms", landed.include)
    without_area = replace(itms.domain, service_area=None, timetable="domains/feed.zip")
    programme = replace(itms, domain=without_area)
    rows = (
        "shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence",
        "S,21.1,72.1,1",
        "S,21.2,72.2,2",
    )
    if not is_whole:
        rows = tuple(row.rpartition(",")[0] for row in rows)
    with zipfile.ZipFile(landed.include / "domains/feed.zip", "w") as packed:
        for name, content in {**FEED, "shapes.txt": "\n".join(rows)}.items():
            packed.writestr(name, content)
    if is_whole:
        assert public_lines(programme, landed.include) == [[(72.1, 21.1), (72.2, 21.2)]]
        return
    with pytest.raises(ProgrammeError, match="shape_pt_sequence"):
        public_lines(programme, landed.include)
