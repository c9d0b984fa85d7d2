"""All hard gates before a publication: any that fails stops it and leaves the bytes under embargo.

A gate reads the sealed artefact, its declared parameters and synthetic data, never raw data: a gate
that looked at raw data would be a selection on it (PRIVACY 8). Each statistical gate stops a
correct release with a chance of at most 1e-9, and says what it finds. A new gate is a module with
one function, and an entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from turnstile.assessment.audits.release_audit import DrawAudit
from turnstile.assessment.evidence import Evidence
from turnstile.assessment.gates.geometric import geometric_below_zero
from turnstile.assessment.gates.noise_kind import noise_kind
from turnstile.assessment.gates.noise_reuse import drawn_once
from turnstile.assessment.gates.noise_scale import nested_scale
from turnstile.assessment.gates.numbers import judged_release
from turnstile.assessment.gates.pipeline_copy import audits_of, plan_gates
from turnstile.assessment.gates.result import GateResult
from turnstile.assessment.gates.sealed_numbers import integers, one_byte_string, support
from turnstile.assessment.gates.zeros import noised_zeros
from turnstile.release.drawn import Drawn

NUMBER_GATES: tuple[Callable[..., GateResult], ...] = (
    noised_zeros,
    drawn_once,
    nested_scale,
    geometric_below_zero,
    noise_kind,
)
"""Gates that read noisy numbers and what is declared of them: before and after a publication.

Each takes the numbers and the chance of a false alarm, 1e-9 by default (`ALPHA`).
"""


def gate_results(
    drawn: Drawn,
    evidence: Evidence | None = None,
    audits: Sequence[DrawAudit] | None = None,
) -> tuple[GateResult, ...]:
    """Return what every gate found; only the first ones where these leave nothing to compare.

    Args:
        drawn: the sealed release.
        evidence: beside the sealed bytes; none by default.
        audits: of its plan; made here if they are not given.
    """
    known = evidence or Evidence()
    first: tuple[GateResult, ...] = (
        support(drawn),
        one_byte_string(drawn, known.sealed_digests),
    )
    if not all(gate.passed for gate in first):
        return first  # the others compare draws and cells one by one
    numbers = judged_release(drawn, known.earlier)
    first = (*first, integers(numbers))
    if any(vector.values.dtype != np.int64 for vector in numbers.vectors):
        return first  # the others reckon with integers
    programme, copy = drawn.programme, known.copy
    audited = audits_of(programme, drawn.events, copy) if audits is None else audits
    return (
        *first,
        *(gate(numbers) for gate in NUMBER_GATES),
        *plan_gates(programme, drawn.events, copy, audited),
    )
