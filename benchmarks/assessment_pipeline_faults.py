"""Faults in the pipeline's own code, in the noise library, and in what a package holds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from assessment_noises import CERTAIN, Gain, Law, bare, clipped, declared, laplace, moved
from assessment_releases import Case

from turnstile.assessment.audits.pipeline_copy import ObservedSensitivity, PipelineCopy
from turnstile.assessment.audits.release_audit import audit_release
from turnstile.assessment.audits.sampler import MANY_DRAWS, misfit_of
from turnstile.assessment.evidence import Evidence
from turnstile.assessment.gates.pipeline_copy import declared_sensitivity, one_run_audit, sampler
from turnstile.assessment.gates.result import ALPHA, GateResult
from turnstile.assessment.gates.sealed_numbers import one_byte_string
from turnstile.estimates.release_tables import measurements
from turnstile.ledger.encoding import encode_event
from turnstile.ledger.states import ReleaseState
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.publishing.contents_check import unknown_contents

Found = tuple[str, str, list[str], Gain]
Sampler = Callable[[DrawEvent], Law]
SAMPLERS: Mapping[str, Sampler] = {
    "a sampler of half the scale": lambda e: declared(e, 0.5),
    "a sampler 10 % too narrow": lambda e: declared(e, 0.9),
    "a sampler 5 % too narrow": lambda e: declared(e, 0.95),
    "a sampler 1 % too narrow": lambda e: declared(e, 0.99),
    "a sampler 1 % too wide": lambda e: declared(e, 1.01),
    "a sampler whose mean is a hundredth of a deviation off": lambda e: moved(e, 0.01),
    "a sampler whose tails are cut at 3 deviations": lambda e: clipped(e, 3.0),
    "a sampler whose tails are cut at 3.5 deviations": lambda e: clipped(e, 3.5),
    "a sampler whose tails are cut at 4 deviations": lambda e: clipped(e, 4.0),
    "a sampler that returns what it is given": bare,
    "a sampler of even numbers": lambda e: declared(e).put(lambda z: 2 * (z // 2)),
    "a sampler that rounds Laplace noise of the same variance": laplace,
}


def PIPELINE(cases: Mapping[str, Case]) -> Iterator[Found]:  # noqa: N802 - one of two tables
    """Yield fault, programme, the gates that stop it, and what a likelihood-ratio test is told."""
    for name, case in cases.items():
        drawn = case.drawn
        unit = drawn.programme.mechanism.unit
        first = drawn.events[0]
        bound = dict(first.sensitivities)[unit]
        if bound is None:
            continue
        farther = ObservedSensitivity(bound.l1 + 1, (bound.l1 + 1) ** 2)
        observed = PipelineCopy(observed={(first.label, unit): farther})
        counted = declared_sensitivity(drawn.programme, drawn.events, observed)
        yield "a unit counted once too often", name, _stops(counted), CERTAIN
        for words, law in SAMPLERS.items():
            yield words, name, *_sampled(first, law(first))
        twice = PipelineCopy(draw=lambda e, x: (np.repeat(draw(e, x[::2]), 2)[: x.size],))
        result = sampler([first], twice)
        yield "a sampler that uses each draw twice", name, _stops(result), CERTAIN
        both = PipelineCopy(draw=lambda e, x: (draw(e, x), draw(e, x)))
        half = PipelineCopy(draw=lambda e, x: (draw(replace(e, scale=e.scale / 2), x),))
        for words, copy in (("tables drawn twice", both), ("half the scale, audited", half)):
            result = one_run_audit(audit_release(drawn.events, unit, copy=copy))
            yield words, name, _stops(result), CERTAIN
        digests = Evidence(sealed_digests=("3" * 64, "4" * 64)).sealed_digests
        yield "a second sealed file", name, _stops(one_byte_string(drawn, digests)), CERTAIN
        burned = replace(drawn.attempt, state=ReleaseState.BURNED, artefact_digest=None)
        unsealed = replace(drawn, attempt=burned)
        yield "a key without sealed bytes", name, _stops(one_byte_string(unsealed, None)), CERTAIN


def _sampled(event: DrawEvent, law: Law) -> tuple[list[str], Gain]:
    """Return what a sampler of another law shows by the draws that are made for a version of it."""
    noise = law.sampled(f"{event.noise} {float(event.scale)}", MANY_DRAWS)
    misfits = {(event.noise, event.scale): misfit_of(noise, event, alpha=ALPHA / 10)}
    copy = PipelineCopy(draw=lambda _, x: (x + noise[: x.size],), misfits=misfits)
    return _stops(sampler([event], copy)), law.against(declared(event)).times(MANY_DRAWS)


def CONTENTS(cases: Mapping[str, Case]) -> Iterator[Found]:  # noqa: N802 - one of two tables
    """Yield addition, programme, what the check of contents says, and that it is certain."""
    for name, case in cases.items():
        for words, spoil in ADDED.items():
            with tempfile.TemporaryDirectory() as folder:
                package = _package(Path(folder), case)
                if unknown_contents(package):
                    raise RuntimeError("the honest package holds something unknown")
                spoil(package)
                gates = ["contents"] if unknown_contents(package) else []
                yield words, name, gates, CERTAIN


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


def _stops(result: GateResult) -> list[str]:
    """Return the name of a gate that did not pass."""
    return [] if result.passed else [result.gate]
