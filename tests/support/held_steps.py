"""Lets a test stop a step at a chosen moment: it waits there while the file of that moment exists.

Copied beside the plugins of a test's Airflow and imported there; the product knows nothing of it.
The moments: `count` and `draw`, in the task's process before the step does anything; `seal`, in the
process that draws, when the noise is drawn and nothing is stored yet. That process has no plugins:
it imports this by the `sitecustomize` that `hold_draws` writes.
"""

from __future__ import annotations

import functools
import inspect
import os
import time
from pathlib import Path
from typing import Any

_PAUSE_S = 0.05
_DRAWS_APART = "turnstile.pipeline.draw.drawing_apart"


def wait_at(moment: str, week: str) -> None:
    """Leave word of this process, and wait until the test lets go."""
    place = Path(os.environ["TURNSTILE_HOME"]) / "hold" / f"{week}.{moment}"  # noqa: TID251
    if place.exists():
        place.with_suffix(f".{moment}.reached").write_text(str(os.getpid()))
    while place.exists():
        time.sleep(_PAUSE_S)


def hold_tasks() -> None:
    """Let the tasks of this process stop before they count and before they draw."""
    import step_task

    from turnstile.pipeline import before_charge
    from turnstile.pipeline.draw.drawing_apart import draw_apart

    count = inspect.unwrap(before_charge.count)  # Airflow may load the plugins twice

    @functools.wraps(count)
    def held_count(release: Any) -> str:
        wait_at("count", str(release.week))
        return count(release)

    def held_draw(programme: str, week: str, revision: int = 0) -> str:
        wait_at("draw", week)
        return draw_apart(programme, week, revision)

    before_charge.count, step_task.draw_apart = held_count, held_draw


def hold_seal() -> None:
    """Let the draw of this process stop before its seal."""
    from turnstile.pipeline.draw import charged_draw

    write_once = charged_draw.write_once

    def held_write(path: Path, content: bytes) -> None:
        wait_at("seal", path.parents[1].name)
        write_once(path, content)

    charged_draw.write_once = held_write


def hold_draws(folder: Path) -> str:
    """Write what processes that draw import first; return the PYTHONPATH that they need.

    Args:
        folder: empty, of this purpose alone.
    """
    folder.mkdir()
    (folder / f"{__name__}.py").write_bytes(Path(__file__).read_bytes())
    (folder / "sitecustomize.py").write_text(
        f"import sys\nif {_DRAWS_APART!r} in sys.orig_argv:\n"
        f"    import {__name__}\n    {__name__}.hold_seal()\n"
    )
    return str(folder)
