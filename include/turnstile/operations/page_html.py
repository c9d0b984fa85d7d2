"""Frame, tables and links of the budget page: HTML that is readable without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

SECTIONS = (
    ("", "Budget"),
    ("calendar", "Weeks"),
    ("plan", "Next week"),
    ("ledger", "Ledger"),
    ("quality", "Quality"),
)
_NUMBER = '<span class="number">'


def page(section: str, title: str, body: str, *, root: str) -> str:
    """Return a whole page.

    Args:
        section: path of the section that is shown.
        title: of the page.
        body: HTML below the heading.
        root: relative way back to the page's root: empty, or `../` as often as needed.
    """
    links = "".join(
        f'<a href="{root or "./"}{path}"{_current(path == section)}>{name}</a>'
        for path, name in SECTIONS
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - privacy budget</title>"
        f'<link rel="stylesheet" href="{root}style.css"><script src="{root}page.js" defer></script>'
        '</head><body><a class="skip" href="#main">Skip to content</a>'
        f'<nav aria-label="Sections">{links}</nav><main id="main"><h1>{escape(title)}</h1>{body}'
        "</main></body></html>"
    )


def _current(is_current: bool) -> str:  # noqa: FBT001 - a claim about one link
    """Mark the link of the section that is shown."""
    return ' aria-current="page"' if is_current else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Return a table; cells are HTML already."""
    body = list(rows)
    heads = "".join(
        f'<th scope="col"{_lined_up(body, n)}>{escape(name)}</th>' for n, name in enumerate(head)
    )
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div>"
    )


def _lined_up(rows: Sequence[Sequence[str]], column: int) -> str:
    """Put the heading of a column of figures above them."""
    has_figures = any(row[column].startswith(_NUMBER) for row in rows)
    return ' class="figures"' if has_figures else ""


def run_link(programme: str, run_id: str, text: str, *, root: str = "") -> str:
    """Return a link to a run in Airflow, to be opened in the whole window."""
    if not run_id:
        return f'<span class="key">{escape(text)}</span>'
    return dag_link(programme, text, path=f"/runs/{quote(run_id)}", root=root)


def dag_link(programme: str, text: str, *, path: str = "", root: str = "") -> str:
    """Return a link to a programme's DAG in Airflow, to be opened in the whole window."""
    href = f"{root}../dags/release_{quote(programme)}{path}"
    return f'<a target="_top" class="run key" href="{href}">{escape(text)}</a>'


def number(text: str) -> str:
    """Return a figure that lines up with those above and below."""
    return f"{_NUMBER}{escape(text)}</span>"


def key(text: str) -> str:
    """Return a week, a date or a name that is not broken over two lines."""
    return f'<span class="key">{escape(text)}</span>'
