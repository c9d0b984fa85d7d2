"""Small programmes, their public domains, and a count of rows that a test writes down."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

import h3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bare_programme import bare_programme

from turnstile.counting.exact_tables import count
from turnstile.measures.registry import Measure
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.source_spec import Feed, SourceSpec
from turnstile.programme.spec import DomainSpec, Outside, Programme, TableSpec, TimeSpec, UnitBound

MONDAY = date(2016, 7, 25)
CENTER = h3.latlng_to_cell(21.17, 72.83, 7)
TRIP_SCHEMA = pa.schema(
    [
        ("card_id", pa.string()),
        ("mode", pa.string()),
        ("service_date", pa.date32()),
        ("tap_on_minute", pa.int32()),
        ("tap_on_location", pa.string()),
        ("tap_off_date", pa.date32()),
        ("tap_off_minute", pa.int32()),
        ("tap_off_location", pa.string()),
        ("batch", pa.string()),
    ]
)
READING_SCHEMA = pa.schema(
    [
        ("vehicle_id", pa.string()),
        ("observed_at_utc", pa.timestamp("us")),
        ("service_date", pa.date32()),
        ("minute_of_day", pa.int32()),
        ("latitude", pa.float64()),
        ("longitude", pa.float64()),
        ("speed_milli_kmh", pa.int64()),
        ("mode", pa.string()),
        ("batch", pa.string()),
    ]
)
Counted = dict[tuple[str, str, date | None], np.ndarray]


def _programme(feed: Feed, modes: tuple[str, ...], **changes: object) -> Programme:
    common = {
        "source": SourceSpec(feed=feed, landing="*", modes=modes),
        "time": TimeSpec(ZoneInfo("Asia/Kolkata"), slot_minutes=360),
        "domain": DomainSpec(
            "domains/stops.csv", "domains/cells.csv", 7, 0, 0, 1440, Outside.UNKNOWN
        ),
    }
    return bare_programme(**(common | changes))


@pytest.fixture(scope="session")
def include(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of small public files."""
    folder = tmp_path_factory.mktemp("include")
    (folder / "domains").mkdir()
    (folder / "domains/stops.csv").write_text(
        "mode,location,area\nbus,b1,2000\nbus,b2,2000\nbus,b3,2010\ntrain,t1,Central\n"
        "train,t2,Redfern\n"
    )
    (folder / "domains/cells.csv").write_text("\n".join(["cell", *h3.grid_disk(CENTER, 1)]))
    return folder


@pytest.fixture(scope="session")
def trip_programme() -> Programme:
    """Six marginals, 6-hour slots, no bound on a card."""
    tables = tuple(
        TableSpec("_".join(by), by)
        for by in (
            ("tap_on_slot",),
            ("tap_on_location",),
            ("tap_off_slot",),
            ("tap_off_location",),
            ("tap_on_slot", "tap_on_location"),
            ("tap_off_location", "tap_off_slot"),
        )
    )
    return _programme(Feed.OPAL_TRIPS, ("train", "bus"), tables=tables)


@pytest.fixture(scope="session")
def bus_programme() -> Programme:
    """Mean speed up to 40 km/h, buses, buses above 25 and 50 km/h; hourly, 9:00-21:00."""
    axes = ("slot", "cell")
    return _programme(
        Feed.ITMS,
        ("bus",),
        time=TimeSpec(ZoneInfo("Asia/Kolkata"), slot_minutes=60),
        domain=DomainSpec(None, "domains/cells.csv", 7, 0, 540, 1260, Outside.DROP),
        units=(),
        tables=(
            TableSpec("speed", axes, Measure.MEAN_SPEED, clamp_kmh=40),
            TableSpec("speeding", axes, Measure.BUSES_OVER, limits_kmh=(25, 50)),
        ),
    )


@dataclass(frozen=True)
class Lab:
    """Counts rows that a test writes down, under the bounds that it asks for."""

    programme: Programme
    domain: PublicDomain

    def bounded(
        self,
        unit: ProtectionUnit,
        at_most: int,
        *,
        once: bool = False,
        finest: bool = False,
        coarse: int | None = None,
    ) -> Lab:
        """Return the same with one more bound."""
        bounds = (*self.programme.units, UnitBound(unit, at_most, once, finest, coarse))
        return replace(self, programme=replace(self.programme, units=bounds))

    def count(
        self,
        *files: Sequence[tuple[object, ...]],
        days: Sequence[date] = (MONDAY,),
        secret: bytes = b"a secret of the release",
    ) -> Counted:
        """Write files of rows, one list of rows a file, and count them."""
        with tempfile.TemporaryDirectory() as folder:
            for number, rows in enumerate(files):
                for day in {row[2] for row in rows}:
                    day_rows = [row for row in rows if row[2] == day]
                    self._write(day_rows, Path(folder) / f"service_date={day}", number)
            tables = count(
                self.programme,
                self.domain,
                days,
                Path(folder),
                secret=secret,
                work=Path(folder) / "work",
                progress=lambda _: None,
            )
        return {table.label: table.reveal_to_mechanism() for table in tables}

    def _write(self, rows: Sequence[tuple[object, ...]], place: Path, number: int) -> None:
        trips = self.programme.source.feed is Feed.OPAL_TRIPS
        schema = TRIP_SCHEMA if trips else READING_SCHEMA
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)]
        place.mkdir(exist_ok=True)
        pq.write_table(pa.table(arrays, schema=schema), place / f"part-{number:03d}.parquet")


@pytest.fixture(scope="session")
def trip_lab(trip_programme: Programme, include: Path) -> Lab:
    return Lab(trip_programme, load_domain(trip_programme, include))


@pytest.fixture(scope="session")
def bus_lab(bus_programme: Programme, include: Path) -> Lab:
    return Lab(bus_programme, load_domain(bus_programme, include))
