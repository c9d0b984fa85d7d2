"""Brings the series of a programme in the public zone to what the ledger says; safe to repeat.

Files are replaced one by one and the index last, so a reader who starts at the index finds what it
names. A file that is as it should be is not written again.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from turnstile.durable_files import delete_for_good, exclusively
from turnstile.errors import IntegrityError
from turnstile.estimates.labelled import parquet_bytes
from turnstile.ledger.custody.vouched_files import public_records, record_bytes
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.weeks import PublishedRevision
from turnstile.programme.spec import Programme
from turnstile.publishing.contents_check import unknown_in_series
from turnstile.publishing.explore.site import Kept, as_was, explorer_files
from turnstile.publishing.package_reader import Tables, csv_file
from turnstile.publishing.series.dataset import SeriesTable, part_bytes, series_tables
from turnstile.publishing.series.days import Days, days_csv, holidays_of
from turnstile.publishing.series.index import EXPLORER, EXPLORER_PAGE, FOLDER, INDEX, index
from turnstile.publishing.series.means import (
    WEEKS,
    Mean,
    four_weeks,
    four_weeks_of_speeds,
    newest_alike,
    typical_week,
    typical_weekday,
    weeks_of,
)
from turnstile.publishing.series.packages import PACKAGES, facts_of, is_here, kept_facts
from turnstile.publishing.series.pages import catalogue_page, programme_files
from turnstile.publishing.series.periods import Period, periods_of
from turnstile.publishing.written_text import json_bytes
from turnstile.release.zones import digest_of, write_atomically
from turnstile.service_calendar import ServiceWeek

_DAYS = f"{FOLDER}/days.csv"
_ON_FIRST_PAGE = {"programme", "title", "curator", "periods", "latest"}


def write_series(
    programme: Programme, ledger: Ledger, public: Path, include: Path
) -> dict[str, str]:
    """Write index, dataset, means, explorer, pages, records and `latest` of a programme.

    Args:
        programme: as it is now.
        ledger: whose facts say what is published.
        public: zone of published packages.
        include: folder of public files.

    Returns:
        Digests of all of it by path in the zone, to be signed: what was written, and what the
        signed list knew already; notes too.

    Raises:
        IntegrityError: a package in the public zone is not the one that the ledger names.
    """
    folder = public / programme.name
    folder.mkdir(parents=True, exist_ok=True)
    with exclusively(folder / ".series.lock"):
        _remove_others(folder)
        records = _written_records(ledger, folder)
        periods = periods_of(ledger.weeks(programme.name))
        files, about, packages = _files(programme, ledger, folder, include, periods)
        stated = [int(record["ledger"]["sequence"]) for record in records.values()]
        about["ledger_sequence"] = max([*stated, about["ledger_sequence"]])
        if unknown := unknown_in_series(about, records.values(), packages):
            raise IntegrityError(
                f"{programme.name}: the series holds what nothing declares: {unknown}"
            )
        for path, content in files.items():
            if isinstance(content, bytes):
                _write(folder / path, content)
        _point_latest(folder, about["latest"])
        files[INDEX] = index_bytes = json_bytes(about)
        _write(folder / INDEX, index_bytes)
        files |= {path: record_bytes(record) for path, record in records.items()}
        _remove_others(folder, set(files))
    catalogue = catalogue_page(_indexes(public))
    _write(public / "index.html", catalogue)
    published = {r.key: r.manifest_sha256 for period in periods for r in period.revisions}
    return {
        "index.html": digest_of(catalogue),
        **{
            note.path.relative_to(public).as_posix(): digest_of(note.text.encode())
            for note in ledger.notes_beside(public, published)
        },
        **{
            f"{programme.name}/{path}": digest_of(file) if isinstance(file, bytes) else file[1]
            for path, file in files.items()
        },
    }


def write_records(ledger: Ledger, folder: Path) -> dict[str, str]:
    """Write the records alone of a programme whose file cannot be read.

    Args:
        ledger: whose facts say what was withdrawn, or has no release.
        folder: of the programme, in the public zone.

    Returns:
        Digests of them by path in the zone, to be signed.
    """
    with exclusively(folder / ".series.lock"):
        records = _written_records(ledger, folder)
    return {f"{folder.name}/{path}": digest_of(record_bytes(records[path])) for path in records}


def _files(
    programme: Programme, ledger: Ledger, folder: Path, include: Path, periods: Sequence[Period]
) -> tuple[dict[str, bytes | Kept], dict[str, Any], dict[str, Any]]:
    """Return all files but the index and the records; the index; and what is kept of packages."""
    public = folder.parent
    here = [r for period in periods for r in period.revisions if is_here(r, public)]
    in_force = [
        period.in_force for period in periods if period.in_force in here and period.in_force
    ]
    known = _known(folder, ledger.public_list())
    facts = facts_of(here, public, as_was(folder, PACKAGES, known))
    tables = series_tables(in_force, here, {key: of_one.schemas for key, of_one in facts.items()})
    days = Days(
        holidays_of(programme, include), {r.key.period: facts[r.key].gaps for r in in_force}
    )
    means = _means(programme, tables, _last_weeks(in_force), public, days)
    files: dict[str, bytes | Kept] = dict(_parts(tables, folder, public, known))
    for path, mean in means.items():
        stem, rows = f"{FOLDER}/{path}", mean.rows
        files |= {f"{stem}.parquet": parquet_bytes(rows), **dict([csv_file(stem, rows)])}
    files[_DAYS] = days_csv(periods, days)
    files |= explorer_files(programme, periods, in_force, folder, include, known)
    packages = kept_facts(here, facts)
    files[PACKAGES] = json_bytes(packages)
    about = index(
        programme,
        periods,
        in_force,
        tables=tables,
        files=files,
        totals=[total for revision in in_force for total in facts[revision.key].totals],
        versions={key: of_one.version for key, of_one in facts.items()},
        parties=ledger.parties(),
    )
    files |= programme_files(about, folder, means)
    return files, about, packages


def _written_records(ledger: Ledger, folder: Path) -> dict[str, dict[str, Any]]:
    """Write what is stated of releases of a programme; return it by path below its folder.

    That comes first, whatever is wrong with a package of another week.
    """
    records = {
        path.partition("/")[2]: record
        for path, record in public_records(ledger.entries()).items()
        if path.startswith(f"{folder.name}/")
    }
    for path, record in records.items():
        _write(folder / path, record_bytes(record))
    return records


def _parts(
    tables: Sequence[SeriesTable], folder: Path, public: Path, known: Mapping[str, Kept]
) -> Iterator[tuple[str, bytes | Kept]]:
    """Yield every file of the dataset; one that the last index knows is not made again."""
    for table in tables:
        for revision, version in table.parts:
            path = f"{FOLDER}/{table.path_of(revision, version)}"
            if as_was(folder, path, known) is None:
                yield path, part_bytes(public / str(revision.key), table.name, revision)
            else:
                yield path, known[path]


def _known(folder: Path, signed: Mapping[str, str]) -> dict[str, Kept]:
    """Return the files that the last index names: packages never change, so neither do they.

    What the signed list of the zone has otherwise is made again, for the index itself may have been
    altered or torn since; so is what does not lie there byte for byte (`as_was`).
    """
    path = folder / INDEX
    content = path.read_bytes() if path.exists() else b""
    is_ours = signed.get(f"{folder.name}/{INDEX}") == digest_of(content)
    listed = json.loads(content).get("files", []) if is_ours else []
    return {
        file["path"]: (file["bytes"], file["sha256"])
        for file in listed
        if signed.get(f"{folder.name}/{file['path']}") == file["sha256"]
    }


def _last_weeks(in_force: Sequence[PublishedRevision]) -> list[PublishedRevision]:
    """Return the releases of the last four weeks, of those that were published."""
    weeks = [revision for revision in in_force if "-W" in revision.key.period]
    if not weeks:
        return []
    first = ServiceWeek.parse(weeks[-1].key.period).plus(1 - WEEKS)
    return [revision for revision in weeks if ServiceWeek.parse(revision.key.period) >= first]


def _means(
    programme: Programme,
    tables: Sequence[SeriesTable],
    weeks: Sequence[PublishedRevision],
    public: Path,
    days: Days,
) -> dict[str, Mean]:
    """Return the means over the last weeks whose rows mean the same, by kind and table."""
    packages = [Tables(public / str(revision.key)) for revision in weeks]
    without = [day for revision in weeks for day in days.gaps[revision.key.period]]
    speeds, means = {spec.name for spec in programme.speeds}, dict[str, Mean]()
    for name in (table.name for table in tables):
        comparable = newest_alike(packages, name)
        if not comparable:
            continue
        rows = weeks_of(comparable, name)
        of_table = {
            "typical_weekday": typical_weekday(rows, days.holidays, without),
            "typical_week": typical_week(rows, days.holidays, without),
            "four_weeks": four_weeks_of_speeds(comparable, name)
            if name in speeds
            else four_weeks(rows, without),
        }
        first = comparable[0].folder.parent.name
        means |= {f"{kind}/{name}": Mean(first, mean) for kind, mean in of_table.items() if mean}
    return means


def _write(path: Path, content: bytes) -> None:
    """Write a file unless it is as it should be."""
    if path.is_symlink() or not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)


def _point_latest(folder: Path, target: str | None) -> None:
    """Point `latest` at the newest release in force; at nothing where there is none."""
    latest = folder / "latest"
    if target is None:
        latest.unlink(missing_ok=True)
        return
    arriving = folder / f".latest-{secrets.token_hex(4)}"
    arriving.symlink_to(target)
    arriving.replace(latest)


def _remove_others(folder: Path, kept: set[str] | None = None) -> None:
    """Delete what no longer belongs to the series: all of it can be made again.

    Links go in any case, those in the place of a folder too: what is written below one lies
    elsewhere. Where nothing is said to be kept, they alone go.
    """
    for part in (folder / FOLDER, folder / EXPLORER, folder / EXPLORER_PAGE):
        for path in (part, *part.rglob("*")):
            is_other = kept and path.is_file() and path.relative_to(folder).as_posix() not in kept
            if path.is_symlink() or is_other:
                delete_for_good(path)


def _indexes(public: Path) -> list[dict[str, Any]]:
    """Return the index of every programme, by name, but those that its own next week mends."""
    indexes = []
    for path in sorted(public.glob(f"*/{INDEX}")):
        with suppress(ValueError):
            about = json.loads(path.read_bytes())
            is_whole = isinstance(about, dict) and about.keys() >= _ON_FIRST_PAGE
            if is_whole and isinstance(about["periods"], list):
                indexes.append(about)
    return indexes
