"""Versions of the ledger's tables; a version that was released never changes."""
