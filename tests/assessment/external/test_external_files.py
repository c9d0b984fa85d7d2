"""Files of counts in every shape in which people publish them: all read as the same table."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from turnstile.errors import InputError
from turnstile_lab.external.files import read_external_tables
from turnstile_lab.external.table import Cell, ExternalTable

ROWS = (
    ("ferry", "20160725", "on", "07:15", "Manly Wharf", 1234),
    ("ferry", "20160725", "on", "-1", "Circular Quay, Wharf 3", 56),
    ("bus", "20160726", "off", "UNKNOWN", "2000", 18),
    ("bus", "20160726", "off", "04:30", "-1", 19),
)
COLUMNS = ("mode", "date", "tap", "time", "loc", "count")


def text(delimiter: str = ",", quote: str = '"', end: str = "\n") -> str:
    """The rows as CSV, every field quoted."""
    lines = [COLUMNS, *ROWS]
    fields = [delimiter.join(f"{quote}{value}{quote}" for value in line) for line in lines]
    return end.join(fields) + end


def zipped(*names: str) -> bytes:
    """The rows in a zip file, once under each name, beside a file that is no table."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as packed:
        for name in names:
            packed.writestr(name, text())
        packed.writestr("licence.pdf", b"\x00")
    return sink.getvalue()


def reordered() -> str:
    """Other columns first, names in capitals."""
    lines = [f'{n},"{loc}",{tap},{t},{d},{m}' for m, d, tap, t, loc, n in ROWS]
    return "\n".join(["COUNT, Loc ,TAP,Time,Date,Mode", *lines])


SHAPES: dict[str, bytes] = {
    "quoted": text().encode(),
    "crlf and mark": b"\xef\xbb\xbf" + text(end="\r\n").encode(),
    "old mac": text(end="\r").encode(),
    "utf-16": text().encode("utf-16"),
    "semicolons": text(";").encode(),
    "tabs": text("\t").encode(),
    "bars": text("|").encode(),
    "blank lines": text(end="\n\n").encode(),
    "gzip": gzip.compress(text().encode()),
    "zip": zipped("ferry.csv"),
    "reordered": reordered().encode(),
    "title above, row count below": f"Opal release 1\n\n{text()}(4 rows affected)\n\n".encode(),
    "header again": (text() + "mode,date,tap,time,loc,count\n").encode(),
    "thousands": text().replace('"1234"', '"1,234"').encode(),
    "decimals": text().replace('"1234"', '"1234.0"').encode(),
    "last line cut off": (text() + "ferry,20160726,on,08:00,Mosm").encode(),
    "last count cut off": (text() + 'bus,20160726,on,08:00,"2000",1').encode(),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_table(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(SHAPES[shape])
    table = read_external_tables([path])
    assert table.cells == tuple(Cell(*row[:5]) for row in ROWS)
    assert table.counts.tolist() == [row[5] for row in ROWS]


def test_a_complete_last_count_is_kept_without_a_last_line_end(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text().rstrip("\n"))
    assert read_external_tables([path]).counts.tolist()[-1] == 19


def test_a_folder_of_packed_tables_is_one_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(SHAPES["gzip"])
    (tmp_path / "b.zip").write_bytes(zipped("one.csv", "two.txt"))
    (tmp_path / "readme.txt").write_text("no table")
    assert len(read_external_tables([tmp_path]).cells) == 3 * len(ROWS)


def test_further_columns_of_texts_make_a_place_finer_and_numbers_stay_companions(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lines.csv"
    path.write_text(
        "mode,date,tap,time,loc,line,lat,count\ntrain,20160725,on,07:15,Town,T1,-33,20\n"
    )
    table = read_external_tables([path])
    assert table.cells[0].loc == "Town, T1"
    assert [name for name, _ in table.companions] == ["lat"]


@pytest.mark.parametrize("name", ["stop", "station", "postcode", "location"])
def test_other_names_of_places_are_known(tmp_path: Path, name: str) -> None:
    path = tmp_path / "places.csv"
    path.write_text(f"mode,date,tap,{name},count\nbus,20160725,on,2000,44\n")
    assert read_external_tables([path]).cells[0] == Cell("bus", "20160725", "on", None, "2000")


@pytest.mark.parametrize(
    "content",
    [b"\x1f\x8bbroken", b"PK\x03\x04broken", zipped(), b"ferry,20160725,on,1\n" * 30],
    ids=["gzip", "zip", "zip without a table", "no header"],
)
def test_what_cannot_be_read_is_refused_with_a_reason(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"table|header"):
        read_external_tables([path])


def test_strays_are_judged_file_by_file(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text(text() + "stray\n" * 15)
    bad.write_text(text() + "stray\n" * 25)
    table: ExternalTable = read_external_tables([good, good])
    assert table.stray_lines == 30
    with pytest.raises(InputError, match=r"25 lines are no rows .* and 4 are"):
        read_external_tables([good, bad])
