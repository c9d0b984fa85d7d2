"""requirements.lock is complete, hashed, without hosts, and conflicts in one known line."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
RUNTIME = (ROOT / "requirements-runtime.lock").read_text(encoding="utf-8")
RUNS = (ROOT / "requirements.in").read_text(encoding="utf-8")
ALL = RUNS + (ROOT / "requirements-dev.in").read_text(encoding="utf-8")


def _blocks(lock: str) -> list[str]:
    """Return the pins, each with its hashes."""
    return re.split(r"\n(?=\S)", lock.strip())


def _pins(lock: str) -> dict[str, int]:
    """Return the pinned packages with the number of their hashes."""
    return {block.split("==")[0]: block.count("--hash=sha256:") for block in _blocks(lock)}


def _asked(text: str) -> set[str]:
    """Return the names in requirements.in, normalized, without extras."""
    names = re.findall(r"^[a-z0-9][a-z0-9_.-]*", text, re.MULTILINE | re.IGNORECASE)
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


def test_every_pin_has_a_hash_and_no_line_names_a_host() -> None:
    for lock in (LOCK, RUNTIME):
        assert all(_pins(lock).values())
        assert "://" not in lock
        assert "--index" not in lock


def test_the_image_gets_a_part_of_the_very_same_lock() -> None:
    without_markers = re.compile(r" ;.*")
    ours, all_of_it = (
        {without_markers.sub("", block) for block in _blocks(lock)} for lock in (RUNTIME, LOCK)
    )
    assert ours < all_of_it
    assert _asked(RUNS) <= set(_pins(RUNTIME))


def test_the_image_has_no_package_for_tests_and_lint() -> None:
    only_for_us = _asked(ALL) - _asked(RUNS)
    assert {"pytest", "ruff", "mypy", "moto", "selenium"} <= only_for_us
    assert not only_for_us & set(_pins(RUNTIME))


def test_a_pin_without_a_hash_is_seen() -> None:
    assert _pins("a==1 \\\n    --hash=sha256:00\nb==2\n") == {"a": 1, "b": 0}


def test_everything_that_is_asked_for_is_pinned() -> None:
    asked = _asked(ALL)
    assert len(asked) > 0
    assert asked - set(_pins(LOCK)) == set()


def test_the_environment_has_the_one_known_conflict_and_no_other() -> None:
    check = subprocess.run(
        [sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False
    )
    (line,) = check.stdout.splitlines()
    assert re.fullmatch(
        r"dp-accounting 0\.6\.0 has requirement attrs<24,>=22, but you have attrs 2[5-9][\d.]*\.",
        line,
    )


# Not imported by our code, and needed all the same.
NEEDED = {
    "apache-airflow": "dags/ and plugins/",
    "psycopg": "SQLAlchemy's driver for PostgreSQL",
    "vl-convert-python": "Altair's pictures without a browser",
    "setuptools": "builds the package",
    "wheel": "builds the package",
    "pytest": "the tests",
    "pytest-xdist": "make test on both cores",
    "ruff": "make check",
    "mypy": "make check",
    "import-linter": "make check",
    "check-jsonschema": "tests of the Compose file, as a command",
    "flask-cors": "the server of moto, which does not ask for it",
    "uv": "make env, make lock",
}
PLACES = ("include", "dags", "plugins", "docker", "tests", "benchmarks", ".ci")


def _unused(asked: set[str]) -> set[str]:
    """Return the requirements that no code of ours imports and no reason keeps."""
    pattern = re.compile(r"^\s*(?:import|from) (\w+)", re.MULTILINE)
    files = [file for place in PLACES for file in (ROOT / place).rglob("*.py")]
    imported = {name for file in files for name in pattern.findall(file.read_text())}
    modules = metadata.packages_distributions()
    used = {_normal(dist) for name in imported for dist in modules.get(name, ())}
    kept = {name for name in asked if name.startswith(("types-", "apache-airflow-providers-"))}
    return asked - used - set(NEEDED) - kept - {"pandas-stubs"}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_everything_that_is_asked_for_is_used() -> None:
    assert _unused(_asked(ALL)) == set()


def test_a_requirement_that_nothing_imports_is_seen() -> None:
    assert _unused({"numpy", "no-such-package"}) == {"no-such-package"}
