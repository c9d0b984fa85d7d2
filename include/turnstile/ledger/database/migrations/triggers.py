"""Triggers that refuse a change of the ledger's tables, for both kinds of store."""

from __future__ import annotations

from collections.abc import Iterable

from alembic import op

Guard = tuple[str, str, str, str, str]


def make_guards(guards: Iterable[Guard]) -> None:
    """Make a trigger for each guard.

    On PostgreSQL the condition stands in the trigger's function: its own may not look into tables.

    Args:
        guards: name, table, event (INSERT, UPDATE or DELETE), SQL condition under which the change
            is refused, and the sentence that says so.
    """
    is_server = op.get_context().dialect.name == "postgresql"
    for name, table, event, when, says in guards:
        if not is_server:
            op.execute(
                f"CREATE TRIGGER {name} BEFORE {event} ON {table} WHEN {when} "
                f"BEGIN SELECT RAISE(ABORT, '{says}'); END"
            )
            continue
        op.execute(f"""CREATE FUNCTION refuse_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF {when} THEN RAISE EXCEPTION '{says}'; END IF;
                RETURN {"OLD" if event == "DELETE" else "NEW"};
            END $$""")
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW "
            f"EXECUTE FUNCTION refuse_{name}()"
        )
