"""Expected rows against published rows, and what people who hide rows give away by it (B6)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class RowBalance:
    """How many rows a public domain has and how many were published.

    Args:
        expected: cells of the domain.
        published: rows of the table, each cell once.
    """

    expected: int
    published: int

    @property
    def missing(self) -> int:
        """Cells that are not published; an attacker knows them to be below the threshold."""
        return self.expected - self.published

    @property
    def missing_share(self) -> float:
        """Share of the domain that is not published, 0 to 1."""
        return self.missing / self.expected if self.expected else 0.0

    @property
    def statement(self) -> str:
        """What follows, in words."""
        if self.missing == 0:
            return (
                f"all {self.expected} cells are published: nothing was dropped, and whether a "
                "row exists says nothing about anybody"
            )
        return (
            f"{self.missing} of {self.expected} cells ({self.missing_share:.2%}) are missing: "
            "that a row exists says that its noisy count reached the threshold"
        )


def expected_rows(*dimensions: int) -> int:
    """Return the rows of a full domain: the product of the labels of each dimension.

    The light rail of the 2016 release: 23 stops on, 23 and UNKNOWN off, 14 days.

    Examples:
        >>> expected_rows(23 + 24, 14)
        658
    """
    return prod(dimensions)
