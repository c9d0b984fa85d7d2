"""What the gates get beside the sealed bytes: files under embargo, timetable, trials of units."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from deployment_fixtures import BegunWeek
from small_deployment import WEEK, Deployment

from turnstile.errors import RefusedError, TurnstileError
from turnstile.ledger.ledger import Ledger
from turnstile.pipeline.steps import step_named

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
