"""`verify_losses.py`: agrees with cards and ledger, and names what either gets wrong."""

from __future__ import annotations

import ast
import copy
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cards_of_weeks import INCLUDE, History, shipped
from kept_homes import OF_0_1_0, unpacked

from turnstile.cli import main
from turnstile.ledger.balances import stored_accounts
from turnstile.ledger.entries import EntryKind
from turnstile.privacy import accounts
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.guarantees import Zcdp, epsilon_tight
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.source_spec import Feed
from turnstile.programme.spec import Outside, Programme
from turnstile.publishing import card as product_card
from turnstile.publishing.carried import verify_losses
from turnstile.service_calendar import ServiceDays, ServicePeriod, ServiceWeek

SHIPPED = sorted(path.stem for path in (INCLUDE / "programmes").glob("*.yaml"))
FIRST = ServiceWeek.parse("2016-W27")  # of the year that opal_sums carries along
Edit = Callable[[Any], object]


def period_of(programme: Programme) -> ServicePeriod:
    if programme.schedule.first_day is None:
        return FIRST.plus(3)
    days = timedelta(days=programme.schedule.period_days - 1)
    return ServiceDays(programme.schedule.first_day, programme.schedule.first_day + days)


def said_of(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = verify_losses.main([*arguments])
    said = capsys.readouterr()
    return code, said.out + said.err


def generous(programme: Programme) -> Programme:
    """The programme with caps a thousand times as large."""
    caps = (
        replace(cap, epsilon=cap.epsilon and 1000 * cap.epsilon, rho=cap.rho and 1000 * cap.rho)
        for cap in programme.caps
    )
    return replace(programme, caps=tuple(caps))


# --- where all is right ---


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_programme_agrees(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = History(tmp_path)
    history.released(shipped(name), period_of(shipped(name)))
    arguments = history.write()
    code, said = said_of(arguments, capsys)
    assert code == 0, said
    assert "1 cards agree with their terms and the ledger" in said
    assert said_of(arguments[:1], capsys)[0] == 0


def _declared(**bound: object) -> Callable[[Programme], Programme]:
    return lambda programme: replace(programme, units=(replace(programme.units[0], **bound),))  # type: ignore[arg-type]


def _of_source(**source: object) -> Callable[[Programme], Programme]:
    return lambda programme: replace(programme, source=replace(programme.source, **source))  # type: ignore[arg-type]


def _joint(programme: Programme) -> Programme:
    return replace(programme, mechanism=replace(programme.mechanism, joint_marginals=True))


def _taps_dropped(programme: Programme) -> Programme:
    domain = replace(programme.domain, outside=Outside.DROP)
    return replace(_of_source(feed=Feed.TAPS)(programme), domain=domain)


def _taps_of_flows(programme: Programme) -> Programme:
    """Flows of taps, one trip protected."""
    tables = (replace(table, trips_max=None, per_cell_max=None) for table in programme.tables)
    mechanism = replace(programme.mechanism, unit=ProtectionUnit.TRIP)
    units = shipped("opal_trip").units
    caps = (replace(programme.caps[0], unit=ProtectionUnit.TRIP),)
    changed = replace(programme, tables=tuple(tables), mechanism=mechanism, units=units, caps=caps)
    return _of_source(feed=Feed.TAPS)(changed)


def _by_bus_week(programme: Programme) -> Programme:
    mechanism = replace(programme.mechanism, unit=ProtectionUnit.BUS_WEEK)
    return replace(_declared(unit=ProtectionUnit.BUS_WEEK)(programme), mechanism=mechanism)


def _year_of_totals(programme: Programme) -> Programme:
    years = {"totals": FIRST.plus(-52)}  # the year before: years follow each other
    tables = (replace(table, year_from=years.get(table.name)) for table in programme.tables)
    # Less noise than a year needs: the half-widths on a card are slow to find for wide noise.
    mechanism = replace(programme.mechanism, amount=200 * programme.mechanism.amount)
    return replace(programme, tables=tuple(tables), mechanism=mechanism)


FORMS: dict[str, tuple[str, Callable[[Programme], Programme]]] = {
    "once in each cell": ("opal", _declared(once_per_cell=True, once_per_finest_cell=False)),
    "no limit of cells": ("opal", _declared(once_per_finest_cell=False)),
    "fewer records than limits": ("opal", _declared(contributions_max=2, coarse_cell_max=1)),
    "both marginals without a limit": (
        "opal",
        lambda programme: _joint(_declared(once_per_finest_cell=False)(programme)),
    ),
    "few in coarse cells": ("opal", _declared(coarse_cell_max=2)),
    "both marginals": ("opal", _joint),
    "both marginals, few in coarse cells": (
        "opal",
        lambda programme: _joint(_declared(coarse_cell_max=2)(programme)),
    ),
    "taps under a bound": ("opal", _of_source(feed=Feed.TAPS)),
    "taps": ("opal_trip", _of_source(feed=Feed.TAPS)),
    "taps whose end decides": ("opal_trip", _taps_dropped),
    "flows of taps": ("opal_flows", _taps_of_flows),
    "bus-weeks": ("itms", _by_bus_week),
    "bus-weeks in a month": ("itms_month", _by_bus_week),
    "a year under a bound of a week": ("opal_year", _year_of_totals),
    "rides": ("opal_trip", _of_source(feed=Feed.TIDES_PASSENGER_EVENTS)),
    "thresholds under a bound": (
        "opal_2017",
        lambda programme: replace(programme, units=shipped("opal").units),
    ),
    "days without service": (
        "opal_sums",
        _of_source(absent_days=(date(2016, 7, 6), date(2016, 7, 26))),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_bound_agrees(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of, change = FORMS[name]
    history = History(tmp_path)
    programme = generous(change(shipped(of)))
    history.released(programme, period_of(programme))
    code, said = said_of(history.write(), capsys)
    assert code == 0, said


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> History:
    """54 weeks: two left out, one drawn twice, one corrected; 52 draws in any 52 weeks."""
    history = History(tmp_path_factory.mktemp("year"))
    programme = shipped("opal_year")
    for number in range(54):
        if number == 20:
            history.burned(programme, FIRST.plus(number))
        if number not in (7, 40):
            history.released(programme, FIRST.plus(number))
    history.released(programme, FIRST.plus(33), 1)
    history.write()
    return history


def test_a_year_agrees_with_the_export_and_with_its_cards_alone(
    year: History, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = year.write()
    code, said = said_of(arguments, capsys)
    assert code == 0, said
    assert "53 cards agree with their terms and the ledger" in said
    assert "opal_cards, 54 draws in all" in said
    rho = Fraction(52 * 18_518_518, 10**9)
    shown = epsilon_tight(Zcdp(rho), Fraction(1, 10**6))
    assert shown is not None
    in_any_52_weeks = said.partition("in any 52 weeks")[2]
    assert f"card: epsilon infinite, rho {float(rho)}" in in_any_52_weeks
    (said_epsilon,) = re.findall(r"card: .*; epsilon ([0-9.]+) at delta 1e-6", in_any_52_weeks)
    assert float(said_epsilon) == pytest.approx(float(shown), abs=1.6e-6)  # the last digit of each
    assert said_of(arguments[:1], capsys)[0] == 0


def test_two_programmes_of_a_group_agree_and_one_left_out_of_an_account_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = History(tmp_path)
    for number in (0, 1):
        for name in ("opal", "opal_flows"):
            history.released(generous(shipped(name)), FIRST.plus(number))
    arguments = history.write()
    assert said_of(arguments, capsys)[0] == 0
    path = tmp_path / f"public/opal_flows/{FIRST.plus(1)}/r0/release_card.json"
    card = json.loads(path.read_bytes())
    _line("cumulative", "card", rho_before="0.25", rho_after="0.5")(card)
    path.write_text(json.dumps(card))
    code, said = said_of(arguments[:1], capsys)
    assert code == 1
    assert "card, ever, all: rho 0.5 stated, 1.666666662 computed" in said


def test_a_draw_of_another_programme_between_head_and_balance_is_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    history, other = History(tmp_path), generous(shipped("opal_flows"))
    head = history.ledger.head

    def interrupted() -> tuple[int, str]:
        entry = head()
        monkeypatch.undo()
        history.burned(other, FIRST)
        return entry

    monkeypatch.setattr(history.ledger, "head", interrupted)
    history.released(generous(shipped("opal")), FIRST)
    arguments = history.write()
    assert said_of(arguments, capsys)[0] == 0
    assert said_of(arguments[:1], capsys)[0] == 0


def _chained(entries: Sequence[tuple[str, Any]]) -> str:
    """Write entries as an export does."""
    lines, before = [], "0" * 64
    for number, (kind, body) in enumerate(entries, start=1):
        record = json.dumps({"sequence": number, "previous": before, "kind": kind, "body": body})
        before = hashlib.sha256(record.encode()).hexdigest()
        lines.append(json.dumps({"hash": before, "record": record}))
    return "\n".join(lines)


@pytest.mark.parametrize(("of_lost", "code"), [(True, 0), (False, 1)])
def test_losses_that_were_declared_after_a_disaster_count_as_often_as_they_say(
    *, of_lost: bool, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = History(tmp_path)
    card = history.released(shipped("opal"), FIRST)
    (reserved,) = (
        entry.body for entry in history.ledger.entries() if entry.kind is EntryKind.RESERVED
    )
    lost = [card["ledger"]["sequence"], card["ledger"]["head_sha256"]]
    recovered = {"superseded": [lost] if of_lost else []}
    declared = {**reserved, "draws": 2}
    path = tmp_path / "entries.jsonl"
    path.write_text(_chained([("recovered", recovered), ("loss_declared", declared)]))
    exit_code, said = said_of([history.write()[0], "--ledger", str(path)], capsys)
    assert exit_code == code, said
    assert "opal_cards, 2 draws in all" in said
    assert "card_day: epsilon infinite, rho 0.166666666," in said


# --- what the product could get wrong: each slip stands in cards and ledger alike ---


def _moves(unit: str, **changes: Callable[[Sensitivity], int]) -> Callable[[DrawEvent], DrawEvent]:
    """Plan each draw as if a unit moved it otherwise."""

    def slip(event: DrawEvent) -> DrawEvent:
        bounds = dict(event.sensitivities)
        moved = bounds[ProtectionUnit(unit)]
        if moved is not None:
            slipped = {name: change(moved) for name, change in changes.items()}
            bounds[ProtectionUnit(unit)] = replace(moved, **slipped)
        return replace(event, sensitivities=tuple(bounds.items()))

    return slip


def _as_one_week(event: DrawEvent) -> DrawEvent:
    """Let a card of all weeks pay for this week's counts alone (Y3)."""
    squared = next(s.l2_squared for u, s in event.sensitivities if u == "card_day" and s)
    return _moves("card", l2_squared=lambda _: squared)(event)


PLANNED: dict[str, tuple[Callable[[DrawEvent], DrawEvent], str, str]] = {
    "displacement forgotten": (
        _moves(
            "trip",
            l1=lambda sensitivity: sensitivity.l1 // 2,
            l2_squared=lambda sensitivity: sensitivity.l2_squared // 2,
        ),
        "opal",
        "trip: rho 0.011574075 stated, 0.023148149 computed",
    ),
    "records of one cell taken to lie apart": (
        _moves("card_day", l2_squared=lambda sensitivity: sensitivity.l1),
        "opal",
        "card_day, on_time: l1 and l2^2 [6, 6] stated, [6, 36] computed",
    ),
    "days of a week taken to lie apart": (
        _moves("card_week", l2_squared=lambda sensitivity: max(1, sensitivity.l2_squared // 7)),
        "opal_year",
        "card_week, on_time_location: l1 and l2^2 [20, 2] stated, [20, 20] computed",
    ),
    "a sum taken to be of counts": (
        _moves("bus_day", l2_squared=lambda sensitivity: sensitivity.l0),
        "itms",
        "bus_day, speed: l1 and l2^2 [13000, 40] stated, [13000, 4225000] computed",
    ),
    "earlier weeks not charged": (
        lambda event: replace(event, carried=()),
        "opal_sums",
        "card_day, 2016-07-04, entry 3 (1 of 21 accounts): rho 0 stated",
    ),
    "a year counted once a week": (_as_one_week, "opal_sums", "card, places: l1 and l2^2 [7968, "),
}


@pytest.mark.parametrize("name", PLANNED)
def test_a_slip_of_the_plan_is_named(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slip, of, sentence = PLANNED[name]
    history = History(tmp_path, slip)
    history.released(generous(shipped(of)), FIRST.plus(3))
    code, said = said_of(history.write(), capsys)
    assert code == 1
    assert sentence in said, said[-3000:]


def _days_of_a_week_in_parallel(patch: pytest.MonkeyPatch) -> None:
    scope_of = accounts.scope_of
    patch.setattr(
        accounts,
        "scope_of",
        lambda unit, block: (
            f"{block.service_date}" if unit == "card_week" else scope_of(unit, block)
        ),
    )


def _delta_of_the_worst_draw(patch: pytest.MonkeyPatch) -> None:
    add = accounts.Loss.__add__
    patch.setattr(
        accounts.Loss,
        "__add__",
        lambda loss, other: replace(add(loss, other), delta=max(loss.delta, other.delta)),
    )


def _epsilon_rounded_down(patch: pytest.MonkeyPatch) -> None:
    exact = product_card.epsilon_of
    patch.setattr(product_card, "epsilon_of", lambda loss: (exact(loss) or 0) - Fraction(1, 10**6))


def _burned_draws_not_stated(patch: pytest.MonkeyPatch) -> None:
    stated_charges = product_card.stated_charges
    patch.setattr(product_card, "stated_charges", lambda *asked: stated_charges(*asked)[-1:])


def _charged_by_another_ledger(patch: pytest.MonkeyPatch) -> None:
    stated_charges = product_card.stated_charges
    patch.setattr(
        product_card,
        "stated_charges",
        lambda *asked: [c | {"entry_sha256": "0" * 64} for c in stated_charges(*asked)],
    )


def _window_one_week_short(patch: pytest.MonkeyPatch) -> None:
    most_spent = stored_accounts._most_spent
    patch.setattr(stored_accounts, "_most_spent", lambda rows, weeks: most_spent(rows, weeks - 1))


def _window_without_its_first_week(patch: pytest.MonkeyPatch) -> None:
    most_spent = stored_accounts._most_spent
    patch.setattr(
        stored_accounts,
        "_most_spent",
        lambda rows, weeks: most_spent(dict(sorted(rows.items())[1:]) or rows, weeks),
    )


def _burning_gives_back(patch: pytest.MonkeyPatch) -> None:
    """A card states its account without this release's latest draw."""
    before_and_after = product_card._before_and_after

    def less(spent: Any, posting: Any) -> Any:
        fewer = (spent.rho_nano or 0) - (posting.rho_nano or 0)
        is_first = fewer < (posting.rho_nano or 0)
        return before_and_after(spent if is_first else replace(spent, rho_nano=fewer), posting)

    patch.setattr(product_card, "_before_and_after", less)


SLIPS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str, str]] = {
    "days of a week": (
        _days_of_a_week_in_parallel,
        "opal",
        "card_week: rho 0.083333333 stated, 0.583333331 computed",
    ),
    "delta": (
        _delta_of_the_worst_draw,
        "opal_2017",
        "trip: delta 0.000000103077715 stated, 0.000000163608455 computed",
    ),
    "epsilon": (
        _epsilon_rounded_down,
        "opal",
        "card_day: epsilon at delta 1e-6 1.939869 stated, 1.9",
    ),
    "entries": (
        _charged_by_another_ledger,
        "opal",
        "a charge is stated by an entry that the export does not hold",
    ),
    "burned draws": (_burned_draws_not_stated, "opal", "1 draws stated, 2 charged in the export"),
    "a window one week short": (
        _window_one_week_short,
        "opal",
        "card, 2015-W33..2016-W30: 52 weeks stated, 51 computed",
    ),
    "a window that forgets a week": (
        _window_without_its_first_week,
        "opal",
        "card, 2015-W32..2016-W30, all: rho 1.166666662 stated, 1.749999993 computed",
    ),
    "a refund": (
        _burning_gives_back,
        "opal",
        "card_day, 2016-07-25, all: rho 0.083333333 stated, 0.166666666 computed",
    ),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_of_the_accounts_is_named(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plant, of, sentence = SLIPS[name]
    plant(monkeypatch)
    history, programme = History(tmp_path), generous(shipped(of))
    history.released(programme, FIRST.plus(2))
    history.burned(programme, FIRST.plus(3))
    history.released(programme, FIRST.plus(3))
    code, said = said_of(history.write(), capsys)
    assert code == 1
    assert sentence in said, said[-3000:]


# --- cards that were edited by hand ---


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Weeks that carry the year along: the second one drawn twice, and then corrected."""
    history = History(tmp_path_factory.mktemp("honest"))
    programme = shipped("opal_sums")
    history.released(programme, FIRST.plus(1))
    history.burned(programme, FIRST.plus(2))
    history.released(programme, FIRST.plus(2))
    history.released(generous(programme), FIRST.plus(2), 1)
    history.write()
    return history


def _put(value: object, *path: str | int) -> Edit:
    def edit(card: Any) -> None:
        for step in path[:-1]:
            card = card[step]
        card[path[-1]] = value

    return edit


def _gone(*path: str | int) -> Edit:
    def edit(card: Any) -> None:
        for step in path[:-1]:
            card = card[step]
        del card[path[-1]]

    return edit


def _line(part: str, unit: str, **changes: object) -> Edit:
    def edit(card: Any) -> None:
        (line,) = (told for told in card[part] if told["unit"] == unit)
        line.update(changes)

    return edit


def _all_larger_noise(card: Any) -> None:
    for draw in card["draws"]:
        draw["scale"] = str(2 * Fraction(draw["scale"]))


def _without_correction(card: Any) -> None:
    """State the account as it was before a correction."""
    (line,) = (told for told in card["cumulative"] if told["unit"] == "card")
    step = Fraction(line["rho_after"]) - Fraction(line["rho_before"])
    for name in ("before", "after"):
        line[f"rho_{name}"] = f"{float(Fraction(line[f'rho_{name}']) - step):.9f}"


_NOTHING_SPENT = {
    f"{part}_{moment}": "0"
    for part in ("epsilon", "rho", "delta")
    for moment in ("before", "after")
}
_PLACES = ("terms", "tables", "places")
EDITS: dict[str, tuple[Edit, int, str]] = {
    "nothing": (lambda _: None, 0, "3 cards agree with their terms and the ledger"),
    "a scale stated twice as large": (
        _all_larger_noise,
        1,
        "trip, 2016-07-18/bus/b0, all: rho 0.067202126 stated, 0.016800532 computed",
    ),
    "a smaller error": (
        _put(1.5, "draws", 0, "standard_deviation"),
        1,
        "on_time: errors [1.5, ",
    ),
    "a narrower half": (_put(2, "draws", 0, "half_width_90"), 1, "on_time: errors ["),
    "a draw that died, left out": (
        _put(0, "burned_draws"),
        1,
        "0 burned draws stated, 1 charged",
    ),
    "a bound that is in force": (
        _put("every record", "guarantee", "counted", "places"),
        1,
        "by the terms, and the guarantee says every record",
    ),
    "noise that nobody draws": (
        _put("1" + 50 * "0", "draws", 0, "scale"),
        2,
        "a scale is above 262144, which is never drawn",
    ),
    "another noise": (_put("discrete_laplace", "draws", 0, "noise"), 1, "card_day: epsilon inf"),
    "unknown noise": (_put("gaussian", "draws", 0, "noise"), 2, "gaussian of scale"),
    "no noise": (_put("0", "draws", 0, "scale"), 2, "of scale 0 and threshold"),
    "a sensitivity": (
        _put(1, "draws", 0, "sensitivity", "trip", "l2_squared"),
        1,
        "trip, on_time: l1 and l2^2 [4, 1] stated, [4, 8] computed",
    ),
    "unbounded": (
        _gone("terms", "tables", "on_time", "bounded"),
        1,
        "card_day: rho 0.12",
    ),
    "a smaller bound": (
        _put(5, "terms", "tables", "on_time", "records_at_most"),
        1,
        "card_day, on_time: l1 and l2^2 [6, 36] stated, [5, 25] computed",
    ),
    "another limit": (
        _put(1, *_PLACES, "limits", 0, "at_most"),
        1,
        "card_day, places: l1 and l2^2 [6144, 12582912] stated, [6144, 6291456] computed",
    ),
    "fewer weeks held": (_put([1024], *_PLACES, "year_to_date", "multiples"), 2, "1 weeks are he"),
    "smaller multiples": (
        _put([1024, 0, 0], *_PLACES, "year_to_date", "multiples"),
        1,
        "card, places: l1 and l2^2 [7488, ",
    ),
    "days not held": (
        _put(["2016-07-04"], *_PLACES, "year_to_date", "not_held"),
        1,
        "card_day, 2016-07-04, entry 7 (1 of 1 accounts): rho ",
    ),
    "taps for trips": (_put("pairs of taps", "terms", "records"), 1, "trip, on_time: l1 and l2^2"),
    "unknown records": (_put("people", "terms", "records"), 2, "records are people, of which"),
    "a day less": (
        _gone("service_days", 0),
        1,
        "card_day, 2016-07-18, after: rho 0.249046094 stated, 0.124523047 computed",
    ),
    "a mode less": (
        _gone("terms", "modes", 0),
        1,
        "trip, 2016-07-04/bus/b0, entry 7 (1 of 21 accounts): rho ",
    ),
    "two tables as one": (
        _put([["on_time", "on_location"]], "terms", "joint"),
        1,
        "card_day, on_location: l1 and l2^2 [6, 36] stated, [12, 42] computed",
    ),
    "two tables of other noise as one": (
        _put([["on_time", "on_time_location"]], "terms", "joint"),
        2,
        "on_time and on_time_location are joined, and differ",
    ),
    "a draw left out": (_gone("draws", 0), 2, "draws are not those of the tables"),
    "rho": (_put("0.1", "guarantee", "units", "card", "rho"), 1, "card: rho 0.1 stated"),
    "a unit left out": (_gone("guarantee", "units", "trip"), 2, "KeyError 'trip'"),
    "replacing": (
        _put("0.5", "guarantee", "units", "card_day", "rho_replace"),
        1,
        "card_day, replaced: rho 0.5 stated, 0.498092185 computed",
    ),
    "epsilon": (
        _put("2.414044", "guarantee", "units", "card_day", "epsilon_at_delta_1e-6"),
        1,
        "card_day: epsilon at delta 1e-6 2.414044 stated, 2.41404",
    ),
    "draws": (_gone("charges", 0), 1, "1 draws stated, 2 charged in the export"),
    "an account": (
        _line("cumulative", "card", rho_before="0.9", rho_after="1.1"),
        1,
        "card, ever, after: rho 1.1 stated",
    ),
    "an earlier week left out of an account": (
        _without_correction,
        1,
        "card, ever, all: rho ",
    ),
    "a window": (_line("windows", "card", rho="1"), 1, "card, 2015-W31..2016-W29, all: rho 1 sta"),
    "an empty window": (
        _line("windows", "card", window="2014-W01..2014-W52", rho="0", epsilon="0"),
        1,
        "card, 2014-W01..2014-W52: rho 0 stated, more computed",
    ),
    "a short window": (
        _line("windows", "card", window="2016-W29..2016-W29"),
        1,
        "card, 2016-W29..2016-W29: 52 weeks stated, 1 computed",
    ),
    "no windows": (
        _put([], "windows"),
        1,
        "card: 0 lines of the most spent 52 weeks stated, 1 computed",
    ),
    "a window stated twice": (
        lambda card: card["windows"].append(card["windows"][0]),
        1,
        "card: 2 lines of the most spent 52 weeks stated, 1 computed",
    ),
    "an account left out": (
        lambda card: card.update(cumulative=card["cumulative"][1:]),
        1,
        ": 0 lines of its most spent account stated, 1 computed",
    ),
    "an account that it does not touch": (
        _line("cumulative", "card_day", scope="2014-01-01", **_NOTHING_SPENT),
        1,
        "card_day, 2014-01-01: an account stated that the release does not touch",
    ),
    "another entry": (
        _put("0" * 64, "ledger", "head_sha256"),
        1,
        "is not the one that the card names",
    ),
    "another plan": (_put("0", "plan_sha256"), 1, "no draw charged in the export under the card"),
    "no terms": (_gone("terms"), 2, "does not hold every term"),
    "a number without an end": (_put("1e999999999", "draws", 0, "scale"), 2, "is no number"),
}


@pytest.mark.some(20)
@pytest.mark.parametrize("name", EDITS)
def test_a_card_edited_by_hand_is_named(
    name: str, honest: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit, expected, sentence = EDITS[name]
    cards = copy.deepcopy(honest.cards)
    edit(cards[f"opal_sums/{FIRST.plus(2)}/r0"])
    for number, card in enumerate(cards.values()):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}/release_card.json").write_text(json.dumps(card))
    code, said = said_of([str(tmp_path), *honest.write()[1:]], capsys)
    assert sentence in said, said[-3000:]
    assert code == expected


def test_an_account_that_a_card_leaves_out_is_named_by_the_card_alone(
    honest: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (card, *_) = copy.deepcopy([*honest.cards.values()])
    card["cumulative"] = [line for line in card["cumulative"] if line["unit"] != "card"]
    (tmp_path / "card.json").write_text(json.dumps(card))
    code, said = said_of([str(tmp_path / "card.json")], capsys)
    assert code == 1
    assert "card: 0 lines of its most spent account stated, 1 computed" in said


@pytest.mark.parametrize("are_whole", [True, False])
def test_an_account_that_is_not_the_most_spent_is_named(*, are_whole: bool) -> None:
    """Its own sums are right, and another that the release touches has lost more."""
    one = verify_losses.Loss(None, Fraction(1, 4), Fraction(0))
    days = [("card_day", f"2016-07-0{n}") for n in (4, 5, 6)]
    weeks = (0, 0)
    book = [
        verify_losses.Charge(1, "opal/2016-W27/r0", "a", "f", weeks, 1, dict.fromkeys(days, one)),
        verify_losses.Charge(2, "opal/2016-W27/r1", "b", "f", weeks, 1, {days[1]: one}),
    ]

    def said(scope: str, before: str, after: str) -> list[str]:
        amounts = {"rho_before": before, "rho_after": after}
        amounts |= {"epsilon_before": None, "epsilon_after": None}
        amounts |= {"delta_before": "0", "delta_after": "0"}
        card = {"cumulative": [{"unit": "card_day", "scope": scope, **amounts}], "windows": []}
        release = SimpleNamespace(card=card, rounded=dict.fromkeys(days, one))
        return list(
            verify_losses.of_accounts(
                cast("verify_losses.Release", release), [book], are_whole=are_whole
            )
        )

    assert said("2016-07-05", "0.25", "0.5") == []
    assert said("2016-07-04", "0", "0.25") == [
        "card_day, 2016-07-04: stated as the most spent account, card_day, 2016-07-05 lost more"
    ]


def test_a_correction_left_out_of_its_own_account_is_named_by_the_cards_alone(
    honest: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cards = copy.deepcopy(honest.cards)
    _without_correction(cards[f"opal_sums/{FIRST.plus(2)}/r1"])
    paths = [tmp_path / f"{number}.json" for number in range(len(cards))]
    for path, card in zip(paths, cards.values(), strict=True):
        path.write_text(json.dumps(card))
    code, said = said_of([*map(str, paths)], capsys)
    assert code == 1
    assert f"opal_sums/{FIRST.plus(2)}/r1: card, ever, all: rho " in said


def test_an_export_whose_entries_were_altered_is_named(
    honest: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cards, option, export = honest.write()
    lines = (Path(export) / "entries.jsonl").read_text().splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if '\\"kind\\":\\"reserved\\"' in line)
    entry = json.loads(lines[number])
    record = json.loads(entry["record"])
    (posting,) = (told for told in record["body"]["postings"] if told[0] == "card")
    posting[3] -= 1
    lines[number] = json.dumps({**entry, "record": json.dumps(record)}) + "\n"
    altered = tmp_path / "entries.jsonl"
    altered.write_text("".join(lines))
    code, said = said_of([cards, option, str(altered)], capsys)
    assert code == 1
    assert f"entry {number + 1} of the export does not continue the chain" in said
    assert f"{FIRST.plus(1)}/r0: card, ever, entry " in said
    assert said_of([cards, option, str(tmp_path / "nothing")], capsys)[0] == 2


def test_a_burned_draw_of_another_plan_is_taken_at_what_the_ledger_charged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = History(tmp_path)
    programme = generous(shipped("opal"))
    mechanism = replace(programme.mechanism, amount=programme.mechanism.amount / 2)
    history.burned(replace(programme, mechanism=mechanism), FIRST)
    card = history.released(programme, FIRST)
    arguments = history.write()
    assert said_of(arguments, capsys)[0] == 0
    assert said_of(arguments[:1], capsys)[0] == 0
    (posting,) = (told for told in card["charges"][0]["postings"] if told[:2] == ["card", "ever"])
    posting[3] *= 3
    path = next((tmp_path / "public").rglob("release_card.json"))
    path.write_text(json.dumps(card))
    code, said = said_of([str(path)], capsys)
    assert code == 1
    assert "card, ever, all: rho 0.874999994 stated" in said


# --- as anybody runs it ---


def _run(*arguments: object) -> tuple[int, str]:
    source = Path(verify_losses.__file__)
    command = [sys.executable, "-I", "-S", str(source), *map(str, arguments)]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        command, capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def test_it_imports_pythons_library_alone() -> None:
    nodes = list(ast.walk(ast.parse(Path(verify_losses.__file__).read_text())))
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named += [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]
    assert "fractions" in named
    assert {name.partition(".")[0] for name in named} <= sys.stdlib_module_names


@pytest.mark.long
def test_published_packages_agree_with_python_alone_and_with_the_ledger(
    copied_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public, export = copied_home / "public", tmp_path / "export"
    carried = list(public.rglob("verify_losses.py"))
    assert [path.read_bytes() for path in carried] == [
        Path(verify_losses.__file__).read_bytes()
    ] * 2
    assert main(["ledger", "export", str(export)]) == 0
    capsys.readouterr()
    code, said = _run(public, "--ledger", export)
    assert code == 0, said
    assert "2 cards agree with their terms and the ledger" in said


def test_a_card_made_before_its_terms_were_stated_is_said_to_be_so(tmp_path: Path) -> None:
    unpacked(OF_0_1_0, tmp_path)
    code, said = _run(tmp_path)
    assert code == 2
    assert "does not hold every term, because it was made before cards did" in said


def test_a_pipe_in_the_place_of_a_card_is_named_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "release_card.json")
    code, said = _run(tmp_path)
    assert code == 2
    assert "release_card.json: is no ordinary file, so it was not opened" in said


def test_a_pipe_in_the_place_of_entries_is_named_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "entries.jsonl")
    (tmp_path / "release_card.json").write_text("{}")
    code, said = _run(tmp_path, "--ledger", tmp_path)
    assert code == 2
    assert "entries.jsonl is no ordinary file, so it was not opened" in said


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"terms": 1}', "[" * 10**5])
def test_what_is_no_card_is_said_to_be_none(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "release_card.json").write_text(content)
    code, said = said_of([str(tmp_path)], capsys)
    assert code == 2
    assert "release_card.json: " in said
    assert said_of([str(tmp_path / "none")], capsys)[0] == 2
