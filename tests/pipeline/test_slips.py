"""Slips of the hand are one sentence and exit code 2, not a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnstile.cli import main

WEEK = "2016-W30"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path / "home"))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_negative_revision(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert home
    assert "counts up" in said(capsys, "run", "opal", "--week", WEEK, "--revision", "-1")


def test_a_week_that_a_year_does_not_have(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert home
    assert "a year has 52" in said(capsys, "run", "opal", "--week", "2016-W53")


def test_a_file_where_a_folder_goes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "file").write_text("")
    words = ("sample", "opal", "--weeks", WEEK, "--rows", "100", "--out", str(home / "file"))
    assert str(home / "file") in said(capsys, *words)


def test_an_address_of_the_ledger_that_is_none(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home
    monkeypatch.setenv("TURNSTILE_LEDGER_URL", "secret word")
    line = said(capsys, "run", "opal", "--week", WEEK)
    assert "TURNSTILE_LEDGER_URL" in line
    assert "secret" not in line


def test_a_folder_without_programmes(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(home / "nothing"))
    assert "holds no programme" in said(capsys, "check")
