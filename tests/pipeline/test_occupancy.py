"""How full buses say they are, from archived GTFS-realtime positions, beside the made numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import h3
import pandas as pd
import pytest
from small_deployment import WEEK, Deployment

from turnstile.service_calendar import ServiceWeek

Cli = Callable[..., int]
PROGRAMME = Path(__file__).parent / "programmes/occupancy.yaml"
PLACE = (21.17, 72.83)
BUSES = 60
# what a bus says at 10:00 and 10:30; the fuller one decides; None: nothing
SAYINGS = (
    ("EMPTY", "FEW_SEATS_AVAILABLE"),
    ("STANDING_ROOM_ONLY", "EMPTY"),
    ("NO_DATA_AVAILABLE", None),
    ("5", None),
)
FULLEST = (2, 3, 0, 5)


def positions() -> list[dict[str, object]]:
    """Two positions of every bus on every day, in either shape of a record."""
    found: list[dict[str, object]] = []
    for day in ServiceWeek.parse(WEEK).days:
        for bus in range(BUSES):
            for minute, said in zip((0, 30), SAYINGS[bus % len(SAYINGS)], strict=True):
                own = {
                    "vehicle": {"id": f"b{bus}"},
                    "timestamp": f"{day}T10:{minute:02}:{bus % 60:02}+05:30",
                    "position": {"latitude": PLACE[0], "longitude": PLACE[1], "speed": 5.0},
                }
                full = {} if said is None else {"occupancy_status": said}
                found.append({"vehicle": own | full})
    return found


@pytest.fixture
def fleet(deployment: Deployment) -> Deployment:
    """A landed week of positions."""
    (deployment.include / "programmes/occupancy.yaml").write_text(PROGRAMME.read_text())
    folder = deployment.landing("occupancy")
    folder.mkdir(parents=True)
    lines = [json.dumps(one) for one in positions()]
    (folder / "positions.ndjson").write_text("\n".join(lines) + "\n")
    return deployment


def test_full_buses_are_counted_by_class(fleet: Deployment, turnstile: Cli) -> None:
    assert turnstile("check", "occupancy") == 0
    assert turnstile("run", "occupancy", "--week", WEEK) == 0
    package = fleet.public / "occupancy" / WEEK / "r0"
    assert turnstile("package", "verify", package) == 0
    assert turnstile("estimates", "verify", package) == 0
    table = pd.read_csv(package / "tables/full.csv").set_index(["slot", "cell"])
    cell = h3.latlng_to_cell(*PLACE, 7)
    said = Counter(FULLEST[bus % len(FULLEST)] for bus in range(BUSES))
    for number in (2, 3, 5):
        true = sum(count for fullest, count in said.items() if fullest >= number)
        own = table[f"buses_a_day_class_{number}"]
        deviation = table[f"standard_deviation_class_{number}"].iloc[0]
        assert abs(own["10:00", cell] - true) < 6 * deviation
        assert own.drop(("10:00", cell)).max() < 6 * deviation < true / 2


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("[FEW_SEATS_AVAILABLE, ", "[EMPTY, ", "tables.full.at_least"),
        ("at_least: ", "at_leest: ", "tables.full.at_least"),
        ("feed: gtfs_vehicle_positions", "feed: itms", "tables.full.measure"),
    ],
)
@pytest.mark.usefixtures("fleet")
def test_what_no_record_could_tell_is_refused(
    check_refuses: Callable[..., None], old: str, new: str, field: str
) -> None:
    check_refuses("occupancy", old, new, field)
