"""Numbers of trips, or of boardings and alightings, in each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turnstile.measures.kind import Kind, Options


@dataclass(frozen=True, kw_only=True)
class Count(Kind):
    """Each record adds 1 to its cell; trips are counted by the engine (`counting.trips`)."""

    is_of_trips: ClassVar[bool] = True

    def statistics(self, options: Options) -> tuple[str, ...]:
        """Return the one vector."""
        del options
        return ("count",)
