"""A week of each feature, from its programme and files to tables that are what was landed.

Every week is checked, released, verified, and its estimates are made again; what the lists of its
programme do not name is in no output. Beside them stand the programmes that `check` refuses.
"""

import shutil
from pathlib import Path

import bus_weeks as bus
import pytest
import tap_weeks as tap
from console import refuses, released, tells
from deployment_fixtures import deployment_in
from feature_weeks import FEATURES, Story, add, land_lines, write_list
from small_deployment import WEEK, Deployment

from turnstile.programme.loading import load_programme


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, generated: Path) -> Path:
    """The programmes of all features, their lists, and the files of those that `new` made."""
    root = tmp_path_factory.mktemp("features")
    with pytest.MonkeyPatch.context() as environment:
        deployment = deployment_in(root, environment)
        for name in ("stop_delays", "occupancy", "surat_routes"):
            add(deployment, name)
        write_list(deployment, "surat_routes", bus.ROUTES)
        write_list(deployment, "surat_directions", bus.DIRECTIONS)
        write_list(deployment, "stop_delays_directions", {"0": "way 0", "1": "way 1"})
        feed = deployment.include / "domains/stop_delays.zip"
        bus.write_feed(feed)
        out = deployment.include / "domains/stop_delays_stops.csv"
        tells("domain", "lists", feed, "--of", "stop", "--out", out)
        assert out.read_text().splitlines()[:2] == ["value,label", "s0,s0"]
        tap.make_apc(deployment)
        tap.make_tides(deployment)
    shutil.copytree(generated / "opal", deployment.home / "landing/opal")
    return root


@pytest.fixture
def site(made: Path, deployment: Deployment) -> Deployment:
    """A deployment of its own, of all programmes, without files."""
    shutil.copytree(made / "include", deployment.include, dirs_exist_ok=True)
    return deployment


def outputs(site: Deployment, capsys: pytest.CaptureFixture[str]) -> bytes:
    """All that is not private: packages, ledger, what was printed or logged."""
    said = capsys.readouterr()
    private = {"private", "landing"}
    files = (p for p in site.home.rglob("*") if p.relative_to(site.home).parts[0] not in private)
    contents = [path.read_bytes() for path in files if path.is_file()]
    return b"\n".join([*contents, said.out.encode(), said.err.encode()])


@pytest.fixture
def story(name: str, site: Deployment, made: Path, request: pytest.FixtureRequest) -> Story:
    """The week of a feature, landed."""
    feature = FEATURES[name]
    if feature.files:
        files = Path("var/landing", feature.files)
        shutil.copytree(made / files, site.home.parent / files)
    real = request.getfixturevalue("shared_data") if feature.is_real else Path()
    told = feature.tell(site, real)
    next(told)
    return told


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.long][: feature.is_long])
        for n, feature in FEATURES.items()
    ],
)
def test_a_week_of_a_feature(
    name: str, story: Story, site: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    feature = FEATURES[name]
    capsys.readouterr()
    package = released(site, feature.programme, feature.week)
    content = outputs(site, capsys)
    assert [mark for mark in feature.hidden if mark.encode() in content] == []
    with pytest.raises(StopIteration):  # it has nothing against the package
        story.send(package)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("name", "lists"),
    [
        # a trip's id is never read
        (
            "routes_of_positions",
            {f"surat_{of}s": bus.MARKS[f"{of}_id"] for of in ("route", "direction")},
        ),
        ("categories_of_taps", tap.CATEGORY_MARKS),
    ],
)
@pytest.mark.usefixtures("story")
def test_a_value_that_a_list_names_would_be_seen(
    name: str, lists: dict[str, str], site: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    """Negative control: each list knows its mark, so each output has it as a public label."""
    feature = FEATURES[name]
    for of, mark in lists.items():
        with (site.include / f"domains/{of}.csv").open("a") as stream:
            stream.write(f"{mark},{mark}\n")
    capsys.readouterr()
    tells("run", feature.programme, "--week", WEEK)
    content = outputs(site, capsys)
    assert {mark for mark in feature.hidden if mark.encode() in content} == set(lists.values())


BY_ROUTE = "delay:   {by: [slot, route, direction]"
FULL = "[FEW_SEATS_AVAILABLE, "


@pytest.mark.parametrize(
    ("programme", "old", "new", "field"),
    [
        ("stop_delays", "  timetable: domains", "  timetabel: domains", "did you mean timetable?"),
        ("stop_delays", "domains/stop_delays.zip", "domains/none.zip", "source.timetable"),
        ("stop_delays", "stop_within_m: 80", "stop_within_m: near", "source.stop_within_m"),
        ("stop_delays", "zone: Asia/Kolkata", "zone: Asia/Tokyo", "Asia/Kolkata"),
        ("stop_delays", "  timetable: domains/stop_delays.zip", "  #", "source.stop_within_m"),
        (
            "stop_delays",
            "[slot, stop, direction], measure: mean",
            "[slot, stop], measure: mean",
            "passes.by",
        ),
        ("stop_delays", "{stop: domains/stop_delays_stops.csv, ", "{", "tables.delay.by"),
        ("occupancy", FULL, "[EMPTY, ", "tables.full.at_least"),
        ("occupancy", "at_least: ", "at_leest: ", "is unknown here (did you mean at_least?)"),
        ("occupancy", "feed: gtfs_vehicle_positions", "feed: itms", "tables.full.measure"),
        ("itms_delays", "feed: itms", "feed: gtfs_vehicle_positions", "tables.delay.measure"),
        (
            "surat_routes",
            "  lists: {route: domains/surat_routes.csv, ",
            "  lists: {",
            "tables.delay.by",
        ),
        ("surat_routes", BY_ROUTE, "delay: {by: [slot, route]", "headway.by"),
        ("surat_routes", BY_ROUTE, "delay: {by: [route, slot]", "tables.delay.by"),
        ("surat_routes", BY_ROUTE, "delay: {by: [slot]", "tables.delay.by"),
        ("surat_routes", BY_ROUTE, "delay: {by: [slot, rout]", "tables.delay.by"),
        ("surat_routes", "lists: {route:", "lists: {fare_product:", "domain.lists.fare_product"),
        ("surat_routes", "domains/surat_routes.csv", "domains/none.csv", "domain.lists.route"),
        ("apc", "outside: drop", "outside: unknown", "domain.outside"),
        ("apc", "trip: {contributes: 1}", "card_day: {trips_at_most: 4}", "units.card_day"),
        ("apc", "{by: [boarding_visit]}", "{by: [route]}", "tables.on_visits.by"),
        (
            "apc",
            "  missing_day:",
            "  without_card: own_unit\n  missing_day:",
            "source.without_card",
        ),
        ("apc", "tides_passenger_events", "tides_fare_transactions", "tables.on_visits.by"),
    ],
)
def test_a_programme_that_no_record_could_keep_is_refused(
    site: Deployment, programme: str, old: str, new: str, field: str
) -> None:
    site.edit(programme, old, new)
    refuses(field, "check", programme)


def test_trips_by_headway_have_no_times_to_be_late_by(site: Deployment) -> None:
    header = "trip_id,start_time,end_time,headway_secs"
    line = f"{bus.RUNS[0].trip},06:00:00,09:00:00,600"
    bus.write_feed(site.include / "domains/stop_delays.zip", header, line)
    refuses("runs by headway", "check", "stop_delays")


@pytest.mark.parametrize(
    ("programme", "landing", "more", "said"),
    [
        ("itms_delays", "itms", {}, "trip_delay"),
        ("surat_routes", "surat_routes", {"trip_delay": 60, "trip_direction": "UP"}, "route_id"),
    ],
)
def test_a_file_without_what_is_counted_is_refused(
    site: Deployment, programme: str, landing: str, more: dict[str, object], said: str
) -> None:
    row = {"license_plate": "GJ05", "observationDateTime": "2016-07-25T10:00:00+05:30"}
    row |= {"speed": 10, "latitude": bus.PLACE[0], "longitude": bus.PLACE[1], **more}
    lines = [",".join(row), ",".join(map(str, row.values()))]
    land_lines(site.landing(landing), "x.csv", lines)
    refuses(said, "run", programme, "--week", WEEK)


def test_a_week_that_the_timetable_does_not_cover_is_refused_before_anything_is_charged(
    site: Deployment,
) -> None:
    bus.land_stop_delays(site)
    landing = site.landing("stop_delays")
    landing.rename(landing.with_name("2017-W30"))
    refuses("name the feed of then", "run", "stop_delays", "--week", "2017-W30")
    tells("ledger", "verify")
    assert site.nothing_happened()


def test_a_ride_pays_once_for_each_end_and_nothing_coarser_is_promised(site: Deployment) -> None:
    assert load_programme("apc", site.include).source.feed.names_nobody
    said = tells("plan", "apc", "--week", WEEK)
    loss = {words[0]: words[1] for line in said.splitlines() if len(words := line.split()) > 4}
    assert loss["trip"] == "8"
    assert loss["card_day"] == loss["card"] == "infinite"
    assert "Records name nobody" in said
