"""One thing that published numbers give away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from turnstile.assessment.attacks.timetable_view import MEANING, NOT_GIVEN, TimetableView
from turnstile.assessment.attacks.timetable_view import as_json as view_as_json


@dataclass(frozen=True, slots=True)
class Disclosure:
    """One thing that published numbers give away.

    Args:
        name: short.
        is_flaw: True where a release like that falls short of what a noised release can be.
        statement: in words.
        figures: numbers behind the statement, ready for JSON.
    """

    name: str
    is_flaw: bool
    statement: str
    figures: dict[str, Any]


def as_json(findings: Sequence[Disclosure]) -> dict[str, Any]:
    """Return findings for JSON: all of them, and the asked-for figures by name."""
    return {
        "threshold": _figures(findings, "threshold"),
        "scale_identified": any(f["identified"] for f in _figures(findings, "scale")),
        "scale": _figures(findings, "scale"),
        "presence": _figures(findings, "presence"),
        "differencing": _figures(findings, "differencing"),
        "flaws": [finding.name for finding in findings if finding.is_flaw],
        "findings": [
            {
                "name": finding.name,
                "is_flaw": finding.is_flaw,
                "statement": finding.statement,
                "figures": finding.figures,
            }
            for finding in findings
        ],
    }


def _figures(findings: Sequence[Disclosure], name: str) -> list[dict[str, Any]]:
    return [finding.figures for finding in findings if finding.name == name]


def disclosure_of(view: TimetableView | None) -> Disclosure:
    """Return a view as a finding; without one, that no timetable was given."""
    if view is None:
        return Disclosure("timetable", False, NOT_GIVEN, {"given": False})
    words = f"{view.statement}. {MEANING}" if view.exposures else view.statement
    return Disclosure(
        "timetable", False, words, {"given": True, **view_as_json(view, most=len(view.exposures))}
    )
