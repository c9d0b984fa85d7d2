"""CPU of the series when one more week is published, after many.

python benchmarks/series.py var/public/opal/2016-W30/r0 --weeks 500

One package stands for every week (hard links), beside the published folder's own disk; the ledger's
facts are made up. The first line reads every package once, as a deleted series would.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.programme.loading import load_programme
from turnstile.publishing.series.writing import write_series
from turnstile.release.zones import digest_of
from turnstile.service_calendar import ServiceWeek

INCLUDE = Path(__file__).resolve().parents[1] / "include"


@dataclass(frozen=True)
class Published:
    """An entry of a ledger: a week was published."""

    key: str
    sequence: int
    body: dict[str, str]
    kind: EntryKind = EntryKind.PUBLISHED
    hash: str = "0" * 64
    at: str = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Weeks:
    """As much of a ledger's view as the series reads."""

    published: tuple[Published, ...]

    def entries(self) -> tuple[Entry, ...]:
        """Return the facts."""
        return cast("tuple[Entry, ...]", self.published)


def main() -> None:
    """Print CPU seconds with all weeks anew, with one more, and again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=Path)
    parser.add_argument("--weeks", type=int, default=500)
    args = parser.parse_args()
    package: Path = args.package.resolve()
    name = package.parts[-3]
    programme = load_programme(name, INCLUDE)
    digest = digest_of((package / "manifest.json").read_bytes())
    first = ServiceWeek.parse(package.parts[-2])
    keys = [f"{name}/{first.plus(n)}/r0" for n in range(args.weeks + 1)]
    with tempfile.TemporaryDirectory(dir=package.parents[3]) as scratch:
        for key in keys:
            shutil.copytree(package, Path(scratch) / key, copy_function=os.link)
        entries = tuple(
            Published(key, n, {"manifest_digest": digest}) for n, key in enumerate(keys)
        )
        for words, number in (("all anew", -1), ("one more", None), ("nothing new", None)):
            begun = time.process_time()
            ledger = cast("Ledger", Weeks(entries[:number]))
            write_series(programme, ledger, Path(scratch), INCLUDE)
            spent = time.process_time() - begun
            print(f"{len(entries[:number])} weeks, {words}: {spent:.1f} CPU s", flush=True)


if __name__ == "__main__":
    main()
