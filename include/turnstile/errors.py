"""The error tree: every deliberate failure of the product, and its exit code.

    TurnstileError            1  a check failed
    |-- InputError            2  bad input or usage; nothing was done
    |   `-- ProgrammeError    2  a programme or domain file breaks a rule
    |-- AirflowAway           1  its API does not answer: try again
    |-- DrawDied              1  its process ended; what it had charged stays charged
    |-- RefusedError          3  budget, approval or finality; nothing was released
    |   |-- BudgetExceeded    3  a cap would be passed
    |   |-- DrawGoesOn        3  a process draws at this moment: wait
    |   |-- NotFinal          3  the week is not over, or not complete
    |   |   `-- NotArrived    3  its files are not all there
    |   |-- NotApproved       3  a person has to say yes first
    |   `-- RevisionNeeded    3  the key is bound to other inputs or to another programme
    |-- StoreError            1  an object store is away: try again
    |   |-- LandingAway       1  the server of landing files is away, or they change: wait
    |   |-- StoreObjectGone   1  what its index names is in it no more: restore it
    |   `-- StoreConflict     1  another worker was first: try again
    `-- IntegrityError        4  stop, and call a human
        `-- NoEntryError      4  a record of the ledger cannot be read

A message is an output: none may hold a true count, a card, a plate or a coordinate. The sentence
says what was asked, what is allowed and what to do next.
"""


class TurnstileError(Exception):
    """A check failed, and the sentence says which."""

    exit_code = 1


class InputError(TurnstileError):
    """Input or usage breaks a rule. Nothing was done.

    Args:
        where: file, or file and line, or command; never a raw value.
        field: column, YAML path or option.
        rule: what holds for that field, and what to do next.
    """

    exit_code = 2

    def __init__(self, *, where: str, field: str, rule: str) -> None:
        self.where = where
        self.field = field
        self.rule = rule
        super().__init__(f"{where}: {field}: {rule}")


class ProgrammeError(InputError):
    """A programme or domain file breaks a rule. Nothing was done."""


class AirflowAway(TurnstileError):  # noqa: N818
    """Airflow's API did not answer, however often it was asked; it may in a moment."""


class DrawDied(TurnstileError):  # noqa: N818
    """The process of a draw ended without an answer; what it had charged stays charged."""


class RefusedError(TurnstileError):
    """Budget, approval or finality says no. Nothing was released."""

    exit_code = 3


class BudgetExceeded(RefusedError):  # noqa: N818 - the literature's word
    """A cap would be passed; the subclass or caller builds the whole sentence."""


class DrawGoesOn(RefusedError):  # noqa: N818
    """A process draws under the key at this moment: wait for its seal."""


class NotFinal(RefusedError):  # noqa: N818
    """The week is not over, or not complete."""


class NotArrived(NotFinal):
    """The files of a week are not all there; the sentence says which."""


class NotApproved(RefusedError):  # noqa: N818
    """The programme asks for an approval that the ledger does not hold."""


class RevisionNeeded(RefusedError):  # noqa: N818
    """The release key is bound to another programme, domain or input; see the differences."""


class IntegrityError(TurnstileError):
    """Bytes, chain or balance do not agree. Stop, and call a human."""

    exit_code = 4


class NoEntryError(IntegrityError, ValueError):
    """A record of the ledger cannot be read as an entry: it is damaged, or of another version."""


class StoreError(TurnstileError):
    """A store did not answer, or not as it should; a repeat goes on where this stopped.

    Args:
        store: its name; never a credential.
        problem: what went wrong.
        status: what it answered, of HTTP; 0: it did not answer, or answers in another way.
    """

    def __init__(self, store: str, problem: str, status: int = 0) -> None:
        super().__init__(f"{store}: {problem}; what is there stays, run the same command again")
        self.store, self.problem, self.status = store, problem, status


class LandingAway(StoreError):  # noqa: N818
    """The server of landing files is away, or what it has changes while it is read: wait for it."""


class StoreObjectGone(StoreError):  # noqa: N818
    """What an index names is in its store no more; no repeat brings it.

    Args:
        store: its name.
        problem: of the first of the units.
        units: of which something is gone.
    """

    def __init__(self, store: str, problem: str, units: tuple[str, ...]) -> None:
        super().__init__(store, problem)
        self.units = units


class StoreConflict(StoreError):  # noqa: N818
    """Another worker wrote the same file first; what it wrote stays."""
