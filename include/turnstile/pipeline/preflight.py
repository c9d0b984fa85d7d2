"""Preflight: what needs no sealed byte is judged before anything is held, so that it costs nothing.

Trials of synthetic units, the one-run audit of the plan, the fit of the sampler and all small
worlds of the programme's rows. What the trials found is kept beside the sealed bytes, where the
assessment reads it: it makes the trials again only if programme, domain or code are others by then.
Nothing in it was computed from raw data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from turnstile.assessment.audits.pipeline_copy import ObservedSensitivity, PipelineCopy
from turnstile.errors import RefusedError
from turnstile.pipeline.code_version import code_version
from turnstile.pipeline.context import Release
from turnstile.pipeline.private_zone.bounding_key import require_known_key
from turnstile.pipeline.trials.gain import no_gain
from turnstile.pipeline.trials.publishable import require_columns, require_place
from turnstile.pipeline.trials.sampler_fits import misfits_of
from turnstile.privacy.units import ProtectionUnit
from turnstile.publishing.lost_tables import lost_tables
from turnstile.release.zones import write_atomically

_NAME = "preflight.json"
Trials = Mapping[tuple[str, ProtectionUnit], ObservedSensitivity]


def require_preflight(release: Release) -> None:
    """Judge what needs no sealed byte, unless this code has found it in order for the key.

    Raises:
        RefusedError: the release would be stopped after its charge; nothing was held.
    """
    from turnstile.assessment.gates.pipeline_copy import audits_of, plan_gates
    from turnstile.pipeline.trials.small_worlds import moved_too_far

    require_known_key(release.settings, release.ledger)  # both may be others at any moment
    require_place(release)
    if _known(release) is not None:
        return
    for wrong in (
        lost_tables(release.programme, release.domain, release.plan),
        no_gain(release.programme, release.domain, release.settings.include),
    ):
        if wrong is not None:
            raise RefusedError(f"{release.key}: {wrong}; nothing was charged")
    require_columns(release)
    programme, events = release.programme, release.plan.events
    misfits = misfits_of(events, release.settings.small_worlds)
    copy = PipelineCopy(observed=_tried(release), misfits=misfits)
    gates = plan_gates(programme, events, copy, audits_of(programme, events, copy))
    failed = next((gate for gate in gates if not gate.passed), None)
    if failed is not None:
        raise RefusedError(
            f"{release.key}: gate {failed.gate} would fail: {failed.statement}; nothing was "
            "charged. Mend the programme or the code, then run the week again from ingest on"
        )
    too_far = moved_too_far(programme, release.settings.small_worlds)
    if too_far is not None:
        raise RefusedError(f"{release.key}: {too_far}; nothing was charged")
    _keep(release, copy.observed)


def trials(release: Release) -> Trials:
    """Return how far synthetic units moved each draw: as preflight found, or tried now."""
    known = _known(release)
    return _tried(release) if known is None else known


def _tried(release: Release) -> Trials:
    """Put synthetic units through the product's own reading, bounding and counting."""
    from turnstile.pipeline.trials.canaries import observed_sensitivities

    return observed_sensitivities(release.programme, release.domain)


def _keep(release: Release, observed: Trials) -> None:
    """Write down what the trials found, and for what."""
    entries = [
        {
            "draw": label,
            "unit": str(unit),
            "l1": sensitivity.l1,
            "l2_squared": sensitivity.l2_squared,
        }
        for (label, unit), sensitivity in observed.items()
    ]
    content = json.dumps(_of(release) | {"trials": entries}, indent=1) + "\n"
    write_atomically(release.folders.embargoed / _NAME, content.encode())


def _known(release: Release) -> Trials | None:
    """Return what was written down for this programme, domain and code; None if nothing was."""
    try:
        content = json.loads((release.folders.embargoed / _NAME).read_bytes())
        if {name: content[name] for name in _of(release)} != _of(release):
            return None
        return {
            (entry["draw"], ProtectionUnit(entry["unit"])): ObservedSensitivity(
                int(entry["l1"]), int(entry["l2_squared"])
            )
            for entry in content["trials"]
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _of(release: Release) -> dict[str, Any]:
    """Name what the trials are of."""
    return {
        "programme_digest": release.programme.digest,
        "domain_digest": release.domain.digest,
        "code": code_version(),
    }
