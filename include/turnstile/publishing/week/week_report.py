"""`report.html`: the week for a planner or a journalist, in one file that fetches nothing."""

from __future__ import annotations

from markupsafe import Markup

from turnstile.publishing.contents import NORMAL_95, Contents, label_of, period_word
from turnstile.publishing.describe.card_terms import has_days
from turnstile.publishing.describe.readme import cumulative_sentence, guarantee_sentence, unit_text
from turnstile.publishing.pages import rendered
from turnstile.publishing.week import numbers as week_numbers
from turnstile.publishing.week.claims import how_many
from turnstile.publishing.week.pictures import (
    NAMES,
    has_counts,
    largest,
    most_in_words,
    pictures,
    slowest,
    what_of,
)

_ABOUT_ESTIMATES = (
    "Numbers of places and hours are estimates; the interval of one holds the truth in 95 of 100 "
    "releases. They are the most exact numbers there are, and biased towards the usual: a "
    "burst of a quarter of an hour is mostly lost. Unbiased numbers stand beside them."
)


def write(contents: Contents) -> bytes | None:
    """Return the page; None where nothing is counted, or a threshold left everything out."""
    if not has_counts(contents):
        return None
    programme, plan = contents.drawn.programme, contents.drawn.plan
    drawn = pictures(contents)
    return rendered(
        "report.html.j2",
        title=programme.title,
        period=str(plan.week),
        word=period_word(contents),
        first_day=plan.week.days[0],
        last_day=plan.week.days[-1],
        curator=programme.publish.curator,
        licence=programme.publish.licence,
        key=str(contents.drawn.attempt.key),
        sentences=_sentences(contents),
        usable=week_numbers.usable_tables(contents),
        pictures=[
            {"title": picture.title, "text": picture.text, "svg": Markup(picture.svg)}  # noqa: S704 - vl-convert escapes
            for picture in (drawn[name] for name in NAMES if name in drawn)
        ],
        unit=unit_text(programme.mechanism.unit),
        guarantee=guarantee_sentence(contents.card, programme.mechanism.unit),
        cumulative=cumulative_sentence(contents.card),
        has_days=has_days(contents.card),
        gaps=[day for day in contents.card["gaps"] if day not in contents.card["absent_days"]],
        absent_days=contents.card["absent_days"],
    ).encode()


def _sentences(contents: Contents) -> list[str]:
    """Say what the week was, in words; every number with its error."""
    days = week_numbers.by_day(contents)
    sentences = []
    if not days.empty:
        value = days["value"].sum()
        half = NORMAL_95 * float((days["deviation"] ** 2).sum()) ** 0.5
        sentences.append(
            f"About {value:,.0f} tap-ons in the {period_word(contents)} (± {half:,.0f})."
        )
        total = days.assign(variance=days["deviation"] ** 2).groupby("service_date")
        sums = total[["value", "variance"]].sum().reset_index()
        busiest = most_in_words(sums)
        quietest = most_in_words(sums.assign(value=-sums["value"]))
        sentences.append(f"The busiest day was {busiest}; the quietest {quietest}.")
    places = week_numbers.by_location(contents)
    sentences.append(f"The most {what_of(contents)} were at {largest(places)}.")
    speeds = week_numbers.speeds_by_cell(contents)
    if not speeds.empty:
        sentences.append(f"The lowest mean speed of buses is at {slowest(speeds)}.")
    places_changed = week_numbers.changed_places(contents)
    if not places_changed.empty:
        said = how_many(places_changed["is_listed"].to_numpy())
        sentences.append(f"Since the {period_word(contents)} before {said}.")
    if week_numbers.has_estimates(contents):
        sentences.append(_ABOUT_ESTIMATES)
    if places["low"].isna().any():
        sentences.append(_without_an_interval(contents))
    return sentences


def _without_an_interval(contents: Contents) -> str:
    """Say why some numbers have none."""
    if not week_numbers.is_thresholded(contents):
        return (
            "Where no interval is stated, too little is known of the error of an estimate; the "
            "unbiased number beside it has its own."
        )
    least = week_numbers.threshold_of(contents, {label_of(contents)})
    return (
        f"Numbers below a threshold were left out, those of a place and day below {least}, and "
        "sums lack them: what has no interval is too small by an unknown amount."
    )
