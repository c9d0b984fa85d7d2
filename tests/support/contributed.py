"""What a contributor adds, one of each row of "Where a change goes" (docs/ARCHITECTURE.md)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scratch_copy import ScratchCopy

_EXTENSIONS = "extensions/"


@dataclass(frozen=True)
class Change:
    """One change of the sources.

    Args:
        modules: text of each new file, by its path in `include/turnstile`, or below `extensions`.
        entries: triples (path, what stands there once, what stands there afterwards).
    """

    modules: dict[str, str]
    entries: tuple[tuple[str, str, str], ...] = ()

    def make(self, copy: ScratchCopy) -> list[str]:
        """Do it in a copy; return the sources that it touched."""
        before, copy.touched = copy.touched, set()
        for path, text in self.modules.items():
            copy.add(_from_root(path), text)
        for path, old, new in self.entries:
            copy.replace(_from_root(path), old, new)
        touched, copy.touched = copy.touched_sources, before | copy.touched
        return touched


def _from_root(path: str) -> str:
    """A path of the sources, named from the root."""
    return path if path.startswith(_EXTENSIONS) else f"include/turnstile/{path}"


def _before(path: str, text: str, added: str) -> tuple[str, str, str]:
    """An entry that stands before another one."""
    return path, text, f"{added}{text}"


_FIELD = """    Field(
        "rider_category",
        _T.STRING,
        "",
        "Rider",
        "Category of the card.",
        Role.DIMENSION,
        "VARCHAR",
        _TRIPS,
        _TRIPS,
        ("adult", "child"),
    ),
"""
_FEED = '''"""Feed `ferry_trips`: as `opal_trips`, under other columns."""

from dataclasses import replace

from turnstile.sources.feeds import opal_trips

LAYOUT = replace(
    opal_trips.LAYOUT,
    names=tuple((field, f"ferry_{field}") for field, _ in opal_trips.LAYOUT.names),
)
'''
_RULE = """        _ranged("rows_a_week", Severity.ERROR, Frame.WEEK, ("rows", 9, None), "few"),
"""
_MECHANISM = '''"""Dense draws, clipped to what a city can have. Proof: dense_clipped.proof.md."""

import logging

import numpy as np

from turnstile.privacy.mechanisms import dense


def draw(event, exact):
    """Return the noisy table within a million: post-processing of a dense draw."""
    logging.getLogger(__name__).info("clipped")
    return np.clip(dense.noised(event, exact), -(10**6), 10**6)
'''
_ACCOUNTANT = "publishing/carried/verify_losses.py"
_UNIT = """    CARD_MONTH = ("card_month", "the month of a card", Subject.CARD, 31,
                  lambda block: f"{block.service_date:%Y-%m}", "trips_at_most")
"""
_ENGINE = '''"""Counts twice and compares."""

import numpy as np

from turnstile.counting import exact_tables


def count(*args, **kwargs):
    """Count twice."""
    first, second = exact_tables.count(*args, **kwargs), exact_tables.count(*args, **kwargs)
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one.reveal_to_mechanism(), other.reveal_to_mechanism())
    kwargs["progress"]("counted twice")
    return first
'''
_GATE = '''"""Every vector holds a number."""

from turnstile.assessment.gates.numbers import Judged
from turnstile.assessment.gates.result import GateResult


def not_empty(numbers: Judged) -> GateResult:
    """Judge the lengths."""
    passed = all(len(one.values) for one in numbers.vectors)
    return GateResult("not_empty", passed, "every vector holds a number")
'''
_PORTAL = '''"""A folder of a depot that has a name."""

from turnstile_stores.portals.folder import FolderStore


class DepotStore(FolderStore):
    """As any folder."""
'''
_FILE = '''"""`counts.txt`: how many tables there are."""

from turnstile.publishing.contents import Contents


def write(contents: Contents) -> bytes:
    """Return the number of tables."""
    return b"%d tables" % len(contents.tables)
'''
_NOW, _PAGE = "operations/programme_now.py", "operations/budget_page/templates/budget.html"
_FIGURE = '''    @property
    def to_take(self) -> str:
        """What anybody can have."""
        return f"to be downloaded: {self.weeks_public}"

'''
_FAMILY = """    TWO_SIDED_GEOMETRIC = (
        "two_sided_geometric",
        Record(
            drawn_by="make_laplace",
            is_pure=True,
            has_geometric_tail=True,
            adds_up=False,
            masses=_laplace_masses,
            variance=_laplace_variance,
            ratios=_laplace_ratios,
        ),
    )
"""
_GATES, _FILES = "assessment/gates/registry.py", "publishing/files.py"
_PORTALS = "extensions/stores/turnstile_stores/portals"
_FIRST_FIELD = "FIELDS: tuple[Field, ...] = (\n"
_FIRST_FILE = "FILES: tuple[PackageFile, ...] = (\n"
_ENTRY_OF_FILE = """    PackageFile("counts.txt", (Source.DECLARED,), counts.write),
"""
_TABLES, _NUMBERS = "publishing/data_tables.py", "programme/fields_of_numbers.csv"
_FIRST_COLUMN = "    if measured is not None:\n"
_COLUMN = '    columns["pairs"] = column(np.floor(numbers[VALUE] / 2))\n'
_LINE_OF_COLUMN = "pairs,number,pairs,presentation,Pairs of trips,Two trips each.\n"
CHANGES = {
    "dimension": Change(
        {},
        (("programme/fields.py", _FIRST_FIELD, f"{_FIRST_FIELD}{_FIELD}"),),
    ),
    "feed": Change(
        {"sources/feeds/ferry_trips.py": _FEED},
        (
            _before(
                "programme/source_spec.py",
                '    OPAL_TRIPS = "opal_trips"\n',
                '    FERRY_TRIPS = "ferry_trips"\n',
            ),
        ),
    ),
    "column of a released table": Change(
        {},
        (
            (_TABLES, _FIRST_COLUMN, f"{_COLUMN}{_FIRST_COLUMN}"),
            _before(_NUMBERS, "reconciled,number,trips,", _LINE_OF_COLUMN),
        ),
    ),
    "check of the rows": Change(
        {},
        (_before("quality/rules.py", '        _ranged("rows_present", error', _RULE),),
    ),
    "mechanism": Change(
        {
            "privacy/mechanisms/dense_clipped.py": _MECHANISM,
            "privacy/mechanisms/dense_clipped.proof.md": "# Post-processing of dense.\n",
        },
        (
            _before(
                "privacy/mechanisms/registry.py",
                "    STABILITY_HISTOGRAM = (\n",
                '    DENSE_CLIPPED = "dense_clipped", NoiseFamily.DISCRETE_GAUSSIAN, "rho", '
                'gaussian_noise, "dense_clipped"\n',
            ),
        ),
    ),
    "unit": Change(
        {},
        (
            _before("privacy/units.py", '    CARD = "card", ', _UNIT),
            _before(_ACCOUNTANT, '"card": EVER}', '"card_month": 31, '),
            _before(_ACCOUNTANT, '7: week, EVER: "ever"', '31: f"{day:%Y-%m}", '),
        ),
    ),
    "counting engine": Change(
        {"counting/twice.py": _ENGINE},
        (
            _before(
                "counting/engines.py",
                '    "duckdb": "turnstile.counting.exact_tables",\n',
                '    "twice": "turnstile.counting.twice",\n',
            ),
        ),
    ),
    "gate": Change(
        {"assessment/gates/not_empty.py": _GATE},
        (
            _before(_GATES, "    noise_kind,\n", "    not_empty,\n"),
            _before(
                _GATES,
                "from turnstile.assessment.gates.noise_kind import",
                "from turnstile.assessment.gates.not_empty import not_empty\n",
            ),
        ),
    ),
    "kind of portal": Change(
        {f"{_PORTALS}/depot.py": _PORTAL},
        (
            _before(
                f"{_PORTALS}/addresses.py", "    S3: frozenset(", '    "depot": frozenset(),\n'
            ),
            _before(
                f"{_PORTALS}/delivery.py",
                "        if self.portal.kind == FOLDER:\n",
                '        if self.portal.kind == "depot":\n'
                "            return DepotStore(self.portal.folder)\n",
            ),
            _before(
                f"{_PORTALS}/delivery.py",
                "from turnstile_stores.portals.folder import",
                "from turnstile_stores.portals.depot import DepotStore\n",
            ),
        ),
    ),
    "figure on the budget page": Change(
        {},
        (
            _before(_NOW, "    @property\n    def verdict(self) -> str:\n", _FIGURE),
            _before(_PAGE, "{{ one.weeks_public }} public; in Airflow: ", "{{ one.to_take }}; "),
        ),
    ),
    "file in the package": Change(
        {"publishing/describe/counts.py": _FILE},
        (
            (_FILES, _FIRST_FILE, f"{_FIRST_FILE}{_ENTRY_OF_FILE}"),
            _before(_FILES, "    croissant,\n", "    counts,\n"),
        ),
    ),
}


NOISE_FAMILY = Change(
    {},
    (
        _before("privacy/noise_families.py", "    DISCRETE_GAUSSIAN = (\n", _FAMILY),
        _before(
            "privacy/mechanisms/registry.py",
            "    STABILITY_HISTOGRAM = (\n",
            '    DENSE_GEOMETRIC = "dense_geometric", NoiseFamily.TWO_SIDED_GEOMETRIC\n',
        ),
    ),
)
"""In a copy of its own: a programme has one mechanism."""

CRAWLING = Change(
    {
        "measures/crawling.py": '''"""Bus-days that crawl."""

from dataclasses import dataclass

from turnstile.measures.buses import Buses


@dataclass(frozen=True, kw_only=True)
class Crawling(Buses):
    """Each bus-day of a mean below 20 km/h adds 1 to its cell."""

    def adds(self, options, statistic, counted):
        return (counted["speed_sum_milli"] < 20_000 * counted["readings"]).astype("int64")
'''
    },
    (
        (
            "measures/registry.py",
            '    HEADWAY = "headway"',
            '    CRAWLING = "crawling", Crawling()\n    HEADWAY = "headway"',
        ),
        (
            "measures/registry.py",
            "from turnstile.measures.kind import",
            "from turnstile.measures.crawling import Crawling\nfrom turnstile.measures.kind import",
        ),
    ),
)
"""Of buses, beside it: they have a programme of their own."""


_TEXTS = {
    "programme": (("name: opal", "name: ferries"), ("slot_minutes: 15", "slot_minutes: 240")),
    "dimension": (
        ("tables:  ", "tables:\n  riders: {by: [rider_category]}\n  # "),
        ('    on_time: "1/8"\n', '    on_time: "1/16"\n    riders: "1/16"\n'),
    ),
    "feed": (("feed: opal_trips", "feed: ferry_trips"),),
    "mechanism": (("kind: dense_gaussian", "kind: dense_clipped"),),
    "unit": (
        ("card_day: {trips_at_most: 6", "card_month: {trips_at_most: 60"),
        ("unit: card_day", "unit: card_month"),
        ('  rho: "1/12"', '  rho: "8"'),  # a month of a card is hidden by more noise than a day
        ('rho: "1/4", delta', 'rho: "9", delta'),
    ),
}


def programme_text(include: Path, *uses: str) -> str:
    """Return a further programme, a copy of `opal` that uses changes."""
    text = (include / "programmes/opal.yaml").read_text(encoding="utf-8")
    for use in ("programme", *uses):
        for old, new in _TEXTS[use]:
            assert old in text
            text = text.replace(old, new)
    return text
