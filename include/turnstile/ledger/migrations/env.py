"""Runs the migrations on the connection that the store hands over, in its transaction."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="ledger_version",
    transactional_ddl=True,
    transaction_per_migration=False,
)
context.run_migrations()
