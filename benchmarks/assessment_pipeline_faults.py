"""Faults in the pipeline's own code, in the noise library, and in what a package holds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from assessment_releases import Case, Ints

from turnstile.assessment.audits.pipeline_copy import ObservedSensitivity, PipelineCopy
from turnstile.assessment.audits.release_audit import audit_release
from turnstile.assessment.evidence import Evidence
from turnstile.assessment.gates.pipeline_copy import declared_sensitivity, one_run_audit, sampler
from turnstile.assessment.gates.sealed_numbers import one_byte_string
from turnstile.estimates.release_tables import measurements
from turnstile.ledger.encoding import encode_event
from turnstile.ledger.states import ReleaseState
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.publishing.contents_check import unknown_contents

Found = tuple[str, str, str]


def _halved(event: DrawEvent, exact: Ints) -> tuple[Ints, ...]:
    """Draw with half of the scale."""
    return (draw(replace(event, scale=Fraction(float(event.scale) / 2)), exact),)


SAMPLERS: Mapping[str, Callable[[DrawEvent, Ints], tuple[Ints, ...]]] = {
    "a sampler of half the scale": _halved,
    "a sampler 10 % too narrow": lambda e, x: (
        draw(replace(e, scale=Fraction(float(e.scale) * 0.9)), x),
    ),
    "a sampler that uses each draw twice": lambda e, x: (np.repeat(draw(e, x[::2]), 2)[: x.size],),
    "a sampler shifted by one": lambda e, x: (draw(e, x) + 1,),
    "a sampler that returns what it is given": lambda _, x: (x,),
    "a sampler of even numbers": lambda e, x: (2 * (draw(e, x) // 2),),
}


def PIPELINE(cases: Mapping[str, Case]) -> Iterator[Found]:  # noqa: N802 - one of two tables
    """Yield fault, programme, and the gate that stops it, if any."""
    for name, case in cases.items():
        drawn = case.drawn
        unit = drawn.programme.mechanism.unit
        first = drawn.events[0]
        bound = dict(first.sensitivities)[unit]
        if bound is None:
            continue
        farther = ObservedSensitivity(bound.l1 + 1, (bound.l1 + 1) ** 2)
        moved = PipelineCopy(observed={(first.label, unit): farther})
        yield (
            "a unit counted once too often",
            name,
            _stops(declared_sensitivity(drawn.programme, drawn.events, moved)),
        )
        for words, by in SAMPLERS.items():
            yield words, name, _stops(sampler(drawn.events, PipelineCopy(draw=by)))
        twice = PipelineCopy(draw=lambda e, x: (draw(e, x), draw(e, x)))
        for words, copy in (
            ("tables drawn twice", twice),
            ("half the scale, audited", PipelineCopy(draw=_halved)),
        ):
            yield words, name, _stops(one_run_audit(audit_release(drawn.events, unit, copy=copy)))
        digests = Evidence(sealed_digests=("3" * 64, "4" * 64)).sealed_digests
        yield "a second sealed file", name, _stops(one_byte_string(drawn, digests))
        burned = replace(drawn.attempt, state=ReleaseState.BURNED, artefact_digest=None)
        unsealed = replace(drawn, attempt=burned)
        yield "a key without sealed bytes", name, _stops(one_byte_string(unsealed, None))


def CONTENTS(cases: Mapping[str, Case]) -> Iterator[Found]:  # noqa: N802 - one of two tables
    """Yield addition, programme, and what the check of contents says."""
    for name, case in cases.items():
        for words, spoil in ADDED.items():
            with tempfile.TemporaryDirectory() as folder:
                package = _package(Path(folder), case)
                if unknown_contents(package):
                    raise RuntimeError("the honest package holds something unknown")
                spoil(package)
                yield words, name, "contents" if unknown_contents(package) else ""


def _package(folder: Path, case: Case) -> Path:
    """Write plan, card and measurements."""
    (folder / "measurements").mkdir()
    for name, table in measurements(case.drawn).items():
        pq.write_table(table, folder / "measurements" / f"{name}.parquet")
    events = [encode_event(event) for event in case.drawn.events]
    (folder / "plan.json").write_text(json.dumps({"events": events}))
    (folder / "release_card.json").write_text(json.dumps({"release": "x", "burned_draws": 0}))
    return folder


def _column(name: str) -> Callable[[Path], None]:
    """Add a column to a table."""

    def spoil(package: Path) -> None:
        path = min((package / "measurements").glob("*.parquet"))
        table = pq.read_table(path)
        pq.write_table(table.append_column(name, pa.array(range(table.num_rows))), path)

    return spoil


def _field(package: Path) -> None:
    """Write the number of rows into the card."""
    (package / "release_card.json").write_text(json.dumps({"release": "x", "rows_read": 20_123}))


def _metadata(package: Path) -> None:
    """Hide a number in the metadata of a table."""
    path = min((package / "measurements").glob("*.parquet"))
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({b"rows_read": b"20123"}), path)


def _floats(package: Path) -> None:
    """Publish measurements as floating-point numbers."""
    path = min((package / "measurements").glob("*.parquet"))
    table = pq.read_table(path)
    last = table.column_names[-1]
    pq.write_table(
        table.set_column(table.num_columns - 1, last, table.column(last).cast("double")), path
    )


def _file(name: str) -> Callable[[Path], None]:
    """Add a file."""
    return lambda package: (package / name).write_text("count\n17\n") and None


ADDED: Mapping[str, Callable[[Path], None]] = {
    "a column of true counts": _column("true_count"),
    "a column of card ids": _column("card_id"),
    "a registered column that was not drawn": _column("standard_deviation"),
    "rows_read on the card": _field,
    "rows_read in the metadata of a table": _metadata,
    "measurements as floats": _floats,
    "an extra file": _file("notes.csv"),
    "an unplanned table": _file("measurements/exact.csv"),
}


def _stops(result: object) -> str:
    """Return the name of a gate that did not pass."""
    return "" if getattr(result, "passed", True) else str(getattr(result, "gate", ""))
