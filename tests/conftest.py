"""What all tests share: where the real data lies, for those who have it."""

from __future__ import annotations

from pathlib import Path

import pytest

_SHARED_DATA = Path(__file__).resolve().parents[1] / "../shared/data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real data; it belongs to its publishers and is not part of the project."""
    if not _SHARED_DATA.is_dir():
        pytest.skip("the real data of ../shared/data is not on this machine")
    return _SHARED_DATA.resolve()
