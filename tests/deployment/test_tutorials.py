"""Each tutorial of docs/tutorials: its commands run as printed, its tables counted by pandas."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_homes import ROOT
from pandas_trips import pandas_tables
from pandas_vehicles import vehicle_tables
from printed_commands import clone_in, run, run_here
from tutorial_rows import REAL, TRIED

from turnstile.counting.exact_store import load_exact
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain, layout
from turnstile.programme.loading import load_programme
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.release.zones import BOUNDING_KEY
from turnstile.service_calendar import ServiceWeek

PAGES = {page.stem: page.read_text() for page in (ROOT / "docs/tutorials").glob("*.md")}
LINES_AT_MOST = 60  # a screen and a half
_PARTS = re.compile(r"In `(?P<file>[^`]+)`, under `(?P<under>\w+):`\n\n```yaml\n(?P<keys>.*?)```|"
                    r"```sh\n(?P<commands>.*?)```", re.DOTALL)  # fmt: skip
Tables = dict[tuple[str, str, date | None], np.ndarray]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with what a clone holds that people edit, and what was delivered to them."""
    (tmp_path / "delivered").mkdir()
    return clone_in(tmp_path)


def follow(page: str, clone: Path, *, is_quick: bool) -> list[str]:
    """Do what a tutorial says, and return what its commands printed; quickly in this process."""
    do = run_here if is_quick else run
    said = []
    for part in _PARTS.finditer(page):
        if part["keys"]:
            _write(clone / part["file"], part["under"], part["keys"].splitlines())
        else:
            said += [do(line, clone) for line in part["commands"].strip().splitlines()]
    return said


def _write(file: Path, section: str, keys: list[str]) -> None:
    """Write keys into a section of a programme, in place of those that are there."""
    names = {key.partition(":")[0] for key in keys}
    lines = file.read_text().splitlines()
    begin = lines.index(f"{section}:") + 1
    end = next(n for n in range(begin, len(lines)) if lines[n] and lines[n][0] not in " #")
    kept_lines = [line for line in lines[begin:end] if line.strip().partition(":")[0] not in names]
    lines[begin:end] = [*(f"  {key}" for key in keys), *kept_lines]
    file.write_text("\n".join(lines) + "\n")


def exact_tables(clone: Path, programme: str, week: str) -> Tables:
    folder = clone / f"var/private/{programme}/{week}/r0"
    tables = load_exact(folder, (folder / "exact").read_text())
    return {table.label: table.reveal_to_mechanism() for table in tables}


def by_pandas(
    clone: Path, programme: Programme, domain: PublicDomain, week: str, rows: pd.DataFrame
) -> Tables:
    """The exact tables of a week by another way."""
    secret = (clone / "var/private" / BOUNDING_KEY).read_bytes()
    if programme.source.feed.shape is RowShape.TELEMETRY:
        return vehicle_tables(programme, domain, rows, secret)
    days = ServiceWeek.parse(week).days
    if programme.source.feed.names_nobody:
        return _rides(programme, domain, days, rows)
    for day in days:
        folder = clone / f"rows/service_date={day}"
        folder.mkdir(parents=True, exist_ok=True)
        rows[rows["service_date"] == str(day)].to_parquet(folder / "part-000.parquet")
    return pandas_tables(programme, domain, days, clone / "rows", secret)


def _rides(
    programme: Programme, domain: PublicDomain, days: tuple[date, ...], rows: pd.DataFrame
) -> Tables:
    """Boardings and alightings by slot and place."""
    area = {(stop.mode, stop.location): stop.area for stop in domain.places}
    rows = rows.assign(
        slot=[f"{minute // 60:02d}:00" for minute in rows["minute"]],
        area=[area.get(pair) for pair in zip(rows["mode"], rows["place"], strict=True)],
    ).dropna(subset="area")
    vectors = {}
    for table in programme.tables:
        side_rows = rows[rows["is_off"] == table.by[0].startswith("tap_off")]
        for day in days:
            counts = np.zeros(domain.cells(table), dtype=np.int64)
            for mode, segment in zip(domain.modes, layout(domain, table), strict=True):
                axes = [list(domain.dimension(mode, name).labels) for name in table.by]
                of_day = side_rows[
                    (side_rows["service_date"] == str(day)) & (side_rows["mode"] == mode)
                ]
                for slot, place, number in of_day[["slot", "area", "number"]].itertuples(
                    index=False
                ):
                    at = np.ravel_multi_index(
                        (axes[0].index(slot), axes[1].index(place)), segment.shape
                    )
                    counts[segment.offset + at] += number
            vectors[table.name, "count", day] = counts
    return vectors


def differing(vectors: Tables, wanted: Tables) -> list[str]:
    """Names of the vectors that are not the same."""
    named = {(*label[:2], str(label[2])): counts for label, counts in wanted.items()}
    return [
        f"{'/'.join(map(str, label))}: {counts.sum()} and {other.sum()}"
        for label, counts in vectors.items()
        if not np.array_equal(
            counts, other := named.get((*label[:2], str(label[2])), np.zeros_like(counts))
        )
    ]


LONG = [name for name, tutorial in TRIED.items() if not tutorial.is_quick]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long if n in LONG else ()) for n in TRIED]
)
def test_a_tutorial_leads_from_files_to_a_package_that_anybody_verifies(
    name: str, clone: Path
) -> None:
    page, how = PAGES[name], TRIED[name]
    if how.real and not (REAL / how.real).is_dir():
        pytest.skip("the real files are not there")
    how.deliver(clone)
    said = follow(page, clone, is_quick=how.is_quick)
    assert said[-1].startswith("verified") or "as published" in said[-1], said[-1]
    command = re.search(r"turnstile run (\w+) --week (\S+)", page)
    assert command is not None
    programme = load_programme(command[1], clone / "include")
    domain, rows = load_domain(programme, clone / "include"), how.rows(clone)
    exact = exact_tables(clone, *command.groups())
    assert any(counts.any() for counts in exact.values())
    assert differing(exact, by_pandas(clone, programme, domain, command[2], rows)) == []
    fewer = rows.drop(rows.index[len(rows) // 3 : 2 * len(rows) // 3])  # a count of other rows
    assert differing(exact, by_pandas(clone, programme, domain, command[2], fewer))


def test_every_tutorial_is_tried_and_fits_a_screen_and_a_half() -> None:
    assert sorted(PAGES) == sorted(TRIED)
    assert {
        name: n for name, page in PAGES.items() if (n := page.count("\n")) > LINES_AT_MOST
    } == {}
