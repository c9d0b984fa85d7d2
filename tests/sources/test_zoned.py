"""The SQL of clocks agrees with the standard library, also in the weeks of a change."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.service_calendar import ServiceWeek
from turnstile.sources.feeds.zoned import changes_around, stamped_sql

_STAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?)(?:[.,]\d+)?[ \t\u00a0\u202f]*"
    r"(?:(Z)|([+-]\d{2})(?::?(\d{2}))?)?",
    re.ASCII,
)

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


def _read(zone: ZoneInfo, written: str) -> datetime | None:
    """Return the instant of a text, naive UTC, by the standard library; None of no timestamp."""
    match = _STAMP.fullmatch(written)
    try:
        clock = datetime.fromisoformat(f"{match[1]} {match[2]}") if match else None
    except ValueError:
        return None
    if match is None or clock is None:
        return None
    if match[3]:
        return clock
    if match[4]:
        sign = -1 if match[4].startswith("-") else 1
        return clock - sign * timedelta(hours=abs(int(match[4])), minutes=int(match[5] or 0))
    return clock.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)


@given(
    second=st.integers(0, 7 * 86_400),
    between=st.sampled_from(["T", " ", "  ", "t", "_"]),
    mark=st.sampled_from(
        ["", "Z", "z", "+10:00", "+11:00", "-10:00", "+1000", "+10", "+05:30", "+10:000", " +10:00"]
    ),
    cut=st.integers(0, 30),
    put=st.sampled_from(["", "", "", " ", "0", "-", ":", ".5", "\u0661", "\u00a0", "\n", "é"]),
)
def test_a_text_that_is_nearly_plain_reads_as_the_standard_library_reads_it(
    second: int, between: str, mark: str, cut: int, put: str
) -> None:
    zone, week = ZoneInfo("Australia/Sydney"), ServiceWeek.parse("2016-W39")
    clock = datetime.combine(week.monday, datetime.min.time()) + timedelta(seconds=second)
    written = f"{clock:%Y-%m-%d}{between}{clock:%H:%M:%S}{mark}"
    if put:
        written = written[:cut] + put + written[cut + 1 :]
    relation = stamped_sql("(SELECT ? AS written)", "written", zone, week)
    (utc,) = duckdb.execute(f"SELECT utc FROM {relation}", [written]).fetchall()[0]
    assert utc == _read(zone, written)


@pytest.mark.parametrize("mark", ["", "Z", "+10:00", "+11:00"])
def test_a_plain_text_reads_as_the_same_one_with_a_fraction_that_is_taken_apart(mark: str) -> None:
    zone, week = ZoneInfo("Australia/Sydney"), ServiceWeek.parse("2016-W39")
    start = datetime.combine(week.monday, datetime.min.time()) - timedelta(days=1)
    clocks = [start + timedelta(minutes=7 * n) for n in range(9 * 1440 // 7)]
    plain, apart = (
        ", ".join(f"('{clock.isoformat()}{fraction}{mark}')" for clock in clocks)
        for fraction in ("", ".0")
    )
    instants = [
        duckdb.execute(
            "SELECT local, utc "
            f"FROM {stamped_sql(f'(VALUES {values}) AS t(written)', 'written', zone, week)}"
        ).fetchall()
        for values in (plain, apart)
    ]
    assert instants[0] == instants[1]
