"""Lines that try to swallow others, to be read as others, or to stop a reader; for CSV and NDJSON.

A good line `card,mode,date,time,place,...` is turned into a hostile one. What is made may hold line
feeds: then it is several physical lines.
"""

from __future__ import annotations

from collections.abc import Callable

Spoil = Callable[[bytes], bytes]


def _in_mode(instead: bytes) -> Spoil:
    """Write something in the place of the second field."""
    return lambda line: b",".join((line.split(b",")[0], instead, *line.split(b",")[2:]))


CSV: dict[str, Spoil] = {
    "quote before the line": lambda line: b'"' + line,
    "quote behind the line": lambda line: line + b'"',
    "quote before a field": _in_mode(b'"train'),
    "quote behind a field": _in_mode(b'train"'),
    "quote inside a field": _in_mode(b'tr"ain'),
    "two quotes inside a field": _in_mode(b't"r"ain'),
    "doubled quote outside of quotes": _in_mode(b'tr""ain'),
    "quoted field with more behind": _in_mode(b'"train"x'),
    "quoted field with more before": _in_mode(b'x"train"'),
    "space before a quote": _in_mode(b' "train"'),
    "space behind a quote": _in_mode(b'"train" '),
    "three quotes": _in_mode(b'"""'),
    "five quotes": _in_mode(b'"""""'),
    "quote escaped by a backslash": _in_mode(b'"tr\\"ain"'),
    "only a quote": lambda _: b'"',
    "only two quotes": lambda _: b'""',
    "only commas and a quote": lambda _: b',,,,,,,"',
    "one field too few": lambda line: line.rsplit(b",", 1)[0],
    "two fields too many": lambda line: line + b",x,y",
    "a hundred fields too many": lambda line: line + b",x" * 100,
    "one field": lambda _: b"x",
    "nothing": lambda _: b"",
    "two times nothing": lambda _: b"\n",
    "only a space": lambda _: b" ",
    "only a tab": lambda _: b"\t",
    "line break in a quoted field": _in_mode(b'"tr\nain"'),
    "line break in a field": _in_mode(b"tr\nain"),
    "line break with carriage return": _in_mode(b'"tr\r\nain"'),
    "carriage return in a field": _in_mode(b"tr\rain"),
    "carriage return in a quoted field": _in_mode(b'"tr\rain"'),
    "carriage return before the line": lambda line: b"\r" + line,
    "two carriage returns behind": lambda line: line + b"\r\r",
    "only a carriage return, and another": lambda _: b"\r\r",
    "NUL in a field": _in_mode(b"tr\0ain"),
    "NUL in a quoted field": _in_mode(b'"tr\0ain"'),
    "only NUL": lambda _: b"\0" * 9,
    "byte that no UTF-8 has": _in_mode(b"tr\xffain"),
    "overlong UTF-8": _in_mode(b"tr\xc0\xafain"),
    "surrogate in UTF-8": _in_mode(b"tr\xed\xa0\x80ain"),
    "UTF-8 cut off by a comma": _in_mode(b"tra\xc3"),
    "UTF-8 cut off by the line's end": lambda line: line + b"\xe2\x82",
    "UTF-16": lambda line: line.decode().encode("utf-16-be"),
    "field of 3 MB": _in_mode(b"t" * 3_000_000),
    "quoted field of 3 MB": _in_mode(b'"' + b"t" * 3_000_000 + b'"'),
    "open quote and 3 MB": _in_mode(b'"' + b"t" * 3_000_000),
    "two million commas": lambda line: line + b"," * 2_000_000,
    "two million quotes": _in_mode(b'"' * 2_000_001),
}
"""Each costs its own physical lines and no other."""

READABLE: dict[str, Spoil] = {
    "quoted field": _in_mode(b'"train"'),
    "all fields quoted": lambda line: b",".join(b'"' + f + b'"' for f in line.split(b",")),
    "carriage return at the line's end": lambda line: line + b"\r",
    "spaces in a quoted field": _in_mode(b'" train "'),
}
"""Each is the good line in other words (RFC 4180), and counts."""

ODD: dict[str, Spoil] = {
    "comma in a quoted field": _in_mode(b'"tr,ain"'),
    "doubled quote in a quoted field": _in_mode(b'"tr""ain"'),
    "only doubled quotes": _in_mode(b'""""""'),
    "quoted nothing": _in_mode(b'""'),
    "backslash": _in_mode(b"train\\"),
    "apostrophe": _in_mode(b"'train"),
    "comment": lambda line: b"#" + line,
    "end of file of another age": _in_mode(b"train\x1a"),
    "form feed": _in_mode(b"tr\x0cain"),
    "vertical tab": _in_mode(b"tr\x0bain"),
    "line separator of Unicode": _in_mode("tr\u2028ain".encode()),
    "next line of Unicode": _in_mode("tr\u0085ain".encode()),
    "byte order mark": lambda line: b"\xef\xbb\xbf" + line,
    "statement": _in_mode(b"'); DROP TABLE staged; --"),
    "the header again": lambda _: (
        b"card_id,mode,tap_on_date,tap_on_time,tap_on_location,"
        b"tap_off_date,tap_off_time,tap_off_location"
    ),
}
"""Each is one record, good or bad by the feed's rules, whatever stands in it."""

JSON_LINES: dict[str, Spoil] = {
    "no end": lambda line: line[:-1],
    "no begin": lambda line: line[1:],
    "array": lambda line: b"[" + line + b"]",
    "array that stays open": lambda line: b"[" + line,
    "text": lambda _: b'"card"',
    "open text": lambda _: b'"card',
    "number": lambda _: b"1",
    "null": lambda _: b"null",
    "two records": lambda line: line + line,
    "comma behind": lambda line: line + b",",
    "nothing": lambda _: b"",
    "only a space": lambda _: b" ",
    "line break within": lambda line: line.replace(b",", b",\n", 1),
    "carriage return within": lambda line: line.replace(b",", b",\r", 1),
    "NUL": lambda line: line.replace(b"train", b"tr\0ain"),
    "control character": lambda line: line.replace(b"train", b"tr\x01ain"),
    "no UTF-8": lambda line: line.replace(b"train", b"tr\xffain"),
    "half a surrogate": lambda line: line.replace(b"train", b"tr\\ud800ain"),
    "3 MB": lambda line: line.replace(b"train", b"t" * 3_000_000),
    "comment": lambda line: b"// " + line,
}
"""Each costs its own physical lines and no other."""
