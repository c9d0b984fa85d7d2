"""More guards: entries follow each other, attempts and accounts change only as the states allow.

A writer's role can insert and update; these triggers leave it nothing but what the product does.
"""

from turnstile.ledger.database.migrations.triggers import make_guards

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_AMOUNTS = ("epsilon_micro", "epsilon_unbounded", "rho_nano", "rho_unbounded", "delta_femto")
_FIXED = (
    "attempt_id",
    "release_key",
    "family",
    "week",
    "programme_digest",
    "domain_digest",
    "snapshot_digest",
    "plan_digest",
    "reserved_sequence",
)
_DECLARED = """EXISTS (SELECT 1 FROM entry
    WHERE sequence = NEW.reserved_sequence AND kind = 'loss_declared')"""
_APPENDED = "EXISTS (SELECT 1 FROM entry WHERE sequence = NEW.sequence AND hash = NEW.hash)"
_OPENED = """NEW.state = 'reserved' AND NEW.artefact_digest IS NULL
    AND NEW.manifest_digest IS NULL AND NOT NEW.is_withdrawn"""


def _changed(name: str) -> str:
    """Tell in SQL whether a column that may be null changes."""
    return f"COALESCE(OLD.{name}, '') <> COALESCE(NEW.{name}, '')"


def _moves(old: str, new: str) -> str:
    """Tell in SQL whether an attempt goes from one state to another."""
    return f"(OLD.state = '{old}' AND NEW.state = '{new}')"


_KEPT = " OR ".join(
    (
        *(f"OLD.{name} <> NEW.{name}" for name in _FIXED),
        f"({_changed('artefact_digest')} AND NOT {_moves('drawing', 'sealed')})",
        f"({_changed('manifest_digest')} AND NOT {_moves('sealed', 'published')})",
        "(OLD.is_withdrawn AND NOT NEW.is_withdrawn)",
    )
)
_BALANCED = " OR ".join(
    (
        *(f"OLD.{name} <> NEW.{name}" for name in ("family", "unit", "scope", "week")),
        *(
            f"(NEW.spent_{name} > OLD.spent_{name} AND NEW.held_{name} <> OLD.held_{name} "
            f"AND NEW.held_{name} - OLD.held_{name} <> OLD.spent_{name} - NEW.spent_{name})"
            for name in _AMOUNTS
        ),
    )
)
_EMPTY = " OR ".join(f"NEW.{side}_{name} <> 0" for side in ("spent", "held") for name in _AMOUNTS)

# name, table, event, when it refuses, what it says
_GUARDS = (
    (
        "entry_follows",
        "entry",
        "INSERT",
        "NEW.sequence <> (SELECT sequence FROM head) + 1",
        "an entry follows the last one",
    ),
    (
        "head_follows",
        "head",
        "UPDATE",
        f"NEW.sequence <> OLD.sequence + 1 OR NOT {_APPENDED}",
        "the head is the last entry",
    ),
    (
        "attempt_opens",
        "attempt",
        "INSERT",
        f"NOT (({_OPENED}) OR {_DECLARED})",
        "an attempt begins with a reservation",
    ),
    ("attempt_keeps", "attempt", "UPDATE", _KEPT, "no such move of an attempt"),
    ("account_keeps", "account", "UPDATE", _BALANCED, "no such move of an amount"),
    ("account_opens", "account", "INSERT", _EMPTY, "an account begins empty"),
    ("caps_keep", "caps", "UPDATE", "OLD.family <> NEW.family", "a programme keeps its family"),
    ("caps_no_delete", "caps", "DELETE", "1 = 1", "caps are never removed"),
)


def upgrade() -> None:
    """Make the guards."""
    make_guards(_GUARDS)


def downgrade() -> None:
    """Refuse: a ledger does not forget.

    Raises:
        RuntimeError: always.
    """
    msg = "the ledger's tables are never taken away"
    raise RuntimeError(msg)
