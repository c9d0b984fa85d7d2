"""What one room decides no other does: states, folders of revisions, keys of a programme."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import one_of_each
import pytest


@pytest.fixture(scope="module")
def sources() -> Mapping[str, ast.Module]:
    return one_of_each.modules(one_of_each.ROOT)


@pytest.fixture(scope="module")
def some(sources: Mapping[str, ast.Module]) -> Mapping[str, ast.Module]:
    """Return what a fault is planted beside: all of it is gone through once, above."""
    beside = one_of_each.MAY_SPELL_REVISIONS
    return {
        path: tree
        for path, tree in sources.items()
        if path in beside or path.startswith(f"{one_of_each.PROGRAMME}/")
    }


def test_nothing_is_decided_twice(sources: Mapping[str, ast.Module]) -> None:
    assert list(one_of_each.faults(sources)) == []


@pytest.mark.parametrize(
    ("module", "line", "said"),
    [
        (
            "publishing/again.py",
            "OUT = attempt.is_sealed",
            "publishing/again.py reads is_sealed",
        ),
        (
            "publishing/again.py",
            "OUT = attempt.state in SEALED_STATES",
            "publishing/again.py reads S",
        ),
        (
            "plugins/again.py",
            'OUT = getattr(attempt, "is_sealed")',
            "plugins/again.py reads is_sealed",
        ),
        ("operations/again.py", 'NUMBER = "r[0-9]+"', "operations/again.py spells folders"),
        ("extensions/again.py", r'NUMBER = r"x/r(\d+)"', "extensions/again.py spells folders"),
        (
            "plugins/again.py",
            'OUT = f"{programme}/{week}/r{self.revision}"',
            "plugins/again.py spells folders",
        ),
        (
            "publishing/again.py",
            'OUT = public / period / f"r{in_force.key.revision}"',
            "publishing/again.py spells folders",
        ),
        ("programme/again.py", "class Again:\n    speed_unit: str", "speed_unit is declared by"),
    ],
)
def test_a_second_answer_is_named(
    some: Mapping[str, ast.Module], module: str, line: str, said: str
) -> None:
    (fault,) = one_of_each.faults({**some, module: ast.parse(line)})
    assert fault.startswith(said)


def test_words_that_mean_something_else_are_no_answer(some: Mapping[str, ast.Module]) -> None:
    other = ast.parse("is_sealed = run.is_sealed()\nPLAIN = 'route 0'\nCELLS = r'for[0-9]'")
    assert list(one_of_each.faults({**some, "plugins/again.py": other})) == []
    words = "f'r{mark.revision} is public', f'{week}.r{plan.revision}', n / f'r{rows}'"
    beside = (
        "folder / f'withdrawn-r{key.revision}.json', f'{folder}/no-release-r{key.revision}.json'"
    )
    other = ast.parse(f"OUT = {words}, {beside}")
    assert list(one_of_each.faults({**some, "plugins/again.py": other})) == []


def test_a_module_that_spells_no_folder_is_not_listed(some: Mapping[str, ast.Module]) -> None:
    allowed = next(iter(one_of_each.MAY_SPELL_REVISIONS))
    (fault,) = one_of_each.faults({**some, allowed: ast.parse("")})
    assert fault.startswith(f"{allowed} spells no folder")
