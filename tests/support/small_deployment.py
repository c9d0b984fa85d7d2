"""A small deployment of its own for each test: zones, ledger and programmes with few slots."""

from __future__ import annotations

import csv
import hashlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from turnstile.ledger.ledger import Ledger
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import AccountBalance
from turnstile.pipeline.before_charge import plan
from turnstile.pipeline.context import open_release
from turnstile.pipeline.draw.planned_release import COUNTED_AS
from turnstile.settings import Settings
from turnstile.sources.ingest.snapshot import Snapshot, folder_of, write_record

INCLUDE = Path(__file__).parents[2] / "include"
WEEK = "2016-W30"
_AREAS = 12  # of each mode; 335 in all without this: ten times the cells, and the CPU of every week


def digests(folder: Path) -> dict[str, str]:
    """Digests of every file below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@dataclass(frozen=True)
class Deployment:
    """Zones and programmes of one test."""

    home: Path
    include: Path

    @property
    def public(self) -> Path:
        return self.home / "public"

    @property
    def ledger(self) -> Ledger:
        return open_ledger(Settings.from_environment(), new=True)  # one that forgot everything, too

    def enter(self, environment: pytest.MonkeyPatch) -> None:
        """Let this process be of this deployment."""
        environment.setenv("TURNSTILE_HOME", str(self.home))
        environment.setenv("TURNSTILE_INCLUDE", str(self.include))
        environment.delenv("TURNSTILE_LEDGER_URL", raising=False)

    def landing(self, programme: str, week: str = WEEK) -> Path:
        return self.home / "landing" / programme / week

    def edit(self, programme: str, old: str, new: str) -> None:
        path = self.include / f"programmes/{programme}.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def lose_ledger(self) -> None:
        for path in self.home.glob("ledger.sqlite*"):
            path.unlink()

    def make_up_snapshot(self, programme: str, *files: str) -> None:
        """Record files as read, by their digests, though nobody reads a row of them."""
        digest = "made up" + "".join(files)
        folder = folder_of(self.home / "private", programme, WEEK, digest)
        folder.mkdir(parents=True)
        named = tuple((f"{n}.csv", file_digest) for n, file_digest in enumerate(files))
        made = Snapshot(programme, WEEK, digest, folder, (), named)
        write_record(made, {}, folder=folder)
        for revision in (0, 1):
            revision_folder = self.home / f"private/{programme}/{WEEK}/r{revision}"
            revision_folder.mkdir(parents=True)
            (revision_folder / "snapshot").write_text(digest)
            (revision_folder / "exact").write_text("made up")
            (revision_folder / "files").write_text("\n".join(files))
            release = open_release(programme, WEEK, revision)
            (revision_folder / COUNTED_AS).write_bytes(release.counted_as("made up"))
            plan(release)

    def make_siblings_examples(self, programme: str) -> None:
        """Leave no programme in use that reads the same files as one of the shipped two."""
        siblings = sorted((self.include / "programmes").glob(f"{programme}_*.yaml"))
        text = "".join(f"- {path.stem}\n" for path in siblings)
        (self.include / "examples.yaml").write_text(text)

    def keep_few_places(self) -> None:
        """Leave the first areas of each mode in the public lookup of places."""
        path = self.include / "domains/opal_locations.csv"
        with path.open(newline="") as file:
            header, *rows = csv.reader(file)
        mode, area = header.index("mode"), header.index("area")
        areas: dict[str, dict[str, None]] = defaultdict(dict)
        for row in rows:
            areas[row[mode]][row[area]] = None
        few = {name: list(mode_areas)[:_AREAS] for name, mode_areas in areas.items()}
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, *(r for r in rows if r[area] in few[r[mode]])])

    def spent(self) -> dict[str, int | None]:
        return {account_name(account): account.spent.rho_nano for account in self.ledger.balance()}

    def nothing_happened(self) -> bool:
        charged = any(
            account.spent.rho_nano or account.held.rho_nano for account in self.ledger.balance()
        )
        return not charged and not list(self.public.glob("*/*/r*"))


def account_name(account: AccountBalance) -> str:
    return f"{account.unit}:{account.scope}"
