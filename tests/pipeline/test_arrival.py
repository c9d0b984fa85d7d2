"""What is missing of a week, in the operator's words; half-uploaded files are not whole."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from locked_folders import lock

from turnstile.errors import InputError, ProgrammeError
from turnstile.pipeline.landing.arrival import QUIET_FOR, arrival_of
from turnstile.programme.loading import load_programme, parse_programme
from turnstile.programme.source_spec import MissingDay
from turnstile.service_calendar import parse_period
from turnstile.sources.ingest.landing import find_files

INCLUDE = Path(__file__).resolve().parents[2] / "include"
SOURCE = load_programme("opal", INCLUDE).source
WEEK = parse_period("2016-W30")
MONTH = parse_period("2016-07-25..2016-08-07")


def _land(landing: Path, *names: str, week: str = "2016-W30") -> Path:
    folder = landing / "opal" / week
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return folder


def test_each_week_of_a_period_that_has_no_file_is_named(tmp_path: Path) -> None:
    _land(tmp_path, "a.csv")
    arrival = arrival_of(SOURCE, MONTH, tmp_path)
    assert arrival.missing == ("no file in landing/opal/2016-W31",)
    assert not arrival.is_complete(datetime.max.replace(tzinfo=UTC))


def test_files_are_complete_once_nothing_is_written_to_them_for_a_while(tmp_path: Path) -> None:
    file = _land(tmp_path, "a.csv", ".b.csv.part") / "a.csv"
    changed = datetime.fromtimestamp(file.stat().st_ctime, UTC)
    arrival = arrival_of(SOURCE, WEEK, tmp_path)
    assert not arrival.is_complete(changed + QUIET_FOR - timedelta(seconds=1))
    assert arrival.is_complete(changed + QUIET_FOR)
    assert "still written to" in str(arrival)
    with file.open("a") as stream:
        stream.write("one row more\n")
    assert arrival_of(SOURCE, WEEK, tmp_path).complete_at != arrival.complete_at


def test_where_files_are_named_by_day_each_service_day_must_have_one(tmp_path: Path) -> None:
    days = [f"opal_201607{day}.csv" for day in (25, 26, 27, 28, 29, 31)]
    folder = _land(tmp_path, *days)
    assert arrival_of(SOURCE, WEEK, tmp_path).missing == ("no file of service day 2016-07-30",)
    with_gap = replace(SOURCE, missing_day=MissingDay.PUBLISH_WITH_GAP)
    assert arrival_of(with_gap, WEEK, tmp_path).missing == ()
    (folder / "opal_20160730.csv").touch()
    assert arrival_of(SOURCE, WEEK, tmp_path).missing == ()
    (folder / "opal_20160730.csv").unlink()
    (folder / "late_rows.csv").touch()  # a file that is not named by day: the rows will show
    assert arrival_of(SOURCE, WEEK, tmp_path).missing == ()


def test_a_programme_may_ask_for_a_number_of_files_and_for_a_marker(tmp_path: Path) -> None:
    source = replace(SOURCE, files_at_least=2, marker="opal/{week}/.whole")
    folder = _land(tmp_path, "a.csv")
    assert arrival_of(source, WEEK, tmp_path).missing == (
        "1 of 2 files in landing/opal/2016-W30",
        "no landing/opal/2016-W30/.whole yet, which says that the week is complete",
    )
    _land(tmp_path, "b.csv", ".whole")
    changed = max(path.stat().st_ctime for path in folder.glob("[ab].csv"))
    assert arrival_of(source, WEEK, tmp_path).is_complete(datetime.fromtimestamp(changed, UTC))


def test_a_marker_that_would_be_read_as_data_is_refused() -> None:
    text = (INCLUDE / "programmes/opal.yaml").read_text(encoding="utf-8")
    asked = text.replace("  missing_day: refuse", '  marker: "opal/{week}/%s"')
    parse_programme(asked % ".whole", "opal.yaml")
    with pytest.raises(ProgrammeError, match="marker: would be read as data"):
        parse_programme(asked % "_SUCCESS", "opal.yaml")


@pytest.mark.parametrize("lists", [False, True])
def test_a_folder_that_cannot_be_read_is_waited_for_and_never_passed_over(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lists: bool,  # noqa: FBT001 - of a case
) -> None:
    """A glob passes over it: of a week in several folders the others would be published."""
    folders = replace(SOURCE, landing="opal/{week}/*/*.csv")
    for depot in ("north", "south"):
        (tmp_path / "opal/2016-W30" / depot).mkdir(parents=True)
        (tmp_path / "opal/2016-W30" / depot / "trips.csv").touch()
    assert len(find_files(tmp_path, folders.landing, WEEK)) == 2
    south = tmp_path / "opal/2016-W30/south"
    place = south.relative_to(tmp_path.parent)
    rule = f"{place} cannot be read (Permission denied); mend its rights or the disk"
    with monkeypatch.context() as broken:
        lock(south, broken, lists=lists)
        assert arrival_of(folders, WEEK, tmp_path).missing == (rule,)
        with pytest.raises(InputError, match=re.escape(rule)):
            find_files(tmp_path, folders.landing, WEEK)
    assert arrival_of(folders, WEEK, tmp_path).missing == ()
