"""First books: facts, head, families, caps, attempts and accounts, with their guards.

The guards repeat in the database what the code promises: facts are never changed or removed, an
attempt moves only as PRIVACY 6 draws it, a key has one open and one sealed attempt, nothing spent
comes back, and no row passes its cap.
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_AMOUNTS = ("epsilon_micro", "epsilon_unbounded", "rho_nano", "rho_unbounded", "delta_femto")
_MOST = 4 * 10**18  # below 2^62: a sum never leaves a signed 64-bit integer
_GENESIS = "0" * 64
_SIDES = ("spent", "held")
_CAPPED = (
    ("epsilon_micro", "spent_epsilon_unbounded + held_epsilon_unbounded = 0"),
    ("rho_nano", "spent_rho_unbounded + held_rho_unbounded = 0"),
    ("delta_femto", "true"),
)

_TABLES = (
    """CREATE TABLE entry (
        sequence BIGINT PRIMARY KEY, kind TEXT NOT NULL, release_key TEXT, attempt_id TEXT,
        record TEXT NOT NULL, hash TEXT NOT NULL UNIQUE)""",
    "CREATE INDEX entry_by_key ON entry (release_key, kind)",
    """CREATE TABLE head (
        singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
        sequence BIGINT NOT NULL, hash TEXT NOT NULL)""",
    f"INSERT INTO head VALUES (1, 0, '{_GENESIS}')",  # noqa: S608 - a constant
    "CREATE TABLE family (family TEXT PRIMARY KEY, turns BIGINT NOT NULL)",
    """CREATE TABLE caps (
        programme TEXT PRIMARY KEY, family TEXT NOT NULL, caps TEXT NOT NULL)""",
    """CREATE TABLE attempt (
        attempt_id TEXT PRIMARY KEY, release_key TEXT NOT NULL,
        family TEXT NOT NULL REFERENCES family (family), week TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN
            ('reserved', 'drawing', 'sealed', 'published', 'void', 'burned')),
        programme_digest TEXT NOT NULL, domain_digest TEXT NOT NULL, snapshot_digest TEXT NOT NULL,
        plan_digest TEXT NOT NULL, artefact_digest TEXT, manifest_digest TEXT,
        reserved_sequence BIGINT NOT NULL REFERENCES entry (sequence),
        is_withdrawn BOOLEAN NOT NULL,
        CHECK ((state IN ('sealed', 'published')) = (artefact_digest IS NOT NULL)),
        CHECK ((state = 'published') = (manifest_digest IS NOT NULL)))""",
    """CREATE UNIQUE INDEX one_open_attempt ON attempt (release_key)
        WHERE state IN ('reserved', 'drawing')""",
    """CREATE UNIQUE INDEX one_sealed_attempt ON attempt (release_key)
        WHERE state IN ('sealed', 'published')""",
    "CREATE INDEX attempt_by_key ON attempt (release_key)",
    "CREATE INDEX attempt_by_week ON attempt (family, week)",
)

_ILLEGAL_MOVE = """NOT (OLD.state = NEW.state
    OR (OLD.state = 'reserved' AND NEW.state IN ('drawing', 'void'))
    OR (OLD.state = 'drawing' AND NEW.state IN ('sealed', 'burned'))
    OR (OLD.state = 'sealed' AND NEW.state = 'published'))"""
_REFUND = " OR ".join(f"NEW.spent_{name} < OLD.spent_{name}" for name in _AMOUNTS)


def _account() -> str:
    """Write the accounts' table with its CHECKs."""
    columns = [
        f"{side}_{name} BIGINT NOT NULL CHECK ({side}_{name} BETWEEN 0 AND {_MOST})"
        for side in _SIDES
        for name in _AMOUNTS
    ]
    key = "PRIMARY KEY (family, unit, scope, week)"
    names = [f"{name} TEXT NOT NULL" for name in ("family", "unit", "scope", "week")]
    caps = [f"cap_{name} BIGINT" for name, _ in _CAPPED]
    checks = [
        f"CHECK (cap_{name} IS NULL OR (spent_{name} + held_{name} <= cap_{name} AND {finite}))"
        for name, finite in _CAPPED
    ]
    # Columns come before table constraints: SQLite insists on it.
    return f"CREATE TABLE account ({', '.join([*names, *columns, *caps, key, *checks])})"


def upgrade() -> None:
    """Make tables and guards."""
    for statement in (*_TABLES, _account()):
        op.execute(statement)
    guards = _postgresql() if op.get_context().dialect.name == "postgresql" else _sqlite()
    for statement in guards:
        op.execute(statement)


def _sqlite() -> tuple[str, ...]:
    """Write the guards for SQLite."""
    never = "BEGIN SELECT RAISE(ABORT, '{}'); END"
    facts = never.format("entries are never changed or removed")
    return (
        f"CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry {facts}",
        f"CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry {facts}",
        f"CREATE TRIGGER attempt_no_delete BEFORE DELETE ON attempt {facts}",
        f"CREATE TRIGGER account_no_delete BEFORE DELETE ON account {facts}",
        f"CREATE TRIGGER attempt_moves BEFORE UPDATE ON attempt WHEN {_ILLEGAL_MOVE} "
        + never.format("no such move of an attempt"),
        f"CREATE TRIGGER account_no_refund BEFORE UPDATE ON account WHEN {_REFUND} "
        + never.format("nothing spent comes back"),
    )


def _postgresql() -> tuple[str, ...]:
    """Write the guards for PostgreSQL."""
    refuse = """CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION '{text}'; END $$"""
    trigger = "CREATE TRIGGER {name} BEFORE {event} ON {table} {each} EXECUTE FUNCTION {call}()"
    row = "FOR EACH ROW"
    return (
        refuse.format(name="facts_stay", text="entries are never changed or removed"),
        refuse.format(name="no_such_move", text="no such move of an attempt"),
        refuse.format(name="no_refund", text="nothing spent comes back"),
        *(
            trigger.format(
                name=f"{table}_no_{event.lower()}",
                event=event,
                table=table,
                each=row if event != "TRUNCATE" else "FOR EACH STATEMENT",
                call="facts_stay",
            )
            for table, events in (
                ("entry", ("UPDATE", "DELETE", "TRUNCATE")),
                ("attempt", ("DELETE", "TRUNCATE")),
                ("account", ("DELETE", "TRUNCATE")),
            )
            for event in events
        ),
        trigger.format(
            name="attempt_moves",
            event="UPDATE",
            table="attempt",
            each=f"{row} WHEN ({_ILLEGAL_MOVE})",
            call="no_such_move",
        ),
        trigger.format(
            name="account_no_refund",
            event="UPDATE",
            table="account",
            each=f"{row} WHEN ({_REFUND})",
            call="no_refund",
        ),
    )


def downgrade() -> None:
    """Refuse: a ledger does not forget.

    Raises:
        RuntimeError: always.
    """
    msg = "the ledger's tables are never taken away"
    raise RuntimeError(msg)
