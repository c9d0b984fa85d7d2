"""A promise that changes strands no week: a sealed one keeps the text that it is bound to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from made_homes import MadeHome
from small_deployment import WEEK, Deployment

from turnstile.errors import NotApproved, ProgrammeError
from turnstile.operations.airflow_now import AirflowNow
from turnstile.operations.budget_page.page import BudgetPage
from turnstile.operations.budget_page.plan_view import cost_in_words
from turnstile.operations.people.approval import Answer, record_answer
from turnstile.operations.people.correction_question import revision_cost, revision_question
from turnstile.pipeline.context import open_release
from turnstile.pipeline.steps import step_named
from turnstile.programme.loading import bound_programme, load_programme, parse_programme
from turnstile.release import carried_weeks
from turnstile.settings import Settings, system_clock

OF_TWO = "required: true, persons: 2, not_the_starter: false"
ROOT = Path(__file__).parents[2]
AFTER = "2016-W31"
Turnstile = Callable[..., int]


def public_bytes(deployment: Deployment, programme: str = "opal") -> dict[str, str]:
    """Every public file of the first week, by its digest."""
    files = sorted(
        path for path in (deployment.public / programme / WEEK).rglob("*") if path.is_file()
    )
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def change_the_form(deployment: Deployment) -> str:
    """State the form of cards, or another one than is stated; return the text before."""
    path = deployment.include / "programmes/opal.yaml"
    text = path.read_text()
    without = "".join(line for line in text.splitlines(keepends=True) if "_form:" not in line)
    stated = "  missing_day: refuse\n"
    assert stated in without
    path.write_text(without.replace(stated, f"{stated}  card_form: {{kind: digits, length: 16}}\n"))
    return text


@pytest.fixture
def site(
    deployment: Deployment, public_week: MadeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    """A deployment with a public week of opal, and the files of the next."""
    assert deployment.home  # which is left for this one
    home_copy = public_week.copy(tmp_path / "own")
    home_copy.enter(monkeypatch)
    return Deployment(home_copy.home, home_copy.include)


def test_a_sealed_week_is_issued_again_under_its_text_and_the_next_under_the_new_one(
    site: Deployment, turnstile: Turnstile
) -> None:
    before = public_bytes(site)
    digest = load_programme("opal", site.include).digest
    head = site.ledger.head()
    earlier = site.include / f"programmes/earlier/opal.{digest[:12]}.yaml"
    earlier.parent.mkdir(exist_ok=True)
    earlier.write_text(change_the_form(site))
    assert turnstile("run", "opal", "--week", WEEK) == 0
    assert public_bytes(site) == before
    assert site.ledger.head() == head
    assert turnstile("run", "opal", "--week", AFTER) == 0
    card = json.loads((site.public / f"opal/{AFTER}/r0/release_card.json").read_text())
    assert card["guarantee"]["identity"].startswith("One card is one number of 16 digits")
    assert turnstile("ledger", "verify") == 0
    assert turnstile("package", "verify", site.public / f"opal/{AFTER}/r0") == 0


def test_a_correction_is_asked_about_at_the_price_of_the_text_that_it_would_be_drawn_by(
    site: Deployment,
) -> None:
    """People were shown the price of the text that the week had been sealed under."""
    path = site.include / "programmes/opal.yaml"
    text, digest = path.read_text(), load_programme("opal", site.include).digest
    before = revision_cost(open_release("opal", WEEK, 0))
    assert 'rho: "1/12"' in text
    earlier = site.include / f"programmes/earlier/opal.{digest[:12]}.yaml"
    earlier.parent.mkdir(exist_ok=True)
    earlier.write_text(text)
    path.write_text(text.replace('rho: "1/12"', 'rho: "1/24"'))
    sealed = open_release("opal", WEEK, 0)
    cost = cost_in_words(open_release("opal", WEEK, 1).plan)
    assert revision_cost(sealed) == cost != before
    assert cost in revision_question(sealed)
    assert before not in revision_question(sealed)


def rho_of(deployment: Deployment, programme: str, week: str, unit: str) -> float:
    card = json.loads((deployment.public / f"{programme}/{week}/r0/release_card.json").read_text())
    return float(card["guarantee"]["units"][unit]["rho"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "digits", "unit", "before", "after"),
    [
        ("itms", "c57c4a93eaec", "bus_day", 0.31, 0.1),
        pytest.param(*("opal", "729415fa846f", "card_day", 0.125, 1 / 12), marks=pytest.mark.long),
    ],
)
def test_a_home_of_the_shipped_text_before_re_issues_its_weeks_and_goes_on_with_smaller_amounts(
    deployment: Deployment,
    turnstile: Turnstile,
    name: str,
    digits: str,
    unit: str,
    before: float,
    after: float,
) -> None:
    file = deployment.include / f"programmes/{name}.yaml"
    shipped = deployment.include / f"programmes/earlier/{name}.{digits}.yaml"
    new, old = file.read_text(), shipped.read_text()
    if name == "opal":  # with the few slots of this deployment: another text, of another digest
        old = old.replace("slot_minutes: 15", "slot_minutes: 240")
    file.write_text(old)
    digest = load_programme(name, deployment.include).digest
    weeks = f"{WEEK}:{AFTER}"
    assert turnstile("sample", name, "--weeks", weeks, "--rows", 20_000, "--seed", 3) == 0
    assert turnstile("run", name, "--week", WEEK) == 0
    public, head = public_bytes(deployment, name), deployment.ledger.head()
    kept = shipped.with_name(f"{name}.{digest[:12]}.yaml")
    assert (kept == shipped) == (name == "itms")
    kept.write_text(old)
    file.write_text(new)
    assert turnstile("run", name, "--week", WEEK) == 0
    assert (public_bytes(deployment, name), deployment.ledger.head()) == (public, head)
    assert turnstile("run", name, "--week", AFTER) == 0
    assert rho_of(deployment, name, WEEK, unit) == pytest.approx(before)
    assert rho_of(deployment, name, AFTER, unit) == pytest.approx(after)
    assert turnstile("ledger", "verify") == 0


def test_without_that_text_a_sealed_week_is_refused_and_says_what_differs(
    site: Deployment, turnstile: Turnstile, capsys: pytest.CaptureFixture[str]
) -> None:
    before = public_bytes(site)
    change_the_form(site)
    capsys.readouterr()
    assert turnstile("run", "opal", "--week", WEEK) != 0
    assert "source.card_form" in capsys.readouterr().err
    assert public_bytes(site) == before


def test_an_earlier_text_under_another_ones_name_is_not_taken(deployment: Deployment) -> None:
    file = deployment.include / "programmes/opal.yaml"
    digest = load_programme("opal", deployment.include).digest
    other = digest[::-1]
    kept = deployment.include / f"programmes/earlier/opal.{other[:12]}.yaml"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(file.read_text())
    assert bound_programme("opal", other, deployment.include) is None
    programme = bound_programme("opal", digest, deployment.include)
    assert programme is not None
    assert programme.digest == digest


def test_every_earlier_text_that_is_shipped_reads_and_bears_its_digest() -> None:
    for file in (ROOT / "include/programmes/earlier").glob("*.yaml"):
        name, digest = file.stem.split(".")
        assert parse_programme(file.read_text(), f"{name}.yaml").digest.startswith(digest)


def test_a_sealed_week_is_published_though_periods_have_another_length_by_now(
    site: Deployment, turnstile: Turnstile, capsys: pytest.CaptureFixture[str]
) -> None:
    before = public_bytes(site)
    file = site.include / "programmes/opal.yaml"
    digest = load_programme("opal", site.include).digest
    kept = site.include / f"programmes/earlier/opal.{digest[:12]}.yaml"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(file.read_text())
    stated = 'weekly_at: "10:00"'
    site.edit("opal", stated, f"{stated}, period_days: 14, first_day: 2016-08-01")
    assert turnstile("run", "opal", "--week", WEEK) == 0
    assert public_bytes(site) == before
    assert turnstile("run", "opal", "--week", AFTER) == 2  # negative control: nothing is sealed
    assert "ask for 14 days" in capsys.readouterr().err


def test_a_sealed_week_goes_on_whatever_its_caps_are_held_to_by_now(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it cost is charged; a week that is not sealed is held to them."""
    cap = 'window_weeks: 52, rho: "56"'
    deployment.edit("opal_sums", f'{cap}, delta: "1e-6"', f"{cap}, relation: replace")
    with monkeypatch.context() as before:
        before.setattr(carried_weeks, "under_add_remove", lambda cap: cap)
        deployment.make_up_snapshot("opal_sums")
        release = open_release("opal_sums", WEEK)
        attempt = release.ledger.reserve(release.request(release.statement))
        release.ledger.begin_draw(attempt.attempt_id, attempt.bindings)
        release.ledger.seal(attempt.attempt_id, "0" * 64)
    assert step_named("plan")("opal_sums", WEEK) == attempt.plan_digest
    with pytest.raises(ProgrammeError, match="above its cap of 14"):
        step_named("plan")("opal_sums", AFTER)


def losses_shown(page: str) -> set[str]:
    """What a page of a week says that it costs each unit."""
    _, says_it, after = page.partition("What this week costs one unit")
    assert says_it
    return set(after.partition("</table>")[0].replace("<tbody>", "").splitlines())


def test_of_an_earlier_text_the_tables_hold_and_of_the_file_who_approves(
    assessed: Deployment,
) -> None:
    file = assessed.include / "programmes/itms.yaml"
    digest = load_programme("itms", assessed.include).digest
    kept = assessed.include / f"programmes/earlier/itms.{digest[:12]}.yaml"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(file.read_text())
    smaller = ('epsilon: "8"\n', 'epsilon: "7"\n')
    renamed = (("speed: ", "pace: "), ("speed/", "pace/"))
    for old, new in (smaller, *renamed, ("required: false", OF_TWO)):
        assessed.edit("itms", old, new)
    (assessed.include / "people.yaml").write_text("release_officer: [ada, olga]\n")
    page = BudgetPage(Settings.from_environment(), system_clock)
    desk = page.embargoed("itms", WEEK, AirflowNow())
    assert "No week before it is public" in desk
    for person in ("ada", "olga"):
        with pytest.raises(NotApproved, match="of 2 approvals"):
            step_named("approve")("itms", WEEK)
        record_answer(open_release("itms", WEEK), Answer(True, person, "looks right"), frozenset())
    for step in ("approve", "publish"):
        step_named(step)("itms", WEEK)
    assert " by day and time" in page.week("itms", WEEK, AirflowNow())
    assert losses_shown(desk) == losses_shown(page.week("itms", WEEK, AirflowNow()))
    kept.unlink()  # nobody knows that text any more: what both have is shown
    assert " by day and time" in page.week("itms", WEEK, AirflowNow())
