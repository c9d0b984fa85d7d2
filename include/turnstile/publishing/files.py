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
    croissant,
    datapackage,
    dcat,
    readme,
    registry_entry,
    statement,
)
from turnstile.publishing.week import cell_shapes, gtfs_ride, tides_shapes, week_report
from turnstile.publishing.week.gtfs_ride import RIDE_COLUMNS
from turnstile.publishing.week.tides_visits import STOP_VISITS, VISIT_ERRORS
from turnstile.publishing.written_text import json_bytes


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


TOOLS = ("verify_package.py", "verify_losses.py", "sums.py", "draws.py")
_OF_TABLES = (Source.DECLARED, Source.POST_PROCESSING)
_OF_CARD = (Source.DECLARED, Source.LEDGER, Source.POST_PROCESSING)
FILES: tuple[PackageFile, ...] = (
    PackageFile("release_card.json", _OF_CARD, lambda contents: json_bytes(contents.card)),
    PackageFile(
        "release_card.md", _OF_CARD, lambda contents: card_markdown(contents.card).encode()
    ),
    PackageFile("cells.geojson", _OF_TABLES, cell_shapes.write_geojson),
    PackageFile("START_HERE.csv", _OF_TABLES, readme.write_start),
    PackageFile("metadata/registry_entry.yaml", _OF_CARD, registry_entry.write),
    *(PackageFile(f"tools/{name}", (Source.CODE,), _carried(name)) for name in TOOLS),
    PackageFile("report.html", _OF_CARD, week_report.write),
    *(
        PackageFile(path, _OF_TABLES, tides_shapes.writer_of(path))
        for path in (tides_shapes.ACTIVITIES, tides_shapes.ERRORS, STOP_VISITS, VISIT_ERRORS)
    ),
    *(PackageFile(path, _OF_TABLES, gtfs_ride.writer_of_ride(path)) for path in RIDE_COLUMNS),
    PackageFile(
        PACKAGE_PROOF,
        (Source.LEDGER,),
        lambda contents: None if contents.proof is None else contents.proof.encode(),
    ),
    PackageFile("README.md", _OF_CARD, readme.write),
    PackageFile("docs/GUIDE.md", _OF_CARD, readme.write_guide),
    PackageFile("datapackage.json", _OF_TABLES, datapackage.write),
    PackageFile("metadata/croissant.json", _OF_TABLES, croissant.write),
    PackageFile("metadata/dcat.jsonld", _OF_TABLES, dcat.write),
    PackageFile("statement.intoto.json", (Source.POST_PROCESSING, Source.LEDGER), statement.write),
    PackageFile("SHA256SUMS", (Source.POST_PROCESSING,), statement.write_sums),
)
