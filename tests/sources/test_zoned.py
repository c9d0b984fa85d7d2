"""The SQL of clocks agrees with the standard library, also in the weeks of a change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import duckdb
import pytest

from turnstile.service_calendar import ServiceWeek
from turnstile.sources.zoned import changes_around, stamped_sql

_WEEKS = [
    ("Australia/Sydney", "2016-W13"),
    ("Australia/Sydney", "2016-W39"),
    ("America/Chicago", "2015-W10"),
    ("America/Chicago", "2016-W44"),
    ("Asia/Kolkata", "2022-W01"),
    ("Australia/Lord_Howe", "2016-W13"),
    ("America/St_Johns", "2016-W10"),
]


@pytest.mark.parametrize(("zone_name", "week_name"), _WEEKS)
def test_instants_read_as_the_standard_library_reads_them(zone_name: str, week_name: str) -> None:
    zone, week = ZoneInfo(zone_name), ServiceWeek.parse(week_name)
    start = datetime.combine(week.monday, datetime.min.time(), UTC) - timedelta(days=1)
    instants = [start + timedelta(minutes=7 * n) for n in range(9 * 1440 // 7)]
    for write in (lambda at: at.isoformat(), lambda at: at.astimezone(zone).isoformat(" ")):
        values = ", ".join(f"('{write(at)}')" for at in instants)
        relation = stamped_sql(f"(VALUES {values}) AS t(written)", "written", zone, week)
        query = f"SELECT local, utc FROM {relation}"
        wanted = [
            (at.astimezone(zone).replace(tzinfo=None), at.replace(tzinfo=None)) for at in instants
        ]
        assert duckdb.execute(query).fetchall() == wanted


@pytest.mark.parametrize(("zone_name", "week_name"), _WEEKS)
def test_local_clocks_read_as_the_standard_library_reads_them(
    zone_name: str, week_name: str
) -> None:
    zone, week = ZoneInfo(zone_name), ServiceWeek.parse(week_name)
    start = datetime.combine(week.monday, datetime.min.time()) - timedelta(days=1)
    clocks = [start + timedelta(minutes=7 * n) for n in range(9 * 1440 // 7)]
    values = ", ".join(f"('{clock.isoformat(' ')}')" for clock in clocks)
    relation = stamped_sql(f"(VALUES {values}) AS t(written)", "written", zone, week)
    query = f"SELECT local, utc FROM {relation}"
    wanted = [
        (clock, clock.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)) for clock in clocks
    ]
    assert duckdb.execute(query).fetchall() == wanted


def test_a_zone_without_daylight_saving_has_no_change() -> None:
    assert changes_around(ZoneInfo("Asia/Kolkata"), ServiceWeek(2022, 1)) == ()
