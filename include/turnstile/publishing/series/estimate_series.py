"""A later and better series of estimates: all weeks up to W, each with those before and after it.

What a package says of its week never changes, so what later weeks tell of it is a new series, named
after the last week that went in: "as estimated in week W". Made from public packages alone, by
anybody; the same packages make the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from turnstile.errors import InputError
from turnstile.estimates.labelled import csv_bytes, parquet_bytes
from turnstile.estimates.week_estimates import (
    EARLIER_AT_MOST,
    EarlierRelease,
    estimates_of,
    record_of,
)
from turnstile.estimates.week_to_estimate import WeekToEstimate
from turnstile.ledger.custody.folders import release_folders
from turnstile.ledger.records import revision_of
from turnstile.publishing.describe.manifest import MANIFEST
from turnstile.publishing.package_numbers import comparable, earlier_numbers, week_alone
from turnstile.publishing.package_reader import Tables
from turnstile.publishing.written_text import json_bytes
from turnstile.release.numbers import Numbers
from turnstile.release.zones import digest_of
from turnstile.service_calendar import ServicePeriod, is_period, parse_period

RECORD = "series.json"


@dataclass(frozen=True, slots=True)
class _Public:
    """The newest package of a period."""

    period: ServicePeriod
    release: EarlierRelease


def series_files(
    packages: Path, programme: str, as_of: ServicePeriod
) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a series by relative path; its record comes last.

    Args:
        packages: folder of packages by their keys: a public zone.
        programme: its name.
        as_of: last period that goes in.

    Raises:
        InputError: no package of the programme has estimates.
        IntegrityError: a package is not what its manifest says.
    """
    public = _public(packages, programme, as_of)

    @lru_cache(maxsize=2 * EARLIER_AT_MOST)
    def numbers(release: EarlierRelease) -> Numbers:
        return earlier_numbers(packages / release.key, release)

    weeks, without = {}, []
    for package in public:
        folder = packages / package.release.key
        numbers(package.release)  # it is what its manifest says
        try:
            week = week_alone(folder)
        except InputError:
            without.append(
                package.release.key
            )  # thresholds, or version 0.1: it states no estimates
            continue
        beside = _beside(packages, public, package, week)
        estimates = estimates_of(replace(week, earlier=tuple(numbers(other) for other in beside)))
        record = record_of(week, beside, estimates)
        weeks[package.release.key] = record | {"manifest_sha256": package.release.manifest_sha256}
        for name, table in estimates.tables.items():
            path = f"{package.period}/{name}"
            yield f"{path}.csv", csv_bytes(table)
            yield f"{path}.parquet", parquet_bytes(table)
    if not weeks:
        rule = f"no package of {programme} up to {as_of} states estimates"
        raise InputError(where=str(packages), field="packages", rule=rule)
    yield RECORD, _record(programme, as_of, weeks, without)


def _record(
    programme: str, as_of: ServicePeriod, weeks: Mapping[str, object], without: list[str]
) -> bytes:
    """Return what the series is made from."""
    content = {
        "programme": programme,
        "as_estimated_in": str(as_of),
        "weeks": weeks,
        "without_estimates": without,
    }
    return json_bytes(content)


def _public(packages: Path, programme: str, as_of: ServicePeriod) -> tuple[_Public, ...]:
    """Return the newest package of each period up to one that was not withdrawn, in order."""
    newest: dict[str, _Public] = {}
    folders = [(name, folder) for name, folder in release_folders(packages)
               if name.startswith(f"{programme}/") and is_period(folder.parent.name)]  # fmt: skip
    for name, folder in sorted(folders, key=lambda named: revision_of(named[1].name) or 0):
        manifest, period = folder / MANIFEST, parse_period(folder.parent.name)
        is_withdrawn = (folder.parent / f"withdrawn-{folder.name}.json").exists()
        if manifest.exists() and period.first_day <= as_of.first_day and not is_withdrawn:
            release = EarlierRelease(name, digest_of(manifest.read_bytes()))
            newest[str(period)] = _Public(period, release)
    return tuple(sorted(newest.values(), key=lambda package: package.period.first_day))


def _beside(
    packages: Path, public: tuple[_Public, ...], package: _Public, week: WeekToEstimate
) -> tuple[EarlierRelease, ...]:
    """Return the comparable weeks nearest in time to one, on both sides; the earlier one first."""
    start = package.period.first_day
    others = (other for other in public if other is not package)
    near = sorted(others, key=lambda other: abs(other.period.first_day - start))
    keys = (other.release.key for other in near)
    card = Tables(packages / package.release.key).card
    return comparable(packages, keys, week.numbers, week.promise, card)
