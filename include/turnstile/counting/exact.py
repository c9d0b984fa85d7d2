"""The one type that holds true counts, and refuses every way out but the one to a mechanism."""

from __future__ import annotations

from datetime import date
from typing import NoReturn, final

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


@final
class ExactTable:
    """True integers of one draw, for one task's memory and the private zone.

    A plain class on purpose: the serializers of Airflow, pickle, copy and json turn dataclasses,
    named tuples and arrays into their values. This one shows its name and its length only.

    Args:
        table: name of the table in the programme.
        statistic: which vector of that table.
        service_date: the one day that is counted; None if all days of the week are added up.
        counts: shape (cells,), int64, laid out as `programme.domain.public_domain.layout` says.

    Raises:
        TypeError: the counts are no flat int64 vector.
    """

    __slots__ = ("__counts", "service_date", "statistic", "table")

    def __init__(
        self, table: str, statistic: str, service_date: date | None, counts: Counts
    ) -> None:
        if not isinstance(counts, np.ndarray) or counts.dtype != np.int64 or counts.ndim != 1:
            raise TypeError("exact counts are a flat vector of int64")
        self.table = table
        self.statistic = statistic
        self.service_date = service_date
        self.__counts = counts.copy()
        self.__counts.flags.writeable = False

    @property
    def label(self) -> tuple[str, str, date | None]:
        """Which draw this is for: table, statistic, service date."""
        return self.table, self.statistic, self.service_date

    @property
    def cells(self) -> int:
        """Length of the vector: a public number, the size of the domain."""
        return int(self.__counts.size)

    def reveal_to_mechanism(self) -> Counts:
        """Return the true integers, read-only. Only a charged draw and the private store ask."""
        return self.__counts

    def __repr__(self) -> str:
        """Name and length, never a value."""
        day = "" if self.service_date is None else f" {self.service_date}"
        return f"<ExactTable {self.table}/{self.statistic}{day}, {self.cells} cells>"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        """Name and length, whatever the format."""
        return repr(self)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse pickle, copy and deepcopy.

        Raises:
            TypeError: always.
        """
        raise TypeError("exact counts stay in the task that counted them; store the noisy ones")

    def __reduce__(self) -> NoReturn:
        """Refuse as well.

        Raises:
            TypeError: always.
        """
        self.__reduce_ex__(0)

    def __getstate__(self) -> NoReturn:
        """Refuse as well.

        Raises:
            TypeError: always.
        """
        self.__reduce_ex__(0)
