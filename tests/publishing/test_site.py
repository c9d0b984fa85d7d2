"""The static site: strict HTML, every link leads somewhere, and none leaves the site."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import html5lib
import pytest
from pyarrow.parquet import read_schema

_LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src"}


def _problems(page: Path, root: Path) -> list[str]:
    """Name what is wrong with a page's HTML and links."""
    try:
        document = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(
            page.read_text()
        )
    except html5lib.html5parser.ParseError as error:
        return [f"{page}: {error}"]
    names = {element.get("id") for element in document.iter()}
    problems = []
    for element in document.iter():
        target = element.get(_LINKS.get(str(element.tag), ""))
        if target is None or target.startswith("data:"):
            continue
        parts = urlsplit(target)
        place = (page.parent / unquote(parts.path)).resolve()
        if parts.scheme or parts.netloc or not place.is_relative_to(root.resolve()):
            problems.append(f"{page}: {target} leaves the site")
        elif parts.path and not place.is_file():
            problems.append(f"{page}: {target} leads nowhere")
        elif not parts.path and parts.fragment and parts.fragment not in names:
            problems.append(f"{page}: no {target} on the page")
    return problems


def test_pages_of_the_public_zone_are_valid_and_their_links_lead_somewhere(
    published: Path,
) -> None:
    pages = [published / "index.html", *published.glob("*/index.html")]
    pages += published.glob("*/*/r0/report.html")
    assert len(pages) == 5
    assert [problem for page in pages for problem in _problems(page, published)] == []


def test_means_of_weeks_are_on_the_page_with_every_column(published: Path) -> None:
    for name in ("opal", "itms"):
        page = (published / name / "index.html").read_text()
        tables = [*(published / name / "series").glob("*_week*/*.parquet")]
        for path in tables:
            assert f'href="{path.relative_to(published / name)}"' in page
            assert all(f"<code>{column}</code>" in page for column in read_schema(path).names)
        assert len(tables) == (12 if name == "opal" else 1)
        assert ("The interval is another: skewed, and cut off" in page) == (name == "itms")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("</table>", "</div>"),
        ('href="feed.atom"', 'href="feed.rss"'),
        ('href="../index.html"', 'href="https://example.org/"'),
        ('href="../index.html"', 'href="../../ledger.sqlite"'),
    ],
)
def test_a_broken_page_is_found(published: Path, tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "public").mkdir()
    (tmp_path / "public/opal").symlink_to(published / "opal")
    page = tmp_path / "public/broken/index.html"
    page.parent.mkdir()
    text = (published / "opal/index.html").read_text()
    assert old in text
    page.write_text(text.replace(old, new))
    assert _problems(page, tmp_path / "public")
