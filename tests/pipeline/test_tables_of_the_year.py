"""Tables that carry their year along: from raw files to the package, over skipped and mended weeks.

W30, W31 and W33 are released, W31 is corrected, then W34: so W34 carries W30, the corrected W31 and
W33 along, and W33 the first W31. Programme `opal_sums` with few cells. How weeks are read from
draws is tested without a pipeline in tests/estimates/test_year_to_date.py.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from deployment_fixtures import deployment_in
from numpy.typing import NDArray
from scipy.stats import chi2
from small_deployment import Deployment
from worked_examples import run_examples

from turnstile.cli import main
from turnstile.counting.exact_store import load_exact
from turnstile.privacy.accounts import loss_by_unit, losses
from turnstile.privacy.units import ProtectionUnit
from turnstile.privacy.year_to_date import UNIT, column_squared, multiples
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.publishing.carried.sums import Package
from turnstile.release.carried_weeks import rho_over_weeks, with_later_draws
from turnstile.release.plan import make_plan
from turnstile.release.sealed import Artefact, decode
from turnstile.service_calendar import ServiceWeek

Cli = Callable[..., int]
NAME, TABLE = "opal_sums", "places"
KEYS = ("2016-W30/r0", "2016-W31/r0", "2016-W31/r1", "2016-W33/r0", "2016-W34/r0")
IN_LAST = (KEYS[0], KEYS[2], KEYS[3], KEYS[4])
ALPHA = 1e-9


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a deployment with all five releases."""
    folder = tmp_path_factory.mktemp("year")
    with pytest.MonkeyPatch.context() as environment:
        deployment = deployment_in(folder, environment)
        deployment.edit(NAME, "slot_minutes: 15", "slot_minutes: 240")
        for week in ("2016-W30", "2016-W31", "2016-W33", "2016-W34", "2016-W35"):
            assert main(["sample", "opal", "--weeks", week, "--rows", "3000", "--seed", "3"]) == 0
        for week in ("2016-W30", "2016-W31", "2016-W33"):
            assert main(["run", NAME, "--week", week]) == 0
        file = min(deployment.landing("opal", "2016-W31").glob("*.csv"))
        file.write_text(file.read_text() + file.read_text().splitlines()[-1].replace("3", "4", 1))
        again = ["run", NAME, "--week", "2016-W31", "--revision", "1", "--reason", "a late file"]
        assert main(again) == 0
        assert main(["run", NAME, "--week", "2016-W34"]) == 0
    return folder


@pytest.fixture
def year(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """A copy of it, entered."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, symlinks=True)
    year_copy = Deployment(tmp_path / "var", tmp_path / "include")
    year_copy.enter(monkeypatch)
    return year_copy


def artefact(deployment: Deployment, key: str) -> Artefact:
    (file,) = (deployment.home / "embargoed" / NAME / key).glob("sealed-*.parquet")
    return decode(file.read_bytes())


def exact(deployment: Deployment, key: str) -> dict[date, NDArray[np.int64]]:
    """True counts of the table by day, as only a test may read them."""
    folder = deployment.home / "private" / NAME / key
    tables = load_exact(folder, (folder / "exact").read_text())
    return {
        table.service_date: table.reveal_to_mechanism()
        for table in tables
        if table.table == TABLE and table.service_date is not None
    }


def age(key: str, other: str) -> int:
    later, earlier = (ServiceWeek.parse(text.partition("/")[0]).monday for text in (key, other))
    return (later - earlier).days // 7


def fits(deviates: NDArray[np.float64]) -> bool:
    """Whether numbers are standard normal deviates, by their squares; false alarm 1e-9."""
    low, high = chi2.ppf((ALPHA / 2, 1 - ALPHA / 2), deviates.size)
    return bool(low < float(np.sum(deviates**2)) < high)


@pytest.mark.long
def test_a_draw_holds_the_exact_counts_of_the_weeks_that_its_bytes_name_and_fresh_noise(
    year: Deployment,
) -> None:
    carried = {key: artefact(year, key).carried for key in KEYS}
    assert carried == {
        KEYS[0]: (),
        KEYS[1]: (f"{NAME}/{KEYS[0]}",),
        KEYS[2]: (f"{NAME}/{KEYS[0]}",),
        KEYS[3]: (f"{NAME}/{KEYS[0]}", f"{NAME}/{KEYS[1]}"),
        KEYS[4]: tuple(f"{NAME}/{key}" for key in IN_LAST[:3]),
    }
    programme = load_programme(NAME, year.include)
    plan = make_plan(programme, load_domain(programme, year.include), ServiceWeek(2016, 34))
    scale = next(float(event.scale) for event in plan.events if event.table == TABLE)
    truth = {key: exact(year, key) for key in IN_LAST}
    drawn = [table for table in artefact(year, KEYS[4]).tables if table.table == TABLE]
    whole, week_only = [], []
    for drawn_table in drawn:
        assert drawn_table.service_date is not None
        expected = np.zeros(drawn_table.values.size, dtype=np.int64)
        for key in IN_LAST:
            weeks = age(KEYS[4], key)
            expected += (
                multiples()[weeks] * truth[key][drawn_table.service_date - timedelta(weeks=weeks)]
            )
        whole.append((drawn_table.values - expected) / scale)
        week_only.append(
            (drawn_table.values - UNIT * truth[KEYS[4]][drawn_table.service_date] * 40) / scale
        )
    assert fits(np.concatenate(whole))
    assert not fits(np.concatenate(week_only))  # negative control: another multiple is seen


@pytest.mark.long
def test_the_package_tells_weeks_and_sums_with_errors_that_hold(year: Deployment) -> None:
    folder = year.public / NAME / KEYS[4]
    tables = {
        end: pq.read_table(folder / f"data/{TABLE}{end}.parquet").to_pandas()
        for end in ("", "_13_weeks", "_year_to_date")
    }
    truth = {key: exact(year, key) for key in IN_LAST}
    week_counts = np.concatenate(list(truth[KEYS[4]].values()))
    year_sum = np.sum([vector for days in truth.values() for vector in days.values()], axis=0)
    for end, expected in (("", week_counts), ("_13_weeks", year_sum), ("_year_to_date", year_sum)):
        rows = tables[end]
        deviates = (rows["unbiased"] - expected) / rows["unbiased_sd"]
        assert fits(deviates.to_numpy()), end
        assert not fits(4 * deviates.to_numpy()), end  # an error stated too small is seen
        assert np.allclose(rows["value"], np.maximum(rows["unbiased"], 0), atol=0.06)
    sums = tables["_year_to_date"]
    assert set(sums["weeks"]) == {4}
    width = (sums["high_95"] - sums["unbiased"]) / sums["unbiased_sd"]
    assert width.round(2).eq(1.96).all()
    # Four weeks that were drawn alone, seven days each, at the same loss of a card-day:
    alone = float(tables[""]["unbiased_sd"].iloc[0]) * math.sqrt(4 * 7)
    assert float(sums["unbiased_sd"].iloc[0]) < alone


@pytest.mark.long
def test_multiples_of_counts_are_not_added_up_as_if_they_were_counts(
    year: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = year.public / NAME / KEYS[4]
    told = f"{TABLE}: no sums of the column measured with their error here"
    with pytest.raises(ValueError, match=told):
        Package(folder).total(TABLE, column="measured")
    regions = ["package", "regions", str(folder), "--h3", "6", "--table"]
    assert main([*regions, TABLE]) == 2
    assert told in capsys.readouterr().err
    assert main(["estimates", "sum", str(folder), "--table", TABLE]) == 2
    assert "name a drawn one: location, location_slot, slot;" in capsys.readouterr().err
    assert main([*regions, TABLE, "--column", "unbiased"]) == 0
    assert main([*regions, "location"]) == 0
    assert Package(folder).unit(TABLE, "measured").startswith(f"1/{UNIT} trips")
    assert Package(folder).unit("location", "measured") == "trips"
    assert (
        f"Units of `measured`: {TABLE} in 1/{UNIT} trips" in (folder / "docs/GUIDE.md").read_text()
    )
    assert run_examples(folder) == 7


@pytest.mark.long
def test_packages_and_ledger_agree_with_their_own_verifiers(year: Deployment) -> None:
    assert main(["ledger", "verify"]) == 0
    for key in KEYS:
        assert main(["package", "verify", str(year.public / NAME / key)]) == 0
    plan = json.loads((year.public / NAME / KEYS[4] / "plan.json").read_text())
    table_event = next(event for event in plan["events"] if event["table"] == TABLE)
    assert table_event["step"] == UNIT
    assert table_event["carried"][0] == ["2016-08-15", multiples()[1]]


@pytest.mark.long
def test_every_week_is_charged_what_each_draw_holds_of_it(year: Deployment) -> None:
    programme = load_programme(NAME, year.include)
    domain = load_domain(programme, year.include)
    total: dict[tuple[str, str], Fraction] = {}
    for key in KEYS:
        week, _, revision = key.partition("/r")
        plan = make_plan(programme, domain, ServiceWeek.parse(week), revision=int(revision))
        for (unit, scope), loss in losses(plan.events).items():
            assert loss.rho is not None
            total[unit.value, scope] = total.get((unit.value, scope), Fraction(0)) + loss.rho
    spent = {
        (balance.unit.value, balance.scope): balance.spent.rho_nano or 0
        for balance in year.ledger.balance()
    }
    for (unit, scope), rho in total.items():
        if scope != "ever":
            assert 0 <= spent[unit, scope] - rho * 10**9 <= len(KEYS), (unit, scope)
    # A Monday of W30 is in all five draws, one of W34 in the last alone, one of W29 in none of
    # them and is charged all the same: whether it was released decides nothing.
    share = programme.mechanism.amount / 20
    of_table = lambda ages: share * sum(multiples()[n] ** 2 for n in ages) / column_squared()  # noqa: E731
    rest = programme.mechanism.amount - share
    for day, ages, draws in (
        ("2016-07-25", (0, 1, 1, 3, 4), 1),
        ("2016-08-22", (0,), 1),
        ("2016-07-18", (1, 2, 2, 4, 5), 0),
    ):
        expected = of_table(ages) + draws * rest
        assert float(total["card_day", day]) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.long
def test_a_unit_never_loses_more_over_the_year_than_the_programme_states(
    deployment: Deployment,
) -> None:
    programme = load_programme(NAME, deployment.include)
    domain = load_domain(programme, deployment.include)
    first = ServiceWeek(2016, 27)
    lost: dict[tuple[ProtectionUnit, str], Fraction] = {}
    for number in range(52):
        plan = make_plan(programme, domain, first.plus(number))
        for (unit, scope), loss in losses(plan.events).items():
            assert loss.rho is not None
            lost[unit, scope] = lost.get((unit, scope), Fraction(0)) + loss.rho
    days = [rho for (unit, _), rho in lost.items() if unit is ProtectionUnit.CARD_DAY]
    assert max(days) <= programme.mechanism.amount
    assert float(max(days)) == pytest.approx(float(programme.mechanism.amount), rel=1e-5)
    card = lost[ProtectionUnit.CARD, "ever"]
    assert card == rho_over_weeks(programme, plan.events, ProtectionUnit.CARD, 52)
    assert 53 < card <= Fraction(56)
    joint_rho = loss_by_unit(with_later_draws(plan.events))[ProtectionUnit.CARD_DAY].rho
    assert joint_rho == max(days)
    assert loss_by_unit(plan.events)[ProtectionUnit.CARD_DAY].rho != joint_rho  # of this week alone


@pytest.mark.long
@pytest.mark.parametrize(
    ("zone", "pattern", "sentence"),
    [
        ("private", "exact-*", f"carries {NAME}/{KEYS[0]} along, whose exact counts cannot"),
        ("embargoed", "sealed-*", "along of which sealed bytes cannot be read ("),
    ],
)
def test_a_repeated_week_is_re_issued_and_a_lost_state_refuses_before_any_charge(
    year: Deployment, capsys: pytest.CaptureFixture[str], zone: str, pattern: str, sentence: str
) -> None:
    before = (list(year.ledger.entries()), artefact(year, KEYS[4]))
    assert main(["run", NAME, "--week", "2016-W34"]) == 0
    assert artefact(year, KEYS[4]).carried == before[1].carried
    spent = year.spent()
    lost = next((year.home / zone / NAME / KEYS[0]).glob(pattern))
    lost.unlink()
    assert main(["run", NAME, "--week", "2016-W35"]) == 3
    assert sentence in (said := capsys.readouterr().err)
    assert "year_to_date_from 2016-W35" in said
    assert year.spent() == spent
    year.edit(NAME, "year_to_date_from: 2016-W27", "year_to_date_from: 2016-W35")
    is_public = 0 if zone == "private" else 4  # the audit names the sealed bytes that are gone
    assert main(["run", NAME, "--week", "2016-W35"]) == is_public  # and needs nothing of the old
    assert artefact(year, "2016-W35/r0").carried == ()


@pytest.mark.long
def test_weeks_under_another_bound_are_not_carried_along(
    year: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    spent = year.spent()
    year.edit(
        NAME, "trips_at_most: 6, per_cell_at_most: 2", "trips_at_most: 5, per_cell_at_most: 2"
    )
    assert main(["run", NAME, "--week", "2016-W35"]) == 3
    assert "which was made under another promise" in capsys.readouterr().err
    assert year.spent() == spent


@pytest.mark.long
def test_a_withdrawn_week_is_left_out_from_then_on(year: Deployment) -> None:
    words = ["--person", "ada", "--reason", "wrong"]
    assert main(["ledger", "withdraw", f"{NAME}/{KEYS[3]}", *words[2:]]) == 0
    shutil.rmtree(year.public / NAME / KEYS[3])
    assert main(["run", NAME, "--week", "2016-W35"]) == 0
    carried = artefact(year, "2016-W35/r0").carried
    assert carried == tuple(f"{NAME}/{key}" for key in (KEYS[0], KEYS[2], KEYS[4]))


@pytest.mark.long
def test_a_week_under_embargo_is_in_no_later_draw(year: Deployment) -> None:
    assert main(["sample", "opal", "--weeks", "2016-W36", "--rows", "3000", "--seed", "3"]) == 0
    year.edit(NAME, "required: false", "required: true")
    assert main(["run", NAME, "--week", "2016-W35"]) == 3  # sealed, and nobody has said yes
    year.edit(NAME, "required: true", "required: false")
    assert main(["run", NAME, "--week", "2016-W36"]) == 0
    assert artefact(year, "2016-W36/r0").carried == tuple(f"{NAME}/{key}" for key in IN_LAST)


def test_where_the_card_over_the_window_is_the_promise_it_is_refused_with_that_sentence(
    turnstile: Cli, deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("plan", NAME, "--week", "2016-W30") == 0
    deployment.edit(NAME, 'rho: "56"', 'rho: "53"')
    assert turnstile("plan", NAME, "--week", "2016-W30") == 2
    said = capsys.readouterr().err
    assert "lose rho 53.1" in said
    assert "gains at most 1.23, so it is refused" in said
    totals = "{by: [], trips_at_most: 40, per_cell_at_most: 8}"
    carried = totals.replace("}", ", year_to_date_from: 2016-W27}")
    deployment.edit("opal_year", totals, carried)
    deployment.edit("opal_year", 'window_weeks: 52, rho: "1"', 'window_weeks: 52, rho: "16"')
    assert turnstile("plan", "opal_year", "--week", "2016-W30") == 2
    assert "gains at most 1.23, so it is refused" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("trips_at_most: 6, per_cell_at_most: 2, year", "year", "goes with trips_at_most"),
        ("2016-W27}", "2016-07-04}", "is no ISO week"),
        (
            'kind: dense_gaussian\n  unit: card_day\n  rho: "1/8"',
            'kind: dense_laplace\n  unit: card_day\n  epsilon: "1/8"',
            "must be dense_gaussian",
        ),
    ],
)
def test_a_file_that_asks_for_what_cannot_be_is_refused(
    turnstile: Cli,
    deployment: Deployment,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    said: str,
) -> None:
    deployment.edit(NAME, old, new)
    assert turnstile("plan", NAME, "--week", "2016-W30") == 2
    assert said in capsys.readouterr().err
