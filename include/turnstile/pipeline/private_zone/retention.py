"""Retention: private data go after the programme's days, and never before somebody could know.

What decides is the calendar, the programmes and the ledger; no row is read. Data stay longer while

- a run holds or draws the period;
- the period has no release yet, or a correction is under way: until the window of backfills has
  passed since anything was last written, and an alarm has been out for ALARM_DAYS;
- another programme that reads the same files keeps them longer, or for ever;
- a later week of their year, whose own data are still kept, would carry their counts along;
- released counts were needed by the text of the programme that they were released under, and the
  file was changed since, or raw data would stay longer by the days of that text: until people have
  been told of it for ANNOUNCED_DAYS;
- a programme that read the same files until then has no file any more: until people have been told
  of it for ANNOUNCED_DAYS; one whose landing pattern was edited reads what it released from;
- a folder of them cannot be read: nobody knows what is in it;
- a day has taken as much as ever falls due by itself, the oldest first, and no person says more;
- the clock jumped, or the ledger is so quiet that nobody can say whether the clock is right.

The ledger is written before anything goes. A crash in between deletes less, never unstated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path

from turnstile.closed_folders import unread
from turnstile.durable_files import delete_for_good, require_not_sealed
from turnstile.errors import InputError, StoreObjectGone, TurnstileError
from turnstile.ledger.custody.custody import clock_known_until
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.refusals import letting_go
from turnstile.ledger.weeks import Week
from turnstile.pipeline.private_zone.private_data import (
    Kept,
    Part,
    ReadBefore,
    landing_data,
    private_data,
)
from turnstile.pipeline.private_zone.unfinished import is_unfinished
from turnstile.programme.examples import example_programmes
from turnstile.programme.loading import load_programme, programme_files
from turnstile.programme.rules import ALARM_DAYS
from turnstile.programme.spec import Programme, RetentionSpec
from turnstile.release.retention_rule import exact_due, is_carried_by, rows_due, years_of
from turnstile.release.zone_copies import Unnamed, zones
from turnstile.service_calendar import ServicePeriod, ServiceWeek, parse_period
from turnstile.settings import Settings

ALARM = timedelta(days=ALARM_DAYS)
ANNOUNCED_DAYS = 7
_SOONER = timedelta(days=2)
"""By how much people are told before they have to be: a day of retention runs once a day and the
watchdog sends what it wrote later, so that data go on their day and not a day after it."""
RETENTION = "retention"
"""What reports of its own failures are named by, in place of a programme."""
_OF_NO_PERIOD = ("failures/*.txt", "looks/*/", ".look-*", ".landing-*", ".store/arriving-*")
MOST_A_DAY = 30
"""Of a deployment and without a person, each programme's by itself: a week of ten programmes is 20
or 30 parts; a slip of a file, years of them."""
Alarmed = Callable[[str, str, datetime, str], datetime | None]
"""Says when somebody was first told of a programme's period, after an instant, in an alarm whose
identity holds some words; None: never."""
NO_FILE = ""
"""In place of a digest: of a programme that has no file any more."""
InForceSince = Callable[[str, str], datetime]
"""Says since when the present file of a programme has been in force, unbroken."""
DaysMet = Callable[[str, str], RetentionSpec | None]
"""Says what days a programme stated in the text of a digest; None: nobody knows, or it had none."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of data.

    Args:
        kept: the data.
        due: from when on they may go; aware. None: never.
        held: why they stay beyond that; empty if nothing holds them.
        unfinished: programmes and periods that could not be released any more without them.
        is_told_at_once: whether people are told on the same day why they stay.
    """

    kept: Kept
    due: datetime | None
    held: str
    unfinished: tuple[tuple[str, str], ...]
    is_told_at_once: bool = False

    def may_go(self, now: datetime) -> bool:
        """Return whether the data go now."""
        return self.due is not None and self.due <= now and not self.held

    def needs_alarm(self, now: datetime) -> bool:
        """Return whether people have to be told that the data go soon."""
        if not self.unfinished or self.due is None:
            return False
        final = max(
            period.ends_at(its.time.zone) + timedelta(days=its.schedule.final_after_days)
            for its, period in self.kept.users
        )
        latest = self.due - ALARM
        return max(latest - _SOONER, min(final, latest)) <= now  # of no week that is not over


@dataclass(frozen=True)  # without slots: what is read of the clock is remembered in the instance
class Retention:
    """The private side of a deployment under the days of its programmes.

    Args:
        settings: where it is.
        ledger: open, to write.
        now: the present instant, aware.
        alarmed: whether somebody was told.
        in_force_since: since when a file has been as it is.
        days_met: days of an earlier text.
        said: person and reason, if all that is due may go, however much it is.
    """

    settings: Settings
    ledger: Ledger
    now: datetime
    alarmed: Alarmed
    in_force_since: InForceSince
    days_met: DaysMet
    said: tuple[str, ...] = ()

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return what becomes of everything that is there, landing zone first."""
        programmes, copies = self.programmes, zones(self.settings)
        with suppress(StoreObjectGone):  # what is lost keeps nothing else beyond its days
            copies.fetch_private()
        landing, changed_at = self.settings.landing, copies.changed_at
        firsts = {name: min(weeks) for name, weeks in self._weeks.items() if weeks}
        first_weeks = {name: str(parse_period(first).weeks[0]) for name, first in firsts.items()}
        holdings = [*landing_data(programmes, landing, changed_at, self._read_before, first_weeks)]
        for programme in programmes:
            first = firsts.get(programme.name, "")
            holdings += private_data(programme, self.settings.private, changed_at, first)
        raw = [self._verdict(holding) for holding in holdings if holding.part is not Part.EXACT]
        stays = self._stays(raw)
        exact = [
            self._verdict(holding, stays) for holding in holdings if holding.part is Part.EXACT
        ]
        verdicts = (*raw, *exact)
        return verdicts if self.said else tuple(self._within_a_day(verdicts))

    def _within_a_day(self, verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
        """Yield verdicts, the oldest due first; hold what is more than a day takes.

        A tombstone of today is a part that went, whichever call wrote it. What was stated before
        and stayed is none: it keeps no other waiting.
        """
        today = self.now.astimezone(UTC).date()
        at = (datetime.fromisoformat(e.at) for e in self._tombstones if "person" not in e.body)
        left = MOST_A_DAY - sum(instant.date() == today for instant in at)
        rule = (
            f"more is due than the {MOST_A_DAY} parts that a day takes, the oldest first; look "
            "whether a slip lets it go, and if it is right: turnstile retention --delete --all "
            "--person YOU --reason WHY"
        )
        for verdict in sorted(verdicts, key=lambda verdict: (verdict.due is None, verdict.due)):
            parts = len({programme.name for programme, _ in verdict.kept.users})
            costs = max(1, min(parts, MOST_A_DAY))
            if not verdict.may_go(self.now) or self._is_stated(verdict):
                yield verdict
            elif costs <= left:
                left -= costs
                yield verdict
            else:
                yield replace(verdict, held=rule, is_told_at_once=True)

    def _stays(self, verdicts: Iterable[Verdict]) -> list[tuple[Programme, ServicePeriod]]:
        """Return programmes and periods whose raw data stay.

        What another programme keeps for ever is no reason to keep counts.
        """
        return [
            user
            for verdict in verdicts
            if verdict.kept.part is not Part.EXACT and verdict.due and not verdict.may_go(self.now)
            for user in verdict.kept.users
        ]

    def delete(self, verdict: Verdict) -> bool:
        """State and delete data that may go; a repeat deletes what is there again.

        Returns:
            Whether it did: not where a release began since they were judged.

        Raises:
            IntegrityError: something has the name of sealed bytes; nothing was stated or deleted.
            TurnstileError: something cannot be deleted; the rest is, and the next time tries again.
        """
        if not verdict.may_go(self.now):
            raise ValueError("these data may not go yet")
        kept = verdict.kept
        if any(self.ledger.week(its.name, str(period)).is_open for its, period in kept.users):
            return False
        if kept.part is not Part.FILES:
            require_not_sealed(*_below(kept.paths))
        if not self._is_stated(verdict):
            self._state(verdict)
        stayed = self._remove(kept.paths, delivered=kept.part is Part.FILES)
        zones(self.settings).delete(kept.paths)
        for folder in {path.parent for path in kept.paths if kept.part is Part.FILES}:
            with suppress(OSError):  # it holds something else, or no data
                if folder != self.settings.landing:
                    folder.rmdir()
        _require_gone(stayed)
        return True

    def _is_stated(self, verdict: Verdict) -> bool:
        """Return whether these data were stated to be gone on their day, and none came since."""
        kept = verdict.kept
        last = {
            entry.body["programme"]: datetime.fromisoformat(entry.at)
            for entry in self._tombstones
            if (kept.name, kept.part, _day(verdict))
            == tuple(map(entry.body.get, ("period", "part", "due")))
        }
        stated = [last.get(programme.name) for programme, _ in kept.users]
        came = max(map(zones(self.settings).changed_at, _files_below(kept.paths)), default=0.0)
        return all(at is not None and at.timestamp() >= came for at in stated)

    @cached_property
    def _tombstones(self) -> tuple[Entry, ...]:
        """Every deletion that was stated, when first asked."""
        return tuple(e for e in self.ledger.entries() if e.kind is EntryKind.DELETED)

    def _state(self, verdict: Verdict) -> None:
        """Write a tombstone for each programme whose data go: of which day, and why."""
        kept, who = verdict.kept, dict(zip(("person", "reason"), self.said, strict=False))
        never_released = {name for name, _ in verdict.unfinished}
        for programme in dict.fromkeys(programme for programme, _ in kept.users):
            days = _days(_spec(programme), kept.part)
            is_exact = kept.part is Part.EXACT
            why = f"its {'exact' if is_exact else 'raw'}_days ({days}) are over"
            if is_exact and years_of(programme):
                why += ", and the year that carries them along"
            if programme.name in never_released:
                why += "; it was not finished, and people had been told"
            said = {"due": _day(verdict), "reason": why} | who
            self.ledger.record_deletion(programme.name, kept.name, kept.part, days, **said)

    def delete_reports(self, verdicts: Iterable[Verdict]) -> None:
        """Delete what holds raw values and is of no period, after the days of raw data.

        Reports of failed tasks are named `<programme>-<task>-<instant>.txt`. Those of retention
        itself, looks at files that no programme names, what a look or a fetch that died left, go by
        the shortest days of any programme. What no index of a store names goes with its period.

        Args:
            verdicts: what becomes of everything else.

        Raises:
            TurnstileError: something cannot be deleted; the rest is.
        """
        days = {
            programme.name: programme.retention.raw_days
            for programme in self.programmes
            if programme.retention
        }
        if not days or not self._is_clock_known:
            return
        old = []
        for path in [
            report for glob in _OF_NO_PERIOD for report in self.settings.private.glob(glob)
        ]:
            of_programme = path.stem.rsplit("-", 2)[0]
            is_of_one = path.suffix == ".txt" and of_programme != RETENTION
            kept_days = days.get(of_programme) if is_of_one else min(days.values())
            age = timedelta(seconds=self.now.timestamp() - path.lstat().st_ctime)
            if kept_days is not None and age > timedelta(days=kept_days):
                old.append(path)
        stayed = self._remove(old)
        may_go = partial(self._may_go_unnamed, stays=self._stays(verdicts))
        zones(self.settings).delete_unnamed(timedelta(days=min(days.values())), may_go)
        _require_gone(stayed)

    def _may_go_unnamed(
        self, unnamed: Unnamed, stays: list[tuple[Programme, ServicePeriod]]
    ) -> bool:
        """Return whether what a lost index may name would go, by its period's days."""
        name, _, period = unnamed.unit.partition("/")
        try:
            of = parse_period(period)
        except InputError:  # of no period, as keys are
            return False
        users = tuple((its, of) for its in self.programmes if its.name == name)
        part = Part.ROWS if unnamed.is_rows else Part.EXACT
        kept = Kept(part, period, users, (), unnamed.put_at)
        return self._verdict(kept, None if unnamed.is_rows else stays).may_go(self.now)

    @cached_property
    def programmes(self) -> tuple[Programme, ...]:
        """Every programme that reads data here: those with a DAG, and those ever released.

        Raises:
            ProgrammeError: one of them cannot be read, so nobody knows what it needs.
        """
        include = self.settings.include
        idle = example_programmes(include) - self.settings.adopted
        idle -= self._read_before.keys()
        names = [file.name for file in programme_files(include) if file.name not in idle]
        return tuple(load_programme(name, include) for name in names)

    @property
    def gone(self) -> frozenset[str]:
        """Programmes that the ledger knows and that have no file."""
        return frozenset(self._read_before) - {programme.name for programme in self.programmes}

    @cached_property
    def _read_before(self) -> ReadBefore:
        """Every programme that the ledger knows, and which landing patterns it released from.

        Ledgers of before name the first programme of a budget group alone: one of the others is
        taken to read whatever its group did.
        """
        read: defaultdict[str, dict[str, str]] = defaultdict(dict)
        of_group: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for entry in self.ledger.entries():
            week = str(ServiceWeek.containing(datetime.fromisoformat(entry.at).date()))
            if entry.kind is EntryKind.LANDING_USED:
                patterns, landing = read[entry.body["programme"]], entry.body["landing"]
                patterns.pop(landing, None)  # the last one used is the last
                patterns[landing] = of_group[entry.body["family"]][landing] = week
            elif entry.key and entry.attempt_id:
                patterns = read[entry.key.partition("/")[0]]
                used = [*patterns][-1:] or of_group[entry.body.get("family", "")]
                patterns |= dict.fromkeys(used, week)
        return read

    @cached_property
    def _weeks(self) -> Mapping[str, Mapping[str, Week]]:
        """What became of every period of every programme, asked once."""
        return {known.name: self.ledger.weeks(known.name) for known in self.programmes}

    def _week(self, programme: Programme, period: ServicePeriod) -> Week:
        return self._weeks[programme.name].get(str(period), Week(str(period)))

    def _verdict(
        self, kept: Kept, stays: list[tuple[Programme, ServicePeriod]] | None = None
    ) -> Verdict:
        """Judge data.

        Args:
            kept: the data.
            stays: programmes and periods whose raw data stay, where `kept` are exact.
        """
        for programme, _ in kept.users:
            if programme.retention is None:
                return Verdict(kept, None, f"{programme.name} states no retention", ())
        if not kept.users:
            why = f"{kept.gone[0]}.yaml is gone" if kept.gone else "no week is called so"
            return Verdict(kept, None, why, ())
        unfinished, lost = self._unfinished(kept)
        due = max(_due(programme, period, kept.part) for programme, period in kept.users)
        if unfinished or kept.part is Part.FILES:
            window = max(_spec(programme).backfill_days for programme, _ in kept.users)
            due = max(due, kept.written_at + timedelta(days=window))
        is_near = due - timedelta(days=ANNOUNCED_DAYS) - _SOONER <= self.now
        changed = self._changed_since(kept, due) if is_near else ""
        held = changed or next(self._holds(kept, unfinished, stays or []), "")
        is_told_at_once = bool(changed) or bool(lost and due <= self.now)
        return Verdict(kept, due, lost or held, unfinished, is_told_at_once)

    def _unfinished(self, kept: Kept) -> tuple[tuple[tuple[str, str], ...], str]:
        """Return what could not be released without data, and which folder would have to say so."""
        unfinished, lost = [], kept.unread
        for programme, period in kept.users:
            name, week = programme.name, self._week(programme, period)
            try:
                if is_unfinished(self.ledger, self.settings, name, week):
                    unfinished.append((name, str(period)))
            except OSError as error:  # nobody knows whether a correction was begun
                lost = lost or unread(f"private/{name}/{period}", error)
        return tuple(unfinished), lost

    def _changed_since(self, kept: Kept, due: datetime) -> str:
        """Return why people have to be told first that data go; empty where they need not.

        A table that somebody drops from a file by mistake would let the counts of its year go, a
        slip in `raw_days` months of raw data; the same mistake at another time is told again.
        """
        for name in kept.gone:
            since = f"since {self.in_force_since(name, NO_FILE):%Y-%m-%d}"
            words = f"{name}.yaml, by which these files were read too, is gone {since}"
            if not all(self._is_told(kept, user, words) for user in kept.users):
                return f"{words}; they go when the watchdog told that for a week, or put it back"
        is_exact = kept.part is Part.EXACT
        for programme, period in kept.users:
            week = self._week(programme, period)
            bound = {attempt.bindings.programme_digest for attempt in week.sealed}
            others = bound - {programme.digest}
            stayed = (self._raw_due_by(digest, kept, programme, period) for digest in others)
            if not others or not (is_exact or any(due < day > self.now for day in stayed)):
                continue
            since = f"since {self.in_force_since(programme.name, programme.digest):%Y-%m-%d}"
            is_unknown = any(self.days_met(programme.name, digest) is None for digest in others)
            fewer = (
                "was changed, and nobody knows how long it kept raw data"
                if is_unknown
                else "keeps raw data for fewer days than"
            )
            what = "was changed" if is_exact else fewer
            words = f"{programme.name}.yaml, {programme.digest[:12]} {since}, {what}"
            if not self._is_told(kept, (programme, period), words):
                at = "since its release" if is_exact else "at their release"
                return f"{words} {at}; they go when the watchdog has told that for a week"
        return ""

    def _is_told(self, kept: Kept, user: tuple[Programme, ServicePeriod], words: str) -> bool:
        """Return whether people have been told of a period's data for long enough."""
        programme, period = user
        told = self.alarmed(programme.name, str(period), kept.written_at, words)
        return told is not None and self.now - told >= timedelta(days=ANNOUNCED_DAYS)

    def _raw_due_by(
        self, digest: str, kept: Kept, programme: Programme, period: ServicePeriod
    ) -> datetime:
        """Return when raw data would go by the days of an earlier text; never, if nobody knows."""
        days = self.days_met(programme.name, digest)
        if days is None:
            return datetime.max.replace(tzinfo=UTC)
        due = rows_due(programme, days, period)
        if kept.part is Part.FILES:
            due = max(due, kept.written_at + timedelta(days=days.backfill_days))
        return due

    def _holds(
        self,
        kept: Kept,
        unfinished: tuple[tuple[str, str], ...],
        stays: list[tuple[Programme, ServicePeriod]],
    ) -> Iterator[str]:
        """Yield what keeps data beyond their day."""
        for programme, period in kept.users:
            now = self._week(programme, period)
            for attempt in (*now.held, *now.drawing):
                ended = f"where no run goes on with it: {letting_go(attempt)}"
                yield f"{programme.name} {period} is held or drawn now; {ended}"
        for name, week in unfinished:
            told = self.alarmed(name, week, kept.written_at, "retention_near:")
            if told is None or self.now - told < ALARM:
                yield f"{name} {week} is not finished, and its alarm is not {ALARM_DAYS} days out"
        for programme, period in kept.users:
            for other, later in stays:
                if other.name == programme.name and is_carried_by(programme, period, later):
                    yield f"{programme.name} {later} is kept, and would carry its counts along"
        if kept.part is Part.FILES and not all(map(self._is_inside, kept.paths)):
            yield "a link leads out of the landing zone; delete there by hand"
        if not self._is_clock_known:
            yield (
                "the clock jumped, or the ledger was quiet for long; turnstile ledger "
                "confirm-clock --reason TEXT, if it is right"
            )

    @cached_property
    def _is_clock_known(self) -> bool:
        """Whether the clock is known to be right, by all entries until now."""
        return clock_known_until(self.ledger.entries(), self.now) >= self.now

    def _remove(self, paths: Iterable[Path], *, delivered: bool = False) -> dict[str, str]:
        """Delete files, links and folders; return what cannot be, by its place, and why."""
        stayed = {}
        for path in paths:
            try:
                delete_for_good(path, delivered=delivered)
            except OSError as error:
                for entry in _files_below([path]) or [path]:
                    place = str(entry.relative_to(self.settings.home))
                    stayed[place] = error.strerror or str(error)
        return stayed

    def _is_inside(self, path: Path) -> bool:
        """Return whether the folder of a file really lies in the landing zone."""
        return path.parent.resolve().is_relative_to(self.settings.landing.resolve())


def _spec(programme: Programme) -> RetentionSpec:
    """Return a programme's days, which it was seen to state."""
    if programme.retention is None:
        raise TypeError(f"{programme.name} states no retention")
    return programme.retention


def _days(spec: RetentionSpec, part: Part) -> int:
    return spec.exact_days if part is Part.EXACT else spec.raw_days


def _due(programme: Programme, period: ServicePeriod, part: Part) -> datetime:
    """Return from when on a part of a period may go, by the calendar alone."""
    rule = exact_due if part is Part.EXACT else rows_due
    return rule(programme, _spec(programme), period)


def _day(verdict: Verdict) -> str:
    """Return the day on which data were due, as people are told of it."""
    return f"{verdict.due:%Y-%m-%d}"


def _below(paths: Iterable[Path]) -> list[Path]:
    """Return files, links and folders with all that is in them."""
    return [entry for path in paths for entry in (path, *path.rglob("*"))]


def _files_below(paths: Iterable[Path]) -> list[Path]:
    return [entry for entry in _below(paths) if entry.is_symlink() or not entry.is_dir()]


def _require_gone(stayed: Mapping[str, str]) -> None:
    """Refuse to say that data are gone which stayed.

    Raises:
        TurnstileError: some did.
    """
    if stayed:
        names = ", ".join(f"{place} ({why})" for place, why in stayed.items())
        raise TurnstileError(
            f"{names} cannot be deleted; what else was due is gone: mend the rights or the disk, "
            "then turnstile retention --delete again"
        )
