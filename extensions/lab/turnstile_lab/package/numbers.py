"""The noisy numbers of a published package, for the gates that also run before a publication."""

from __future__ import annotations

import pyarrow as pa

from turnstile.assessment.gates.numbers import Judged, Layout, Layouts, judged
from turnstile.estimates.labelled import labelled
from turnstile.programme.domain.public_domain import layout
from turnstile.programme.spec import TableSpec
from turnstile.publishing.package_reader import Package, domain_of, texts_of


def judged_package(package: Package, earlier: tuple[Package, ...] = ()) -> Judged:
    """Return the measurements of a package as the gates read them.

    Args:
        package: that is judged.
        earlier: other packages of its group, newest first.
    """
    others = tuple(earlier_package.vectors for earlier_package in earlier)
    return judged(package.vectors, layouts_of_package(package), others)


def layouts_of_package(package: Package) -> Layouts:
    """Return the layouts of a package's dense tables of the same counts.

    A table that lacks rows, or has them in another order than the others, has none.
    """
    specs = [
        TableSpec(event.table, package.axes(event.table))
        for event in package.draw_by_label.values()
        if event.statistic == "count" and event.threshold is None and not event.own_records
    ]
    domain = domain_of(package, specs)
    days = {vector.service_date: None for vector in package.vectors}
    return {
        spec.name: Layout(spec.by, layout(domain, spec))
        for spec in specs
        if _has_rows_of(package.tables[spec.name], labelled(domain, spec, list(days), {}))
    }


def _has_rows_of(rows: pa.Table, whole: pa.Table) -> bool:
    """Whether a table has the labels of another, row by row."""
    names = whole.column_names
    return set(names) <= set(rows.column_names) and all(
        texts_of(rows, name).equals(texts_of(whole, name)) for name in names
    )
