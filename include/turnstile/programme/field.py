"""What the registry of fields says of one column."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from turnstile.programme.source_spec import RowShape


class FieldType(StrEnum):
    """Types of the Data Package's table schema."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"


class Role(StrEnum):
    """What a field is to those who read it, and so where it may be."""

    UNIT = "unit"  # names a person's card or a vehicle: private zone only
    ROW = "row"  # other content of a canonical row: private zone only
    KEY = "key"  # labels a row of a published table, from the calendar or the programme
    GAP = "gap"  # says what a row lacks; stated as it is, outside of the guarantee
    DIMENSION = "dimension"  # labels a row of a published table, from the public domain
    MEASUREMENT = "measurement"  # a noisy integer as drawn
    PRESENTATION = "presentation"  # made from measurements, for people; may be biased
    ESTIMATE = "estimate"  # made from measurements by a stated estimator
    ERROR = "error"  # made from the plan's declared noise: how far a number may be off


PUBLIC_ROLES = frozenset(set(Role) - {Role.UNIT, Role.ROW})


@dataclass(frozen=True, slots=True)
class Field:
    """One column.

    Args:
        name: as in files; `{limit}` stands for a public number that the programme states.
        type: of its values.
        unit: of its values; empty for labels.
        title: a few words.
        description: one sentence.
        role: what it is.
        sql: type in canonical rows; empty if it is in none.
        rows: shapes of canonical rows that hold it.
        tables: shapes whose tables may have it as a dimension.
        labels: public values of a category; other values are outside of the public domain.
        is_listed: True for a category whose values and labels a programme's public list names.
    """

    name: str
    type: FieldType
    unit: str
    title: str
    description: str
    role: Role
    sql: str = ""
    rows: tuple[RowShape, ...] = ()
    tables: tuple[RowShape, ...] = ()
    labels: tuple[str, ...] = ()
    is_listed: bool = False

    def __post_init__(self) -> None:
        """Check what no reader of this registry could make sense of.

        Raises:
            ValueError: a category that is not a column of just the rows that it is a dimension of.
        """
        if self.is_category and not self.rows == self.tables != ():
            raise ValueError(f"{self.name}: a category is a column and a dimension of one shape")

    @property
    def is_category(self) -> bool:
        """Whether rows carry this dimension as they come, under its own name."""
        return bool(self.labels) or self.is_listed
