"""Programmes of one budget group tell days, cards and modes apart alike, or nobody adds them up."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger_asks import CAPS, ask, drawn, noon, sealed

from conftest import Stores
from turnstile.errors import RefusedError
from turnstile.ledger import same_units
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.same_units import STATES_ITS_DAY, day_differences, mode_differences
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
            assert day_differences(terms_of(one), terms_of(other)) == ()
            assert mode_differences(terms_of(one), terms_of(other), same_files=True) == ()


def test_days_that_records_state_are_not_those_of_their_time(stores: Stores) -> None:
    """Whenever either begins its days; two feeds that state theirs, or none, are the control."""
    taps, fares = (
        terms_of("opal") | {"source.feed": feed} for feed in ("taps", "tides_fare_transactions")
    )
    events = fares | {"source.feed": "tides_passenger_events"}
    assert day_differences(fares, events) == day_differences(taps, terms_of("opal")) == ()
    ledger = Ledger.open(stores.new(), clock=noon)
    sealed(ledger, ask(terms=taps))
    said = str(ledger.refusal_of(ask(terms=fares, programme="fares")))
    assert "source.feed is 'taps' there and 'tides_fare_transactions' here" in said
    assert ledger.refusal_of(ask(terms=taps, programme="fares")) is None


def test_of_two_such_feeds_of_a_group_one_goes_on_after_a_period_without_a_release(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They released in one group before it was refused; no text of either puts that back."""
    taps, fares = (
        terms_of("opal") | {"source.feed": feed} for feed in ("taps", "tides_fare_transactions")
    )
    ledger = Ledger.open(stores.new(), clock=noon)
    sealed(ledger, ask(terms=taps))
    with monkeypatch.context() as before:
        before.setattr(same_units, "STATES_ITS_DAY", frozenset())
        sealed(ledger, ask(terms=fares, programme="fares"), "artefact-2")
    after = {"week": "2016-W31", "terms": taps}
    for more in (
        after,
        after | {"terms": fares, "programme": "fares"},
        {"terms": taps, "revision": 1},
    ):
        said = str(ledger.refusal_of(ask(**more)))
        assert "one of the two goes on in the group" in said
        assert "Put that back" not in said
    sealed(ledger, ask("2016-W32", terms=taps), "artefact-3")
    assert ledger.refusal_of(ask("2016-W33", terms=fares, programme="fares")) is not None


def test_every_feed_whose_records_state_their_day_is_known() -> None:
    feeds = (ROOT / "include/turnstile/sources/feeds").glob("*.py")
    assert {file.stem for file in feeds if "(service_date AS DATE)" in file.read_text()} == set(
        STATES_ITS_DAY
    )


MODES = "modes: [bus, ferry, light_rail, train]"
OF_DAYS = {
    "another begin of the day": ("opal", "time: {", 'time: {day_starts: "04:00", ', "day_starts"),
    "another zone": ("opal", "Australia/Sydney", "Australia/Perth", "time.zone"),
    "files of another clock": (
        "itms",
        "modes: [bus]",
        "modes: [bus]\n  file: {zone: UTC}",
        "file.zone",
    ),
    "vehicles of another zone": ("itms", "Asia/Kolkata", "Asia/Dhaka", "time.zone"),
}
RENAMED = ("opal_trip", "light_rail, train]", "light_rail, rail]\n  mode_names: {train: rail}")


@pytest.mark.parametrize("change", OF_DAYS)
def test_what_would_put_one_loss_into_two_days_is_refused(
    change: str, stores: Stores, tmp_path: Path
) -> None:
    """A sibling, a week beside it and a correction alike; the same terms are the control."""
    name, old, new, said = OF_DAYS[change]
    before, after = terms_of(name), altered(tmp_path, name, old, new)
    ledger = Ledger.open(stores.new(), clock=noon)
    sealed(ledger, ask(terms=before))
    beside = ({"week": "2016-W29"}, {"week": "2016-W31"})
    for other in ({"programme": "sibling"}, {"revision": 1}, *beside):
        with pytest.raises(RefusedError, match="nobody would add it up") as refused:
            ledger.reserve(ask(terms=after, **other))  # type: ignore[arg-type]
        assert said in str(refused.value)
        assert ledger.refusal_of(ask(terms=after, **other)) is not None  # type: ignore[arg-type]
        assert ledger.refusal_of(ask(terms=before, **other)) is None  # type: ignore[arg-type]
    for week in ("2016-W28", "2016-W32"):  # no day of one is in the other
        assert ledger.refusal_of(ask(week, terms=after)) is None
    assert ledger.refusal_of(ask(terms=after, family="others", programme="sibling")) is None


@pytest.mark.parametrize("is_other", [True, False])
def test_a_mode_of_another_name_is_refused_in_the_same_week(
    stores: Stores, tmp_path: Path, *, is_other: bool
) -> None:
    """Whatever was charged since, which does not know the word."""
    before, after = terms_of("opal_trip"), altered(tmp_path, *RENAMED)
    ledger = Ledger.open(stores.new(), clock=noon)
    sealed(ledger, ask(terms=before, epsilon_micro=MICRO))
    buses = ask(terms=without_trains(before), programme="buses", epsilon_micro=MICRO)
    sealed(ledger, buses, "artefact-2")
    terms = after if is_other else before
    refusal = ledger.refusal_of(ask(terms=terms, revision=1, epsilon_micro=MICRO))
    assert (refusal is not None) is is_other
    if refusal is not None:
        assert "source.mode_names.train is 'train' there and 'rail' here" in str(refusal)
    assert ledger.refusal_of(ask("2016-W31", terms=terms)) is None


@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (MODES, "modes: [ferry]", "source.without_mode is 'train' there and 'ferry' here"),
        (MODES, "modes: [train]\n  columns: {mode: operator}", "source.columns.mode is ''"),
    ],
)
def test_of_one_file_a_record_without_a_mode_has_one_label(
    stores: Stores, tmp_path: Path, old: str, new: str, said: str, *, is_same: bool
) -> None:
    """Programmes of one mode each, over the files of their own mode, are added up."""
    (trains := tmp_path / "trains").mkdir()
    before = altered(trains, "opal_trip", MODES, "modes: [train]")
    ledger = Ledger.open(stores.new(), clock=noon)
    sealed(ledger, ask(terms=before, files=("of one",), bounding_key="k", epsilon_micro=MICRO))
    terms, files = altered(tmp_path, "opal_trip", old, new), ("of one",) if is_same else ("other",)
    asked = ask(terms=terms, files=files, programme="sibling", epsilon_micro=MICRO)
    refusal = ledger.refusal_of(asked)
    assert (refusal is not None) is is_same
    assert said in str(refusal) or not is_same


MICRO = 1_000_000


def without_trains(terms: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in terms.items() if value != "train"}


def test_labels_of_modes_matter_where_a_cap_is_on_trips_alone(
    stores: Stores, tmp_path: Path
) -> None:
    before, after = terms_of("opal_trip"), altered(tmp_path, *RENAMED)
    caps = tuple(cap for cap in CAPS if cap.unit != "trip")
    assert len(caps) == len(CAPS) - 1
    ledger = Ledger.open(stores.new(), clock=noon)
    sealed(ledger, ask(terms=before, caps=caps))
    assert ledger.refusal_of(ask(terms=after, caps=caps, revision=1)) is None


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


@pytest.mark.parametrize("files", [(), ("of one",)])
def test_the_column_of_a_card_is_not_that_of_a_mode(
    stores: Stores, tmp_path: Path, files: tuple[str, ...]
) -> None:
    named = f"{MODES}\n  columns: {{card_id: account}}"
    ledger = Ledger.open(stores.new(), clock=noon)
    same = {"files": files, "bounding_key": "k" if files else "", "epsilon_micro": MICRO}
    sealed(ledger, ask(terms=terms_of("opal_trip"), **same))
    asked = ask(terms=altered(tmp_path, "opal_trip", MODES, named), programme="sibling", **same)
    assert ledger.refusal_of(asked) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (MODES, "modes: [train]"),
        (
            MODES,
            "modes: [bus, ferry, light_rail, train, metro]\n  mode_names: {Sydney Metro: metro}",
        ),
        ("slot_minutes: 15", "slot_minutes: 30"),
        ("case: lower", "case: upper"),
    ],
)
def test_what_changes_no_name_of_an_account_is_added_up(
    stores: Stores, tmp_path: Path, old: str, new: str
) -> None:
    before, after = terms_of("opal_trip"), altered(tmp_path, "opal_trip", old, new)
    assert before != after
    ledger = Ledger.open(stores.new(), clock=noon)
    sealed(ledger, ask(terms=before))
    assert ledger.refusal_of(ask(terms=after, programme="sibling")) is None


def test_cards_and_vehicles_share_no_account_and_an_earlier_version_said_nothing(
    stores: Stores,
) -> None:
    ledger = Ledger.open(stores.new(), clock=noon)
    sealed(ledger, ask(terms=terms_of("opal")))
    sealed(ledger, ask("2016-W40"), "artefact-2")
    assert ledger.refusal_of(ask(terms=terms_of("itms"), programme="itms")) is None
    assert ledger.refusal_of(ask(terms=terms_of("itms"), week="2016-W40", revision=1)) is None


def test_a_period_of_several_weeks_is_held_against_all_of_them(
    stores: Stores, tmp_path: Path
) -> None:
    before, after = terms_of("opal"), altered(tmp_path, "opal", "Sydney", "Perth")
    ledger = Ledger.open(stores.new(), clock=noon)
    sealed(ledger, ask("2016-W34", terms=before, first_week="2016-W30"))
    for week, is_refused in (("2016-W28", False), ("2016-W29", True), ("2016-W32", True)):
        assert (ledger.refusal_of(ask(week, terms=after)) is not None) is is_refused
    other = ask("2016-W29", terms=after, first_week="2016-W26", programme="sibling")
    assert ledger.refusal_of(other) is not None
