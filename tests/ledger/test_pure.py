"""Encodings, folds, windows and forecasts: rules of the pure rooms."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_asks import CARD, TRIP, posting, week_number

from turnstile.errors import InputError
from turnstile.ledger import presentation
from turnstile.ledger.admission import (
    binding_caps,
    cap_figures,
    most_spent_window,
    most_taken,
)
from turnstile.ledger.balances.account_course import Course, filled, next_correction
from turnstile.ledger.balances.amounts import AccountLoss, Cap, amount_text
from turnstile.ledger.balances.changes import (
    ALL_WEEKS,
    NOTHING,
    AccountRow,
    Amount,
    amounts_by_row,
    rows_of,
)
from turnstile.ledger.balances.stored_accounts import _most_spent
from turnstile.ledger.encoding import (
    canonical,
    decode_cap,
    decode_event,
    decode_posting,
    encode_cap,
    encode_event,
    encode_posting,
)
from turnstile.ledger.entries import GENESIS, EntryKind, make_entry, read_entry
from turnstile.ledger.records import AccountBalance, ReleaseKey
from turnstile.ledger.states import TRANSITIONS, ReleaseState, Transition, is_allowed, is_repeat
from turnstile.privacy.accounts import Posting
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import Block, NeighboringRelation, ProtectionUnit
from turnstile.service_calendar import ServiceWeek

AMOUNTS = st.one_of(st.none(), st.integers(0, 10**15))
CAPS = st.builds(
    Cap,
    unit=st.just(TRIP),
    epsilon_micro=st.integers(0, 10**9),
    rho_nano=AMOUNTS,
    delta_femto=AMOUNTS,
)
POSTINGS = st.builds(
    Posting,
    unit=st.sampled_from(ProtectionUnit),
    scope=st.text(max_size=9),
    epsilon_micro=AMOUNTS,
    rho_nano=AMOUNTS,
    delta_femto=st.integers(0, 10**15),
)


class TestEncoding:
    def test_is_one_text_whatever_the_order_of_keys(self) -> None:
        assert canonical({"b": [1, None], "a": "é"}) == canonical({"a": "é", "b": (1, None)})

    @pytest.mark.parametrize("value", [1.0, {"a": [0.5]}, float("nan"), {"a": object()}])
    def test_refuses_floats_and_strangers(self, value: object) -> None:
        with pytest.raises(TypeError):
            canonical(value)

    @given(POSTINGS)
    def test_of_a_posting_reads_back(self, original: Posting) -> None:
        assert decode_posting(encode_posting(original)) == original

    @given(CAPS)
    def test_of_a_cap_reads_back(self, cap: Cap) -> None:
        assert decode_cap(encode_cap(cap)) == cap

    @pytest.mark.parametrize(
        "later",
        [
            {"joint": "places/count"},
            {"own_records": True},
            {"mechanism": "dense_laplace"},
            {"step": 3, "carried": ((date(2016, 7, 18), 2),)},
        ],
    )
    def test_of_what_later_versions_added_reads_back(self, later: dict[str, Any]) -> None:
        event = DrawEvent(
            table="on_time",
            statistic="count",
            noise=NoiseFamily.DISCRETE_GAUSSIAN,
            scale=Fraction(5, 2),
            blocks=(),
            sensitivities=((TRIP, Sensitivity(1, 1, 1, 1)),),
        )
        changed = replace(event, **later)
        assert encode_event(changed).items() > encode_event(event).items()
        assert decode_event(encode_event(changed)) == changed

    @pytest.mark.parametrize("threshold", [None, 17])
    def test_of_an_event_reads_back(self, threshold: int | None) -> None:
        event = DrawEvent(
            table="on_time",
            statistic="count",
            noise=NoiseFamily.DISCRETE_LAPLACE,
            scale=Fraction(5, 2),
            blocks=(Block(date(2016, 7, 25), "bus"), Block(date(2016, 7, 26), "train", "late-1")),
            sensitivities=((TRIP, Sensitivity(1, 1, 1, 1)), (CARD, None)),
            delta=Fraction(0) if threshold is None else Fraction(1, 3),
            threshold=threshold,
        )
        written = encode_event(event)
        assert decode_event(written) == event
        assert canonical(written)

    def test_of_an_entry_reads_back_and_unknown_versions_are_refused(self) -> None:
        entry = make_entry((0, GENESIS), "2016-08-09T12:00:00+00:00", EntryKind.BURNED, {"a": 1})
        assert read_entry(entry.record, entry.hash) == entry
        with pytest.raises(ValueError, match="version 2"):
            read_entry(entry.record.replace('"version":1', '"version":2'), entry.hash)
        with pytest.raises(ValueError, match="not an entry"):
            read_entry("[]", entry.hash)

    def test_of_the_first_entry_never_changes(self) -> None:
        """A golden record: what was written ten years ago has to verify for ever."""
        body = {"attempt": "opal/2016-W30/r0#1", "key": "opal/2016-W30/r0", "reason": "died"}
        entry = make_entry((6, "ab" * 32), "2016-08-09T12:00:00+00:00", EntryKind.BURNED, body)
        assert entry.record == (
            '{"at":"2016-08-09T12:00:00+00:00","body":{"attempt":"opal/2016-W30/r0#1",'
            '"key":"opal/2016-W30/r0","reason":"died"},"kind":"burned","previous":"'
            + "ab" * 32
            + '","sequence":7,"version":1}'
        )
        assert entry.hash == "e3805d82484e5eaeb498b47f875628daa7efffd80af59197db67c1b5108c4867"


class TestAmounts:
    @given(st.lists(POSTINGS, max_size=6), st.randoms())
    def test_do_not_depend_on_the_order_of_postings(
        self, postings: list[Posting], random: object
    ) -> None:
        shuffled = postings.copy()
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        assert amounts_by_row(postings, "2016-W30") == amounts_by_row(shuffled, "2016-W30")

    @given(st.lists(POSTINGS, max_size=6))
    def test_are_listed_in_lock_order(self, postings: list[Posting]) -> None:
        rows = list(amounts_by_row(postings, "2016-W30"))
        assert all(row < other for row, other in pairwise(rows))

    @given(POSTINGS, POSTINGS)
    def test_add_up_like_losses(self, one: Posting, other: Posting) -> None:
        both = Amount.of(one).plus(Amount.of(other))
        assert both.loss == Amount.of(one).loss + Amount.of(other).loss
        assert both.plus(Amount.of(other).negated()) == Amount.of(one)

    def test_of_a_lifelong_unit_are_kept_for_ever_and_by_week(self) -> None:
        rows = amounts_by_row([posting(CARD, "ever"), posting(TRIP, "d/bus/b0")], "2016-W30")
        assert list(rows) == [
            AccountRow("card", "ever"),
            AccountRow("card", "ever", "2016-W30"),
            AccountRow("trip", "d/bus/b0"),
        ]

    @given(st.integers(0, 10**18))
    def test_are_written_exactly(self, amount: int) -> None:
        assert Fraction(amount_text("epsilon", amount)) == Fraction(amount, 10**6)


class TestWindows:
    @given(
        st.lists(st.integers(0, 9), min_size=7, max_size=7), st.integers(1, 5), st.integers(0, 6)
    )
    def test_that_are_most_spent_equal_the_plain_maximum(
        self, weekly: list[int], window_weeks: int, week: int
    ) -> None:
        figures = {week_number(n): amount for n, amount in enumerate(weekly)}

        def taken(row: AccountRow) -> Amount:
            return Amount(epsilon_micro=figures.get(row.week, 0))

        _, most_spent = most_spent_window(
            AccountRow("card", "ever"), week_number(week), window_weeks, taken
        )
        padded = {n: weekly[n] if 0 <= n < 7 else 0 for n in range(-10, 20)}
        starts = range(week - window_weeks + 1, week + 1)
        plain = max(sum(padded[n] for n in range(s, s + window_weeks)) for s in starts)
        assert most_spent.epsilon_micro == plain

    @given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.integers(1, 5))
    def test_of_a_balance_equal_the_plain_maximum(
        self, weekly: list[int], window_weeks: int
    ) -> None:
        rows = {week_number(n): (Amount(a), NOTHING) for n, a in enumerate(weekly) if a}
        if not rows:
            return
        _, spent, _ = _most_spent(rows, window_weeks)
        plain = max(sum(weekly[n : n + window_weeks]) for n in range(len(weekly)))
        assert spent.epsilon_micro == plain

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (Amount(5, 0, 1), Amount(1, 0, 5)),  # more epsilon, more rho
            (Amount(0, 3, 3), Amount(0, 1, 5)),  # three Gaussian releases, one that costs more
            (Amount(9, 0, 9), Amount(9, 0, 0, 1)),  # everything has a bound, rho has none
            (Amount(1, 0, 4), Amount(1, 0, 5)),
        ],
    )
    def test_that_have_taken_most_are_the_same_in_a_refusal_and_in_every_balance(
        self, one: Amount, other: Amount
    ) -> None:
        for first, last, most in ((one, other, 1), (other, one, 0), (other, other, 1)):
            amounts = {week_number(0): first, week_number(1): last}
            named, _ = most_spent_window(
                AccountRow("card", "ever"),
                f"{week_number(0)}..{week_number(1)}",
                1,
                lambda row, of=amounts: of.get(row.week, NOTHING),  # type: ignore[misc]
            )
            rows = {week: (amount, NOTHING) for week, amount in amounts.items()}
            kept, _, _ = _most_spent(rows, 1)
            balances = [
                AccountBalance("f", ProtectionUnit.CARD, week, amount.loss, AccountLoss(), None)
                for week, amount in amounts.items()
            ]
            (shown,) = presentation.most_spent(balances)
            week = week_number(most)
            assert (named, kept, shown.scope) == (f"{week}..{week}", f"{week}..{week}", week)


class TestCapsInForce:
    @given(st.lists(CAPS, min_size=1, max_size=4))
    def test_are_no_larger_than_any_programme_says(self, caps: list[Cap]) -> None:
        (binding_cap,) = binding_caps(caps)
        for cap in caps:
            assert binding_cap.epsilon_micro is not None
            assert cap.epsilon_micro is not None
            assert binding_cap.epsilon_micro <= cap.epsilon_micro
            assert (binding_cap.delta_femto or 0) <= (cap.delta_femto or 0)
            if cap.rho_nano is not None:
                assert binding_cap.rho_nano is not None
                assert binding_cap.rho_nano <= cap.rho_nano

    def test_round_a_halved_cap_down(self) -> None:
        (binding_cap,) = binding_caps([Cap(TRIP, NeighboringRelation.REPLACE, epsilon_micro=7)])
        assert binding_cap.epsilon_micro == 3
        assert binding_cap.relation is NeighboringRelation.ADD_REMOVE

    def test_keep_a_lifetime_and_a_window_of_one_week_apart(self) -> None:
        caps = (Cap(CARD, epsilon_micro=9), Cap(CARD, epsilon_micro=5, window_weeks=1))
        assert [(cap.epsilon_micro, cap.window_weeks) for cap in binding_caps(caps)] == [
            (9, None),
            (5, 1),
        ]

    def test_of_several_windows_the_least_holds_for_each_week(self) -> None:
        caps = binding_caps(
            (
                Cap(CARD, epsilon_micro=5, window_weeks=4),
                Cap(CARD, epsilon_micro=9, window_weeks=52),
            )
        )
        for row, least in (("2016-W30", 5), (ALL_WEEKS, None)):
            assert cap_figures(AccountRow(CARD.value, "ever", row), caps)[0] == least

    def test_say_what_their_most_spent_account_has_taken(self) -> None:
        (cap,) = caps = binding_caps((Cap(TRIP, epsilon_micro=9),))
        taken = {"a": Amount(epsilon_micro=3), "b": Amount(epsilon_micro=5)}
        asked = amounts_by_row([posting(TRIP, scope) for scope in taken], "2016-W30")
        most = most_taken(caps, asked, "2016-W30", lambda row: taken.get(row.scope, NOTHING))
        assert most[cap].epsilon_micro == 5


class TestCourses:
    FIRST = ServiceWeek.parse("2016-W30")

    def course(self, *weeks: int) -> Course:
        """Releases of one week each, which cost 1, under a window of four weeks."""
        past = Course(self.FIRST, [*weeks], [0] * len(weeks), 4, [])
        return past.going_on([(self.FIRST.plus(len(weeks)), 1)])

    def test_a_correction_fits_where_a_window_lets_go_what_it_held(self) -> None:
        """Weeks 1, 1, 0, 1 took three of four; a correction of the last week is the fourth."""
        fits, refused = next_correction(self.course(1, 1, 0, 1), 1, 4)
        assert (fits, refused) == (str(self.FIRST.plus(3)), str(self.FIRST.plus(6)))

    def test_a_correction_is_charged_to_the_weeks_of_its_release_alone(self) -> None:
        corrected = self.course(1, 1, 0, 1).corrected(1)
        assert (corrected.weeks, corrected.pairs) == ([1, 1, 0, 2], [0, 0, 0, 0])

    def test_a_correction_never_fits_where_every_window_is_full(self) -> None:
        assert next_correction(self.course(1, 1, 1, 1), 1, 4) == (None, None)

    def test_goes_on_until_a_window_holds_nothing_of_before(self) -> None:
        path, refused = filled(self.course(1, 1, 1, 1), 4)
        assert refused is None
        assert path[:5] == tuple(
            (str(self.FIRST.plus(n)), taken) for n, taken in enumerate((1, 2, 3, 4, 4))
        )
        assert len(path) == 4 + 6
        assert filled(self.course(1, 1, 1, 1), 3) == (path[:4], str(self.FIRST.plus(4)))


def test_a_pair_of_weeks_is_named_by_its_first_and_the_next() -> None:
    """Entries and rows of every version say so; a reader of another would not find them."""
    rows = rows_of(posting(CARD, "ever"), "2016-W30..2016-W31")
    assert [row.week for row in rows] == [ALL_WEEKS, "2016-W30", "2016-W31", "2016-W30..2016-W31"]


class TestStates:
    def test_end_where_nothing_leads_on(self) -> None:
        starts = {start for start, _ in TRANSITIONS.values()}
        ends = {ReleaseState.PUBLISHED, ReleaseState.VOID, ReleaseState.BURNED}
        assert set(ReleaseState) - starts == ends

    def test_let_nothing_but_a_hold_be_voided(self) -> None:
        assert [s for s in ReleaseState if is_allowed(Transition.VOID, s)] == [
            ReleaseState.RESERVED
        ]

    def test_never_take_a_second_draw_for_a_repeat(self) -> None:
        assert not any(is_repeat(Transition.BEGIN_DRAW, state) for state in ReleaseState)


class TestKeys:
    @given(
        st.from_regex(r"[a-z][a-z0-9_.-]{0,8}", fullmatch=True),
        st.from_regex(r"20[0-9]{2}-W[0-9]{2}", fullmatch=True),
        st.integers(0, 99),
    )
    def test_read_back(self, programme: str, period: str, revision: int) -> None:
        key = ReleaseKey(programme, period, revision)
        assert ReleaseKey.parse(str(key)) == key

    @pytest.mark.parametrize("text", ["opal", "opal/2016-W30", "opal/2016-W30/r01", "../x/r0"])
    def test_that_are_none_are_refused(self, text: str) -> None:
        with pytest.raises((InputError, ValueError)):
            ReleaseKey.parse(text)


def test_a_loss_that_is_infinite_stays_so() -> None:
    assert AccountLoss(None, 1) + AccountLoss(2, 3, 4) == AccountLoss(None, 4, 4)
