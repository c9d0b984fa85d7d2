"""Very many draws of each noise on zeros, looked at once for a version of the code, and kept.

What is kept says nothing of any data: the noise is drawn on zeros, and only what was wrong with it
is written down, beside what was found in small worlds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path

from turnstile.assessment.audits import sampler
from turnstile.assessment.audits.pipeline_copy import draw_once
from turnstile.assessment.gates.result import ALPHA
from turnstile.pipeline.code_version import code_version
from turnstile.pipeline.trials.kept_findings import kept_name, kept_or_found
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise_families import NoiseFamily

Misfits = Mapping[tuple[NoiseFamily, Fraction], str | None]


def misfits_of(events: Iterable[DrawEvent], folder: Path) -> Misfits:
    """Return what is wrong with each noise that is drawn: as kept for this code, or found now.

    Args:
        events: of a plan.
        folder: what was found is kept in it.
    """
    kinds = {(event.noise, event.scale): event for event in events}
    return {kind: _kept_or_found(event, folder) for kind, event in kinds.items()}


def _kept_or_found(event: DrawEvent, folder: Path) -> str | None:
    """Return what is wrong with one noise; None if nothing is."""
    of = f"{event.noise} {event.scale} {sampler.MANY_DRAWS} {code_version()}"
    return kept_or_found(
        folder / f"sampler-{kept_name(of)[:32]}.json",
        lambda: sampler.misfit(event, draw_once, alpha=ALPHA / 10, draws=sampler.MANY_DRAWS),
        written=lambda problem: {"problem": problem},
        read=lambda kept: None if kept["problem"] is None else str(kept["problem"]),
    )
