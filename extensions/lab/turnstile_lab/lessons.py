"""All lessons, in the order in which the page teaches them."""

from __future__ import annotations

from collections.abc import Callable

from turnstile_lab.bad_releases import (
    derived_from_thresholded,
    floating_point,
    fresh_noise,
    true_values_beside,
    zeros_left_alone,
)
from turnstile_lab.known_attacks import (
    matched_pairs,
    membership,
    reconstruction,
    timetable,
)
from turnstile_lab.lesson import Lesson

LESSONS: tuple[Callable[[], Lesson], ...] = (
    zeros_left_alone,
    floating_point,
    derived_from_thresholded,
    fresh_noise,
    true_values_beside,
    matched_pairs,
    reconstruction,
    membership,
    timetable,
)
