"""External tables: as they are found, with what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import poisson

from turnstile.errors import InputError
from turnstile_lab.baselines import (
    city,
    discrete_laplace,
    naive_laplace,
    noised_everywhere,
    second_algorithm,
    uniforms,
)
from turnstile_lab.disclosures import Disclosure, as_json
from turnstile_lab.external.files import read_external_tables
from turnstile_lab.external.of_table import assess_external
from turnstile_lab.external.table import Cell, ExternalTable

_HEADER = "mode,date,tap,time,loc,count\n"


def write(path: Path, text: str) -> Path:
    """Write a file."""
    path.write_text(text, encoding="utf-8")
    return path


def named(findings: Iterable[Disclosure], name: str) -> list[Disclosure]:
    """Return findings of a name."""
    return [finding for finding in findings if finding.name == name]


def test_codes_are_labels_and_stray_lines_at_the_end_are_passed_over(tmp_path: Path) -> None:
    rows = "".join(f"bus,20160725,on,-1,{place},{18 + place}\n" for place in range(2000, 2030))
    path = write(tmp_path / "t.csv", f"{_HEADER}{rows}bus,20160725,on,04:30,-1,44\n\n(31 rows)\n")
    table = read_external_tables([path])
    assert len(table.cells) == 31
    assert table.cells[-1] == Cell("bus", "20160725", "on", "04:30", "-1")
    assert table.stray_lines == 1


def test_a_table_by_location_alone_is_read(tmp_path: Path) -> None:
    text = "mode,date,tap,loc,count\n" + "".join(
        f"lightrail,201607{day},on,Stop {stop},{900 + stop}\n"
        for day in range(25, 32)
        for stop in range(23)
    )
    table = read_external_tables([write(tmp_path / "loc.csv", text)])
    assert {cell.kind for cell in table.cells} == {"loc"}
    findings = assess_external(table)
    assert "does not identify" in named(findings, "scale")[0].statement
    assert not named(findings, "rows")[0].is_flaw


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", _HEADER, _HEADER + "bus,x,on,00:00,a,many\n" * 3, "\xff\xfe\x00"]
)
def test_what_is_no_table_is_refused_with_a_reason(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError):
        read_external_tables([path])


def test_a_missing_file_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(InputError):
            read_external_tables([path])


def table_of(
    values: np.ndarray, *, day: str = "20160725", totals: np.ndarray | None = None
) -> ExternalTable:
    """A external table of a day by slot and stop; cells of 0 are not published."""
    cells, counts = [], []
    for slot, stop in np.argwhere(values != 0):
        cells.append(Cell("ferry", day, "on", clock(slot), f"stop {stop}"))
        counts.append(float(values[slot, stop]))
    for slot in range(0 if totals is None else values.shape[0]):
        cells.append(Cell("ferry", day, "on", clock(slot), None))
        counts.append(float(totals[slot]))  # type: ignore[index] # the range is empty without totals
    return ExternalTable(tuple(cells), np.array(counts))


def clock(slot: int) -> str:
    """Label of a quarter of an hour."""
    return f"{slot // 4:02}:{slot % 4 * 15:02}"


def test_a_dense_table_of_integers_has_none_of_the_flaws() -> None:
    counts = city()
    noisy = counts + discrete_laplace("dense", counts.size, 2.0).reshape(counts.shape)
    cells = tuple(
        Cell("bus", "20160725", "on", clock(slot), f"stop {stop}")
        for slot, stop in np.ndindex(counts.shape)
    )
    findings = assess_external(ExternalTable(cells, noisy.ravel().astype(float)))
    assert [finding.name for finding in findings if finding.is_flaw] == []
    scale = named(findings, "scale")[0].figures
    assert scale["low"] <= 2.0 <= scale["high"]


def test_the_second_algorithm_is_found_by_its_threshold_and_its_missing_rows() -> None:
    released = np.rint(
        second_algorithm(city(trips=300_000), scale=1.0, threshold=17.588, label="low")
    )
    findings = assess_external(table_of(released))
    assert (
        named(findings, "threshold")[0].figures["low"]
        <= 17.588
        <= named(findings, "threshold")[0].figures["high"]
    )
    assert {"threshold", "presence"} <= {finding.name for finding in findings if finding.is_flaw}


def test_totals_beside_a_thresholded_table_give_the_scale_and_the_hidden_cells() -> None:
    slots = 300
    counts = 20 + np.repeat(np.arange(slots), 4).reshape(slots, 4) % 97 * 8
    counts[:90, 3] = 9  # hidden half of the time
    noise = naive_laplace("cells", counts.size, 1.4).reshape(counts.shape)
    cells = np.where(counts + noise > 18, np.rint(counts + noise), 0)
    totals = np.rint(counts.sum(axis=1) + naive_laplace("totals", slots, 1.4))
    findings = assess_external(table_of(cells, totals=totals))
    scale = named(findings, "scale")[0].figures
    assert scale["source"] == "totals"
    assert scale["deviation_low"] <= 1.4 * np.sqrt(2) <= scale["deviation_high"]
    hidden = named(findings, "differencing")[0].figures
    assert hidden["groups"] >= 30
    assert hidden["beyond_noise"] >= 10


def test_totals_made_from_a_thresholded_table_are_found() -> None:
    released = np.rint(second_algorithm(city(trips=100_000), scale=1.4, threshold=18, label="d"))
    findings = assess_external(table_of(released, totals=released.sum(axis=1)))
    assert named(findings, "derived_from_thresholded")
    assert [finding.figures["identified"] for finding in named(findings, "scale")] == [False]


def test_both_ends_of_a_ferry_give_the_scale() -> None:
    boarding = 20 + np.floor(90 * uniforms("boarding", 7 * 60)).reshape(7, 60).astype(np.int64)
    cells, counts = [], []
    for day, slot in np.ndindex(boarding.shape):
        name = f"2016072{day}"
        on, off = (
            boarding[day, slot] + np.rint(naive_laplace(f"{side} {day} {slot}", 1, 1.4))[0]
            for side in ("on", "off")
        )
        other = 300 + 50 * uniforms(f"other {day} {slot}", 2)
        for tap, shift, place, count in (
            ("on", 0, "Manly Wharf", on),
            ("off", 2, "Circular Quay", off),
            ("on", 0, "Balmain", np.rint(other[0])),
            ("off", 1, "Barangaroo", np.rint(other[1] * 0.5)),
        ):
            cells.append(Cell("ferry", name, tap, clock(20 + slot + shift), place))
            counts.append(float(count))
    findings = assess_external(ExternalTable(tuple(cells), np.array(counts)))
    pairs = [f for f in named(findings, "scale") if f.figures.get("source") == "pairs"]
    assert "Manly Wharf to Circular Quay (2 slots later)" in pairs[0].statement
    assert "Balmain" not in pairs[0].statement
    figures = pairs[0].figures
    assert figures["deviation_low"] <= 1.4 * np.sqrt(2) <= figures["deviation_high"]


def test_floating_point_fresh_noise_and_true_values_are_found() -> None:
    counts = city()
    floats = noised_everywhere(counts, scale=1.0, label="floats")
    findings = assess_external(table_of(floats))
    assert named(findings, "decimals")[0].figures["surely_zero"] > 0
    cut = assess_external(table_of(np.round(floats, 4)))
    assert named(cut, "decimals")[0].figures["surely_zero"] == 0

    first, second = (
        table_of(np.rint(counts + 20.0)),
        table_of(counts + 20.0 + discrete_laplace("again", counts.size, 2.0).reshape(counts.shape)),
    )
    twice = ExternalTable(first.cells + second.cells, np.concatenate((first.counts, second.counts)))
    assert named(assess_external(twice), "fresh_noise")[0].figures["draws_max"] == 2
    assert not named(assess_external(first), "fresh_noise")

    truth = first.counts + np.rint(naive_laplace("truth", first.counts.size, 1.0))
    beside = ExternalTable(first.cells, first.counts, (("raw", truth),))
    assert named(assess_external(beside), "true_values")[0].figures["column"] == "raw"
    unrelated = ExternalTable(
        first.cells, first.counts, (("lat", 1000 * uniforms("lat", truth.size)),)
    )
    assert not named(assess_external(unrelated), "true_values")


def test_the_real_table_says_that_its_scale_is_not_identified(shared_data: Path) -> None:
    folder = shared_data / "opal_2016_release"
    content = as_json(
        assess_external(read_external_tables([folder / "time-loc_train_on_20160725-31.csv"]))
    )
    assert [scale["identified"] for scale in content["scale"]] == [False]
    assert not content["scale_identified"]
    assert content["threshold"][0]["low"] <= 17.588 <= content["threshold"][0]["high"]
    assert any("does not identify the scale" in f["statement"] for f in content["findings"])


def test_a_mark_for_suppressed_cells_is_no_count() -> None:
    released = np.rint(
        second_algorithm(city(trips=300_000), scale=1.0, threshold=17.588, label="low")
    )
    cells = tuple(
        Cell("ferry", "20160725", "on", clock(slot), f"stop {stop}")
        for slot, stop in np.ndindex(released.shape)
    )
    marked = assess_external(ExternalTable(cells, released.ravel()))
    figures = named(marked, "threshold")[0].figures
    assert figures["low"] <= 17.588 <= figures["high"]
    assert not named(marked, "rows")[0].is_flaw


def test_our_own_published_tables_are_read_without_their_package(tmp_path: Path) -> None:
    noisy = discrete_laplace("own", 24, 2.0)
    rows = "".join(
        f"2016-07-25,bus,{n:02}:00,{count},{count + 0.4},1.2\n" for n, count in enumerate(noisy)
    )
    header = "service_date,mode,tap_on_slot,count,estimate,standard_deviation\n"
    table = read_external_tables([write(tmp_path / "on_time.csv", header + rows)])
    assert table.cells[0] == Cell("bus", "2016-07-25", "on", "00:00", None)
    assert not named(assess_external(table), "true_values")


def test_tables_with_thresholds_of_their_own_are_distinguished() -> None:
    raw = city(trips=300_000)
    low = np.rint(second_algorithm(raw, scale=1.0, threshold=17.588, label="low"))
    high = np.rint(second_algorithm(raw, scale=2.0, threshold=34.176, label="high"))
    first, second = table_of(low), table_of(high)
    off = tuple(cell._replace(tap="off") for cell in second.cells)
    both = ExternalTable(first.cells + off, np.concatenate((first.counts, second.counts)))
    thresholds = {f.figures["table"]: f.figures for f in named(assess_external(both), "threshold")}
    assert set(thresholds) == {"ferry time-loc, tap on", "ferry time-loc, tap off"}
    tap_on = thresholds["ferry time-loc, tap on"]
    assert tap_on["low"] <= 17.588 <= tap_on["high"]
    other = thresholds["ferry time-loc, tap off"]  # told, but not as sharp as to say where exactly
    assert (other["is_told"], other["cut"], other["smallest_published"]) == (True, None, 34)
    bus = tuple(cell._replace(mode="bus") for cell in second.cells)
    modes = ExternalTable(first.cells + bus, np.concatenate((first.counts, second.counts)))
    assert {f.figures["table"] for f in named(assess_external(modes), "threshold")} == {
        "ferry time-loc",
        "bus time-loc",
    }
    twice = ExternalTable(first.cells, first.counts)
    assert [f.figures["table"] for f in named(assess_external(twice), "threshold")] == [
        "ferry time-loc"
    ]


def test_a_table_of_busy_places_has_an_upper_bound_and_no_threshold() -> None:
    rates = np.repeat(np.linspace(1_500, 90_000, 170), 7)
    cells = tuple(
        Cell("train", f"2016072{n % 7}", "on", None, f"Station {n // 7}")
        for n in range(rates.size)
        if n != 40
    )
    noise = naive_laplace("busy", rates.size, 60.0)
    counts = np.delete(np.rint(rates + noise), 40)
    findings = assess_external(ExternalTable(cells, counts))
    threshold = named(findings, "threshold")[0]
    assert threshold.figures["cut"] is None
    assert not threshold.is_flaw
    assert "cannot tell" in threshold.statement
    assert not named(findings, "presence")


@pytest.mark.parametrize("rate", [14, 16, 40])
def test_places_that_agree_by_chance_are_no_service(rate: int) -> None:
    """Independent counts of like size.

    Near the threshold they are alike because both are published.
    """
    shape = (2, 10, 14, 40)
    drawn = poisson.ppf(uniforms(f"chance {rate}", int(np.prod(shape))), rate).reshape(shape)
    cells, counts = [], []
    for tap, stop, day, slot in np.argwhere(drawn >= 18):
        side = ("on", "off")[tap]
        cells.append(Cell("ferry", f"201607{10 + day}", side, clock(20 + slot), f"Wharf {stop}"))
        counts.append(float(drawn[tap, stop, day, slot]))
    findings = assess_external(ExternalTable(tuple(cells), np.array(counts)))
    assert [f.figures["identified"] for f in named(findings, "scale")] == [False]
