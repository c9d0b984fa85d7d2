"""Numbers, words and days in another sense than a feed has stop a week before somebody says so."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pytest
from city_week import STOPS, WEEK, ZONE, readings, taps

Rows = list[list[object]]
Header = Sequence[str]
HOURS = [*range(5, 24)]


def _deliver(
    city: Any, header: Header, rows: Iterable[Sequence[object]], delimiter: str = ","
) -> Any:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return city.put("a.csv", text.getvalue())


def _new(city: Any, file: Any, *options: object) -> str:
    given = ["--gtfs", city.stops, "--mode", "bus", "--zone", ZONE.key, "--accept-no-gain", "made"]
    code, said = city.tells("new", "city", "--from", file, *given, *options)
    assert code == 0, said
    return str(said)


def _state(city: Any, key: str) -> None:
    city.edit("\nsource:\n", f"\nsource:\n  {key}\n")


def _stops(city: Any, key: str, *words: str) -> None:
    """A look names the key, and a run charges nothing."""
    code, said = city.tells("look", "city")
    assert code == 2
    assert f"to decide: {key}: " in said
    city.run_stops(*words)


def _publishes(city: Any) -> int:
    """A look finds nothing to decide, and a run publishes; return how many rows were read."""
    rows = _goes_on(city)
    code, said = city.tells("run", "city", "--week", WEEK)
    assert code == 0, said
    assert city.is_published
    return rows


def _goes_on(city: Any) -> int:
    """A look finds nothing to decide, and the tasks that judge a week let it pass."""
    code, said = city.tells("look", "city")
    assert (code, said.splitlines()[-1]) == (0, "ready")
    city.goes_on()
    return int(_figure(city, "count(*)"))


def _figure(city: Any, sql: str) -> float:
    """A figure of the rows that were published."""
    week = city.home / f"private/city/{WEEK}"
    digest = (week / "r0/snapshot").read_text()
    rows = f"{week}/snapshots/{digest[:12]}/rows/*/*.parquet"
    (figure,) = duckdb.execute(f"SELECT {sql} FROM '{rows}'").fetchone() or (0,)
    return float(figure)


# ------------------------------------------------------------ gates


def _passed(gate: int, day: int, hour: int) -> tuple[int, int]:
    """How many go in and out by a gate in an hour: with two peaks, and chance."""
    chance = (gate * 31 + day * 17 + hour * 7) % 5
    return (6 * (hour in {7, 8, 9}) + chance, 6 * (hour in {16, 17, 18}) + (chance * 3) % 5)


def _gates(number: Callable[[int, int, int], tuple[int, int]], gates: int = 6) -> Rows:
    return [
        [f"g{gate}", f"b{gate // 3}", STOPS[gate // 3][0], f"{day} {hour:02}:00:00", *ends]
        for gate in range(gates)
        for n, day in enumerate(WEEK.days)
        for hour in HOURS
        for ends in [number(gate, n, hour)]
    ]


def _intervals() -> Rows:
    return _gates(_passed)


def _counters(*, since_midnight: bool = False, apart: int = 70_000) -> Rows:
    said: dict[tuple[int, int], tuple[int, int]] = {}

    def number(gate: int, day: int, hour: int) -> tuple[int, int]:
        key = (gate, day if since_midnight else 0)
        before = said.get(key, (0, 0) if since_midnight else (apart * gate, min(apart, 4000)))
        said[key] = (
            before[0] + _passed(gate, day, hour)[0],
            before[1] + _passed(gate, day, hour)[1],
        )
        return said[key]

    return _gates(number)


def _of_feed(city: Any, feed: str, rows: Rows, *, booth: bool = True) -> None:
    header = ["gate", "booth", "station", "at", "in", "out"]
    columns = {
        "gate": "gate",
        "place": "station",
        "tapped_at": "at",
        "entries": "in",
        "exits": "out",
    }
    columns |= {"booth": "booth"} if booth and feed == "gate_counters" else {}
    pairs = [f"--column={field}={name}" for field, name in columns.items()]
    _new(city, _deliver(city, header, rows), "--feed", feed, *pairs)


@pytest.mark.some(1)
@pytest.mark.parametrize("since_midnight", [False, True])
def test_counters_that_go_on_are_no_counts_of_intervals(city: Any, since_midnight: bool) -> None:  # noqa: FBT001
    # not far apart: each record would be thousands of passengers
    _of_feed(city, "gate_counts", _counters(since_midnight=since_midnight, apart=10))
    _stops(city, "source.feed", "numbers: gates have numbers that go on and on")


def test_counts_of_intervals_are_no_counters(city: Any) -> None:
    _of_feed(city, "gate_counters", _intervals())
    _stops(city, "source.feed", "numbers: gates have numbers", "unknown_numbers")


@pytest.mark.long
def test_gates_of_several_booths_are_not_one(city: Any) -> None:
    rows = [[f"g{int(str(row[0])[1:]) % 3}", *row[1:]] for row in _counters()]
    rows = [[gate, booth, STOPS[0][0], *rest] for gate, booth, _, *rest in rows]
    _of_feed(city, "gate_counters", rows, booth=False)
    _stops(city, "source.feed", "two at one time", "booth")
    _state(city, "set_aside_at_most: {unknown_numbers: 1}")
    assert city.tells("run", "city", "--week", WEEK)[0] == 0  # a decision that states it


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("feed", "rows"), [("gate_counts", _intervals), ("gate_counters", _counters)]
)
def test_the_total_of_a_station_is_no_gate_of_it(
    city: Any, feed: str, rows: Callable[[], Rows]
) -> None:
    gates = rows()
    totals: dict[tuple[object, object], list[int]] = {}
    for _, _, place, at, *ends in gates:
        total = totals.setdefault((place, at), [0, 0])
        total[:] = [so_far + int(str(n)) for so_far, n in zip(total, ends, strict=True)]
    sums = [["TOTAL", "b", *place_at, *total] for place_at, total in totals.items()]
    _of_feed(city, feed, [*gates, *sums])
    _stops(city, "source.feed", "the sum of all others of their place", "unknown_numbers")


@pytest.mark.some(1)
@pytest.mark.parametrize(("every", "times", "stops"), [(9, 20, True), (10_000, 1, False)])
def test_numbers_of_gates_that_are_none_are_few(
    city: Any,
    every: int,
    times: int,
    stops: bool,  # noqa: FBT001
) -> None:
    """A share of the records, however many passengers each has."""
    rows = [[*row[:4], *(times * int(str(n)) for n in row[4:])] for row in _gates(_passed, 9)]
    for row in rows[:: every * 3]:
        row[4] = "1,204"
    _of_feed(city, "gate_counts", rows)
    if stops:
        _stops(city, "source.set_aside_at_most", "no_riders_many")
    else:
        assert _goes_on(city)


def test_booths_that_are_named_tell_gates_apart(city: Any) -> None:
    rows = [[f"g{int(str(row[0])[1:]) % 3}", *row[1:]] for row in _counters()]
    rows = [[gate, booth, STOPS[0][0], *rest] for gate, booth, _, *rest in rows]
    _of_feed(city, "gate_counters", rows)
    assert _goes_on(city)


@pytest.mark.long
def test_honest_intervals_and_honest_counters_count_the_same_passengers(city: Any) -> None:
    _of_feed(city, "gate_counts", _intervals())
    assert _publishes(city) == sum(int(str(n)) for row in _intervals() for n in row[4:])


def test_honest_counters_go_on(city: Any) -> None:
    _of_feed(city, "gate_counters", _counters())
    # what was passed between the first reading of the week and the last one
    passed = sum(int(str(n)) for row in _intervals() for n in row[4:])
    first = sum(sum(_passed(gate, 0, HOURS[0])) for gate in range(6))
    assert _goes_on(city) == passed - first


def test_some_gates_of_rising_numbers_are_told_from_none(city: Any) -> None:
    """Negative control: few gates that open in the morning alone stop no week of fifty."""
    few = [row for row in _gates(lambda *_: (0, 0), 1) if "05:" <= str(row[3])[11:] < "09:"]
    rising = [[*row[:4], int(str(row[3])[11:13]), 0] for row in few]
    many = [[f"h{n}", *row[1:]] for n in range(8) for row in _intervals() if row[0] == f"g{n % 6}"]
    _of_feed(city, "gate_counts", [*rising, *many])
    assert _goes_on(city)


# ------------------------------------------------------------ passengers of an event


def _events(number: str | None) -> tuple[Header, Rows]:
    header = ["passenger_event_id", "service_date", "event_timestamp", "event_type", "stop_id"]
    rows: Rows = []
    for n, tap in enumerate(taps()):
        at = tap.at.astimezone(ZONE)
        word = "Passenger boarded" if tap.enters else "Passenger alighted"
        row = [f"e{n}", f"{at:%Y-%m-%d}", f"{at:%Y-%m-%d %H:%M:%S}", word, STOPS[tap.place][0]]
        rows.append([*row, *([n % 3 + 1] if number else [])])
    return [*header, *([number] if number else [])], rows


def test_events_with_a_number_under_another_name_are_not_read_as_one_each(city: Any) -> None:
    header, rows = _events("count")
    said = _new(city, _deliver(city, header, rows))
    assert "to decide: source.without_count" in said
    code, said = city.tells("check", "city")
    assert code == 2
    assert "source.without_count" in said
    city.edit("\n  without_count: .*", "")
    city.run_stops("event_count")
    _state(city, "columns: {passengers: count}")
    assert _goes_on(city) == sum(int(str(row[-1])) for row in rows)


@pytest.mark.long
def test_events_of_the_standard_go_on_and_without_a_number_each_is_what_is_stated(
    city: Any,
) -> None:
    header, rows = _events("event_count")
    assert "without_count" not in _new(city, _deliver(city, header, rows))
    assert _publishes(city) == sum(int(str(row[-1])) for row in rows)


def test_events_without_a_number_are_what_somebody_says(city: Any) -> None:
    header, rows = _events(None)
    _new(city, _deliver(city, header, rows))
    city.edit("without_count: decide", "without_count: 1")
    assert _goes_on(city) == len(rows)


def _ridden(*, on_board: bool) -> tuple[Header, Rows]:
    """Events of buses of which many get on and off: how many do, or how many are on board."""
    chance = random.Random(4)  # noqa: S311 - made-up riders
    rows: Rows = []
    for day in WEEK.days:
        for trip in range(12):
            at, load = datetime(day.year, day.month, day.day, 6 + trip), 0  # noqa: DTZ001
            for stop, _, _ in STOPS:
                off = sum(chance.random() < 0.3 for _ in range(load))
                for word, n in (("alighted", off), ("boarded", chance.randrange(1, 6))):
                    load += n if word == "boarded" else -n
                    row = [f"e{len(rows)}", day, at, f"Passenger {word}", stop]
                    rows += [[*row, load if on_board else n]] if n else []
                at += timedelta(minutes=3)
    return _events("event_count")[0], rows


def test_passengers_on_board_are_not_those_who_board(city: Any) -> None:
    _new(city, _deliver(city, *_ridden(on_board=True)))
    _stops(city, "source.columns", "how many passengers are on board", "unknown_numbers")
    _deliver(city, *(told := _ridden(on_board=False)))
    assert _goes_on(city) == sum(int(str(row[-1])) for row in told[1])


# ------------------------------------------------------------ delays


def _delays(city: Any, delay: Callable[[int], object]) -> None:
    city.stops = city.roads
    rows = [
        [
            *(r.bus, f"{r.at.astimezone(ZONE):%Y-%m-%d %H:%M:%S}", f"{r.latitude:.6f}"),
            *(f"{r.longitude:.6f}", f"{r.kmh / 3.6:.4f}", delay(n)),
        ]
        for n, r in enumerate(readings())
    ]
    header = ["vehicle_id", "event_timestamp", "latitude", "longitude", "speed"]
    _new(city, _deliver(city, [*header, "schedule_deviation"], rows), "--protect", "day")


def _late(n: int) -> int:
    """Seconds: between three minutes early and twenty late."""
    return (n * 7919) % 1380 - 180


def test_delays_in_minutes_are_not_read_as_seconds(city: Any) -> None:
    _delays(city, lambda n: round(_late(n) / 60))
    _stops(city, "source.delay_unit", "delay_unit: nearly all stated delays are below a minute")
    _state(city, "delay_unit: min")
    assert _goes_on(city)
    assert 480 < _figure(city, "avg(delay_s)") < 540


def test_delays_in_thousandths_are_not_read_as_seconds(city: Any) -> None:
    _delays(city, lambda n: 1000 * _late(n))
    _stops(city, "source.delay_unit", "many are above two hours")


@pytest.mark.long
def test_delays_in_seconds_go_on_and_are_no_minutes(city: Any) -> None:
    _delays(city, _late)
    _state(city, "delay_unit: min")
    _stops(city, "source.delay_unit")
    city.edit("\n  delay_unit: min", "")
    assert city.look()[0] == 0


def test_vehicles_that_wait_at_an_end_are_early_and_not_reversed(city: Any) -> None:
    _delays(city, lambda n: -600 if n % 12 == 0 else (n * 7919) % 400)
    assert city.look()[0] == 0


@pytest.mark.some(1)
@pytest.mark.parametrize(("unit", "seconds"), [("s_reversed", 1), ("min_reversed", 60)])
def test_late_below_0_is_not_read_as_early(city: Any, unit: str, seconds: int) -> None:
    _delays(city, lambda n: -round(_late(n) / seconds))
    _stops(city, "source.delay_unit", "far early more often than far late", "s_reversed")
    _state(city, f"delay_unit: {unit}")
    assert _goes_on(city)
    assert 480 < _figure(city, "avg(delay_s)") < 540


@pytest.mark.long
def test_vehicles_that_are_so_punctual_are_what_somebody_says(city: Any) -> None:
    _delays(city, lambda n: n % 40 - 10)
    _stops(city, "source.delay_unit")
    _state(city, "delay_unit: s")
    assert city.look()[0] == 0


# ------------------------------------------------------------ calls of Switzerland


def _calls(city: Any, *, cancelled: Sequence[str], status: Sequence[str] = ("REAL",)) -> int:
    """Deliver calls of which one in ten runs is cancelled; return how many were not."""
    rows: Rows = []
    ran = set()
    for n, tap in enumerate(taps()):
        at = tap.at.astimezone(ZONE)
        is_off = n % 10 == 0
        word = status[n % len(status)]
        times = [f"{at:%d.%m.%Y %H:%M}", f"{at:%d.%m.%Y %H:%M:%S}"]
        if not is_off and word == "REAL":
            ran.add((n % 200, times[1], tap.place))
        rows.append([f"run{n % 200}", *times, word, cancelled[is_off], STOPS[tap.place][0]])
    header = ["FAHRT_BEZEICHNER", "ANKUNFTSZEIT", "AN_PROGNOSE", "AN_PROGNOSE_STATUS"]
    file = _deliver(city, [*header, "FAELLT_AUS_TF", "BPUIC"], rows, ";")
    _new(city, file, "--protect", "day")
    return len(ran)


@pytest.mark.some(1)
@pytest.mark.parametrize("cancelled", [("0", "1"), ("false", "true"), ("False", "True")])
def test_cancelled_runs_are_not_counted_however_it_is_written(
    city: Any, cancelled: Sequence[str]
) -> None:
    ran = _calls(city, cancelled=cancelled)
    assert _goes_on(city) == ran


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("cancelled", "status"), [(("nein", "ja"), ["REAL"]), (("false", "true"), ["REAL", "ISTZEIT"])]
)
def test_words_of_status_that_nobody_explains_stop_the_week(
    city: Any, cancelled: Sequence[str], status: Sequence[str]
) -> None:
    _calls(city, cancelled=cancelled, status=status)
    _stops(city, "source.set_aside_at_most", "unknown_status_many")


@pytest.mark.parametrize("column", ["AN_PROGNOSE_STATUS", "FAELLT_AUS_TF"])
def test_calls_whose_status_has_another_name_are_refused(city: Any, column: str) -> None:
    _calls(city, cancelled=("false", "true"))
    file = city.home / f"landing/city/{WEEK}/a.csv"
    file.write_text(file.read_text().replace(column, "ANDERS", 1))
    city.run_stops(f"{column}: the column is missing")


@pytest.mark.long
def test_forecasts_are_set_aside_as_ever(city: Any) -> None:
    ran = _calls(city, cancelled=("false", "true"), status=["REAL", "PROGNOSE"])
    assert _publishes(city) == ran


# ------------------------------------------------------------ taps


def _taps(
    city: Any, row: Callable[[int, Any], Sequence[object]], *columns: str, **named: str
) -> None:
    """Deliver taps with further columns, some of which are named."""
    rows = [
        [
            tap.card,
            f"{tap.at.astimezone(ZONE):%Y-%m-%d %H:%M:%S}",
            STOPS[tap.place][0],
            *row(n, tap),
        ]
        for n, tap in enumerate(taps())
    ]
    pairs = [f"--column={field}={name}" for field, name in named.items()]
    file = _deliver(city, ["card_id", "tapped_at", "place", *columns], rows)
    _new(city, file, "--feed", "taps", "--protect", "day", *pairs)


def _word(tap: Any) -> str:
    return "enter" if tap.enters else "exit"


def test_a_blank_action_is_no_tap_on_where_others_say_what_they_do(city: Any) -> None:
    _taps(city, lambda n, tap: ["" if n % 9 == 0 else _word(tap)], "tipo", action="tipo")
    _stops(city, "source.without_action", "unknown_action_many")
    _state(city, "without_action: enter")
    assert _goes_on(city)


def test_actions_of_all_records_go_on(city: Any) -> None:
    _taps(city, lambda _, tap: [_word(tap)], "tipo", action="tipo")
    assert _goes_on(city) == sum(tap.enters for tap in taps())


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("column", "words"),
    [("status", ("OK", "ANULADO")), ("estado", ("OK", "ANULADO")), ("anulada", ("0", "1"))],
)
def test_taps_that_were_cancelled_are_not_counted(
    city: Any, column: str, words: tuple[str, str]
) -> None:
    _taps(city, lambda n, tap: [_word(tap), words[n // 2 % 8 == 0]], "tipo", column, action="tipo")
    is_read = column == "status"
    _stops(city, "source.status_names" if is_read else "source.columns.status")
    if not is_read:
        city.edit("\n  columns:\n", f"\n  columns:\n    status: {column}\n")
        _stops(city, "source.status_names", "unknown_status_many")
    _state(city, f'status_names: {{"{words[0]}": counts, "{words[1]}": void}}')
    on = [n for n, tap in enumerate(taps()) if tap.enters and n // 2 % 8]
    assert _goes_on(city) == len(on)


def test_a_column_of_one_word_tells_nothing_apart(city: Any) -> None:
    _taps(city, lambda _, tap: [_word(tap), "IL"], "tipo", "card_state", action="tipo")
    assert _goes_on(city)


def _by_hour(city: Any, *columns: str, **named: str) -> None:
    """Taps of the full hour, of which one in seven cards takes two people along."""
    rows = []
    for n, tap in enumerate(tap for tap in taps() if tap.enters):
        at = f"{tap.at.astimezone(ZONE):%Y-%m-%d %H}:00:00"
        rows += [
            [tap.card, at, STOPS[tap.place][0], *([f"{n}/{person}"] if columns else [])]
            for person in range(3 if n % 7 == 0 else 1)
        ]
    pairs = [f"--column={field}={name}" for field, name in named.items()]
    file = _deliver(city, ["card_id", "tapped_at", "place", *columns], rows)
    _new(city, file, "--feed", "taps", "--protect", "day", "--all-tap-on", *pairs)


def test_equal_taps_of_the_hour_without_an_id_are_not_one_in_silence(city: Any) -> None:
    _by_hour(city)
    _stops(city, "source.columns", "duplicates_without_id", "set_aside_at_most.duplicates")
    _state(city, 'set_aside_at_most: {duplicates: "1/3"}')
    assert _goes_on(city) == sum(tap.enters for tap in taps())


def test_equal_taps_of_the_hour_with_an_id_are_several(city: Any) -> None:
    _by_hour(city, "nr", tap_id="nr")
    assert _goes_on(city) > sum(tap.enters for tap in taps())


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "card",
    [
        lambda n, _: f"ticket {n}",
        lambda _, tap: f"************{int(tap.card) % 12:04}",
        lambda _, tap: f"{float(f'3085{tap.card}'):.6E}",
    ],
    ids=["new each time", "masked", "rounded"],
)
def test_ids_that_bound_nothing_stop_the_week(
    city: Any, card: Callable[[int, Any], object]
) -> None:
    _of_cards(city, card)
    _stops(city, "source.columns", "ids: ids are cut short", "unknown_card")
    _state(city, "set_aside_at_most: {unknown_card: 1}")
    assert _goes_on(city)


def test_ids_of_a_day_bound_no_week(city: Any) -> None:
    _of_cards(city, lambda _, tap: f"{tap.card}/{tap.at.astimezone(ZONE):%d}")
    assert city.look()[0] == 0  # negative control: days are protected
    city.yaml.write_text(city.yaml.read_text().replace("card_day", "card_week"))
    _stops(city, "source.columns", "with each day where more is bounded")


def test_a_day_that_is_delivered_twice_under_other_ids_is_one(city: Any) -> None:
    _of_cards(city, lambda _, tap: tap.card, times=2)
    _stops(city, "source.set_aside_at_most", "delivered_twice", "set_aside_at_most.duplicates")
    _state(city, 'set_aside_at_most: {duplicates: "2/3"}')
    assert _goes_on(city)


def _of_cards(city: Any, card: Callable[[int, Any], object], times: int = 1) -> None:
    """Deliver tap-ons with an id of their own, so many times."""
    rows = [
        [f"t{n}", card(n, tap), f"{tap.at.astimezone(ZONE):%Y-%m-%d %H:%M:%S}", place]
        for n, tap in enumerate([tap for tap in taps() if tap.enters] * times)
        for place in [STOPS[tap.place][0]]
    ]
    file = _deliver(city, ["tap_id", "card_id", "tapped_at", "place"], rows)
    _new(city, file, "--feed", "taps", "--protect", "day", "--all-tap-on")


def _hired(city: Any, *, ids: bool) -> int:
    """Deliver trips of the full hour, with an id or without; return how many."""
    rows = []
    for n, tap in enumerate(taps()):
        at = tap.at.astimezone(ZONE)
        times = [f"{at:%Y-%m-%d %H}:00:00", f"{at + timedelta(hours=1):%Y-%m-%d %H}:00:00"]
        row = [*times, STOPS[tap.place][0], STOPS[n % 12][0]]
        rows.append([f"r{n}", *row] if ids else row)
    header = ["started_at", "ended_at", "start_station_id", "end_station_id"]
    _new(city, _deliver(city, ["ride_id", *header] if ids else header, rows))
    return len(rows)


def test_equal_trips_of_the_hour_without_an_id_are_not_one_in_silence(city: Any) -> None:
    _hired(city, ids=False)
    _stops(city, "source.columns", "duplicates_without_id")


@pytest.mark.long
def test_equal_trips_of_the_hour_with_an_id_are_several(city: Any) -> None:
    trips = _hired(city, ids=True)
    assert _publishes(city) == trips


def test_trips_that_were_cancelled_are_not_counted(city: Any) -> None:
    trips = _hired(city, ids=True)
    file = city.home / f"landing/city/{WEEK}/a.csv"
    head, *lines = file.read_text().splitlines()
    said = [f"{line},{'cancelled' if n % 8 == 0 else 'done'}" for n, line in enumerate(lines)]
    file.write_text("\n".join([f"{head},trip_status", *said]) + "\n")
    _stops(city, "source.columns.status")
    _state(city, "columns: {status: trip_status}")
    _stops(city, "source.status_names", "unknown_status_many")
    _state(city, "status_names: {done: counts, cancelled: void}")
    assert _goes_on(city) == trips - len(range(0, trips, 8))


@pytest.mark.some(1)
@pytest.mark.parametrize("word", ["0", "NULL"])
def test_a_word_for_no_card_is_no_card_of_many_trips(city: Any, word: str) -> None:
    rows = [
        [word if n % 7 == 0 else tap.card, f"{tap.at.astimezone(ZONE):%Y-%m-%d %H:%M:%S}", place]
        for n, tap in enumerate(tap for tap in taps(300) if tap.enters)
        for place in [STOPS[tap.place][0]]
    ]
    file = _deliver(city, ["card_id", "tapped_at", "place"], rows)
    _new(city, file, "--feed", "taps", "--protect", "day", "--all-tap-on")
    _stops(city, "source.without_card", "trips_of_no_card")
    _deliver(city, ["card_id", "tapped_at", "place"], [row for row in rows if row[0] != word])
    assert _goes_on(city)


def test_dates_alone_are_no_taps_of_midnight(city: Any) -> None:
    rows = [
        [n, tap.card, f"{tap.at.astimezone(ZONE):%Y-%m-%d} 00:00:00", STOPS[tap.place][0]]
        for n, tap in enumerate(tap for tap in taps() if tap.enters)
    ]
    file = _deliver(city, ["tap_id", "card_id", "tapped_at", "place"], rows)
    _new(city, file, "--feed", "taps", "--protect", "day", "--all-tap-on")
    _stops(city, "source.file.zone", "most times are midnight")


@pytest.mark.some(1)
@pytest.mark.parametrize("first", [0, 1])
def test_a_clock_of_twelve_hours_without_am_and_pm_stops_the_week(city: Any, first: int) -> None:
    def folded(tap: Any) -> str:
        at = tap.at.astimezone(ZONE)
        return f"{at:%Y-%m-%d} {(at.hour - first) % 12 + first:02}:{at:%M:%S}"

    rows = [
        [n, tap.card, folded(tap), STOPS[tap.place][0]]
        for n, tap in enumerate(tap for tap in taps() if tap.enters)
    ]
    file = _deliver(city, ["tap_id", "card_id", "tapped_at", "place"], rows)
    _new(city, file, "--feed", "taps", "--protect", "day", "--all-tap-on")
    _stops(city, "source.file.zone", "of twelve hours without AM and PM")


# ------------------------------------------------------------ service days


def _of_service_days(city: Any, shift: int) -> None:
    header = ["transaction_id", "token_id", "service_date", "event_timestamp", "fare_action"]
    rows: Rows = []
    for n, tap in enumerate(taps()):
        at = tap.at.astimezone(ZONE)
        day = (datetime(at.year, at.month, at.day) + timedelta(days=shift)).date()  # noqa: DTZ001
        word = "Enter" if tap.enters else "Exit"
        row = [f"t{n}", tap.card, day, f"{at:%Y-%m-%d %H:%M:%S}", word, STOPS[tap.place][0]]
        rows.append(row)
    _new(city, _deliver(city, [*header, "stop_id"], rows), "--protect", "day")


@pytest.mark.some(1)
@pytest.mark.parametrize("shift", [1, -1])
def test_a_service_date_that_is_a_day_off_the_times_stops_the_week(city: Any, shift: int) -> None:
    _of_service_days(city, shift)
    _stops(city, "source.set_aside_at_most", "time_of_another_day_many")


def test_service_days_of_their_times_go_on(city: Any) -> None:
    _of_service_days(city, 0)
    assert _goes_on(city) == sum(tap.enters for tap in taps())


# ------------------------------------------------------------ small ones


def test_dates_and_times_of_an_export_of_access_are_read(city: Any) -> None:
    rows = [
        [
            *(tap.card, f"{at.day}/{at.month}/{at.year} 0:00:00", f"30/12/1899 {at:%H:%M:%S}"),
            STOPS[tap.place][0],
        ]
        for tap in taps()
        if tap.enters
        for at in [tap.at.astimezone(ZONE)]
    ]
    pairs = ["--column", "tap_date=fecha", "--column", "tap_time=hora"]
    given = ["--feed", "taps", "--protect", "day", "--all-tap-on", "--date-form", "DD/MM/YYYY"]
    _new(city, _deliver(city, ["card_id", "fecha", "hora", "place"], rows), *given, *pairs)
    assert _goes_on(city) == len(rows)
    first = min(60 * at.hour + at.minute for tap in taps() for at in [tap.at.astimezone(ZONE)])
    assert _figure(city, "min(tap_on_minute)") == first


def test_names_that_differ_in_capitals_alone_are_refused_by_the_header(city: Any) -> None:
    _taps(city, lambda _, tap: [_word(tap)], "tipo", action="tipo")
    file = city.home / f"landing/city/{WEEK}/a.csv"
    file.write_text(file.read_text().replace("card_id,tapped_at", "Place,card_id,tapped_at", 1))
    city.run_stops("header: a column is named twice, or two differ in capitals alone")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("set_aside_at_most: {duplicates: 2}", "source.set_aside_at_most.duplicates: is a share"),
        ("speed_unit: km/h", "source.speed_unit: taps states no speed"),
        ("delay_unit: min", "source.delay_unit: taps states no delay"),
        ("without_count: 1", "source.without_count: is for tides_passenger_events"),
        ("mode_names: {010: bus}", "in order"),  # a name as it is written, no number
    ],
)
def test_check_names_the_key_that_is_not_for_a_feed(city: Any, key: str, said: str) -> None:
    _taps(city, lambda _, tap: [_word(tap)], "tipo", action="tipo")
    _state(city, key)
    assert said in city.tells("check", "city")[1]


def test_a_mode_of_leading_zeros_is_read_as_it_is_written(city: Any) -> None:
    _taps(city, lambda _, tap: [_word(tap), "010"], "tipo", "modo", action="tipo", mode="modo")
    _state(city, "mode_names: {010: bus}")
    assert _goes_on(city)
