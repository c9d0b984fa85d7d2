"""What is refused before anything is read, and an audit of what is not published."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from small_deployment import WEEK, Deployment

from turnstile.errors import BudgetExceeded, RefusedError, TurnstileError
from turnstile.pipeline import steps
from turnstile.pipeline.before_charge import plan
from turnstile.pipeline.context import Release, open_release
from turnstile.pipeline.ledger_preview import refusal_before_reading


def _sealed(deployment: Deployment, programme: str, *files: str) -> Release:
    """Seal made-up bytes of files that were read."""
    release = open_release(programme, WEEK)
    deployment.make_up_snapshot(programme, *files)
    attempt = release.ledger.reserve(release.request(release.statement))
    release.ledger.begin_draw(attempt.attempt_id, attempt.bindings)
    release.ledger.seal(attempt.attempt_id, "ab" * 32)
    return release


def _refusal(name: str, week: str = WEEK) -> TurnstileError | None:
    release = open_release(name, week)
    return refusal_before_reading(release.ledger, release.programme, release.plan, release.settings)


def test_a_programme_that_another_one_excludes_is_reported_which_stands_in_the_way(
    deployment: Deployment,
) -> None:
    deployment.edit("opal_trip", "slot_minutes: 15", "slot_minutes: 240")
    assert _refusal("opal_trip") is None
    _sealed(deployment, "opal")
    refusal = _refusal("opal_trip")
    assert "in the way, of the same budget group opal_cards: opal" in str(refusal)
    assert not (deployment.home / "private/opal_trip").exists()
    assert _refusal("opal") is None  # sealed: re-issued, not asked for again
    assert _refusal("opal", "2016-W31") is None


def test_plan_says_that_a_cap_would_refuse_the_week(
    deployment: Deployment, turnstile: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    deployment.edit("opal_trip", "slot_minutes: 15", "slot_minutes: 240")
    _sealed(deployment, "opal")
    for name, week, is_refused in (("opal_trip", WEEK, True), ("opal", "2016-W31", False)):
        assert turnstile("plan", name, "--week", week) == 0
        assert ("refused by run: " in capsys.readouterr().out) == is_refused
    assert turnstile("check", "opal_trip") == 0  # which judges no week
    assert turnstile("run", "opal_trip", "--week", WEEK) == BudgetExceeded.exit_code
    said = capsys.readouterr().err
    assert "in the way, of the same budget group opal_cards: opal" in said
    assert "ingest" not in said


def test_files_of_another_budget_group_are_refused_before_anything_is_read(
    deployment: Deployment,
) -> None:
    deployment.edit("opal_trip", "slot_minutes: 15", "slot_minutes: 240")
    deployment.edit("opal_trip", "family: opal_cards", "family: other_cards")
    assert _refusal("opal_trip") is None  # nobody has released from them yet
    _sealed(deployment, "opal")
    refusal = _refusal("opal_trip")
    assert "turnstile ledger admit-family other_cards" in str(refusal)
    assert not (deployment.home / "private/opal_trip").exists()
    with pytest.raises(TurnstileError, match="admit-family"):
        _sealed(deployment, "opal_trip")
    landing = open_release("opal", WEEK).programme.source.landing
    deployment.ledger.admit_family(landing, "other_cards", "olga", "other people")
    assert _refusal("opal_trip") is None


def test_check_and_plan_say_that_another_budget_group_has_the_files(
    deployment: Deployment, turnstile: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    deployment.edit("opal_trip", "slot_minutes: 15", "slot_minutes: 240")
    deployment.edit("opal_trip", "family: opal_cards", "family: other_cards")

    def said() -> tuple[int, str]:
        capsys.readouterr()
        code = turnstile("check", "opal_trip")
        assert turnstile("plan", "opal_trip", "--week", "2016-W31") == 0
        return code, "".join(capsys.readouterr())

    assert "admit-family" not in said()[1]  # there is no ledger
    assert deployment.nothing_happened()
    _sealed(deployment, "opal")
    code, refused = said()
    assert code == 2
    assert "turnstile: opal_trip would charge the files 'opal/{week}/*'" in refused
    assert "refused by run: opal_trip would charge the files 'opal/{week}/*'" in refused
    assert refused.count("turnstile ledger admit-family other_cards") == 2
    deployment.ledger.admit_family("opal/{week}/*", "other_cards", "olga", "other people")
    code, admitted = said()
    assert code == 0
    assert "admit-family" not in admitted


@pytest.mark.parametrize("pattern", ["./opal/{week}/*", "opal//{week}/*", "linked/{week}/*"])
def test_another_way_to_the_same_files_is_no_second_budget(
    deployment: Deployment, pattern: str
) -> None:
    deployment.edit("opal_trip", "slot_minutes: 15", "slot_minutes: 240")
    deployment.edit("opal_trip", "family: opal_cards", "family: other_cards")
    deployment.edit("opal_trip", '"opal/{week}/*"', f'"{pattern}"')
    (deployment.home / "landing/opal").mkdir(parents=True)
    (deployment.home / "landing/linked").symlink_to("opal")
    _sealed(deployment, "opal")
    refusal = _refusal("opal_trip")
    assert "admit-family other_cards --landing 'opal/{week}/*'" in str(refusal)


def test_the_same_bytes_in_another_folder_are_no_second_budget(deployment: Deployment) -> None:
    deployment.edit("opal_trip", "slot_minutes: 15", "slot_minutes: 240")
    deployment.edit("opal_trip", "family: opal_cards", "family: other_cards")
    deployment.edit("opal_trip", '"opal/{week}/*"', '"copies/{week}/*"')
    _sealed(deployment, "opal", "ab" * 32, "cd" * 32)
    assert _refusal("opal_trip") is None
    with pytest.raises(TurnstileError, match="--landing 'opal/{week}/") as refused:
        _sealed(deployment, "opal_trip", "cd" * 32)
    assert "cd" * 8 not in "".join(entry.record for entry in deployment.ledger.entries())
    assert "the group opal_cards has released from them" in str(refused.value)
    shutil.rmtree(deployment.home / "private/opal_trip")
    deployment.ledger.admit_family("opal/{week}/*", "other_cards", "olga", "other people")
    assert _sealed(deployment, "opal_trip", "cd" * 32)


def test_other_bytes_in_another_folder_are_a_budget_of_their_own(deployment: Deployment) -> None:
    deployment.edit("opal_trip", "slot_minutes: 15", "slot_minutes: 240")
    deployment.edit("opal_trip", "family: opal_cards", "family: other_cards")
    deployment.edit("opal_trip", '"opal/{week}/*"', '"copies/{week}/*"')
    _sealed(deployment, "opal", "ab" * 32)
    assert _sealed(deployment, "opal_trip", "cd" * 32)


def test_what_a_first_look_refuses_is_refused_by_the_reservation_too(
    deployment: Deployment,
) -> None:
    deployment.edit("opal_trip", "slot_minutes: 15", "slot_minutes: 240")
    _sealed(deployment, "opal")
    with pytest.raises(TurnstileError):
        _sealed(deployment, "opal_trip")


def test_an_audit_of_a_week_that_is_not_published_fails_and_says_why(
    deployment: Deployment,
) -> None:
    assert deployment.nothing_happened()
    with pytest.raises(TurnstileError, match=r"r0 is not published \(never reserved\)"):
        steps.audit("opal", WEEK)
    _sealed(deployment, "opal")
    with pytest.raises(TurnstileError, match=r"not published \(sealed\): a task before was marked"):
        steps.audit("opal", WEEK)


def test_a_programme_of_another_family_is_not_told_how_to_forget_its_losses(
    deployment: Deployment, turnstile: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` and `plan` advised admit-family, the refusal another name: the same budget twice."""
    _sealed(deployment, "opal")
    deployment.edit("opal", "family: opal_cards", "family: opal_people")
    said = "its losses are kept in family opal_cards, not opal_people"
    assert turnstile("check", "opal") == 2
    assert turnstile("plan", "opal", "--week", "2016-W31") == 0
    assert turnstile("run", "opal", "--week", "2016-W31") == 3
    out, err = capsys.readouterr()
    assert (err.count(said), out.count(said)) == (2, 1)
    assert "write family: opal_cards in its file again" in out
    assert "admit-family" not in out + err
    assert "ingest" not in err
    release = open_release("opal", WEEK, 1)
    plan(release)
    with pytest.raises(RefusedError, match=said):
        release.ledger.reserve(release.request(("files came again", "olga", "")))
    deployment.edit("opal", "family: opal_people", "family: opal_cards")
    assert _refusal("opal", "2016-W31") is None
