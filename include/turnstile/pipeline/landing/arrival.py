"""Whether a week has arrived complete: what is missing, in the operator's words. Reads no rows.

The programme's `source` says what is asked for: files by its pattern for each week, at least
`files_at_least` of them, a `marker` that the authority writes last. Where the names of the files
hold service days and a missing day is refused, each day must have its file. Without a marker, files
are complete once nothing was written to any of them for a while: a file's time of change (`ctime`)
moves with every write and rename, and no copying tool can set it back. Of an object the store's own
clock says when it came.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from turnstile.errors import InputError
from turnstile.programme.source_spec import MissingDay, SourceSpec
from turnstile.release.zone_copies import changed_here
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.ingest.landing import data_files
from turnstile.sources.ingest.stated_gaps import days_without_file, has_no_day

QUIET_FOR = timedelta(minutes=1)
_NAMED_AT_MOST = 7


@dataclass(frozen=True, slots=True)
class Arrival:
    """What has arrived of a period.

    Args:
        missing: what is not there, one sentence each; empty if everything is.
        complete_at: when the files may be read, if nothing is written to them until then; aware.
            None while something is missing.
    """

    missing: tuple[str, ...]
    complete_at: datetime | None

    def is_complete(self, now: datetime) -> bool:
        """Return whether the files may be read."""
        return self.complete_at is not None and self.complete_at <= now

    def __str__(self) -> str:
        """Say what the wait is for."""
        if self.missing:
            return "; ".join(self.missing)
        return f"files are still written to; read from {self.complete_at:%Y-%m-%d %H:%M:%S} UTC on"


def arrival_of(
    source: SourceSpec,
    period: ServicePeriod,
    landing: Path,
    changed_at: Callable[[Path], float] = changed_here,
) -> Arrival:
    """Look at a landing zone.

    Args:
        source: of the programme.
        period: asked for.
        landing: landing zone.
        changed_at: says when a file was last written, in seconds since 1970.
    """
    missing: list[str] = []
    paths: list[Path] = []
    for week in period.weeks:
        if {*week.days} & {*period.days} <= {*source.absent_days}:
            continue  # nobody rides, so nobody delivers
        pattern = source.landing.replace("{week}", str(week))
        try:
            files = sorted(data_files(landing, pattern))
        except InputError as error:  # a folder: nobody knows what has arrived
            missing.append(error.rule)
            continue
        paths += files
        if not files:
            missing.append(f"no file in landing/{pattern.rpartition('/')[0]}")
        elif len(files) < source.files_at_least:
            missing.append(
                f"{len(files)} of {source.files_at_least} files in landing/"
                f"{pattern.rpartition('/')[0]}"
            )
        marker = source.marker.replace("{week}", str(week))
        if marker and files and not (landing / marker).exists():
            missing.append(f"no landing/{marker} yet, which says that the week is complete")
    if paths and source.missing_day is MissingDay.REFUSE:
        missing += _missing_days(paths, period, source.absent_days)
    elif paths and has_no_day(source, period, (path.name for path in paths)):
        missing.append(f"no file is named by a day of {period} that has service")
    if missing:
        return Arrival(tuple(missing), None)
    changed = max(changed_at(path) for path in paths)
    quiet = timedelta() if source.marker else QUIET_FOR
    return Arrival((), datetime.fromtimestamp(changed, UTC) + quiet)


def _missing_days(files: list[Path], period: ServicePeriod, without: tuple[date, ...]) -> list[str]:
    """Name the service days without a file, where every file is named by a service day."""
    missing_days = days_without_file(
        period, (path.name for path in files)
    )  # else the rows will show
    absent = [str(day) for day in missing_days if day not in without]
    if not absent:
        return []
    more = f" and {len(absent) - _NAMED_AT_MOST} more" if len(absent) > _NAMED_AT_MOST else ""
    return [f"no file of service day {', '.join(absent[:_NAMED_AT_MOST])}{more}"]
