"""The one engine of sources, quality and counting loads no code, and nothing changes that later."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from turnstile.counting.engine import engine
from turnstile.duckdb_engine import connect

pytestmark = pytest.mark.usefixtures("own_engines")
_INCLUDE = Path(__file__).parents[1] / "include/turnstile"
Open = Callable[[Path], duckdb.DuckDBPyConnection]


@pytest.fixture(params=["ingest and checks", "counting"])
def connection(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[duckdb.DuckDBPyConnection]:
    if request.param == "counting":
        with engine(tmp_path) as opened:
            yield opened
        return
    opened = connect(tmp_path)
    yield opened
    opened.close()


def test_no_extension_is_found_or_fetched(connection: duckdb.DuckDBPyConnection) -> None:
    settings = dict(
        connection.execute(
            "SELECT name, value FROM duckdb_settings() WHERE name LIKE '%extension%'"
        ).fetchall()
    )
    assert settings["autoinstall_known_extensions"] == "false"
    assert settings["autoload_known_extensions"] == "false"
    assert settings["allow_community_extensions"] == "false"
    with pytest.raises(duckdb.Error, match="no_extensions"):  # not the user's own folder
        connection.execute("LOAD httpfs")
    with pytest.raises(duckdb.Error, match="httpfs"):
        connection.execute("SELECT * FROM 'https://localhost/rows.parquet'")


@pytest.mark.parametrize(
    "statement", ["SET autoload_known_extensions = true", "SET memory_limit = '100GB'"]
)
def test_nothing_changes_the_settings_later(
    connection: duckdb.DuckDBPyConnection, statement: str
) -> None:
    with pytest.raises(duckdb.Error, match="locked"):
        connection.execute(statement)


def test_a_variable_is_no_table(connection: duckdb.DuckDBPyConnection) -> None:
    rows = connection.sql("SELECT 1 AS n").to_arrow_table()
    assert rows.num_rows == 1
    with pytest.raises(duckdb.Error, match="rows"):
        connection.execute("SELECT * FROM rows")
    connection.register("rows", rows)  # the stated way
    assert connection.execute("SELECT * FROM rows").fetchall() == [(1,)]


def connects(path: Path) -> bool:
    """True if a module calls `duckdb.connect` or uses DuckDB's own default connection."""
    calls = (
        node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
    )
    return any(
        isinstance(call, ast.Attribute)
        and isinstance(call.value, ast.Name)
        and call.value.id == "duckdb"
        for call in calls
    )


def test_one_module_opens_the_engine(tmp_path: Path) -> None:
    modules = [path.name for path in _INCLUDE.rglob("*.py") if connects(path)]
    assert modules == ["duckdb_engine.py"]
    (tmp_path / "another.py").write_text("import duckdb\nduckdb.execute('SELECT 1')\n")
    assert connects(tmp_path / "another.py")
