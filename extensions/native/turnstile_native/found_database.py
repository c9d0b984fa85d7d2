"""A PostgreSQL on this machine for Airflow's own database, where one lets us in.

On SQLite one process waits for another, and a backfill that is asked for while a run works can fail
or end the scheduler. So `make ui` looks on the loopback interface for a server that needs no
password, and keeps a database there that is named after its folder. Nothing of the ledger is in it.
"""

from __future__ import annotations

import getpass
import hashlib
from pathlib import Path

from sqlalchemy import URL, create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

PORT = 5432
_WITHIN_S = 2


def found_database(airflow_home: Path, *, port: int = PORT) -> str | None:
    """Return the address of this folder's database, made if need be; None where no server lets us.

    Args:
        airflow_home: folder of the native Airflow; its path names the database.
        port: TCP port of the server on 127.0.0.1.
    """
    name = database_name(airflow_home)
    for user in dict.fromkeys((getpass.getuser(), "postgres")):
        server = URL.create("postgresql+psycopg", user, host="127.0.0.1", port=port)
        if _made(server, name):
            return server.set(drivername="postgresql+psycopg2", database=name).render_as_string()
    return None


def database_name(airflow_home: Path) -> str:
    """Name the database of an Airflow folder."""
    return f"turnstile_airflow_{hashlib.sha256(str(airflow_home).encode()).hexdigest()[:8]}"


def _made(server: URL, name: str) -> bool:
    """Say whether the database is there now; whatever stands in the way, SQLite does as well."""
    engine = create_engine(
        server.set(database="postgres"),
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args={"connect_timeout": _WITHIN_S},
    )
    try:
        with engine.connect() as connection:
            known = text("SELECT 1 FROM pg_database WHERE datname = :name")
            if connection.execute(known, {"name": name}).scalar() is None:
                connection.execute(text(f"CREATE DATABASE {name}"))  # of hexadecimal digits
    except SQLAlchemyError:
        return False
    return True
