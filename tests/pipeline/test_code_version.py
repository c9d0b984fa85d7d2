"""The ledger says which code drew."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_deployment import WEEK, Deployment

from turnstile.cli import main
from turnstile.ledger.entries import EntryKind
from turnstile.pipeline.code_version import code_version, sources_digest


def test_every_draw_states_version_and_sources(
    published: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = [e for e in published.ledger.entries() if e.kind is EntryKind.DRAW_BEGUN]
    assert {entry.body["code"] for entry in begun} == {code_version()}
    assert main(["ledger", "entries"]) == 0
    assert f"opal/{WEEK}/r0" in (printed := capsys.readouterr().out)
    assert printed.count(f"code={code_version()}") == len(begun)


def test_the_command_says_which_code_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"turnstile {code_version()}\n"


def test_an_edited_module_a_renamed_one_and_an_edited_list_are_other_sources(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    first = sources_digest(tmp_path)
    (tmp_path / "a.pyc").write_text("no source")
    assert sources_digest(tmp_path) == first
    (tmp_path / "a.py").write_text("x = 2\n")
    edited = sources_digest(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    renamed = sources_digest(tmp_path)
    (tmp_path / "fields.csv").write_text("name\n")
    assert len({first, edited, renamed, sources_digest(tmp_path)}) == 4
