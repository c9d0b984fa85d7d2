"""From sealed bytes, report and clock every public file is made again, byte for byte.

What follows from the random blinding of a ledger's entry is listed; nothing else may differ. Both
times are of one process, so that what a process counts (pictures that it drew) may not show.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kept_homes import OF_0_1_0, lived_in
from small_deployment import WEEK, Deployment

from turnstile.ledger import of_deployment
from turnstile.pipeline import context
from turnstile.pipeline.steps import step_named

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
MADE_FROM_SEALED = ("measurements", "tables", "estimates")
NOT_THE_SAME = {
    r"ledger-checkpoint\.note|.+/checkpoint-r[01]\.note": "signs the entry of the publication",
    r"ledger-log/.+": "has that entry as a leaf; the log of an old home begins under a new key",
    r".+/proof-r[01]\.tlog-proof": "proves what is one",
    r"zone-index\.(txt|sig\.json)": "lists and signs these",
}


def public_after(home: Path, week: str, at: datetime) -> dict[str, str]:
    """Make again in a copy what follows from the sealed bytes; return what it publishes."""
    copy = home.with_name(f"{home.name}-{len(list(home.parent.iterdir()))}")
    shutil.copytree(home, copy, symlinks=True)
    (copy / "private").chmod(0o700)
    sealed = copy / "embargoed/itms" / week / "r0"
    made = [path for name in MADE_FROM_SEALED for path in (sealed / name).glob("*.parquet")]
    assert len(made) > len(MADE_FROM_SEALED)
    for path in made:
        path.unlink()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TURNSTILE_HOME", str(copy))
        environment.delenv("TURNSTILE_WITNESS", raising=False)  # two copies would be told apart
        environment.setattr(context, "system_clock", lambda: at)
        environment.setattr(of_deployment, "system_clock", lambda: at)
        for step in ("reconcile", "approve", "publish"):
            step_named(step)("itms", week, 0)
    files = (path for path in (copy / "public").rglob("*") if path.is_file())
    return {
        path.relative_to(copy / "public").as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def unlisted(first: dict[str, str], second: dict[str, str]) -> set[str]:
    """Return the files that differ, or are in one alone, and may not."""
    names = {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)}
    return {name for name in names if not re.fullmatch("|".join(NOT_THE_SAME), name)}


def test_every_public_file_is_made_again(assessed: Deployment) -> None:
    first = public_after(assessed.home, WEEK, NOON)
    assert {f"itms/{WEEK}/r0/{name}" for name in ("release_card.json", "report.html")} < set(first)
    assert unlisted(first, public_after(assessed.home, WEEK, NOON)) == set()
    later = public_after(assessed.home, WEEK, NOON.replace(hour=13))
    assert "itms/feed.json" in unlisted(first, later)


def test_what_version_0_1_0_sealed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, week = lived_in(OF_0_1_0, tmp_path, monkeypatch), "2016-W31"
    for step in ("reconcile", "assess"):
        step_named(step)("itms", week, 0)
    first = public_after(home, week, NOON)
    assert {f"itms/{week}/r0/{name}" for name in ("release_card.json", "report.html")} < set(first)
    assert unlisted(first, public_after(home, week, NOON)) == set()
