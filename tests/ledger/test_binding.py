"""What a sealed key is bound to, which caps hold and who set them, and what a long period costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ledger_asks import (
    BINDINGS,
    CARD,
    FAMILY,
    LOSS_MICRO,
    TRIP,
    ask,
    drawn,
    posting,
    sealed,
    spent_micro,
    week_number,
)

from turnstile.errors import BudgetExceeded, InputError, RefusedError, RevisionNeeded
from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.balances.changes import AccountRow, Amount
from turnstile.ledger.bounding_keys import TakenUp
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.fold import Fold
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import MOST, Request
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import Programme
from turnstile.programme.terms import binding_terms
from turnstile.service_calendar import ServiceDays, ServiceWeek

INCLUDE = Path(__file__).resolve().parents[2] / "include"
OPAL = load_programme("opal", INCLUDE)
WEEK = ServiceWeek(2016, 30)
TERMS = binding_terms(OPAL, WEEK)
ANOTHER = replace(BINDINGS, programme_digest="programme-2")


class TestTerms:
    def test_are_blind_to_contact_licence_caps_and_approval(self) -> None:
        publish = replace(OPAL.publish, contact="new@example.org", licence="CC0-1.0")
        caps = tuple(replace(cap, epsilon=Fraction(999), rho=None) for cap in OPAL.caps)
        approval = replace(OPAL.approval, required=True)
        other = replace(OPAL, publish=publish, caps=caps, approval=approval, title="Another")
        assert binding_terms(other, WEEK) == TERMS

    @pytest.mark.parametrize(
        ("key", "other"),
        [
            ("time.slot_minutes", replace(OPAL, time=replace(OPAL.time, slot_minutes=30))),
            (
                "mechanism.amount",
                replace(OPAL, mechanism=replace(OPAL.mechanism, amount=Fraction(1, 3))),
            ),
            (f"tables.{OPAL.tables[0].name}.name", replace(OPAL, tables=OPAL.tables[1:])),
        ],
    )
    def test_see_what_decides_loss_or_cells(self, key: str, other: Programme) -> None:
        assert binding_terms(other, WEEK).get(key) != TERMS[key]

    def test_see_regions_only_where_something_is_drawn_by_them(self) -> None:
        named = replace(OPAL.domain, regions="domains/opal_regions.csv")
        added_up, flows = replace(OPAL, domain=named), load_programme("opal_flows", INCLUDE)
        assert binding_terms(added_up, WEEK) == TERMS
        digests = [load_domain(programme, INCLUDE).digest for programme in (OPAL, added_up)]
        assert digests[0] == digests[1]
        assert "domain.regions" in binding_terms(flows, WEEK)

    def test_see_days_without_service_of_the_period_alone(self) -> None:
        tuesdays = (date(2016, 7, 26), date(2016, 8, 2))
        other = replace(OPAL, source=replace(OPAL.source, absent_days=tuesdays))
        absent = {"source.absent_days": "2016-07-26"}
        assert binding_terms(other, WEEK) == TERMS | absent
        assert binding_terms(other, WEEK.plus(2)) == binding_terms(OPAL, WEEK.plus(2))


class TestASealedKey:
    def test_answers_under_a_programme_that_changed_nothing_that_binds(
        self, ledger: Ledger
    ) -> None:
        first = sealed(ledger, ask(terms=TERMS))
        again = ledger.reserve(ask(terms=TERMS, bindings=ANOTHER))
        assert again.artefact_digest == first.artefact_digest
        assert spent_micro(ledger) == LOSS_MICRO

    def test_lists_every_difference_old_and_new(self, ledger: Ledger) -> None:
        sealed(ledger, ask(terms=TERMS))
        other = {**TERMS, "mechanism.amount": "2", "time.slot_minutes": "30"}
        with pytest.raises(RevisionNeeded) as refused:
            ledger.reserve(ask(terms=other, bindings=ANOTHER))
        said = str(refused.value)
        for key in ("mechanism.amount", "time.slot_minutes"):
            assert f"{key} was {TERMS[key]} and is {other[key]}" in said

    def test_without_terms_is_bound_to_the_whole_programme(self, ledger: Ledger) -> None:
        sealed(ledger, ask())
        with pytest.raises(RevisionNeeded, match="programme was programme-1 and is programme-2"):
            ledger.reserve(ask(terms=TERMS, bindings=ANOTHER))


class TestACap:
    def test_says_who_set_it(self, ledger: Ledger) -> None:
        low = (Cap(TRIP, epsilon_micro=LOSS_MICRO), Cap(CARD, epsilon_micro=10 * LOSS_MICRO))
        drawn(ledger, ask(caps=low))
        with pytest.raises(BudgetExceeded, match=r"set by opal\)"):
            ledger.reserve(ask(programme="ferries"))
        card = next(balance for balance in ledger.balance() if balance.scope == "ever")
        assert card.cap_set_by == ("opal",)


def test_an_attempt_says_for_which_counts_it_was_reserved_and_who_ended_it(ledger: Ledger) -> None:
    held = ledger.reserve(ask(bounding_key="k", exact="counts"))
    assert ledger.exact_of(held) == "counts"
    ledger.void(held.attempt_id, "no data", person="ada")
    again = ledger.reserve(ask())
    assert ledger.exact_of(again) == ""
    ledger.void(again.attempt_id, "timed out")
    ended = [e for e in ledger.entries() if e.kind is EntryKind.VOIDED]
    assert [(e.attempt_id, e.body["reason"], e.body.get("person")) for e in ended] == [
        ("opal/2016-W30/r0#1", "no data", "ada"),
        ("opal/2016-W30/r0#2", "timed out", None),
    ]


class TestALandingPath:
    """Two budget groups over the same files would be two budgets for the same people."""

    def reading(
        self, landing: str, *files: str, group: str = "others", name: str = "b", week: int = 0
    ) -> Request:
        more = {"family": group, "landing": landing, "files": files, "bounding_key": "k"}
        return ask(week_number(week), programme=name, epsilon_micro=1, **more)

    def used(self, ledger: Ledger) -> list[tuple[str, str]]:
        kind = EntryKind.LANDING_USED
        bodies = [entry.body for entry in ledger.entries() if entry.kind is kind]
        return [(body["programme"], body["landing"]) for body in bodies]

    @pytest.mark.parametrize(
        ("landing", "files", "known_as"),
        [
            ("opal/{week}/*", (), "opal/{week}/*"),
            ("./opal//{week}/*.csv", (), "./opal//{week}/*.csv"),
            ("opal/gates/{week}/*", (), "opal/gates/{week}/*"),
            ("{week}/*", (), "{week}/*"),
            ("copies/{week}/*", ("two",), "opal/{week}/*"),
        ],
    )
    def test_is_of_one_budget_group_until_a_person_admits_another(
        self, ledger: Ledger, landing: str, files: tuple[str, ...], known_as: str
    ) -> None:
        ledger.reserve(self.reading("opal/{week}/*", "one", "two", group=FAMILY, name="a"))
        ledger.reserve(self.reading("zoo/{week}/*", "two", group=FAMILY, name="c"))
        second = self.reading(landing, *files)
        said = f"group {FAMILY} has released from them"
        with pytest.raises(RefusedError, match=said) as refused:
            ledger.reserve(second)
        assert str(refused.value).endswith(
            f"admit-family others --landing '{known_as}' --reason TEXT"
        )
        ledger.admit_family(known_as, "others", "olga", "other people")
        assert ledger.reserve(second).is_open
        with pytest.raises(RefusedError, match=f"group {FAMILY}, others has"):
            ledger.reserve(self.reading(landing, *files, group="third", name="d"))
        assert [name for name, _ in self.used(ledger)] == ["a", "c", "b"]

    def test_with_other_files_is_free_and_so_are_files_of_nothing_but_a_void(
        self, ledger: Ledger
    ) -> None:
        held = ledger.reserve(self.reading("opal/{week}/*", "one", group=FAMILY, name="a"))
        ledger.void(held.attempt_id, "no files")
        ledger.reserve(self.reading("zoo/{week}/*", "two", group=FAMILY, name="c"))
        for week, folder in enumerate(("opal-b", "opal-b", "opal/copies", "opal-b")):
            if folder.startswith("opal/"):
                ledger.admit_family("opal/{week}/*", "others", "olga", "other people")
            assert ledger.reserve(self.reading(f"{folder}/{{week}}/*", "one", week=week)).is_open
        assert [place[:-9] for _, place in self.used(ledger)[2:]] == [
            "opal-b", "opal/copies", "opal-b"
        ]  # fmt: skip
        with pytest.raises(InputError, match="nothing to decide"):
            ledger.admit_family("trams/{week}/*", "others", "olga", "other people")

    def test_of_weeks_under_a_key_that_is_lost_a_person_says_whose_they_are(
        self, ledger: Ledger
    ) -> None:
        def lose_key(name: str) -> None:
            kept = tuple(ledger.bounding_keys().kept)
            ledger.name_bounding_key(lambda _: TakenUp(None, name, kept), "olga", "the disk")

        def reading(place: str, group: str, name: str, week: int, key: str) -> Request:
            of = self.reading(f"{place}/{{week}}/*", f"{place}{week}", group=group, week=week)
            return replace(of, key=replace(of.key, programme=name), bounding_key=key)

        sealed(ledger, reading("opal", FAMILY, "a", 0, "k"))
        sealed(ledger, reading("buses", "others", "b", 1, "k"))
        sealed(ledger, ask(programme="y", family="fourth"))  # of whose files nothing was noted
        lose_key("l")
        sealed(ledger, reading("opal", FAMILY, "a", 2, "l"))
        assert ledger.bounding_keys().kept == {"l"}
        assert ledger.reserve(reading("zoo", "third", "c", 2, "l")).is_open  # under the key here
        for place in ("trams", "zoo"):  # whether or not it has read from there
            with pytest.raises(RefusedError, match=f"group {FAMILY} has.*keys that are lost"):
                ledger.reserve(reading(place, "third", "c", 0, "l"))
        with pytest.raises(RefusedError, match="group others has"):
            ledger.reserve(reading("trams", "third", "d", 1, "l"))
        ledger.admit_family("opal/{week}/*", "third", "olga", "other people")
        assert ledger.reserve(reading("trams", "third", "d", 0, "l")).is_open
        assert ledger.reserve(self.reading("zoo2/{week}/*", group="fifth", name="e")).is_open

    def test_of_weeks_under_a_key_that_is_lost_beside_an_earlier_one_nothing_is_in_doubt(
        self, ledger: Ledger
    ) -> None:
        """A reservation knows its files under every key that was there."""
        first = self.reading("opal/{week}/*", "under k", group=FAMILY, name="a")
        sealed(ledger, first)
        ledger.name_bounding_key(lambda _: TakenUp("k", "l", ()), "olga", "a year is over")
        both = self.reading("opal/{week}/*", "k1", "l1", group=FAMILY, name="a", week=1)
        sealed(ledger, replace(both, bounding_key="l"))
        ledger.name_bounding_key(lambda _: TakenUp(None, "m", ("l",)), "olga", "the disk")
        assert ledger.bounding_keys().kept == {"k", "m"}
        copied = self.reading("zoo/{week}/*", "k1", "m1", group="third", name="c", week=1)
        with pytest.raises(RefusedError, match=f"group {FAMILY} has"):
            ledger.reserve(replace(copied, bounding_key="m"))
        another = self.reading("zoo/{week}/*", "k2", "m2", group="third", name="c", week=1)
        assert ledger.reserve(replace(another, bounding_key="m")).is_open

    def test_of_a_group_of_which_no_path_is_known_a_person_can_say_so_too(
        self, ledger: Ledger
    ) -> None:
        """As of a ledger that came back without its programmes' files."""
        sealed(ledger, self.reading("opal/{week}/*", "one", group=FAMILY, name="a"))
        with pytest.raises(InputError, match="nothing to decide"):
            ledger.admit_family("zoo/{week}/*", "others", "olga", "other people")
        sealed(ledger, ask(programme="c", family="third"))
        ledger.admit_family("zoo/{week}/*", "others", "olga", "other people")


def test_which_bounding_keys_have_to_be_there(ledger: Ledger) -> None:
    ledger.void(ledger.reserve(ask(bounding_key="k")).attempt_id, "no files")
    asked: list[set[str]] = []

    def take_up(previous: str | None, name: str, *gone: str) -> Callable[..., Any]:
        return lambda earlier: (asked.append(set(earlier)), TakenUp(previous, name, gone))[1]

    ledger.name_bounding_key(take_up("k", "l"), "olga", "a year is over")
    assert ledger.bounding_keys().kept == {"k", "l"}
    ledger.name_bounding_key(take_up("l", "m", "k"), "olga", "k went with the disk")
    assert ledger.bounding_keys().kept == {"l", "m"}
    ledger.name_bounding_key(take_up(None, "n", "m"), "olga", "m went, too")
    assert ledger.bounding_keys().kept == {"l", "n"}
    assert asked == [{"k"}, {"k", "l"}, {"l", "m"}]


class TestALongPeriod:
    MONTH = (week_number(0), week_number(3))

    def month(self, caps: tuple[Cap, ...]) -> Request:
        first, last = self.MONTH
        return replace(ask(last, caps=caps), first_week=first)

    def test_is_charged_to_every_week_that_holds_one_of_its_days(self, ledger: Ledger) -> None:
        window = (Cap(CARD, epsilon_micro=LOSS_MICRO, window_weeks=1),)
        drawn(ledger, self.month(window))
        for n in range(4):
            with pytest.raises(BudgetExceeded):
                ledger.reserve(ask(week_number(n), programme="other", caps=window))
        assert ledger.reserve(ask(week_number(4), programme="other", caps=window)).is_open
        assert ledger.verify() == ()

    def test_counts_once_in_a_window_however_many_of_its_weeks_lie_in_it(
        self, ledger: Ledger
    ) -> None:
        window = (Cap(CARD, epsilon_micro=2 * LOSS_MICRO, window_weeks=3),)
        drawn(ledger, self.month(window))
        balance = next(account for account in ledger.balance() if ".." in account.scope)
        assert balance.spent.epsilon_micro == LOSS_MICRO
        drawn(ledger, ask(week_number(1), programme="other", caps=window))
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask(week_number(3), programme="third", caps=window))
        assert ledger.reserve(ask(week_number(4), programme="third", caps=window)).is_open
        assert ledger.verify() == ()

    @pytest.mark.parametrize("window_weeks", [1, 2, 3, 5])
    def test_windows_agree_with_adding_up_releases_by_hand(self, window_weeks: int) -> None:
        from turnstile.ledger.admission import most_spent_window
        from turnstile.ledger.balances.changes import rows_of

        releases = [(0, 3, 5), (2, 2, 7), (3, 6, 11), (9, 10, 13)]
        taken: dict[AccountRow, Amount] = {}
        for first, last, cost in releases:
            weeks = (
                f"{week_number(first)}..{week_number(last)}" if first < last else week_number(first)
            )
            for row in rows_of(posting(CARD, "ever", cost), weeks):
                taken[row] = taken.get(row, Amount()).plus(Amount(epsilon_micro=cost))
        for asked in ((0, 0), (2, 4), (5, 9)):
            weeks = named(*asked)
            row = AccountRow("card", "ever")
            _, most_spent = most_spent_window(
                row, weeks, window_weeks, lambda account_row: taken.get(account_row, Amount())
            )
            starts = range(asked[0] - window_weeks + 1, asked[1] + 1)
            by_hand = max(
                sum(
                    cost
                    for first, last, cost in releases
                    if first <= start + window_weeks - 1 and last >= start
                )
                for start in starts
            )
            assert most_spent.epsilon_micro == by_hand

    @pytest.mark.parametrize("window_weeks", [1, 2, 3, 5])
    def test_the_fullest_window_around_a_period_is_that_which_its_charge_is_held_to(
        self, window_weeks: int, ledger: Ledger
    ) -> None:
        releases = [(-9, -9), (-8, -8), (-8, -7), (0, 3), (2, 2), (3, 6), (9, 10), (20, 20)]
        caps = (Cap(CARD, epsilon_micro=99 * LOSS_MICRO, window_weeks=window_weeks),)
        for number, (first, last) in enumerate(releases):
            request = ask(week_number(last), programme=f"p{number}", caps=caps)
            drawn(ledger, replace(request, first_week=week_number(first)))
        fold = Fold()
        assert not [problem for entry in ledger.entries() for problem in fold.follow(entry)]
        for first, last in (
            (0, 0),
            (2, 4),
            (5, 9),
            (-6, -6),
            (8, 8),
            (14, 14),
            (30, 30),
            (-40, -38),
        ):
            (held_to,) = (
                fold.accounts[FAMILY]
                .most_taken([posting(CARD, "ever")], named(first, last))
                .values()
            )
            days = ServiceDays(*(WEEK.plus(n).days[end] for n, end in ((first, 0), (last, -1))))
            (shown,) = (b for b in ledger.balance(FAMILY, days) if b.cap is not None)
            assert shown.spent.epsilon_micro == held_to.epsilon_micro
            start, _, end = shown.scope.partition("..")
            assert start <= week_number(last)
            assert week_number(first) <= end


def named(first: int, last: int) -> str:
    """A week, or FIRST..LAST."""
    return week_number(first) if first == last else f"{week_number(first)}..{week_number(last)}"


@pytest.mark.parametrize("week", ["0001-W01", "9999-W52", "1899-W52", "3000-W01"])
def test_an_impossible_year_is_refused_in_one_sentence(week: str) -> None:
    with pytest.raises(InputError, match="year"):
        ask(week)


def test_amounts_beyond_64_bits_are_refused() -> None:
    with pytest.raises(InputError, match="beyond"):
        ask(postings=(posting(TRIP, "d", MOST + 1),))
    assert 2 * MOST < 2**63  # of what is spent and what is asked for
    with pytest.raises(InputError, match="beyond"):
        ask(caps=(Cap(TRIP, epsilon_micro=2**63),))
