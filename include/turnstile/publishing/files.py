"""The registry of a package's files beside its tables: plain data, in the order of writing.

A further file is one entry: its path, what it is, what it is made from, and who writes it. A writer
may read what was written before it; one that returns None leaves the file out of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files as resources

from turnstile.publishing import (
    catalogues,
    cells,
    changes,
    croissant,
    datapackage,
    dictionary,
    readme,
    registry_entry,
    report,
    statement,
    sum_macros,
    tides_shapes,
)
from turnstile.publishing.allowed_contents import Source
from turnstile.publishing.card import card_markdown
from turnstile.publishing.contents import Contents
from turnstile.publishing.json_text import json_bytes
from turnstile.publishing.pictures import NAMES
from turnstile.publishing.tides_visits import STOP_VISITS, VISIT_ERRORS


@dataclass(frozen=True, slots=True)
class PackageFile:
    """One file.

    Args:
        path: below the package.
        mediatype: of its bytes.
        title: a few words.
        sources: what it is made from.
        write: returns its bytes, or None where a package has no such file.
    """

    path: str
    mediatype: str
    title: str
    sources: tuple[Source, ...]
    write: Callable[[Contents], bytes | None]


def _carried(name: str) -> Callable[[Contents], bytes]:
    """Return a writer of a file that is the same in every package."""
    return lambda _: resources("turnstile.publishing.carried").joinpath(name).read_bytes()


_OF_CARD = (Source.DECLARED, Source.LEDGER, Source.POST_PROCESSING)
FILES: tuple[PackageFile, ...] = (
    PackageFile(
        "release_card.json",
        "application/json",
        "Release card",
        _OF_CARD,
        lambda contents: json_bytes(contents.card),
    ),
    PackageFile(
        "release_card.md",
        "text/markdown",
        "Release card, for people",
        _OF_CARD,
        lambda contents: card_markdown(contents.card).encode(),
    ),
    PackageFile(
        "dictionary.csv",
        "text/csv",
        "Data dictionary",
        (Source.CODE, Source.DECLARED),
        dictionary.write,
    ),
    PackageFile(
        "cells.geojson",
        "application/geo+json",
        "Shapes of the published cells or locations, with the estimates of the week",
        (Source.DECLARED, Source.POST_PROCESSING),
        cells.write_geojson,
    ),
    PackageFile(
        "cells.parquet",
        "application/vnd.apache.parquet",
        "The shapes as GeoParquet",
        (Source.DECLARED,),
        cells.write_geoparquet,
    ),
    PackageFile(
        "registry_entry.yaml",
        "application/yaml",
        "Entry for the OpenDP Deployments Registry",
        _OF_CARD,
        registry_entry.write,
    ),
    PackageFile(
        "KNOWN_GAPS.csv",
        "text/csv",
        "Known gaps",
        (Source.DECLARED, Source.POST_PROCESSING),
        changes.write_gaps,
    ),
    PackageFile("CHANGELOG.md", "text/markdown", "Changes", (Source.LEDGER,), changes.write_log),
    PackageFile(
        "LICENSE.md", "text/markdown", "Licence", (Source.DECLARED,), changes.write_licence
    ),
    PackageFile(
        "CITATION.cff", "application/yaml", "Citation", (Source.DECLARED,), changes.write_citation
    ),
    PackageFile(
        "verify_package.py",
        "text/x-python",
        "Checks this package with Python alone",
        (Source.CODE,),
        _carried("verify_package.py"),
    ),
    PackageFile(
        "verify_losses.py",
        "text/x-python",
        "Computes from the card what releases cost, with Python alone",
        (Source.CODE,),
        _carried("verify_losses.py"),
    ),
    PackageFile(
        "sums.py",
        "text/x-python",
        "Sums of any cells with their error, with Python alone",
        (Source.CODE,),
        _carried("sums.py"),
    ),
    PackageFile(
        "sums.sql",
        "application/sql",
        "The same of measurements, as DuckDB macros",
        (Source.DECLARED,),
        sum_macros.write,
    ),
    PackageFile("report.html", "text/html", "The week for readers", _OF_CARD, report.write),
    *(
        PackageFile(
            f"pictures/{name}.{suffix}",
            mediatype,
            f"Picture of the report: {name}",
            (Source.POST_PROCESSING, Source.DECLARED),
            draw(name),
        )
        for name in NAMES
        for suffix, mediatype, draw in (
            ("svg", "image/svg+xml", report.svg_of),
            ("png", "image/png", report.png_of),
        )
    ),
    *(
        PackageFile(
            path,
            "text/csv",
            title,
            (Source.POST_PROCESSING, Source.DECLARED),
            tides_shapes.writer_of(path),
        )
        for path, title in (
            (tides_shapes.ACTIVITIES, "Taps by stop and period, TIDES 1.0"),
            (tides_shapes.ERRORS, "Errors of those totals"),
            (STOP_VISITS, "Boardings and alightings by stop visit, TIDES 1.0"),
            (VISIT_ERRORS, "Errors of those numbers"),
        )
    ),
    PackageFile("README.md", "text/markdown", "Start here", _OF_CARD, readme.write),
    PackageFile(
        "datapackage.json",
        "application/json",
        "Data Package v2 descriptor",
        (Source.DECLARED, Source.POST_PROCESSING),
        datapackage.write,
    ),
    PackageFile(
        "croissant.json",
        "application/ld+json",
        "Croissant 1.1 description",
        (Source.DECLARED, Source.POST_PROCESSING),
        croissant.write,
    ),
    PackageFile(
        "dataset.jsonld",
        "application/ld+json",
        "schema.org Dataset",
        (Source.DECLARED, Source.POST_PROCESSING),
        catalogues.write_schema_org,
    ),
    PackageFile(
        "dcat.jsonld",
        "application/ld+json",
        "DCAT 3 dataset in its series",
        (Source.DECLARED, Source.POST_PROCESSING),
        catalogues.write_dcat,
    ),
    PackageFile(
        "statement.intoto.json",
        "application/vnd.in-toto+json",
        "Signed statement of every file before it",
        (Source.POST_PROCESSING, Source.LEDGER),
        statement.write,
    ),
    PackageFile(
        "SHA256SUMS",
        "text/plain",
        "Digests, as sha256sum -c reads them",
        (Source.POST_PROCESSING,),
        statement.write_sums,
    ),
)
