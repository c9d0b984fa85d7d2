"""The public numbers of a package, as estimates read them: what anybody can do with a download."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnstile.errors import InputError, IntegrityError
from turnstile.estimates.vehicles.rolling_means import WeekOfMeans, week_of_means
from turnstile.estimates.week_estimates import (
    EARLIER_AT_MOST,
    EarlierRelease,
    draws_alike,
    earlier_releases,
    promise_from,
)
from turnstile.estimates.week_to_estimate import Promise, WeekToEstimate, is_comparable
from turnstile.publishing.carried.sums import terms_of
from turnstile.publishing.describe.manifest import MANIFEST, differences
from turnstile.publishing.package_reader import CARD, Package, Tables, domain_of, read_package
from turnstile.release.numbers import Numbers, Statistic, deviations_of
from turnstile.release.zones import digest_of
from turnstile.service_calendar import parse_period


def numbers_of_package(folder: Path) -> Numbers:
    """Return what a package says that was drawn; packages of every version are read.

    Raises:
        InputError: it is no complete package.
    """
    return _numbers(folder, read_package(folder))


def comparable(
    packages: Path,
    keys: Iterable[str],
    now: Numbers,
    promise: Promise | None,
    card: Mapping[str, Any],
) -> tuple[EarlierRelease, ...]:
    """Return the first releases that can be compared with a week, as many as estimates take.

    Their plans and cards are read, and no table: a year of weeks costs little. A package that is
    not there is passed over.

    Args:
        packages: folder in which releases lie by their keys.
        keys: of releases, in the order in which they are asked.
        now: of which cells and days count.
        promise: of the week; who did not draw one of its tables, or over another range, is no help.
            None where it is not known yet.
        card: of the week, as far as it says what is counted (`counted_by`).
    """
    releases: list[EarlierRelease] = []
    for key in keys:
        if len(releases) == EARLIER_AT_MOST:
            break
        folder = packages / key
        try:
            plan = _json(folder, "plan.json")
            manifest = (folder / MANIFEST).read_bytes()
        except (InputError, OSError):
            continue
        days = parse_period(plan["week"]).days
        if not is_comparable(plan["domain_digest"], days, now):
            continue
        if promise is None or (
            drew_alike(folder, promise) and _counted_alike(_json(folder, CARD), card, promise)
        ):
            releases.append(EarlierRelease(key, digest_of(manifest)))
    return tuple(releases)


def drew_alike(folder: Path, promise: Promise) -> bool:
    """Return whether a package states that it drew every table of a promise."""
    try:
        return draws_alike(estimates_record(folder), promise)
    except InputError:  # it states no estimates
        return False


def _counted_alike(earlier: dict[str, Any], now: Mapping[str, Any], promise: Promise) -> bool:
    """Return whether a card says that every table of a promise counts what it does now.

    Cards of before cards held their terms do not say: they are taken as alike.
    """
    if "terms" not in earlier or "terms" not in now:
        return True
    slots = {"promise": {"slot_minutes": promise.slot_minutes}}
    cards = [{**card, "estimates": slots} for card in (earlier, now)]
    tables = (*promise.tables, *promise.flows, *promise.totals)
    return all(
        terms_of(cards[0], table.by, [table.name]) == terms_of(cards[1], table.by, [table.name])
        for table in tables
    )


def _numbers(folder: Path, package: Package) -> Numbers:
    """Return what a package that was read says that was drawn."""
    card, plan = _json(folder, CARD), _json(folder, "plan.json")
    vectors: dict[Statistic, dict[date | None, NDArray[np.int64]]] = defaultdict(dict)
    for vector in package.vectors:
        vectors[vector.event.table, vector.event.statistic][vector.service_date] = vector.values
    return Numbers(
        key=str(card["release"]),
        domain_digest=plan["domain_digest"],
        days=tuple(parse_period(plan["week"]).days),
        gaps=tuple(date.fromisoformat(day) for day in card["gaps"]),
        vectors=vectors,
        deviations=deviations_of(package.events),
    )


def read_week(folder: Path, table: str) -> WeekOfMeans:
    """Return the drawn numbers of a table of means of a published package.

    Raises:
        InputError: no such package or table.
    """
    try:
        tables = Tables(folder)
        drawn, plan = tables.drawn(table), _json(folder, "plan.json")
        promised = {spec.name: spec for spec in promise_from(estimates_record(folder)).tables}
        return week_of_means(drawn, tables.events, promised[table], plan["domain_digest"])
    except (OSError, KeyError, InputError):
        rule = f"has no published table {table}; name packages such as var/public/itms/2016-W30/r0"
        raise InputError(where=str(folder.name), field="package", rule=rule) from None


def earlier_numbers(folder: Path, stated: EarlierRelease) -> Numbers:
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
    earlier = tuple(earlier_numbers(packages / release.key, release) for release in stated)
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
    domain = domain_of(package, (*promise.tables, *promise.flows), numbers.domain_digest)
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


def _json(folder: Path, name: str) -> dict[str, Any]:
    """Read one of the package's JSON files.

    Raises:
        InputError: it is missing or cannot be read.
    """
    try:
        content: dict[str, Any] = json.loads((folder / name).read_bytes())
    except (OSError, ValueError):
        rule = f"{name} is missing or cannot be read; give a complete package"
        raise InputError(where=str(folder), field="package", rule=rule) from None
    return content
