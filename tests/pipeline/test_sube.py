"""The real SUBE day of Buenos Aires runs as its own programme, with the card-day as its unit."""

from __future__ import annotations

import hmac
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bounding_messages import message
from small_deployment import Deployment
from sube_day import DAY, SOUTH_TENTHS, WEEK, WEST_TENTHS, grid, place_of, published

from turnstile.cli import main
from turnstile.counting.exact_store import load_exact
from turnstile.counting.trip_queries import AXES
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import layout
from turnstile.programme.loading import load_programme
from turnstile.release.zones import bounding_secret
from turnstile.settings import Settings
from turnstile.sources.ingest.snapshot import counts_of, load_snapshot

TRIPS_AT_MOST = 4


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Iterator[Deployment]:
    """The day, released once for all tests of this file."""
    root = tmp_path_factory.mktemp("sube")
    made = Deployment(root / "var", root / "include")
    for folder in ("programmes", "domains"):
        (made.include / folder).mkdir(parents=True)
    shutil.copy(Path(__file__).parent / "programmes/sube.yaml", made.include / "programmes")
    (made.include / "domains/sube_grid.csv").write_text(grid())
    folder = made.landing("sube", WEEK)
    folder.mkdir(parents=True)
    shutil.copyfile(shared_data / f"sube_taps/{DAY}_trx.csv", folder / f"{DAY}_trx.csv")
    with pytest.MonkeyPatch.context() as environment:
        made.enter(environment)
        assert main(["run", "sube", "--week", WEEK]) == 0
        yield made


@pytest.mark.long
def test_a_day_of_which_nobody_said_what_the_trains_words_mean_is_not_charged(
    released: Deployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """6,517 of 29,007 records, every train, were once set aside with a warning, and charged."""
    shutil.copytree(released.include, tmp_path / "include")
    shutil.copytree(released.home / "landing", tmp_path / "landing")
    programme = tmp_path / "include/programmes/sube.yaml"
    lines = programme.read_text().splitlines(keepends=True)
    programme.write_text("".join(line for line in lines if "action_names" not in line))
    Deployment(tmp_path, tmp_path / "include").enter(monkeypatch)
    assert main(["run", "sube", "--week", WEEK]) != 0
    said = capsys.readouterr().err
    assert "unknown_action_many: rows have an action that nobody explains" in said
    assert "nothing is charged" in said


def enters(shared_data: Path) -> pd.DataFrame:
    """The tap-ons that have a place, by another way."""
    taps = pd.read_csv(shared_data / f"sube_taps/{DAY}_trx.csv", dtype=str)
    on = taps.tipo_trx_tren.isna() | taps.tipo_trx_tren.isin(["CHECK IN", "USO"])
    return taps[on & taps.lat.notna() & taps.lon.notna() & taps.id_tarjeta.notna()]


def joined_by_pandas(taps: pd.DataFrame) -> int:
    """How many tap-offs end a trip: the next tap of the card and mode, at most six hours on."""
    taps = taps[taps.lat.notna() & taps.lon.notna() & taps.id_tarjeta.notna()]
    kind = taps.tipo_trx_tren.map({"CHECK IN": 0, "USO": 0, "CHECK OUT": 1})
    kind = kind.where(taps.tipo_trx_tren.notna(), 0)
    taps = taps.assign(kind=kind, at=taps.hora.astype(int), number=taps.id.astype(int))
    taps = taps[taps.kind.notna()].sort_values(["id_tarjeta", "modo", "at", "kind", "number"])
    same = (taps.id_tarjeta == taps.id_tarjeta.shift()) & (taps.modo == taps.modo.shift())
    soon = taps["at"] - taps["at"].shift() <= 6
    return int((same & soon & (taps.kind == 1) & (taps.kind.shift() == 0)).sum())


def exact_counts(deployment: Deployment) -> dict[str, np.ndarray]:
    private = deployment.home / "private/sube" / WEEK
    digest = (next(private.rglob("exact"))).read_text()
    tables = load_exact(next(private.rglob("exact")).parent, digest)
    return {t.label[0]: t.reveal_to_mechanism() for t in tables if str(t.label[2]) == DAY}


def trips_by_pandas(shared_data: Path, modes: dict[str, str]) -> pd.DataFrame:
    """Every trip: card, mode, hours and places; its end is None where no tap-off follows."""
    taps = pd.read_csv(shared_data / f"sube_taps/{DAY}_trx.csv", dtype=str).drop_duplicates()
    taps = taps[taps.lat.notna() & taps.lon.notna() & taps.id_tarjeta.notna()]
    kind = taps.tipo_trx_tren.map({"CHECK IN": 0, "USO": 0, "CHECK OUT": 1})
    taps = taps.assign(
        kind=kind.where(taps.tipo_trx_tren.notna(), 0),
        mode=taps.modo.map(modes),
        hour=taps.hora.astype(int),
        number=taps.id.astype(int),
        place=[place_of(*pair) for pair in zip(taps.lat, taps.lon, strict=True)],
    )
    taps = taps[taps.kind.notna()].sort_values(["id_tarjeta", "mode", "hour", "kind", "number"])
    after = taps[["id_tarjeta", "mode", "kind", "hour", "place"]].shift(-1)
    is_end = (taps.id_tarjeta == after.id_tarjeta) & (taps["mode"] == after["mode"])
    is_end &= (after.kind == 1) & (after.hour - taps.hour <= 6)
    ends = after.where(is_end)
    trips = taps.assign(off_hour=ends.hour, off_place=ends.place)
    trips = trips.assign(id_tarjeta=trips.id_tarjeta.astype(float).map("{:010.0f}".format))
    return trips[trips.kind == 0].rename(columns={"id_tarjeta": "card"})


@pytest.mark.long
def test_every_cell_agrees_with_pandas(released: Deployment, shared_data: Path) -> None:
    """The whole day counted anew by pandas and hmac: joined, bounded, cell by cell."""
    programme = load_programme("sube", released.include)
    domain = load_domain(programme, released.include)
    secret = bounding_secret(Settings.from_environment())
    trips = trips_by_pandas(shared_data, dict(programme.source.mode_names))
    cells = []
    for trip in trips.itertuples():
        on_slots, on_places, off_slots, off_places = (
            {label: n for n, label in enumerate(domain.dimension(trip.mode, axis).labels)}
            for axis in AXES
        )
        has_end = isinstance(trip.off_place, str)
        cells.append(
            (
                domain.modes.index(trip.mode),
                on_slots[f"{trip.hour:02d}:00"],
                on_places.get(published(trip.place), on_places["UNKNOWN"]),
                off_slots[f"{trip.off_hour:02.0f}:00" if has_end else "UNKNOWN"],
                off_places.get(
                    published(trip.off_place) if has_end else "UNKNOWN", off_places["UNKNOWN"]
                ),
            )
        )
    trips = trips.assign(cell=cells)
    keys = zip(trips.cell, trips.card, strict=True)
    trips["key"] = [hmac.digest(secret, message(DAY, cell, card), "sha256") for cell, card in keys]
    kept = trips.sort_values("key").groupby("card").head(TRIPS_AT_MOST)
    counts = exact_counts(released)
    for table in programme.tables:
        wanted = np.zeros(domain.cells(table), dtype=np.int64)
        for number, segment in enumerate(layout(domain, table)):
            mode_cells = [cell[1:3] for cell in kept.cell if cell[0] == number]
            grid_of = [tuple(cell[AXES.index(axis)] for axis in table.by) for cell in mode_cells]
            flat = np.ravel_multi_index(np.array(grid_of).T, segment.shape)
            np.add.at(wanted, segment.offset + flat, 1)
        assert np.array_equal(counts[table.name], wanted)


def test_nobody_is_counted_more_than_k_times_and_everybody_that_often(
    released: Deployment, shared_data: Path
) -> None:
    trips_of_card = enters(shared_data).groupby("id_tarjeta").size()
    bounded = int(np.minimum(trips_of_card, TRIPS_AT_MOST).sum())
    assert bounded < int(trips_of_card.sum())  # the bound binds
    assert {int(counts.sum()) for counts in exact_counts(released).values()} == {bounded}


def test_every_record_is_a_trip_a_part_of_one_or_set_aside_by_a_named_rule(
    released: Deployment, shared_data: Path
) -> None:
    private = released.home / "private"
    digest = (private / "sube" / WEEK / "r0" / "snapshot").read_text()
    snapshot = load_snapshot(private, "sube", WEEK, digest)
    counts = {name: count for name, count in counts_of(snapshot).items() if count}
    rows_in = counts.pop("rows_in")
    taps = pd.read_csv(shared_data / f"sube_taps/{DAY}_trx.csv", dtype=str)
    assert rows_in == len(taps) == sum(counts.values())
    assert counts["rows_out"] == len(enters(shared_data))
    alone = taps[taps.lat.notna() & taps.lon.notna()].tipo_trx_tren == "CHECK OUT SIN CHECKIN"
    assert counts["other_action"] >= int(alone.sum()) > 0
    assert counts["joined"] == joined_by_pandas(taps)
    ends = int((taps[taps.lat.notna()].tipo_trx_tren == "CHECK OUT").sum())
    assert counts["tap_off_without_tap_on"] == ends - counts["joined"] < 0.03 * ends
    assert set(counts) == {
        "rows_out",
        "joined",
        "other_action",
        "null_location",
        "tap_off_without_tap_on",
    }


def test_the_card_says_how_few_cells_rise_above_their_noise(released: Deployment) -> None:
    package = released.public / "sube" / WEEK / "r0"
    card = json.loads((package / "release_card.json").read_text())
    above = {line["table"]: line for line in card["above_noise"]}
    fine, hours = above["on_time_location"], above["on_time"]
    places = len(SOUTH_TENTHS) * len(WEST_TENTHS) + 1
    assert fine["cells"] == 3 * 24 * places  # of the one day that is no gap
    assert fine["by_noise_at_most"] < fine["above"] < fine["cells"] / 10
    assert hours["above"] > hours["cells"] / 2  # while by hour alone most are
    text = (package / "release_card.md").read_text()
    assert f"on_time_location, count: {fine['above']:,} of {fine['cells']:,} cells" in text


def test_six_days_of_the_week_are_stated_as_gaps(released: Deployment) -> None:
    card = json.loads((released.public / "sube" / WEEK / "r0/release_card.json").read_text())
    assert len(card["gaps"]) == 6
    assert DAY not in card["gaps"]
