"""The static site: pages and feeds beside the packages, as any web server or object store serves.

Links are relative, so that they hold wherever the zone is put.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

from turnstile.programme.field import Field
from turnstile.programme.field_registry import field_of, title_of
from turnstile.publishing.contents import ends_in_words
from turnstile.publishing.data_tables import TAP
from turnstile.publishing.pages import rendered
from turnstile.publishing.series.index import EXPLORER_PAGE, FOLDER, INDEX
from turnstile.publishing.series.means import Mean
from turnstile.publishing.series.plot import PERIODS_MOST, totals_svg
from turnstile.publishing.written_text import json_bytes

_ATOM = "http://www.w3.org/2005/Atom"
_OF_PACKAGE = {
    "report.html": "report",
    "START_HERE.csv": "start here",
    "README.md": "read me",
    "docs/GUIDE.md": "guide",
    "release_card.md": "release card",
    "datapackage.json": "data package",
    "dictionary.csv": "dictionary",
    "SHA256SUMS": "files",
}
_MEANS = {
    "four_weeks": "mean of the last four weeks; of trips without weeks that have a gap",
    "typical_week": "mean of each day of the week over these weeks, without holidays and gaps",
    "typical_weekday": "mean of their Mondays to Fridays, without holidays and gaps",
}
Index = Mapping[str, Any]
Means = Mapping[str, Mean]


def programme_files(about: Index, folder: Path, means: Means) -> dict[str, bytes]:
    """Return page and feeds of a programme, by path below its folder.

    Args:
        about: its index.
        folder: of the programme, with its packages.
        means: over the last weeks, by path below the series.
    """
    entries = [entry for period in about["periods"] if (entry := _entry(about, period))]
    newest_first = sorted(entries, key=lambda item: item["updated"], reverse=True)
    return {
        "index.html": _page(about, folder, means),
        "feed.atom": _atom(about, newest_first),
        "feed.json": _json_feed(about, newest_first),
    }


def catalogue_page(indexes: Sequence[Index]) -> bytes:
    """Return the first page: every programme with its newest release."""
    return rendered("catalogue.html.j2", programmes=indexes).encode()


def _page(about: Index, folder: Path, means: Means) -> bytes:
    """Return the page of a programme: what became of each period, newest first."""
    periods = [
        {"revision": 0, "withdrawn": []}
        | period
        | {
            "links": [
                (f"{period['path']}/{name}", words)
                for name, words in _OF_PACKAGE.items()
                if "path" in period and (folder / period["path"] / name).is_file()
            ]
        }
        for period in reversed(about["periods"])
    ]
    plot = totals_svg(about["totals"])
    return rendered(
        "series.html.j2",
        about=about,
        index=INDEX,
        periods=periods,
        plot=plot and Markup(plot),  # noqa: S704 - vl-convert escapes
        periods_shown=PERIODS_MOST,
        means=[
            (path, mean.first, _MEANS[path.partition("/")[0]], f"{FOLDER}/{path}.parquet")
            for path, mean in sorted(means.items())
        ],
        columns=[
            (name, title_of(name), _about(name, known, about, means))
            for name in dict.fromkeys(
                name for mean in means.values() for name in mean.rows.column_names
            )
            if (known := field_of(name)) is not None
        ],
        explorer=EXPLORER_PAGE
        if any(file["path"] == EXPLORER_PAGE for file in about["files"])
        else "",
    ).encode()


def _about(name: str, known: Field, about: Index, means: Means) -> str:
    """Say what a column of the means is; of the two ends of a trip what they have in common."""
    if name != TAP:
        return known.description
    of_taps = [mean.rows[TAP] for mean in means.values() if TAP in mean.rows.column_names]
    taps = {str(tap) for column in of_taps for tap in column.unique().to_pylist()}
    versions = [version for table in about["tables"] for version in table["versions"]]
    records = versions[-1]["terms"].get("records", "")
    return f"{known.description} {ends_in_words(taps, records)}".rstrip()


def _entry(about: Index, period: Mapping[str, Any]) -> dict[str, str] | None:
    """Return what a feed says of a period; None where nothing happened."""
    withdrawn = period.get("withdrawn", [])
    at = [
        *(revision["withdrawn_at"] for revision in withdrawn),
        *(period[name] for name in ("published_at", "stated_at") if name in period),
    ]
    if not at:
        return None
    about_it = f"{period['first_day']} to {period['last_day']}: {period['state']}."
    reasons = "".join(
        f" Revision {revision['revision']} withdrawn"
        f"{': ' * bool(revision['reason'])}{revision['reason']}."
        for revision in withdrawn
    )
    name = (
        f"{about['contact']}/{about['programme']}/{period['period']}/{period.get('revision', '')}"
    )
    path = period.get("path")
    return {
        "id": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, name)}",
        "title": f"{about['title']}, {period['period']}: {period['state']}",
        "updated": max(at),
        "summary": about_it + reasons,
        "link": f"{path}/README.md" if path else "index.html",
    }


def _atom(about: Index, entries: Sequence[Mapping[str, str]]) -> bytes:
    """Return the feed as Atom (RFC 4287)."""
    feed = ET.Element("feed", {"xmlns": _ATOM})
    feed_id = uuid.uuid5(uuid.NAMESPACE_URL, f"{about['contact']}/{about['programme']}")
    _add(feed, "id", f"urn:uuid:{feed_id}")
    _add(feed, "title", about["title"])
    _add(
        feed,
        "updated",
        max((record["updated"] for record in entries), default="1970-01-01T00:00:00Z"),
    )
    _add(ET.SubElement(feed, "author"), "name", about["curator"])
    for relation, target in (("self", "feed.atom"), ("alternate", "index.html")):
        ET.SubElement(feed, "link", {"rel": relation, "href": target})
    for item in entries:
        entry = ET.SubElement(feed, "entry")
        for name in ("id", "title", "updated", "summary"):
            _add(entry, name, item[name])
        ET.SubElement(entry, "link", {"rel": "alternate", "href": item["link"]})
    ET.indent(feed)
    return bytes(ET.tostring(feed, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add(parent: ET.Element, name: str, text: str) -> None:
    ET.SubElement(parent, name).text = text


def _json_feed(about: Index, entries: Sequence[Mapping[str, str]]) -> bytes:
    """Return the feed as JSON Feed 1.1."""
    return json_bytes(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": about["title"],
            "description": about["description"],
            "home_page_url": "index.html",
            "authors": [{"name": about["curator"]}],
            "items": [
                {
                    "id": entry["id"],
                    "url": entry["link"],
                    "title": entry["title"],
                    "content_text": entry["summary"],
                    "date_modified": entry["updated"],
                }
                for entry in entries
            ],
        }
    )
