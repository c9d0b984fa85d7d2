"""The registry of a package's files beside its tables: plain data, in the order of writing.

A further file is one entry: its path, what it is, what it is made from, and who writes it. A writer
may read what was written before it; one that returns None leaves the file out of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files as resources

from turnstile.ledger.tlog.public_log import PACKAGE_PROOF
from turnstile.publishing.allowed_contents import Source
from turnstile.publishing.card import card_markdown
from turnstile.publishing.contents import Contents
from turnstile.publishing.describe import (
    catalogues,
    changes,
    croissant,
    datapackage,
    dictionary,
    readme,
    registry_entry,
    statement,
)
from turnstile.publishing.json_text import json_bytes
from turnstile.publishing.week import cell_shapes, sum_macros, tides_shapes, week_report
from turnstile.publishing.week.pictures import NAMES
from turnstile.publishing.week.tides_visits import STOP_VISITS, VISIT_ERRORS


@dataclass(frozen=True, slots=True)
class PackageFile:
    """One file.

    Args:
        path: below the package.
        sources: what it is made from.
        write: returns its bytes, or None where a package has no such file.
    """

    path: str
    sources: tuple[Source, ...]
    write: Callable[[Contents], bytes | None]


def _carried(name: str) -> Callable[[Contents], bytes]:
    """Return a writer of a file that is the same in every package."""
    return lambda _: resources("turnstile.publishing.carried").joinpath(name).read_bytes()


_OF_TABLES = (Source.DECLARED, Source.POST_PROCESSING)
_OF_CARD = (Source.DECLARED, Source.LEDGER, Source.POST_PROCESSING)
FILES: tuple[PackageFile, ...] = (
    PackageFile("release_card.json", _OF_CARD, lambda contents: json_bytes(contents.card)),
    PackageFile(
        "release_card.md", _OF_CARD, lambda contents: card_markdown(contents.card).encode()
    ),
    PackageFile("dictionary.csv", (Source.CODE, Source.DECLARED), dictionary.write),
    PackageFile("cells.geojson", _OF_TABLES, cell_shapes.write_geojson),
    PackageFile("cells.parquet", (Source.DECLARED,), cell_shapes.write_geoparquet),
    PackageFile("registry_entry.yaml", _OF_CARD, registry_entry.write),
    PackageFile("KNOWN_GAPS.csv", _OF_TABLES, changes.write_gaps),
    PackageFile("CHANGELOG.md", (Source.LEDGER,), changes.write_log),
    PackageFile("LICENSE.md", (Source.DECLARED,), changes.write_licence),
    PackageFile("CITATION.cff", (Source.DECLARED,), changes.write_citation),
    PackageFile("verify_package.py", (Source.CODE,), _carried("verify_package.py")),
    PackageFile("verify_losses.py", (Source.CODE,), _carried("verify_losses.py")),
    PackageFile("sums.py", (Source.CODE,), _carried("sums.py")),
    PackageFile("draws.py", (Source.CODE,), _carried("draws.py")),
    PackageFile("sums.sql", (Source.DECLARED,), sum_macros.write),
    PackageFile("report.html", _OF_CARD, week_report.write),
    *(
        PackageFile(f"pictures/{name}.{suffix}", _OF_TABLES, draw(name))
        for name in NAMES
        for suffix, draw in (("svg", week_report.svg_of), ("png", week_report.png_of))
    ),
    *(
        PackageFile(path, _OF_TABLES, tides_shapes.writer_of(path))
        for path in (tides_shapes.ACTIVITIES, tides_shapes.ERRORS, STOP_VISITS, VISIT_ERRORS)
    ),
    PackageFile(
        PACKAGE_PROOF,
        (Source.LEDGER,),
        lambda contents: None if contents.proof is None else contents.proof.encode(),
    ),
    PackageFile("README.md", _OF_CARD, readme.write),
    PackageFile("datapackage.json", _OF_TABLES, datapackage.write),
    PackageFile("croissant.json", _OF_TABLES, croissant.write),
    PackageFile("dataset.jsonld", _OF_TABLES, catalogues.write_schema_org),
    PackageFile("dcat.jsonld", _OF_TABLES, catalogues.write_dcat),
    PackageFile("statement.intoto.json", (Source.POST_PROCESSING, Source.LEDGER), statement.write),
    PackageFile("SHA256SUMS", (Source.POST_PROCESSING,), statement.write_sums),
)
