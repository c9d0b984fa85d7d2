"""The first half of a week, before anything is charged: ingest, validate, plan, count.

Everything here stays in the private zone, but for the plan, which never sees data. On a sealed key
nothing is read or counted again; files that changed since are noticed, and that is all.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from turnstile.durable_files import SEALED, delete_for_good, exclusively
from turnstile.errors import InputError, NotFinal, TurnstileError
from turnstile.ledger.custody.custody import clock_known_until
from turnstile.ledger.custody.evidence_of_draws import earlier_plan
from turnstile.ledger.custody.traces import STORE_ASIDE
from turnstile.ledger.encoding import encode_event
from turnstile.ledger.leases import BEAT_S
from turnstile.ledger.records import Attempt
from turnstile.look.file_form import has_records
from turnstile.pipeline.context import Release
from turnstile.pipeline.draw.current_snapshot import current_snapshot
from turnstile.pipeline.draw.planned_release import COUNTED_AS
from turnstile.pipeline.landing.arrival import arrival_of
from turnstile.pipeline.landing.first_look import require_decided
from turnstile.pipeline.landing.redelivered_files import changed_files, require_change
from turnstile.pipeline.private_zone.bounding_key import require_known_key
from turnstile.programme.calendar.release_schedule import final_at
from turnstile.programme.gtfs.timetable import read_calls
from turnstile.quality.findings import Finding, QualityReport
from turnstile.release.plan import ReleasePlan, require_service
from turnstile.release.zones import bounding_secret, commitment, write_atomically
from turnstile.sources.ingest.landing import RawFile, find_files, form_of
from turnstile.sources.ingest.snapshot import Snapshot, require_whole
from turnstile.sources.ingest.stated_gaps import require_a_day
from turnstile.sources.ingest.week import ingest as ingest_files

_log = logging.getLogger("turnstile")
RESTATED = "restated"
"""Name of the note that the files are no longer those that were sealed."""
_SPILLED = ".count-"
_INCOMPLETE = {"days_present", "days_complete"}  # the week may yet become complete


def ingest(release: Release) -> str:
    """Read the landing zone into a snapshot and return a keyed commitment to it.

    The plain digest stays in the private zone: it would confirm a guess of the files, and one
    victim's tap time has 1,440.

    Raises:
        NotFinal: the week is not over, not final yet, or has not arrived complete.
        InputError: a file breaks a rule, no file is of a day of the week, files of a first week
            ask what nobody has decided, or a correction would be of what it corrects.
        ProgrammeError: no day of the week has service.
    """
    require_service(release.programme, release.week)
    _require_final(release)
    if release.sealed is not None:
        return _sealed_before(release, release.sealed)
    _require_arrived(release)
    if release.key.revision and not release.may_change_nothing:
        require_change(release)
    require_known_key(release.settings, release.ledger)
    snapshot = _ingest(release)
    require_decided(release, snapshot)
    _note(release, snapshot)
    release.say("rows ingested")
    return commitment(bounding_secret(release.settings), snapshot.digest)


def _note(release: Release, snapshot: Snapshot) -> None:
    """Write down which rows a release is of, and of which files they are.

    The note of rows decides: without it no step goes on. So it never stands beside files that it is
    not of, wherever a step dies.
    """
    files, rows = (release.folders.private / name for name in ("files", "snapshot"))
    digests = "\n".join(_digests_of_records(release, snapshot)).encode()
    if not files.is_file() or files.read_bytes() != digests:
        delete_for_good(rows)
        write_atomically(files, digests)
    write_atomically(rows, snapshot.digest.encode())


def validate(release: Release) -> str:
    """Judge the snapshot and return `pass` or `warn`.

    Raises:
        NotFinal: a service day is missing and the programme refuses gaps.
        InputError: an expectation of severity error failed; the sentence names the rule.
    """
    if release.sealed is not None:
        return "sealed"
    from turnstile.quality.checks import validate as judge

    snapshot = current_snapshot(release)
    require_whole(snapshot)
    report = judge(
        release.programme,
        release.week,
        snapshot,
        private=release.settings.private,
        domain=release.domain,
        memory=release.settings.memory_limit,
    )
    for finding in report.warnings:
        release.say(f"warning: {finding.rule}: {finding.sentence}")
    _require_passed(release, report)
    return "warn" if report.warnings else "pass"


def _require_passed(release: Release, report: QualityReport) -> None:
    """Refuse a week that a rule of severity error stops."""
    stops = {finding.rule for finding in report.findings if finding.stops}
    if stops and stops <= _INCOMPLETE:
        raise NotFinal(report.refusal())
    if stops:
        raise InputError(where=str(release.key), field="rows", rule=report.refusal())


def plan(release: Release) -> str:
    """Write the plan down and return its digest; of a sealed week, only if its plan was lost."""
    from turnstile.pipeline.draw.drawing import alone, say_it_waits

    planned = release.plan
    content = json.dumps(described(planned), indent=1, sort_keys=True)
    file = release.folders.embargoed / "plan.json"
    # What a draw under way leaves was charged at the plan that is there. Where no counts are nobody
    # draws, and a lock would look like a private zone that is no copy of its store; another worker
    # may draw there.
    may_draw = (release.settings.private / str(release.key)).is_dir()
    with alone(release) if may_draw else nullcontext() as lock:
        if lock is not None and _is_drawn(release):  # whoever drew under it has died
            release.ledger.end_lease(lock)
        while _is_drawn(release):
            say_it_waits(release)
            time.sleep(BEAT_S)
        sealed = release.sealed
        was_lost = sealed is not None and not file.exists() and sealed.plan_digest == planned.digest
        if sealed is None or was_lost:
            _keep_earlier(release, file, planned.digest)
            write_atomically(file, content.encode())
    return planned.digest


def _is_drawn(release: Release) -> bool:
    return any(name.startswith(f"{release.key}#") for name in release.ledger.living_draws())


def _keep_earlier(release: Release, file: Path, planned: str) -> None:
    """Keep another plan for all bytes that draws left: what they cost nobody knows from files else.

    Of bytes that have one already it was another still.
    """
    folder, aside = file.parent, release.settings.embargoed / STORE_ASIDE / str(release.key)
    with suppress(FileNotFoundError, ValueError, LookupError):  # cut by a loss of power
        earlier = file.read_bytes()
        if str(json.loads(earlier)["plan_digest"]) == planned:
            return
        for drawn in (*folder.rglob(f"{SEALED}*"), *aside.rglob(f"{SEALED}*")):
            kept = earlier_plan(folder, drawn.name.partition(".")[0])
            if not kept.exists():
                kept.parent.mkdir(exist_ok=True)
                write_atomically(kept, earlier)


def count(release: Release) -> str:
    """Count the snapshot into exact tables and return a name of this count.

    Raises:
        TurnstileError: `validate` has not judged these rows, or they are gone or altered since.
        NotFinal: it found that a service day is missing.
        InputError: it found that a rule is broken.
    """
    if release.sealed is not None:
        return "sealed"
    from turnstile.counting.engines import engine_named
    from turnstile.counting.exact_store import save_exact
    from turnstile.quality.checks import load_report

    snapshot, note = current_snapshot(release), release.folders.private / "exact"
    report = load_report(snapshot)
    if report is None:
        raise TurnstileError(
            f"{release.key}: these rows were not judged; run the step validate first"
        )
    _require_passed(release, report)
    with room_to_spill(snapshot) as work:
        tables = engine_named(release.settings.counting_engine)(
            release.programme,
            release.domain,
            release.programme.days_of(release.week),
            snapshot.folder / "rows",
            secret=bounding_secret(release.settings),
            work=work,
            progress=_log.info,
            memory=release.settings.memory_limit,
        )
        require_whole(snapshot)  # after they were counted: what went meanwhile counted as zeros
        digest = save_exact(tables, note.parent, _counted_before(release))
    # What it is of comes first: tables whose count was stopped here are nobody's.
    write_atomically(note.with_name(COUNTED_AS), release.counted_as(digest))
    write_atomically(note, digest.encode())
    release.say("rows counted into the public cells")
    return secrets.token_hex(16)  # the digest would tell whether a second count is the same


@contextmanager
def room_to_spill(snapshot: Snapshot) -> Iterator[Path]:
    """Make a folder beside the rows, with which it goes, for one count of a week at a time.

    Whether a step counts or a private report. What a count that was killed left goes first.
    """
    beside = snapshot.folder.parent
    with exclusively(beside / ".count.lock"):
        for left in beside.glob(f"{_SPILLED}*"):
            delete_for_good(left)
        with tempfile.TemporaryDirectory(dir=beside, prefix=_SPILLED) as work:
            yield Path(work)


def _counted_before(release: Release) -> str:
    """Return the digest of the last count of these very rows; empty if others were counted.

    The ledger is told which counts have one digest: of other rows it would tell, without noise,
    whether they changed a number.
    """
    note = release.folders.private / "exact"
    before = note.read_text("ascii") if note.is_file() else ""
    return before if release.is_counted_so(before) else ""


def verdicts(release: Release) -> dict[str, str]:
    """Return what leaves the private zone of a judgement: pass, warn, fail or broken, by rule."""
    from turnstile.quality.checks import load_report

    report = load_report(current_snapshot(release))
    if report is None:
        return {}
    return {finding.rule: _verdict(finding) for finding in report.findings}


def _verdict(finding: Finding) -> str:
    """Return one word for a rule."""
    if finding.is_broken_check:
        return "broken"
    if finding.passed:
        return "pass"
    return "fail" if finding.stops else "warn"


def described(planned: ReleasePlan) -> dict[str, object]:
    """Return a plan as plain public values."""
    return {
        "programme": planned.programme,
        "week": str(planned.week),
        "revision": planned.revision,
        "programme_digest": planned.programme_digest,
        "domain_digest": planned.domain_digest,
        "plan_digest": planned.digest,
        "events": [encode_event(event) for event in planned.events],
    }


def _require_final(release: Release) -> None:
    """Refuse a week that is not over for long enough."""
    programme = release.programme
    moment = final_at(release.week, programme.schedule, programme.time)
    if release.clock() < moment:
        raise NotFinal(
            f"{release.key}: the week is final on {moment:%Y-%m-%d %H:%M} UTC; run it after that"
        )
    if clock_known_until(release.ledger.entries(), release.clock()) < moment:
        raise NotFinal(
            f"{release.key}: the clock says that the week is final since {moment:%Y-%m-%d %H:%M} "
            "UTC, and it jumped, or the ledger was quiet for long before; set the clock, or if it "
            "is right: turnstile ledger confirm-clock --reason TEXT"
        )


def _require_arrived(release: Release) -> None:
    """Refuse a week of which something lacks, whoever marked the wait for it or never waited."""
    source, landing = release.programme.source, release.settings.landing
    files = find_files(landing, source.landing, release.week)
    require_a_day(source, release.week, (file.name for file in files))
    if missing := arrival_of(source, release.week, landing).missing:
        rule = (
            "nothing is read before all is there; then run it again, 0 charged; what never comes "
            "is stated (source.absent_days, files_at_least, marker)"
        )
        raise NotFinal(f"{release.key}: {'; '.join(missing)}; {rule}")


def _ingest(release: Release) -> Snapshot:
    """Read the landing zone."""
    return ingest_files(
        release.programme,
        release.week,
        landing=release.settings.landing,
        private=release.settings.private,
        progress=_log.info,
        memory=release.settings.memory_limit,
        timetable=read_calls(release.programme, release.settings.include, release.week.days),
    )


def _digests_of_records(release: Release, snapshot: Snapshot) -> Iterator[str]:
    """Yield one digest a file, so that the ledger tells nobody how many hold a record, or differ.

    A header alone is of no people, and names no other group that has read it: it, and a file that
    came twice, are named by their group, too; so they are named alike whenever others are.
    """
    spec, landing = release.programme.source.written, release.settings.landing
    family, named = release.programme.family, set[str]()
    for name, digest in snapshot.files:
        path = landing / name
        is_empty = path.is_file() and not has_records(RawFile(name, path, form_of(name)), spec)
        of_file = hashlib.sha256(f"{family} {name} {digest}".encode()).hexdigest()
        yield of_file if is_empty or digest in named else digest
        named.add(digest)


def _sealed_before(release: Release, sealed: Attempt) -> str:
    """Return whether the landing zone still holds what the sealed key was made from."""
    note = release.folders.private / RESTATED
    new_commitment = changed_files(release)
    if new_commitment is None:
        note.unlink(missing_ok=True)
    else:
        write_atomically(note, new_commitment.encode())
        programme, period = release.key.programme, release.key.period
        last = release.ledger.week(programme, period).last_sealed or 0
        release.say(
            "the landing zone's files changed since this week was sealed; the sealed bytes stand; "
            f"a correction is turnstile run {programme} --week {period} --revision {last + 1} "
            "--reason TEXT, charged in full"
        )
    release.say("sealed before: the same bytes are re-issued, 0 charged")
    return sealed.bindings.snapshot_digest
