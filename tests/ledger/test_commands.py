"""`turnstile ledger`: what people see, what scripts read, and exit codes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from ledger_asks import CAPS, CARD, LOSS_MICRO, TRIP, ask, drawn, published, week_number

from conftest import Stores
from turnstile.cli import main
from turnstile.errors import BudgetExceeded
from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.custody.export import verify_export
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import ReleaseKey, Request
from turnstile.operations import airflow_api
from turnstile.operations.airflow_now import AirflowNow
from turnstile.operations.budget_page.page import BudgetPage
from turnstile.operations.watchdog.alerts import of_budget
from turnstile.service_calendar import parse_period
from turnstile.settings import Settings, system_clock

WIDE = (*CAPS[:1], Cap(CARD, epsilon_micro=13 * LOSS_MICRO, window_weeks=52))


@pytest.fixture
def home(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A deployment of its own."""
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path))
    monkeypatch.setenv("TURNSTILE_LEDGER_URL", url)
    monkeypatch.setenv("TURNSTILE_WITNESS", str(tmp_path / "second"))
    return tmp_path


@pytest.fixture
def lived(ledger: Ledger, home: Path) -> Ledger:
    """Three weeks, one of them published."""
    assert home
    for n in range(3):
        drawn(ledger, ask(week_number(n), caps=WIDE))
    ledger.reserve(ask(week_number(3), caps=WIDE))
    return ledger


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run the command; return its exit code and what it printed."""
    code = main(["ledger", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.usefixtures("lived")
class TestTheCommand:
    def test_balance_shows_the_most_spent_account_of_each_unit(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, out, _ = run(capsys, "balance")
        assert code == 0
        lines = out.splitlines()
        assert len(lines) == 4  # head, card for ever, card in its window, trip
        assert "epsilon 36" in lines[2]
        assert "epsilon 52" in lines[2]

    def test_balance_for_scripts_holds_every_amount_and_what_is_left(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, out, _ = run(capsys, "balance", "--all", "--json")
        accounts = json.loads(out)
        window = next(a for a in accounts if a["cap"] and a["cap"]["window_weeks"])
        assert window["spent"]["epsilon_micro"] == 3 * LOSS_MICRO
        assert window["held"]["epsilon_micro"] == LOSS_MICRO
        assert window["left"]["epsilon_micro"] == 9 * LOSS_MICRO
        assert len(accounts) == 4 + 2

    def test_entries_are_listed_in_order_or_of_one_release(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, out, _ = run(capsys, "entries", "--json")
        facts = [json.loads(line) for line in out.splitlines()]
        assert [fact["sequence"] for fact in facts] == list(range(1, 9))
        _, out, _ = run(capsys, "entries", "--key", "opal/2016-W31/r0")
        assert [line.split()[2] for line in out.splitlines()] == ["reserved", "draw_begun"]

    def test_a_reason_of_several_lines_is_one_entry_and_turns_no_text_around(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        reason = "wrong files\n     9  2026-01-01  published  \u202eopal \x1b[2J"
        assert run(capsys, "burn", "opal/2016-W31/r0", "--reason", reason)[0] == 0
        _, out, _ = run(capsys, "entries")
        assert len(out.splitlines()) == len(run(capsys, "entries", "--json")[1].splitlines())
        assert "wrong files\\u000a     9" in out
        assert out.replace("\n", "").isprintable()

    def test_forecast_names_the_week_in_which_a_cap_is_reached(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        code, out, _ = run(capsys, "forecast", "--plot", str(tmp_path / "plot.svg"))
        assert code == 0
        card, trip = (line for line in out.splitlines() if "opal_cards" in line)
        assert f" in {week_number(13)} " in card
        assert " 208 " in card  # 52 weeks of epsilon 4
        assert "never at this rate" in trip
        picture = ET.parse(tmp_path / "plot.svg").getroot()  # noqa: S314 - our own
        assert picture.tag.endswith("svg")
        assert "reached in" in (tmp_path / "plot.svg").read_text()

    def test_forecast_for_scripts_agrees_with_what_the_ledger_then_refuses(
        self, capsys: pytest.CaptureFixture[str], lived: Ledger
    ) -> None:
        _, out, _ = run(capsys, "forecast", "--json")
        card = next(forecast for forecast in json.loads(out) if forecast["cap"]["unit"] == "card")
        for n in range(4, 13):
            lived.reserve(ask(week_number(n), caps=WIDE))
        assert card["reached_in"] == week_number(13)
        assert main_code_of(lambda: lived.reserve(ask(card["reached_in"], caps=WIDE))) == 3

    def test_verify_is_0_for_an_intact_ledger(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(capsys, "verify")[0] == 0

    def test_verify_is_4_and_names_the_entry_of_an_altered_one(
        self, capsys: pytest.CaptureFixture[str], stores: Stores, url: str
    ) -> None:
        stores.tamper(url, "UPDATE entry SET record = replace(record, 'opal', 'opaI')")
        code, out, err = run(capsys, "verify", "--json")
        assert code == 4
        assert {k: v for k, v in json.loads(out)[1].items() if k != "problem"} == {
            "check": "chain",
            "entry": 2,
        }
        assert "entry 1" in err

    def test_weeks_of_an_airflow_that_is_down_say_what_works_without_it(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(airflow_api, "_PAUSE_S", 0)
        code, out, error = run(capsys, "weeks", "--airflow", "http://127.0.0.1:9")
        assert (code, out) == (1, "")
        assert error.endswith("; without --airflow this says what the runs reported themselves\n")

    def test_weeks_have_the_states_and_sentences_of_the_page(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        page = BudgetPage(Settings.from_environment(), system_clock)
        (opal,) = (programme for programme in page.programmes() if programme.name == "opal")
        now = page.now_of(opal, AirflowNow())
        code, out, _ = run(capsys, "weeks", "--programme", "opal")
        assert code == 0
        first, answer, *weeks = out.splitlines()
        assert first.startswith("Airflow was not asked")
        assert answer == f"opal: {page.in_one_sentence(opal, AirflowNow())}"
        states = [(mark.week, mark.state) for mark in page.marks_of(opal, AirflowNow())[:4]]
        assert [tuple(line.split(":")[0].split()) for line in weeks[:4]] == states
        assert {state for _, state in states} == {"charged", "held"}
        advice = [line for line in weeks if line.startswith("  to do, ")]
        assert advice == [
            f"  to do, {attention.weeks}: {attention.next_step}" for attention in now.attention
        ]
        assert "opal" not in run(capsys, "weeks", "--programme", "itms")[1]
        _, out, _ = run(capsys, "weeks", "--programme", "opal", "--json")
        assert [week["state"] for week in json.loads(out)["opal"]][:3] == ["charged"] * 3


def main_code_of(act: object) -> int:
    """Exit code of a refusal."""
    from turnstile.errors import TurnstileError

    with pytest.raises(TurnstileError) as refused:
        act()  # type: ignore[operator]
    return refused.value.exit_code


def test_a_ledger_that_does_not_exist_is_said_to(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNSTILE_LEDGER_URL", f"sqlite:///{tmp_path / 'none.sqlite'}")
    code, _, err = run(capsys, "balance")
    assert code == 2
    assert "there is no ledger" in err


def test_the_commands_load_without_a_database_package() -> None:
    script = "import sys, turnstile.commands.ledger; print('sqlalchemy' in sys.modules)"
    printed = subprocess.check_output([sys.executable, "-c", script], text=True)  # noqa: S603
    assert printed.strip() == "False"


@pytest.mark.usefixtures("lived")
class TestAnExport:
    @pytest.fixture
    def copy(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Path:
        code, out, _ = run(capsys, "export", str(tmp_path / "copy"))
        assert code == 0
        assert f"check: turnstile ledger verify --export {tmp_path / 'copy'}\n" in out
        return tmp_path / "copy"

    def test_verifies_without_the_database(
        self, capsys: pytest.CaptureFixture[str], copy: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TURNSTILE_LEDGER_URL", "sqlite:////nowhere/at/all.sqlite")
        assert run(capsys, "verify", "--export", str(copy))[0] == 0

    def test_is_never_written_over_another(
        self, capsys: pytest.CaptureFixture[str], copy: Path
    ) -> None:
        assert run(capsys, "export", str(copy))[0] == 2

    @pytest.mark.parametrize("alter", ["drop first", "drop last", "swap", "edit", "append"])
    def test_that_was_altered_is_named(
        self, capsys: pytest.CaptureFixture[str], copy: Path, alter: str
    ) -> None:
        path = copy / "entries.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        altered = {
            "drop first": lines[1:],
            "drop last": lines[:-1],
            "swap": [lines[1], lines[0], *lines[2:]],
            "edit": [lines[0], lines[1].replace("4000000", "1000000"), *lines[2:]],
            "append": [*lines, lines[-1]],
        }
        path.write_text("".join(altered[alter]))
        assert run(capsys, "verify", "--export", str(copy))[0] == 4

    def test_signed_by_a_stranger_is_named_where_the_key_is_known(
        self, copy: Path, url: str, tmp_path: Path
    ) -> None:
        from ledger_asks import noon

        forged = tmp_path / "forged"
        stranger = Ledger.open(url, clock=noon, key=tmp_path / "stranger.pem")
        stranger.export(forged)
        assert tuple(verify_export(forged)) == ()
        (finding,) = verify_export(forged, trusted=copy / "ledger.pub")
        assert "no signature" in finding.problem

    def test_without_its_note_or_entries_is_named(
        self, capsys: pytest.CaptureFixture[str], copy: Path, tmp_path: Path
    ) -> None:
        (copy / "checkpoint.note").unlink()
        assert run(capsys, "verify", "--export", str(copy))[0] == 4
        shutil.rmtree(copy)
        assert run(capsys, "verify", "--export", str(tmp_path / "copy"))[0] == 2


def test_a_forecast_of_an_empty_ledger_is_empty(ledger: Ledger) -> None:
    assert ledger.forecast() == ()


def test_a_forecast_sums_the_programmes_of_a_family(ledger: Ledger) -> None:
    caps = (Cap(CARD, epsilon_micro=20 * LOSS_MICRO),)
    published(ledger, ask(caps=caps))
    drawn(ledger, ask(programme="other", caps=caps))
    (card,) = ledger.forecast("opal_cards")
    assert card.weekly == 2 * LOSS_MICRO
    assert card.reached_in == week_number(10)


def test_a_correction_of_the_newest_week_fits_up_to_its_cap_and_not_above(ledger: Ledger) -> None:
    """What one week of every programme costs, and a correction of one of them beside it."""
    caps = (Cap(TRIP, epsilon_micro=2 * LOSS_MICRO),)
    published(ledger, ask(caps=caps))
    (trip,) = ledger.forecast("opal_cards")
    assert trip.correction_in == week_number(0)
    low = (Cap(TRIP, epsilon_micro=2 * LOSS_MICRO - 1),)
    published(ledger, ask(week_number(1), caps=low), "artefact-2")
    (trip,) = ledger.forecast("opal_cards")
    assert trip.correction_in is None


def test_what_a_cap_has_taken_is_of_the_windows_that_a_release_of_today_touches(
    ledger: Ledger,
) -> None:
    """A window that was full years ago kept the alarm of its cap, and the gauge, for ever."""
    caps = (Cap(CARD, epsilon_micro=4 * LOSS_MICRO, window_weeks=4), Cap(CARD, epsilon_micro=10**9))
    for number in range(4):
        published(ledger, ask(week_number(number), caps=caps), f"artefact-{number}")
    ever, window = ledger.forecast("opal_cards")
    assert (window.taken, ever.taken) == (4 * LOSS_MICRO, 4 * LOSS_MICRO)
    assert [alert.rule for alert in of_budget([window, ever])] == ["budget_90"]
    published(ledger, ask(week_number(6), caps=caps), "artefact-6")
    ever, window = ledger.forecast("opal_cards")
    assert (window.taken, ever.taken) == (2 * LOSS_MICRO, 5 * LOSS_MICRO)
    assert max(taken for _, taken in window.path) == 4 * LOSS_MICRO  # as the picture shows
    published(ledger, ask(week_number(40), caps=caps), "artefact-40")
    ever, window = ledger.forecast("opal_cards")
    assert (window.taken, ever.taken) == (LOSS_MICRO, 6 * LOSS_MICRO)
    assert of_budget([window, ever]) == ()


def test_a_month_is_charged_to_each_of_its_weeks_and_counted_once_in_a_window(
    ledger: Ledger,
) -> None:
    """The forecast names the month that the ledger then refuses."""
    caps = (Cap(CARD, epsilon_micro=6 * LOSS_MICRO, window_weeks=26),)
    month = parse_period("2021-11-15..2021-12-15")

    def of(number: int) -> Request:
        period = month.plus(number)
        names = {"week": str(period.weeks[-1]), "first_week": str(period.weeks[0])}
        return replace(ask(caps=caps), key=ReleaseKey("opal", str(period)), **names)

    published(ledger, of(0))
    (card,) = ledger.forecast("opal_cards")
    assert card.year == 11 * LOSS_MICRO  # of 31 days, eleven end within 52 weeks
    assert dict(card.path)["2021-W50"] == LOSS_MICRO
    assert card.reached_in is not None
    number = 1
    while str(month.plus(number).weeks[-1]) != card.reached_in:
        drawn(ledger, of(number))
        number += 1
    with pytest.raises(BudgetExceeded):
        ledger.reserve(of(number))


class TestWhatPeopleAdd:
    def test_a_hold_is_let_go_and_costs_nothing(
        self, lived: Ledger, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = [balance.spent for balance in lived.balance()]
        held = ask(week_number(3)).key
        code, out, _ = run(capsys, "void", str(held), "--reason", "the run was given up")
        assert (code, out) == (0, f"{held}: void\n")
        assert [balance.spent for balance in lived.balance()] == before
        assert not any(balance.held.epsilon_micro for balance in lived.balance())

    def test_a_draw_that_began_cannot_be_let_go(
        self, lived: Ledger, capsys: pytest.CaptureFixture[str]
    ) -> None:
        key = ask(week_number(0)).key
        before = lived.balance()
        code, _, err = run(capsys, "void", str(key), "--reason", "give it back")
        assert code == 3
        assert "void is not possible" in err
        assert lived.balance() == before

    def test_an_unknown_release_is_bad_input(
        self, lived: Ledger, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert lived
        code, _, err = run(capsys, "void", "opal/1999-W01/r0", "--reason", "typo")
        assert code == 2
        assert "nothing was ever reserved" in err

    @pytest.mark.usefixtures("home")
    def test_a_public_release_is_withdrawn_without_refund(
        self, ledger: Ledger, capsys: pytest.CaptureFixture[str]
    ) -> None:
        key = published(ledger, ask()).key
        before = ledger.balance()
        words = ("withdraw", str(key), "--reason", "wrong stops", "--person", "olga", "--json")
        code, out, _ = run(capsys, *words)
        assert (code, json.loads(out)) == (0, {"key": str(key), "state": "withdrawn"})
        attempt = ledger.find(key)
        assert attempt is not None
        assert attempt.is_withdrawn
        assert ledger.balance() == before

    def test_what_is_not_public_cannot_be_withdrawn(
        self, lived: Ledger, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert lived
        key = str(ask(week_number(3)).key)
        code, _, err = run(capsys, "withdraw", key, "--reason", "wrong stops")
        assert code == 3
        assert "not sealed" in err
