"""Rows without a card id are set aside, or each is a unit of its own: as the programme says."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ingested_weeks import Read, Zones

from turnstile.counting.exact_tables import count
from turnstile.errors import ProgrammeError
from turnstile.programme.domain.files import load_domain
from turnstile.programme.id_form import IdForm, IdKind, LetterCase
from turnstile.programme.loading import parse_programme
from turnstile.programme.source_spec import DateForm, Feed, TapAction, WithoutCard
from turnstile.programme.spec import Programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

INCLUDE = Path(__file__).resolve().parents[2] / "include"
WEEK, MONDAY = "2016-W30", date(2016, 7, 25)
HEADER = (
    "card_id,mode,tap_on_date,tap_on_time,tap_on_location,"
    "tap_off_date,tap_off_time,tap_off_location"
)
TAPS = "tap_id,card_id,mode,action,tapped_at,place"
OWN = WithoutCard.OWN_UNIT
# the columns of the SUBE day, with cash fares that have no card
SUBE = "id,id_tarjeta,modo,lat,lon,tipo_trx_tren,hora,fecha"
SUBE_SOURCE = {
    "feed": Feed.TAPS,
    "without_action": TapAction.ENTER,  # buses say nothing of it
    "modes": ("bus", "train"),
    "columns": (
        ("tap_id", "id"),
        ("card_id", "id_tarjeta"),
        ("mode", "modo"),
        ("action", "tipo_trx_tren"),
        ("tap_date", "fecha"),
        ("tap_time", "hora"),
        ("latitude", "lat"),
        ("longitude", "lon"),
    ),
    "mode_names": (("COL", "bus"), ("TRE", "train")),
    "action_names": (("CHECK IN", TapAction.ENTER), ("CHECK OUT", TapAction.EXIT)),
    "date_form": DateForm.DAY_FIRST,
}
Ids = list[tuple[Any, ...]]


def text(*lines: str, header: str = HEADER) -> str:
    return "\n".join([header, *lines]) + "\n"


def test_a_trip_without_a_card_is_a_unit_that_nothing_else_belongs_to(ingested: Read) -> None:
    line = "bus,2016-07-25,08:00,A,,,"
    later = line.replace("08", "09")
    lines = (f"c,{line}", f"c,{later}", f",{line}", f" ,{line}A", f",{later}")
    rows, counts = ingested(*lines, header=HEADER, read="card_id", without_card=OWN)
    units = Counter(unit for (unit,) in rows)
    assert units.pop("c") == 2
    assert list(units.values()) == [1, 1, 1]
    assert "card_id_missing" not in counts


def test_no_card_has_the_name_of_a_row_without_one(ingested: Read) -> None:
    nobody = "bus,2016-07-25,08:00,A,,,"
    form = {"card_form": IdForm(IdKind.TEXT, case=LetterCase.KEEP)}
    read = partial(ingested, header=HEADER, read="card_id", without_card=OWN, **form)
    ((name,),), _ = read(f",{nobody}")
    rows, _ = read(f",{nobody}", f"{name},{nobody.replace('08', '09')}")
    assert len({unit for (unit,) in rows}) == 2


def test_where_they_are_dropped_the_same_rows_are_set_aside(ingested: Read) -> None:
    line = "bus,2016-07-25,08:00,A,,,"
    lines = (f"c,{line}", f",{line}", f",{line.replace('08', '09')}")
    rows, counts = ingested(*lines, header=HEADER, read="card_id")
    assert (rows, counts["card_id_missing"]) == ([("c",)], 2)


def test_the_unit_of_a_row_is_the_same_in_every_file_order_and_retry(
    zones: Zones, programme_of: Callable[..., Programme], rows_of: Callable[..., Ids]
) -> None:
    lines = [f",bus,2016-07-25,08:{minute},A,,," for minute in (10, 20, 30)]
    programme = programme_of("opal", without_card=OWN)
    zones.deliver(WEEK, {"a.csv": text(*lines)})
    first = rows_of(zones.ingest(programme, WEEK))
    zones.deliver(WEEK, {"a.csv": text(lines[2]), "b.csv": text(lines[1], lines[0])})
    assert rows_of(zones.ingest(programme, WEEK)) == first
    assert len({row[0] for row in first}) == 3


def test_rows_that_are_equal_in_every_field_count_once_unless_they_have_ids(
    ingested: Read,
) -> None:
    line = ",bus,2016-07-25,08:00,A,,,"
    assert ingested(line, line, header=HEADER, without_card=OWN)[1]["duplicates"] == 1
    taps = [f"{n},,bus,enter,2016-07-25 08:00,A" for n in (1, 2, 2)]
    asked = {"read": "card_id", "feed": Feed.TAPS, "without_card": OWN}
    rows, counts = ingested(*taps, header=TAPS, **asked)
    assert counts["duplicates"] == 1
    assert len(set(rows)) == 2


def test_taps_without_a_card_are_never_joined_and_a_tap_off_alone_is_no_trip(
    ingested: Read,
) -> None:
    lines = (
        "1,,bus,enter,2016-07-25 08:00,A",
        "2,,bus,exit,2016-07-25 08:20,B",
        "3,c,bus,enter,2016-07-25 08:00,A",
        "4,c,bus,exit,2016-07-25 08:20,B",
    )
    asked = {"read": "card_id, tap_off_location", "feed": Feed.TAPS, "without_card": OWN}
    rows, counts = ingested(*lines, header=TAPS, **asked)
    ends = dict(rows)
    assert ends.pop("c") == "B"
    assert list(ends.values()) == ["UNKNOWN"]
    assert counts["tap_off_without_tap_on"] == 1


@pytest.mark.parametrize(("rule", "kept"), [(OWN, 4), (WithoutCard.DROP, 1)])
def test_a_day_of_sube_with_cash_fares_follows_the_rule(
    ingested: Read, rule: WithoutCard, kept: int
) -> None:
    lines = (
        "1,37031563.0,COL,-34.618,-58.436,,8,25/07/2016",
        "2,,COL,-34.618,-58.436,,8,25/07/2016",
        "3,,COL,-34.618,-58.436,,8,25/07/2016",  # another passenger of the same bus and hour
        "4,,TRE,-34.6,-58.4,CHECK IN,11,25/07/2016",
        "5,,TRE,-34.6,-58.4,CHECK OUT,12,25/07/2016",
    )
    asked = {"read": "card_id", "without_card": rule, "card_form": None, **SUBE_SOURCE}
    rows, counts = ingested(*lines, header=SUBE, **asked)
    assert len(set(rows)) == kept
    aside = {name: count for name, count in counts.items() if not name.startswith("rows_")}
    assert aside == ({"tap_off_without_tap_on": 1} if rule is OWN else {"card_id_missing": 4})


def test_the_rule_is_part_of_snapshot_and_plan() -> None:
    shipped = (INCLUDE / "programmes/opal.yaml").read_text()
    other = shipped.replace("missing_day: refuse", "missing_day: refuse\n  without_card: own_unit")
    stated, own_unit = (parse_programme(content, "opal.yaml") for content in (shipped, other))
    assert stated.source.without_card is WithoutCard.DROP
    assert own_unit.source.without_card is OWN
    domain = load_domain(stated, INCLUDE)
    plans = [
        make_plan(programme, domain, ServiceWeek.parse(WEEK)) for programme in (stated, own_unit)
    ]
    assert plans[0].digest != plans[1].digest
    assert plans[0].events == plans[1].events  # a unit of one trip costs no more than one of six


@pytest.mark.parametrize(
    ("name", "value", "word"), [("opal", "keep", "write one of"), ("itms", "drop", "is for trips")]
)
def test_a_rule_that_is_none_or_has_no_cards_is_refused(name: str, value: str, word: str) -> None:
    shipped = (INCLUDE / f"programmes/{name}.yaml").read_text()
    with pytest.raises(ProgrammeError, match=word) as error:
        parse_programme(
            shipped.replace("source:\n", f"source:\n  without_card: {value}\n"), f"{name}.yaml"
        )
    assert error.value.field == "source.without_card"


CARDS = st.sampled_from(["a", "b", "", "", ""])
TRIPS = st.lists(st.tuples(CARDS, st.integers(0, 5), st.sampled_from(["x", "y"])), max_size=12)


@settings(max_examples=10, deadline=None)
@given(trips=TRIPS, new=st.integers(6, 9), at_most=st.integers(1, 3))
def test_the_bound_holds_for_cards_and_a_row_without_one_adds_one_trip_to_each_table(
    trips: list[tuple[str, int, str]],
    new: int,
    at_most: int,
    programme_of: Callable[..., Programme],
) -> None:
    shipped = programme_of("opal", without_card=OWN)
    bound = replace(
        shipped.units[0], contributions_max=at_most, once_per_cell=False, once_per_finest_cell=False
    )
    slots = replace(shipped.time, slot_minutes=240)
    programme = replace(shipped, units=(bound,), time=slots)
    lines = [f"{card},bus,2016-07-25,{hour:02d}:00,{place},,," for card, hour, place in trips]
    more = f",bus,2016-07-25,{new:02d}:30,x,,,"  # equal to no other row
    before, after = exact(programme, *lines), exact(programme, *lines, more)
    of_card = Counter(line for line in set(lines))
    cards = Counter(line.split(",")[0] for line in of_card)
    alone = cards.pop("", 0)
    expected = alone + sum(min(number, at_most) for number in cards.values())
    for table, counts in before.items():
        assert counts.sum() == expected
        changed = after[table] - counts
        assert changed.sum() == changed.max() == np.abs(changed).sum() == 1


def exact(programme: Programme, *lines: str) -> dict[str, np.ndarray]:
    """Ingest and count a day of trips."""
    domain = load_domain(programme, INCLUDE)
    with tempfile.TemporaryDirectory() as folder:
        zones = Zones(Path(folder))
        zones.deliver(WEEK, {"trips.csv": text(*lines)})
        tables = count(
            programme,
            domain,
            (MONDAY,),
            zones.ingest(programme, WEEK).folder / "rows",
            secret=b"a secret of the release",
            work=Path(folder) / "work",
            progress=lambda _: None,
        )
    return {table.table: table.reveal_to_mechanism() for table in tables}


def test_the_terms_say_which_of_the_two_holds() -> None:
    dropped, own = (kind.sentence for kind in (WithoutCard.DROP, WithoutCard.OWN_UNIT))
    assert dropped == "Rows without a card id are left out."
    assert "is a unit of its own: one such trip is protected" in own
