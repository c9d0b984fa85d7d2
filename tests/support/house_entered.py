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
    """Modules of ours of which a function is called in this thread."""
    modules: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        is_function = frame.f_code.co_flags & CO_OPTIMIZED  # not a module that is imported first
        if event == "call" and is_function and file.startswith(str(HOUSE)):
            modules.add(Path(file).relative_to(HOUSE).with_suffix("").as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return modules
