"""How often gates find faults whose size they cannot state: of made-up weeks, canaries, draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain

import assessment_noises as noises
from assessment_audits import event_of
from assessment_noises import Law, declared
from assessment_releases import PROGRAMMES, case_of

from turnstile.assessment.audits.pipeline_copy import PipelineCopy
from turnstile.assessment.audits.release_audit import audit_release
from turnstile.assessment.audits.sampler import MANY_DRAWS, misfit_of
from turnstile.assessment.gates.noise_kind import noise_kind
from turnstile.assessment.gates.numbers import judged_release
from turnstile.assessment.gates.result import ALPHA
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import ProtectionUnit

WEEKS, RUNS, SAMPLES = 4, 20, 10
KINDS: dict[str, Callable[[DrawEvent], Law]] = {
    "a scale of .9": lambda e: declared(e, 0.9),
    "a scale of .8": lambda e: declared(e, 0.8),
    "a scale of 1.1": lambda e: declared(e, 1.1),
    "a scale of 1.25": lambda e: declared(e, 1.25),
    "one cell in 20 without noise": lambda e: noises.bare_in_part(e, 0.05),
    "one cell in 100 without noise": lambda e: noises.bare_in_part(e, 0.01),
    "noise cut at 2 deviations": lambda e: noises.clipped(e, 2.0),
    "noise cut at 3 deviations": lambda e: noises.clipped(e, 3.0),
    "Laplace noise of the same variance": noises.laplace,
}
SAMPLERS: dict[str, Callable[[DrawEvent], Law]] = {
    "a scale of .99": lambda e: declared(e, 0.99),
    "a scale of 1.01": lambda e: declared(e, 1.01),
    "a mean .01 deviations off": lambda e: noises.moved(e, 0.01),
    "tails cut at 4 deviations": lambda e: noises.clipped(e, 4.0),
    "tails cut at 3 deviations": lambda e: noises.clipped(e, 3.0),
}
NOISES = (
    event_of(NoiseFamily.DISCRETE_LAPLACE, Fraction(1)),
    event_of(NoiseFamily.DISCRETE_LAPLACE, Fraction(12)),
    event_of(NoiseFamily.DISCRETE_GAUSSIAN, Fraction(12)),
    event_of(NoiseFamily.DISCRETE_GAUSSIAN, Fraction(34)),
)


def _of_weeks(programmes: Sequence[str]) -> Iterator[tuple[str, str, str, int, int]]:
    """Yield in how many made-up weeks `noise_kind` stops each fault of all tables."""
    for name in programmes:
        case = case_of(name)
        for words, law_of in KINDS.items():
            laws = [law_of(event) for event in case.drawn.events]
            if words.startswith("Laplace") and name == "opal_trip":
                continue  # its own
            stopped = 0
            for week in range(WEEKS):
                pairs = enumerate(zip(laws, case.exact, strict=True))
                vectors = [x + law.sampled(f"{week} {n}", x.size) for n, (law, x) in pairs]
                stopped += not noise_kind(judged_release(case.with_vectors(vectors))).passed
            yield "noise_kind", words, name, stopped, WEEKS


def _of_canaries() -> Iterator[tuple[str, str, str, int, int]]:
    """Yield in how many runs the one-run audit refutes smaller noise, and draws that come twice."""
    for event in NOISES:
        kind = f"{event.noise} {float(event.scale):g}"
        for times in (0.95, 0.9, 0.8, 0.5):
            other = replace(event, scale=Fraction(float(event.scale) * times))
            copy = PipelineCopy(draw=lambda _, x, smaller_event=other: (draw(smaller_event, x),))
            refuted = sum(
                audit_release([event], ProtectionUnit.CARD_DAY, copy=copy)[0].is_refuted
                for _ in range(RUNS)
            )
            yield "one_run_audit", f"a scale of {times:g}", kind, refuted, RUNS


def _of_samples() -> Iterator[tuple[str, str, str, int, int]]:
    """Yield how often the very many draws of a version of the code show a fault."""
    for event in NOISES:
        kind = f"{event.noise} {float(event.scale):g}"
        for words, law_of in SAMPLERS.items():
            law = law_of(event)
            detections = sum(
                misfit_of(law.sampled(f"{number}", MANY_DRAWS), event, alpha=ALPHA / 10) is not None
                for number in range(SAMPLES)
            )
            yield "sampler", words, kind, detections, SAMPLES


def found(programmes: Sequence[str]) -> None:
    """Print how often each is found at 1e-9; of chosen programmes, in their weeks alone."""
    print("| gate | fault | programme or noise | found | of |")
    print("|---|---|---|---|---|")
    of_noise = () if programmes else (_of_canaries(), _of_samples())
    rows = chain(*of_noise, _of_weeks(programmes or PROGRAMMES))
    for gate, words, where, number, tries in rows:
        print(f"| {gate} | {words} | {where} | {number} | {tries} |", flush=True)
