"""Alembic environment of the ledger's database."""
