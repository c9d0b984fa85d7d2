"""The lessons as one page with its figures inside, and as single pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from turnstile.assessment.pages import render
from turnstile_lab.lesson import Lesson


def write_page(lessons: Sequence[Lesson], folder: Path) -> Path:
    """Write `lab.html` and an SVG for each lesson into a folder; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for lesson in lessons:
        (folder / f"{lesson.name}.svg").write_text(lesson.picture, encoding="utf-8")
    page = folder / "lab.html"
    page.write_text(
        render(
            "lab.html", title="How releases of counts were broken", lessons=lessons, markup=Markup
        ),
        encoding="utf-8",
    )
    return page
