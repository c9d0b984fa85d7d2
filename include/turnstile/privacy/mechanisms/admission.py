"""Which mechanisms may publish, and which are known to be broken and stay in the assessment lab."""

from __future__ import annotations

from turnstile.errors import RefusedError

PUBLISHABLE = ("dense_laplace", "dense_gaussian", "stability_histogram")

KNOWN_BAD = {
    "second_algorithm": "it leaves zero counts alone, so a published cell proves presence",
    "continuous_laplace": "floating-point noise tells neighboring counts apart",
    "numpy_laplace": "floating-point noise tells neighboring counts apart",
    "rounded_counts": "it adds no noise",
    "threshold_only": "it adds no noise",
    "opendp_laplace_threshold": "its stated delta is too small on integers",
    "exact_counts": "it adds no noise",
}


def admit(mechanism: str) -> str:
    """Return the mechanism's name if it may publish.

    Raises:
        RefusedError: it is a known-bad baseline, or unknown.

    Examples:
        >>> admit("dense_laplace")
        'dense_laplace'
    """
    if mechanism in PUBLISHABLE:
        return mechanism
    why = KNOWN_BAD.get(mechanism, "nothing here has proven it")
    raise RefusedError(
        f"mechanism {mechanism!r} was asked to publish, but {why}; "
        f"allowed are {', '.join(PUBLISHABLE)}; baselines run in the assessment lab only"
    )
