"""A test touches nothing of the person who runs it: not the checkout's zones, nor their Airflow.

Every test has a home of its own, which does not exist until it makes it. What Python opens, lists,
makes or removes elsewhere is seen by an audit hook (PEP 578), and so is the command, started as a
process without a home; the test that did it fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_MEMORY = Path("/dev/shm")  # noqa: S108 - tests make folders of their own in it
_ROOM_BYTES = 6 * 2**30  # six times what a whole run holds at once
_COMMAND = f"{sys.prefix}/bin/turnstile"
_EVENTS = frozenset(
    {
        "open",
        "os.listdir",
        "os.scandir",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "shutil.rmtree",
        "sqlite3.connect",
    }
)


def folder_in_memory(memory: Path = _MEMORY, room_bytes: int = _ROOM_BYTES) -> str | None:
    """Return a folder in memory that programs may be started from; None if there is no room."""
    try:
        filesystem, pages = os.statvfs(memory), os.sysconf("SC_AVPHYS_PAGES")
    except (OSError, ValueError):
        return None
    free = min(filesystem.f_bavail * filesystem.f_frsize, pages * os.sysconf("SC_PAGE_SIZE"))
    may_start = os.access(memory, os.W_OK) and not filesystem.f_flag & os.ST_NOEXEC
    return str(memory) if free >= room_bytes and may_start else None


class PersonsState:
    """What belongs to the person, and which of it somebody touched.

    Args:
        environment: as the person set it.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        named = [environment.get(name) for name in ("TURNSTILE_HOME", "AIRFLOW_HOME")]
        places = [str(_ROOT / "var"), str(Path.home() / "airflow"), *filter(None, named)]
        self._places = tuple(f"{os.path.abspath(place)}/" for place in places)  # noqa: PTH100
        self._touched: list[str] = []

    def watch(self) -> None:
        """Look at what this process does from now on; Python takes no hook away again."""
        sys.addaudithook(self._see)

    def taken(self) -> list[str]:
        """Return what was touched since the last call."""
        touched, self._touched = self._touched, []
        return touched

    def _see(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in _EVENTS and arguments and self._is_theirs(arguments[0]):
            if not _is_name_in_a_folder(event, *arguments):
                self._touched.append(f"{event} {arguments[0]}")
        elif event == "subprocess.Popen":
            given, environment = arguments[1], arguments[3]
            words = " ".join(map(str, given)) if isinstance(given, list | tuple) else str(given)
            variables = environment if isinstance(environment, Mapping) else os.environ  # noqa: TID251
            home = variables.get("TURNSTILE_HOME") or (
                str(_ROOT / "var") if _COMMAND in words else None
            )
            if home and self._is_theirs(home):
                self._touched.append(f"started {words} without a home of its own")

    def _is_theirs(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        text = path if isinstance(path, str) else os.fsdecode(path)
        if text[:1] != "/" or "//" in text or "/." in text:
            text = os.path.abspath(text.removeprefix("file:"))  # noqa: PTH100 - no look
        return f"{text}/".startswith(self._places)


def _is_name_in_a_folder(event: str, path: object, at: object = None, *_: object) -> bool:
    """Whether it is told of a name in a folder that is open, as `shutil.rmtree` goes.

    Events tell the folder's number, -1 without one; of `os.open` they tell None, in a mode's place.
    """
    if os.path.dirname(os.fsdecode(path) if isinstance(path, str | bytes) else "/"):  # noqa: PTH120
        return False
    return at is None if event == "open" else event in {"os.remove", "os.rmdir"} and at != -1
