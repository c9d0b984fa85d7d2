"""A world of one seed: a deployment, its machines, its people and its bad days, in one process.

Steps, ledger, zones, stores and retention are the house's own; what counts and draws is a few bytes
(`light_parts`). Time is the world's. The same seed does the same, call by call.
"""

# ruff: noqa: TID251, S108, PLW0108, PYI034, PTH116 - a world has an environment and a memory of its own
from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import re
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import light_paths
from asked_once import AskedOnce
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from faulty_machine import KINDS, FaultyMachine, Killed, Waits
from light_connections import use_light_connections
from light_parts import LABELS, day_of_draw, light_parts
from memory_bucket import Kept, MemoryBucket
from raw_auditor import ZONES, Precious, Promise, RawAuditor, Violation
from remembered import Remembered
from sqlalchemy import create_engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import QueuePool

import turnstile.commands.ledger_facts
import turnstile.commands.ledger_opened
import turnstile.pipeline.after_seal
import turnstile.pipeline.approvals
import turnstile.pipeline.assessing
import turnstile.pipeline.auditing
import turnstile.pipeline.before_charge
import turnstile.pipeline.draw.drawing
import turnstile.pipeline.private_zone.private_verification
import turnstile_stores.commands.stores
import turnstile_stores.plain_zone
import turnstile_stores.portals.site
import turnstile_stores.private_copies
import turnstile_stores.unit_zone
import turnstile_stores.zone_copies
import turnstile_stores.zone_stores
from turnstile.cli import main
from turnstile.errors import (
    BudgetExceeded,
    InputError,
    IntegrityError,
    RefusedError,
    TurnstileError,
)
from turnstile.ledger import leases
from turnstile.ledger.custody import release_files, signed_note, space
from turnstile.ledger.database import store
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.revisions import RevisionDecision
from turnstile.operations.retention_day import RetentionDay
from turnstile.pipeline.steps import STEPS, step_named
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.release import zone_copies as copies_of_zones
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings, system_clock
from turnstile_stores.zones import StoredZones

ROOT = Path(__file__).resolve().parents[2]
PROGRAMMES = ("itms", "buses")
FIRST_WEEK = ServiceWeek.parse("2016-W30")
WEEKS_OF_WORLD = 13
RAW_DAYS, EXACT_DAYS, BACKFILL_DAYS = 21, 42, 14
PROMISE = Promise(8_000_000, 56_000_000, 24_000_000, 952_000_000, 8)
"""Of seventeen draws in eight weeks; two programmes take sixteen, so a second mishap is refused."""
FAULTS_A_WEEK = 3.0
_ANYWHERE = 0.88
"""Of the faults, those that strike anywhere; the others strike draws (`step`, `noise`)."""
_CALLS_A_WEEK = 2_400
"""Calls that a week of both programmes makes, about: where its faults are spread."""
_TRIES = 6
_HEARD_OFTEN = 2


@dataclass(frozen=True)
class Machine:
    """A machine: its home, and what its environment names."""

    home: Path
    environment: dict[str, str]


@contextmanager
def _environment(machine: Machine) -> Iterator[None]:
    """Put a machine's names into the environment; those of all machines are the same."""
    before = {name: os.environ.get(name) for name in machine.environment}
    os.environ.update(machine.environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@dataclass
class World:
    """Everything of one seed.

    Args:
        seed: of all that happens.
        root: folder for it.
        faults_a_week: how many, on average.
        remembers: whether answers about files that did not change are found once.
        asks_sqlite: whether statements go to SQLite without SQLAlchemy.
    """

    seed: int
    root: Path
    faults_a_week: float = FAULTS_A_WEEK
    remembers: bool = True
    asks_sqlite: bool = True
    did: Counter[str] = field(default_factory=Counter)
    heard: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311 - a world's, never noise
        self.names = random.Random(self.seed + 1)  # noqa: S311 - of drafts and objects
        self.now = datetime.combine(FIRST_WEEK.monday, datetime.min.time(), UTC)
        self.clock_error = timedelta(0)
        self.touched: dict[str, datetime] = {}
        self.backups: list[tuple[str, Any]] = []
        self.slip_until: datetime | None = None
        self.has_stores = self.chance.random() < 0.25
        self.has_witness = self.chance.random() < 0.5
        self.faulty = FaultyMachine(self.root, self.chance)
        self.database = self.root / "ledger/ledger.sqlite"
        self.disturbed, beside = 0, str(self.database.parent)
        self.once = AskedOnce(self.database)
        self.remembered = Remembered(
            self.faulty,
            lambda: (self.once.written, self.faulty.changes.of(beside)),
            lambda: self.disturbed + self.once.written,
            is_off=not self.remembers,
        )
        self.buckets = {
            zone: MemoryBucket(f"s3://{zone}", self.faulty.bucket, self.clock)
            for zone in (ZONES if self.has_stores else ())
        }
        self.machines = [self._machine(n) for n in range(2 if self.has_stores else 1)]
        self.auditor = RawAuditor(
            self.database,
            PROMISE,
            lambda: self.now,
            self._places,
            lambda: iter(self.buckets.values()),
            self.faulty.changes.of,
        )
        self.drawing = ""
        self.works_at = self.machines[0]
        self.faulty.appeared = self.appeared

    # -- what it consists of -----------------------------------------------------------------

    def _machine(self, number: int) -> Machine:
        home = self.root / f"home-{number}"
        named = {
            "TURNSTILE_HOME": str(home),
            "TURNSTILE_INCLUDE": str(self.root / "include"),
            "TURNSTILE_LEDGER_URL": f"sqlite:///{self.database}",
            "TURNSTILE_LEDGER_KEY": str(self.root / "keys/ledger-key.pem"),
        }
        if self.has_witness:
            named["TURNSTILE_WITNESS"] = str(self.root / "witness")
        for zone in self.buckets:
            named[f"TURNSTILE_{zone.upper()}_STORE"] = f"s3://{zone}"
        return Machine(home, named)

    def _places(self) -> Iterator[Path]:
        return (machine.home for machine in self.machines)

    def clock(self) -> datetime:
        """What machines take for the time."""
        self.disturbed += 1
        return self.now + self.clock_error

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def write_programmes(
        self, *, raw_days: int = RAW_DAYS, exact_days: int = EXACT_DAYS, title: str = "Bus speeds"
    ) -> None:
        """Write both programmes: one asks a person, one does not."""
        self.raw_days, self.exact_days = raw_days, exact_days
        folder = self.root / "include/programmes"
        folder.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMMES:
            text = _programme_text(name, raw_days, exact_days).replace(
                "title: Bus speeds", f"title: {title}"
            )
            (folder / f"{name}.yaml").write_text(text)

    def set_up(self) -> None:
        (self.root / "include/domains").mkdir(parents=True)
        shutil.copyfile(
            ROOT / "include/domains/surat_area.geojson",
            self.root / "include/domains/surat_area.geojson",
        )
        (self.root / "include/people.yaml").write_text("release_officer: [ada, grace]\n")
        self.write_programmes()
        (self.root / "keys").mkdir()
        self.database.parent.mkdir()
        self.database.write_bytes(_empty_ledger())
        for name in PROGRAMMES:
            programme = load_programme(name, self.root / "include")
            planned = make_plan(
                programme, load_domain(programme, self.root / "include"), FIRST_WEEK
            )
            LABELS[name] = [
                (draw_event.table, draw_event.statistic, day_of_draw(draw_event))
                for draw_event in planned.events
            ]

    # -- a life ------------------------------------------------------------------------------

    def live(self, weeks: int = WEEKS_OF_WORLD) -> None:
        """Live so many weeks, and end well.

        Raises:
            Violation: the auditor saw what must never happen.
        """
        with self.natural_laws():
            self.set_up()
            for number in range(weeks):
                self.live_week(FIRST_WEEK.plus(number))
            self.end()

    def live_week(self, week: ServiceWeek) -> None:
        self.now = datetime.combine(week.monday + timedelta(days=7), datetime.min.time(), UTC)
        self.pass_time(12 * 3600)
        self.deliver(week)
        times = _poisson(self.chance, self.faults_a_week * _ANYWHERE)
        for _ in range(times):
            self.did["faults"] += 1
            if self.chance.random() < 0.72:
                self.faulty.plan(
                    self.chance.randrange(_CALLS_A_WEEK),
                    self.chance.choices(tuple(KINDS), tuple(KINDS.values()))[0],
                )
            else:
                self.bad_day()
        if self.chance.random() < 0.5:
            self.back_up()
        for programme in PROGRAMMES:
            self.release(programme, str(week), 0)
            self.pass_time(3600)
        if self.chance.random() < 0.08:
            self.correct(str(week))
        self.people()
        self.pass_time(self.chance.randrange(1, 5) * 86400)
        if self.chance.random() < 0.1:  # nobody looks before the day's retention does
            self._clock()
        self.retention()
        self.mend_slip()
        self.judge()

    def judge(self) -> None:
        self.auditor.learn()
        self.auditor.judge_bytes()
        self.auditor.judge_accounts(is_whole=self.is_whole)
        for machine in self.machines:
            self.auditor.judge_packages(machine.home / "public")

    def end(self) -> None:
        """Let all faults end and people look after everything; then it verifies."""
        self.faulty._planned.clear()
        self.clock_error = timedelta(0)
        self.slip_until = self.now
        self.mend_slip()
        said = ""
        for _ in range(3):
            self.operate(f"the end of the year: {said}")
            code, said = self.command("ledger", "verify")
            if code == 0:
                self.did["verified"] += 1
                break
        else:
            if self.is_plan_nowhere:
                self.did["given up for a plan that is nowhere"] += 1
            else:
                self.did["stuck"] += 1
                self.said.append(said)
        self.judge()

    # -- what the house does -----------------------------------------------------------------

    @contextmanager
    def process(self, machine: Machine) -> Iterator[None]:
        """A process of the house on a machine."""
        self.works_at = machine
        with _environment(machine), self.faulty.process():
            yield

    def release(self, programme: str, week: str, revision: int) -> None:
        """Bring a release from its files to the public, as a run and its operators do."""
        todo = list(STEPS)
        self.heard.clear()
        if self.chance.random() < 0.8:
            todo.remove("audit")
        tries = Counter[str]()
        while todo:
            step = todo[0]
            tries[step] += 1
            if tries[step] > _TRIES:
                self.did[f"given up at {step}"] += 1
                return
            outcome = self.step(step, programme, week, revision)
            if outcome == "done":
                todo.pop(0)
            elif outcome == "again":
                todo = [*STEPS[: STEPS.index(step)], *todo][-len(STEPS) :]
            elif outcome == "over":
                return
        self.did["released"] += 1

    def step(self, step: str, programme: str, week: str, revision: int) -> str:
        """Do one step on a machine; return `done`, `retry`, `again` (from the start) or `over`."""
        machine = self.chance.choice(self.machines)
        self.touched[f"{programme}/{week}"] = self.now
        self.faulty.twin = lambda: self.twin(programme, week)
        if step == "draw" and self.chance.random() < self.faults_a_week / 30:
            # A draw is a sixth of a week's calls, and what may go wrong in it costs the most.
            self.did["faults"] += 1
            self.faulty.plan(self.chance.randrange(400), self.chance.choice(("kill", "power")))
        if step == "approve":
            self.decide(programme, week, revision)
        self.pass_time(30)
        try:
            with self.process(machine):
                self.drawing = f"{programme}/{week}/r{revision}"
                step_named(step)(programme, week, revision)
        except Killed as death:
            self.did["killed"] += 1
            self.note(f"{step} {programme} {week}: died: {self.faulty.struck[-1]}")
            self.after_death(str(death))
            return "retry"
        except (TurnstileError, OSError) as error:
            self.note(f"{step} {programme} {week}: {type(error).__name__} {str(error)[:200]}")
            return self.after_error(error)
        finally:
            self.auditor.learn()
            self.keep_private(programme, week, revision)
        self.note(f"{step} {programme} {week} r{revision}: done on {machine.home.name}")
        return "done"

    def twin(self, programme: str, week: str) -> None:
        """Another process in the middle of a call of the first: an operator's, a cleared task's."""
        other = self.chance.choice(self.machines)
        step = self.chance.choice((*STEPS, "draw", "draw", "reserve", "publish", "retention"))
        before = self.drawing
        self.did["twins"] += 1
        try:
            with _environment(other):
                self.drawing = f"{programme}/{week}/r0"
                if step == "retention":
                    RetentionDay(Settings.from_environment(), self.clock()).act()
                else:
                    step_named(step)(programme, week, 0)
        except (Killed, Waits, TurnstileError, OSError) as ended:
            self.did[f"twin {type(ended).__name__}"] += 1
        finally:
            self.drawing = before
        self.auditor.learn()

    def noise(self, _: Any, counts: Any) -> Any:
        """What a mechanism would do; the first of a release's draws is told to the auditor."""
        if self.told != (self.drawing, self.faulty.calls):
            self.auditor.drew(self.drawing)
            self.told = (self.drawing, self.faulty.calls)
            if self.chance.random() < self.faults_a_week / 60:
                # Between its noise and its name a draw makes a dozen calls, where it is lost.
                self.did["faults"] += 1
                self.faulty.plan(self.chance.randrange(12), self.chance.choice(("kill", "power")))
        return counts + self.names.randrange(1000)

    told: tuple[str, int] = ("", -1)

    def appeared(self, path: str) -> None:
        """A file has its name: sealed bytes of a draw under embargo are counted."""
        *_, zone, programme, week, revision, name = path.split("/")
        if zone == "embargoed" and name.startswith("sealed-"):
            self.auditor.stored(f"{programme}/{week}/{revision}", Path(path))

    def keep_private(self, programme: str, week: str, revision: int) -> None:
        """Expect the private data of a sealed release to stay until their days."""
        key = f"{programme}/{week}/r{revision}"
        if key not in self.auditor.sealed or key in self.kept:
            return
        self.kept.add(key)
        ends = datetime.combine(
            ServiceWeek.parse(week).monday + timedelta(days=7), datetime.min.time(), UTC
        )
        if self.raw_days < RAW_DAYS:  # released under a slip, by whose days they may go
            self.auditor.shorten(f"delivered files of {week}", ends + timedelta(days=self.raw_days))
        until = ends + timedelta(days=self.exact_days)
        for note in self._exact_notes(programme, week, revision):
            if len(note) == len(hashlib.sha256().hexdigest()):  # else a loss of power tore it
                self.auditor.keep(Precious(f"exact counts of {key}", note, until))
                return

    def _exact_notes(self, programme: str, week: str, revision: int) -> Iterator[str]:
        """Yield which exact counts a release has: a store's index names them, or its one home.

        Of a count that died nobody draws, though its machine has it, and an object that no index
        names.
        """
        if not self.has_stores:
            note = self.machines[0].home / f"private/{programme}/{week}/r{revision}/exact"
            if note.is_file():
                yield note.read_text()
            return
        objects = self.buckets["private"].objects
        index = objects.get(f"index/{programme}/{week}.json")
        named = json.loads(index.content)["files"].get(f"r{revision}/exact") if index else None
        if named and named[0] in objects:
            yield objects[named[0]].content.decode()

    @property
    def kept(self) -> set[str]:
        return self.__dict__.setdefault("_kept", set())

    # -- what people do ----------------------------------------------------------------------

    def deliver(self, week: ServiceWeek, again: int = 0) -> None:
        """The authority delivers a week's file."""
        content = f"{week} {again}\n".encode()
        name = f"itms/{week}/{again}.csv"
        if self.has_stores:
            bucket = self.buckets["landing"]
            bucket.versions += 1
            digest = hashlib.sha256(content).hexdigest()
            bucket.objects[name] = Kept(content, f'"{bucket.versions}"', self.now, digest)
        else:
            path = self.machines[0].home / "landing" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.touched[f"landing/itms/{week}"] = self.now
        until = datetime.combine(
            week.monday + timedelta(days=7 + RAW_DAYS), datetime.min.time(), UTC
        )
        digest, what = hashlib.sha256(content).hexdigest(), f"delivered files of {week}"
        # What comes again goes by the days that the week was released under, too.
        known = [asset.until for asset in self.auditor.precious.values() if asset.what == what]
        until = min([until, *(earlier for earlier in known if earlier is not None)])
        self.auditor.keep(Precious(what, digest, until))

    def decide(self, programme: str, week: str, revision: int) -> None:
        """A person says yes, now and then no, or forgets."""
        if programme != "itms" or self.chance.random() < 0.1:
            return
        self.quietly(
            lambda ledger: ledger.approve(
                ReleaseKey(programme, week, revision), "ada", "release_officer", "looked at"
            )
        )

    def correct(self, week: str) -> None:
        """Files come again, people allow a correction, and it is run."""
        self.deliver(ServiceWeek.parse(week), again=1)
        programme = self.chance.choice(PROGRAMMES)
        key = ReleaseKey(programme, week, 1)
        said = RevisionDecision(key, True, "ada", "release_officer", "late file", "files")
        self.did["corrections"] += 1
        if self.quietly(lambda ledger: ledger.decide_on_revision(said)):
            self.release(programme, week, 1)

    def people(self) -> None:
        """Small things that people do to a ledger, some by mistake."""
        if self.chance.random() > 0.15:
            return
        known = sorted(self.auditor.sealed)
        key = ReleaseKey.parse(self.chance.choice(known)) if known else None
        if key is None:
            return
        act = self.chance.choice(("withdraw", "void", "burn", "rotate", "no_release"))
        self.did[act] += 1
        if act == "withdraw":
            self.command("ledger", "withdraw", str(key), *_WHO)
        elif act == "rotate":
            self.command("ledger", self.chance.choice(("rotate-key", "rotate-bounding-key")), *_WHO)
        else:
            self.command("ledger", act.replace("_", "-"), str(key), *_WHO)

    def quietly(self, act: Callable[[Any], object]) -> bool:
        """Let a person write to the ledger; return whether it came to pass."""
        try:
            with self.process(self.machines[0]):
                act(open_ledger(Settings.from_environment()))
        except Killed as death:
            self.after_death(str(death))
        except (TurnstileError, OSError):
            pass
        else:
            return True
        return False

    def command(self, *words: str, at: Machine | None = None) -> tuple[int, str]:
        """Run a command of the house, on any machine if none is named; return code and answer."""
        out = io.StringIO()
        machine = at or self.chance.choice(self.machines)
        self.pass_time(60)
        try:
            with (
                self.process(machine),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(out),
            ):
                code = main(list(words))
        except Killed as death:
            self.after_death(str(death))
            return -9, "killed"
        except OSError as error:
            return 1, str(error)
        finally:
            self.auditor.learn()
        self.note(f"{' '.join(words[:2])}: {code} {out.getvalue()[:300]!r}")
        return code, out.getvalue()

    def retention(self) -> None:
        """The day's retention, on one of the machines."""
        machine = self.chance.choice(self.machines)
        try:
            with self.process(machine):
                gone = RetentionDay(Settings.from_environment(), self.clock()).act()
            self.did["deleted"] += len(gone)
            for ruling in gone:
                self.note(f"deleted {ruling.kept.part} {ruling.kept.name}, due {ruling.due:%m-%d}")
        except Killed as death:
            self.after_death(str(death))
        except (TurnstileError, OSError) as error:
            if isinstance(error, IntegrityError):
                self.operate(str(error))
        self.auditor.learn()
        self.auditor.judge_bytes()

    # -- what goes wrong ---------------------------------------------------------------------

    def after_death(self, kind: str) -> None:
        """A process died; with the machine's power, perhaps."""
        self.pass_time(self.chance.choice((1, 30, 90, 600)))
        if kind == "power":
            self.did["power"] += 1
            lied = self.faulty.lose_power()
            self.auditor.learn()
            for gone in self.auditor.lost(excused=lied):
                raise Violation(f"{gone.what} went with the power, though they were said to stay")

    def after_error(self, error: Exception) -> str:
        """A step said no: do what it says."""
        said = str(error)
        self.did[type(error).__name__] += 1
        if isinstance(error, BudgetExceeded) or "needs a person" in said:
            return "over"
        if "has not run" in said or "nothing is sealed" in said or "is not published" in said:
            return "again"
        if isinstance(error, (IntegrityError, InputError)) or "clock" in said or "final on" in said:
            self.operate(said)
            return "again" if "the week again" in said else "retry"
        if isinstance(error, RefusedError):
            self.pass_time(120)
            words = ("inputs", "changed", "from ingest on")
            return "again" if any(word in said for word in words) else "retry"
        self.pass_time(30)
        return "retry"

    def operate(self, said: str) -> None:
        """What an operator does with a sentence of the house: as it says, then as RUNBOOK says."""
        self.did["operated"] += 1
        here = self.works_at if "this machine" in said else None
        self.heard[said] += 1
        times = self.heard[said]
        is_told = "clock" in said or "final on" in said
        if self.clock_error and (is_told or self.chance.random() < 0.5):
            self.clock_error = timedelta(0)
        if "confirm-clock" in said and not self.clock_error:
            said += self.command("ledger", "confirm-clock", *_WHO)[1]
        for word in ("rotate-key", "begin-log"):
            if word in said:
                said += self.command("ledger", word, *_WHO)[1]
        self.take_witness_anew(said)
        said += self.take_away(said, times)
        for word in ("cosign", "republish"):
            if f"ledger {word}" in said:
                said += self.command("ledger", word)[1]
        if self.has_stores:
            self.command("stores", "restore", at=here)
        moved_away = self.restore_sealed(said)
        words = ("recover", "old copy", "the ledger is gone", "year")
        is_advised = moved_away or any(word in said for word in words)
        if not is_advised and times > _HEARD_OFTEN:
            self.did["sentences that led nowhere, given up for recover"] += 1
        if is_advised or times > _HEARD_OFTEN:
            self.recover(here)

    def take_witness_anew(self, said: str) -> None:
        """Let a witness go whose name is gone though nobody took it away, and add its folder."""
        for nameless in _NAMELESS.findall(said):
            self.command("ledger", "witness", "remove", nameless, *_WHO)
            self.command("ledger", "witness", "add", str(self.root / "witness"), *_WHO)

    def take_away(self, said: str, times: int) -> str:
        """Bring back or move away the file that a sentence names, as it says; return the answer."""
        answered = ""
        if "bounding.key" in said:
            answered = self.bring_bounding_key_back(is_in_the_safe=times == 1)
        if "then move the file away" in said:
            Path(said.partition(" is damaged")[0]).unlink(missing_ok=True)
        for path, programme, week, act, number in _STATED.findall(said):
            words = ("withdraw" if act == "withdrawn" else act, f"{programme}/{week}/r{number}")
            if self.command("ledger", *words, *_WHO)[0] in {2, 3}:
                Path(path).unlink(missing_ok=True)
        for torn in _TORN.findall(said):
            Path(torn).unlink(missing_ok=True)
            if self.has_stores and torn.endswith("public/ledger.pub"):
                self.buckets["public"].objects.pop("ledger.pub", None)
                for machine in self.machines:
                    (machine.home / "public/ledger.pub").unlink(missing_ok=True)
        for programme, week, revision in _PLAN_GONE.findall(said):
            self.run_again(programme, week, int(revision))
        if "move the folder aside" in said or "move it out of the" in said:
            self.move_aside(said)
        return answered

    def run_again(self, programme: str, week: str, revision: int) -> None:
        """Run a release that was given up once more, from its files on."""
        if not self.is_run_again:
            self.is_run_again = True
            self.did["run again"] += 1
            all(self.step(step, programme, week, revision) == "done" for step in STEPS)
            self.is_run_again = False

    is_run_again = False

    def restore_sealed(self, said: str) -> bool:
        """Bring sealed bytes back from a backup; return whether they are in none, and moved away.

        Their name is their digest's, so that nobody takes other bytes for them.
        """
        if self.has_stores:
            return False
        moved_away = False
        for place in map(Path, dict.fromkeys(_SEALED.findall(said))):
            below = place.relative_to(self.machines[0].home / "embargoed")
            kept = [where / below for kind, where in self.backups if kind == "embargoed"]
            whole = [copy for copy in kept if copy.is_file() and _is_named_so(copy)]
            place.unlink(missing_ok=True)
            if whole:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(whole[-1], place)
                self.did["sealed bytes restored"] += 1
            else:
                self.did["sealed bytes given up"] += 1
                moved_away = True
        return moved_away

    def restore_plan(self, place: Path) -> bool:
        """Bring the plan of sealed bytes back from a backup, if one has it."""
        below = place.relative_to(self.machines[0].home / "embargoed")
        kept = [where / below for kind, where in self.backups if kind == "embargoed"]
        whole = [copy for copy in kept if not self.has_stores and copy.is_file()]
        self.is_plan_nowhere = not whole
        if whole:
            shutil.copy2(whole[-1], place)
        return bool(whole)

    is_plan_nowhere = False
    """Ledger, witness, package and plan of sealed bytes are lost: nobody knows what they cost."""

    def move_aside(self, said: str) -> bool:
        """Take a package that is not whole out of its zone; nothing of it is deleted."""
        there = [place for place in map(Path, _PACKAGE.findall(said)) if place.is_dir()]
        for place in there:
            place.rename(self.root / f"aside-{self.faulty.calls}")
            self.did["moved aside"] += 1
        return bool(there)

    def recover(self, at: Machine | None = None) -> None:
        """Look at the clock, as RUNBOOK says, then bring back what can be proven."""
        self.clock_error = timedelta(0)
        # Of a draw that died nobody may know but the machine where its bytes lie.
        each = [at] if self.is_whole else self.machines
        is_done = [self.recover_at(machine) for machine in each]
        self.is_whole |= all(is_done)
        store._file.cache_clear()

    def recover_at(self, at: Machine | None) -> bool:
        """Recover on a machine, on any if none is named, as its answers say; return if it did."""
        families = [word for name in PROGRAMMES for word in ("--family", f"{name}=itms_buses")]
        code, told = self.command("ledger", "recover", *_WHO, *families, at=at)
        if "take away its entries" in told:
            self.tear_off()
            code, told = self.command("ledger", "recover", *_WHO, *families, at=at)
        if "then recover again" in told:  # a disk that did not answer does now
            code, told = self.command("ledger", "recover", *_WHO, *families, at=at)
        while "move it out of the zone, then recover again" in told and self.move_aside(told):
            code, told = self.command("ledger", "recover", *_WHO, *families, at=at)
        if (lost := _PLAN_LOST.search(told)) and self.restore_plan(Path(lost[1])):
            code, told = self.command("ledger", "recover", *_WHO, *families, at=at)
        if "if the ledger is an old copy, move it away" in told:  # a witness is never put back here
            self._put_database(None)
            code, told = self.command("ledger", "recover", *_WHO, *families, at=at)
        if "--end-draws" in told:  # whoever drew was killed: one process is all there is
            self.did["draws ended by word"] += 1
            code, _ = self.command("ledger", "recover", "--end-draws", *_WHO, *families, at=at)
        return code == 0

    def tear_off(self) -> None:
        """Take away the entries of the witness from the first on that is gone or unreadable."""
        is_torn = False
        paths = sorted((self.root / "witness/entries").glob("[0-9]*.json"))
        for number, path in enumerate(paths, 1):
            with contextlib.suppress(ValueError):
                json.loads(path.read_bytes())
                if not is_torn and int(path.stem) == number:
                    continue
            is_torn = True
            path.unlink()

    def bring_bounding_key_back(self, *, is_in_the_safe: bool) -> str:
        """From the safe, if it is there; else a new one is taken up; return what was said."""
        if is_in_the_safe and "_safe" in self.__dict__ and not self.has_stores:
            path = self.machines[0].home / "private/bounding.key"
            path.unlink(missing_ok=True)
            path.write_bytes(self.__dict__["_safe"])
            return ""
        return self.command("ledger", "rotate-bounding-key", *_WHO)[1]

    def note(self, what: str) -> None:
        """Write down what happened, for a person who looks at a failing seed."""
        self.log.append(f"{self.now:%m-%d %H:%M} {what}")

    def back_up(self) -> None:
        """One backup of one thing, as operators make them."""
        stored = [
            zone for zone in self.buckets if zone != "landing"
        ]  # what is there is the authority's
        kinds = ["database", "database", *(stored or ("embargoed", "private"))]
        kind = self.chance.choice(kinds)
        left_out = self.chance.choice((0, 0, 0.1, 0.6))  # of files, where it ended early
        if kind == "database":
            self.backups.append((kind, _bytes_of_database(self.database)))
        elif self.has_stores:
            objects = self.buckets[kind].objects.items()
            kept = {name: kept for name, kept in objects if self.chance.random() >= left_out}
            self.backups.append((kind, kept))
        else:
            source = self.machines[0].home / kind
            target = self.root / f"backup-{len(self.backups)}"
            if source.exists():
                shutil.copytree(source, target, symlinks=True, ignore=self._leaving_out(left_out))
                self.backups.append((kind, target))

    def _leaving_out(self, share: float) -> Callable[[Any, list[str]], list[str]]:
        """Choose files of a folder that a backup does not have."""

        def names(folder: Any, within: list[str]) -> list[str]:
            files = (name for name in sorted(within) if os.path.isfile(f"{folder}/{name}"))  # noqa: PTH113
            return [name for name in files if self.chance.random() < share]

        return names

    def bad_day(self) -> None:
        """Something happens between two processes."""
        acts = ["restore", "restore", "clock", "slip", "lose_database", "damage", "bounding_key"]
        if self.has_stores:
            acts += ["lose_home", "lose_home", "restore"]
        act = self.chance.choice(acts)
        self.did[act] += 1
        self.note(f"bad day: {act}")
        getattr(self, f"_{act}")()
        self.faulty.changes.note_all()

    def _restore(self) -> None:
        """A backup is put back, by mistake or after a loss."""
        if not self.backups:
            return
        kind, kept = self.chance.choice(self.backups[-4:])
        if kind == "database":
            self._put_database(kept)
        elif self.has_stores:
            over = self.buckets[kind].objects if self.chance.random() < 0.3 else {}
            self.buckets[kind].objects = {**over, **kept}
        else:
            place = self.machines[0].home / kind
            if self.chance.random() < 0.5:
                shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(kept, place, dirs_exist_ok=True, symlinks=True, copy_function=_copied)
        self._disaster()

    def _lose_database(self) -> None:
        """The file is gone; often there is a backup."""
        self._put_database(None)
        if self.chance.random() < 0.7:
            kept = [content for kind, content in self.backups if kind == "database"]
            if kept:
                self._put_database(kept[-1])

    def _damage(self) -> None:
        """A disk puts garbage into pages, or a copy ends early."""
        content = bytearray(_bytes_of_database(self.database) or b"")
        if len(content) < 2**14:
            return
        at = self.chance.randrange(0, len(content) - 2**12)
        if self.chance.random() < 0.5:
            content[at : at + 2**12] = self.names.randbytes(2**12)
        else:
            del content[at:]
        self._put_database(bytes(content))

    is_whole = True
    """The ledger knows what its traces prove: no older one was put back since it was told."""

    def _put_database(self, content: bytes | None) -> None:
        self.is_whole = False
        if not self.has_witness:
            self.auditor.ledger_lost()
        self.once.forget()
        self.faulty.changes.note_all()
        store._file.cache_clear()
        self.auditor.close()
        for ending in ("", "-wal", "-shm"):
            self.database.with_name(self.database.name + ending).unlink(missing_ok=True)
        if content is not None:
            self.database.write_bytes(content)

    def _lose_home(self) -> None:
        """A worker's machine is thrown away."""
        shutil.rmtree(self.chance.choice(self.machines).home, ignore_errors=True)
        self._disaster()

    def _bounding_key(self) -> None:
        """The bounding key is deleted by mistake; somebody may have kept it."""
        if self.has_stores:
            return
        path = self.machines[0].home / "private/bounding.key"
        if path.exists():
            if self.chance.random() < 0.7:
                self.__dict__["_safe"] = path.read_bytes()
            path.unlink()

    def _clock(self) -> None:
        """The clock is set wrong, until somebody notices."""
        if not (self.is_whole and self.auditor.sealed):
            return  # of an empty or a lost ledger nobody knows when it was written last
        days = self.chance.choice((400, 60, -3, -40, 0.5, -0.5, 36.5))
        self.clock_error = timedelta(days=days)

    def _slip(self) -> None:
        """Somebody edits the programmes by mistake, and puts them right days later."""
        self.slip_until = self.now + timedelta(days=self.chance.choice((0, 2, 5)))
        self.write_programmes(raw_days=BACKFILL_DAYS, exact_days=BACKFILL_DAYS, title="Buses")

    def mend_slip(self) -> None:
        if self.slip_until is not None and self.slip_until <= self.now:
            self.write_programmes()
            self.slip_until = None

    def _disaster(self) -> None:
        """What is nowhere by now went by a disaster."""
        self.auditor.learn()
        self.auditor.lost(excused=True)

    # -- natural laws ------------------------------------------------------------------------

    @contextmanager
    def natural_laws(self) -> Iterator[None]:
        """Let the house live in this world while the block runs."""
        time = SimpleNamespace(
            sleep=self.sleep,
            monotonic=lambda: self.now.timestamp(),
            time=lambda: self.now.timestamp(),
        )
        with ExitStack() as stack:
            enter = stack.enter_context
            for module in [
                loaded_module
                for name, loaded_module in sys.modules.items()
                if name.startswith("turnstile")
            ]:
                if vars(module).get("system_clock") is system_clock:
                    enter(patch.object(module, "system_clock", self.clock))
                if vars(module).get("changed_here") is copies_of_zones.changed_here:
                    enter(patch.object(module, "changed_here", self.changed_at))
            for module in (
                turnstile.pipeline.before_charge,
                turnstile.pipeline.draw.drawing,
                sys.modules["turnstile.pipeline.draw.charged_draw"],
                turnstile_stores.zone_copies,
            ):
                enter(patch.object(module, "time", time))
            for module in (
                turnstile_stores.unit_zone,
                turnstile_stores.plain_zone,
                turnstile_stores.portals.site,
                sys.modules["turnstile.pipeline.draw.charged_draw"],
            ):
                enter(patch.object(module, "ThreadPoolExecutor", OneByOne))
            enter(patch("turnstile.pipeline.draw.charged_draw.Thread", NoThread))
            enter(patch.object(secrets, "token_hex", lambda n: self.names.randbytes(n).hex()))
            enter(patch.object(secrets, "token_bytes", self.names.randbytes))
            enter(patch.object(signed_note, "_new_key", self.new_key))
            enter(patch.object(leases, "_now_s", lambda _: int(self.now.timestamp())))
            enter(patch.object(release_files, "APPEARS_WITHIN_S", 0))
            enter(patch.object(space, "_fill", lambda path, _: path.write_bytes(b"")))
            enter(
                patch(
                    "turnstile_stores.opened.opened",
                    lambda zone_store: self.buckets[zone_store.zone],
                )
            )
            enter(patch("turnstile.durable_files.fcntl.flock", self.flock))
            enter(patch.object(store, "_file", _engine_of(is_light=self.asks_sqlite)))
            enter(patch.object(store.Store, "write", self.writing(store.Store.write)))
            remembers = (*self.remembered.patches(), *self.once.patches(self.remembered))
            for replaced in (*remembers, *light_paths.patches()):
                enter(replaced)
            enter(patch.object(copies_of_zones, "brought", lambda *_, **__: StoredZones))
            enter(light_parts(self.noise))
            enter(self.faulty.wrapped())
            yield

    def changed_at(self, path: Path) -> float:
        """When a file came, by the unit that it belongs to."""
        parts = path.parts
        for zone in ("private", "landing"):
            if zone in parts:
                below = parts[parts.index(zone) + 1 :][:2]
                name = "/".join(below) if zone == "private" else f"landing/{'/'.join(below)}"
                return self.touched.get(name, self.now).timestamp()
        return self.now.timestamp()

    def sleep(self, seconds: float) -> None:
        """Wait; a twin waits for ever, because the other cannot go on meanwhile."""
        if self.faulty.is_twin:
            raise Waits
        self.pass_time(seconds)

    def flock(self, file: Any, flags: int) -> None:
        """Take a lock; a twin that would wait for the one beside it is ended."""
        import fcntl

        is_patient = self.faulty.is_twin and not flags & fcntl.LOCK_NB
        try:
            _FLOCK(file, flags | fcntl.LOCK_NB if is_patient else flags)
        except BlockingIOError:
            self.disturbed += 1
            if is_patient:
                raise Waits from None
            raise

    def writing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Let a process die after its commit, before it knows."""

        def write(ledger_store: Any, act: Any) -> Any:
            self.once.forget()
            answer = real(ledger_store, act)
            self.faulty.wrote()
            return answer

        return write

    def new_key(self) -> bytes:
        """A signing key of this seed."""
        return Ed25519PrivateKey.from_private_bytes(self.names.randbytes(32)).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def trace(self) -> str:
        """What happened, as one digest: the same for the same seed."""
        seen = [
            *map(str, self.faulty.struck),
            str(sorted(self.did.items())),
            str(self.faulty.calls),
        ]
        seen += self.auditor.drawn + sorted(map(str, self.auditor.sealed.items()))
        return hashlib.sha256("\n".join(seen).encode()).hexdigest()


class OneByOne:
    """An executor that does one thing after the other, so that a seed does the same again."""

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> OneByOne:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, act: Callable[..., Any], *many: Any) -> Iterator[Any]:
        return iter([act(*arguments) for arguments in zip(*many, strict=False)])

    def submit(self, act: Callable[..., Any], *given: Any) -> Any:
        answer = act(*given)
        return SimpleNamespace(result=lambda: answer)


class NoThread:
    """A thread that has nothing to do in a draw of no length."""

    def __init__(self, **_: object) -> None: ...

    def start(self) -> None: ...

    def join(self) -> None: ...


_WHO = ("--person", "olga", "--reason", "a bad day")
_PACKAGE = re.compile(r"(/[^\s:;]+/r[0-9]+(?:/package)?)[:;]")
_TORN = re.compile(
    r"(/[^\s:;]+) (?:holds no entry|is no readable checkpoint|is no checkpoint that|is no step|"
    r"is no proof; take|is not the (?:log|ledger)'s key; take|"
    r"was altered since it was published; take|"
    r"is not the plan that was charged; restore it, or take)"
)
_STATED = re.compile(
    r"(/[^\s:;]+/([^/\s]+)/([^/\s]+)/(withdrawn|no-release)-r([0-9]+)\.json) is a file that nobody"
)
_PLAN_GONE = re.compile(
    r"/([^/\s]+)/([^/\s]+)/r([0-9]+)/plan\.json is gone; restore it, or turnstile run"
)
_PLAN_LOST = re.compile(r"(/[^\s:;]+/plan\.json): plan: the plan is missing or is not")
_NAMELESS = re.compile(r"witness ([0-9a-f]{8}) \([^)]*\) is not there")
_SEALED = re.compile(r"(/[^\s:;]+/sealed-[0-9a-f]{16}\.parquet) (?:was altered|is gone); restore")
_FLOCK = __import__("fcntl").flock


def _copied(source: str, target: str) -> str:
    """Copy in the place of a file that may be read-only."""
    Path(target).unlink(missing_ok=True)
    return str(shutil.copy2(source, target))


def _is_named_so(sealed: Path) -> bool:
    """Return whether sealed bytes are those that their name says."""
    digest = hashlib.sha256(sealed.read_bytes()).hexdigest()
    return sealed.name == f"sealed-{digest[:16]}.parquet"


def _poisson(chance: random.Random, mean: float) -> int:
    """A number of events, on average so many."""
    total, number = chance.expovariate(1), 0
    while total < mean:
        total, number = total + chance.expovariate(1), number + 1
    return number


def _programme_text(name: str, raw_days: int, exact_days: int) -> str:
    """The steady telemetry programme in one slot and few cells; its days pass in a quarter."""
    text = (ROOT / "tests/support/programmes/itms.yaml").read_text()
    changes = {
        "name: itms\n": f"name: {name}\n",
        "h3_resolution: 7": "h3_resolution: 5",
        '"09:00-21:00"': '"09:00-10:00"',
        "cells_at_most: 20": "cells_at_most: 1",
        'add_remove, epsilon: "8"}': 'add_remove, epsilon: "24"}',
        'window_weeks: 52, relation: add_remove, epsilon: "2912"': (
            'window_weeks: 8, relation: add_remove, epsilon: "952"'
        ),
        "{backfill_days: 60, raw_days: 90, exact_days: 120}": (
            f"{{backfill_days: {BACKFILL_DAYS}, raw_days: {raw_days}, exact_days: {exact_days}}}"
        ),
    }
    if name == "itms":
        changes["approval: {required: false}"] = (
            "approval: {required: true, persons: 1, role: release_officer}"
        )
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@lru_cache(1)
def _empty_ledger() -> bytes:
    """A database with tables, made once."""
    with tempfile.TemporaryDirectory(prefix="empty-ledger-") as folder:
        path = Path(folder) / "ledger.sqlite"
        store.Store(f"sqlite:///{path}")
        return _bytes_of_database(path) or b""


def _bytes_of_database(path: Path) -> bytes | None:
    """A whole database as one file, whatever its log holds."""
    import sqlite3

    if not path.exists():
        return None
    try:
        with contextlib.closing(sqlite3.connect(path)) as source:
            source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (sqlite3.DatabaseError, UnicodeDecodeError):  # what SQLite quotes of garbage is no text
        pass
    return path.read_bytes()


def _engine_of(*, is_light: bool) -> Any:
    """Engines that keep their connections: opening one takes longer than what it is asked."""
    real = store._file

    @lru_cache(4)
    def engine_of(url: Any, to_read: str | None = None) -> Any:
        if to_read:
            return real.__wrapped__(url, to_read)
        engine = create_engine(url, poolclass=QueuePool)
        event.listen(engine, "connect", store._prepare_sqlite)
        event.listen(engine, "connect", _wait_for_nobody)
        event.listen(engine, "connect", _opened_file)
        event.listen(engine, "checkout", _require_the_same_file)
        if is_light:
            use_light_connections(engine, _is_of_its_file)
        made.append(engine)
        return engine

    def forget() -> None:
        """Close all connections; what an engine compiled serves the next process too."""
        for engine in made:
            engine.dispose()

    made: list[Any] = []
    engine_of.cache_clear = forget
    return engine_of


def _wait_for_nobody(connection: Any, _: object) -> None:
    """Be told at once that somebody else writes: in one thread nobody ever lets go meanwhile."""
    connection.execute("PRAGMA busy_timeout=0").close()


def _opened_file(connection: Any, record: Any) -> None:
    """Keep which file a connection is to."""
    (_, _, path), *_ = connection.execute("PRAGMA database_list").fetchall()
    record.info["file"] = path, Path(path).stat().st_ino


def _require_the_same_file(_: Any, record: Any, __: Any) -> None:
    """Open anew where another file stands in the place of the one that was opened."""
    if not _is_of_its_file(record.info):
        raise DisconnectionError


def _is_of_its_file(known: Any) -> bool:
    path, inode = known["file"]
    try:
        return bool(os.stat(path).st_ino == inode)
    except FileNotFoundError:
        return False


@contextmanager
def world_of(seed: int, **options: Any) -> Iterator[World]:
    """A world in a folder of memory, which goes with it.

    Its name is the seed's: names decide in which order Python goes through a set.
    """
    base = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())
    folder = base / f"turnstile-world-{seed}"
    while True:
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            break
        folder = folder.with_name(f"{folder.name}-too")  # another process lives the same
    world = World(seed, folder, **options)
    try:
        yield world
    finally:
        world.remembered.forget()
        shutil.rmtree(folder, ignore_errors=True)
