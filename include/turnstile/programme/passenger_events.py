"""What a programme of passenger events may ask for: records of them name nobody.

A ride is one boarding and one alighting, and nothing says which. So nothing but a ride can be
bounded, every table counts one end alone, and what lies outside the public cells is left out: an
end that a record does not have is no UNKNOWN.
"""

from __future__ import annotations

from turnstile.programme.fields import OF_OFF, OF_ON, VISITS
from turnstile.programme.source_spec import Feed, SourceSpec
from turnstile.programme.spec import DomainSpec, Outside, TableSpec, UnitBound
from turnstile.programme.yaml_section import Section


def check_events(top: Section, source: SourceSpec, tables: tuple[TableSpec, ...]) -> None:
    """Check tables, and what goes with a feed that has no card.

    Raises:
        ProgrammeError: a table that counts both ends or neither, visits of another feed's rows, or
            a rule for rows without a card.
    """
    feed = source.feed
    for table in tables:
        own = set(table.by)
        section = top.section("tables").section(table.name)
        if own & set(VISITS) and not feed.names_nobody:
            section.fail("by", f"stop visits are of {Feed.TIDES_PASSENGER_EVENTS}; remove them")
        if feed.names_nobody and bool(own & set(OF_ON)) == bool(own & set(OF_OFF)):
            section.fail(
                "by",
                f"{feed} joins no boarding to an alighting: name dimensions of one of them, "
                "tap_on_ or boarding_visit, or tap_off_ or alighting_visit",
            )
    if feed.names_nobody and top.section("source").has("without_card"):
        top.section("source").fail("without_card", f"{feed} has no cards; remove it")


def check_cells(top: Section, source: SourceSpec, domain: DomainSpec) -> None:
    """Check the public cells of a feed whose rows have one end.

    Raises:
        ProgrammeError: rows outside would be counted as UNKNOWN, or a list that no row could use.
    """
    section = top.section("domain")
    if source.feed.names_nobody and domain.outside is not Outside.DROP:
        section.fail(
            "outside", "must be drop: a boarding has no alighting that could be UNKNOWN; write drop"
        )
    for name, _ in domain.lists:
        if name in VISITS and not source.feed.names_nobody:
            rule = f"is of {Feed.TIDES_PASSENGER_EVENTS}; remove it"
            section.section("lists").fail(name, rule)


def check_units(top: Section, source: SourceSpec, units: tuple[UnitBound, ...]) -> None:
    """Check that nothing is bounded that records cannot tell.

    Raises:
        ProgrammeError: a bound on a card, where there is none.
    """
    for bound in units:
        if source.feed.names_nobody and not bound.unit.is_record:
            rule = f"cannot be bounded: {source.feed} names no card; write trip: {{contributes: 1}}"
            top.section("units").fail(bound.unit, rule)
