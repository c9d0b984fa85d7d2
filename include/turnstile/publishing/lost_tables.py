"""Whether every table that a release is charged for has a place of its own in the package."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from turnstile.errors import ProgrammeError
from turnstile.estimates.table_names import SUFFIXES
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme
from turnstile.publishing.data_tables import clashes
from turnstile.publishing.package_size import columns_of
from turnstile.release.plan import ReleasePlan


def lost_tables(
    programme: Programme, domain: PublicDomain, plan: ReleasePlan
) -> ProgrammeError | None:
    """Return which tables would take each other's place in the package, if some would.

    Args:
        programme: any.
        domain: its public cells.
        plan: of one of its releases.
    """
    rule = next(_lost(programme, domain, plan), None)
    if rule is None:
        return None
    return ProgrammeError(where=f"{programme.name}.yaml", field="tables", rule=rule)


def _lost(programme: Programme, domain: PublicDomain, plan: ReleasePlan) -> Iterator[str]:
    """Yield what is wrong, first what the rest would follow from."""
    lost = "what is charged for one of them would be lost"
    if not programme.mechanism.kind.is_thresholded:
        for first, second in combinations(programme.shared_tables, 2):
            if first.measure.kind.is_of_trips and first.by == second.by:
                yield f"{first.name} and {second.name} count the same; {lost}: remove one"
    names = {table.name for table in programme.tables}
    for name in sorted(names):
        for end in SUFFIXES:
            if end and name + end in names:
                rule = f"{name + end} is what the package may call a table made from {name}"
                yield f"{rule}; {lost}: rename one"
    columns, _ = columns_of(programme, domain, plan)
    for name, tables in clashes(columns, plan.events):
        rule = f"{' and '.join(tables)} would both be called {name} in the package"
        yield f"{rule}; {lost}: rename one"
