"""Runs the migrations on the connection that the store hands over, in its transaction."""

from alembic import context


def run() -> None:
    """Bring the tables to the version that was asked for."""
    context.configure(
        connection=context.config.attributes["connection"],
        version_table="ledger_version",
        transactional_ddl=True,
        transaction_per_migration=False,
    )
    context.run_migrations()


if __name__ == "env_py":  # how Alembic names this file; a plain import runs nothing
    run()
