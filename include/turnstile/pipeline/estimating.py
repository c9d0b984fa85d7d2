"""Estimates of a sealed release, from its own numbers and the weeks that were public at that time.

Which earlier releases went in is written down once, beside the sealed bytes: whoever repeats the
step later, when more weeks are public, makes the same estimates (PRIVACY 6.2: a sealed key has one
package for ever). A better estimate of an old week is a new series, never a changed package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from itertools import islice

from turnstile.estimates.labelled import parquet_bytes
from turnstile.estimates.week_estimates import (
    FOLDER,
    RECORD,
    EarlierRelease,
    estimates_of,
    record_of,
)
from turnstile.estimates.week_to_estimate import Promise, WeekToEstimate, promise_of
from turnstile.ledger.records import ReleaseKey
from turnstile.pipeline.context import Release
from turnstile.publishing.card import counted_by
from turnstile.publishing.package_numbers import comparable, drew_alike, earlier_numbers
from turnstile.release.drawn import Drawn
from turnstile.release.numbers import Numbers, of_sealed
from turnstile.release.zones import write_atomically, write_once
from turnstile.service_calendar import parse_period

_INPUTS = "earlier.json"
_LOOKED_AT_MOST = 60  # releases back, so that a changed domain ends the search


def write_estimates(release: Release, drawn: Drawn) -> None:
    """Write the tables of estimates and their record; none where the programme has none.

    Raises:
        InputError: an earlier release that they were first made with is not public any more.
        IntegrityError: it is another one now.
    """
    folder = release.folders.embargoed / FOLDER
    promise, numbers = promise_of(drawn.programme, drawn.domain), of_sealed(drawn)
    earlier = _fixed_earlier(release, numbers, promise)
    week = WeekToEstimate(
        promise=promise,
        domain=drawn.domain,
        numbers=numbers,
        seed=str(drawn.attempt.artefact_digest),
        earlier=tuple(
            earlier_numbers(release.settings.public / earlier_release.key, earlier_release)
            for earlier_release in earlier
        ),
    )
    estimates = estimates_of(week)
    if not estimates.tables:
        return
    for name, table in estimates.tables.items():
        write_atomically(folder / f"{name}.parquet", parquet_bytes(table))
    record = json.dumps(record_of(week, earlier, estimates), indent=1, sort_keys=True)
    write_atomically(folder / RECORD, record.encode())


def _fixed_earlier(
    release: Release, numbers: Numbers, promise: Promise
) -> tuple[EarlierRelease, ...]:
    """Return the earlier releases that go in: as first written down, else those public now."""
    path = release.folders.embargoed / FOLDER / _INPUTS
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        earlier_releases = earlier_now(release, numbers, promise)
        lines = [
            [earlier_release.key, earlier_release.manifest_sha256]
            for earlier_release in earlier_releases
        ]
        write_once(path, json.dumps(lines).encode())
    stated = [EarlierRelease(*line) for line in json.loads(path.read_bytes())]
    # earlier code wrote down releases that had not drawn all tables, and no estimates came of it
    places = {release.settings.public / earlier.key: earlier for earlier in stated}
    return tuple(
        earlier
        for folder, earlier in places.items()
        if not folder.is_dir() or drew_alike(folder, promise)
    )


def earlier_now(
    release: Release, numbers: Numbers, promise: Promise | None = None
) -> tuple[EarlierRelease, ...]:
    """Return the earlier releases that would go in now; without a promise, those that may.

    Of the numbers, cells and days count.
    """
    keys = map(str, islice(_published_keys(release), _LOOKED_AT_MOST))
    card = counted_by(release.programme, release.plan, release.domain)
    return comparable(release.settings.public, keys, numbers, promise, card)


def _published_keys(release: Release) -> Iterator[ReleaseKey]:
    """Yield the release in force of each earlier period, latest first, if its package is here."""
    weeks = release.ledger.weeks(release.key.programme).values()
    in_force = [week.in_force.key for week in weeks if week.in_force is not None]
    for key in sorted(in_force, key=_first_day, reverse=True):
        is_here = (release.settings.public / str(key)).is_dir()
        if is_here and _first_day(key) < release.week.first_day:
            yield key


def _first_day(key: ReleaseKey) -> date:
    return parse_period(key.period).first_day
