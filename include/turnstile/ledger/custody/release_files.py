"""The files of releases against the fold of the ledger: sealed bytes, packages, what is unknown."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from turnstile.durable_files import SEALED, sealed_name, sha256_of
from turnstile.errors import InputError
from turnstile.ledger.custody.at_work import is_published_now
from turnstile.ledger.custody.custody import Custody
from turnstile.ledger.custody.evidence_of_draws import plan_in, plan_of
from turnstile.ledger.custody.package_files import file_problems
from turnstile.ledger.custody.traces import MANIFEST, STAGED, sealed_file
from turnstile.ledger.custody.zone_index import BESIDE
from turnstile.ledger.fold import Fold
from turnstile.ledger.records import REVISION, Attempt, Finding

APPEARS_WITHIN_S = 2
_OF_PERIOD = re.compile(f"{REVISION}|{BESIDE}")


def file_findings(
    fold: Fold, custody: Custody, packages: frozenset[str] | None
) -> Iterator[Finding]:
    """Yield every file of a release that is gone, altered or unknown.

    Args:
        fold: of all entries.
        custody: zones.
        packages: release keys whose packages are read file by file; None for every one.
    """
    sealed = [attempt for attempt in fold.attempts.values() if attempt.is_sealed]
    public = custody.witnesses.public
    if custody.embargoed is not None:
        for release in sealed:
            yield from _sealed_findings(fold, release, custody.embargoed)
            yield from _plan_findings(release, custody.embargoed / str(release.key))
            yield from _staged_findings(release, custody.embargoed, public)
    if public is None:
        return
    published = [attempt for attempt in sealed if attempt.is_public]
    yield from _missing(fold, published, public, custody.embargoed)
    for release in published:
        folder = public / str(release.key)
        if folder.is_dir() and (packages is None or str(release.key) in packages):
            for problem in file_problems(folder):
                yield Finding("package", release.reserved_sequence, f"{folder}: {problem}")
    yield from _unknown(public)


def _sealed_findings(fold: Fold, attempt: Attempt, embargoed: Path) -> Iterator[Finding]:
    """Check the sealed file of one release: there, alone, and unaltered."""
    digest = attempt.artefact_digest or ""
    folder = embargoed / str(attempt.key)
    sealed = folder / sealed_name(digest)
    if not sealed.is_file():
        if f"{attempt.key} sealed" not in fold.parties.lost:
            yield Finding("sealed", attempt.reserved_sequence, f"{sealed} is gone; restore it")
    elif sha256_of(sealed) != digest:
        yield Finding("sealed", attempt.reserved_sequence, f"{sealed} was altered; restore it")
    for path in sorted(folder.glob(f"{SEALED}*")):
        if path != sealed:
            is_trace = path.suffix == ".parquet"
            aside = "turnstile ledger recover --reason TEXT sets it aside"
            mend = aside if is_trace else "take it away"
            problem = f"{path} is not the sealed file of {attempt.key}; {mend}"
            yield Finding("sealed", attempt.reserved_sequence, problem)


def _plan_findings(attempt: Attempt, folder: Path) -> Iterator[Finding]:
    """Check the plan beside the sealed bytes of one release.

    Without it nobody could charge again for sealed bytes whose entries are lost; that of a public
    one is in its package.
    """
    plan, number = plan_of(folder, sealed_file(attempt.artefact_digest)), attempt.reserved_sequence
    mend = "turnstile run writes it again while the programme is the one that was charged"
    if not plan.exists():
        if not attempt.is_public and any(folder.glob(f"{SEALED}*")):
            yield Finding("plan", number, f"{plan} is gone; restore it, or {mend}")
    elif not _is_charged(attempt, plan):
        problem = f"is not the plan that was charged; restore it, or take it away: {mend}"
        yield Finding("plan", number, f"{plan} {problem}")


def _staged_findings(attempt: Attempt, embargoed: Path, public: Path | None) -> Iterator[Finding]:
    """Check the staged package of one release; not all of a store's has to be here.

    Once it is public nobody needs what one of several machines staged, and a loss of power cut.
    """
    staged = embargoed / str(attempt.key) / STAGED
    mend = "move the folder aside, then run the step publish again"
    if attempt.is_public:
        is_there = attempt.is_withdrawn or (
            public is not None and (public / str(attempt.key)).is_dir()
        )
        mend = "move the folder aside: its package is public" if is_there else "restore it"
    for problem in file_problems(staged) if (staged / MANIFEST).is_file() else ():
        if not problem.endswith(" is missing"):
            yield Finding("package", attempt.reserved_sequence, f"{staged}: {problem}; {mend}")


def _is_charged(attempt: Attempt, plan: Path) -> bool:
    """Return whether the plan beside sealed bytes is the one that was charged."""
    with suppress(InputError):
        return bool(plan_in(plan, str(attempt.key))["plan_digest"] == attempt.plan_digest)
    return False


def _missing(
    fold: Fold, published: list[Attempt], public: Path, embargoed: Path | None
) -> Iterator[Finding]:
    """Yield the packages that are gone. One appears a moment after its entry, so it is waited for.

    Nobody misses one while a process of this machine publishes it.

    A withdrawn release may be gone. Of one that never appeared there is no backup: whoever was to
    publish it died after its entry, and it is staged still.
    """
    missing = [
        attempt
        for attempt in published
        if not attempt.is_withdrawn
        and f"{attempt.key} package" not in fold.parties.lost
        and not (public / str(attempt.key)).is_dir()
        and not is_published_now(embargoed, attempt.key)
    ]
    if missing:
        time.sleep(APPEARS_WITHIN_S)
    for release in missing:
        folder = public / str(release.key)
        if not folder.is_dir():
            mend = "restore it"
            if embargoed and (embargoed / str(release.key) / STAGED / MANIFEST).is_file():
                mend = "turnstile run of its week publishes what is staged, 0 charged"
            problem = f"{release.key} is published, but {folder} is missing; {mend}"
            yield Finding("manifest", release.reserved_sequence, problem)


def _unknown(public: Path) -> Iterator[Finding]:
    """Yield what lies beside packages and is none of the ledger's files."""
    for period in sorted(public.glob("*/*")):
        if period.is_symlink() or not period.is_dir() or not list(period.glob("checkpoint-r*")):
            continue
        for path in sorted(period.iterdir()):
            if not path.name.startswith(".") and not _OF_PERIOD.fullmatch(path.name):
                yield Finding("package", None, f"{path} is no file of a release")
