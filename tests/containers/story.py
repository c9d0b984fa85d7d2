"""What is done to a deployment, and what has to hold after each step: the same for every engine."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

from patience import wait_for

from stores import Store
from turnstile.operations.airflow_api import AirflowApi
from turnstile.pipeline.steps import STEPS
from turnstile.programme.calendar.release_schedule import run_name
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import ServiceWeek

ROOT = Path(__file__).resolve().parents[2]
PROGRAMMES = ("opal", "itms")
FIRST_WEEK = ServiceWeek.parse("2016-W30")
KILLED = ("worker-private", "worker", "scheduler", "redis", "postgres")
ENDED = {"success", "failed"}
CLEARED_AT_MOST = 4
WEEK_WITHIN_S = 1800
# Named one by one: the folder that holds them is the image's, which nothing can change.
ZONES = ("turnstile/landing", "turnstile/private", "turnstile/public", "turnstile/embargoed")
KEPT = ("turnstile/operations", "turnstile-keys")


class Place(Protocol):
    """A deployment, in containers or as processes."""

    address: str
    secrets: Path

    def up(self, *services: str) -> None: ...
    def down(self, *, removing: tuple[str, ...] = ()) -> None: ...
    def use(self, tag: str) -> None: ...
    def kill(self, service: str) -> None: ...
    def run(self, service: str, *command: str, given: bytes | None = None) -> Any: ...
    def run_alone(self, service: str, *command: str, given: bytes) -> Any: ...


class Story:
    """A deployment whose ledger and packages are compared with what they were before.

    Args:
        place: the deployment.
        rows: rows a week and programme.
        say: takes a line of progress.
        store: that holds the zones; None: volumes do.
    """

    def __init__(self, place: Place, rows: int, say: Any, store: Store | None = None) -> None:
        self.place, self.rows, self.say, self.store = place, rows, say, store
        self.kept = KEPT if store else (*ZONES, *KEPT)
        self.victims = (*KILLED, "store") if store else KILLED
        self.sealed: dict[str, str] = {}
        self.manifests: dict[str, str] = {}
        self.programmes = {name: load_programme(name, ROOT / "include") for name in PROGRAMMES}

    def api(self) -> AirflowApi:
        """Return a client with a token of the running API server."""
        password = (self.place.secrets / "airflow_admin_password").read_text()
        return AirflowApi(self.place.address, "admin", password)

    def deliver(self, first: ServiceWeek, weeks: int) -> None:
        """Put generated files into the landing zone, the way that docs/OPERATIONS.md says."""
        with tempfile.TemporaryDirectory() as home:
            last = first.plus(weeks - 1)
            for name in PROGRAMMES:
                command = ["turnstile", "sample", name, "--weeks", f"{first}:{last}",
                           "--rows", str(self.rows), "--seed", "3"]  # fmt: skip
                script = str(Path(sys.executable).parent / command[0])
                environment = {"TURNSTILE_HOME": home, "PYTHONPATH": str(ROOT / "include")}
                subprocess.run([script, *command[1:]], check=True, env=environment,
                               stdout=subprocess.DEVNULL)  # fmt: skip
            if self.store is not None:
                self.store.deliver(Path(home) / "landing")
                return
            archive = subprocess.run(
                ["tar", "-C", f"{home}/landing", "--mode=u=rwX,go=", "-c", "."],
                check=True, capture_output=True,
            ).stdout  # fmt: skip
        self.must("worker-private", "tar", "-C", "/var/lib/turnstile/landing", "-x",
                  given=archive)  # fmt: skip

    def unpause(self) -> None:
        """Let both programmes run; no run begins by that."""
        api = self.api()
        for name in PROGRAMMES:
            self.until(lambda name=name: api.has_dag(f"release_{name}"), "parsing", 300)
            api.unpause(f"release_{name}")
        if errors := api.import_errors():
            raise AssertionError(errors)

    def start(self, weeks: list[ServiceWeek], names: Sequence[str] = PROGRAMMES) -> None:
        """Ask for weeks of some programmes."""
        api = self.api()
        for name in names:
            api.release(self.programmes[name], weeks)

    def released(self, weeks: list[ServiceWeek]) -> None:
        """Release weeks of both programmes without trouble, and look at what came of it."""
        begun = time.monotonic()
        self.start(weeks)
        self.until(lambda: self.has_ended(weeks), "the weeks", WEEK_WITHIN_S)
        assert set(self.states(weeks).values()) == {"success"}, self.trouble(weeks)
        self.agrees(weeks)
        names = ", ".join(map(str, weeks))
        self.say(f"published: {names} of {len(PROGRAMMES)} programmes, "
                 f"{time.monotonic() - begun:.0f} s")  # fmt: skip

    def states(self, weeks: list[ServiceWeek], names: Sequence[str] = PROGRAMMES) -> dict[str, str]:
        """Return the state of each asked run."""
        api = self.api()
        asked = {run_name(name, week) for name in names for week in weeks}
        states = {run.run_id: run.state for name in names for run in api.runs(f"release_{name}")}
        return {run: states.get(run, "none") for run in asked}

    def has_ended(self, weeks: list[ServiceWeek], names: Sequence[str] = PROGRAMMES) -> bool:
        """Return whether every asked run ended, in whatever way."""
        return set(self.states(weeks, names).values()) <= ENDED

    def trouble(self, weeks: list[ServiceWeek], names: Sequence[str] = PROGRAMMES) -> list[str]:
        """Name the tasks that did not succeed, and what those that failed said at last."""
        api = self.api()
        return [
            f"{name} {week}: {task.task_id} {task.state}"
            + (self.last_words(name, week, task.task_id) if task.state == "failed" else "")
            for name in names
            for week in weeks
            for task in api.tasks(f"release_{name}", run_name(name, week))
            if task.state != "success"
        ]

    def last_words(self, name: str, week: ServiceWeek, task: str) -> str:
        """Return the end of the last log of a task."""
        folder = f"dag_id=release_{name}/run_id={run_name(name, week)}/task_id={task}"
        words = f"cd '/opt/airflow/logs/{folder}' && tail -c 3000 $(ls -t | head -1)"
        return ": " + self.place.run("worker", "sh", "-c", words).stdout.decode(errors="replace")

    def agrees(self, weeks: list[ServiceWeek], names: Sequence[str] = PROGRAMMES) -> None:
        """Check the ledger with all files; what was sealed or public before is so still."""
        verified = self.place.run("worker", "turnstile", "ledger", "verify")
        assert verified.returncode == 0, (verified.stdout + verified.stderr).decode()
        entries = self.entries()
        sealed = [entry for entry in entries if entry["kind"] == "sealed"]
        keys = Counter(entry["body"]["key"] for entry in sealed)
        assert set(keys.values()) <= {1}, f"sealed twice: {keys}"
        digests = {entry["body"]["key"]: entry["body"]["artefact_digest"] for entry in sealed}
        public = {entry["body"]["key"]: entry["body"]["manifest_digest"]
                  for entry in entries if entry["kind"] == "published"}  # fmt: skip
        assert self.sealed.items() <= digests.items(), "sealed bytes changed or are gone"
        assert self.manifests.items() <= public.items(), "a publication changed or is gone"
        self.sealed, self.manifests = digests, public
        for name in names:
            for week in weeks:
                folder = f"/var/lib/turnstile/public/{name}/{week}/r0"
                self.must("worker", "turnstile", "package", "verify", folder)

    def entries(self) -> list[dict[str, Any]]:
        """Return every entry of the ledger."""
        lines = self.must("worker", "turnstile", "ledger", "entries", "--json").splitlines()
        return [json.loads(line) for line in lines]

    def schedulers(self) -> int:
        """Return how many schedulers told Airflow lately that they work."""
        alive = ("SELECT count(*) FROM job WHERE job_type = 'SchedulerJob' AND state = 'running'"
                 " AND latest_heartbeat > now() - interval '30 seconds'")  # fmt: skip
        words = ("psql", "--username", "postgres", "--no-align", "--tuples-only", "--command")
        return int(self.must("postgres", *words, alive, "airflow"))

    def losses(self) -> list[Mapping[str, Any]]:
        """Return every account with what it has lost."""
        accounts: list[Mapping[str, Any]] = json.loads(
            self.must("worker", "turnstile", "ledger", "balance", "--json")
        )
        return accounts

    def backup_of_ledger(self) -> bytes:
        """Dump the ledger's database."""
        dump = ("pg_dump", "--username", "postgres", "--format", "custom", "turnstile_ledger")
        return self.must("postgres", *dump)

    def backup_of_zones(self) -> bytes:
        """Pack the signing key, and the zones that are volumes."""
        return self.must("worker-private", "tar", "-C", "/var/lib", "-c", *self.kept)

    def restore(self, ledger: bytes, zones: bytes) -> None:
        """Bring an empty deployment to what the copies hold."""
        self.place.up("postgres", "redis", "init-ledger")
        self.must("postgres", "pg_restore", "--username", "postgres", "--dbname",
                  "turnstile_ledger", "--clean", "--if-exists", given=ledger)  # fmt: skip
        with tarfile.open(fileobj=BytesIO(zones)) as archive:
            assert all(any(folder in name for name in archive.getnames()) for folder in self.kept)
        answer = self.place.run_alone("worker-private", "tar", "-C", "/var/lib", "-x", given=zones)
        assert answer.returncode == 0, answer.stderr.decode()
        self.place.up()

    def killed(self, week: ServiceWeek, chance: random.Random) -> str:
        """Kill one service at a random moment of a week, then do what OPERATIONS.md says.

        The moment is counted from the beginning of a random step, not of the week: a slow machine
        would see the first steps alone.
        """
        name, victim = chance.choice(PROGRAMMES), chance.choice(self.victims)
        step, after = chance.choice(STEPS), chance.uniform(0, 10)
        self.start([week], [name])
        self.until(lambda: self.has_begun(week, name, step), step, WEEK_WITHIN_S)
        time.sleep(after)
        self.place.kill(victim)
        time.sleep(chance.uniform(0, 10))
        self.place.up()
        told = f"{victim} {after:.0f} s into {step} of {name} {week}"
        return f"{told}: {self.healed(week, name)}"

    def has_begun(self, week: ServiceWeek, name: str, step: str) -> bool:
        """Return whether a step of a week runs, or ran."""
        tasks = self.api().tasks(f"release_{name}", run_name(name, week))
        waits = {None, "scheduled", "queued"}
        return any(task.task_id == step and task.state not in waits for task in tasks)

    def healed(self, week: ServiceWeek, name: str) -> str:
        """Clear a week's run until it is published, as often as an operator would."""
        for cleared in range(CLEARED_AT_MOST):
            self.until(lambda: self.has_ended([week], [name]), "the end", WEEK_WITHIN_S)
            if set(self.states([week], [name]).values()) == {"success"}:
                self.agrees([week], [name])
                burned = self.count("burned")
                return f"published, cleared {cleared} times; {burned} draws burned so far"
            self.start([week], [name])  # clears the run that failed
        raise AssertionError(f"{name} {week}: {self.trouble([week], [name])}")

    def count(self, kind: str, key: str = "") -> int:
        """Return how many entries of a kind the ledger has, of all keys or of one."""
        bodies = [entry["body"] for entry in self.entries() if entry["kind"] == kind]
        return sum(key in {"", body.get("key")} for body in bodies)

    def must(self, service: str, *command: str, given: bytes | None = None) -> bytes:
        """Run a command that has to succeed; return what it prints."""
        answer = self.place.run(service, *command, given=given)
        if answer.returncode:
            raise AssertionError(f"{service}: {command}: {answer.stderr.decode()[-2000:]}")
        printed: bytes = answer.stdout
        return printed

    def until(self, holds: Any, what: str, timeout_s: float) -> None:
        """Poll until something holds; a restarted service may not answer meanwhile."""
        wait_for(holds, what, timeout_s, self.say)
