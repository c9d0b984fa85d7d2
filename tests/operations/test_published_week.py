"""The map of a published week has every place where the package has it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from small_deployment import WEEK, Deployment

from turnstile.ledger.records import ReleaseKey
from turnstile.operations.budget_page.picture_shapes import Location
from turnstile.operations.budget_page.published_week import week_beside, week_in
from turnstile.programme.loading import load_programme
from turnstile.settings import Settings


def _shown(place: Deployment, name: str) -> dict[str, Location]:
    package, programme = place.public / name / WEEK / "r0", load_programme(name, place.include)
    shown = week_in(package, programme, place.include, {})
    return {location.name: location for location in shown.locations}


@pytest.mark.parametrize(("name", "label"), [("opal", "location"), ("itms", "cell")])
def test_every_place_is_shown_where_the_packages_geojson_has_it(
    published: Deployment, name: str, label: str
) -> None:
    content = (published.public / name / WEEK / "r0/cells.geojson").read_bytes()
    shapes = {
        feature["properties"][label]: feature["geometry"]["coordinates"]
        for feature in json.loads(content)["features"]
    }
    seen = {
        place: [list(point) for point in location.outline]
        for place, location in _shown(published, name).items()
    }
    assert len(seen) > 1
    assert seen == {
        place: shape[0] if isinstance(shape[0], list) else [shape]
        for place, shape in shapes.items()
    }


@pytest.mark.parametrize("mode", ["metro", "train"])
def test_a_stop_that_the_domain_has_not_moves_no_place(published: Deployment, mode: str) -> None:
    path = published.include / "domains/opal_locations.csv"
    before = _shown(published, "opal")
    area = next(line for line in path.read_text().splitlines() if line.startswith("bus")).split(",")
    with path.open("a") as file:
        file.write(f"{mode},Far Away,{area[2]},-10.0,100.0\n")
    after = _shown(published, "opal")
    assert before[area[2]].outline == after[area[2]].outline
    if mode == "train":  # negative control: a stop of the place's own mode does move it
        with path.open("a") as file:
            file.write(f"bus,Far Away,{area[2]},-10.0,100.0\n")
        assert before[area[2]].outline != _shown(published, "opal")[area[2]].outline


@pytest.mark.parametrize("gaps", [0, 1])
def test_a_week_beside_another_is_compared_over_the_days_that_both_have(
    published: Deployment, gaps: int
) -> None:
    package = published.public / "opal" / WEEK / "r0"
    programme = load_programme("opal", published.include)
    shown = week_in(package, programme, published.include, {})
    heat = {
        (day, slot): replace(bar, value=None) if day in shown.rows[:gaps] else bar
        for (day, slot), bar in shown.heat.items()
    }
    last = ReleaseKey("opal", WEEK, 0)
    beside = week_beside(replace(shown, heat=heat), last, programme, Settings.from_environment())
    assert beside is not None
    assert len(beside.rows) == 8 - gaps
    assert beside.rows[-1].before == beside.rows[-1].now
