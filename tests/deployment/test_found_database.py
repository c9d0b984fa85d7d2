"""`make ui` keeps Airflow's database in a PostgreSQL that lets it in, and in SQLite elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ports import free_port
from postgresql_server import postgresql_server, run_as_server
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from turnstile_native.found_database import database_name, found_database


@pytest.fixture
def server() -> Iterator[str]:
    """A server without a password."""
    with postgresql_server() as url:
        if url is None:
            pytest.skip("no PostgreSQL here")
        yield url


def test_a_server_that_lets_us_in_keeps_one_database_for_each_folder(
    server: str, tmp_path: Path
) -> None:
    port = make_url(server).port
    assert port is not None
    try:
        database_url = found_database(tmp_path, port=port)
        assert database_url is not None
        engine = create_engine(database_url.replace("psycopg2", "psycopg"), poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE run (name text)"))
        assert found_database(tmp_path, port=port) == database_url  # and what is in it stays
        with engine.connect() as connection:
            assert connection.execute(text("SELECT count(*) FROM run")).scalar() == 0
        assert database_name(tmp_path) != database_name(tmp_path / "other")
    finally:
        run_as_server(server, f"DROP DATABASE IF EXISTS {database_name(tmp_path)} WITH (FORCE)")


def test_where_no_server_answers_it_is_sqlite(tmp_path: Path) -> None:
    assert found_database(tmp_path, port=free_port(0)) is None
