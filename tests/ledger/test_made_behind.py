"""A damaged ledger whose lost entries made packages: what is left of a draw is charged once.

A hold, a row, a loss that a recovery declared and the card of the package may all tell of one draw.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from damaged_ledger import NO_ATTEMPTS, declared, die, of_week, states, with_holes
from disaster_site import WHO, Site, run
from ledger_asks import LOSS_MICRO, spent_micro

from conftest import Stores
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.promise import plan_digest
from turnstile.ledger.states import ReleaseState
from turnstile.publishing.describe.manifest import manifest_bytes
from turnstile.settings import system_clock

pytestmark = pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
"""A server looks after its files."""


_UNGUARDED = "DROP TRIGGER attempt_no_delete; DROP TRIGGER attempt_opens;"
_NO_SECOND = f"{_UNGUARDED} DELETE FROM attempt WHERE attempt_id LIKE '%#2';"


@pytest.mark.parametrize(
    ("kind", "of_attempt", "alters", "has_died"),
    [
        pytest.param(EntryKind.DRAW_BEGUN, 2, NO_ATTEMPTS, True, id="a hold"),
        pytest.param(EntryKind.DRAW_BEGUN, 1, NO_ATTEMPTS, True, id="a hold of a draw that died"),
        pytest.param(EntryKind.DRAW_BEGUN, 1, NO_ATTEMPTS, False, id="the only hold"),
        pytest.param(EntryKind.DRAW_STARTED, 1, NO_ATTEMPTS, False, id="the only charge"),
        pytest.param(EntryKind.DRAW_STARTED, 2, NO_ATTEMPTS, True, id="a charge"),
        pytest.param(EntryKind.SEALED, 2, NO_ATTEMPTS, True, id="a draw under way"),
        pytest.param(EntryKind.SEALED, 1, NO_ATTEMPTS, False, id="the only draw under way"),
        pytest.param(EntryKind.BURNED, 1, NO_ATTEMPTS, True, id="a draw that died after"),
        pytest.param(EntryKind.RESERVED, 1, _NO_SECOND, True, id="a row of one that died"),
    ],
)
def test_what_is_left_of_a_draw_is_no_other_than_the_one_on_the_card_of_its_package(
    site: Site, kind: EntryKind, of_attempt: int, alters: str, *, has_died: bool
) -> None:
    """Of a thousand simulated years 26 worlds charged a week beyond its cap, for one draw twice."""
    if has_died:
        die(site, 1)
    package, number = site.publish(1), f"#{of_attempt}"
    manifest = (package / "manifest.json").read_bytes()
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger)
    (first,) = [
        e for e in entries if e.kind is kind and str(e.attempt_id).endswith(f"31/r0{number}")
    ]
    with_holes(range(first.sequence, len(entries) + 1), alters=alters)
    for _ in range(2):
        assert run("recover", *WHO) == 0
        assert spent_micro(site.ledger) == spent
    assert run("verify") == 0
    assert states(site, site.request(1).key).count(ReleaseState.PUBLISHED) == 1
    assert (site.publish(1) / "manifest.json").read_bytes() == manifest
    assert spent_micro(site.ledger) == spent


@pytest.mark.parametrize("is_reserved_before", [True, False])
def test_a_start_that_is_left_is_that_of_the_package_which_has_its_bytes(
    site: Site, *, is_reserved_before: bool
) -> None:
    """What sealed them is lost: it was taken for a draw that had died beside them."""
    site.publish(1)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger)
    gone = of_week(entries, 1, EntryKind.DRAW_BEGUN, EntryKind.SEALED, EntryKind.PUBLISHED)
    hole = [] if is_reserved_before else of_week(entries, 0)[-1:]
    with_holes([*hole, *gone], alters=NO_ATTEMPTS)
    for _ in range(2):
        assert run("recover", *WHO) == 0
        assert (spent_micro(site.ledger), run("verify")) == (spent, 0)


def test_a_draw_that_was_charged_behind_a_hole_is_known_on_the_card_after_the_next_one(
    site: Site,
) -> None:
    """A card names what charged it in a ledger that is lost: the declared loss stands for that."""
    die(site, 1)
    site.publish(1)
    spent = spent_micro(site.ledger)
    with_holes(of_week([*site.ledger.entries()], 0)[-1:])
    assert run("recover", *WHO) == 0
    entries = [*site.ledger.entries()]
    (stands_for,) = [entry.sequence for entry in entries if "stands_for" in entry.body]
    with_holes(range(stands_for + 1, len(entries) + 1), alters=NO_ATTEMPTS)
    assert run("recover", *WHO) == 0
    assert (spent_micro(site.ledger), run("verify")) == (spent, 0)


@pytest.mark.parametrize("named", [None, 7, [7]])
def test_a_loss_stands_for_no_draw_of_another_plan(site: Site, named: object) -> None:
    """Somebody put it behind a hole: who says that a cheap draw was a dear one takes none away."""
    die(site, 1)
    site.publish(1)
    spent = spent_micro(site.ledger) or 0
    begun = of_week(entries := [*site.ledger.entries()], 1, EntryKind.DRAW_STARTED)[0]
    cheap = declared(site, 1, epsilon_micro=LOSS_MICRO // 2)
    names = named or [e.hash for e in entries if e.sequence == begun]
    forged = {"kind": "loss_declared", "body": cheap | {"stands_for": names}}
    gone = [e.sequence for e in entries if e.key == str(site.request(1).key)]
    with_holes([of_week(entries, 0)[-1], *gone], [forged], alters=NO_ATTEMPTS)
    run("recover", *WHO)
    assert (spent_micro(site.ledger) or 0) >= spent


def test_a_package_of_a_copy_that_lived_on_is_another_draw(
    site: Site, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site was put back, and drew the week anew; then its ledger was damaged."""
    other = site.copy_of(stores, tmp_path / "other")
    with monkeypatch.context() as patch:
        patch.setattr("disaster_site.today", lambda: "2016-08-09")
        package = site.publish(1)
    other.at(monkeypatch)
    die(other, 1)
    entries = [*other.ledger.entries()]
    begun = of_week(entries, 1, EntryKind.DRAW_BEGUN)[0]
    with_holes(range(begun, len(entries) + 1), alters=NO_ATTEMPTS)
    _plant(package, other)
    run("recover", *WHO)
    assert spent_micro(other.ledger) == 3 * LOSS_MICRO


def _alter(package: Path, name: str, **other: Any) -> None:
    """Alter a file of a package, as somebody would who lists its files anew."""
    said = json.loads((package / name).read_text()) | other
    (package / name).write_text(json.dumps(said))
    about = json.loads((package / "manifest.json").read_text())
    (package / "manifest.json").unlink()
    content = manifest_bytes(package, key=about["key"], sealed_digest=about["sealed_sha256"])
    (package / "manifest.json").write_bytes(content)


def _elsewhere(site: Site, stores: Stores, folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Let a copy of the site publish its second week; return the package."""
    with patch.context() as elsewhere:
        return site.copy_of(stores, folder).at(elsewhere).publish(1)


def _plant(package: Path, site: Site) -> None:
    key = package.relative_to(package.parents[2])
    shutil.copytree(package, site.home / "public" / key)


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param({"built_at": "2999-01-01"}, id="a day after what is known after it"),
        pytest.param({"built_at": "2016-01-01"}, id="a day before what is known"),
        pytest.param({"built_at": None}, id="no day"),
        pytest.param({"charges": 2 * [{"entry_sha256": "0"}, {"entry_sha256": "1"}]}, id="charges"),
        pytest.param({"ledger": {"head_sha256": "ab" * 32, "sequence": 1}}, id="a known entry"),
        pytest.param({"ledger": {"head_sha256": "ab" * 32, "sequence": -1}}, id="another entry"),
    ],
)
def test_a_package_made_elsewhere_takes_no_hold_away(site: Site, planted: dict[str, Any]) -> None:
    """The end of the hold is lost, and another week is known behind the hole."""
    package = site.publish(1)
    site.publish(2)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger) or 0
    if planted.get("ledger", {}).get("sequence") == -1:
        planted["ledger"]["sequence"] = of_week(entries, 2)[0]
    _alter(package, "release_card.json", **planted)
    shutil.rmtree(site.home / "embargoed" / str(site.request(1).key))
    with_holes(of_week(entries, 1)[1:], alters=NO_ATTEMPTS)
    assert run("recover", *WHO) == 0
    assert spent_micro(site.ledger) == spent + LOSS_MICRO


@pytest.mark.parametrize("is_planted", [True, False])
def test_a_package_stands_for_as_many_draws_as_it_is_charged_for(
    site: Site, *, is_planted: bool
) -> None:
    """Beside it two draws that died are left as rows; or its card names two and costs one."""
    package = site.publish(1)
    spent, entries = spent_micro(site.ledger) or 0, [*site.ledger.entries()]
    if is_planted:
        _alter(package, "release_card.json", charges=[{"entry_sha256": n * 64} for n in "01"])
        shutil.rmtree(site.home / "embargoed" / str(site.request(1).key) / "package")
    dead = "'burned', programme_digest, domain_digest, snapshot_digest, plan_digest, NULL, NULL"
    own = "FROM attempt WHERE attempt_id LIKE '%31/r0#1'"
    alters = "".join(
        f"INSERT INTO attempt SELECT release_key || '#{n}', release_key, family, week, {dead}, "
        f"reserved_sequence, is_withdrawn {own};"
        for n in (2, 3)
    )
    with_holes(of_week(entries, 1), alters=f"{_UNGUARDED} {alters} DELETE {own};")
    run("recover", *WHO)
    assert (spent_micro(site.ledger) or 0) >= spent + (1 + is_planted) * LOSS_MICRO


def test_a_package_that_costs_nothing_takes_no_draw_away(
    site: Site, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = _elsewhere(site, stores, tmp_path / "other", monkeypatch)
    die(site, 1)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger) or 0
    with_holes(of_week(entries, 1)[1:], alters=NO_ATTEMPTS)
    key, bindings = site.request(1).key, site.request(1).bindings
    bound = (bindings.programme_digest, bindings.domain_digest)
    digest = plan_digest(*bound, key.period, key.revision, ())
    _alter(package, "plan.json", events=[], plan_digest=digest)
    _plant(package, site)
    run("recover", *WHO)
    assert (spent_micro(site.ledger) or 0) >= spent


@pytest.mark.parametrize("is_dear", [True, False])
def test_a_forged_charge_stands_for_none_that_a_card_states(site: Site, *, is_dear: bool) -> None:
    """Of another week, which is charged anyway; or a cheap loss for a draw that was dear."""
    die(site, 1, epsilon_micro=LOSS_MICRO * (1 + is_dear))
    site.publish(1)
    die(site, 2)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger) or 0
    started = of_week(entries, 1, EntryKind.DRAW_STARTED)[0]
    stands_for = {"stands_for": [e.hash for e in entries if e.sequence == started]}
    ours = declared(site, 1) | stands_for
    other = {word: declared(site, 2)[word] for word in ("attempt", "key")}
    forged = {"kind": "loss_declared" if is_dear else "draw_started", "body": ours}
    forged["body"] |= {} if is_dear else other
    with_holes([of_week(entries, 0)[-1], *of_week(entries, 1)], [forged], alters=NO_ATTEMPTS)
    run("recover", *WHO)
    assert (spent_micro(site.ledger) or 0) >= spent


@pytest.mark.parametrize(
    "forged", [{"draws": "x"}, {"draws": None}, {"stands_for": ["\ud800"]}, {"stands_for": [[]]}]
)
@pytest.mark.parametrize("kind", ["draw_started", "loss_declared"])
def test_what_is_malformed_behind_a_hole_stops_no_recovery(
    site: Site, kind: str, forged: dict[str, Any]
) -> None:
    die(site, 1)
    site.publish(1)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger) or 0
    body = declared(site, 1) | {"attempt": f"{site.request(1).key}#1"} | forged
    with_holes([of_week(entries, 0)[-1]], [{"kind": kind, "body": body}], alters=NO_ATTEMPTS)
    assert run("recover", *WHO) in {0, 4}
    assert (spent_micro(site.ledger) or 0) >= spent
    assert run("verify") == 0


@pytest.mark.parametrize("is_row", [True, False], ids=["its row", "its entry"])
def test_a_package_made_elsewhere_gives_a_key_no_other_bytes(
    site: Site, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_row: bool
) -> None:
    package = _elsewhere(site, stores, tmp_path / "other", monkeypatch)
    attempt = site.draw(1)
    entries = [*site.ledger.entries()]
    gone = of_week(entries, 1, EntryKind.DRAW_BEGUN, EntryKind.DRAW_STARTED)
    gone += of_week(entries, 1, EntryKind.RESERVED, EntryKind.SEALED) if is_row else []
    with_holes(gone, alters="" if is_row else NO_ATTEMPTS)
    _plant(package, site)
    run("recover", *WHO)
    assert spent_micro(site.ledger) == 3 * LOSS_MICRO
    attempts = site.ledger.revision(attempt.key).attempts
    assert {a.artefact_digest for a in attempts if a.is_sealed} == {attempt.artefact_digest}


def test_a_hold_that_was_reserved_after_a_package_is_not_its(
    site: Site, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy published the week and was put back; of what followed the reservation is left."""
    package = _elsewhere(site, stores, tmp_path / "other", monkeypatch)
    for n in (2, 3):
        site.publish(n)
    die(site, 1)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger) or 0
    left = of_week(entries, 1, EntryKind.RESERVED)[0]
    behind = range(of_week(entries, 2)[0], len(entries) + 1)
    with_holes([n for n in behind if n != left], alters=NO_ATTEMPTS)
    _plant(package, site)
    run("recover", *WHO)
    assert (spent_micro(site.ledger) or 0) >= spent + LOSS_MICRO


def test_a_package_that_a_recovery_gave_up_has_no_later_hold(
    site: Site, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = _elsewhere(site, stores, tmp_path / "other", monkeypatch)
    head = json.loads((package / "release_card.json").read_text())["ledger"]
    die(site, 1)
    entries, spent = [*site.ledger.entries()], spent_micro(site.ledger) or 0
    body = {"superseded": [[head["sequence"], head["head_sha256"]], [[]], 7]}
    others = [{"kind": "recovered", "body": {"superseded": word}} for word in (7, None, [7])]
    now = system_clock().isoformat()
    forged = [{"kind": "recovered", "body": body, "at": now}, *({"at": now} | o for o in others)]
    with_holes(of_week(entries, 1)[1:], forged, alters=NO_ATTEMPTS)
    _plant(package, site)
    run("recover", *WHO)
    assert spent_micro(site.ledger) == spent + LOSS_MICRO
