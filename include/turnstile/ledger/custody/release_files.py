"""The files of releases against the fold of the ledger: sealed bytes, packages, what is unknown."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from turnstile.durable_files import sha256_of
from turnstile.errors import InputError
from turnstile.ledger.custody.custody import Custody
from turnstile.ledger.custody.evidence_of_draws import PLAN, plan_beside
from turnstile.ledger.custody.package_files import file_problems
from turnstile.ledger.custody.traces import MANIFEST
from turnstile.ledger.fold import Fold
from turnstile.ledger.records import Attempt, Finding

APPEARS_WITHIN_S = 2
_BESIDE = re.compile(
    r"r(0|[1-9][0-9]*)"
    r"|(checkpoint|no-release|withdrawn|proof)-r(0|[1-9][0-9]*)\.(note|json|tlog-proof)"
)


def file_findings(
    fold: Fold, custody: Custody, packages: frozenset[str] | None
) -> Iterator[Finding]:
    """Yield every file of a release that is gone, altered or unknown.

    Args:
        fold: of all entries.
        custody: zones.
        packages: release keys whose packages are read file by file; None for every one.
    """
    sealed = [one for one in fold.attempts.values() if one.is_sealed]
    if custody.embargoed is not None:
        for one in sealed:
            yield from _sealed_findings(fold, one, custody.embargoed)
            yield from _staged_findings(one, _package_of(one, custody.embargoed))
    public = custody.witnesses.public
    if public is None:
        return
    published = [one for one in sealed if one.is_public]
    yield from _missing(fold, published, public)
    for one in published:
        folder = _package_of(one, public)
        if folder.is_dir() and (packages is None or str(one.key) in packages):
            for problem in file_problems(folder):
                yield Finding("package", one.reserved_sequence, f"{folder}: {problem}")
    yield from _unknown(public)


def _sealed_findings(fold: Fold, one: Attempt, embargoed: Path) -> Iterator[Finding]:
    """Check the sealed file of one release: there, alone, and unaltered."""
    digest = (one.artefact_digest or "").removeprefix("sha256:")
    folder = _package_of(one, embargoed)
    own = folder / f"sealed-{digest[:16]}.parquet"
    if not own.is_file():
        if f"{one.key} sealed" not in fold.parties.lost:
            yield Finding("sealed", one.reserved_sequence, f"{own} is gone; restore it")
    elif sha256_of(own) != digest:
        yield Finding("sealed", one.reserved_sequence, f"{own} was altered; restore it")
    for path in sorted(folder.glob("sealed-*")):
        if path != own:
            problem = f"{path} is not the sealed file of {one.key}"
            yield Finding("sealed", one.reserved_sequence, problem)


def _staged_findings(one: Attempt, folder: Path) -> Iterator[Finding]:
    """Check plan and staged package of one release.

    Of a store not all of it has to be here, and a plan that is lost is written again.
    """
    charged = one.plan_digest
    try:
        stated = (
            plan_beside(folder, str(one.key))["plan_digest"]
            if (folder / PLAN).exists()
            else charged
        )
    except InputError:
        stated = None
    if stated != charged:
        problem = f"{folder / PLAN} is not the plan that was charged; restore it, or take it away"
        yield Finding("sealed", one.reserved_sequence, problem)
    staged = folder / "package"
    for problem in file_problems(staged) if (staged / MANIFEST).is_file() else ():
        if not problem.endswith(" is missing"):
            yield Finding("package", one.reserved_sequence, f"{staged}: {problem}")


def _missing(fold: Fold, published: list[Attempt], public: Path) -> Iterator[Finding]:
    """Yield the packages that are gone. One appears a moment after its entry, so it is waited for.

    A withdrawn release may be gone.
    """
    missing = [
        one
        for one in published
        if not one.is_withdrawn
        and f"{one.key} package" not in fold.parties.lost
        and not (_package_of(one, public)).is_dir()
    ]
    if missing:
        time.sleep(APPEARS_WITHIN_S)
    for one in missing:
        folder = _package_of(one, public)
        if not folder.is_dir():
            problem = f"{one.key} is published, but {folder} is missing"
            yield Finding("manifest", one.reserved_sequence, problem)


def _unknown(public: Path) -> Iterator[Finding]:
    """Yield what lies beside packages and is none of the ledger's files."""
    for period in sorted(public.glob("*/*")):
        if period.is_symlink() or not period.is_dir() or not list(period.glob("checkpoint-r*")):
            continue
        for path in sorted(period.iterdir()):
            if not path.name.startswith(".") and not _BESIDE.fullmatch(path.name):
                yield Finding("package", None, f"{path} is no file of a release")


def _package_of(one: Attempt, zone: Path) -> Path:
    """Return the folder of a release in a zone."""
    return zone / one.key.programme / one.key.period / f"r{one.key.revision}"
