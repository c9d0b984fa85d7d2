"""The measure of strictness itself: what is a mistake, what counts as seen, and what does not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import mutants
import pytest
import trusted_core
from mutations import mutations

MODULE = '''"""Keeps at most 2."""

PLACE = [7][0]


def kept(records: list[int], at_most: int) -> list[int]:
    if len(records) > at_most:
        return records[:at_most]
    return records


def spent(amount: int) -> int:
    while amount > 0:
        amount -= 1
    return amount
'''
TESTS = """
import os, subprocess, sys
from turnstile.bound import PLACE, spent

def test_the_bound_of_a_command():
    script = "from turnstile.bound import kept; assert kept([4, 5, 6], 2) == [4, 5]"
    subprocess.run([sys.executable, "-c", script], check=True)

def test_spent():
    assert spent(3) == 0

def test_a_death():
    if PLACE == 8:
        os.kill(os.getpid(), 9)
"""
ROOMS = """
[rooms.bound]
modules = ["bound.py"]
tests = ["tests/test_bound.py"]

[[unseen]]
path = "include/turnstile/bound.py"
before = "if len(records) > at_most:"
after = "if len(records) >= at_most:"
reason = "as many as are allowed are kept either way"
"""


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for name, text in {
        "include/turnstile/__init__.py": "",
        "include/turnstile/bound.py": MODULE,
        "tests/test_bound.py": TESTS,
        "conftest.py": "import turnstile.bound\n",
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        ".ci/mutants.toml": ROOMS,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.long
def test_a_loosened_bound_is_killed_and_a_change_of_nothing_survives(
    house: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(mutants, "_LOOP_S", 2)
    monkeypatch.setattr(mutants, "_LOOPS", 1)
    assert mutants.main(["--sample", "99", "--seed", "5", "-j", "1"], house) == 1
    said = capsys.readouterr().out
    begun, ended = said.split(" 10 ", 1)[0], said.rpartition("killed ")[2]
    assert "seed 5" in begun
    assert ended.startswith("7 of 9 (77.8%)")
    for seen in (
        "bound.py:8: pass  # FAILED tests/test_bound.py::test_the_bound_of_a_command",
        "bound.py:3: PLACE = [7][1]  # cannot be imported",
        "bound.py:14: amount += 1  # endless",
        "bound.py:14: pass  # endless",
        "bound.py:14: amount -= 2  # FAILED tests/test_bound.py::test_spent",
    ):
        assert f"killed include/turnstile/{seen}" in said
    harmless = "bound.py:7, outlived 1 of 1 test files of bound: as many as are allowed are kept"
    assert f"SURVIVED include/turnstile/{harmless}" in said
    assert "  - if len(records) > at_most:\n  + if len(records) >= at_most:" in said
    assert "bound.py:3, undecided, pytest exits -9: no reason is known" in said


def test_tests_that_fail_without_a_mistake_kill_nothing(
    house: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (house / "tests/test_bound.py").write_text("def test_wrong():\n    assert 1 == 2\n")
    with pytest.raises(SystemExit, match="2"):
        mutants.main(["--sample", "1", "-j", "1"], house)
    assert "without any mistake these tests exit with 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "mistakes"),
    [
        ("x = a <= b", {"x = a < b"}),
        ("x = a is not None and b", {"x = a is None and b", "x = a is not None or b"}),
        ("x = (a - b) * 2", {"x = (a + b) * 2", "x = (a - b) + 2", "x = (a - b) * 3"}),
        ("x = min(a)", {"x = max(a)"}),
        ("x = b if a(c) else d", {"x = b if (not (a(c))) else d"}),
        ("x = not a", {"x = a"}),
        ("x = 'WHERE c >= 2'", {"x = 'WHERE c > 2'", "x = 'WHERE c >= 3'"}),
        ("x = f'WHERE {a < 1} IS NULL'", {"x = f'WHERE {a < 1} IS NOT NULL'"}),
        ("x = 'CASE WHEN a BETWEEN 1 AND b'", {"x = 'CASE WHEN a NOT BETWEEN 1 AND b'"}),
        ("def f(a):\n x = a\n x = b\n g(x)", {"pass"}),
        ("def f(a):\n if not a:\n  raise E('2 < 1')", {"pass", "if a:"}),
        ("x: int | None = a", set()),
        ("x = 'at most 2 and < 3'  # 1 < 2", set()),
        ("def f(a: int | None) -> 'A < B':\n '''1 < 2'''\n say(1)\n return a", set()),
        ("if TYPE_CHECKING:\n x = 1", set()),
        ("@dataclass(frozen=True)\nclass A:\n __all__ = 1", set()),
    ],
)  # fmt: skip
def test_what_a_mistake_is(line: str, mistakes: set[str]) -> None:
    source = line.encode()
    assert {mutation.shown(source)[1] for mutation in mutations(source)} == mistakes


def test_every_module_of_the_trusted_core_lies_in_a_room() -> None:
    named = trusted_core.listed((mutants.ROOT / trusted_core.LIST).read_text())
    mutated = [module for room in mutants.rooms_of(mutants.ROOT, "") for module in room.modules]
    assert {str(trusted_core.path_of(name, Path())) for name in named} <= set(mutated)
    assert len(mutated) == len(set(mutated))


def test_the_rooms_are_there_and_what_they_explain_can_still_happen() -> None:
    read = tomllib.loads((mutants.ROOT / ".ci/mutants.toml").read_text())
    for room in mutants.rooms_of(mutants.ROOT, ""):
        assert all(
            (mutants.ROOT / word).exists() for stage in room.stages for word in stage if "/" in word
        )
        for module in read["rooms"][room.name]["modules"]:
            assert list(mutants.ROOT.glob(f"include/turnstile/{module}")), module
    for known in read.get("unseen", ()):
        source = (mutants.ROOT / known["path"]).read_bytes()
        shown = (known["before"], known["after"])
        assert shown in [mutation.shown(source) for mutation in mutations(source)], known
