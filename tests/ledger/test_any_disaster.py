"""Random histories with restores, recoveries, full disks and deaths mixed in.

Checked by a model that knows only files: every sealed file that ever existed, wherever it lies now,
was one draw. Whatever operators did, the ledger never states less than those draws cost, and never
more than every draw cost that any copy of it ever charged; no key whose package is public is ever
drawn again.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pytest
from disaster_site import WHO, Site, run
from ledger_asks import LOSS_MICRO, week_number

from conftest import Stores
from turnstile.errors import InputError, IntegrityError, RefusedError
from turnstile.ledger.custody import recovery, space
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.settings import Settings

WEEKS = 5
STEPS_LONG, STEPS_OF_ONE, PIECES = 10_000, 50, 20


class SteadySite(Site):
    """A site whose ledger is opened once: a thousand openings cost more than what they open."""

    @cached_property
    def ledger(self) -> Ledger:  # type: ignore[override]
        # One that forgot everything, too: its inner guard is asked what it may not charge.
        return open_ledger(Settings.from_environment(), new=True)


class History:
    """One deployment and everything that happens to it."""

    def __init__(
        self, stores: Stores, root: Path, patch: pytest.MonkeyPatch, *, seed: int, witness: bool
    ) -> None:
        self.random, self.stores, self.patch = random.Random(seed), stores, patch  # noqa: S311 - a test's
        self.site = SteadySite(root / "site", stores.new(), has_witness=witness).at(patch)
        self.backups: list[str] = []
        self.seen: dict[str, int] = {}
        self.public: dict[str, bytes] = {}
        self.did: Counter[str] = Counter()
        self.begun: dict[str, set[str]] = {}

    def step(self) -> None:
        """Do one thing, and compare with what files say."""
        name = self.random.choices(
            ("release", "draw", "die", "backup", "restore", "recover", "full_disk", "void"),
            (4, 2, 4, 3, 2, 4, 1, 1),
        )[0]
        self.did[name] += 1
        week = self.random.randrange(WEEKS)
        before = self.draws()
        try:
            getattr(self, name)(week)
        except (InputError, IntegrityError) as refused:  # before anything was written
            self.did[type(refused).__name__] += 1
            self.compare(before, changed=False)
        except RefusedError as refused:
            self.did[type(refused).__name__] += 1
            self.compare(before)
        else:
            self.compare(before)

    def release(self, week: int) -> None:
        self.site.publish(week)

    def draw(self, week: int) -> None:
        self.site.draw(week)

    def die(self, week: int) -> None:
        """A process that is killed after its charge, before or after its noise."""
        request = self.site.request(week)
        attempt = self.site.ledger.reserve(request)
        if not attempt.is_sealed:
            self.site.ledger.begin_draw(attempt.attempt_id, request.bindings)

    def backup(self, _: int) -> None:
        self.backups.append(self.stores.copy_of(self.site.url))

    def restore(self, _: int) -> None:
        """Any backup there is, or none: an empty database."""
        url = self.stores.new()
        if self.backups and self.random.random() < 0.8:
            url = self.stores.copy_of(self.random.choice(self.backups))
        self.site = replace(self.site, url=url).at(self.patch)

    def recover(self, _: int) -> None:
        assert run("recover", *WHO, "--family", "opal=opal_cards") == 0

    def full_disk(self, week: int) -> None:
        with pytest.MonkeyPatch.context() as full:
            full.setattr(space.os, "posix_fallocate", _no_space)
            self.site.draw(week)

    def void(self, week: int) -> None:
        attempt = self.site.ledger.find(ReleaseKey("opal", week_number(week)))
        if attempt is not None:
            self.site.ledger.void(attempt.attempt_id, "by hand")

    def draws(self) -> dict[str, int]:
        """How many sealed files each week has: true draws, whatever the ledger says."""
        return {
            week_number(n): len(
                list((self.site.home / f"embargoed/opal/{week_number(n)}/r0").rglob("sealed-*"))
            )
            for n in range(WEEKS)
        }

    def compare(self, before: dict[str, int], *, changed: bool = True) -> None:
        """No under- or over-count once ledger and files agree; no second draw of what is public."""
        now, public_before = self.draws(), set(self.public)
        for entry in self.site.ledger.entries():
            if entry.kind is EntryKind.DRAW_BEGUN:
                self.begun.setdefault(entry.body["key"], set()).add(entry.hash)
        for path in (self.site.home / "public").glob("opal/*/r0/manifest.json"):
            week = path.parent.parent.name
            assert self.public.setdefault(week, path.read_bytes()) == path.read_bytes()
        for week in public_before:
            assert now[week] <= max(1, before[week]), f"{week} is public and was drawn again"
        if changed and not self.site.ledger.verify():
            self.did["verified"] += 1
            spent = {
                balance.scope: balance.spent.epsilon_micro or 0
                for balance in self.site.ledger.balance()
            }
            for n in range(WEEKS):
                scope = f"{_monday(n)}/bus/b0"
                drawn = now[week_number(n)]
                begun = len(self.begun.get(f"opal/{week_number(n)}/r0", ()))
                assert spent.get(scope, 0) >= drawn * LOSS_MICRO, "a draw was forgotten"
                assert spent.get(scope, 0) <= begun * LOSS_MICRO, "a draw was counted twice"


def _monday(n: int) -> str:
    from turnstile.service_calendar import ServiceWeek

    return str(ServiceWeek.parse(week_number(n)).monday)


def _no_space(*_: object) -> None:
    """What a full disk answers."""
    raise OSError(28, "No space left on device")


def run_history(
    stores: Stores, root: Path, patch: pytest.MonkeyPatch, seed: int, steps: int
) -> Counter[str]:
    """Run one history; what was found out about it is counted."""
    history = History(stores, root, patch, seed=seed, witness=bool(seed % 2))
    for _ in range(steps):
        history.step()
    history.recover(0)
    assert run("verify") == 0
    shutil.rmtree(root, ignore_errors=True)
    return history.did


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_few_histories_of_disasters_forget_no_draw(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    steps = 30 if stores.kind == "sqlite" else 12
    did = run_history(stores, tmp_path / "h", monkeypatch, seed, steps)
    assert min(did["restore"] + did["recover"], did["verified"]) > 0


@pytest.mark.long
@pytest.mark.parametrize("piece", range(PIECES))
def test_ten_thousand_steps_of_disasters_forget_no_draw(
    stores: Stores,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    piece: int,
    record_property: Callable[[str, object], None],
) -> None:
    """Ten thousand on each store, in pieces; what each did is in --junit-xml (xunit1)."""
    did: Counter[str] = Counter()
    for n in range(STEPS_LONG // PIECES // STEPS_OF_ONE):
        seed = 1000 + 100 * piece + n
        did += run_history(stores, tmp_path / str(seed), monkeypatch, seed, STEPS_OF_ONE)
    record_property("did", dict(did))
    assert min(did[name] for name in ("restore", "recover", "full_disk", "verified")) > 0


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
def test_the_model_notices_a_ledger_that_looks_at_no_trace(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: without the look outside, a restored ledger draws again."""
    from turnstile.ledger.custody.custody import Custody

    site = Site(tmp_path / "site", stores.new(), has_witness=False).at(monkeypatch)
    history = History(stores, tmp_path / "h", monkeypatch, seed=0, witness=False)
    history.site = site
    backup = stores.copy_of(site.url)
    site.publish(0)
    history.compare(history.draws())
    before = history.draws()
    monkeypatch.setattr(Custody, "require_intact", lambda _: frozenset())
    history.site = replace(site, url=backup).at(monkeypatch)
    folder = site.home / f"embargoed/opal/{week_number(0)}/r0"
    request = site.request(0)
    attempt = history.site.ledger.reserve(request)
    history.site.ledger.begin_draw(attempt.attempt_id, request.bindings)
    (folder / f"sealed-{'0' * 16}.parquet").write_bytes(b"other noise")
    with pytest.raises(AssertionError, match="drawn again"):
        history.compare(before)


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
def test_the_model_notices_a_draw_that_is_counted_twice(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: an older ledger holds a dead draw, the card of the next one, too."""
    history = History(stores, tmp_path / "h", monkeypatch, seed=0, witness=False)
    for act in (history.die, history.backup, history.release):
        act(0)
        history.compare(history.draws())
    monkeypatch.setattr(recovery, "_held", lambda *_: {})
    history.site = replace(history.site, url=history.backups[0]).at(monkeypatch)
    history.recover(0)
    with pytest.raises(AssertionError, match="counted twice"):
        history.compare(history.draws())
