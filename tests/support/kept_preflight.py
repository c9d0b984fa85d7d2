"""What was found of a programme or a plan, handed to the next home of it: it is tried once.

The product keeps what preflight found between `reserve` and `assess`, and reads it only if
programme, domain and code are the same; the tests lay the very file into a home where a week of
that programme begins. What the assessment draws of a plan alone serves again within a process.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakSet

import numpy as np
import pytest
from numpy.typing import NDArray

from turnstile.assessment.audits.pipeline_copy import CanaryRun, PipelineCopy, draw_once
from turnstile.durable_files import exclusively, replace_durably
from turnstile.look.asked import Asked
from turnstile.pipeline.code_version import code_version
from turnstile.pipeline.context import Release
from turnstile.pipeline.preflight import require_preflight
from turnstile.pipeline.trials import small_worlds
from turnstile.pipeline.trials.worlds_of_units import Shape
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.stability import Chain
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme
from turnstile.quality.rules import Frame, Rule

if TYPE_CHECKING:
    import pandas as pd

Given = ParamSpec("Given")
Found = TypeVar("Found")
Farthest = Mapping[tuple[Chain, ProtectionUnit], tuple[int, ...]]
FOUND_IN_WORLDS = small_worlds._kept_or_found
_NAME = "preflight.json"
_KEPT_S = 24 * 3600
OUT_OF_SIGHT = (  # nothing that preflight judges by imports these
    *(f"turnstile.{room}" for room in ("cli", "commands", "operations")),
    *(
        f"turnstile.publishing.series.{module}"
        for module in ("estimate_series", "index", "packages", "pages", "plot", "writing")
    ),
    *(
        f"turnstile.pipeline.{module}"
        for module in (
            *("after_seal", "approvals", "assessing", "auditing", "before_charge", "evidence"),
            *("steps", "week_plan", "private_zone.retention", "private_zone.unfinished"),
        )
    ),
    *(
        f"turnstile.pipeline.draw.{module}"
        for module in (
            *("charged_draw", "current_snapshot", "drawing", "drawing_apart", "drawn_release"),
            *("ready_to_draw", "sealed_release", "year_state"),
        )
    ),
)


class KeptPreflight:
    """Files of preflight by what they are of.

    Args:
        folder: of the cache; it may exist.
        is_as_it_stands: whether the code that runs is the one on the disk.
        require: the product's own, which judges what is not known.
    """

    def __init__(
        self,
        folder: Path,
        is_as_it_stands: Callable[[], bool],
        require: Callable[[Release], None] = require_preflight,
    ) -> None:
        self._folder, self._is_as_it_stands, self._require = folder, is_as_it_stands, require
        _forget_old(folder)

    def require_preflight(self, release: Release) -> None:
        """Judge a release as the product does, in a home that knows what others found."""
        if not self._is_as_it_stands():
            self._require(release)
            return
        kept, local_path = self._folder / _name_of(release), release.folders.embargoed / _NAME
        with exclusively(kept.with_suffix(".lock")):
            if kept.exists() and not local_path.exists():
                replace_durably(local_path, kept.read_bytes())
            self._require(release)
            if not kept.exists():
                replace_durably(kept, local_path.read_bytes())


def _name_of(release: Release) -> str:
    of = f"{release.programme.digest} {release.domain.digest} {code_version()}"
    return f"{hashlib.sha256(of.encode()).hexdigest()[:24]}.json"


class KeptWorlds:
    """Files of what was found in all small worlds, as the product keeps them in each home.

    Args:
        folder: of the cache; it may exist.
        is_as_it_stands: whether the code that runs is the one on the disk.
    """

    def __init__(self, folder: Path, is_as_it_stands: Callable[[], bool]) -> None:
        self._folder, self._is_as_it_stands = folder, is_as_it_stands
        _forget_old(folder)

    def kept_or_found(
        self, shape: Shape, chains: tuple[Chain, ...], records: int, kept: Path | None
    ) -> Farthest:
        """Find as the product does, in a home that knows what others found; anew without one."""
        if kept is None or not self._is_as_it_stands():
            return FOUND_IN_WORLDS(shape, chains, records, kept)
        name = small_worlds._name_of(shape, chains, records)
        shared, local_path = self._folder / name, kept / name
        with exclusively(shared.with_suffix(".lock")):
            if not kept.parent.is_dir():  # nothing is kept in a home that nobody made
                return FOUND_IN_WORLDS(shape, chains, records, self._folder)
            if shared.exists() and not local_path.exists():
                kept.mkdir(exist_ok=True)
                replace_durably(local_path, shared.read_bytes())
            farthest = FOUND_IN_WORLDS(shape, chains, records, kept)
            if local_path.exists() and not shared.exists():
                replace_durably(shared, local_path.read_bytes())
        return farthest


def _forget_old(folder: Path) -> None:
    """Remove what was found long ago, mostly of code that is no more."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        with suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime > _KEPT_S:
                file.unlink()


def made_once(
    make: Callable[Given, Found],
    key: Callable[Given, Hashable],
    is_as_it_stands: Callable[[], bool],
) -> Callable[Given, Found]:
    """Let a function's results serve again in this process where everything it is given is equal.

    Args:
        make: the product's own; nothing that it returns is changed by anybody.
        key: all that it is given.
        is_as_it_stands: whether the code that runs is the one on the disk.
    """
    known: dict[Hashable, Found] = {}

    def made(*given: Given.args, **named: Given.kwargs) -> Found:
        if not is_as_it_stands():
            return make(*given, **named)
        of = key(*given, **named)
        if of not in known:
            known[of] = make(*given, **named)
        return known[of]

    return made


def with_kept_noise(
    run: Callable[..., CanaryRun], is_as_it_stands: Callable[[], bool]
) -> Callable[..., CanaryRun]:
    """Let canaries of many programmes have the noise that was drawn for the first of one scale.

    Each audit has coins of its own; noise of a threshold, or of another sampler, is drawn anew.
    """
    known: dict[Hashable, NDArray[np.int64]] = {}

    def drawn(event: DrawEvent, exact: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        of = event.noise, event.scale, event.mechanism, exact.size
        if of not in known:
            (known[of],) = draw_once(event, np.zeros(exact.size, dtype=np.int64))
        return (exact + known[of],)

    def run_kept(copy: PipelineCopy, event: DrawEvent, *given: Any, **named: Any) -> CanaryRun:
        is_plain = copy.draw is draw_once and event.threshold is None
        if is_plain and is_as_it_stands():
            copy = replace(copy, draw=drawn)
        return run(copy, event, *given, **named)

    return run_kept


def of_trials(programme: Programme, domain: PublicDomain) -> str:
    """Return all of a programme that decides how far synthetic units move its vectors."""
    source = replace(programme.source, landing="", absent_days=())  # made-up files, of all days
    unit, is_joint = programme.mechanism.unit, programme.mechanism.joint_marginals
    counted = (source, programme.time, programme.domain, programme.units, programme.tables)
    return repr((*counted, unit, is_joint, domain.digest))


def of_look(asked: Asked) -> Hashable:
    """Return all that the look of a release depends on: files and mapping are in the digest."""
    # Nothing that reads or looks asks how much noise there is, or who says yes.
    programme = replace(asked.programme, digest="", mechanism=None, caps=(), approval=None)  # type: ignore[arg-type]
    return repr(programme), asked.week, asked.memory, asked.snapshot and asked.snapshot.digest


def of_judgement(rules: tuple[Rule, ...], frames: Mapping[Frame, pd.DataFrame]) -> Hashable:
    """Return what is judged, and by what."""
    return repr(rules), pickle.dumps([*frames.items()])


class Patches:
    """Knows whether anything is replaced just now: a fault that a test plants lies on no disk."""

    def __init__(self) -> None:
        self._every: WeakSet[pytest.MonkeyPatch] = WeakSet()

    def watch(self) -> None:
        """Know each `MonkeyPatch` that is made from now on."""
        make, every = pytest.MonkeyPatch.__init__, self._every

        def noted(patch: pytest.MonkeyPatch) -> None:
            make(patch)
            every.add(patch)

        pytest.MonkeyPatch.__init__ = noted  # type: ignore[method-assign]

    def are_none(self) -> bool:
        """Whether nothing is that preflight could see; it reads no variable of this process."""
        replaced = (
            target
            for patch in self._every
            for target, *_ in (*patch._setattr, *patch._setitem)
            if target is not os.environ  # noqa: TID251
        )
        return all(_is_out_of_sight(target) for target in replaced)


def _is_out_of_sight(target: object) -> bool:
    """Whether it is pytest's own, or nothing that preflight judges by can know of it."""
    home = target.__name__ if isinstance(target, ModuleType) else type(target).__module__
    return isinstance(target, pytest.Config) or home.startswith(OUT_OF_SIGHT)
