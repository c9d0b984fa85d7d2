"""Refusals help, and accounts add up as PRIVACY 1 to 3 say."""

from __future__ import annotations

import pytest
from ledger_asks import (
    BINDINGS,
    CAPS,
    CARD,
    LOSS_MICRO,
    TRIP,
    ask,
    drawn,
    posting,
    published,
    sealed,
    spent_micro,
    week_number,
)

from turnstile.errors import BudgetExceeded, InputError, RefusedError, RevisionNeeded
from turnstile.ledger.admission import Excess
from turnstile.ledger.balances.amounts import AccountLoss, Cap
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.refusals import budget_exceeded
from turnstile.privacy.accounts import Posting
from turnstile.privacy.units import NeighboringRelation, ProtectionUnit


def refusal(ledger: Ledger, *args: object, **kwargs: object) -> str:
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve(ask(*args, **kwargs))  # type: ignore[arg-type]
    assert refused.value.exit_code == 3
    return str(refused.value)


WINDOW, LIFE = Cap(CARD, epsilon_micro=10**7, window_weeks=52), Cap(TRIP, rho_nano=2 * 10**9)
OF_WEEKS = (WINDOW, "2015-W32..2016-W30", "epsilon")
OF_RHO = (LIFE, "2016-07-25/bus/b0", "rho")
A_WEEK = (
    "asks for epsilon 4 on card over 52 weeks (2015-W32..2016-W30), and 2 of the cap 10 is left"
)
A_RHO = "asks for rho 3 on trip (2016-07-25/bus/b0), and 1 of the cap 2 is left"
NO_RHO = "asks for rho 1 on trip (2016-07-25/bus/b0), and 0 of the cap 2 is left"


@pytest.mark.parametrize(
    ("excess", "releases", "set_by", "said"),
    [
        (
            Excess(*OF_WEEKS, 4 * 10**6, 8 * 10**6, 10**7),
            ("opal/2016-W27/r0", "opal/2016-W28/r0", "opal/2016-W29/r0"),
            ("ferries", "opal"),
            (
                f"{A_WEEK} (set by ferries, opal) since opal/2016-W27/r0 (3 releases up to "
                "opal/2016-W29/r0); at most 50 % of this epsilon would fit; that is noise 2 times "
                "wider; the cap holds 2 weeks of this size, and the window ends in 2016-W30;"
            ),
        ),
        (
            Excess(*OF_RHO, 3 * 10**9, 10**9, 2 * 10**9),
            ("opal/2016-W29/r0",),
            (),
            (
                f"{A_RHO} since opal/2016-W29/r0; at most 33.3 % of this rho would fit; that is "
                "noise 3 times wider, or its square root for Gaussian noise; the cap holds 0"
            ),
        ),
        *(
            (
                Excess(*OF_RHO, 10**9, taken, 2 * 10**9),
                (),
                (),
                f"{NO_RHO}; at most 0 % of this rho would fit; the cap holds 2 releases of this",
            )
            for taken in (None, 2 * 10**9, 5 * 10**9)
        ),
        (
            Excess(*OF_WEEKS, 0, 11 * 10**6, 10**7),
            (),
            (),
            (
                "asks for epsilon 0 on card over 52 weeks (2015-W32..2016-W30), and 0 of the cap "
                "10 is left; at most 0 % of this epsilon would fit; the cap holds 0 weeks of this"
            ),
        ),
        (
            Excess(*OF_RHO, None, 0, 2 * 10**9),
            (),
            (),
            "states no finite rho for trip (2016-07-25/bus/b0), and a cap of 2 is set; bound that",
        ),
        (
            Excess(WINDOW, "unstated", "epsilon", None, 0, 10**7),
            (),
            (),
            "states no finite epsilon for card over 52 weeks, and a cap of 10 is set; bound that",
        ),
    ],
)
def test_a_refusal_is_an_exact_sentence(
    excess: Excess, releases: tuple[str, ...], set_by: tuple[str, ...], said: str
) -> None:
    refused = budget_exceeded(ask().key, excess, releases, set_by)
    assert str(refused).startswith(f"opal/2016-W30/r0 {said}")


class TestARefusal:
    def test_says_what_was_asked_what_is_left_since_when_and_what_fits(
        self, ledger: Ledger
    ) -> None:
        caps = (Cap(CARD, epsilon_micro=10_000_000, window_weeks=52),)
        for n in range(2):
            drawn(ledger, ask(week_number(n), caps=caps))
        said = refusal(ledger, week_number(2), caps=caps)
        assert "opal/2016-W32/r0 asks for epsilon 4 on card over 52 weeks" in said
        assert "2 of the cap 10 is left (set by opal) since opal/2016-W30/r0 (2 releases" in said

    def test_of_a_full_account_says_that_nothing_fits(self, ledger: Ledger) -> None:
        caps = (Cap(TRIP, epsilon_micro=LOSS_MICRO),)
        drawn(ledger, ask(caps=caps))
        said = refusal(ledger, caps=caps, programme="other")
        assert "0 of the cap 4 is left (set by opal, other) since opal/2016-W30/r0" in said
        assert "at most 0 % of this epsilon" in said

    def test_of_an_unbounded_loss_says_how_to_bound_it(self, ledger: Ledger) -> None:
        said = refusal(ledger, epsilon_micro=None)
        assert "no finite epsilon" in said
        assert "bound that unit's contributions" in said

    def test_comes_too_when_a_capped_unit_is_not_stated_at_all(self, ledger: Ledger) -> None:
        only_trips = (posting(TRIP, "2016-07-25/bus/b0"),)
        assert "no finite epsilon for card" in refusal(ledger, postings=only_trips)

    def test_charges_nothing_and_leaves_no_trace_in_the_caps(self, ledger: Ledger) -> None:
        low = (Cap(TRIP, epsilon_micro=1),)
        refusal(ledger, programme="other", caps=low)
        assert spent_micro(ledger) == 0
        assert list(ledger.entries()) == []
        assert ledger.reserve(ask()).is_open  # the family is not locked by what was refused


class TestACap:
    def test_admits_exactly_what_remains(self, ledger: Ledger) -> None:
        sealed(ledger, ask(caps=(Cap(TRIP, epsilon_micro=LOSS_MICRO),)))
        assert spent_micro(ledger) == LOSS_MICRO

    def test_has_to_be_stated(self, ledger: Ledger) -> None:
        with pytest.raises(InputError, match="without a cap"):
            ledger.reserve(ask(caps=()))

    def test_of_a_family_is_the_smallest_of_its_programmes(self, ledger: Ledger) -> None:
        ledger.reserve(ask(caps=(Cap(TRIP, epsilon_micro=LOSS_MICRO),)))
        wide = (Cap(TRIP, epsilon_micro=100 * LOSS_MICRO),)
        assert "cap 4 is left" in refusal(ledger, programme="other", caps=wide)

    def test_that_was_lowered_holds_for_what_comes(self, ledger: Ledger) -> None:
        drawn(ledger, ask())
        low = (Cap(CARD, epsilon_micro=2 * LOSS_MICRO, window_weeks=52),)
        drawn(ledger, ask(week_number(1), caps=low))
        assert "of the cap 8" in refusal(ledger, week_number(2), programme="other")
        assert ledger.verify() == ()

    def test_that_was_raised_admits_more(self, ledger: Ledger) -> None:
        caps = (Cap(TRIP, epsilon_micro=LOSS_MICRO),)
        drawn(ledger, ask(caps=caps))
        refusal(ledger, caps=caps, revision=1)
        assert ledger.reserve(ask(caps=CAPS, revision=1)).is_open

    @pytest.mark.parametrize("window_weeks", [None, 1, 52])
    def test_on_a_lifetime_or_a_window(self, ledger: Ledger, window_weeks: int | None) -> None:
        caps = (Cap(CARD, epsilon_micro=LOSS_MICRO, window_weeks=window_weeks),)
        drawn(ledger, ask(caps=caps))
        if window_weeks == 1:
            assert ledger.reserve(ask(week_number(1), caps=caps)).is_open
        else:
            assert "since opal/2016-W30/r0; at" in refusal(ledger, week_number(1), caps=caps)

    def test_of_a_window_covers_a_backfill_before_what_was_spent(self, ledger: Ledger) -> None:
        caps = (Cap(CARD, epsilon_micro=LOSS_MICRO, window_weeks=2),)
        drawn(ledger, ask(week_number(3), caps=caps))
        refusal(ledger, week_number(2), caps=caps)
        refusal(ledger, week_number(4), caps=caps)
        assert ledger.reserve(ask(week_number(1), caps=caps)).is_open

    def test_under_replace_one_is_half_the_epsilon_and_a_quarter_of_the_rho(
        self, ledger: Ledger
    ) -> None:
        replace_one = NeighboringRelation.REPLACE
        epsilon = (Cap(TRIP, replace_one, epsilon_micro=2 * LOSS_MICRO - 1),)
        refusal(ledger, caps=epsilon)
        rho = (Cap(TRIP, replace_one, rho_nano=4 * LOSS_MICRO**2 // 2_000 - 1),)
        assert "for rho" in refusal(ledger, caps=rho)
        enough = (
            Cap(TRIP, replace_one, epsilon_micro=2 * LOSS_MICRO),
            Cap(TRIP, replace_one, rho_nano=4 * LOSS_MICRO**2 // 2_000),
        )
        assert ledger.reserve(ask(caps=enough)).is_open

    def test_without_a_delta_admits_none(self, ledger: Ledger) -> None:
        thresholded = (Posting(TRIP, "2016-07-25/bus/b0", None, 10**6, 1),)
        said = refusal(ledger, postings=thresholded, caps=(Cap(TRIP, rho_nano=10**9),))
        assert "asks for delta 0.000000000000001 on trip" in said
        enough = (Cap(TRIP, rho_nano=10**9, delta_femto=1),)
        assert ledger.reserve(ask(postings=thresholded, caps=enough)).is_open

    @pytest.mark.parametrize(
        "fields",
        [
            {"unit": TRIP},
            {"unit": TRIP, "epsilon_micro": -1},
            {"unit": TRIP, "epsilon_micro": 1, "window_weeks": 52},
            {"unit": CARD, "epsilon_micro": 1, "window_weeks": 0},
            {
                "unit": TRIP,
                "rho_nano": 1,
                "delta_femto": 1,
                "relation": NeighboringRelation.REPLACE,
            },
        ],
    )
    def test_that_cannot_be_enforced_is_refused(self, fields: dict[str, object]) -> None:
        with pytest.raises(InputError):
            Cap(**fields)  # type: ignore[arg-type]


class TestAFamily:
    def test_adds_up_laplace_and_gaussian_under_any_name(self, ledger: Ledger) -> None:
        caps = (Cap(TRIP, rho_nano=20 * 10**9),)
        laplace = (Posting(TRIP, "2016-07-25/bus/b0", 4 * 10**6, 8 * 10**9, 0),)
        gaussian = (Posting(TRIP, "2016-07-25/bus/b0", None, 12 * 10**9, 0),)
        drawn(ledger, ask(postings=laplace, caps=caps))
        drawn(ledger, ask(postings=gaussian, caps=caps, programme="other"))
        (balance,) = ledger.balance()
        assert balance.spent == AccountLoss(epsilon_micro=None, rho_nano=20 * 10**9, delta_femto=0)
        said = refusal(ledger, postings=laplace, caps=caps, programme="third")
        assert "0 of the cap 20 is left" in said

    def test_after_a_gaussian_refuses_under_a_pure_cap(self, ledger: Ledger) -> None:
        gaussian = (Posting(TRIP, "2016-07-25/bus/b0", None, 1, 0),)
        drawn(ledger, ask(postings=gaussian, caps=(Cap(TRIP, rho_nano=10**12),), programme="g"))
        assert "0 of the cap 8" in refusal(ledger, caps=(Cap(TRIP, epsilon_micro=8 * 10**6),))

    def test_gives_an_unbounded_hold_back_when_it_is_voided(self, ledger: Ledger) -> None:
        gaussian = (Posting(TRIP, "2016-07-25/bus/b0", None, 1, 0),)
        wide = (Cap(TRIP, rho_nano=10**12),)
        ledger.void(ledger.reserve(ask(postings=gaussian, caps=wide)).attempt_id, "no data")
        assert ledger.reserve(ask(caps=(Cap(TRIP, epsilon_micro=8 * 10**6),))).is_open

    def test_of_other_people_has_accounts_of_its_own(self, ledger: Ledger) -> None:
        bus = ProtectionUnit.BUS
        caps = (Cap(bus, epsilon_micro=LOSS_MICRO, window_weeks=52),)
        drawn(ledger, ask())
        ask_bus = ask(programme="itms", family="buses", caps=caps, postings=(posting(bus, "ever"),))
        drawn(ledger, ask_bus)
        assert {balance.family for balance in ledger.balance()} == {"opal_cards", "buses"}
        assert {balance.unit for balance in ledger.balance("buses")} == {bus}
        charged = {of: ledger.charged(of) for of in ("opal_cards", "buses")}
        assert [(str(release.key), release.times) for release in charged["buses"]] == [
            ("itms/2016-W30/r0", 1)
        ]
        assert [(str(r.key), len(r.events)) for r in charged["opal_cards"]] == [
            ("opal/2016-W30/r0", 1)
        ]

    def test_cannot_be_left_for_empty_accounts(self, ledger: Ledger) -> None:
        drawn(ledger, ask())
        with pytest.raises(RefusedError, match="would forget"):
            ledger.reserve(ask(week_number(1), family="fresh"))


class TestARevision:
    def test_needs_a_reason_and_an_approver(self) -> None:
        for missing in ("reason", "approver"):
            with pytest.raises(InputError, match="reason and an approver"):
                ask(revision=1, **{missing: None})  # type: ignore[arg-type]

    def test_follows_what_was_drawn(self, ledger: Ledger) -> None:
        with pytest.raises(RefusedError, match="never drawn"):
            ledger.reserve(ask(revision=1))
        drawn(ledger, ask())
        assert ledger.reserve(ask(revision=1)).key.revision == 1

    def test_keeps_its_reason_and_approver_in_the_facts(self, ledger: Ledger) -> None:
        published(ledger, ask())
        sealed(ledger, ask(revision=1), "artefact-2")
        fact = [e for e in ledger.entries() if e.kind == "reserved"][-1]
        assert (fact.body["reason"], fact.body["approver"]) == ("late file", "release officer")

    def test_is_what_a_changed_plan_needs(self, ledger: Ledger) -> None:
        sealed(ledger, ask())
        command = "turnstile run opal --week 2016-W30 --revision N"
        digest = "0123456789abcdef" * 4
        for plan, brief in (("plan-2", "plan-2"), (digest, "0123456789ab..."), ("", "not stated")):
            with pytest.raises(RevisionNeeded, match=f"plan.*and is {brief};.*{command}"):
                ledger.reserve(ask(plan_digest=plan))

    def test_is_not_needed_while_nothing_was_drawn(self, ledger: Ledger) -> None:
        attempt = ledger.reserve(ask())
        with pytest.raises(RevisionNeeded, match="void opal/2016-W30/r0"):
            ledger.reserve(ask(plan_digest="plan-2"))
        ledger.void(attempt.attempt_id, "plan changed")
        assert ledger.reserve(ask(plan_digest="plan-2")).plan_digest == "plan-2"

    def test_of_late_rows_is_a_new_batch_for_trips_and_adds_up_for_cards(
        self, ledger: Ledger
    ) -> None:
        drawn(ledger, ask())
        late = (posting(TRIP, "2016-W30/bus/late-1"), posting(CARD, "ever"))
        drawn(ledger, ask(revision=1, postings=late))
        assert spent_micro(ledger, "2016-07-25/bus/b0") == LOSS_MICRO
        assert spent_micro(ledger, "2016-W30/bus/late-1") == LOSS_MICRO
        assert spent_micro(ledger) == 2 * LOSS_MICRO


class TestADecision:
    def test_names_the_bytes_that_were_looked_at(self, ledger: Ledger) -> None:
        attempt = sealed(ledger, ask())
        ledger.approve(attempt.key, "ada", "release_officer", "plausible")
        (decision,) = ledger.approvals(attempt.key)
        assert (decision.is_approval, decision.artefact_digest) == (True, "artefact-1")

    def test_that_is_repeated_is_written_once(self, ledger: Ledger) -> None:
        attempt = sealed(ledger, ask())
        first = ledger.approve(attempt.key, "ada", "release_officer", "plausible")
        assert ledger.approve(attempt.key, "ada", "release_officer", "again") == first

    def test_can_be_taken_back(self, ledger: Ledger) -> None:
        attempt = sealed(ledger, ask())
        ledger.approve(attempt.key, "ada", "release_officer", "plausible")
        ledger.refuse(attempt.key, "ada", "release_officer", "wrong week")
        ledger.approve(attempt.key, "ada", "release_officer", "right after all")
        said = [decision.is_approval for decision in ledger.approvals(attempt.key)]
        assert said == [True, False, True]

    def test_before_a_seal_names_no_bytes(self, ledger: Ledger) -> None:
        assert ledger.approve(ask().key, "ada", "officer", "go").artefact_digest is None

    def test_of_an_audit_is_written_once(self, ledger: Ledger) -> None:
        attempt = published(ledger, ask())
        for _ in range(2):
            ledger.record_audit(attempt.key, outcome="passed", report_digest="r")
        assert sum(entry.kind == "audited" for entry in ledger.entries()) == 1


def test_what_is_unknown_says_so(ledger: Ledger) -> None:
    assert ledger.find(ask().key) is None
    assert not ledger.is_published(ask().key)
    with pytest.raises(InputError, match="unknown"):
        ledger.begin_draw("opal/2016-W30/r0#1", BINDINGS)
    with pytest.raises(RefusedError, match="not sealed"):
        ledger.publish(ask().key, "manifest")
    with pytest.raises(RefusedError, match="not published"):
        ledger.withdraw(sealed(ledger, ask()).key, "ada", "wrong")
