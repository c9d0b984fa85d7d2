"""Made tables of others with their truth: what is named is right, or it is not named."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from turnstile_lab.baselines import discrete_laplace, naive_laplace, uniforms
from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.files import read_external_tables
from turnstile_lab.external.of_table import assess_external

_KINDS = ("laplace", "gaussian", "rounded", "left_alone", "thresholded")
_TREATMENTS = ("plain", "tens", "base_3", "below_mark", "word_mark", "thousands")
_SCALES = {"laplace": 2.0, "gaussian": 5.0, "rounded": 2.0, "left_alone": 2.0, "thresholded": 2.0}
_THRESHOLD = 18


@dataclass(frozen=True)
class Made:
    """One file: how its counts were noised, what was done to them, how many there are."""

    kind: str
    treatment: str
    cells: int

    def __str__(self) -> str:
        return f"{self.kind}-{self.treatment}-{self.cells}"


CORPUS = [Made(*own) for own in itertools.product(_KINDS, _TREATMENTS, (3_000, 12_000))]
_QUICK = {"laplace-plain-3000", "gaussian-plain-3000", "laplace-tens-3000", "left_alone-plain-3000"}
_QUICK |= {"thresholded-below_mark-3000", "laplace-word_mark-3000", "laplace-thousands-3000"}


def noisy(made: Made) -> np.ndarray:
    """Counts, half of them empty without noise."""
    label, cells = f"made {made}", made.cells
    raw = np.floor(np.exp(8 * uniforms(f"raw {label}", cells) - 2)).astype(np.int64)
    raw[uniforms(f"empty {label}", cells) < 0.5] = 0
    scale = _SCALES[made.kind]
    if made.kind == "gaussian":
        from scipy.stats import norm

        return raw + np.rint(scale * norm.ppf(uniforms(f"n {label}", cells))).astype(np.int64)
    if made.kind in ("laplace", "left_alone"):
        found = raw + discrete_laplace(label, cells, scale)
        return np.where(raw > 0, found, 0) if made.kind == "left_alone" else found
    found = np.rint(raw + naive_laplace(label, cells, scale)).astype(np.int64)
    if made.kind == "thresholded":
        return found[(raw > 0) & (found >= _THRESHOLD)]
    return found


def texts(made: Made, counts: np.ndarray) -> list[str]:
    """The counts as they are published."""
    if made.treatment == "tens":
        counts = 10 * np.rint(counts / 10).astype(np.int64)
    if made.treatment == "base_3":
        up = uniforms(f"up {made}", counts.size) < (counts % 3) / 3
        counts = 3 * (counts // 3 + up)
    if made.treatment == "below_mark":
        return [str(n) if n >= 50 else "<50" for n in counts.tolist()]
    if made.treatment == "word_mark":
        hidden = uniforms(f"hidden {made}", counts.size) < 0.02
        return ["n.p." if h else str(n) for n, h in zip(counts.tolist(), hidden, strict=True)]
    if made.treatment == "thousands":
        return [f'"{n:,}"' for n in counts.tolist()]
    return [str(n) for n in counts.tolist()]


def assessed(made: Made, folder: Path) -> list[Disclosure]:
    """Write the file and assess it."""
    lines = [
        f"bus,20160725,on,{n // 60:04},{n % 60:03},{text}"
        for n, text in enumerate(texts(made, noisy(made)))
    ]
    path = folder / "table.csv"
    path.write_text("mode,date,tap,time,loc,count\n" + "\n".join(lines) + "\n")
    return list(assess_external(read_external_tables([path])))


def named(found: list[Disclosure], name: str) -> list[dict[str, object]]:
    """Figures of what is identified."""
    return [one.figures for one in found if one.name == name and one.figures.get("identified")]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(made, marks=() if str(made) in _QUICK else pytest.mark.long, id=str(made))
        for made in CORPUS
    ],
)
def test_what_is_named_is_right(made: Made, tmp_path: Path) -> None:
    found = assessed(made, tmp_path)
    names = {one.name for one in found}
    is_on_grid = made.treatment in ("tens", "base_3")
    # scales: within 5 %, give or take what the interval itself allows for
    for figures in named(found, "scale"):
        assert made.kind != "thresholded"
        assert not is_on_grid
        true = _SCALES[made.kind]
        assert figures["low"] <= 1.05 * true
        assert figures["high"] >= 0.95 * true
        assert (figures["source"] == "negatives") is (made.kind != "gaussian")
    # thresholds
    for figures in named(found, "threshold"):
        true_threshold = 50 if made.treatment == "below_mark" else _THRESHOLD
        assert made.kind == "thresholded" or made.treatment == "below_mark"
        assert figures["low"] <= true_threshold <= figures["high"] + 0.5
    # what was done is said
    assert ("rounding" in names) is is_on_grid
    assert ("suppression" in names) is (made.treatment in {"word_mark", "below_mark"})
    if made.kind == "left_alone" and made.treatment in ("plain", "thousands", "word_mark"):
        assert [one.is_flaw for one in found if one.name == "zeros_left_alone"] == [True]
    if made.kind in ("laplace", "gaussian"):
        assert not any(one.is_flaw for one in found if one.name == "zeros_left_alone")


def test_numbers_beyond_all_counts_and_a_column_alone_are_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("count\n1\n2\n1e300\n5\n")
    found = assess_external(read_external_tables([path]))
    assert "fresh_noise" not in {one.name for one in found}
    assert [one.figures["mark"] for one in found if one.name == "suppression"] == ["1e300"]
