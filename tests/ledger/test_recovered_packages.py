"""What a package states of draws that an older ledger holds, or another history of it drew, too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from disaster_site import WHO, Site, plan_of, run
from ledger_asks import LOSS_MICRO, spent_micro

from conftest import Stores
from turnstile.ledger.charging import ChargingLedger
from turnstile.ledger.custody.package_files import file_problems
from turnstile.publishing.describe.manifest import manifest_bytes


def die(site: Site, file: str | None = None, **other: Any) -> None:
    """Begin a draw of the second week that never ends, and may leave a file."""
    request = site.request(1, **other)
    attempt = site.ledger.reserve(request)
    site.ledger.begin_draw(attempt.attempt_id, request.bindings)
    if file is not None:
        folder = site.home / "embargoed" / str(request.key)
        (folder / "set-aside").mkdir(parents=True, exist_ok=True)
        (folder / "plan.json").write_text(json.dumps(plan_of(request)))
        (folder / f"set-aside/sealed-{file * 16}.parquet.0a1b").write_bytes(file.encode())


class Branch:
    """A deployment that goes back to how it was, and keeps the package that it made since."""

    def __init__(self, site: Site, stores: Stores, patch: pytest.MonkeyPatch) -> None:
        self.site, self.patch, self.url = site, patch, stores.copy_of(site.url)
        self.home = shutil.copytree(site.home, site.root / "before")
        self.public = site.home / "public" / str(site.request(1).key)

    def publish(self) -> None:
        """Publish the second week, keep its package, and restore home and database."""
        package = self.site.publish(1).rename(self.site.root / "package")
        shutil.rmtree(self.site.home)
        self.home.rename(self.site.home)
        self.home = package
        self.site = replace(self.site, url=self.url).at(self.patch)

    def recovered(self) -> int:
        """Bring the package back, recover, and return how many draws are charged."""
        shutil.rmtree(self.public, ignore_errors=True)
        shutil.copytree(self.home, self.public)
        assert run("recover", *WHO) == 0
        return (spent_micro(self.site.ledger) or 0) // LOSS_MICRO


@pytest.fixture
def branch(site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch) -> Branch:
    """A draw died and left a file; a history that went on from there is lost, but its package."""
    die(site, "a")
    branch = Branch(site, stores, monkeypatch)
    branch.publish()
    return branch


def test_a_draw_that_an_older_ledger_and_a_package_state_is_charged_once(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup holds the draw that died, the card of the next one counts it (seed 12300)."""
    older = [stores.copy_of(site.url)]
    site.ledger.reserve(site.request(1))
    older.append(stores.copy_of(site.url))  # it is held, and charged later
    die(site)
    older.append(stores.copy_of(site.url))
    site.publish(1)
    assert spent_micro(site.ledger) == 3 * LOSS_MICRO
    for url in older:
        site = replace(site, url=url).at(monkeypatch)
        assert run("recover", *WHO) == 0
        assert spent_micro(site.ledger) == 3 * LOSS_MICRO
        assert run("verify") == 0


def test_a_draw_of_another_history_is_none_that_a_package_states(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restored deployment drew, without a file, before the package of the other came back."""
    branch = Branch(site, stores, monkeypatch)
    die(site)
    branch.publish()
    die(branch.site)
    assert branch.recovered() == 4  # of week 0, the package's two, and ours
    assert run("verify") == 0


def test_two_draws_of_one_hold_are_two(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup holds what a draw will cost; both it and the history that was lost draw."""
    site.ledger.reserve(site.request(1))
    branch = Branch(site, stores, monkeypatch)
    die(site)
    branch.publish()
    die(branch.site)
    assert branch.recovered() == 4  # of week 0, those that died, the package's


def test_two_draws_of_one_charge_are_two(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process stops before its charge is started, and both copies take it up."""
    request = site.request(1)
    attempt = site.ledger.reserve(request)
    with monkeypatch.context() as stopped:
        stopped.setattr(ChargingLedger, "_start", _stop)
        with pytest.raises(KeyboardInterrupt):
            site.ledger.begin_draw(attempt.attempt_id, request.bindings)
    branch = Branch(site, stores, monkeypatch)
    die(site)
    branch.publish()
    monkeypatch.setattr("turnstile.ledger.charging.instant", lambda _: "2030-01-01T00:00:00+00:00")
    die(branch.site)
    assert branch.recovered() == 4


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_file_that_a_recovery_named_stands_for_no_other_draw(
    branch: Branch, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The draw that the card states left that file, so one more file is of one more draw."""
    assert run("recover", *WHO) == 0
    named = stores.copy_of(branch.site.url)
    die(branch.site, "b")
    branch.site = replace(branch.site, url=named).at(monkeypatch)
    assert branch.recovered() == 4  # of week 0, both that died, the package's


def test_a_draw_stands_for_one_file_beside_a_package_of_other_bytes(branch: Branch) -> None:
    """The key has bytes; a package of another history shares a dead draw; a file is unknown."""
    branch.site.publish(1)
    aside = branch.site.home / "embargoed" / str(branch.site.request(1).key) / "set-aside"
    (aside / f"sealed-{'c' * 16}.parquet.0a1b").write_bytes(b"c")
    assert branch.recovered() == 5  # of week 0, a, c, its own, the package's


def test_a_staged_package_of_other_bytes_than_the_public_one_is_a_draw_of_its_own_at_once(
    branch: Branch, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first recovery saw the public one alone, and the second charged more."""
    older = stores.copy_of(branch.site.url)
    package = branch.site.publish(1)
    staged = branch.site.home / "embargoed" / str(branch.site.request(1).key) / "package"
    (own,) = staged.parent.glob("sealed-*")
    own.unlink()
    shutil.rmtree(staged)
    package.rename(staged)
    branch.site = replace(branch.site, url=older).at(monkeypatch)
    for _ in range(2):
        assert branch.recovered() == 4  # of week 0, a, the public one's, the staged one's


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_file_of_a_dearer_plan_beside_a_package_that_states_no_such_draw_costs_that_plan(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch, *, is_kept: bool
) -> None:
    """A restored deployment drew, and is lost again; of its draw a file and the plan are left."""
    branch = Branch(site, stores, monkeypatch)
    branch.publish()
    before = stores.copy_of(branch.site.url)
    die(branch.site, "a", epsilon_micro=3 * LOSS_MICRO)
    folder = branch.site.home / "embargoed" / str(site.request(1).key)
    if is_kept:  # the week was planned anew
        (folder / "plan.json").rename(folder / f"set-aside/plan-{'a' * 16}.json")
        (folder / "plan.json").write_text(json.dumps(plan_of(site.request(1))))
    branch.site = replace(branch.site, url=before).at(monkeypatch)
    for _ in range(2):
        assert branch.recovered() == 5  # of week 0, three times as much, the package's
        if not is_kept:
            (folder / "plan.json").unlink(missing_ok=True)  # as verify asks
        assert run("verify") == 0


@pytest.mark.parametrize("times", [3, Fraction(1, 4)])
@pytest.mark.parametrize("is_held", [False, True])
def test_a_draw_of_another_plan_costs_what_the_card_states_of_it_and_no_less_than_the_package(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch, *, times: Fraction, is_held: bool
) -> None:
    """A programme was made cheaper, or dearer, after a draw died; its package alone is left.

    What is left of a ledger that knows the draw is its own charge.
    """
    before = stores.copy_of(site.url)
    die(site, epsilon_micro=int(LOSS_MICRO * times))
    assert run("burn", str(site.request(1).key), *WHO) == 0
    held = stores.copy_of(site.url)
    site.publish(1)
    true = spent_micro(site.ledger)
    assert true == (2 + times) * LOSS_MICRO
    site = replace(site, url=held if is_held else before).at(monkeypatch)
    assert run("recover", *WHO) == 0
    charged = spent_micro(site.ledger)
    assert charged == (true if is_held else (2 + max(times, 1)) * LOSS_MICRO)
    assert run("recover", *WHO) == 0
    assert spent_micro(site.ledger) == charged
    assert run("verify") == 0


def of_charges(**changed: object) -> Callable[[dict[str, Any]], object]:
    """Change every charge of a card."""
    return lambda card: {**card, "charges": [{**c, **changed} for c in card["charges"]]}


UNREADABLE: dict[str, Callable[[dict[str, Any]], object]] = {
    "a list": lambda card: [card],
    "charges are a number": lambda card: {**card, "charges": 3},
    "charges are nothing": lambda card: {**card, "charges": None},
    "charges are numbers": lambda card: {**card, "charges": [3]},
    "a text for a number": lambda card: {**card, "burned_draws": "many"},
    "a list for a number": lambda card: {**card, "burned_draws": [1]},
    "below zero": lambda card: {**card, "burned_draws": -1},
    "very many": lambda card: {**card, "burned_draws": 10**30},
    "infinite": lambda card: {**card, "burned_draws": float("inf")},
    "accounts are a number": lambda card: {**card, "cumulative": 3},
    "no group": lambda card: {**card, "cumulative": [{}]},
}
LOSS = ["card", "ever", 1, 1, 1]
OF_ANOTHER_PLAN: dict[str, object] = {
    "no list": 3,
    "a text": "card",
    "no account": [[]],
    "no unit": [["city", *LOSS[1:]]],
    "no scope": [["card", None, *LOSS[2:]]],
    "a text for an amount": [[*LOSS[:2], "1", 1, 1]],
    "a part of one": [[*LOSS[:2], 0.5, 1, 1]],
    "no delta": [[*LOSS[:4], None]],
    "below zero": [[*LOSS[:2], -1, 1, 1]],
    "beyond the ledger": [[*LOSS[:2], 10**19, 1, 1]],
}
UNREADABLE |= {
    f"of another plan {kind}": of_charges(postings=losses)
    for kind, losses in OF_ANOTHER_PLAN.items()
} | {f"{n!r} draws": of_charges(postings=[LOSS], draws=n) for n in (0, -1, 10**30, "1", 1.5, True)}
COUNTED: dict[str, Callable[[dict[str, Any]], object]] = {
    "draws below zero": of_charges(draws=-1),
    "very many draws": of_charges(draws=10**30),
    "draws that are a text": of_charges(draws="many"),
    "an entry that is a list": of_charges(entry_sha256=[1]),
    "of no loss": of_charges(postings=[], entry_sha256="0"),
    "of a small loss": of_charges(postings=[LOSS], entry_sha256="0"),
    "each twice": lambda card: {**card, "burned_draws": 2, "charges": 2 * card["charges"]},
}


CREDITED = {kind for kind in COUNTED if "draws" in kind}
"""Those that still name the entry of the draw that died."""


def altered(site: Site, change: Callable[[dict[str, Any]], object] | None) -> Path:
    """Publish the second week, and give its package another card, listed as all its files are."""
    package = site.publish(1)
    path, manifest = package / "release_card.json", package / "manifest.json"
    card = json.loads(path.read_bytes())
    path.write_text("[" * 100_000 if change is None else json.dumps(change(card)))
    sealed = json.loads(manifest.read_bytes())["sealed_sha256"]
    key = str(site.request(1).key)
    manifest.write_bytes(manifest_bytes(package, key=key, sealed_digest=sealed))
    assert not file_problems(package)
    return package


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
def test_a_card_that_cannot_be_read_is_named_and_nothing_is_charged(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    die(site)
    older = stores.copy_of(site.url)
    package = altered(site, None)
    card, manifest = package / "release_card.json", package / "manifest.json"
    whole = json.loads((site.home / "public" / str(site.request(0).key) / card.name).read_bytes())
    sealed, key = json.loads(manifest.read_bytes())["sealed_sha256"], str(site.request(1).key)
    site = replace(site, url=older).at(monkeypatch)
    for change in (None, *UNREADABLE.values()):
        if change is not None:
            card.write_text(json.dumps(change(whole)))
        manifest.write_bytes(manifest_bytes(package, key=key, sealed_digest=sealed))
        capsys.readouterr()
        assert run("recover", *WHO) == 2
        assert "its release_card.json cannot be read; restore the package" in (
            capsys.readouterr().err
        )
    assert spent_micro(site.ledger) == 2 * LOSS_MICRO


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", COUNTED)
def test_a_card_talks_no_draw_away_that_the_ledger_did_not_charge(
    site: Site, stores: Stores, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    die(site, "a")
    older = stores.copy_of(site.url)
    altered(site, COUNTED[kind])
    site = replace(site, url=older).at(monkeypatch)
    assert run("recover", *WHO) == 0
    charged = (spent_micro(site.ledger) or 0) // LOSS_MICRO
    assert charged == 3 + (kind not in CREDITED)
