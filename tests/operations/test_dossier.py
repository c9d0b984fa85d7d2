"""`turnstile dossier`: its figures are the ledger's, it tells what is public alone, it prints."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import html5lib
import pytest
from in_chromium import MISSING, chromium
from small_deployment import WEEK, Deployment

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., int]
_A4_INCHES = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}


def page_of(turnstile: Run, tmp_path: Path, programme: str = "opal") -> str:
    """Write a dossier as somebody does, and read it."""
    out = tmp_path / f"{programme}.html"
    assert turnstile("dossier", programme, "--out", out) == 0
    return out.read_text()


def figures(page: str) -> Iterator[dict[str, str]]:
    """Yield the attributes of every figure, by which a script reads it; strict HTML."""
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    for element in parser.parse(page).iter("data"):
        yield dict(element.attrib)


def balances(turnstile: Run, capsys: pytest.CaptureFixture[str], family: str) -> list[Any]:
    """Return what `turnstile ledger balance` prints for scripts."""
    capsys.readouterr()
    assert turnstile("ledger", "balance", "--family", family, "--json") == 0
    accounts: list[Any] = json.loads(capsys.readouterr().out)
    return accounts


def differences(page: str, accounts: list[Any]) -> list[str]:
    """Name the figures of spending that are not the ledger's."""

    def exact(loss: dict[str, int | None]) -> str:
        parts = (loss["epsilon_micro"], loss["rho_nano"], loss.get("delta_femto") or 0)
        return ",".join("infinite" if part is None else str(part) for part in parts)

    mismatches = []
    parts = ("family", "unit", "scope")
    known = {
        "/".join((*(balance[n] for n in parts), "cap" * bool(balance["cap"]))): balance
        for balance in accounts
    }
    shown = [figure for figure in figures(page) if figure["class"] in {"spent", "cap"}]
    capped = {figure["data-account"] for figure in shown if figure["class"] == "cap"}
    for shown_figure in shown:
        account = known[
            f"{shown_figure['data-account']}/{'cap' * (shown_figure['data-account'] in capped)}"
        ]
        if exact(account[shown_figure["class"]]) != shown_figure["value"]:
            mismatches.append(f"{shown_figure['class']} of {shown_figure['data-account']}")
    assert len([figure for figure in shown if figure["class"] == "spent"]) == len(accounts)
    return mismatches


def test_every_figure_is_the_ledgers_and_the_plans(
    published: Deployment, turnstile: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for programme, family in (("opal", "opal_cards"), ("itms", "itms_buses")):
        page = page_of(turnstile, tmp_path, programme)
        accounts = balances(turnstile, capsys, family)
        assert differences(page, accounts) == []
        accounts[0]["spent"]["rho_nano"] += 1  # the check can fail
        assert len(differences(page, accounts)) == 1
        assert turnstile("plan", programme, "--week", WEEK, "--json") == 0
        planned = json.loads(capsys.readouterr().out)["loss"]
        losses = [figure for figure in figures(page) if figure["class"] == "loss"]
        assert len(losses) == 6 * len(planned)
        for loss in losses:
            assert loss["value"] == (planned[loss["data-unit"]][loss["data-figure"]] or "infinite")
    assert "1 periods are public, 0 draws were charged and never published" in page
    assert published.ledger.head()[1] in page


def test_chances_are_those_that_a_release_states(
    published: Deployment, turnstile: Run, tmp_path: Path
) -> None:
    page = page_of(turnstile, tmp_path)
    shown = {figure["value"] for figure in figures(page) if figure["class"] == "chance"}
    stated = json.loads((published.public / f"opal/{WEEK}/r0/assessment.json").read_bytes())
    of_release = {
        f"{risk['best_guess']:.6f}" for risk in stated["risk_by_unit"] if risk["best_guess"]
    }
    assert len(of_release) >= 6
    assert of_release == shown
    assert "in the year that begins with this week" in page


def test_what_people_wrote_stands_in_it_only_where_it_is_marked_public(
    published: Deployment, turnstile: Run, tmp_path: Path
) -> None:
    published.edit("opal", "approval: {required: false}", "approval: {required: true, persons: 2}")
    said = ["--person", "mallory", "--reason", "a private thought"]
    note = "numbers of the ferries were wrong"
    assert turnstile("ledger", "withdraw", f"opal/{WEEK}/r0", *said, "--public-note", note) == 0
    assert turnstile("ledger", "no-release", "opal/2016-W31/r0", *said) == 0
    page = page_of(turnstile, tmp_path)
    assert note in page
    assert "no release" in page
    for hidden in ("private thought", "mallory", "ada", "grace", str(published.home)):
        assert not re.search(rf"\b{re.escape(hidden)}\b", page), hidden
    assert "2 of the 2 people who hold the role release_officer" in page
    assert not re.search(
        r"""(?:src|href|action|url)\s*[=(]|<(?:script|form|input|link|img)\b""", page
    )


def test_before_the_first_release_it_says_that_nothing_is_spent(
    deployment: Deployment, turnstile: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = page_of(turnstile, tmp_path)
    assert "Nothing: no draw was charged yet." in page
    assert "For ever: the programme states no retention." in page
    assert not list(deployment.home.glob("*.sqlite"))
    days = "retention: {backfill_days: 60, raw_days: 91, exact_days: 200}"
    deployment.edit("opal", "publish:", f"{days}\npublish:")
    assert "are deleted 91 days after it" in page_of(turnstile, tmp_path)
    assert turnstile("dossier", "opall") == 2
    assert "opall" in capsys.readouterr().err


def missing_paths(page: str) -> list[str]:
    """Name the files of the source code that the list of hazards names and that are not there."""
    named = re.findall(r"\b(?:tests|docs|include)/[\w./-]+\.\w+", page)
    assert len(set(named)) >= 16
    return [path for path in named if not (ROOT / path).is_file()]


def test_every_hazard_names_a_promise_and_a_test_that_are_there(
    deployment: Deployment, turnstile: Run, tmp_path: Path
) -> None:
    page = page_of(turnstile, tmp_path)
    assert deployment.home
    rows = re.findall(
        r"<tr><td>.*?</tr>", page.split('hazards">')[1].split("</table>")[0], re.DOTALL
    )
    assert len(rows) == 16
    promises = (ROOT / "docs/PRIVACY.md").read_text()
    for row in rows:
        numbers = re.findall(r"\b\d+\.\d+\b", row.partition("PRIVACY ")[2].partition(";")[0])
        assert numbers
        assert all(
            re.search(rf"^(?:\*\*)?{re.escape(number)} ", promises, re.MULTILINE)
            for number in numbers
        )
        assert "tests/" in row
    assert missing_paths(page) == []
    assert missing_paths(page.replace("test_crashes", "test_crash")) == [
        "tests/ledger/test_crash.py"
    ]


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_its_first_part_prints_on_two_pages(
    published: Deployment, turnstile: Run, tmp_path: Path
) -> None:
    assert published.home
    with chromium(tmp_path / "profile") as browser:

        def pages(html: str) -> int:
            file = tmp_path / "shown.html"
            file.write_text(html)
            browser.get(file.as_uri())
            pdf = browser.execute_cdp_cmd("Page.printToPDF", _A4_INCHES)
            return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(pdf["data"])))

        for programme in ("opal", "itms"):
            page = page_of(turnstile, tmp_path, programme)
            answers = re.sub(r'<section class="evidence".*?</section>', "", page, flags=re.DOTALL)
            assert pages(answers) <= 2
            assert 2 < pages(page) <= 6
            twice = answers.replace(
                "<h2>What is spent", "<h2>Again</h2><p>" + "more " * 3000 + "<h2>"
            )
            assert pages(twice) > 2  # the check can fail
