"""Runs to its end before any component starts, as the ledger's owner: its tables, then its rights.

The owner does nothing else. Workers connect as a member of `turnstile_writer`, the budget page as a
member of `turnstile_reader` (`ledger/database/roles.sql`).
"""

from importlib.resources import files

from sqlalchemy import create_engine

from turnstile.ledger.ledger import Ledger
from turnstile.settings import Settings, system_clock

settings = Settings.from_environment()
Ledger.open(settings.ledger_url, clock=system_clock)
rights = files("turnstile.ledger.database").joinpath("roles.sql").read_text(encoding="utf-8")
with create_engine(settings.ledger_url).begin() as connection:
    connection.exec_driver_sql(rights)
