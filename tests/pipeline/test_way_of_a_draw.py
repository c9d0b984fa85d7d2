"""Through how many modules of ours a draw goes, and how many of them are not of the trusted core.

Both figures are held. Those outside are the walk itself, preflight, bounding keys, the beginning of
the transparency log (three, in a ledger's first draw alone), the ledger's
second places and the copies of zones.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trusted_core
from deployment_fixtures import BegunWeek
from house_entered import entered
from small_deployment import WEEK, Deployment

from turnstile.errors import IntegrityError
from turnstile.ledger.charging import ChargingLedger
from turnstile.ledger.records import Attempt
from turnstile.pipeline.code_version import code_version
from turnstile.pipeline.context import Release, open_release
from turnstile.pipeline.draw import charged_draw
from turnstile.pipeline.draw.drawing import draw
from turnstile.publishing.describe.licences import path_of
from turnstile.release.sealed import Artefact

MODULES_AT_MOST, OUTSIDE_AT_MOST = 61, 22
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
def test_what_cannot_be_read_is_not_charged() -> None:
    release = open_release("itms", WEEK)
    for exact in release.folders.private.glob("exact-*.bin"):
        exact.unlink()
    with pytest.raises(IntegrityError, match="no exact tables"):
        draw(release)
    held = release.ledger.find(release.key)
    assert held is not None
    assert held.is_held


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
