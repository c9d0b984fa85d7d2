"""How the tables are called that are made from a drawn one: by its name and one of these ends."""

from __future__ import annotations

from collections.abc import Mapping

HOURLY, DAILY, REGIONS = "_hourly", "_daily", "_regions"
QUARTER, YEAR = "_13_weeks", "_year_to_date"
BESIDE_MEANS = "_buses"  # of which they are
PLACES, HOURS, CITY = "_places", "_hours", "_city"  # means of more than a cell
ROWS = "_rows"  # as many equal rows as a count
OF_COUNTS = ("", HOURLY, DAILY, REGIONS, REGIONS + HOURLY, REGIONS + DAILY, QUARTER, YEAR)
OF_MEANS = (PLACES, HOURS, CITY)
SUFFIXES = (*OF_COUNTS, BESIDE_MEANS, *OF_MEANS, ROWS)


def means_of(by: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """Return the labels of the tables of means that one of these labels makes, by their ends.

    Args:
        by: slot and place.

    Examples:
        >>> means_of(("slot", "cell"))["_places"]
        ('cell',)
    """
    return dict(zip(OF_MEANS, (by[1:], by[:1], ()), strict=True))
