"""The public numbers of a package, as estimates read them: what anybody can do with a download."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.arrow_columns import vector
from turnstile.errors import InputError, IntegrityError
from turnstile.estimates.public_numbers import (
    Promise,
    PublicNumbers,
    WeekToEstimate,
    deviations_of,
    is_comparable,
)
from turnstile.estimates.week_estimates import (
    EARLIER_AT_MOST,
    EarlierRelease,
    earlier_releases,
    promise_from,
)
from turnstile.programme.domain import PublicDomain, published_domain
from turnstile.publishing.manifest import MANIFEST, differences
from turnstile.publishing.package_reader import Package, read_package
from turnstile.release.zones import digest_of
from turnstile.service_calendar import parse_period

CARD = "release_card.json"


def numbers_of_package(folder: Path) -> PublicNumbers:
    """Return what a package says that was drawn; packages of every version are read.

    Raises:
        InputError: it is no complete package.
    """
    return _numbers(folder, read_package(folder))


def comparable(
    packages: Path, keys: Iterable[str], now: PublicNumbers
) -> tuple[EarlierRelease, ...]:
    """Return the first releases that can be compared with a week, as many as estimates take.

    Their plans are read, and no table: a year of weeks costs little. A package that is not there
    is passed over.
    """
    found: list[EarlierRelease] = []
    for key in keys:
        if len(found) == EARLIER_AT_MOST:
            break
        folder = packages / key
        try:
            plan = _json(folder, "plan.json")
            manifest = (folder / MANIFEST).read_bytes()
        except (InputError, OSError):
            continue
        if is_comparable(plan["domain_digest"], parse_period(plan["week"]).days, now):
            found.append(EarlierRelease(key, digest_of(manifest)))
    return tuple(found)


def _numbers(folder: Path, package: Package) -> PublicNumbers:
    """Return what a package that was read says that was drawn."""
    card, plan = _json(folder, CARD), _json(folder, "plan.json")
    vectors = {
        (event.table, event.statistic): _by_day(package.tables[event.table], event.statistic)
        for event in package.events
    }
    return PublicNumbers(
        key=str(card["release"]),
        domain_digest=plan["domain_digest"],
        days=tuple(parse_period(plan["week"]).days),
        gaps=tuple(date.fromisoformat(day) for day in card["gaps"]),
        vectors=vectors,
        deviations=deviations_of(package.events),
    )


def earlier_numbers(folder: Path, stated: EarlierRelease) -> PublicNumbers:
    """Return the numbers of an earlier release that estimates name by digest.

    Raises:
        InputError: the package is not there.
        IntegrityError: it is another one, or one of its files was altered.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file():
        rule = f"the estimates were made with {stated.key}; put its package there"
        raise InputError(where=str(folder), field="package", rule=rule)
    if digest_of(manifest.read_bytes()) != stated.manifest_sha256 or differences(folder):
        raise IntegrityError(f"{folder}: not the package that the estimates name; restore it")
    return numbers_of_package(folder)


def week_of_package(folder: Path, packages: Path) -> WeekToEstimate:
    """Return everything that the estimates of a package are made from.

    Args:
        folder: the package.
        packages: folder in which earlier releases lie by their keys: the public zone.

    Raises:
        InputError: the package has no estimates, or an earlier one is not there.
        IntegrityError: an earlier package is not the one that was used.
    """
    stated = earlier_releases(estimates_record(folder))
    earlier = tuple(earlier_numbers(packages / one.key, one) for one in stated)
    return replace(week_alone(folder), earlier=earlier)


def week_alone(folder: Path) -> WeekToEstimate:
    """Return the same without the earlier releases.

    Raises:
        InputError: the package has no estimates.
    """
    record = estimates_record(folder)
    promise = promise_from(record)
    package = read_package(folder)
    numbers = _numbers(folder, package)
    domain = _domain(package, promise, numbers.domain_digest)
    return WeekToEstimate(promise, domain, numbers, record["seed_sha256"], ())


def estimates_record(folder: Path) -> dict[str, Any]:
    """Return what a package says of its estimates.

    Raises:
        InputError: it states none.
    """
    record: dict[str, Any] | None = _json(folder, CARD).get("estimates")
    if record is None:
        rule = "states no estimates: they begin with version 0.2, and none are made of thresholds"
        raise InputError(where=str(folder), field=CARD, rule=rule)
    return record


def _by_day(table: pa.Table, statistic: str) -> dict[date | None, NDArray[np.int64]]:
    """Return the vectors of one statistic by service day."""
    values = vector(table.column(statistic)).astype(np.int64)
    if "service_date" not in table.column_names:
        return {None: values}
    days = table.column("service_date").unique().to_pylist()  # in the order of the rows
    return dict(zip(days, np.split(values, len(days)), strict=True))


def _domain(package: Package, promise: Promise, digest: str) -> PublicDomain:
    """Return the public cells, read off the labels of the measurements.

    Labels stand in the order of the domain, and every cell has its row. Tables of one mode do not
    name it; the plan does.
    """
    planned = tuple(sorted({block.mode for event in package.events for block in event.blocks}))
    axes: dict[str, dict[str, tuple[str, ...]]] = {}
    for table in (*promise.tables, *promise.flows):
        rows = package.tables[table.name]
        modes = planned
        of_row = np.zeros(len(rows), dtype=np.int64)
        if "mode" in rows.column_names:
            modes, of_row = _coded(rows, "mode")
        for name in table.by:
            labels, codes = _coded(rows, name)
            for number, mode in enumerate(modes):
                own = _in_order(codes[of_row == number])
                axes.setdefault(mode, {})[name] = tuple(labels[code] for code in own)
    return published_domain(digest, axes)


def _coded(rows: pa.Table, name: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the labels of a column in the order of the rows, and the number of each row's."""
    column = rows.column(name).cast(pa.string()).combine_chunks().dictionary_encode()
    codes = column.indices.to_numpy().astype(np.int64)
    order = _in_order(codes)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order))
    labels = column.dictionary.to_pylist()
    return tuple(labels[code] for code in order), numbers[codes]


def _in_order(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct codes in the order in which they first appear."""
    found, first = np.unique(codes, return_index=True)
    return found[np.argsort(first, kind="stable")]


def _json(folder: Path, name: str) -> dict[str, Any]:
    """Read one of the package's JSON files.

    Raises:
        InputError: it is missing or cannot be read.
    """
    try:
        found: dict[str, Any] = json.loads((folder / name).read_bytes())
    except (OSError, ValueError):
        rule = f"{name} is missing or cannot be read; give a complete package"
        raise InputError(where=str(folder), field="package", rule=rule) from None
    return found
