"""The deployment's ledger as commands open it: to read, changing nothing, or to write a fact."""

from __future__ import annotations

import getpass
import sys
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from turnstile.errors import InputError, IntegrityError, TurnstileError
from turnstile.service_calendar import parse_period
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from pathlib import Path

    from turnstile.ledger.database.damaged_database import Remains
    from turnstile.ledger.ledger import Ledger
    from turnstile.ledger.records import ReleaseKey
    from turnstile.ledger.tlog.cosigners import Answer

_EARLIER = timedelta(weeks=26)


def open_to_read() -> Ledger:
    """Open the ledger; no file is made, so read-only media do."""
    return _opened(read_only=True)


def open_to_write(*, new: bool = False) -> Ledger:
    """Open the ledger to write facts.

    Args:
        new: whether it may be made, where there is none: to recover a lost one.
    """
    return _opened(read_only=False, new=new)


def _opened(*, read_only: bool, new: bool = False) -> Ledger:
    """Open the ledger, which has to exist already unless a new one is asked for."""
    from turnstile.ledger.of_deployment import open_ledger, require_not_lost
    from turnstile.release.zone_copies import zones

    settings = Settings.from_environment()
    file = settings.ledger_file
    if file is not None and not new and not file.exists():
        require_not_lost(settings)
        rule = (
            "there is no ledger; release something first, set TURNSTILE_LEDGER_URL, or bring a "
            "lost one back by turnstile ledger recover --reason TEXT"
        )
        raise InputError(where=str(file), field="ledger", rule=rule)
    zones(settings).refresh(proves=new)
    return open_ledger(settings, read_only=read_only, new=new)


def who_asks(option: str) -> str:
    """Return who runs this command, as the machine calls them.

    Args:
        option: by which they may say it.

    Raises:
        InputError: the machine has no name for this user, as in a container.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        rule = "this machine has no name for you; say who you are by this option"
        raise InputError(where="turnstile", field=option, rule=rule) from None


def set_damage_aside() -> tuple[str, Remains]:
    """Move a damaged database aside; return where it lies and what it still holds.

    Of one that is lost nobody knows how many entries it held. A sound one stays, and so does a
    server, whose own tools look after its files. Where a recovery stopped before anything came
    back, the entries are still those that it had set aside. One whose entries were altered is
    damaged too, where a witness holds what they were.

    Raises:
        IntegrityError: entries were altered, and no witness holds them.
        InputError: somebody else uses the file, or it is another program's.
    """
    import sqlite3

    from turnstile.ledger.database.damaged_database import (
        Remains,
        newest_aside,
        place_aside,
        remains_of,
        set_aside,
    )

    settings = Settings.from_environment()
    file = settings.ledger_file
    if file is None:
        return "", Remains()
    aside = newest_aside(file)
    try:
        is_damaged, length = _looked_at(settings, file)
    except sqlite3.DatabaseError as error:  # it is in use, or another program's
        rule = f"{error}; nothing was done: stop who uses it, or move it away, then recover again"
        raise InputError(where=str(file), field="ledger", rule=rule) from error
    if is_damaged:
        aside = place_aside(file, system_clock())
    elif length:
        return "", Remains()
    elif aside is None:
        return "", Remains(last=None)
    is_lost = not file.exists()
    if is_lost or is_damaged:
        set_aside(file, aside)
    left = remains_of(aside)
    return str(aside), replace(left, last=None) if is_lost else left


def _looked_at(settings: Settings, file: Path) -> tuple[bool, int]:
    """Return whether a database is damaged or altered, and how many entries a sound one holds.

    Raises:
        IntegrityError: an entry is not what its hash says, and no witness holds all as they were.
    """
    from turnstile.ledger.custody.shipped import last_shipped
    from turnstile.ledger.database.damaged_database import damage_in, first_altered

    if not file.is_file():
        return False, 0
    if damage_in(file):
        return True, 0
    altered, length = first_altered(file)
    if altered and not any(last_shipped(folder) >= length for folder in settings.witness):
        raise IntegrityError(
            f"entry {altered} of {file} was altered, and no witness holds all entries as they "
            "were: keep every copy, and restore the newest sound ledger"
        )
    return altered > 0, length


def require_is_over(key: ReleaseKey) -> None:
    """Refuse a period that no programme of ours has had.

    Raises:
        InputError: no such programme, no period of it, or one that is not over.
    """
    from turnstile.programme.calendar.periods import period_named
    from turnstile.programme.loading import load_programme

    programme = load_programme(key.programme, Settings.from_environment().include)
    period = period_named(programme, key.period, where=str(key))
    if period.ends_at(programme.time.zone) > system_clock():
        rule = f"{period} is not over yet; state what became of it when it is"
        raise InputError(where=str(key), field="period", rule=rule)


def require_not_before(key: ReleaseKey, ledger: Ledger) -> None:
    """Refuse a period far before the first one of its programme: a statement is for ever.

    Raises:
        InputError: the ledger knows only periods that begin more than half a year later.
    """
    known = [parse_period(period) for period in ledger.weeks(key.programme)]
    first = min(known, key=lambda period: period.first_day, default=None)
    day = parse_period(key.period).first_day
    if first is not None and day < first.first_day - _EARLIER:
        rule = f"lies far before {first}, the first period that the ledger knows; check the year"
        raise InputError(where=str(key), field="period", rule=rule)


def publish_series(ledger: Ledger, programme: str) -> None:
    """Bring index, pages and `latest` of a programme to what the ledger says now.

    Portals show it after `turnstile portal send` or the next publication, which is said.

    Args:
        ledger: open to write, for what a cosigner may have seen. It is not fetched again: what a
            command has written here is not in the store yet.
        programme: its name.

    Raises:
        InputError: no such programme.
    """
    from turnstile.programme.loading import load_programme
    from turnstile.publishing.series.writing import write_series
    from turnstile.release.zone_copies import zones

    settings = Settings.from_environment()
    spec = load_programme(programme, settings.include)
    series = write_series(spec, ledger, settings.public, settings.include)
    zones(settings).send_public(lambda: ledger.sign_public_zone(series), programme, None, series)
    if spec.publish.to:
        print(f"portals show it after turnstile portal send {programme}", file=sys.stderr)


def publish_series_or_records(ledger: Ledger, programme: str) -> str:
    """Bring what the ledger says of a programme to the public zone: series, or at least records.

    Returns:
        Why series stay as they were, where the programme's file is gone or broken; else nothing.
    """
    try:
        publish_series(ledger, programme)
    except InputError as error:
        from turnstile.publishing.series.writing import write_records
        from turnstile.release.zone_copies import zones

        settings = Settings.from_environment()
        made = write_records(ledger, settings.public / programme)
        zones(settings).send_public(lambda: ledger.sign_public_zone(made), records=made)
        return str(error)
    return ""


UNSIGNED = "the signed list"
"""What stands first where the list of the public zone is not that of the ledger."""


def publish_all_series(ledger: Ledger) -> list[str]:
    """Bring notes, and series of every programme that stated anything, to what the ledger says.

    A recovered ledger may know other weeks than the series and the list that were restored.

    Returns:
        Why, of each programme whose series stay as they are: its file or a package may be gone or
        damaged in any way.
    """
    from turnstile.ledger.custody.signed_note import ROTATE
    from turnstile.ledger.custody.vouched_files import TOLD

    left = []
    told = {str(entry.key).partition("/")[0] for entry in ledger.entries() if entry.kind in TOLD}
    if told and not ledger.has_key:
        problem = f"no key that the ledger names: restore it, or {ROTATE}"
        return [f"{problem}; then turnstile ledger republish"]
    note_again = ledger.noting_again()
    for programme in sorted(told):
        note_again()  # what is not sent yet goes where a bucket is fetched
        try:
            if problem := publish_series_or_records(ledger, programme):
                left.append(f"{programme}: {problem}")
        except Exception as error:  # noqa: BLE001 - the ledger is back, whatever lies there
            left.append(f"{programme}: {str(error) or type(error).__name__}")
    try:
        if not told:
            note_again()
        publish_list(ledger)
    except TurnstileError as error:
        left.append(f"{UNSIGNED}: {error}; then turnstile ledger republish")
    return left


def publish_list(ledger: Ledger) -> tuple[Answer, ...]:
    """Sign what is public, under the key in force; return what the log's cosigners said."""
    from turnstile.release.zone_copies import zones

    said: list[Answer] = []
    ledger.require_signers()
    zones(Settings.from_environment()).send_public(lambda: said.extend(ledger.sign_public_zone()))
    return tuple(said)
