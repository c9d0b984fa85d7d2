"""The check that lists public definitions which no production path reaches."""

from __future__ import annotations

from pathlib import Path

import pytest
from unreached_definitions import Definition, unimported, unpassed, unreached


def house(tmp_path: Path, **modules: str) -> Path:
    for name, text in modules.items():
        place = tmp_path / "include/turnstile" / f"{name}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path


def names(definitions: list[Definition]) -> set[str]:
    return {definition.name for definition in definitions}


def test_what_only_a_dead_definition_calls_is_dead(tmp_path: Path) -> None:
    dead = "def used(): pass\ndef dead(): helper()\ndef helper(): pass\n"
    root = house(tmp_path, a=dead, cli="from a import used\ndef main(): used()\n")
    assert names(unreached(root)) == {"dead", "helper"}


def test_an_import_alone_reaches_nothing(tmp_path: Path) -> None:
    root = house(tmp_path, a="def f(): pass\n", cli="from a import f\ndef main(): pass\n")
    assert names(unreached(root)) == {"f"}


def test_a_function_that_calls_itself_is_not_reached_by_that(tmp_path: Path) -> None:
    root = house(tmp_path, a="def f(): f()\n", cli="def main(): pass\n")
    assert names(unreached(root)) == {"f"}


def test_a_method_is_reached_by_its_name(tmp_path: Path) -> None:
    text = "class A:\n    def read(self): pass\n    def lost(self): pass\n"
    root = house(tmp_path, a=text, cli="from a import A\ndef main(): A().read()\n")
    assert names(unreached(root)) == {"lost"}


def test_another_definition_of_the_same_name_keeps_none_of_a_module_alive(tmp_path: Path) -> None:
    alive = "def f(): pass\nclass A:\n    def f(self): pass\n"
    cli = "from turnstile.b import A, g\nfrom turnstile import c\nA().f()\ng()\nc.h()\n"
    root = house(tmp_path, a="def f(): pass\n", b=f"{alive}def g(): f()\n", c="def h(): 0", cli=cli)
    assert names(unreached(root)) == set()
    assert [(one.path[-4:], one.name) for one in unimported(root)] == [("a.py", "f")]


def test_a_parameter_that_no_call_passes_is_named(tmp_path: Path) -> None:
    text = "def f(a, b=1, *, c=2): pass\nclass A:\n    def read(self, d=1, e=2): pass\n"
    root = house(tmp_path, a=text, cli="f(1)\nA().read(1)\n")
    assert names(unpassed(root)) == {"b", "c", "e"}
    passing = tmp_path / "tests/test_a.py"  # a test's call is one
    passing.parent.mkdir()
    passing.write_text("f(1, 2)\nf(1, c=3)\nA().read(*both)\n")
    assert names(unpassed(root)) == set()


@pytest.mark.parametrize(
    "use",
    ["g = f", "partial(f, b=1)", "run('a.f')", "from a import f as g\ng(1, 2)", "f(1, **more)"],
)
def test_what_may_be_passed_elsewhere_is_not_named(tmp_path: Path, use: str) -> None:
    root = house(tmp_path, a="def f(a, b=1): pass\n", cli=f"f(1)\n{use}\n")
    assert names(unpassed(root)) == set()
