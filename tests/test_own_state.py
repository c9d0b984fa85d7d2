"""Tests have a home of their own, and one that touches the person's is noticed."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from made_homes import ROOT, AlteredHomeError, MadeHomes
from own_state import PersonsState, folder_in_memory

from turnstile.cli import main
from turnstile.settings import Settings

THEIRS = ROOT / "var"


def test_every_test_has_a_home_of_its_own() -> None:
    home = Settings.from_environment().home
    assert not home.is_relative_to(ROOT)
    assert not home.exists()


@pytest.mark.parametrize(
    "touch",
    [
        lambda: main(["ledger", "balance"]),
        lambda: list(THEIRS.iterdir()),
        (THEIRS / "ledger.sqlite").read_bytes,
        Path("var/ledger.sqlite").read_bytes,
        lambda: list(Path("var").iterdir()),
        lambda: Path("var").rename("var"),
        lambda: subprocess.check_call([f"{sys.prefix}/bin/turnstile", "--version"], env={}),  # noqa: S603
    ],
)
def test_what_touches_the_persons_home_is_noticed(
    persons_state: PersonsState, touch: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNSTILE_HOME", str(THEIRS))
    monkeypatch.chdir(ROOT)
    assert persons_state.taken() == []
    with contextlib.suppress(FileNotFoundError):  # before the first release there is none
        touch()
    assert persons_state.taken() != []


def test_folders_lie_in_memory_only_where_it_has_room(tmp_path: Path) -> None:
    assert folder_in_memory(tmp_path, room_bytes=1) == str(tmp_path)
    assert folder_in_memory(tmp_path, room_bytes=2**62) is None
    assert folder_in_memory(tmp_path / "none", room_bytes=1) is None


@pytest.fixture
def kept(tmp_path: Path) -> MadeHomes:
    source = tmp_path / "checkout/include/turnstile/a.py"
    source.parent.mkdir(parents=True)
    source.write_text("first")
    (tmp_path / "checkout/requirements.lock").write_text("pinned")
    (tmp_path / "prepared/include").mkdir(parents=True)
    for folder in ("programmes", "domains"):
        (tmp_path / "prepared/include" / folder).symlink_to(ROOT / "include" / folder)
    (tmp_path / "prepared/include/people.yaml").write_text("release_officer: [ada]\n")
    return MadeHomes.of_sources(tmp_path / "kept", tmp_path / "checkout")


SAMPLE = ("sample", "opal", "--weeks", "2016-W30", "--rows", "10", "--seed", "3")


def test_a_home_is_made_once_and_a_copy_changes_nothing(kept: MadeHomes, tmp_path: Path) -> None:
    made = kept.get(tmp_path / "prepared", SAMPLE)
    assert list(made.home.glob("landing/opal/2016-W30/*"))
    home_copy = made.copy(tmp_path / "own")
    (home_copy.include / "people.yaml").write_text("changed")
    assert kept.get(tmp_path / "prepared", SAMPLE) == made
    assert (made.include / "people.yaml").read_text() != "changed"


def test_other_sources_files_or_commands_make_another_home(kept: MadeHomes, tmp_path: Path) -> None:
    prepared = tmp_path / "prepared"
    made = kept.get(prepared, SAMPLE)
    assert kept.get(prepared).root != made.root
    (tmp_path / "checkout/include/turnstile/a.py").write_text("second")
    changed = MadeHomes.of_sources(tmp_path / "kept", tmp_path / "checkout")
    assert changed.get(prepared, SAMPLE).root != made.root
    (prepared / "include/people.yaml").write_text("release_officer: [grace]\n")
    assert kept.get(prepared, SAMPLE).root != made.root


def test_an_altered_file_of_a_home_is_named_and_the_home_made_anew(
    kept: MadeHomes, tmp_path: Path
) -> None:
    made = kept.get(tmp_path / "prepared")
    (made.include / "people.yaml").write_text("release_officer: [eve]\n")
    with pytest.raises(AlteredHomeError, match=r"include/people\.yaml"):
        kept.get(tmp_path / "prepared")
    assert "ada" in (kept.get(tmp_path / "prepared").include / "people.yaml").read_text()
