"""Through how many modules of ours a draw goes, and how many of them are not of the trusted core.

Both figures are held. Those outside are the walk itself, preflight, bounding keys, the beginning of
the transparency log (three, in a ledger's first draw alone), the ledger's
second places and the copies of zones.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import date
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trusted_core
from deployment_fixtures import BegunWeek
from house_entered import entered
from small_deployment import WEEK, Deployment

from turnstile.counting import exact_store
from turnstile.counting.exact_store import load_exact
from turnstile.errors import InputError, IntegrityError, RefusedError, TurnstileError
from turnstile.ledger.charging import ChargingLedger
from turnstile.ledger.records import Attempt
from turnstile.pipeline.code_version import code_version
from turnstile.pipeline.context import Release, open_release
from turnstile.pipeline.draw import charged_draw
from turnstile.pipeline.draw.drawing import draw
from turnstile.pipeline.draw.drawn_release import read_sealed_bytes
from turnstile.privacy.mechanisms import dense
from turnstile.publishing.describe.licences import path_of
from turnstile.release import zone_copies
from turnstile.release.sealed import Artefact, decode, encode
from turnstile.release.zones import sealed_path

MODULES_AT_MOST, OUTSIDE_AT_MOST = 67, 24
ROOT = Path(__file__).resolve().parents[2]


def outside_of(modules: set[str]) -> set[str]:
    """Modules that are not of the trusted core."""
    listed = trusted_core.listed((ROOT / trusted_core.LIST).read_text(encoding="utf-8"))
    return modules - {module.replace(".", "/") for module in listed}


@pytest.fixture
def counted(begun_week: BegunWeek) -> Deployment:
    """A week of `itms` that is reserved and not drawn."""
    return begun_week("itms", "draw")


def planned() -> Release:
    """Open the week as a step after `reserve` finds it: what one process remembers is known."""
    release = open_release("itms", WEEK)
    assert all((release.plan.digest, code_version()))
    return release


@pytest.mark.usefixtures("counted")
def test_a_draw_enters_so_many_modules_of_ours() -> None:
    release = planned()
    modules = entered(lambda: draw(release))
    assert {"pipeline/draw/charged_draw", "ledger/charging", "release/sealed"} <= modules
    assert release.sealed is not None
    assert len(modules) <= MODULES_AT_MOST, sorted(modules)
    assert len(outside_of(modules)) <= OUTSIDE_AT_MOST, sorted(outside_of(modules))


@pytest.mark.usefixtures("counted")
def test_a_draw_that_goes_elsewhere_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = charged_draw.encode

    def by_way_of_a_card(artefact: Artefact) -> bytes:
        path_of("CC-BY-4.0")
        return real(artefact)

    monkeypatch.setattr(charged_draw, "encode", by_way_of_a_card)
    release = planned()
    outside = outside_of(entered(lambda: draw(release)))
    assert "publishing/describe/licences" in outside
    assert len(outside) > OUTSIDE_AT_MOST


@pytest.mark.usefixtures("counted")
def test_between_charge_and_seal_nothing_of_the_release_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = open_release("itms", WEEK)
    private, real = release.folders.private, ChargingLedger.begin_draw

    def begin_and_lose(*its: Any, **named: Any) -> Attempt:
        begun = real(*its, **named)
        private.rename(private.with_name("gone"))
        return begun

    monkeypatch.setattr(ChargingLedger, "begin_draw", begin_and_lose)
    draw(release)
    assert release.sealed is not None


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("comes_back", [True, False])
def test_a_ledger_that_is_away_at_the_seal_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, *, comes_back: bool
) -> None:
    """Its bytes were burned, and the week charged once more, for a server that began anew."""
    release, real, asked = open_release("itms", WEEK), ChargingLedger.seal, list[str]()

    def away_at_first(its: ChargingLedger, attempt_id: str, digest: str) -> Attempt:
        asked.append(digest)
        if not comes_back or len(asked) < 3:
            raise InputError(where="postgresql", field="ledger", rule="connection refused")
        return real(its, attempt_id, digest)

    monkeypatch.setattr(ChargingLedger, "seal", away_at_first)
    monkeypatch.setattr(charged_draw, "AGAIN_AFTER_S", 0.01)
    if comes_back:
        draw(release)
        assert len({*asked}) == 1
    else:
        monkeypatch.setattr(charged_draw, "AFTER_A_CHARGE_S", 0.05)
        with pytest.raises(TurnstileError, match="charged and drawn, and not sealed"):
            draw(release)
    kinds = [entry.kind.value for entry in release.ledger.entries()]
    assert (kinds.count("sealed"), kinds.count("draw_begun")) == (int(comes_back), 1)
    assert "burned" not in kinds


@pytest.mark.usefixtures("counted")
def test_a_seal_that_stands_is_not_waited_for_where_its_note_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, real = open_release("itms", WEEK), ChargingLedger.seal

    def seal_without_a_note(its: ChargingLedger, attempt_id: str, digest: str) -> Attempt:
        real(its, attempt_id, digest)
        raise InputError(where="witness", field="folder", rule="make it writable")

    monkeypatch.setattr(ChargingLedger, "seal", seal_without_a_note)
    with pytest.raises(InputError, match="make it writable"):
        draw(release)
    assert release.sealed is not None


@pytest.mark.usefixtures("counted")
def test_what_cannot_be_read_is_not_charged() -> None:
    release = open_release("itms", WEEK)
    for exact in release.folders.private.glob("exact-*.bin"):
        exact.unlink()
    with pytest.raises(IntegrityError, match="no exact tables"):
        draw(release)
    held = release.ledger.find(release.key)
    assert held is not None
    assert held.is_held


def _is_held(release: Release) -> bool:
    attempt = release.ledger.find(release.key)
    return attempt is not None and attempt.is_held


@pytest.mark.usefixtures("counted")
def test_what_plan_and_counts_or_mechanism_do_not_agree_on_is_not_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = planned()
    with monkeypatch.context() as other_order:
        other_order.setattr(
            exact_store, "load_exact", lambda *which: [*reversed(load_exact(*which))]
        )
        with pytest.raises(IntegrityError, match="exact tables are not the planned ones"):
            draw(release)
        assert _is_held(release)

    def differs(_: object) -> None:
        raise IntegrityError("the two losses differ")

    monkeypatch.setattr(dense, "agree", differs)
    with pytest.raises(IntegrityError, match="the two losses differ"):
        draw(release)
    assert _is_held(release)


@pytest.mark.usefixtures("counted")
def test_a_store_is_asked_before_the_charge_and_has_the_bytes_before_the_seal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    did: list[object] = []
    for of, name in (
        (zone_copies._Folders, "require_writable"),
        (ChargingLedger, "begin_draw"),
        (zone_copies._Folders, "keep"),
        (ChargingLedger, "seal"),
    ):
        real = getattr(of, name)

        def noted(*its: Any, _name: str = name, _real: Any = real, **named: Any) -> Any:
            did.append((_name, *named.items()) if _name == "keep" else _name)
            return _real(*its, **named)

        monkeypatch.setattr(of, name, noted)
    draw(planned())
    assert did[:4] == ["require_writable", "begin_draw", ("keep", ("is_charged", True)), "seal"]


@pytest.mark.usefixtures("counted")
def test_a_draw_that_was_burned_before_its_seal_is_not_answered_as_sealed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = planned()

    def burned(*_: object) -> None:
        raise RefusedError("it was burned")

    monkeypatch.setattr(ChargingLedger, "seal", burned)
    with pytest.raises(RefusedError, match="it was burned"):
        draw(release)
    folder = release.folders.embargoed
    assert not [*folder.glob("sealed-*")]
    assert len([*(folder / "set-aside").glob("sealed-*")]) == 1


def test_a_draw_says_again_and_again_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    beats: list[tuple[str, str]] = []
    has_beaten = Event()

    def renew(attempt_id: str, holder: str) -> None:
        beats.append((attempt_id, holder))
        if len(beats) > 1:
            has_beaten.set()
        raise TurnstileError("the ledger is away")  # the next beat tries again

    monkeypatch.setattr(charged_draw, "BEAT_S", 0.01)
    ledger = cast("Any", SimpleNamespace(renew_lease=renew))
    with charged_draw._lease_renewed(ledger, "an attempt", "a holder"):
        assert has_beaten.wait(60)
    assert {*beats} == {("an attempt", "a holder")}
    until = len(beats)
    has_beaten.clear()
    assert not has_beaten.wait(0.05)
    assert len(beats) == until


@pytest.mark.usefixtures("counted")
def test_bytes_of_another_draw_in_the_place_of_sealed_ones_are_refused_by_their_digest() -> None:
    release = planned()
    draw(release)
    (attempt,) = release.ledger.attempts(release.key)
    path = sealed_path(release.folders.embargoed, str(attempt.artefact_digest))
    other = replace(decode(read_sealed_bytes(release, attempt)), gaps=(date(2016, 7, 25),))
    path.chmod(0o600)
    path.write_bytes(encode(other))
    with pytest.raises(IntegrityError, match="was altered; restore it"):
        read_sealed_bytes(release, attempt)


def test_what_is_set_aside_stays_there_when_the_power_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came back beside the bytes of the next draw, and passed for them later (seed 83)."""
    synced: list[tuple[str, list[str]]] = []
    real = os.fsync

    def fsync(file: int) -> None:
        folder = Path(f"/proc/self/fd/{file}").resolve()
        synced.append((folder.name, sorted(path.name for path in folder.glob("*"))))
        real(file)

    (leftover := tmp_path / "sealed-0123456789abcdef.parquet").write_bytes(b"noise")
    monkeypatch.setattr(os, "fsync", fsync)
    ready = SimpleNamespace(embargoed=tmp_path, say=lambda _: None)
    charged_draw._set_aside(cast("Any", ready), leftover)
    (moved,) = (tmp_path / "set-aside").iterdir()
    assert ("set-aside", [moved.name]) in synced
