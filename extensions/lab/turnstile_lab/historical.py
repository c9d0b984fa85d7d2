"""The printed figures of the 2017 assessment, reproduced and labelled as what they are: wrong.

Culnane, Rubinstein & Teague (2017). The right figures come from `presence` and `privacy.noise`; the
derivations are in docs/CORRECTIONS.md. Nothing but the report, the lab and tests reads these.
"""

from __future__ import annotations

import math


def theorem_5_printed(scale: float, alpha: float) -> float:
    """Return the half-width that the assessment prints: p log10(1/(4 alpha)).

    It covers 25.5 % where 95 % is stated. Right: `half_width` of three Laplace terms.

    Examples:
        >>> round(theorem_5_printed(1.4, 0.05), 2), round(theorem_5_printed(1.4, 0.01), 2)
        (0.98, 1.96)
    """
    return scale * math.log10(1 / (4 * alpha))


def theorem_1_density(group: int, scale: float) -> float:
    """Return the density that Theorem 1 takes for a probability: exp(-(t - g)/p)/(2p), t = 18.

    Examples:
        >>> [f"{theorem_1_density(group, 1.4):.2g}" for group in (1, 5, 12)]
        ['1.9e-06', '3.3e-05', '0.0049']
    """
    return math.exp(-(18 - group) / scale) / (2 * scale)
