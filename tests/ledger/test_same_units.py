"""Programmes of one budget group tell days, cards and modes apart alike, or nobody adds them up."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger_asks import CAPS, ask, drawn, noon, sealed

from conftest import Stores
from turnstile.errors import RefusedError
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.same_units import unit_differences
from turnstile.programme.loading import load_programme
from turnstile.programme.terms import binding_terms
from turnstile.service_calendar import parse_period

ROOT = Path(__file__).parents[2]
OPAL = ("opal", "opal_trip", "opal_2017", "opal_sums", "opal_flows", "opal_year")
ITMS = ("itms", "itms_delays", "itms_month", "itms_survey")


def terms_of(name: str, include: Path = ROOT / "include") -> dict[str, str]:
    return binding_terms(load_programme(name, include), parse_period("2016-W30"))


def altered(tmp_path: Path, name: str, old: str, new: str) -> dict[str, str]:
    """The terms of a shipped programme with one line changed, as a person would change it."""
    (tmp_path / "programmes").mkdir()
    text = (ROOT / f"include/programmes/{name}.yaml").read_text()
    assert old in text
    (tmp_path / f"programmes/{name}.yaml").write_text(text.replace(old, new))
    (tmp_path / "domains").symlink_to(ROOT / "include/domains")
    return terms_of(name, tmp_path)


@pytest.mark.parametrize("group", [OPAL, ITMS])
def test_shipped_programmes_of_a_group_are_alike(group: tuple[str, ...]) -> None:
    for one in group:
        for other in group:
            assert unit_differences(terms_of(one), terms_of(other), by_mode=True) == ()


CHANGES = {
    "another begin of the day": ("opal", "time: {", 'time: {day_starts: "04:00", ', "day_starts"),
    "another zone": ("opal", "Australia/Sydney", "Australia/Perth", "time.zone"),
    "another spelling of cards": ("opal", "case: lower", "case: upper", "card_form.case"),
    "accounts for cards": (
        "opal",
        "modes: [bus, ferry, light_rail, train]",
        "modes: [bus, ferry, light_rail, train]\n  columns: {card_id: account}",
        "source.columns.card_id",
    ),
    "a mode of another name": (
        "opal_trip",
        "modes: [bus, ferry, light_rail, train]",
        "modes: [bus, ferry, light_rail, rail]\n  mode_names: {train: rail}",
        "source.mode_names.train",
    ),
    "vehicles of another zone": ("itms", "Asia/Kolkata", "Asia/Dhaka", "time.zone"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_would_put_one_loss_into_two_accounts_is_refused(
    change: str, stores: Stores, tmp_path: Path
) -> None:
    """A sibling, a later week and a correction alike; the same terms are the control."""
    name, old, new, said = CHANGES[change]
    before, after = terms_of(name), altered(tmp_path, name, old, new)
    ledger = Ledger.open(stores.new(), clock=noon)
    sealed(ledger, ask(terms=before))
    asked = (
        {"programme": "sibling"},
        {"week": "2016-W31"},
        {"revision": 1},
    )
    for other in asked:
        with pytest.raises(RefusedError, match="nobody would add it up") as refused:
            ledger.reserve(ask(terms=after, **other))  # type: ignore[arg-type]
        assert said in str(refused.value)
        assert ledger.refusal_of(ask(terms=after, **other)) is not None  # type: ignore[arg-type]
        assert ledger.refusal_of(ask(terms=before, **other)) is None  # type: ignore[arg-type]
    assert ledger.refusal_of(ask(terms=after, family="others", programme="sibling")) is None


def test_what_was_voided_binds_nobody_and_what_was_burned_does(
    stores: Stores, tmp_path: Path
) -> None:
    before, after = terms_of("opal"), altered(tmp_path, "opal", "Sydney", "Perth")
    ledger = Ledger.open(stores.new(), clock=noon)
    held = ledger.reserve(ask(terms=before))
    ledger.void(held.attempt_id, "not now")
    assert ledger.refusal_of(ask(terms=after, week="2016-W31")) is None
    ledger.burn(drawn(ledger, ask(terms=before)).attempt_id, "stopped")
    assert ledger.refusal_of(ask(terms=after, week="2016-W31")) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("modes: [bus, ferry, light_rail, train]", "modes: [train]"),
        (
            "modes: [bus, ferry, light_rail, train]",
            "modes: [bus, ferry, light_rail, train, metro]\n  mode_names: {Sydney Metro: metro}",
        ),
        ("slot_minutes: 15", "slot_minutes: 30"),
    ],
)
def test_other_modes_of_the_same_names_and_other_tables_are_added_up(
    tmp_path: Path, old: str, new: str
) -> None:
    before, after = terms_of("opal_trip"), altered(tmp_path, "opal_trip", old, new)
    assert before != after
    assert unit_differences(before, after, by_mode=True) == ()
    assert unit_differences(after, before, by_mode=True) == ()


def test_labels_of_modes_matter_where_a_cap_is_on_trips_alone(tmp_path: Path) -> None:
    _, old, new, _ = CHANGES["a mode of another name"]
    before, after = terms_of("opal"), altered(tmp_path, "opal", old, new)
    assert unit_differences(before, after, by_mode=False) == ()
    assert unit_differences(before, after, by_mode=True) != ()
    assert any(cap.unit == "trip" for cap in CAPS)  # as the ledger of these tests has one


def test_cards_and_vehicles_share_no_account_and_an_earlier_version_said_nothing() -> None:
    assert unit_differences(terms_of("opal"), terms_of("itms"), by_mode=True) == ()
    assert unit_differences({}, terms_of("itms"), by_mode=True) == ()
