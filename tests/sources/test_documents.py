"""Protobuf and XML: a record decides nothing about another, and a broken frame is refused."""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from xml.sax.saxutils import escape

import pytest
from raw_documents import NOT_WELL_FORMED

from turnstile.errors import InputError
from turnstile.measures.registry import Measure
from turnstile.programme.source_spec import Feed, SpeedUnit
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.ingest import siri
from turnstile.sources.ingest.gtfs_realtime import message_of
from turnstile.sources.ingest.snapshot import counts_of
from turnstile.sources.ingest.week import snapshot_digest

WEEK, SECONDS = "2016-W30", 1_469_413_800  # 2016-07-25 02:30 UTC, 08:00 in India
READ = "vehicle_id, minute_of_day, latitude, speed_milli_kmh"


def entity(bus: str, second: int = SECONDS, **more: Any) -> bytes:
    feed_entity = message_of("FeedEntity")(id=bus.encode())
    feed_entity.vehicle.vehicle.id = bus.encode()
    feed_entity.vehicle.timestamp = second
    feed_entity.vehicle.position.latitude, feed_entity.vehicle.position.longitude = 21.25, 72.75
    feed_entity.vehicle.position.speed = more.get("speed", 10.0)
    return bytes(feed_entity.SerializeToString())


def message(*entities: bytes) -> bytes:
    feed_message = message_of("FeedMessage")(entity=entities)
    feed_message.header.timestamp = SECONDS
    return bytes(feed_message.SerializeToString())


def activity(bus: str, more: str = "") -> str:
    place = (
        "<VehicleLocation><Longitude>72.75</Longitude><Latitude>21.25</Latitude></VehicleLocation>"
    )
    return (
        "<VehicleActivity><RecordedAtTime>2016-07-25T08:00:00+05:30</RecordedAtTime>"
        f"<MonitoredVehicleJourney><VehicleRef>{bus}</VehicleRef>{place}<Velocity>10</Velocity>"
        f"{more}</MonitoredVehicleJourney></VehicleActivity>"
    )


def document(*activities: str) -> bytes:
    begin = '<Siri xmlns="http://www.siri.org.uk/siri"><ServiceDelivery><VehicleMonitoringDelivery>'
    end = "</VehicleMonitoringDelivery></ServiceDelivery></Siri>"
    return f"{begin}{''.join(activities)}{end}".encode(errors="surrogateescape")


def hostile_entity(chance: random.Random) -> bytes:
    """A unit's own entity, or anything in its place."""
    whole = entity("unit", SECONDS + chance.randrange(3600))
    return chance.choice(
        [
            chance.randbytes(chance.randrange(60)),
            whole[: chance.randrange(len(whole))],
            whole + chance.randbytes(9),
            whole.replace(b"unit", b"\xff\xfe\x00\n"),
            whole * 2,
        ]
    )


def hostile_activity(chance: random.Random) -> str:
    texts = [
        "<![CDATA[<VehicleActivity>]]>",
        "&#10;\u2028",
        "x" * 99_999,
        "<!-- <Siri> -->",
        "<a/>",
    ]
    inner = "<VehicleActivity><MonitoredVehicleJourney/></VehicleActivity>"
    more = chance.choice([*texts, inner, "<a>" * 40 + "</a>" * 40, *NOT_WELL_FORMED])
    whole = activity(escape("unit"), f"<VehicleRef>other 1</VehicleRef>{more}")
    cut_off = chance.randrange(len("<VehicleActivity>"), len(whole))
    return whole[: chance.choice([len(whole), cut_off])]


FORMS: dict[str, tuple[Feed, str, Callable[..., bytes], Callable[[str], Any], Any]] = {
    "protobuf": (Feed.GTFS_VEHICLE_POSITIONS, "a.pb", message, entity, hostile_entity),
    "XML": (Feed.SIRI_VM, "a.xml", document, activity, hostile_activity),
}


@pytest.mark.parametrize("form", FORMS)
def test_whatever_a_unit_sends_the_rows_of_others_are_the_same(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any, form: str
) -> None:
    feed, name, frame, record, hostile = FORMS[form]
    programme = programme_of("itms", feed=feed, speed_unit=SpeedUnit.MS)
    others = [record(f"other {n}") for n in range(5)]
    chance, seen = random.Random(form), set()  # noqa: S311 - made-up bytes
    for _ in range(12):
        records = [*others]
        for _ in range(4):  # the last entity is whole: what it lacks the message would lack
            places = len(records) + (form == "XML")
            records.insert(chance.randrange(places), hostile(chance))
        zones.deliver(WEEK, {name: frame(*records)})
        snapshot = zones.ingest(programme, WEEK)
        other_rows = [row for row in rows_of(snapshot, READ) if row[0].startswith("other")]
        assert other_rows == [(f"other {n}", 480, 21.25, 36_000) for n in range(5)]
        seen |= {rule for rule, number in counts_of(snapshot).items() if number}
    assert "malformed_line" in seen


@pytest.mark.parametrize("text", NOT_WELL_FORMED)
def test_a_record_that_is_not_well_formed_costs_itself(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any, text: str
) -> None:
    programme = programme_of("itms", feed=Feed.SIRI_VM, speed_unit=SpeedUnit.MS)
    unit = activity("unit", f"<LineRef>{text}</LineRef>")
    zones.deliver(WEEK, {"a.xml": document(activity("other"), unit, activity("another"))})
    snapshot = zones.ingest(programme, WEEK)
    assert rows_of(snapshot, "vehicle_id") == [("another",), ("other",)]
    assert counts_of(snapshot)["malformed_line"] >= 1


WANTED = ("RecordedAtTime", "MonitoredVehicleJourney.VehicleRef")


@pytest.mark.parametrize("lacks", ["<VehicleActivity>", "</VehicleActivity>"])
@pytest.mark.parametrize("place", range(3))
def test_a_record_that_lacks_its_begin_or_its_end_costs_itself(lacks: str, place: int) -> None:
    """The first one without a begin and the last one without an end had the document refused."""
    activities = [activity(f"bus {n}") for n in range(3)]
    activities[place] = activities[place].replace(lacks, "")
    for others in (activities, [activities[place]]):
        found = [*siri.records(iter([document(*others)]), WANTED)]
        buses = [one[WANTED[1]] for one in found if not isinstance(one, bytes)]
        assert buses == [f"bus {n}" for n in range(3) if n != place][: len(others) - 1]
        assert len(found) == len(others)


@pytest.mark.parametrize("kept", ["", "<MonitoredVehicleJourney>"])
def test_a_record_without_an_end_takes_nothing_of_one_without_a_begin(kept: str) -> None:
    """They became one, of the first one's vehicle: each is what it is without the other."""
    first, last = activity("unit 1"), activity("unit 2")
    if kept:  # cut in the middle of the journey
        halves = [first[: first.index("<VehicleLocation>")], last[last.index(kept) + len(kept) :]]
    else:
        halves = [first.removesuffix("</VehicleActivity>"), last[len("<VehicleActivity>") :]]
    neither = last[len("<VehicleActivity>") : -len("</VehicleActivity>")]
    several = [] if kept else [[halves[0], neither, halves[1]]]
    for broken in (halves[:1], halves[1:], halves, *several):
        text = document(activity("bus 0"), *broken, activity("bus 1"))
        found = [*siri.records(iter([text]), WANTED)]
        buses = [one[WANTED[1]] for one in found if not isinstance(one, bytes)]
        assert buses == ["bus 0", "bus 1"]
        assert [one for one in found if isinstance(one, bytes)] == [b.encode() for b in broken]


def test_a_text_that_a_record_may_have_twice_is_read_from_the_first_one() -> None:
    name = "MonitoredVehicleJourney.PublishedLineName"
    names = "".join(f"<{name.split('.')[1]}>{n}</{name.split('.')[1]}>" for n in ("one", "two"))
    found = [*siri.records(iter([document(activity("a", names))]), (*WANTED, name))]
    assert [one[name] for one in found if not isinstance(one, bytes)] == ["one"]


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(
    "text", ["<VehicleActivity/>A & B<VehicleActivity>", "</VehicleActivity>\x01<VehicleActivity>"]
)
def test_what_a_record_leaves_between_records_costs_itself(text: str, place: int) -> None:
    """It was of the frame, and had the document refused."""
    activities = [activity(f"bus {n}") for n in range(2)]
    activities.insert(place, activity("unit", text))
    found = [*siri.records(iter([document(*activities)]), WANTED)]
    assert [one.get(WANTED[1]) for one in found if not isinstance(one, bytes) and one] == [
        "bus 0",
        "bus 1",
    ]


def test_what_a_good_document_has_between_records_is_none_of_them() -> None:
    text = "<ResponseTimestamp/>", "<!-- a & b -->", "<VehicleActivityCancellation/>\n"
    border = "</VehicleMonitoringDelivery>\n<VehicleMonitoringDelivery version='2.0'>"
    parts = [border, text[0], activity("a"), text[1], activity("b"), border, *text, activity("c")]
    found = [*siri.records(iter([document(*parts, border, *text)]), WANTED)]
    assert [dict(one)[WANTED[1]] for one in found if not isinstance(one, bytes)] == ["a", "b", "c"]
    assert len(found) == 3


@pytest.mark.parametrize("encoding", ["iso-2022-jp", "utf-7", "hz", "unicode_escape", "idna"])
def test_an_encoding_in_which_a_records_bytes_hold_for_the_next_one_is_refused(
    encoding: str,
) -> None:
    """A shift in one had the others refused, or read as other letters."""
    text = f'<?xml version="1.0" encoding="{encoding}"?>'.encode()
    text += document(activity("unit\x1b$B"), activity("~{other"), activity("+"))
    with pytest.raises(EOFError):
        list(siri.records(iter([text]), WANTED))


def test_what_begins_and_does_not_end_is_looked_at_once() -> None:
    """It was looked at from its begin with each chunk: 64 MB of one record took minutes."""
    content = document("<VehicleActivity " + " " * (8 << 20) + "a", activity("other"))
    chunks = (content[at : at + 8192] for at in range(0, len(content), 8192))
    begun = time.process_time()
    found = [*siri.records(chunks, WANTED)]
    assert isinstance(found[0], bytes)
    assert len(found) == 2
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("utf-8", ""),
        ("utf-8", "UTF-8"),
        ("utf-8-sig", ""),
        ("latin-1", "ISO-8859-1"),
        ("windows-1252", "windows-1252"),
        ("utf-16", "utf-16"),
        ("utf-16", ""),
    ],
)
def test_a_record_has_the_letters_of_its_documents_encoding(
    zones: Any,
    programme_of: Callable[..., Programme],
    rows_of: Any,
    encoding: str,
    declared: str,
) -> None:
    """And one with bytes that are no letter there costs itself."""
    begin = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
    text = begin + document(activity("Bø"), activity("@@"), activity("other")).decode()
    bad = b"\x00\xd8" if encoding == "utf-16" else b"\x81\xe9"
    content = text.encode(encoding).replace("@@".encode(encoding.removesuffix("-sig"))[-2:], bad)
    zones.deliver(WEEK, {"a.xml": content})
    snapshot = zones.ingest(programme_of("itms", feed=Feed.SIRI_VM), WEEK)
    has_every_byte = encoding == "latin-1"
    names = ["Bø", "other", *(["é"] if has_every_byte else [])]  # what does not show goes
    assert sorted(rows_of(snapshot, "vehicle_id")) == sorted((name,) for name in names)
    assert counts_of(snapshot)["malformed_line"] == (0 if has_every_byte else 1)


def test_where_a_document_is_cut_into_pieces_changes_no_record() -> None:
    unit = activity("unit", "A & B") + activity("half")[:99] + "<VehicleActivity x='1' />"
    content = document(activity("a"), unit, activity("b").replace("Activity>", "Activity\n>"))
    wanted = ("RecordedAtTime", "MonitoredVehicleJourney.VehicleRef")
    whole = [*siri.records(iter([content]), wanted)]
    assert [bool(found and not isinstance(found, bytes)) for found in whole] == [1, 0, 0, 0, 1]
    for size in range(1, 40):
        pieces = (content[at : at + size] for at in range(0, len(content), size))
        assert [*siri.records(pieces, wanted)] == whole


def test_what_stands_before_a_text_that_is_too_long_does_not_cut_it(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any
) -> None:
    """A parser hands on a text in pieces, which end where its buffers do."""
    programme = programme_of("itms", feed=Feed.SIRI_VM, speed_unit=SpeedUnit.MS)
    long = activity("other 1").replace("21.25", "21.25" + " " * 70_000)
    assert long != activity("other 1")
    for records in range(0, 700, 100):
        unit = [activity("unit")] * records
        zones.deliver(WEEK, {"a.xml": document(*unit, long, activity("other 2"))})
        rows = rows_of(zones.ingest(programme, WEEK), READ)
        assert [row for row in rows if row[0] != "unit"] == [("other 2", 480, 21.25, 36_000)]


def test_elements_in_elements_take_no_longer_than_they_are(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any
) -> None:
    """The path of each was put together: two megabytes of one record took hours."""
    programme = programme_of("itms", feed=Feed.SIRI_VM, speed_unit=SpeedUnit.MS)
    deep = activity("unit", "<a>" * 300_000 + "</a>" * 300_000)
    zones.deliver(WEEK, {"a.xml": document(deep, activity("other"))})
    rows = rows_of(zones.ingest(programme, WEEK), "vehicle_id")
    assert rows == [("other",), ("unit",)]


BROKEN = {
    "cut off within an entity": ("a.pb", message(entity("a"), entity("b"))[:-3]),
    "no message": ("a.pb", b"<html>no such file</html>"),
    "cut off": ("a.xml", document(activity("a"))[:-20]),
    "no document": ("a.xml", b"vehicle_id,speed\n"),
    "type declaration": (
        "a.xml",
        b'<!DOCTYPE s [<!ENTITY a "aaaa">]>' + document(activity("&a;")),
    ),
    "no such encoding": ("a.xml", b'<?xml version="1.0" encoding="zip"?>' + document()),
    "another encoding": ("a.xml", b'<?xml version="1.0" encoding="utf-16"?>' + document()),
    "damaged gzip": ("a.pb.gz", gzip.compress(message(entity("a")))[:-9]),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_whose_frame_is_broken_is_refused(
    zones: Any, programme_of: Callable[..., Programme], case: str
) -> None:
    name, content = BROKEN[case]
    feed = Feed.SIRI_VM if "xml" in name else Feed.GTFS_VEHICLE_POSITIONS
    zones.deliver(WEEK, {name: content})
    with pytest.raises(InputError, match="cut off or damaged") as error:
        zones.ingest(programme_of("itms", feed=feed), WEEK)
    assert "other" not in str(error.value)


def test_files_of_every_form_lie_together(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any
) -> None:
    place = "vehicle.position.latitude,vehicle.position.longitude,vehicle.position.speed"
    table = f"vehicle.vehicle.id,vehicle.timestamp,{place}\nc,{SECONDS},21.25,72.75,10\n"
    packed = gzip.compress(message(entity("b"), entity("b"), entity("a", SECONDS + 60)))
    zones.deliver(WEEK, {"a.pb": message(entity("a")), "b.pb.gz": packed, "c.csv": table})
    programme = programme_of("itms", feed=Feed.GTFS_VEHICLE_POSITIONS, speed_unit=SpeedUnit.MS)
    snapshot = zones.ingest(programme, WEEK)
    positions = [(bus, minute) for bus, minute, _, _ in rows_of(snapshot, READ)]
    assert sorted(positions) == [("a", 480), ("a", 481), ("b", 480), ("c", 480)]
    assert counts_of(snapshot)["duplicates"] == 1


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("PT1M30S", 90),
        ("-PT20S", -20),
        ("P1D", 86_400),
        ("PT1H1M", 3660),
        ("PT2.5S", 2),
        ("P999999999999999999D", 86_400),
        ("-P1DT9223372036854775807S", -86_400),
        ("PT", None),
        ("9", None),
    ],
)
def test_a_delay_of_siri_is_a_duration(
    zones: Any,
    programme_of: Callable[..., Programme],
    rows_of: Any,
    duration: str,
    seconds: int | None,
) -> None:
    zones.deliver(WEEK, {"a.xml": document(activity("a", f"<Delay>{duration}</Delay>"))})
    programme = programme_of("itms_delays", feed=Feed.SIRI_VM)
    assert rows_of(zones.ingest(programme, WEEK), "delay_s") == [(seconds,)]


@pytest.mark.parametrize(("name", "rows"), [("itms", 0), ("itms_delays", 1)])
def test_a_speed_is_asked_for_where_a_table_measures_speeds(
    zones: Any, programme_of: Callable[..., Programme], name: str, rows: int
) -> None:
    without_speed = activity("a").replace("<Velocity>10</Velocity>", "")
    zones.deliver(WEEK, {"a.xml": document(without_speed)})
    programme = programme_of(name, feed=Feed.SIRI_VM)
    counts = counts_of(zones.ingest(programme, WEEK))
    assert (counts["rows_out"], counts["null_speed"]) == (rows, 1 - rows)


def test_speeds_that_were_not_read_are_read_once_a_table_measures_them(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any
) -> None:
    """Else the zeros in their place would be released as speeds."""
    zones.deliver(WEEK, {"a.xml": document(activity("a"))})
    tables = tuple(t for t in programme_of("itms_delays").tables if t.measure is Measure.HEADWAY)
    measured = programme_of("itms", feed=Feed.SIRI_VM)
    snapshots = [zones.ingest(p, WEEK) for p in (replace(measured, tables=tables), measured)]
    assert [rows_of(made, "speed_milli_kmh") for made in snapshots] == [[(0,)], [(10_000,)]]
    week = ServiceWeek.parse(WEEK)
    for feed, named in ((Feed.HFP, 2), (Feed.SIRI_VM, 2), (Feed.ITMS, 1)):
        programme = programme_of("itms", feed=feed)
        asked = (programme, replace(programme, tables=tables))
        assert len({snapshot_digest(p, week, ()) for p in asked}) == named
        before = {snapshot_digest(p, week, (), parser=10) for p in asked}
        assert len(before) == 1, "weeks that earlier versions sealed are known by their names"
