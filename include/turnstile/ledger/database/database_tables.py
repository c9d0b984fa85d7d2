"""Tables of the ledger's own database, as queries see them; the migrations make them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, Table, Text

METADATA = MetaData()

ENTRY = Table(
    "entry",
    METADATA,
    Column("sequence", BigInteger, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("release_key", Text),
    Column("attempt_id", Text),
    Column("record", Text, nullable=False),
    Column("hash", Text, nullable=False),
)
"""The facts. Everything below is a fold over them, kept for speed and checked by `verify`."""

HEAD = Table(
    "head",
    METADATA,
    Column("singleton", Integer, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
)
"""The last entry. Its one row is what appending transactions wait for."""

FAMILY = Table(
    "family",
    METADATA,
    Column("family", Text, primary_key=True),
    Column("turns", BigInteger, nullable=False),
)
"""One row a family: locked first by every transaction that changes its accounts."""

CAPS = Table(
    "caps",
    METADATA,
    Column("programme", Text, primary_key=True),
    Column("family", Text, nullable=False),
    Column("caps", Text, nullable=False),
)

ATTEMPT = Table(
    "attempt",
    METADATA,
    Column("attempt_id", Text, primary_key=True),
    Column("release_key", Text, nullable=False),
    Column("family", Text, nullable=False),
    Column("week", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("programme_digest", Text, nullable=False),
    Column("domain_digest", Text, nullable=False),
    Column("snapshot_digest", Text, nullable=False),
    Column("plan_digest", Text, nullable=False),
    Column("artefact_digest", Text),
    Column("manifest_digest", Text),
    Column("reserved_sequence", BigInteger, nullable=False),
    Column("is_withdrawn", Boolean, nullable=False),
)

LEASE = Table(
    "draw_lease",
    METADATA,
    Column("attempt_id", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("ends_s", BigInteger, nullable=False),
)
"""Draws under way. No fact: it says who draws now, and until when he need not say so again."""

AMOUNTS = ("epsilon_micro", "epsilon_unbounded", "rho_nano", "rho_unbounded", "delta_femto")
"""Figures of a row, in the order of `balances.changes.Amount`."""

ACCOUNT = Table(
    "account",
    METADATA,
    Column("family", Text, primary_key=True),
    Column("unit", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("week", Text, primary_key=True),
    *(Column(f"spent_{name}", BigInteger, nullable=False) for name in AMOUNTS),
    *(Column(f"held_{name}", BigInteger, nullable=False) for name in AMOUNTS),
    Column("cap_epsilon_micro", BigInteger),
    Column("cap_rho_nano", BigInteger),
    Column("cap_delta_femto", BigInteger),
)
"""Rows of accounts. The cap columns hold the caps at the row's last reservation, for the CHECK."""
