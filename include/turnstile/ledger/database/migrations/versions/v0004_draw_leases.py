"""Which draws live: a row that a drawing process renews, outside the chain of facts.

It delays a burn and replaces none: once it has run out, the next draw burns and charges in full.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.execute(
        "CREATE TABLE draw_lease (attempt_id TEXT NOT NULL PRIMARY KEY, holder TEXT NOT NULL, "
        "ends_s BIGINT NOT NULL)"
    )


def downgrade() -> None:
    """Refuse: a ledger does not forget.

    Raises:
        RuntimeError: always.
    """
    msg = "the ledger's tables are never taken away"
    raise RuntimeError(msg)
