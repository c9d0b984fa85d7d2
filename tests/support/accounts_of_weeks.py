"""What a test recomputes of a deployment's weeks: draws, charges, digests; and what disagrees."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from turnstile.ledger.balances.amounts import AccountLoss
from turnstile.ledger.charging import DRAWS_MAX
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import AccountBalance, Attempt, ReleaseKey
from turnstile.ledger.states import CHARGED_STATES, ReleaseState
from turnstile.privacy.accounts import Posting
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.publishing.describe.manifest import MANIFEST, differences
from turnstile.release.ledger_caps import ledger_cap
from turnstile.release.plan import make_plan
from turnstile.release.zones import digest_of
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import system_clock

PROGRAMME = "opal"
Accounts = dict[tuple[str, str], AccountLoss]


@dataclass(frozen=True)
class Weeks:
    """Every week that the ledger knows.

    Args:
        draws: how often noise was drawn.
        attempts: states of the attempts, oldest first.
        sealed: digest of the sealed bytes.
        packages: digest of the published manifest.
    """

    draws: Mapping[str, int]
    attempts: Mapping[str, tuple[str, ...]]
    sealed: Mapping[str, str]
    packages: Mapping[str, str]

    def unlike(self, before: Weeks, new_draws: Mapping[str, int]) -> tuple[str, ...]:
        """Say what is not as it was before, but for the draws that were to happen."""
        expected = Counter(before.draws) + Counter(new_draws)
        changes = [
            f"{week}: {self.draws.get(week, 0)} draws, not {expected.get(week, 0)}"
            for week in sorted({*expected, *self.draws})
            if self.draws.get(week, 0) != expected.get(week, 0)
        ]
        for name, old, new in (
            ("sealed bytes", before.sealed, self.sealed),
            ("package", before.packages, self.packages),
        ):
            changes += [f"{week}: another {name}" for week in old if new.get(week) != old[week]]
        return tuple(changes)


def ledger_of(home: Path) -> Ledger:
    """Open the ledger of a deployment."""
    url = f"sqlite:///{home / 'ledger.sqlite'}"
    return Ledger.open(url, clock=system_clock, public=home / "public")


def weeks_of(home: Path) -> Weeks:
    """Read every week of the programme."""
    ledger = ledger_of(home)
    entries = [e for e in ledger.entries() if str(e.key).startswith(f"{PROGRAMME}/")]
    attempts = {
        week: ledger.attempts(ReleaseKey(PROGRAMME, week))
        for week in sorted({_week(str(e.key)) for e in entries})
    }
    manifests = {path.parents[1].name: path for path in _packages(home)}
    return Weeks(
        draws=Counter(_week(str(e.key)) for e in entries if e.kind is EntryKind.DRAW_BEGUN),
        attempts={week: tuple(a.state.value for a in all_) for week, all_ in attempts.items()},
        sealed={
            week: str(attempt.artefact_digest)
            for week, all_ in attempts.items()
            for attempt in all_
            if attempt.is_sealed
        },
        packages={week: digest_of(path.read_bytes()) for week, path in manifests.items()},
    )


def disagreements(home: Path, include: Path) -> tuple[str, ...]:
    """Recompute charges, digests and states from the plan and from the bytes; say what differs."""
    ledger, weeks = ledger_of(home), weeks_of(home)
    attempts = {week: ledger.attempts(ReleaseKey(PROGRAMME, week)) for week in weeks.attempts}
    findings = [f"verify: {finding}" for finding in ledger.verify()]
    for week, all_ in attempts.items():
        findings += _in_week(home, week, all_, weeks.draws.get(week, 0))
    findings += _in_accounts(ledger.balance(), include, attempts)
    findings += [
        f"{path.parents[1].name}: public, and the ledger does not say so"
        for path in _packages(home)
        if ReleaseState.PUBLISHED.value not in weeks.attempts.get(path.parents[1].name, ())
    ]
    return tuple(findings)


def _in_week(home: Path, week: str, attempts: tuple[Attempt, ...], draws: int) -> Iterator[str]:
    """Yield what is wrong with one week's attempts, sealed bytes and package."""
    charged = sum(attempt.state in CHARGED_STATES for attempt in attempts)
    if not charged == draws <= DRAWS_MAX:
        yield f"{week}: {draws} draws and {charged} charges"
    sealed = [attempt for attempt in attempts if attempt.is_sealed]
    if len(sealed) > 1:
        yield f"{week}: {len(sealed)} sealed attempts"
    for sealed_attempt in sealed:
        digest = str(sealed_attempt.artefact_digest)
        path = home / "embargoed" / PROGRAMME / week / "r0" / f"sealed-{digest[:16]}.parquet"
        if not path.exists() or digest_of(path.read_bytes()) != digest:
            yield f"{week}: the sealed bytes are not those of the ledger"
        package = home / "public" / PROGRAMME / week / "r0"
        if sealed_attempt.state is not ReleaseState.PUBLISHED:
            continue
        yield from (f"{week}: {difference}" for difference in differences(package))
        if json.loads((package / MANIFEST).read_bytes())["sealed_sha256"] != digest:
            yield f"{week}: the package is made from other bytes"


def _in_accounts(
    balances: tuple[AccountBalance, ...],
    include: Path,
    attempts: Mapping[str, tuple[Attempt, ...]],
) -> Iterator[str]:
    """Yield accounts that do not hold what the plans of the drawn weeks cost, and caps passed."""
    spent: Accounts = defaultdict(AccountLoss)
    held: Accounts = defaultdict(AccountLoss)
    rho_of_week: dict[str, int] = {}
    for week, all_ in attempts.items():
        for attempt in all_:
            book = spent if attempt.state in CHARGED_STATES else held
            if attempt.state is ReleaseState.VOID:
                continue
            for posting in _postings(include, week):
                book[posting.unit.value, posting.scope] += _loss(posting)
                if posting.unit.value == "card":
                    rho_of_week[week] = rho_of_week.get(week, 0) + (posting.rho_nano or 0)
    for account in (balance for balance in balances if ".." not in balance.scope):
        name = (account.unit.value, account.scope)
        if (account.spent, account.held) != (spent[name], held[name]):
            yield f"{' '.join(name)}: the account is not what the draws cost"
    yield from _windows_passed(include, rho_of_week)


def _windows_passed(include: Path, rho_of_week: Mapping[str, int]) -> Iterator[str]:
    """Yield windows in which a card loses more than its cap."""
    caps = [ledger_cap(cap) for cap in load_programme(PROGRAMME, include).caps]
    for cap in (candidate for candidate in caps if candidate.window_weeks):
        for last in map(ServiceWeek.parse, rho_of_week):
            window = {str(last.plus(-n)) for n in range(cap.window_weeks or 0)}
            if sum(rho_of_week.get(week, 0) for week in window) > (cap.rho_nano or 0):
                yield f"the window that ends in {last} is past its cap"


def _postings(include: Path, week: str) -> tuple[Posting, ...]:
    """Return what one draw of a week costs, from programme and calendar."""
    programme = load_programme(PROGRAMME, include)
    plan = make_plan(programme, load_domain(programme, include), ServiceWeek.parse(week))
    return plan.postings


def _loss(posting: Posting) -> AccountLoss:
    return AccountLoss(posting.epsilon_micro, posting.rho_nano, posting.delta_femto)


def _packages(home: Path) -> list[Path]:
    return sorted((home / "public" / PROGRAMME).glob("????-W??/r0/manifest.json"))


def _week(key: str) -> str:
    return key.split("/")[1]
