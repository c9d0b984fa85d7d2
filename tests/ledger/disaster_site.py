"""A small deployment with everything a ledger is compared with: packages, sealed files, witness."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from ledger_asks import CARD, LOSS_MICRO, TRIP, ask, week_number

from conftest import Stores
from turnstile.cli import main
from turnstile.durable_files import set_aside
from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import Attempt, Request
from turnstile.publishing.describe.card_terms import stated_charges
from turnstile.publishing.describe.manifest import manifest_bytes
from turnstile.settings import Settings, system_clock

WIDE = (
    Cap(TRIP, epsilon_micro=4 * LOSS_MICRO),
    Cap(CARD, epsilon_micro=100 * LOSS_MICRO, window_weeks=52),
)
WHO = ("--person", "olga", "--reason", "a bad day")


@dataclass
class Site:
    """Folders and database of one deployment."""

    root: Path
    url: str
    has_witness: bool = True

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def witness(self) -> Path:
        return self.root / "witness"

    def at(self, patch: pytest.MonkeyPatch) -> Site:
        """Let the commands mean this site."""
        patch.setenv("TURNSTILE_HOME", str(self.home))
        patch.setenv("TURNSTILE_LEDGER_URL", self.url)
        patch.setenv("TURNSTILE_WITNESS", str(self.witness) if self.has_witness else "")
        patch.setattr("turnstile.ledger.custody.release_files.APPEARS_WITHIN_S", 0)
        return self

    @property
    def ledger(self) -> Ledger:
        return open_ledger(Settings.from_environment(), new=True)  # one that forgot everything, too

    def copy_of(self, stores: Stores, root: Path) -> Site:
        """The same site elsewhere, as a backup of everything would hold it."""
        shutil.copytree(self.root, root, symlinks=True)
        return replace(self, root=root, url=stores.copy_of(self.url))

    def request(self, n: int, **other: Any) -> Request:
        return ask(week_number(n), caps=other.pop("caps", WIDE), landing="opal/{week}/*", **other)

    def draw(self, n: int, **other: Any) -> Attempt:
        """Reserve, draw and seal one week, with its files."""
        request, ledger = self.request(n, **other), self.ledger
        attempt = ledger.reserve(request)
        if attempt.is_sealed:
            return attempt
        ledger.begin_draw(attempt.attempt_id, request.bindings)
        content = f"noise of {attempt.attempt_id} {secrets.token_hex(8)}".encode()
        digest = hashlib.sha256(content).hexdigest()
        folder = self.home / "embargoed" / str(request.key)
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob("sealed-*"):  # of a draw that died, as the draw step does
            set_aside(leftover)
        (folder / f"sealed-{digest[:16]}.parquet").write_bytes(content)
        (folder / "plan.json").write_text(json.dumps(plan_of(request)))
        return ledger.seal(attempt.attempt_id, digest)

    def publish(self, n: int, **other: Any) -> Path:
        """Release one week as a run does; again, it changes nothing. Return the package."""
        attempt, ledger = self.draw(n, **other), self.ledger
        staged = self.home / "embargoed" / str(attempt.key) / "package"
        public = self.home / "public" / str(attempt.key)
        if not staged.exists():
            stage(staged, attempt, self.request(n, **other), ledger)
        manifest = (staged / "manifest.json").read_bytes()
        ledger.publish(attempt.key, hashlib.sha256(manifest).hexdigest())
        if not public.exists():
            shutil.copytree(staged, public)
        series = self.home / "public/opal/series"
        series.mkdir(exist_ok=True)
        about = b'{"weeks": []}'
        (series / "index.json").write_bytes(about)
        ledger.sign_public_zone({"opal/series/index.json": hashlib.sha256(about).hexdigest()})
        return public


def lived_once(
    stores: Stores, root: Path, live: Callable[[Site], object], *, has_witness: bool = True
) -> Site:
    """A site of which tests of a module take copies, and what it has lived."""
    made = Site(root / "site", stores.new(), has_witness)
    with pytest.MonkeyPatch.context() as patch:
        live(made.at(patch))
    return made


def plan_of(request: Request) -> dict[str, Any]:
    """The plan as packages hold it."""
    return {
        "programme": request.key.programme,
        "programme_digest": request.bindings.programme_digest,
        "domain_digest": request.bindings.domain_digest,
        "plan_digest": request.plan_digest,
        "events": list(request.events),
    }


def today() -> str:
    """The day on which packages are made."""
    return system_clock().date().isoformat()


def stage(folder: Path, attempt: Attempt, request: Request, ledger: Ledger) -> None:
    """Write a package."""
    (folder / "tables").mkdir(parents=True)
    (folder / "tables/on_time.csv").write_text("slot,estimate\n0,12\n")
    (folder / "plan.json").write_text(json.dumps(plan_of(request)))
    (sequence, head), of_key = ledger.head(), ledger.entries_of(attempt.key)
    drawn = ledger.revision(attempt.key).drawn
    charges = stated_charges(of_key, drawn, request.plan_digest)
    card = {
        "charges": charges,
        "burned_draws": sum(charge["draws"] for charge in charges) - 1,
        "cumulative": [{"family": request.family}],
        "ledger": {"head_sha256": head, "sequence": sequence},
        "plan_sha256": request.plan_digest,
        "built_at": today(),
    }
    (folder / "release_card.json").write_text(json.dumps(card))
    sealed = str(attempt.artefact_digest)
    content = manifest_bytes(folder, key=str(attempt.key), sealed_digest=sealed)
    (folder / "manifest.json").write_bytes(content)


def run(*words: str) -> int:
    """Run a command of the ledger; return its exit code."""
    return main(["ledger", *words])
