"""What comparing the private zone with the ledger last found, for page, digest and watchdog.

The day of retention and `turnstile ledger verify --private` say it in the journal, as a kind of its
own: a verification of the ledger that finds nothing says nothing of private data. The newest word
counts. It holds names of releases and kinds of data; why each is named stays with whoever looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from turnstile.errors import StoreError, TurnstileError
from turnstile.ledger.entries import instant
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.operations.watchdog.alerts import Alert
from turnstile.operations.watchdog.last_verification import FAILED, OF_LEDGER

if TYPE_CHECKING:
    from turnstile.pipeline.private_zone.private_verification import PrivateFinding

_PROGRAMME, _WEEK = "ledger", "all"
_LOOKS = {"audit_failed": Happening.VERIFIED, "private_differs": Happening.COMPARED}
_DAG_OF = {Happening.VERIFIED: "audit_ledger", Happening.COMPARED: "retention"}
LOOKS_COME_WITHIN = timedelta(days=3)
"""Both are made every day; one day's failure, and a day on which all stood still, are no alarm."""


def compared(
    look: Callable[[], Iterable[PrivateFinding]], tell: Callable[[Iterable[str]], None]
) -> tuple[PrivateFinding, ...]:
    """Compare the private zone with the ledger; tell and return what differs.

    Args:
        look: compares.
        tell: is given the names of what differs, as `tell_comparison` is.

    Raises:
        StoreError: the store of the zone is away: nobody can say, and nothing is told.
        TurnstileError: they cannot be compared, which is told by the kind of the error.
        OSError: neither.
    """
    try:
        findings = tuple(look())
    except StoreError:
        raise
    except (TurnstileError, OSError, ValueError, LookupError) as error:
        tell([f"{OF_LEDGER}{FAILED} compared ({type(error).__name__})"])
        raise
    tell(finding.name for finding in findings)
    return findings


def tell_comparison(
    journal: Journal, now: datetime, names: Iterable[str], undeleted: str = ""
) -> None:
    """Write what differs, and whether what was due on that day went.

    Args:
        journal: of the deployment.
        now: when the comparison ended.
        names: programme, week and what of it, as `PrivateFinding` has them.
        undeleted: kind of the error that kept data beyond their days; empty if none did.
    """
    details = {"found": sorted(set(names))} | ({"undeleted": undeleted} if undeleted else {})
    journal.write(Line(instant(now), Happening.COMPARED, _PROGRAMME, _WEEK, details=details))


def private_differences(journal: Journal) -> dict[str, str]:
    """Return what differs by the newest comparison, and since when each one has said so."""
    return _differing(journal.of_week(_PROGRAMME, _WEEK), Happening.COMPARED)


def _differing(lines: Iterable[Line], looked: Happening) -> dict[str, str]:
    """Return what differs by the newest look of a kind, and since when each look has said so.

    Of what an earlier one found a look that failed says nothing.
    """
    since: dict[str, str] = {}
    for line in lines:
        if line.happening is looked:
            said = line.details["found"]
            # The checks of `ledger verify` stood there by their mere names.
            names = [n if n.count("/") > 1 else f"{OF_LEDGER}{n}" for n in said]
            still = since if any(FAILED in name for name in names) else {}
            since = {name: since.get(name, line.at) for name in (*still, *names)}
    return since


def private_trouble(differences: Mapping[str, str]) -> str:
    """Say of which kinds of private data any differ; empty if none do."""
    if not differences:
        return ""
    kinds = sorted({name.split("/")[2].partition(",")[0] for name in differences})
    return f"private data differ since {min(differences.values())} ({', '.join(kinds)})"


def of_looks(journal: Journal) -> Iterator[Alert]:
    """Yield what audit and comparison found last; once more where it was in order meanwhile."""
    lines = journal.of_week(_PROGRAMME, _WEEK)
    for rule, looked in _LOOKS.items():
        for name, at in _differing(lines, looked).items():
            programme, week, what = name.split("/", 2)
            yield Alert(rule, programme, week, f"{what}, since {at}")
    yield from _of_retention_that_fails(lines)


def _of_retention_that_fails(lines: Iterable[Line]) -> Iterator[Alert]:
    """Yield that the newest day of retention could not delete what was due, and since when."""
    kind = since = ""
    for line in lines:
        if line.happening is Happening.COMPARED:
            kind = str(line.details.get("undeleted", ""))
            since = (since or line.at) if kind else ""
    if since:
        subject = f"what was due {FAILED} deleted ({kind}), since {since}"
        yield Alert("retention_held", _PROGRAMME, _WEEK, subject)


def of_missing_looks(journal: Journal, began: str, now: datetime) -> Iterator[Alert]:
    """Yield which look of every day was not made for days: paused, failing or without an end.

    Args:
        journal: of the deployment.
        began: when the ledger's first entry was written; empty without one.
        now: the present instant, aware.
    """
    lines = journal.of_week(_PROGRAMME, _WEEK)
    for looked, dag in _DAG_OF.items():
        said = [line.at for line in lines if line.happening is looked]
        counted = said[-1] if said else began
        if counted and now - datetime.fromisoformat(counted) > LOOKS_COME_WITHIN:
            subject = f"{dag}, last {said[-1] if said else 'never'}"
            yield Alert("look_missing", _PROGRAMME, _WEEK, subject)
