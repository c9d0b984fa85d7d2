"""The ledger's own database: its tables, their guards, and what a disk may do to it."""
