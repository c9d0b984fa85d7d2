"""A package holds what is declared, and nothing else: every addition is named, whatever it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from kept_homes import OF_0_1_0, unpacked

from turnstile.estimates.week_estimates import promise_values
from turnstile.estimates.week_to_estimate import Promise
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import TableSpec
from turnstile.publishing.allowed_contents import JSON_FILES
from turnstile.publishing.contents_check import _unknown, unknown_contents


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public zone of a home that version 0.1.0 made."""
    return unpacked(OF_0_1_0, tmp_path_factory.mktemp("kept")) / "public"


@pytest.fixture
def package(kept: Path, tmp_path: Path) -> Path:
    """One package of it, to be spoiled."""
    return Path(shutil.copytree(kept / "opal/2016-W30/r0", tmp_path / "r0"))


def test_packages_of_version_0_1_0_hold_nothing_unknown(kept: Path) -> None:
    packages = [path.parent for path in kept.glob("*/????-W??/r*/plan.json")]
    assert len(packages) >= 2
    assert {package: unknown_contents(package) for package in packages} == dict.fromkeys(
        packages, ()
    )


def test_whatever_estimates_are_made_from_may_stand_in_a_card() -> None:
    """A field that the card states and no list names stopped a week after its draw was charged."""
    table = TableSpec("some", ("tap_on_slot",), classes=(1,), clamp_minutes=20)
    whole = Promise(
        RowShape.TRIPS, (table,), 15, False, True, (table,), {"Acacia": "North"}, (table,)
    )
    assert all(getattr(whole, part.name) is not None for part in fields(Promise))
    stated = json.loads(json.dumps(promise_values(whole)))
    assert {*stated} == {part.name for part in fields(Promise)}
    allowed: Any = JSON_FILES["release_card.json"]["estimates"]
    assert [*_unknown({"promise": stated}, {"promise": allowed["promise"]})] == []
    assert [*_unknown({"promise": stated | {"others": 1}}, {"promise": allowed["promise"]})]


def _with_column(name: str, *, part: str = "measurements") -> Callable[[Path], None]:
    """Add a column to a table of the package, in both formats."""

    def spoil(package: Path) -> None:
        path = package / part / "on_time.parquet"
        table = pq.read_table(path)
        values = pa.array(np.arange(table.num_rows))
        wider = table.append_column(name, values)
        pq.write_table(wider, path)
        pcsv.write_csv(wider, path.with_suffix(".csv"))

    return spoil


def _with_field(file: str, *keys: str) -> Callable[[Path], None]:
    """Add a field to a JSON file."""

    def spoil(package: Path) -> None:
        content = json.loads((package / file).read_bytes())
        place = content
        for key in keys[:-1]:
            place = place[0] if key == "[]" else place[key]
        place[keys[-1]] = 20_123
        (package / file).write_text(json.dumps(content))

    return spoil


def _with_file(name: str) -> Callable[[Path], None]:
    """Add a file."""

    def spoil(package: Path) -> None:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("count\n17\n")

    return spoil


def _in_floats(package: Path) -> None:
    """Publish a measurement as floating-point numbers."""
    path = package / "measurements/on_time.parquet"
    table = pq.read_table(path)
    index = table.column_names.index("count")
    pq.write_table(table.set_column(index, "count", table.column("count").cast("double")), path)


def _in_metadata(package: Path) -> None:
    """Hide a word in the metadata of a table."""
    path = package / "measurements/on_time.parquet"
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({b"rows_read": b"20123"}), path)


def _as_link(package: Path) -> None:
    """Put a link in place of a file."""
    (package / "tables/on_time.csv").unlink()
    (package / "tables/on_time.csv").symlink_to("/etc/hostname")


SPOILED: dict[str, tuple[Callable[[Path], None], str]] = {
    "true counts": (_with_column("exact"), "column exact has no source"),
    "true counts in a presented table": (_with_column("exact", part="tables"), "column exact"),
    "a card's id": (_with_column("card_id"), "column card_id has no source"),
    "a registered column elsewhere": (_with_column("estimate"), "column estimate has no source"),
    "a statistic that was not drawn": (_with_column("buses"), "column buses was not drawn"),
    "rows read, on the card": (_with_field("release_card.json", "rows_read"), "field rows_read"),
    "rows read, deeper": (
        _with_field("release_card.json", "guarantee", "units", "trip", "rows"),
        "field guarantee.units.trip.rows",
    ),
    "in a list of the card": (
        _with_field("release_card.json", "draws", "[]", "mean"),
        "field draws.mean",
    ),
    "in the plan": (_with_field("plan.json", "events", "[]", "rows"), "field events.rows"),
    "in the assessment": (_with_field("assessment.json", "true_total"), "field true_total"),
    "in the descriptor": (_with_field("datapackage.json", "rows"), "field rows"),
    "in the manifest": (_with_field("manifest.json", "rows"), "field rows"),
    "an extra file": (_with_file("notes.csv"), "notes.csv: no file of a package"),
    "a hidden file": (_with_file(".cache"), ".cache: no file of a package"),
    "a table that was not planned": (_with_file("tables/exact.csv"), "no table of the plan"),
    "a folder below": (_with_file("tables/raw/on_time.csv"), "no file of a package"),
    "floats": (_in_floats, "column count holds no 64-bit integers"),
    "metadata": (_in_metadata, "metadata rows_read has no source"),
    "a link": (_as_link, "is a link"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_whatever_is_added_is_named(package: Path, name: str) -> None:
    spoil, words = SPOILED[name]
    assert unknown_contents(package) == ()
    spoil(package)
    assert any(words in problem for problem in unknown_contents(package))


def test_a_package_without_a_plan_is_unknown_as_a_whole(package: Path) -> None:
    (package / "plan.json").unlink()
    assert "nothing says what was planned" in unknown_contents(package)[0]
