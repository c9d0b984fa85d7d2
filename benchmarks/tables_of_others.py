"""What is said of tables of others: of made ones with their truth, and of real ones.

python benchmarks/tables_of_others.py made [OFFSET]  features: how many tables have them, and say so
python benchmarks/tables_of_others.py rules          likewise, of those made by another's rules
python benchmarks/tables_of_others.py control        the same tables read with odds of 1 to 1
python benchmarks/tables_of_others.py real FOLDER    what is said of the files of ../shared/data
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from made_tables import Made, corpus, is_said, is_true, true_features
from tables_by_rules import by_rules

from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external import odds
from turnstile_lab.external.files import read_external_tables
from turnstile_lab.external.of_table import assess_external
from turnstile_lab.external.table import Cell, ExternalTable


def false_statements(made: Made, disclosures: Sequence[Disclosure] | None = None) -> list[str]:
    """Return what is said of a made table and is not so.

    Args:
        made: the table, with its truth.
        disclosures: of it, where they are known.
    """
    return [
        disclosure.statement
        for disclosure in (assess_external(made.table) if disclosures is None else disclosures)
        if is_said(disclosure) and not is_true(disclosure, made.truth)
    ]


def made_tables(tables: list[Made]) -> None:
    """Print the share of features that are said, and what is false."""
    has: Counter[str] = Counter()
    said: Counter[str] = Counter()
    statements = untold = 0
    wrong: list[str] = []
    for made in tables:
        disclosures = assess_external(made.table)
        claims = {disclosure.figures["claim"] for disclosure in disclosures if is_said(disclosure)}
        statements += sum(is_said(disclosure) for disclosure in disclosures)
        untold += sum(disclosure.figures.get("is_told") is False for disclosure in disclosures)
        wrong += [f"{made.name}: {statement}" for statement in false_statements(made, disclosures)]
        features = true_features(made.truth)
        has.update(features)
        said.update(features & claims)
    print("| what was done | tables | told |\n|---|---|---|")
    for name in sorted(has):
        print(f"| {name} | {has[name]} | {said[name]} |")
    print(f"{statements} statements, {untold} times cannot tell, {len(wrong)} false")
    print("\n".join(wrong))


def control() -> None:
    """Print how many statements would be false if even odds were enough."""
    wrong = Counter(
        disclosure.figures["claim"]
        for made in corpus()
        for disclosure in assess_external(made.table)
        if disclosure.figures["claim"] is not None and _is_likelier(disclosure.figures)
        if not is_true(disclosure, made.truth)
    )
    print(
        f"odds of 1 to 1: {wrong.total()} false ({dict(wrong)}); odds of {odds.SURE:,.0f}: see made"
    )


def _is_likelier(figures: dict[str, object]) -> bool:
    """Return whether a statement has even odds, by what it says itself."""
    return float(str(figures.get("odds", 1))) >= 1


def real_tables(folder: Path) -> Iterator[tuple[str, ExternalTable]]:
    """Yield real tables: published ones, and true counts that nothing was done to."""
    for name in ("opal_2016_release/time-loc_train_on_20160725-31.csv",):
        yield name, read_external_tables([folder / name])
    for period in ("202008", "202106", "202407"):
        yield (
            f"opal_patronage {period}",
            _patronage(sorted((folder / "opal_patronage").glob(f"*{period}*"))),
        )
    yield "bangalore_metro (true counts)", _ridership(folder / "bangalore_metro")
    yield "sube_taps (true counts)", _taps(folder / "sube_taps")


def _patronage(files: list[Path]) -> ExternalTable:
    """Read tap-ons by day, region and hour, with the marks in place of small counts."""
    cells, counts, marks = [], [], Counter()
    for file in files:
        with file.open(encoding="utf-8-sig") as lines:
            for row in csv.DictReader(lines, delimiter="|"):
                tap_ons = row["Tap_Ons"]
                if tap_ons.startswith("<"):
                    marks[tap_ons] += 1
                    continue
                region = row["ti_region"]
                place = None if region.startswith("All") else region
                day = row["trip_origin_date"]
                cells.append(Cell(row["mode_name"], day, "on", row["tap_hour"], place))
                counts.append(float(tap_ons))
    return ExternalTable(tuple(cells), np.array(counts), marks=tuple(sorted(marks.items())))


def _ridership(folder: Path) -> ExternalTable:
    """Read boardings by station and hour."""
    with gzip.open(folder / "station-hourly.csv.gz", "rt", encoding="utf-8-sig") as lines:
        rows = [*csv.DictReader(lines, delimiter=";")]
    cells = tuple(Cell("metro", row["Date"], "on", row["Hour"], row["Station"]) for row in rows)
    return ExternalTable(cells, np.array([float(row["Ridership"]) for row in rows]))


def _taps(folder: Path) -> ExternalTable:
    """Count taps by mode and line, without zeros."""
    counts: Counter[Cell] = Counter()
    with next(folder.glob("*.csv")).open(encoding="utf-8-sig") as lines:
        for row in csv.DictReader(lines):
            counts[Cell(row["modo"], row["fecha"], "on", row["hora"], row["id_linea"])] += 1
    return ExternalTable(tuple(counts), np.array([float(n) for n in counts.values()]))


def main() -> None:
    """Run one of them."""
    name, *rest = sys.argv[1:] or ["made"]
    if name == "real":
        for title, table in real_tables(Path(rest[0])):
            print(f"\n{title}")
            for claim in assess_external(table):
                print(f"  {'said' if is_said(claim) else '    '} {claim.name:16} {claim.statement}")
    elif name == "control":
        control()
    else:
        made_tables(by_rules() if name == "rules" else corpus(int(rest[0]) if rest else 0))


if __name__ == "__main__":
    main()
