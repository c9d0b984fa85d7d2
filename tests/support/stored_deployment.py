"""A deployment whose zones are buckets; every step has a folder of its own that nobody keeps."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from object_store import ZONES, ObjectStore, bucket_of
from small_deployment import WEEK

from turnstile.ledger.ledger import Ledger
from turnstile.ledger.of_deployment import open_ledger
from turnstile.pipeline.steps import PRIVATE_STEPS, STEPS, step_named
from turnstile.settings import Settings

KEY = f"itms/{WEEK}/r0"


class StoredDeployment:
    """Buckets under a prefix, a ledger, and workers with what each user's environment names."""

    def __init__(self, store: ObjectStore, base: Path, include: Path) -> None:
        self.store, self.base, self.include = store, base, include
        self.prefix = f"{base.parent.name}-{base.name}"
        self._scratches = 0

    def fork(self, base: Path) -> StoredDeployment:
        """A copy of everything under another prefix: buckets, ledger, keys."""
        base.mkdir(exist_ok=True)
        made = StoredDeployment(self.store, base, self.include)
        for zone in ZONES:
            self.store.behind(zone, self.prefix, made.prefix)
        for path in (self.base / name for name in ("ledger.sqlite", "key.pem", "log-key.pem")):
            if path.exists():
                shutil.copyfile(path, base / path.name)
        return made

    @property
    def root(self) -> Any:
        return self.store.client("root")

    def objects(self, zone: str, named: str = "") -> dict[str, bytes]:
        """What lies in a bucket, where names begin as a pattern says."""
        found = self.store.behind(zone, self.prefix)
        return {name: content for name, content in found.items() if re.match(named, name)}

    def plant(self, zone: str, name: str, content: bytes) -> None:
        self.root.put_object(Bucket=bucket_of(zone), Key=f"{self.prefix}/{name}", Body=content)

    def deliver(self, landing: Path) -> None:
        authority = self.store.client("authority")
        for path in sorted(landing.rglob("*")):
            if path.is_file():
                key = f"{self.prefix}/{path.relative_to(landing).as_posix()}"
                authority.put_object(Bucket=bucket_of("landing"), Key=key, Body=path.read_bytes())

    @contextmanager
    def process(self, user: str, home: Path | None = None) -> Iterator[Path]:
        """The environment of a process of this user; its folder goes, unless one is given."""
        self._scratches += 1
        folder = home or self.base / f"scratch-{self._scratches}"
        with pytest.MonkeyPatch.context() as environment:
            for zone in ZONES:
                environment.delenv(f"TURNSTILE_{zone.upper()}_STORE", raising=False)
            for name, value in self.store.environment(user, self.prefix).items():
                environment.setenv(name, value)
            environment.setenv("TURNSTILE_HOME", str(folder))
            environment.setenv("TURNSTILE_INCLUDE", str(self.include))
            environment.setenv("TURNSTILE_LEDGER_URL", f"sqlite:///{self.base}/ledger.sqlite")
            environment.setenv("TURNSTILE_LEDGER_KEY", str(self.base / "key.pem"))
            try:
                yield folder
            finally:
                if home is None:
                    shutil.rmtree(folder, ignore_errors=True)

    def step(self, name: str, home: Path | None = None) -> str:
        """Do a step as the worker that Airflow gives it to."""
        user = "worker-private" if name in PRIVATE_STEPS else "worker"
        with self.process(user, home) as folder:
            answer = step_named(name)("itms", WEEK, 0)
            if user == "worker":
                assert not list((folder / "private").glob("*"))
                assert not (folder / "landing").exists()
            return answer

    def steps(self, *names: str) -> None:
        for name in names or STEPS:
            self.step(name)

    @property
    def ledger(self) -> Ledger:
        with self.process("worker"):
            return open_ledger(Settings.from_environment())

    def kinds(self) -> list[str]:
        """The kinds of the entries about the week."""
        return [entry.kind.value for entry in self.ledger.entries() if entry.key == KEY]
