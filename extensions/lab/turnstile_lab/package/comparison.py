"""Two published packages side by side: the same bytes, the same noise, or a second draw."""

from __future__ import annotations

from turnstile.assessment.gates.noise_reuse import drawn_once
from turnstile.publishing.package_reader import Package
from turnstile_lab.disclosures import Disclosure
from turnstile_lab.package.numbers import judged_package


def compared(package: Package, other: Package) -> Disclosure:
    """Return what two packages of one programme say together.

    Args:
        package: that is assessed.
        other: beside it.
    """
    name = other.folder.name
    ours, theirs = (
        {vector.where: vector.values.tobytes() for vector in each.vectors}
        for each in (package, other)
    )
    both = ours.keys() & theirs.keys()
    figures = {"other": str(other.folder), "draws_of_both": len(both)}
    if both and all(ours[where] == theirs[where] for where in both):
        words = f"{name} holds the same numbers: one draw, published twice"
        return Disclosure("comparison", False, words, {**figures, "relation": "same_bytes"})
    reused = drawn_once(judged_package(package, (other,)))
    if not reused.passed:
        words = f"{name} shares noise with this package: {reused.statement}"
        return Disclosure("comparison", True, words, {**figures, "relation": "same_noise"})
    if both:
        words = (
            f"{name} is a second draw of {len(both)} draws of the same days: their average has "
            "half of the variance, and both are charged"
        )
        return Disclosure("comparison", False, words, {**figures, "relation": "second_draw"})
    words = f"{name} is of other days, and shares no noise with this package"
    return Disclosure("comparison", False, words, {**figures, "relation": "independent"})
