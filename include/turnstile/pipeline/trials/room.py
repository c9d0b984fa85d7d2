"""Room to fail: how many draws a cap admits beside every release that a programme promises. Pure.

From programme and calendar alone. A draw that died after its charge stays charged, and a correction
is charged once more, so a cap that the promised releases fill makes a crash cost a week for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from turnstile.errors import ProgrammeError
from turnstile.ledger.admission import binding_caps
from turnstile.ledger.balances.account_course import Course, filled
from turnstile.ledger.balances.amounts import COORDINATES, Cap, amount_text, cap_text, word_of
from turnstile.ledger.balances.forecast import costliest
from turnstile.privacy.accounts import NANO, postings, rounded_up
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme
from turnstile.release.carried_weeks import rho_over_weeks, with_later_draws
from turnstile.release.ledger_caps import ledger_cap
from turnstile.release.plan import ReleasePlan, make_plan
from turnstile.service_calendar import ServicePeriod, ServiceWeek

_RHO = "rho_nano"


@dataclass(frozen=True, slots=True)
class Room:
    """What one coordinate of a cap admits beside the promised releases of its fullest window.

    Args:
        cap: in force, add/remove.
        coordinate: one of `COORDINATES`.
        promised: what the releases of one window cost together; None if they pass the cap.
        draw: what one draw more costs; None is infinite.
    """

    cap: Cap
    coordinate: str
    promised: int | None
    draw: int | None

    @property
    def limit(self) -> int:
        """The cap's figure."""
        return int(getattr(self.cap, self.coordinate))

    @property
    def draws(self) -> int:
        """How many draws more fit in the window, for draws that die and for corrections."""
        if self.promised is None or not self.draw:
            return 0
        return max(0, self.limit - self.promised) // self.draw

    @property
    def is_passed(self) -> bool:
        """Whether the promised releases alone pass the cap."""
        return self.promised is None or self.promised > self.limit

    def __str__(self) -> str:
        """Say what is promised and what is allowed."""
        name = word_of(self.coordinate)
        limit = amount_text(name, self.limit)
        if self.promised is None:
            return f"the promised releases pass the cap on {cap_text(self.cap)}, {name} {limit}"
        return (
            f"the promised releases cost {cap_text(self.cap)} {name} "
            f"{amount_text(name, self.promised)} of {limit}, and a draw costs "
            f"{amount_text(name, self.draw)}"
        )


def tightest_room(programme: Programme, domain: PublicDomain, period: ServicePeriod) -> Room | None:
    """Return the room under the cap that admits the fewest draws more; None where none is charged.

    Args:
        programme: released by itself; other programmes of its budget group are not looked at.
        domain: its public cells.
        period: any of its periods; every one is taken to have service on all of its days.

    Raises:
        ProgrammeError: one period alone would pass a cap.
    """
    full = replace(programme, source=replace(programme.source, absent_days=()))
    planned = make_plan(full, domain, period)
    rooms = [
        Room(cap, coordinate, *_promised_and_draw(cap, coordinate, full, planned))
        for cap in binding_caps(map(ledger_cap, programme.caps))
        for coordinate in COORDINATES
        if getattr(cap, coordinate) is not None
    ]
    return min(
        (room for room in rooms if room.draw != 0),
        key=lambda room: (room.draws, not room.is_passed),
        default=None,
    )


def _promised_and_draw(
    cap: Cap, coordinate: str, programme: Programme, planned: ReleasePlan
) -> tuple[int | None, int | None]:
    """Return what all releases of one window cost, and what one draw more costs."""
    carries = any(table.year_from is not None for table in programme.tables)
    if carries and cap.unit.is_lifetime and coordinate == _RHO:
        return _year_lost(cap, programme, planned)
    draw = costliest(postings(with_later_draws(planned.events)), cap.unit, coordinate)
    if draw is None:
        return None, None
    if cap.unit.is_lifetime:
        course = Course(
            ServiceWeek.containing(planned.week.first_day), [], [], cap.window_weeks, []
        )
        path, refused = filled(course.going_on([(planned.week, draw)]), getattr(cap, coordinate))
        return (None if refused else max(taken for _, taken in path)), draw
    return draw * _releases_of_an_account(cap, planned.week), draw


def _year_lost(
    cap: Cap, programme: Programme, planned: ReleasePlan
) -> tuple[int | None, int | None]:
    """Return the same for draws that carry their year along, at the age at which they cost most."""
    weeks = cap.window_weeks or 1
    promised = rho_over_weeks(programme, planned.events, cap.unit, weeks)
    draw = rho_over_weeks(programme, planned.events, cap.unit, 1)
    if promised is None or draw is None:
        return None, None
    return rounded_up(promised, NANO) + weeks, rounded_up(draw, NANO)  # each week is rounded up


def _releases_of_an_account(cap: Cap, period: ServicePeriod) -> int:
    """Return how many releases touch one account of days or a week, at most.

    Periods share no day, and follow each other: of a week that is not a period of its own they
    touch the first day and as many times as their length fits into the other six.
    """
    days_max = cap.unit.days_max or 0
    if days_max <= 1 or isinstance(period, ServiceWeek):
        return 1
    return 1 + -(-(days_max - 1) // len(period.days))


def shortage(programme: Programme, room: Room | None) -> ProgrammeError | None:
    """Return what is wrong with a programme whose cap lacks the room that it says there is.

    That is room for its releases, and for the draws that may die and one correction; for these not
    where it says on purpose that a draw that dies costs its period.
    """
    needed = programme.redraws + 1 if programme.redraws else 0
    if room is None or (room.draws >= needed and not room.is_passed):
        return None
    where, fits = f"{programme.name}.yaml", _what_fits(room, needed)
    if room.is_passed:  # as many as may die: none of them has to, and a week would have no release
        return ProgrammeError(where=where, field="caps", rule=f"{room}; {fits}")
    die = "draw that dies" if programme.redraws == 1 else "draws that die"
    rule = (
        f"promises room for {programme.redraws} {die} and "
        f"one correction in any window, and {room}; {fits}, or write "
        "redraws: 0 if a draw that dies may cost its period"
    )
    return ProgrammeError(where=where, field="redraws", rule=rule)


def uncapped(programme: Programme) -> ProgrammeError | None:
    """Return that nothing limits what releases cost together, where no cap is stated at all."""
    if programme.caps:
        return None
    rule = "is empty, so nothing here limits what releases cost; write "
    rule += f"- {{unit: {programme.mechanism.unit}, {_amounts(programme)}}}"
    return ProgrammeError(where=f"{programme.name}.yaml", field="caps", rule=rule)


def open_ended(programme: Programme) -> str:
    """Return that weeks add up without a limit for whoever comes again; empty where they do not.

    A unit that is one record has nothing coarser that a cap could be on (`programme.rules`).
    """
    bounded = [bound.unit for bound in programme.units if not bound.unit.is_record]
    if not programme.caps or not bounded or any(cap.unit.is_lifetime for cap in programme.caps):
        return ""
    unit = next(
        unit for unit in ProtectionUnit if unit.is_lifetime and unit.subject is bounded[0].subject
    )
    return (
        f"{programme.name}.yaml: caps: none is over weeks, so unless another programme of "
        f"{programme.family} states one, what the weeks cost one {unit} together has no limit; "
        f"add - {{unit: {unit}, window_weeks: 52, {_amounts(programme)}}}"
    )


def _amounts(programme: Programme) -> str:
    """Return what a cap has to state, for somebody to fill in."""
    kind = programme.mechanism.kind  # a cap that states no delta admits none
    return f"{kind.amount}: AMOUNT" + ", delta: AMOUNT" * kind.is_thresholded


def _what_fits(room: Room, needed: int) -> str:
    """Say how much smaller a release would have to be."""
    if room.promised is None or not room.draw:
        return "make the amount of a release smaller"
    permille = 1000 * room.limit // (room.promised + needed * room.draw)
    return f"make the amount of a release smaller: at most {permille / 10:g} % of it fits"


def crash_sentence(room: Room) -> str:
    """Say what a draw costs that dies before its seal, and what is left for others then."""
    name, cap = word_of(room.coordinate), cap_text(room.cap)
    lead = (
        f"A draw that dies before its seal stays charged: {name} "
        f"{amount_text(name, room.draw)} on {cap}"
    )
    if room.draws == 0:
        return f"{lead}; the cap admits no other, so its period would have no release for ever."
    return (
        f"{lead}. Beside the promised releases of this programme alone the cap admits {room.draws} "
        f"draw{'s' * (room.draws > 1)} more in any window, for those that died and for corrections."
    )
