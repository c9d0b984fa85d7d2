"""The budget of code lines: what counts, and that a room above its budget fails."""

from __future__ import annotations

from pathlib import Path

import code_lines
import pytest

MODULE = '''"""Says nothing.

More.
"""

import os
from pathlib import (
    Path,
)

# why
LIMIT = 3  # at most


def query(name: str) -> str:
    """Return SQL."""

    return f"""
        SELECT {name}

        FROM rows
    """
'''


def test_only_code_counts(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(MODULE)
    assert code_lines.code_lines(tmp_path / "module.py") == 7


@pytest.mark.parametrize(
    ("allowed", "code"), [("ledger 7 history\n. 0", 0), ("ledger 6", 1), ("", 1)]
)
def test_a_room_above_its_budget_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], allowed: str, code: int
) -> None:
    room = tmp_path / code_lines.SOURCES / "ledger"
    room.mkdir(parents=True)
    (room / "weeks.py").write_text(MODULE)
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/size.txt").write_text(f"# room lines\n{allowed}\n")
    assert code_lines.main(tmp_path) == code
    assert ("above its budget" in capsys.readouterr().out) == bool(code)
