"""Which modules of the house an act goes through, by their functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

import turnstile

HOUSE = Path(turnstile.__file__).parent


def entered(act: Callable[[], object]) -> set[str]:
    """Modules of ours of which a function is called in this thread, but by what is imported first.

    What an act imports depends on what ran before it: on a home that is kept, for one.
    """
    modules: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        is_function = frame.f_code.co_flags & CO_OPTIMIZED  # not a module that is imported first
        is_ours = event == "call" and is_function and file.startswith(str(HOUSE))
        if is_ours and not _is_of_an_import(frame):
            modules.add(Path(file).relative_to(HOUSE).with_suffix("").as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return modules


def _is_of_an_import(frame: FrameType | None) -> bool:
    """Return whether a module is being imported, for which something is called."""
    while frame is not None and frame.f_code is not entered.__code__:
        if frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False
