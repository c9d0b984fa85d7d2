"""What entries do to accounts: rows, additive amounts, and the change of each entry. Pure.

An account is (unit, scope) of a family. Units of a whole life (`card`, `bus`) have one row for
`ever` and one row a week, so that a rolling window is a sum of weeks; other units have one row.

A period of several weeks (`2021-W46..2021-W50`) is charged to each of them, and to a row for each
pair of neighbors among them. The weeks of a window less the pairs in it count every release that
touches the window once: those of its weeks that lie in the window are a path, with one more week
than pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import add, neg, sub
from typing import TYPE_CHECKING, Any, NamedTuple

from turnstile.ledger.balances.amounts import AccountLoss, is_lifetime_unit
from turnstile.ledger.encoding import decode_posting
from turnstile.ledger.entries import EntryKind
from turnstile.service_calendar import ServiceWeek

if TYPE_CHECKING:
    from turnstile.privacy.accounts import Posting

ALL_WEEKS = ""
"""Week of a row that is not one week of a lifetime account."""


class AccountRow(NamedTuple):
    """Which row of a family's accounts; rows are always touched in this order."""

    unit: str
    scope: str
    week: str = ALL_WEEKS


class Amount(NamedTuple):
    """Additive figure of a row; postings without a finite figure are counted, not added."""

    epsilon_micro: int = 0
    epsilon_unbounded: int = 0
    rho_nano: int = 0
    rho_unbounded: int = 0
    delta_femto: int = 0

    @classmethod
    def of(cls, posting: Posting) -> Amount:
        """Return the figure of one posting."""
        return cls(
            epsilon_micro=posting.epsilon_micro or 0,
            epsilon_unbounded=int(posting.epsilon_micro is None),
            rho_nano=posting.rho_nano or 0,
            rho_unbounded=int(posting.rho_nano is None),
            delta_femto=posting.delta_femto,
        )

    def plus(self, other: Amount) -> Amount:
        """Add every figure."""
        return self if other is NOTHING else Amount._make(map(add, self, other))

    def minus(self, other: Amount) -> Amount:
        """Take every figure away."""
        return self if other is NOTHING else Amount._make(map(sub, self, other))

    def negated(self) -> Amount:
        """Return what takes this away again."""
        return Amount._make(map(neg, self))

    @property
    def loss(self) -> AccountLoss:
        """The same as a loss, in which unbounded is None."""
        return AccountLoss(
            None if self.epsilon_unbounded else self.epsilon_micro,
            None if self.rho_unbounded else self.rho_nano,
            self.delta_femto,
        )


NOTHING = Amount()


class Change(NamedTuple):
    """What an entry does to one row."""

    row: AccountRow
    spent: Amount
    held: Amount


def week_names(weeks: str) -> tuple[str, ...]:
    """Return the weeks of a week or of FIRST..LAST.

    Examples:
        >>> week_names("2016-W52..2017-W01")
        ('2016-W52', '2017-W01')
    """
    first, _, last = weeks.partition("..")
    if not last:
        return (weeks,)
    week, end, names = ServiceWeek.parse(first), ServiceWeek.parse(last), []
    while week <= end:
        names.append(str(week))
        week = week.plus(1)
    return tuple(names)


def pair_of(week: str) -> str:
    """Name the row of a week and the one after it."""
    return f"{week}..{ServiceWeek.parse(week).plus(1)}"


def weeks_in(reserved: Mapping[str, Any]) -> str:
    """Return the weeks of a `reserved` entry: one, or FIRST..LAST.

    Version 0.1.0 charged a longer period in its last week alone; such entries keep that meaning.
    """
    return weeks_between(reserved.get("first_week"), reserved["week"])


def weeks_between(first: str | None, last: str) -> str:
    """Name the weeks from the first to the last: one, or FIRST..LAST."""
    return last if first in (None, last) else f"{first}..{last}"


def rows_of(posting: Posting, weeks: str) -> tuple[AccountRow, ...]:
    """Name the rows that a posting touches."""
    row = AccountRow(posting.unit.value, posting.scope)
    if not is_lifetime_unit(posting.unit):
        return (row,)
    names = week_names(weeks)
    charged = (*names, *map(pair_of, names[:-1]))
    return (row, *(row._replace(week=week) for week in charged))


def amounts_by_row(postings: Iterable[Posting], weeks: str) -> dict[AccountRow, Amount]:
    """Add postings up by row, in the order in which rows are locked.

    Args:
        postings: of one release.
        weeks: its week, or FIRST..LAST.
    """
    totals: defaultdict[AccountRow, Amount] = defaultdict(Amount)
    for posting in postings:
        for row in rows_of(posting, weeks):
            totals[row] = totals[row].plus(Amount.of(posting))
    return dict(sorted(totals.items()))


def changes_of(kind: EntryKind, postings: Iterable[Posting], weeks: str) -> tuple[Change, ...]:
    """Say what an entry does to the rows of its attempt, sorted by row.

    Reserving holds; beginning to draw turns the hold into spent; voiding releases the hold.
    Nothing else moves an amount: there is no refund.
    """
    if kind not in (EntryKind.RESERVED, EntryKind.DRAW_BEGUN, EntryKind.VOIDED):
        return ()
    changes = []
    for row, amount in amounts_by_row(postings, weeks).items():
        held = amount if kind is EntryKind.RESERVED else amount.negated()
        spent = amount if kind is EntryKind.DRAW_BEGUN else NOTHING
        changes.append(Change(row, spent, held))
    return tuple(changes)


def declared_changes(postings: Iterable[Posting], weeks: str, draws: int) -> tuple[Change, ...]:
    """Say what a declared loss of so many draws does: all of it is spent."""
    return tuple(
        Change(row, Amount(*(draws * figure for figure in amount)), NOTHING)
        for row, amount in amounts_by_row(postings, weeks).items()
    )


def postings_in(reserved: Mapping[str, object]) -> tuple[Posting, ...]:
    """Read the postings in the body of a `reserved` entry."""
    written = reserved["postings"]
    return tuple(decode_posting(p) for p in written) if isinstance(written, list) else ()
