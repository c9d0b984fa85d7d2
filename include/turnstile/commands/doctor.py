"""`turnstile doctor`: looks at everything, names the one right repair with its cost; no change."""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from turnstile.commands.airflow_settings import AirflowSettings
from turnstile.commands.printed_json import print_json
from turnstile.errors import InputError, IntegrityError, StoreError, TurnstileError
from turnstile.settings import Settings, sqlite_file, system_clock

if TYPE_CHECKING:
    from turnstile.ledger.ledger import Ledger


class Repair(NamedTuple):
    """What to do about a finding, and what it costs."""

    do: str
    costs: str


_FREE_BYTES = 256 << 20
_AIRFLOW = "airflow settings"
_RESTORE = "the file that is named, from a backup; then turnstile ledger verify"
_RECOVER = "turnstile ledger recover --person YOU --reason WHAT HAPPENED"
_REPUBLISH = "turnstile ledger republish"
_GONE = "nothing; without a backup a week that is not public yet has no release"
_LOSSES = "draws that only files prove are charged once more; a draw under way is burned"
REPAIRS = {
    "settings": Repair("mend the setting that is named", "nothing"),
    "home": Repair("set TURNSTILE_HOME to the deployment's own folder", "nothing"),
    "access": Repair("mend rights, mount or address, or start the server that is down", "nothing"),
    "database": Repair(f"stop all runs, then {_RECOVER}", _LOSSES),
    "ledger": Repair(_RECOVER, _LOSSES),
    "chain": Repair("keep every copy, restore the newest sound ledger, then " + _RECOVER, _LOSSES),
    "meaning": Repair("keep every copy, and compare with the witnesses", "nothing"),
    "promise": Repair("keep every copy, and compare with the witnesses", "nothing"),
    "balance": Repair("keep every copy, and restore the newest sound ledger", "nothing"),
    "guard": Repair("restore the newest sound database: somebody changed its triggers", "nothing"),
    "key": Repair(
        "restore the signing key, or turnstile ledger rotate-key --reason TEXT; another's file: "
        f"{_REPUBLISH} once it is taken away",
        "nothing",
    ),
    "witness": Repair("mount the witness that is named, or what the sentence says", "nothing"),
    "checkpoint": Repair(f"gone or torn: {_REPUBLISH}; else newest ledger, or {_RECOVER}", _LOSSES),
    "clock": Repair(
        "set the clock, or if it is right: turnstile ledger confirm-clock --reason TEXT", "nothing"
    ),
    "space": Repair("free space on the disk that is named", "nothing"),
    "staged": Repair("restore the newest ledger, or " + _RECOVER, _LOSSES),
    "sealed": Repair(f"restore {_RESTORE}; if there is none: move it away, then {_RECOVER}", _GONE),
    "plan": Repair(
        "turnstile run of its week, which is charged nothing and may publish", "nothing"
    ),
    "card": Repair("restore the newest ledger, or " + _RECOVER, _LOSSES),
    "manifest": Repair(f"what the sentence says; to restore it: {_RESTORE}", "nothing"),
    "package": Repair(f"what the sentence says; else restore {_RESTORE}", "nothing"),
    "public zone": Repair(
        f"what it says makes again: {_REPUBLISH}; else restore, or take away, {_RESTORE}", "nothing"
    ),
    "log": Repair(
        f"{_REPUBLISH}; its key is gone: restore it, or turnstile ledger begin-log --reason TEXT; "
        "history replaced: keep all, then begin-log likewise (RUNBOOK)",
        "nothing",
    ),
    "cosigner": Repair(
        "find out which copy of the ledger it has seen, keep all, then turnstile ledger begin-log "
        "--reason TEXT",
        "nothing; until then nothing is charged",
    ),
    "private": Repair(
        f"restore {_RESTORE} --private; where another machine reads private data: doctor there",
        "nothing; without it no correction",
    ),
    "store": Repair("turnstile stores restore, from the home that has seen more", "nothing"),
    "airflow": Repair(
        "stop Airflow, then restore its database, or move it away for a new one (RUNBOOK, lost or "
        "reset)",
        "runs and their logs, no budget",
    ),
    _AIRFLOW: Repair(
        "what the sentence says, in Airflow's own settings; restart it while no draw is under way",
        "nothing",
    ),
}
"""Each has a row of its name in docs/RUNBOOK.md."""


class Found(NamedTuple):
    """One finding: name of its repair, and what is wrong."""

    name: str
    problem: str


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("doctor", help="what is wrong here, and the one right repair")
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.set_defaults(command=_doctor)


def _doctor(args: argparse.Namespace) -> int:
    """Print what was found, gravest first; exit 4 if anything was."""
    from turnstile.pipeline.private_zone.private_verification import sees_private

    faults = list(dict.fromkeys(findings()))
    if args.json:
        lines = [{**finding._asdict(), **REPAIRS[finding.name]._asdict()} for finding in faults]
        print_json(lines)
    elif not faults:
        settings = Settings.from_environment()
        file = _airflow_file(settings)
        airflow = f"nor with {file}" if file else "Airflow's database is no file here, so not read"
        is_set = _is_of_make_ui(settings) or AirflowSettings.of_process().is_any
        airflow += "" if is_set else "; Airflow's settings are not in this shell"
        unseen = "" if sees_private(settings) else "; no private zone is here"
        print(f"nothing is wrong with ledger, files, key, clock, zones, stores{unseen}; {airflow}")
    for fault in faults if not args.json else ():
        repair = REPAIRS[fault.name]
        print(f"{fault.name}: {fault.problem}\n  do: {repair.do}\n  costs: {repair.costs}")
    return 4 if faults else 0


def findings() -> Iterator[Found]:
    """Yield what is wrong, what has to be mended first before what hangs on it."""
    try:
        settings = Settings.from_environment()
    except TurnstileError as error:
        yield Found("settings", str(error))
        return
    away = False
    for of, look in (("store", _stores), ("ledger", _ledger), (_AIRFLOW, _airflow)):
        if away and look is _ledger:
            continue  # of what could not be fetched nobody can say that it is missing
        try:
            yield from look(settings)
        except (OSError, sqlite3.Error) as error:
            yield Found("access", f"{settings.home}: {error}")
        except TurnstileError as error:
            # what does not answer, or may not be read, is not lost
            is_away = of == "ledger" and isinstance(error, InputError)
            away |= of == "store"
            is_set = of == "store" and isinstance(error, InputError)
            yield Found("access" if is_away else "settings" if is_set else of, str(error))


def _stores(settings: Settings) -> tuple[Found, ...]:
    """Ask every store, whose older index is an error of its own."""
    from turnstile.release.zone_copies import zones

    zones(settings).refresh()
    return ()


def _ledger(settings: Settings) -> Iterator[Found]:
    """Look at the database, what it says, and what lies beside it."""
    from turnstile.ledger.custody.custody import clock_known_until
    from turnstile.ledger.database.damaged_database import damage_in
    from turnstile.ledger.of_deployment import open_ledger
    from turnstile.pipeline.private_zone.private_verification import sees_private

    file = settings.ledger_file
    if file is not None and not file.exists():
        yield _without_ledger(settings)
        return
    if file is not None and (damage := damage_in(file)):
        yield Found("database", f"{file} is damaged ({damage})")
        return
    for folder in _full(settings):
        yield Found("space", f"{folder}: less than {_FREE_BYTES >> 20} MiB are free")
    ledger, now = open_ledger(settings, read_only=True), system_clock()
    for finding in ledger.verify():
        yield Found(finding.check, str(finding.problem))
    if clock_known_until(ledger.entries(), now) < now:
        yield Found("clock", "it jumped, or the ledger was quiet for long: nothing is deleted")
    if sees_private(settings):
        yield from _private(settings, ledger)


def _full(settings: Settings) -> Iterator[Path]:
    """Yield a folder of each disk that is full: any of the home's may be a volume of its own.

    Whoever reads a folder says so where it is away.
    """
    files = filter(None, (settings.ledger_file, settings.ledger_key))
    inside = (*sorted(settings.home.iterdir()), settings.private / "failures")
    seen = set[int]()
    for folder in (settings.home, *(file.parent for file in files), *settings.witness, *inside):
        with suppress(OSError):
            device = folder.stat().st_dev
            if folder.is_dir() and device not in seen:
                seen.add(device)
                if shutil.disk_usage(folder).free < _FREE_BYTES:
                    yield folder


def _private(settings: Settings, ledger: Ledger) -> Iterator[Found]:
    """Look at the private zone, whose store may be the one that is older."""
    from turnstile.pipeline.private_zone.private_verification import private_findings

    try:
        for finding in private_findings(settings, ledger):
            yield Found("private", finding.problem)
    except (IntegrityError, StoreError) as error:
        yield Found("store" if settings.store_of("private") else "ledger", str(error))


def _without_ledger(settings: Settings) -> Found:
    """Say why there is none: it is lost, elsewhere, or nothing was ever released from here."""
    from turnstile.ledger.of_deployment import require_not_lost

    try:
        require_not_lost(settings)
    except InputError as error:
        return Found("settings", str(error))
    except IntegrityError as error:
        return Found("ledger", str(error))
    return Found("home", f"{settings.home} holds no ledger and no release")


def _airflow(settings: Settings) -> Iterator[Found]:
    """Look at Airflow's database, where it is a file, and at settings that undo what we rely on."""
    from turnstile.ledger.database.damaged_database import damage_in

    file = _airflow_file(settings)
    if file is not None and (damage := damage_in(file)):
        yield Found("airflow", f"{file} is damaged ({damage})")
    if not _is_of_make_ui(settings):
        for harm in AirflowSettings.of_process().harms(settings.include.parent / "plugins"):
            yield Found(_AIRFLOW, harm)


def _is_of_make_ui(settings: Settings) -> bool:
    """Whether our own Airflow is in the home, which is set anew whenever it starts."""
    return (settings.home / "airflow/secrets.json").exists()


def _airflow_file(settings: Settings) -> Path | None:
    """Return the file of Airflow's own database; None where it is a server's, or is elsewhere.

    A shell lacks the setting of an Airflow that `make ui` started, which keeps it in the home.
    """
    url = os.environ.get("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "")  # noqa: TID251 - not ours
    file = sqlite_file(url or f"sqlite:///{settings.home}/airflow/airflow.db")
    return file if file is not None and file.exists() else None
