"""How tables that are made from a drawn one are called is said in one module alone."""

from __future__ import annotations

import re
from pathlib import Path

from turnstile.estimates import table_names

SOURCES = Path(table_names.__file__).parents[1]
OWN = Path(table_names.__file__)
ENDS = "|".join(sorted({end.removeprefix("_") for end in table_names.SUFFIXES if end}))
SPELLED = re.compile(rf"""["'}}]_(\w+_)?({ENDS})["']""")


def spelled(source: str) -> list[str]:
    return [match[0] for match in SPELLED.finditer(source)]


def test_no_other_module_spells_the_end_of_a_table() -> None:
    by_module = {path: spelled(path.read_text()) for path in SOURCES.rglob("*.py")}
    carried = SOURCES / "publishing/carried"  # by packages: they import nothing of ours
    elsewhere = {
        path.name: found
        for path, found in by_module.items()
        if found and path != OWN and not path.is_relative_to(carried)
    }
    assert elsewhere == {}
    assert by_module[OWN]  # negative control


def test_an_end_that_is_spelled_again_is_found() -> None:
    assert spelled('name = f"{drawn}_daily"') == ['}_daily"']
    assert spelled('ENDS = ("_regions_hourly", "_year_to_date")') == [
        '"_regions_hourly"',
        '"_year_to_date"',
    ]
    assert spelled('"unlisted_places", by_places, "places"') == []
