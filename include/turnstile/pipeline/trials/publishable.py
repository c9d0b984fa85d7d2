"""Whether a release could be published, found out before anything is held: a rehearsal on zeros.

The tables of the plan are made of zeros in place of noisy numbers, so that a column which nothing
declares, a full disk, a folder that cannot be written and an earlier package that was altered stop
a week while it costs nothing. No row and no count is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from turnstile.errors import InputError, IntegrityError, RefusedError
from turnstile.ledger.custody.space import require_space
from turnstile.ledger.records import Attempt, Bindings
from turnstile.pipeline.context import Release
from turnstile.privacy.events import DrawEvent
from turnstile.release.drawn import Drawn
from turnstile.release.sealed import Artefact, NoisyTable, day_of_draw

_PACKAGE_BYTES = 2**21  # report, card, plan and data package
_BYTES_PER_CELL = 400  # of every file that holds it, labels and both formats; 150 in practice


def require_columns(release: Release) -> None:
    """Refuse a release whose package would hold a column that nothing declares.

    Raises:
        RefusedError: it would.
    """
    unknown = sorted(_unknown_columns(release))
    if unknown:
        raise RefusedError(
            f"{release.key}: its package would hold what nothing declares: "
            f"{'; '.join(unknown[:5])}; nothing was charged: declare the column "
            "(programme.fields), or remove it, then run the step reserve again"
        )


def require_place(release: Release) -> None:
    """Refuse a release for which keys, folders, disk or earlier packages are not ready now.

    Raises:
        IntegrityError: an earlier package, from which estimates borrow, was altered.
        InputError: a folder cannot be written, or is full, or something lies in the way; or the
            key that signs what a publication writes is gone.
    """
    release.ledger.require_signers()
    _require_kinds(release)
    require_space(package_space(release))
    _require_earlier(release)


def _require_kinds(release: Release) -> None:
    """Refuse a file where a later step makes a folder, and a folder where it writes a file."""
    embargoed, public = release.settings.embargoed / str(release.key), release.settings.public
    programme = public / release.key.programme
    folders = [embargoed / name for name in ("measurements", "tables", "estimates")]
    folders += [
        embargoed.parents[1],
        embargoed.parent,
        embargoed,
        programme,
        programme / release.key.period,
        programme / "series",
    ]
    files = [embargoed / "assessment.json", programme / "latest"]
    files += [zone / "index.html" for zone in (programme, public)]
    in_the_way = [(path, "a folder") for path in folders if path.exists() and not path.is_dir()]
    in_the_way += [(path, "a file") for path in files if path.is_dir() and not path.is_symlink()]
    for path, asked in in_the_way:
        rule = f"stands where {asked} is made; move it away, then run the step reserve again"
        raise InputError(where=str(path), field="zone", rule=rule)


def package_space(release: Release) -> dict[Path, int]:
    """Return the bytes that a draw and its package take at most, by folder."""
    cells = sum(_cells(release, event) for event in release.plan.events)
    package = _PACKAGE_BYTES + cells * _BYTES_PER_CELL
    embargoed = release.settings.embargoed / str(release.key)
    public = release.settings.public / release.key.programme  # appears with the first package
    return {embargoed: 2 * package, public if public.exists() else public.parent: package}


def _cells(release: Release, event: DrawEvent) -> int:
    """Return how many numbers a draw makes."""
    table = next(spec for spec in release.programme.tables if spec.name == event.table)
    return release.domain.cells(table)


def _unknown_columns(release: Release) -> Iterator[str]:
    """Name the columns of measurements and presented tables that have no source."""
    from turnstile.estimates.release_tables import measurements, presented
    from turnstile.publishing.contents_check import unknown_columns

    events = release.plan.events
    planned = {(event.table, event.statistic) for event in events}
    zeros = tuple(
        NoisyTable(
            event.table,
            event.statistic,
            day_of_draw(event),
            np.zeros(_cells(release, event), dtype=np.int64),
        )
        for event in events
    )
    drawn = Drawn(
        release.programme, release.domain, release.plan, _no_attempt(release), Artefact(zeros, ())
    )
    parts = {"measurements": measurements(drawn)}
    if not any(event.step > 1 for event in events):  # sums over the year need its other weeks
        parts["tables"] = presented(drawn)
    for part, tables in parts.items():
        for name, table in tables.items():
            for problem in unknown_columns(table.schema, name, part, planned):
                yield f"{part}/{name}: {problem}"


def _no_attempt(release: Release) -> Attempt:
    """Return the attempt of a rehearsal, which no ledger knows."""
    planned = release.plan
    return Attempt(
        attempt_id="rehearsal",
        key=release.key,
        family=planned.family,
        week=str(planned.charged_in),
        bindings=Bindings(planned.programme_digest, planned.domain_digest, ""),
        plan_digest=planned.digest,
    )


def _require_earlier(release: Release) -> None:
    """Refuse if a package that estimates would borrow from is not as its manifest says."""
    from turnstile.pipeline.estimating import earlier_now
    from turnstile.publishing.describe.manifest import differences
    from turnstile.release.numbers import Numbers

    days = tuple(release.week.days)
    cells = Numbers(str(release.key), release.domain.digest, days, (), {}, {})
    for earlier_release in earlier_now(release, cells):
        folder = release.settings.public / earlier_release.key
        if problems := differences(folder):
            raise IntegrityError(
                f"{folder}: {problems[0]}; nothing was charged: restore the package, from which "
                "estimates borrow, then run the step reserve again"
            )
