"""Caps change only by a fact: an account has the cap in force, and caps are what was stated.

Without these a writer could relax a cap and spend past it before anybody verifies. The index lets
the hashes of all entries be read without their texts, before every charge.
"""

from alembic import op

from turnstile.ledger.database.migrations.triggers import make_guards

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_COORDINATES = ("epsilon_micro", "rho_nano", "delta_femto")
_AMOUNTS = ("epsilon_micro", "epsilon_unbounded", "rho_nano", "rho_unbounded", "delta_femto")
_GROUP = {"epsilon_micro": 2, "rho_nano": 4}  # a cap under replace-one (admission.under_add_remove)

# The last entry says so; its text is canonical, so what it states stands in it letter by letter.
_STATED = """EXISTS (SELECT 1 FROM entry, head
    WHERE entry.sequence = head.sequence AND entry.kind = 'cap_set'
    AND {find}(entry.record, '"caps":' || NEW.caps || ',') > 0
    AND {find}(entry.record, '"family":"' || NEW.family || '","programme":"'
        || NEW.programme || '"}}') > 0)"""
# A declared loss is spent whatever the caps, so its rows have none until they are next held.
_DECLARED = """EXISTS (SELECT 1 FROM entry, head
    WHERE entry.sequence = head.sequence AND entry.kind = 'loss_declared')"""


def _in_force(name: str, *, is_server: bool) -> str:
    """Return in SQL the smallest cap that the family's programmes state on a row of accounts."""
    stated = _field(name, is_server=is_server) + ("::bigint" if is_server else "")
    if name == "delta_femto":
        figure = f"COALESCE({stated}, 0)"
    else:
        relation = _field("relation", is_server=is_server)
        figure = (
            f"CASE WHEN {relation} = 'replace' THEN {stated} / {_GROUP[name]} ELSE {stated} END"
        )
    unit = _field("unit", is_server=is_server)
    window = _field("window_weeks", is_server=is_server)
    each = "jsonb_array_elements(caps.caps::jsonb)" if is_server else "json_each(caps.caps)"
    return f"""(SELECT MIN({figure}) FROM caps, {each} AS c WHERE caps.family = NEW.family
        AND {unit} = NEW.unit AND ({window} IS NULL) = (NEW.week = ''))"""  # noqa: S608 - constants


def _field(name: str, *, is_server: bool) -> str:
    """Return in SQL a field of a stated cap."""
    return f"(c.value ->> '{name}')" if is_server else f"json_extract(c.value, '$.{name}')"


def _relaxed(*, is_server: bool) -> str:
    """Tell in SQL whether a cap on a row changes to another than the one in force."""
    differ = "IS DISTINCT FROM" if is_server else "IS NOT"
    changed = " OR ".join(f"NEW.cap_{name} {differ} OLD.cap_{name}" for name in _COORDINATES)
    other = " OR ".join(
        f"NEW.cap_{name} {differ} {_in_force(name, is_server=is_server)}" for name in _COORDINATES
    )
    lifted = " AND ".join(f"NEW.cap_{name} IS NULL" for name in _COORDINATES)
    spent = " OR ".join(f"NEW.spent_{name} > OLD.spent_{name}" for name in _AMOUNTS)
    return f"({changed}) AND NOT ({lifted} AND ({spent}) AND {_DECLARED}) AND ({other})"


def upgrade() -> None:
    """Make guards and index."""
    is_server = op.get_context().dialect.name == "postgresql"
    relaxed = _relaxed(is_server=is_server)
    unstated = "NOT " + _STATED.format(find="strpos" if is_server else "instr")
    guards = (
        ("account_caps", "account", "UPDATE", relaxed, "not the cap in force"),
        ("caps_stated", "caps", "UPDATE", unstated, "caps are what the last entry states"),
        ("caps_begin", "caps", "INSERT", unstated, "caps are what the last entry states"),
    )
    make_guards(guards)
    op.execute("CREATE INDEX entry_hashes ON entry (sequence, hash)")


def downgrade() -> None:
    """Refuse: a ledger does not forget.

    Raises:
        RuntimeError: always.
    """
    msg = "the ledger's tables are never taken away"
    raise RuntimeError(msg)
