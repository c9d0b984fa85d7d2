"""What a release run leaves behind: packages by their bytes, and whether any byte changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from turnstile.durable_files import sha256_of
from turnstile.errors import IntegrityError
from turnstile.service_calendar import ServiceWeek


@dataclass(frozen=True, slots=True)
class Package:
    """A published folder.

    Args:
        programme: name.
        week: service week.
        folder: where it lies.
        digest: SHA-256 over names and bytes of its files; None if it was never published.
    """

    programme: str
    week: ServiceWeek
    folder: Path
    digest: str | None


def find_packages(
    public: Path, programmes: Iterable[str], weeks: tuple[ServiceWeek, ...]
) -> tuple[Package, ...]:
    """Return the first release of every programme and week, published or not."""
    return tuple(
        Package(name, week, folder, folder_digest(folder))
        for name in programmes
        for week in weeks
        for folder in (public / name / str(week) / "r0",)
    )


def folder_digest(folder: Path) -> str | None:
    """Return the SHA-256 over names and bytes of all files, or None if there is no folder."""
    if not folder.is_dir():
        return None
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        total.update(f"{path.relative_to(folder).as_posix()}\0{sha256_of(path)}\n".encode())
    return total.hexdigest()


def outcome(before: Package, after: Package) -> str:
    """Say what a run did to a package.

    Raises:
        IntegrityError: a published package was altered or removed.
    """
    if before.digest is None:
        return "published" if after.digest else "not published"
    if after.digest != before.digest:
        raise IntegrityError(
            f"{after.folder} was published before and its bytes changed; nothing may alter a "
            "published package: compare it with the ledger (turnstile ledger verify)"
        )
    return "re-issued, same bytes: nothing was redrawn"


def summary_lines(before: Iterable[Package], after: Iterable[Package]) -> tuple[str, ...]:
    """Return one line for each programme and week.

    Raises:
        IntegrityError: a published package was altered or removed.
    """
    return tuple(
        f"{new.programme:<8} {new.week}  {outcome(old, new):<44} {(new.digest or '-')[:12]:<12}  "
        f"{new.folder}"
        for old, new in zip(before, after, strict=True)
    )


def above_noise_lines(packages: Iterable[Package]) -> Iterator[str]:
    """Yield, for each published package, the share of each table's cells above their noise.

    From its release card, which says too how many cells noise alone would lift at most; a card of
    version 0.1.0 does not, and a week of gaps has no cells to speak of.
    """
    for package in packages:
        if package.digest is None:
            continue
        card = json.loads((package.folder / "release_card.json").read_text(encoding="utf-8"))
        tables = "; ".join(
            f"{entry['table']} {entry['statistic']} {_share(entry, 'above')} "
            f"({_share(entry, 'by_noise_at_most')})"
            for entry in card.get("above_noise", ())
            if entry["cells"]
        )
        yield (
            f"{package.programme:<8} {package.week}  cells above their noise "
            f"(in brackets: by noise alone, at most): {tables}"
        )


def _share(counted: dict[str, int], name: str) -> str:
    """Return how many cells of a table these are, in per cent."""
    return f"{100 * counted[name] / counted['cells']:.1f} %"
