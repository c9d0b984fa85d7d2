"""The lessons as one page with its pictures inside, and as single pictures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from turnstile.assessment.lab.lessons import Lesson

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}"
    "svg{max-width:100%;height:auto}"
)


def write_page(lessons: Sequence[Lesson], folder: Path) -> Path:
    """Write `lab.html` and an SVG for each lesson into a folder; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for lesson in lessons:
        (folder / f"{lesson.name}.svg").write_text(lesson.picture, encoding="utf-8")
    page = folder / "lab.html"
    body = "".join(_section(lesson) for lesson in lessons)
    page.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>The lab</title>'
        f"<style>{_STYLE}</style></head><body><h1>How releases of counts were broken</h1>"
        "<p>Made-up counts, known-bad mechanisms, and the attack that defeats each.</p>"
        f"{body}</body></html>\n",
        encoding="utf-8",
    )
    return page


def _section(lesson: Lesson) -> str:
    """Return one lesson."""
    return (
        f"<h2>{escape(lesson.title)}</h2><p><b>Attack.</b> {escape(lesson.attack)}</p>"
        f"{lesson.picture}<p><b>Instead.</b> {escape(lesson.remedy)}</p>"
    )
