"""Files that an authority keeps elsewhere, copied into the landing zone: whole or not at all.

Reads no rows. An object is new if the landing zone has no file of its name, size and time of
change; it becomes a file in one rename, so that nobody reads half of it, and the marker of a week
comes last. What retention has deleted is never fetched again: the ledger says which weeks those
are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from turnstile.durable_files import draft_of, sync_folder
from turnstile.errors import InputError, LandingAway
from turnstile.ledger.entries import EntryKind
from turnstile.pipeline.private_zone.private_data import Part
from turnstile.programme.source_spec import SourceSpec
from turnstile.service_calendar import ServicePeriod, ServiceWeek

if TYPE_CHECKING:
    from turnstile.ledger.ledger import Ledger
    from turnstile.programme.spec import Programme
    from turnstile.settings import Settings

SETTING = "TURNSTILE_LANDING_FROM"
_WEEK = "{week}"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """An object in a folder of somebody else.

    Args:
        name: within the folder.
        size: bytes.
        changed_at: seconds since 1970, by the server's clock.
    """

    name: str
    size: int
    changed_at: int


@dataclass(frozen=True, slots=True)
class Address:
    """Where a programme's files are: `sftp://connection/folder/{week}`.

    Args:
        kind: of the server: sftp, s3, gs, wasb.
        connection: its id in Airflow.
        folder: path, or bucket and prefix; `{week}` stands for the week's name.
    """

    kind: str
    connection: str
    folder: str


class Server(Protocol):
    """What a connection of Airflow's gives."""

    def files(self, folder: str) -> Iterable[Elsewhere]:
        """Return the objects of a folder, those of folders within it left out."""

    def copy(self, folder: str, name: str, to: Path) -> None:
        """Write an object's bytes to a file."""


def address_of(programme: str, settings: Settings) -> Address | None:
    """Return where a programme's files are fetched from; None if they are delivered here.

    The setting is PROGRAMME=ADDRESS, with blanks between one and the next.

    Raises:
        InputError: it is no such pair, or the address is none or names no week.
    """
    pairs = dict(entry.partition("=")[::2] for entry in settings.landing_from.split())
    if not all(pairs.values()):
        rule = f"holds what is no pair; write PROGRAMME=sftp://CONNECTION/folder/{_WEEK}"
        raise InputError(where="environment", field=SETTING, rule=rule)
    if programme not in pairs:
        return None
    if settings.store_of("landing"):
        rule = "copies files into a folder, and the landing zone is a store; use one of the two"
        raise InputError(where="environment", field=SETTING, rule=rule)
    kind, _, rest = pairs[programme].partition("://")
    connection, _, folder = rest.partition("/")
    if not (kind and connection and folder) or _WEEK not in folder:
        rule = (
            f"{pairs[programme]!r} is no address; write sftp://CONNECTION/folder/{_WEEK}, or s3, "
        )
        rule += f"gs or wasb with BUCKET/prefix/{_WEEK} behind the connection"
        raise InputError(where="environment", field=f"{SETTING}, {programme}", rule=rule)
    return Address(kind, connection, folder.strip("/") if kind != "sftp" else f"/{folder}")


def fetch_new(
    programme: Programme,
    period: ServicePeriod,
    landing: Path,
    ledger: Ledger,
    source: tuple[Address, Server],
) -> tuple[str, ...]:
    """Copy what is new of a period; return the names of the files, below the landing zone.

    Args:
        programme: whose pattern says which names are data.
        period: of each of its weeks a folder is looked at.
        landing: landing zone, a folder.
        ledger: says which weeks retention has deleted.
        source: where the objects are, and the connection.

    Raises:
        LandingAway: an object is not what its server said; nothing of it is there, a repeat goes
            on.
    """
    address, server = source
    fetched: list[str] = []
    for week in period.weeks:
        if is_deleted(ledger, programme.name, week):
            continue
        remote = address.folder.replace(_WEEK, str(week))
        remote_files = {file.name: file for file in server.files(remote) if _is_plain(file.name)}
        for name, target in _targets(programme.source, week, landing, remote_files):
            if _copied(server, remote, remote_files[name], target):
                fetched.append(target.relative_to(landing).as_posix())
    return tuple(fetched)


def is_deleted(ledger: Ledger, programme: str, week: ServiceWeek) -> bool:
    """Return whether retention has deleted a week's files."""
    gone = {"programme": programme, "period": str(week), "part": str(Part.FILES)}
    return any(
        entry.kind is EntryKind.DELETED and gone.items() <= entry.body.items()
        for entry in ledger.entries()
    )


def _targets(
    source: SourceSpec, week: ServiceWeek, landing: Path, names: Iterable[str]
) -> Iterable[tuple[str, Path]]:
    """Yield the objects that are files of a week and where each goes; its marker last."""
    folder, _, pattern = source.landing.replace(_WEEK, str(week)).rpartition("/")
    marker = source.marker.replace(_WEEK, str(week))
    last = marker.rpartition("/")[2]
    for name in sorted(names):
        if name != last and fnmatch(name, pattern) and not name.startswith("."):
            yield name, landing / folder / name
    if last and last in names:
        yield last, landing / marker


def _is_plain(name: str) -> bool:
    """Return whether a name stays within its folder."""
    return name not in {"", ".", ".."} and "/" not in name and "\\" not in name and "\0" not in name


def _copied(server: Server, remote: str, remote_file: Elsewhere, target: Path) -> bool:
    """Copy an object unless its file is here; return whether it was copied.

    Raises:
        LandingAway: it has another size than its server said: somebody writes to it.
    """
    if target.is_file():
        here = target.stat()
        if (here.st_size, int(here.st_mtime)) == (remote_file.size, remote_file.changed_at):
            return False
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(target)  # hidden: on its way; another fetch has its own
    try:
        server.copy(remote, remote_file.name, draft)
        if draft.stat().st_size != remote_file.size:
            raise LandingAway(f"{remote}/{remote_file.name}", "is written to while it is fetched")
        os.utime(draft, (remote_file.changed_at, remote_file.changed_at))
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(target.parent)
    return True
