"""A time-out of the containers' test counts a quiet machine's seconds; a long wait is said."""

from __future__ import annotations

import pytest
from patience import crowding, wait_for


class _Machine:
    """A clock that only sleeping moves, on a machine with so many processes for each core."""

    def __init__(self, crowd: float) -> None:
        self.now, self.crowd, self.said = 0.0, crowd, list[str]()

    def wait(self, quiet_s: float, holds_at: float) -> None:
        wait_for(lambda: self.now >= holds_at, "health", quiet_s, self.said.append,
                 sleep=self._sleep, clock=lambda: self.now, crowd=lambda: self.crowd)  # fmt: skip

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


def test_what_holds_at_once_is_not_waited_for() -> None:
    machine = _Machine(1)
    machine.wait(1, 0)
    assert (machine.now, machine.said) == (0, [])


def test_a_quiet_machine_has_its_seconds_and_a_crowded_one_more_of_them() -> None:
    _Machine(1).wait(100, 100)
    with pytest.raises(AssertionError, match="health took more than 100 s"):
        _Machine(1).wait(100, 110)
    _Machine(2).wait(100, 199)
    with pytest.raises(AssertionError, match="202 s, 101 of a quiet machine's"):
        _Machine(2).wait(100, 210)


def test_a_long_wait_is_said_once_a_minute() -> None:
    machine = _Machine(2)
    machine.wait(1000, 190)
    assert machine.said[0] == "  waiting for health: 30 of 1000 s, load 2.0 a core"
    assert len(machine.said) == 3
    assert crowding() >= 1
