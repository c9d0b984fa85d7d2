"""Tables of others, made and real: what is said of them is so, or it cannot be told."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from made_tables import Made, Truth, corpus, is_said, is_true, table_of, true_features
from tables_by_rules import by_rules
from tables_of_others import false_statements, real_tables

from turnstile.cli import main
from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external import grids, odds, small_cells
from turnstile_lab.external.files import read_external_tables
from turnstile_lab.external.of_table import assess_external
from turnstile_lab.external.table import ExternalTable

OF_CORPUS, OF_RULES = 120, 87


@cache
def in_corpus() -> list[Made]:
    return corpus()


@cache
def made_by_rules() -> list[Made]:
    return by_rules()


@cache
def tables() -> dict[str, ExternalTable]:
    return {made.name: made.table for made in (*in_corpus(), *made_by_rules())}


def said(table: ExternalTable) -> set[str]:
    """What is said of a table, and not that it cannot be told."""
    return claims_of(assess_external(table))


def claims_of(findings: Sequence[Disclosure]) -> set[str]:
    return {str(finding.figures["claim"]) for finding in findings if is_said(finding)}


@cache
def findings_of(name: str) -> tuple[Disclosure, ...]:
    """What the code as it stands finds in a table; a test that replaces some of it asks anew."""
    return tuple(assess_external(tables()[name]))


def test_the_corpus_has_120_tables() -> None:
    assert len({made.name for made in in_corpus()}) == OF_CORPUS
    assert len(made_by_rules()) == OF_RULES
    assert len(tables()) == OF_CORPUS + OF_RULES


@pytest.mark.some(120)
@pytest.mark.parametrize("number", range(OF_CORPUS + OF_RULES))
def test_nothing_false_is_said_of_a_made_table(number: int) -> None:
    made = [*in_corpus(), *made_by_rules()][number]
    assert false_statements(made, findings_of(made.name)) == [], made.name


def test_what_was_done_is_said_where_it_shows() -> None:
    """Or else a tool that says nothing would pass: the share that is told, of each feature."""
    of: dict[str, list[bool]] = {}
    for made in in_corpus():
        claims = claims_of(findings_of(made.name))
        for feature in true_features(made.truth):
            of.setdefault(feature, []).append(feature in claims)
    for feature, least in (("grid", 0.7), ("digits", 0.5), ("share", 0.7), ("top", 0.6)):
        assert np.mean(of[feature]) >= least, feature
    for feature, least in (
        ("left_out", 0.4),
        ("none_small", 0.4),
        ("scale", 0.3),
        ("noise", 0.3),
        ("fresh_noise", 1),
    ):
        assert np.mean(of[feature]) >= least, feature
    for feature in ("mark_below", "bottom", "zeros", "zeros_omitted"):
        assert any(of[feature]), feature


@pytest.mark.long
def test_of_counts_that_stand_for_more_the_factor_is_said() -> None:
    whole = [made for made in made_by_rules() if made.truth.factor is not None]
    assert len(whole) > 10
    with_factor = {name for name in tables() if "factor" in claims_of(findings_of(name))}
    assert with_factor >= {made.name for made in whole}
    assert not with_factor & {made.name for made in in_corpus()}


@pytest.mark.parametrize(
    "name", ["times 3.37", "key that leaves none below 3 [20]", "10 times roots [51]"]
)
def test_a_file_of_weighted_or_keyed_counts_is_not_said_to_be_cut(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both were: "counts below about 3 are left out or set to 0", with what that proves."""
    path = tmp_path / "table.csv"
    written(path, next(made.table for made in made_by_rules() if made.name == name))
    main(["assess", str(path)])
    words = capsys.readouterr().out
    assert "rounded multiples of a number" in words or "as their roots are; which, cannot" in words
    assert "are left out or set to 0;" not in words
    assert "presence" not in words


def test_of_small_counts_that_were_rounded_none_is_said_to_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were, of tens below 50 and whole numbers beyond."""
    path, first = tmp_path / "table.csv", "steps of 10 below 50, then 1 below inf"
    rounded = [made for made in made_by_rules() if made.name.startswith(first)]
    for made in rounded:
        written(path, made.table)
        main(["assess", str(path)])
        assert "are left out or set to 0;" not in capsys.readouterr().out
    monkeypatch.setattr(small_cells, "single_numbers", lambda *_: 50.0)
    assert any(false_statements(made) for made in rounded)


def test_of_zeros_alone_nothing_is_said_of_a_factor() -> None:
    assert said(table_of(np.zeros((2, 3, 4)))) == set()


def test_more_cells_than_are_looked_at_leave_open_what_a_record_stands_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut = next(made.table for made in in_corpus() if made.name.startswith("busy, below 18 rows"))
    assert "left_out" in said(cut)
    monkeypatch.setattr(small_cells, "_CELLS_MOST", 10)
    assert "none_small" in said(cut)


def test_without_the_explanations_of_weights_and_keys_what_is_false_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grids, "factor_of", lambda _: None)
    monkeypatch.setattr(small_cells, "_KEYED_MOST", 0)
    monkeypatch.setattr(small_cells, "single_units", lambda *_: 50.0)
    monkeypatch.setattr(small_cells, "single_numbers", lambda *_: 50.0)
    weighted = {made.name: made for made in made_by_rules()}
    for name in ("times 3.37", "key that leaves none below 3 [20]"):
        assert false_statements(weighted[name]), name
    assert any(false_statements(made) for name, made in weighted.items() if "a record" in name)


def test_even_odds_say_what_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odds, "SURE", 1.0)
    monkeypatch.setattr(grids, "_NUMBERS_LEAST", 1)
    wrong = [made.name for made in in_corpus() if made.table.counts.size < 3_000]
    assert [name for name in wrong if "accident" in name]
    assert any(false_statements(made) for made in in_corpus() if "accident" in made.name)


def test_a_wrong_model_says_what_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: numbers that may end anywhere by themselves are left out of the comparison."""
    monkeypatch.setattr(small_cells, "hidden_where_small", lambda _: 50.0)
    assert any(
        false_statements(made) for made in in_corpus() if made.name.startswith("floored, holed")
    )


def test_a_false_statement_of_the_tool_is_seen_by_the_measure() -> None:
    claim = Disclosure("rounding", False, "", {"claim": "grid", "base": 10.0, "is_told": True})
    assert not is_true(claim, Truth())
    with pytest.raises(KeyError):
        is_true(Disclosure("new", False, "", {"claim": "unmeasured"}), Truth())


def test_no_word_of_a_cause_stands_where_the_numbers_have_others() -> None:
    """The false sentences that these tables were once answered with."""
    random = np.random.default_rng(7)  # noqa: TID251 - counts, no noise
    shares = table_of(np.round(random.random((4, 48, 40)) * 0.4, 4))
    words = " ".join(finding.statement for finding in assess_external(shares))
    assert "certain" not in words
    assert "floating" not in words
    raw = random.poisson(3, (4, 48, 40))
    tens = table_of(10 * np.rint(raw / 10))
    assert said(tens) <= {"grid", "coarse"}
    words = " ".join(finding.statement for finding in assess_external(tens))
    assert "left out" not in words
    assert "suppression" not in words
    threes = table_of(3 * (raw // 3))
    assert "left_out" not in said(threes)
    assert "grid" in said(table_of(3 * (random.poisson(30, (4, 48, 40)) // 3)))


def test_of_the_real_tables_nothing_is_said_that_their_publishers_did_not_do(
    shared_data: Path,
) -> None:
    allowed = {
        "opal_2016_release/time-loc_train_on_20160725-31.csv": {"left_out"},
        "opal_patronage 202008": {"mark", "stated", "grid", "derived"},
        "opal_patronage 202106": {"mark", "stated", "grid", "derived"},
        "opal_patronage 202407": {"mark", "stated", "grid", "derived"},
        "bangalore_metro (true counts)": set(),
        "sube_taps (true counts)": {"zeros_omitted"},
    }
    for name, table in real_tables(shared_data):  # of taps only cells with one are counted
        findings = assess_external(table)
        assert {finding.figures["claim"] for finding in findings if is_said(finding)} == allowed[
            name
        ], name
        for disclosure in findings:
            if disclosure.figures["claim"] == "grid" and is_said(disclosure):
                assert disclosure.figures["base"] == 100
            if disclosure.figures["claim"] == "left_out":
                assert disclosure.figures["low"] <= 17.588 <= disclosure.figures["high"]


def written(path: Path, table: ExternalTable, kind: str = "plain") -> None:
    """Write a table as a file."""
    lines = []
    for cell, count in zip(table.cells, table.counts, strict=True):
        text = f'"{count:,.0f}"' if kind == "thousands" else f"{count:.0f}"
        lines.append(f"{cell.mode},{cell.date},{cell.tap},{cell.time},{cell.loc},{text}")
    if kind == "word_mark":
        lines[5] = lines[5].rpartition(",")[0] + ",n.p."
    path.write_text("mode,date,tap,time,loc,count\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize("kind", ["plain", "thousands", "word_mark"])
def test_the_same_is_said_of_a_file(kind: str, tmp_path: Path) -> None:
    example = next(made for made in in_corpus() if made.name.startswith("busy, nearest 100"))
    path = tmp_path / "table.csv"
    written(path, example.table, kind)
    expected = {"grid"} | ({"mark"} if kind == "word_mark" else set())
    assert said(read_external_tables([path])) == expected


def test_numbers_beyond_all_counts_and_a_column_alone_are_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("count\n1\n2\n1e300\n5\n")
    findings = assess_external(read_external_tables([path]))
    assert "fresh_noise" not in {finding.name for finding in findings}
    assert [finding.figures["mark"] for finding in findings if finding.name == "suppression"] == [
        "1e300"
    ]
