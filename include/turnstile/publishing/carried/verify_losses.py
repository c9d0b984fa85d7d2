"""A second accountant, of Python alone: `python3 verify_losses.py CARD|DIR.. [--ledger EXPORT]`.

From `release_card.json` alone it derives how far every unit can move each draw, what that costs,
and what releases cost together; card and ledger's export have to state the same. Made from the
proofs: numbers such as 4.3 are of docs/PRIVACY.md, letters such as D1 of the mechanisms' .proof.md.
Exit: 0 agrees, 1 differs (unit, figure stated, figure computed), 2 cannot be reckoned.
"""

from __future__ import annotations

import argparse
import bisect
import functools
import hashlib
import itertools
import json
import math
import os
import re
import sys
from collections import Counter, defaultdict
from datetime import date, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple

CARD, ENTRIES, EVER = "release_card.json", "entries.jsonl", 10**6
# Service days that one instance of a unit can touch (1.1, 1.3); 0: it is a single record.
DAYS = {"trip": 0, "card_day": 1, "card_week": 7, "card": EVER}
DAYS_OF_BUSES = {"bus_day": 1, "bus_week": 7, "bus": EVER}
PARTS = {"epsilon": 10**6, "rho": 10**9, "delta": 10**15}  # a release is rounded up to these (3.1)
NUMBER = re.compile(r"\d{1,60}(\.\d{1,60}|/[1-9]\d{0,59})?")
UNREADABLE: Any = (OSError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError)
UNREADABLE += (RecursionError,)
OLD = (
    "does not hold every term, because it was made before cards did; the `verify_package.py` that "
    "lies in its package checks its loss against plan.json"
)
Account = tuple[str, str]  # unit and scope


# --- how far one unit moves a vector of counts ---------------------------------------------------


class Moved(NamedTuple):
    """Sum of the absolute changes of all cells, sum of their squares, largest change."""

    l1: int
    l2_squared: int
    linf: int


def packed(records: int, in_cell: int) -> Moved:
    """So many records, at most so many in a cell: full cells have the most squares (4.4, 4.5)."""
    most = min(records, in_cell)
    if most < 1:
        raise ValueError("a bound is below 1")
    full, rest = divmod(records, most)
    return Moved(records, full * most**2 + rest**2, most)


def beside(parts: Iterable[Moved]) -> Moved:
    """Vectors side by side have other cells (D5)."""
    l1, l2_squared, linf = zip(*parts)
    return Moved(sum(l1), sum(l2_squared), max(linf))


def exchanged(moved: Moved) -> Moved:
    """Counts u come and w go: u.w >= 0, so squares add up, and no cell moves by both (4.3)."""
    return Moved(2 * moved.l1, 2 * moved.l2_squared, moved.linf)


def stepped(moved: Moved, steps: int) -> Moved:
    """Each record moves its cell by so many steps."""
    return Moved(steps * moved.l1, steps**2 * moved.l2_squared, steps * moved.linf)


class Vector(NamedTuple):
    """What is drawn as one: a draw, the tables that it holds, and their days."""

    draw: Any
    tables: dict[str, Any]
    days: list[date]

    @property
    def first(self) -> Any:
        """One of its tables: all of them count the same records."""
        return next(iter(self.tables.values()))


def in_cell(table: Any, axes: Iterable[str]) -> int:
    """Records of a unit, mode and day in one cell: it lies within those of fewer axes (4.5)."""
    held = [limit["at_most"] for limit in table["limits"] if set(limit["by"]) <= set(axes)]
    return int(min([table["records_at_most"], *held]))


def counted(tables: list[Any], records: int) -> Moved:
    """So many counted records in tables side by side; in both marginals of one table less (4.6)."""
    parts = [packed(records, in_cell(table, table["by"])) for table in tables]
    axes, apart = {axis for table in tables for axis in table["by"]}, beside(parts)
    if (len(tables), len(axes)) != (2, 2) or in_cell(tables[0], axes) > 1:
        return apart
    # Records are edges of a simple graph: the degrees of two ends are at most all edges, and one.
    ends = min(sum(part.linf for part in parts), records + 1)
    return apart._replace(l2_squared=min(apart.l2_squared, records * ends))


def moved_by(unit: str, card: Any, vector: Vector) -> Moved | None:
    """How far a unit moves the counts of one week; None: without a bound (4.1)."""
    tables, records = [*vector.tables.values()], card["terms"]["records"]
    bounded, most = vector.first.get("bounded"), vector.first.get("records_at_most")
    if records == "buses":
        return bounded and moved_by_bus(unit, vector)
    if records not in ("trips", "rides", "pairs of taps"):
        raise ValueError(f"records are {records}, of which this version knows nothing")
    if unit == "trip" and records == "pairs of taps":
        return exchanged(counted(tables, most)) if bounded else moved_by_taps(card, tables)
    if unit == "trip" and not bounded:  # one cell of each table, as either end of a ride (R3)
        return beside(packed(1, 1) for _ in tables)
    if unit == "trip":
        # It drives out one record at most in each limit, by a table's own limit only from the cell
        # into which it falls itself; without limits one of the k (4.3, 4.5).
        limits = {tuple(sorted(limit["by"])) for limit in vector.first["limits"]}
        others = max(len(limits - {tuple(sorted(table["by"]))}) for table in tables)
        return exchanged(counted(tables, max(1, min(most, others))))
    if not bounded:
        return None
    # A vector holds all days of one bounded unit (4.7); what is less than one exchanges (4.3).
    whole = counted(tables, most)
    return exchanged(whole) if DAYS[unit] < DAYS[bounded] else whole


def moved_by_taps(card: Any, tables: list[Any]) -> Moved:
    """Two taps may come between those of other trips and part them (4.9; flows F3)."""
    ends = ("tap_off", "destination")
    axes = [axis for table in card["terms"]["tables"].values() for axis in table["by"]]
    coupled = card["terms"]["rows_outside"] == "drop" and any(a.startswith(ends) for a in axes)
    parts = []
    for table in tables:
        of_end = {axis.startswith(ends) for axis in table["by"]}
        of_both = of_end == {True, False}
        parted = Moved(5, 9, 2) if of_both else Moved(3, 5, 2)
        parts.append(parted if True in of_end or coupled else Moved(1, 1, 1))
    return beside(parts)


def moved_by_bus(unit: str, vector: Vector) -> Moved:
    """Bus-days are added up in each cell: one of a bus, day and cell at most (M1, M2)."""
    table = vector.first
    span, bounded = DAYS_OF_BUSES[unit], DAYS_OF_BUSES[table["bounded"]]
    weeks = {week_of(day) for day in vector.days}
    several = min(span, len(vector.days)) if bounded == 1 else len(weeks)
    times = several if span > bounded else 1  # bounded units in one unit
    moved = packed(times * table["records_at_most"], times * min(bounded, len(vector.days)))
    is_sum = vector.draw["statistic"] == "sum"
    if is_sum:  # tenths of a mean in a range V, less its middle: from -5V to 5V (M1)
        moved = stepped(moved, 5 * table["range"])
    if span >= bounded:
        return moved
    moved = exchanged(moved)  # and where either sign occurs, a cell may move by both (M5)
    return Moved(moved.l1, 2 * moved.l2_squared, 2 * moved.linf) if is_sum else moved


# --- what it costs -------------------------------------------------------------------------------


class Loss(NamedTuple):
    """Epsilon, rho and delta of one unit; None is infinite (3.2)."""

    epsilon: Fraction | None = Fraction(0)
    rho: Fraction | None = Fraction(0)
    delta: Fraction | None = Fraction(0)

    def plus(self, other: Loss, times: int = 1) -> Loss:
        """Basic composition, and that of zCDP (Bun & Steinke 2016, Lemma 1.7): all add up."""
        pairs: Any = zip(self, other)
        return Loss(*(a if a is None else b if b is None else a + times * b for a, b in pairs))

    def up(self) -> Loss:
        """Round up, once a release (3.1)."""
        capped = self._replace(delta=min(self.delta or Fraction(0), Fraction(1)))
        parts: Any = zip(capped, PARTS.values())
        return Loss(*(None if a is None else Fraction(math.ceil(a * n), n) for a, n in parts))


def price(draw: Any, moved: Moved | None) -> Loss:
    """Return what one draw costs a unit that moves it so far.

    Gaussian: rho = l2^2/(2 sigma^2) (D2; Canonne, Kamath & Steinke 2020, Theorem 4). Laplace, which
    is geometric on integers: epsilon = l1/b (D1; Ghosh, Roughgarden & Sundararajan 2009), and
    rho = epsilon^2/2 (Bun & Steinke 2016, Proposition 1.4). A threshold adds its delta (5.3).
    """
    scale, threshold, noise = exact(draw["scale"]), draw["threshold"], draw["noise"]
    is_known = noise == "discrete_laplace" or (noise, threshold) == ("discrete_gaussian", None)
    if scale == 0 or not is_known:
        raise ValueError(f"{noise} of scale {scale} and threshold {threshold} has no proof here")
    if moved is None:
        return Loss(None, None)
    if noise == "discrete_gaussian":
        return Loss(None, moved.l2_squared / (2 * scale**2))
    epsilon = moved.l1 / scale
    return Loss(epsilon, epsilon**2 / 2, uncovered(scale, threshold, moved))


def uncovered(scale: Fraction, threshold: int | None, moved: Moved) -> Fraction:
    """Delta: l1 max(P(Z >= T - 1), P(Z >= T - linf)/linf), P(Z >= t) = r^t/(1 + r) (5.3, S1)."""
    if threshold is None or moved.linf >= threshold:
        return Fraction(0 if threshold is None else 1)
    with localcontext(Context(prec=75, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        r = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()  # e^(-1/b)
        alone, full = (r ** (threshold - n) / (1 + r) for n in (1, moved.linf))
        # Not a number of a milliard digits where it is next to nothing; it is rounded up (3.1).
        least = max(alone, full / moved.linf, Decimal("1e-1000"))
        largest = Fraction(least) * (1 + Fraction(1, 10**60))
    return min(Fraction(1), moved.l1 * largest)


def vectors_of(card: Any) -> Iterator[Vector]:
    """Yield every vector of a release.

    Days of buses are added up, those of one bounded week are one vector (4.7), others are drawn
    apart; tables that the terms join are one vector too (4.6).
    """
    terms, days = card["terms"], [date.fromisoformat(day) for day in card["service_days"]]
    if len(days) > 366 or len(terms["modes"]) > 366:
        raise ValueError("a release has more days or modes than any has")
    if {draw["table"] for draw in card["draws"]} != set(terms["tables"]):
        raise ValueError("draws are not those of the tables in the terms")
    for draw in card["draws"]:
        joint = [names for names in terms["joint"] if draw["table"] in names]
        tables = {name: terms["tables"][name] for name in (joint or [[draw["table"]]])[0]}
        of_joint = [piece for piece in card["draws"] if piece["table"] in tables and joint]
        noise_and_rule = ("noise", "scale", "threshold", "bounded", "records_at_most", "limits")
        both = [{**piece, **tables[piece["table"]]} for piece in of_joint]
        if any(piece.get(n) != both[0].get(n) for piece in both for n in noise_and_rule):
            raise ValueError(f"{' and '.join(tables)} are joined, and differ")
        groups = defaultdict[Any, list[date]](list)
        for day in days if next(iter(tables)) == draw["table"] else []:
            several = 1 < DAYS.get(tables[draw["table"]].get("bounded"), 0) < EVER
            group = 0 if terms["records"] == "buses" else week_of(day) if several else day
            if str(day) not in card["absent_days"]:  # nothing is drawn then (2.3)
                groups[group].append(day)
        yield from (Vector(draw, tables, held) for held in groups.values())


def multiples_of(span: int, vector: Vector) -> list[int]:
    """How often a draw holds its own week, the one before, ..; for a unit of all weeks their sum.

    Week t draws n_0 x_t + n_1 x_(t-1) + ..: a unit of week t - a pays for n_a, one of all weeks for
    n_0 + .. + n_t at once (4.10; Y3, Y5). Without a year n_0 = 1.
    """
    year = vector.first.get("year_to_date")
    multiples = year["multiples"] if year else [1]
    age = (week_of(vector.days[0]) - week_named(year["from"])) % 52 if year else 0
    if len(multiples) != age + 1 or min(multiples) < 0:
        raise ValueError(f"{len(multiples)} weeks are held in week {age + 1} of a year")
    return [sum(multiples)] if span == EVER else multiples


def losses_of(card: Any) -> dict[Account, Loss]:
    """Return what a release costs every unit in each scope that it touches (1.3, 1.4)."""
    losses = defaultdict[Account, Loss](Loss)
    for vector in vectors_of(card):
        year = vector.first.get("year_to_date", {"not_held": []})
        for unit, span in units_of(card).items():
            moved = moved_by(unit, card, vector)
            for age, multiple in enumerate(multiples_of(span, vector)):
                loss = price(vector.draw, moved and stepped(moved, multiple))
                days = [day - timedelta(weeks=age) for day in vector.days]
                held = [day for day in days if not age or str(day) not in year["not_held"]]
                # A scope pays once for a vector, however many of its days and modes it reads.
                for scope in {scope_of(span, d, m) for d in held for m in card["terms"]["modes"]}:
                    losses[unit, scope] = losses[unit, scope].plus(loss)
    return losses


def units_of(card: Any) -> dict[str, int]:
    """Units of those whose records are counted, and days of each."""
    return DAYS_OF_BUSES if card["terms"]["records"] == "buses" else DAYS


def scope_of(span: int, day: date, mode: str) -> str:
    """Name the piece of time (of mode and batch, for a trip) that one unit can touch (1.3)."""
    week = "{}-W{:02}".format(*day.isocalendar())
    return {0: f"{day}/{mode}/b0", 1: str(day), 7: week, EVER: "ever"}[span]


def week_of(day: date) -> int:
    """Number of an ISO week: the first of January of year 1 is a Monday."""
    return (day.toordinal() - 1) // 7


def week_named(name: str) -> int:
    """Number of the week `2016-W30`."""
    return week_of(date.fromisocalendar(int(name[:4]), int(name[6:]), 1))


def epsilon_at(loss: Loss, delta: Fraction = Fraction(1, 10**6)) -> float:
    """Return the epsilon at a delta: the smaller of the stated one and what rho converts to (3.3).

    For every alpha > 1: alpha rho + (ln(1/delta') - ln alpha)/(alpha - 1) + ln(1 - 1/alpha), delta'
    being what is left of delta (Canonne, Kamath & Steinke 2020, Proposition 12). The least is where
    rho = (ln(1/delta') - ln alpha)/(alpha - 1)^2: bisected.
    """
    left = delta - (loss.delta or 0)
    epsilons = [math.inf if loss.epsilon is None or left < 0 else float(loss.epsilon)]
    if loss.rho is not None and left > 0:
        rho, log, low, high = float(loss.rho), -math.log(left), -40.0, 40.0  # of ln(alpha - 1)
        for _ in range(100):
            middle = (low + high) / 2
            is_below = rho * math.exp(2 * middle) < log - math.log1p(math.exp(middle))
            low, high = (middle, high) if is_below else (low, middle)
        more, alpha = math.exp(high), 1 + math.exp(high)
        epsilons.append(alpha * rho + (log - math.log(alpha)) / more + math.log(more / alpha))
    return max(0.0, min(epsilons))


# --- what is held against it: a card, cards together, the ledger's export ------------------------


class Charge(NamedTuple):
    """What draws were charged: by which entry at the latest, to which weeks and accounts (6.6)."""

    at: Any
    key: str
    plan: str
    family: str
    weeks: tuple[int, int]
    draws: int
    accounts: Mapping[Account, Loss]


class Release:
    """A card, and what its terms cost by our own reckoning: exactly, and rounded up."""

    def __init__(self, card: Any) -> None:
        """Reckon.

        Raises:
            ValueError: the card does not hold every term.
        """
        if "terms" not in card:
            raise ValueError(OLD)
        self.card, self.exact = card, losses_of(card)
        self.rounded = {account: loss.up() for account, loss in self.exact.items()}
        self.key, self.family = card["release"], card["cumulative"][0]["family"]
        self.at, days = card["ledger"]["sequence"], card["service_days"]
        # A ledger that was brought back from files counts its entries anew.
        self.age = card["ledger"].get("after_recoveries", 0), self.at
        named = self.at, self.key, card["plan_sha256"], self.family
        weeks = [week_of(date.fromisoformat(day)) for day in (days[0], days[-1])]
        self.charges = []  # burned draws too (6.1); of another plan at the ledger's own amounts
        for charge in card["charges"]:
            cost = posted(charge["postings"]) if "postings" in charge else self.rounded
            self.charges.append(Charge(*named, (weeks[0], weeks[1]), charge["draws"], cost))


def exact(text: Any) -> Fraction:
    """Read an amount that was written as a decimal or a fraction.

    Raises:
        ValueError: it is neither, or has more than 60 digits.
    """
    if not isinstance(text, str) or NUMBER.fullmatch(text) is None:
        raise ValueError("an amount is no number")
    return Fraction(text)


def stated(figures: Any, after: str = "") -> Loss:
    """Read amounts that a card states."""
    return Loss(*(None if (t := figures[name + after]) is None else exact(t) for name in PARTS))


def posted(postings: Any) -> dict[Account, Loss]:
    """Read a ledger's postings: unit, scope, and amounts in whole parts."""
    accounts = {}
    for unit, scope, *amounts in postings:
        pairs = zip(amounts, PARTS.values())
        accounts[unit, scope] = Loss(*(None if a is None else Fraction(a, n) for a, n in pairs))
    return accounts


def shown(amount: Fraction | None) -> str:
    """Write an amount as a decimal; ledgers keep 15 decimals at most."""
    text = "infinite." if amount is None else f"{Decimal(int(amount * 10**15)).scaleb(-15):f}"
    return text.rstrip("0").rstrip(".")


def differing(what: str, said: Loss, computed: Loss) -> Iterator[str]:
    """Name every amount that is stated otherwise than it is computed."""
    for name, amount, correct in zip(PARTS, said, computed):
        if amount != correct:
            yield f"{what}: {name} {shown(amount)} stated, {shown(correct)} computed"


def largest(losses: Mapping[Account, Loss], unit: str) -> Loss:
    """Return the largest of each amount: the scopes of a unit are disjoint (1.3)."""
    columns: Any = zip(*(loss for (name, _), loss in losses.items() if name == unit))
    return Loss(*(None if None in column else max(column) for column in columns))


def total(book: Iterable[Charge], account: Account, window: tuple[int, int] = (0, EVER)) -> Loss:
    """Add up what an account lost: of a window each release that touches it, once (6.6)."""
    sums = Loss()
    for charge in book:
        is_within = charge.weeks[0] <= window[1] and charge.weeks[1] >= window[0]
        if is_within and account in charge.accounts:
            sums = sums.plus(charge.accounts[account], charge.draws)
    return sums


def of_draws(release: Release) -> Iterator[str]:
    """Hold what a card states of its draws against its terms."""
    units = units_of(release.card)
    told = {(d["table"], d["statistic"]): d["sensitivity"] for d in release.card["draws"]}
    for vector in vectors_of(release.card):
        for name, unit in ((name, unit) for name in vector.tables for unit in units):
            moved = moved_by(unit, release.card, vector)
            computed = moved and list(stepped(moved, multiples_of(units[unit], vector)[0])[:2])
            said = told[name, vector.draw["statistic"]][unit]
            said = said and [said["l1"], said["l2_squared"]]
            if said != computed:
                yield f"{unit}, {name}: l1 and l2^2 {said} stated, {computed} computed"


def of_errors(release: Release) -> Iterator[str]:
    """Hold what a card says for readers against its terms: errors, bounds, draws that died."""
    card = release.card
    for draw in card["draws"]:
        computed = spread(draw["noise"], exact(draw["scale"]), draw.get("step", 1))
        said = [draw[name] for name in ("standard_deviation", "half_width_90", "half_width_95")]
        far = [abs(a - b) / (1e-4 + b) for a, b in zip(said, computed)]
        if max(far) > 1e-3:  # floats may put a wide half one off
            yield f"{draw['table']}: errors {said} stated, {computed} computed"
    guarantee, tables = card["guarantee"], card["terms"]["tables"]
    for name, table in tables.items():
        said, bounded = guarantee["counted"][name], table.get("bounded")
        text = f"at most {table['records_at_most']} of a {bounded}" if bounded else "every record"
        if text not in said or (bounded and bounded not in guarantee["bounds"]):
            yield f"{name}: {text} by the terms, and the guarantee says {said}"
    died = sum(charge["draws"] for charge in card["charges"]) - 1
    if min((c["draws"] for c in card["charges"] if "postings" not in c), default=0) < 1:
        yield "no draw under the card's own plan is charged, one computed"
    if card["burned_draws"] != died:
        yield f"{card['burned_draws']} burned draws stated, {died} charged"


@functools.cache
def spread(noise: str, exact_scale: Fraction, step: int) -> tuple[float, int, int]:
    """Deviation of noise in steps, and the least whole widths that hold 90 and 95 % of it."""
    if exact_scale > 2**18:
        raise ValueError("a scale is above 262144, which is never drawn")
    scale, is_gaussian = float(exact_scale), noise == "discrete_gaussian"
    reach = range(int((9 if is_gaussian else 40) * scale) + 2)  # beyond it less than 1e-16
    both = [2 * math.exp(-((k / scale) ** 2) / 2 if is_gaussian else -k / scale) for k in reach]
    both[0] = 1.0
    whole = math.fsum(both)
    deviation = math.sqrt(math.fsum(k * k * weight for k, weight in enumerate(both)) / whole)
    within = list(itertools.accumulate(both))
    half_90, half_95 = (
        -(-bisect.bisect_left(within, part * whole) // step) for part in (0.9, 0.95)
    )
    return deviation / step, half_90, half_95


def of_units(release: Release) -> Iterator[str]:
    """Hold the figures of every unit against its terms."""
    for unit in units_of(release.card):
        said, loss = release.card["guarantee"]["units"][unit], largest(release.exact, unit)
        yield from differing(unit, stated(said), loss.up())
        # Replacing one is two steps: group privacy (2.2; Bun & Steinke 2016, Proposition 1.9).
        twice = Loss(loss.epsilon and 2 * loss.epsilon, loss.rho and 4 * loss.rho, loss.delta)
        replaced = stated({**said, "delta_replace": said["delta"]}, "_replace")
        yield from differing(f"{unit}, replaced", replaced, twice.up())
        text, computed = said["epsilon_at_delta_1e-6"], epsilon_at(loss)
        epsilon = math.inf if text is None else float(exact(text))
        is_rounded_up = epsilon == computed or -1e-9 < epsilon - computed < 1.1e-6
        if not is_rounded_up:
            yield f"{unit}: epsilon at delta 1e-6 {epsilon} stated, {computed:.6f} computed"


def of_accounts(release: Release, books: list[list[Charge]], *, are_whole: bool) -> Iterator[str]:
    """Hold what a card states of accounts and windows against charges.

    Args:
        release: whose card it is.
        books: charges of its family, in each state of the ledger in which the card may be made.
        are_whole: False where charges may be missing: no less may be stated, but more.
    """
    lines = []
    told = Counter(line["unit"] for line in release.card["cumulative"])
    for unit in dict.fromkeys(unit for unit, _ in release.rounded):
        if told[unit] != 1:
            yield f"{unit}: {told[unit]} lines of its most spent account stated, 1 computed"
    for line in release.card["cumulative"]:
        account, said = (line["unit"], line["scope"]), stated(line, "_after")
        if account not in release.rounded:
            yield f"{', '.join(account)}: an account stated that the release does not touch"
        yield from more_spent(release, account, said, books)
        lines.append((", ".join(account), said, account, (0, EVER)))
        before = stated(line, "_before")
        yield from differing(
            f"{', '.join(account)}, after", said, before.plus(release.rounded.get(account, Loss()))
        )
    for line in release.card["windows"]:
        first, last = map(week_named, line["window"].split(".."))
        what, weeks = f"{line['unit']}, {line['window']}", last - first + 1
        lines.append((what, stated(line), (line["unit"], "ever"), (first, last)))
        if weeks != line["weeks"]:
            yield f"{what}: {line['weeks']} weeks stated, {weeks} computed"
    for what, said, account, window in lines:
        sums = [total(book, account, window) for book in books]
        pairs: Any = zip(said, sums[0])
        raised = Loss(*(None if None in pair else max(pair) for pair in pairs))
        if said not in sums:
            yield from differing(f"{what}, all", said, sums[0] if are_whole else raised)


def more_spent(
    release: Release, named: Account, said: Loss, books: list[list[Charge]]
) -> Iterator[str]:
    """Name an account that lost more than the one that a card states as the most spent.

    By all charges that are known, more than is stated of that one and than it is charged.
    """
    known = [(book, max(rank(said), rank(total(book, named)))) for book in books]
    for other in release.rounded:
        is_of_unit = other[0] == named[0] and other != named
        if is_of_unit and all(rank(total(book, other)) > most for book, most in known):
            what = f"stated as the most spent account, {', '.join(other)} lost more"
            yield f"{', '.join(named)}: {what}"
            return


def rank(loss: Loss) -> tuple[Any, ...]:
    """Where an account stands among others: by rho, then epsilon and delta; None is infinite."""
    parts = (loss.rho, loss.epsilon, loss.delta)
    return tuple(entry for part in parts for entry in (part is None, part or 0))


class Ledger:
    """What an export's entries say: charges, publications, and entries that a disaster took."""

    def __init__(self, place: Path) -> None:
        """Follow `entries.jsonl` as `turnstile ledger export` wrote it, and check its chain."""
        self.hashes, self.charges, self.problems = list[str](), list[Charge](), list[str]()
        self.published, self.opened, self.lost = dict[str, int](), dict[str, Any](), list[Any]()
        self.holds = dict[str, list[Any]]()  # family, first entry, and the one that ends it
        self.caps = list[tuple[int, str, str, set[tuple[str, int]]]]()  # over windows, as they came
        path = place / ENTRIES if place.is_dir() else place
        if path != place and path.exists() and not path.is_file():
            raise OSError(f"{path} is no ordinary file, so it was not opened")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            written = json.loads(line)
            entry, text = json.loads(written["record"]), written["record"].encode()
            chained = written["hash"], entry["previous"], entry["sequence"]
            before = (self.hashes or ["0" * 64])[-1]
            self.hashes.append(hashlib.sha256(text).hexdigest())
            if chained != (self.hashes[-1], before, number):
                self.problems.append(f"entry {number} of the export does not continue the chain")
            self.follow(number, entry["kind"], entry["body"])

    def follow(self, number: int, kind: str, body: Any) -> None:
        """Charged is what began to draw, whatever became of it (6.1), or was declared (6.5)."""
        if kind in ("reserved", "loss_declared"):
            self.opened[body["attempt"]] = body
            self.holds[body["attempt"]] = [body["family"], number, math.inf]
        if kind in ("draw_begun", "voided", "loss_declared"):
            self.holds[body["attempt"]][2] = number
        if kind in ("draw_begun", "loss_declared"):
            asked = self.opened[body["attempt"]]
            named = number, asked["key"], asked["plan_digest"], asked["family"]
            first, last = asked.get("first_week") or asked["week"], asked["week"]
            weeks, accounts = (week_named(first), week_named(last)), posted(asked["postings"])
            self.charges.append(Charge(*named, weeks, asked.get("draws", 1), accounts))
        if kind == "published":
            self.published[body["key"]] = number
        if kind == "cap_set":
            over = {(c["unit"], c["window_weeks"]) for c in body["caps"] if c.get("window_weeks")}
            self.caps.append((number, body["family"], body["programme"], over))
        if kind == "recovered":
            self.lost += body["superseded"]

    def findings(self, release: Release, book: list[Charge]) -> Iterator[str]:
        """Hold a card against the entries; `book` has its family's charges, as we reckon them."""
        charged = [c for c in self.charges if c.key == release.key]
        of_plan = [c for c in charged if c.plan == release.card["plan_sha256"]]
        if not of_plan:
            yield "no draw charged in the export under the card's plan, one computed"
        for c in of_plan:
            accounts = sorted(c.accounts.keys() | release.rounded.keys())
            both = c.accounts, release.rounded
            pairs = {account: [of.get(account, Loss()) for of in both] for account in accounts}
            wrong = [account for account, (said, computed) in pairs.items() if said != computed]
            for account in {unit: (unit, scope) for unit, scope in reversed(wrong)}.values():
                of_unit = sum(unit == account[0] for unit, _ in wrong)
                what = f"{', '.join(account)}, entry {c.at} (1 of {of_unit} accounts)"
                yield from differing(what, *pairs[account])
        head = release.card["ledger"]["head_sha256"]
        if [release.at, head] in self.lost:
            return  # its history is lost, and its losses were declared anew
        if self.hashes[release.at - 1 : release.at] != [head]:
            yield f"entry {release.at} of the export is not the one that the card names"
        by_entry = {charge.get("entry_sha256") for charge in release.card["charges"]} - {None}
        if by_entry.difference(self.hashes):
            yield "a charge is stated by an entry that the export does not hold"
        draws = sum(c.draws for c in release.charges), sum(c.draws for c in charged)
        if draws[0] != draws[1]:
            yield f"{draws[0]} draws stated, {draws[1]} charged in the export"
        end = self.published.get(release.key, len(self.hashes))
        # Others may draw while a card is made: its balances are of its entry, or of a later one.
        states = [release.at, *(c.at for c in book if release.at < c.at < end)]
        books = [[c for c in book if c.at <= state] for state in states]
        yield from of_accounts(release, books, are_whole=True)
        yield from self.of_windows(release, books[0])
        yield from self.of_missing_windows(release, books[0], end)

    def of_windows(self, release: Release, book: list[Charge]) -> Iterator[str]:
        """Hold a card's most spent windows against the charges up to its entry."""
        held = [of for of, at, end in self.holds.values() if at <= release.at < end]
        if release.family in held:
            return  # the most spent window is chosen with what is held, which cards do not state
        for line in release.card["windows"]:
            ends, account = {c.weeks[1] for c in book}, (line["unit"], "ever")
            sums = [total(book, account, (end - line["weeks"] + 1, end)) for end in ends]
            said, most = stated(line).rho, [s.rho for s in sums if s.rho is not None]
            if said is not None and (len(most) < len(sums) or said < max(most)):
                yield f"{line['unit']}, {line['window']}: rho {shown(said)} stated, more computed"

    def of_missing_windows(self, release: Release, book: list[Charge], end: int) -> Iterator[str]:
        """Name each window that a card has to state: of every cap over one that was in force.

        Caps may be set while a card is made: asked for is what was in force all that while.
        """
        moments = [release.at, *(at for at, *_ in self.caps if release.at < at < end)]
        in_force = set.intersection(*(self.capped(release.family, at) for at in moments))
        spent = {unit for charge in book for unit, scope in charge.accounts if scope == "ever"}
        told = Counter((line["unit"], line["weeks"]) for line in release.card["windows"])
        for unit, weeks in sorted(in_force):
            if unit in spent and told[unit, weeks] != 1:
                lines = told[unit, weeks]
                yield f"{unit}: {lines} lines of the most spent {weeks} weeks stated, 1 computed"

    def capped(self, family: str, at: int) -> set[tuple[str, int]]:
        """Return the units and weeks of a family's caps over windows, as an entry left them."""
        newest = {of: over for n, name, of, over in self.caps if (name, n <= at) == (family, True)}
        return set[tuple[str, int]]().union(*newest.values())


# --- the command ---------------------------------------------------------------------------------


def figures(title: str, losses: Mapping[Account, Loss]) -> None:
    """Print what each unit lost."""
    print(title)
    for unit in (unit for unit in {**DAYS, **DAYS_OF_BUSES} if any(u == unit for u, _ in losses)):
        loss = largest(losses, unit)
        said = ", ".join(f"{name} {shown(amount)}" for name, amount in zip(PARTS, loss))
        print(f"  {unit}: {said}; epsilon {epsilon_at(loss):.6f} at delta 1e-6")


def summary(book: list[Charge]) -> None:
    """Print what the releases of each family cost together, and in the most spent 52 weeks."""
    for family in sorted({charge.family for charge in book}):
        mine = [charge for charge in book if charge.family == family]
        sums = {a: total(mine, a) for charge in mine for a in charge.accounts}
        figures(f"{family}, {sum(charge.draws for charge in mine)} draws in all", sums)
        lifetime, ends = [a for a in sums if a[1] == "ever"], {charge.weeks[1] for charge in mine}
        windows = {(a[0], str(n)): total(mine, a, (n - 51, n)) for a in lifetime for n in ends}
        figures(f"{family}, in any 52 weeks", windows)


def book_of(releases: dict[str, Release], ledger: Ledger | None) -> list[Charge]:
    """Return the charges of cards, or of a ledger as the cards' terms price them."""
    if ledger is None:
        return [c._replace(at=of.age) for of in releases.values() for c in of.charges]
    plans = {(of.key, of.card["plan_sha256"]): of.rounded for of in releases.values()}
    charges = ((plans.get((c.key, c.plan), c.accounts), c) for c in ledger.charges)
    return [charge._replace(accounts=accounts) for accounts, charge in charges]


def held(releases: dict[str, Release], card: Any) -> list[str]:
    """Put a card with the others; return that there is another one of its release."""
    release = Release(card)
    is_other = releases.setdefault(release.key, release).card != card
    return [f"{release.key}: two cards of it differ"] if is_other else []


def differences(releases: dict[str, Release], ledger: Ledger | None) -> Iterator[str]:
    """Yield all in which cards, terms and ledger differ."""
    book = book_of(releases, ledger)
    yield from ledger.problems if ledger else ()
    for release in releases.values():
        family = [charge for charge in book if charge.family == release.family]
        problems = [*of_draws(release), *of_errors(release), *of_units(release)]
        if ledger is None:
            before = [charge for charge in family if charge.at <= release.age]
            problems += of_accounts(release, [before], are_whole=False)
        else:
            problems += ledger.findings(release, family)
        yield from (f"{release.key}: {problem}" for problem in problems)


def ended(program: Callable[[list[str]], int]) -> int:
    """Run a program; where whoever reads its output has enough, as `head`, it ends as that does."""
    try:
        code = program(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as a shell reports it
    return code


def main(arguments: list[str] | None = None) -> int:
    """Compute, print, and name what differs."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("cards", nargs="+", type=Path, metavar="CARD|DIR")
    parser.add_argument("--ledger", type=Path, help="as `turnstile ledger export` left it")
    args = parser.parse_args(arguments)
    releases, problems, unread = dict[str, Release](), list[str](), list[str]()
    for place in args.cards:
        paths = sorted(place.rglob(CARD)) if place.is_dir() else [place]
        unread += [] if paths else [f"{place} holds no {CARD}"]
        for path in paths:
            try:
                if path != place and not path.is_file():  # whoever opens a pipe waits for ever
                    raise OSError("is no ordinary file, so it was not opened")
                problems += held(releases, json.loads(path.read_bytes()))
            except UNREADABLE as error:
                unread.append(f"{path}: {error or type(error).__name__}")
    try:
        ledger = Ledger(args.ledger) if args.ledger else None
        problems.extend(differences(releases, ledger))
        for key, release in releases.items():
            figures(key, release.rounded)
        summary(book_of(releases, ledger))
    except BrokenPipeError:  # of what is printed, not of what is read
        raise
    except UNREADABLE as error:
        unread.append(f"cannot be read: {type(error).__name__} {error}")
    for line in dict.fromkeys([*problems, *unread]):
        print(line, file=sys.stderr)
    if not problems and not unread:
        print(
            f"{len(releases)} cards agree with their terms{' and the ledger' * bool(args.ledger)}"
        )
    return 1 if problems else 2 if unread else 0


if __name__ == "__main__":
    sys.exit(ended(main))
