"""Lets a test stop a step at a chosen moment: it waits there while the file of that moment exists.

Copied beside the plugins of a test's Airflow and imported there; the product knows nothing of it.
The moments: `count` and `draw`, before the step does anything; `seal`, when the noise is drawn and
nothing is stored yet.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from turnstile.pipeline import charged_draw, drawing, inputs

_PAUSE_S = 0.05
_count, _draw, _write_once = inputs.count, drawing.draw, charged_draw.write_once


def wait_at(moment: str, week: str) -> None:
    """Leave word of this process, and wait until the test lets go."""
    place = Path(os.environ["TURNSTILE_HOME"]) / "hold" / f"{week}.{moment}"  # noqa: TID251
    if place.exists():
        place.with_suffix(f".{moment}.reached").write_text(str(os.getpid()))
    while place.exists():
        time.sleep(_PAUSE_S)


def _held_count(release: Any) -> str:
    wait_at("count", str(release.week))
    return _count(release)


def _held_draw(release: Any) -> str:
    wait_at("draw", str(release.week))
    return _draw(release)


def _held_write(path: Path, content: bytes) -> None:
    wait_at("seal", path.parents[1].name)
    _write_once(path, content)


inputs.count, drawing.draw, charged_draw.write_once = _held_count, _held_draw, _held_write
