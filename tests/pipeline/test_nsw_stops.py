"""The real stop list of Sydney Trains is the public domain: `new` from taps at its platforms."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from small_deployment import WEEK, Deployment

from turnstile.service_calendar import ServiceWeek

Cli = Callable[..., int]
CARDS, CENTRAL = 300, "Central Station"


def deliver(folder: Path, stops: pd.DataFrame) -> None:
    """Write taps of a week: every card taps on at a platform of Central, and at some stop."""
    chance = random.Random(4)  # noqa: S311 - made-up taps
    platforms = stops[stops.parent_station != ""]
    central = stops[stops.stop_name == CENTRAL].stop_id.iloc[0]
    own = platforms[platforms.parent_station == central].stop_id.tolist()
    folder.mkdir(parents=True)
    with (folder / "taps.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["card_id", "tapped_at", "place"])
        for day in ServiceWeek.parse(WEEK).days:
            for card in range(CARDS):
                writer.writerow([f"c{card}", f"{day} 08:15:00", chance.choice(own)])
                writer.writerow(
                    [f"c{card}", f"{day} 17:40:00", chance.choice([*platforms.stop_id])]
                )


def test_taps_at_the_platforms_of_sydney_are_published_by_station(
    deployment: Deployment, turnstile: Cli, shared_data: Path
) -> None:
    source = shared_data / "nsw/stops.txt"
    stops = pd.read_csv(source, dtype=str).fillna("")
    landing = deployment.landing("sydney")
    deliver(landing, stops)
    public = ("--gtfs", source, "--mode", "train", "--zone", "Australia/Sydney")
    assert turnstile("new", "sydney", "--from", landing / "taps.csv", *public) == 0
    assert turnstile("check", "sydney") == 0
    assert turnstile("run", "sydney", "--week", WEEK) == 0
    package = deployment.public / "sydney" / WEEK / "r0"
    assert turnstile("package", "verify", package) == 0
    table = pd.read_csv(package / "tables/on_location.csv")
    names = set(table.tap_on_location) - {"UNKNOWN"}
    stations = set(stops[stops.stop_id.isin(set(stops.parent_station) - {""})].stop_name)
    assert len(names & stations) > 0.9 * len(stations) > 100
    # a card counts at most four trips a day, here two: one of them at Central
    central = table[table.tap_on_location == CENTRAL].reconciled
    assert (central - CARDS).abs().max() < 0.3 * CARDS
    assert table[table.tap_on_location == "UNKNOWN"].reconciled.mean() < 0.1 * CARDS
