"""Stand-ins for what counts, draws, assesses and describes: a few bytes each, in the same places.

All that must never lose or charge anything twice is the house's own: ledger, zones, stores,
retention, the order of the steps and of what they write.
"""

# ruff: noqa: ARG001 - in the place of functions that are given more
from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from turnstile.counting.exact import ExactTable
from turnstile.durable_files import delete_for_good, replace_durably, sha256_of, sync_tree
from turnstile.errors import IntegrityError
from turnstile.ledger.custody.package_files import file_problems
from turnstile.ledger.custody.vouched_files import public_records, record_bytes
from turnstile.pipeline.context import Release
from turnstile.pipeline.private_zone.bounding_key import require_known_key
from turnstile.pipeline.trials.publishable import require_place
from turnstile.publishing.describe.card_terms import stated_charges
from turnstile.publishing.describe.manifest import MANIFEST, manifest_bytes
from turnstile.publishing.series.writing import write_records
from turnstile.release.sealed import Artefact, NoisyTable, day_of_draw
from turnstile.release.zones import digest_of
from turnstile.sources.ingest.landing import fingerprints
from turnstile.sources.ingest.snapshot import (
    Snapshot,
    folder_of,
    load_snapshot,
    require_whole,
    write_record,
)

Noise = Callable[[Any, Any], Any]


def ingest(programme: Any, week: Any, *, landing: Path, private: Path, **_: object) -> Snapshot:
    """Read the files' digests, and write a snapshot as ingest does: aside, durable, renamed."""
    files = fingerprints(landing, programme.source.landing, week)
    digest = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    folder = folder_of(private, programme.name, str(week), digest)
    made = Snapshot(programme.name, str(week), digest, folder, tuple(week.days), files)
    with suppress(IntegrityError):
        snapshot = load_snapshot(private, programme.name, str(week), digest)
        require_whole(snapshot)
        return snapshot
    arriving = folder.with_name(f".{folder.name}")
    (arriving / "rows").mkdir(parents=True, exist_ok=True)
    (arriving / "rows/part-000.parquet").write_bytes(digest.encode())
    write_record(made, {}, folder=arriving)
    sync_tree(arriving)
    delete_for_good(folder)  # damaged, if it is there
    arriving.rename(folder)
    return made


class Report:
    """A judgement that finds nothing."""

    warnings = findings = ()


def count(programme: Any, domain: Any, days: Any, rows: Path, **_: object) -> list[ExactTable]:
    """A number from the rows' bytes for each draw of the plan."""
    content = (rows / "part-000.parquet").read_bytes()
    number = np.frombuffer(hashlib.sha256(content).digest()[:8], dtype="<u4").astype(np.int64)
    return [
        ExactTable(table, statistic, day, number)
        for table, statistic, day in LABELS[programme.name]
    ]


LABELS: dict[str, list[tuple[str, str, Any]]] = {}
"""Draws of each programme's plan, in their order; the world fills it before a count."""


def require_preflight(release: Release) -> None:
    """What preflight looks at anew at each step; the trials are of the assessment."""
    require_known_key(release.settings, release.ledger)
    require_place(release)


def encode(artefact: Artefact) -> bytes:
    """An artefact as text."""
    tables = [
        [
            table.table,
            table.statistic,
            table.service_date and str(table.service_date),
            table.values.tolist(),
        ]
        for table in artefact.tables
    ]
    return json.dumps([tables, list(artefact.carried)]).encode()


def decode(content: bytes) -> Artefact:
    """Read it back; the days of draws are not asked for."""
    try:
        tables, carried = json.loads(content)
        return Artefact(
            tuple(NoisyTable(t, s, None, np.array(v, dtype=np.int64)) for t, s, _, v in tables),
            (),
            tuple(carried),
        )
    except ValueError:
        raise IntegrityError("the sealed artefact is not what a draw writes") from None


def reconciled(release: Release, drawn: Any) -> None:
    """One estimate."""
    folder = release.folders.embargoed / "estimates"
    folder.mkdir(exist_ok=True)
    total = int(sum(table.values.sum() for table in drawn.artefact.tables))
    replace_durably(folder / "week.csv", f"total\n{total}\n".encode())


class Passed:
    """An assessment whose gates let through."""

    gates = ()


def write_report(_: Passed, folder: Path) -> None:
    """A report of one word."""
    replace_durably(folder / "assessment.json", b"passed")
    replace_durably(folder / "assessment.html", b"passed")


def build_package(
    folder: Path, drawn: Any, *, ledger: Any, embargoed: Path, built_at: datetime, **_: object
) -> str:
    """The files of a package that later checks read: plan, card, table, proof, manifest."""
    folder.mkdir(parents=True)
    (folder / "tables").mkdir()
    (folder / "tables/week.csv").write_bytes((embargoed / "estimates/week.csv").read_bytes())
    for name in ("plan.json", "assessment.json", "assessment.html"):
        (folder / name).write_bytes((embargoed / name).read_bytes())
    attempt, (sequence, head) = drawn.attempt, ledger.head()
    of_key, revision = ledger.entries_of(attempt.key), ledger.revision(attempt.key)
    charges = stated_charges(of_key, revision.drawn, drawn.plan.digest)
    card = {
        "charges": charges,
        "burned_draws": sum(charge["draws"] for charge in charges) - 1,
        "cumulative": [{"family": attempt.family}],
        "ledger": {"head_sha256": head, "sequence": sequence},
        "plan_sha256": drawn.plan.digest,
        "built_at": built_at.date().isoformat(),
    }
    (folder / "release_card.json").write_text(json.dumps(card))
    proof = ledger.proof_of_seal(attempt.key)
    if proof is not None:
        (folder / "sealed.tlog-proof").write_text(proof)
    sealed = str(attempt.artefact_digest)
    manifest = manifest_bytes(folder, key=str(attempt.key), sealed_digest=sealed)
    (folder / MANIFEST).write_bytes(manifest)
    return digest_of(manifest)


def findings(package: Path, key: str | None) -> list[str]:
    """What is known of a package that an earlier run left: it has no signed statement here."""
    return list(file_problems(package))


def write_series(
    programme: Any, ledger: Any, public: Path, include: Path, *, anew: bool = False
) -> dict[str, str]:
    """An index of what is public, as stores compare it."""
    folder = public / programme.name / "series"
    folder.mkdir(parents=True, exist_ok=True)
    attempts = [
        week.in_force
        for _, week in sorted(ledger.weeks(programme.name).items())
        if week.in_force is not None
    ]
    dataset = "".join(f"{attempt.key}\n" for attempt in attempts).encode()
    replace_durably(folder / "weeks.csv", dataset)
    listed = {"path": "series/weeks.csv", "sha256": hashlib.sha256(dataset).hexdigest()}
    content = {"files": [listed], "ledger_sequence": ledger.head()[0]}
    content["ledger_recoveries"] = ledger.parties().recoveries
    content["ledger_recovered_over"] = sorted(ledger.parties().recovered_over.items())
    replace_durably(folder / "index.json", json.dumps(content).encode())
    replace_durably(folder.parent / "index.html", dataset)
    records = {
        public / path: record_bytes(record)
        for path, record in public_records(ledger.entries()).items()
        if path.startswith(f"{programme.name}/")
    }
    for path, content in records.items():
        path.parent.mkdir(exist_ok=True)
        replace_durably(path, content)
    made = (*folder.iterdir(), folder.parent / "index.html", *records)
    return {path.relative_to(public).as_posix(): sha256_of(path) for path in made if path.is_file()}


def _module(name: str, **content: object) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(content)
    return made


@contextmanager
def _in_the_place(modules: list[ModuleType]) -> Iterator[None]:
    """Let modules be found by their names; others that are imported meanwhile stay."""
    before = {stand_in.__name__: sys.modules.get(stand_in.__name__) for stand_in in modules}
    sys.modules.update({stand_in.__name__: stand_in for stand_in in modules})
    try:
        yield
    finally:
        for name, module in before.items():
            del sys.modules[name]
            if module is not None:
                sys.modules[name] = module


@contextmanager
def light_parts(noise: Noise) -> Iterator[None]:
    """Put the stand-ins in while the block runs.

    Args:
        noise: called with event and counts in place of a mechanism.
    """
    modules = [
        _module(
            "turnstile.quality.checks",
            validate=lambda *_, **__: Report(),
            load_report=lambda _: Report(),
        ),
        _module("turnstile.counting.engines", engine_named=lambda _: count),
        _module(
            "turnstile.estimates.release_tables",
            measurements=lambda _: {},
            presented=lambda _: {},
        ),
        _module("turnstile.estimates.labelled", parquet_bytes=lambda _: b""),
        _module(
            "turnstile.pipeline.estimating", write_estimates=reconciled, earlier_now=lambda *_: ()
        ),
        _module("turnstile.assessment.assessment", assess_release=lambda *_: Passed()),
        _module("turnstile.assessment.report.page", write_report=write_report),
        _module("turnstile.pipeline.evidence", evidence_of=lambda _: None),
        _module("turnstile.publishing.package", build_package=build_package),
        _module(
            "turnstile.publishing.series.writing",
            write_records=write_records,
            write_series=write_series,
        ),
        _module("turnstile.privacy.mechanisms.dispatch", draw=noise),
        _module("turnstile.privacy.mechanisms.dense", agree=lambda _: None),
    ]
    with (
        _in_the_place(modules),
        patch("turnstile.pipeline.before_charge.ingest_files", ingest),
        patch("turnstile.pipeline.before_charge.read_calls", lambda *_: None),
        patch("turnstile.pipeline.before_charge.require_decided", lambda *_: None),
        patch("turnstile.pipeline.draw.drawing.require_preflight", require_preflight),
        patch("turnstile.pipeline.draw.charged_draw.encode", encode),
        patch("turnstile.pipeline.draw.drawn_release.decode", decode),
        patch("turnstile.publishing.carried.verify_package.findings", findings),
    ):
        yield


__all__ = ["LABELS", "day_of_draw", "light_parts"]
