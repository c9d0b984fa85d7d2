"""Settings: a password that comes as a file, and threads of the linear algebra."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from turnstile.errors import InputError
from turnstile.settings import Settings

URL = "postgresql+psycopg://turnstile_release@postgres/turnstile_ledger"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNSTILE_LEDGER_URL", URL)
    monkeypatch.setenv("TURNSTILE_LEDGER_PASSWORD_FILE", str(tmp_path / "password"))
    (tmp_path / "password").write_text("p@ss/word:%s\n")
    return tmp_path / "password"


def test_the_ledgers_password_comes_from_a_file(file: Path) -> None:
    assert file.exists()
    url = Settings.from_environment().ledger_url
    assert url == URL.replace("@postgres", ":p%40ss%2Fword%3A%25s@postgres")


def test_settings_that_are_printed_show_no_password(file: Path) -> None:
    assert "word" not in repr(Settings.from_environment()).replace(str(file.parent), "")


def test_a_password_file_that_is_missing_is_named(file: Path) -> None:
    file.unlink()
    with pytest.raises(
        InputError, match="password cannot be read .* password of turnstile_release"
    ):
        Settings.from_environment()


@pytest.mark.parametrize(
    "url", ["sqlite:////var/ledger.sqlite", URL.replace("release@", "release:x@")]
)
def test_a_password_file_beside_an_address_that_needs_none_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    assert file.exists()
    monkeypatch.setenv("TURNSTILE_LEDGER_URL", url)
    with pytest.raises(InputError, match="name a user and no password"):
        Settings.from_environment()


def test_the_signing_key_may_lie_outside_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Settings.from_environment().ledger_key is None
    monkeypatch.setenv("TURNSTILE_LEDGER_KEY", str(tmp_path / "key.pem"))
    assert Settings.from_environment().ledger_key == tmp_path / "key.pem"


def test_a_home_may_have_a_colon_in_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Witnesses alone are several, parted by one."""
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path / "transit:2026"))
    assert Settings.from_environment().home == tmp_path / "transit:2026"


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("TURNSTILE_HOME", "~/var", "a shell alone knows what ~ is"),
        ("TURNSTILE_LEDGER_KEY", "~olga/key.pem", "a shell alone knows what ~ is"),
        ("TURNSTILE_WITNESS", "/mnt/one:~/two", "a shell alone knows what ~ is"),
        ("TURNSTILE_HOME", "var", "var is elsewhere for each folder"),
        ("TURNSTILE_INCLUDE", "./include", "./include is elsewhere for each folder"),
        ("TURNSTILE_WITNESS", "/mnt/one:two", "two is elsewhere for each folder"),
        ("TURNSTILE_LEDGER_URL", "sqlite:///ledger.sqlite", "is elsewhere for each folder"),
        ("TURNSTILE_PUBLIC_STORE_CREDENTIALS", "store.ini", "is elsewhere for each folder"),
        ("TURNSTILE_LANDING_STORE_CREDENTIALS", "~/store", "a shell alone knows what ~ is"),
        ("TURNSTILE_WITNESS", "/mnt/one:HOME/public", "entries name people"),
        ("TURNSTILE_WITNESS", "HOME/public/kept", "entries name people"),
        ("TURNSTILE_WITNESS", "HOME/link", "entries name people"),
    ],
)
def test_a_place_that_is_another_than_it_looks_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, given: str, words: str
) -> None:
    """A witness in the public zone had every entry published, with who decided what and why."""
    (tmp_path / "public").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "public")
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path))
    monkeypatch.setenv("TURNSTILE_WITNESS", f"{tmp_path}/witness")
    assert Settings.from_environment().witness == (tmp_path / "witness",)
    monkeypatch.setenv(name, given.replace("HOME", str(tmp_path)))
    with pytest.raises(InputError, match=words) as refused:
        Settings.from_environment()
    assert refused.value.field == name


def test_a_process_is_given_some_stores_and_never_without_what_every_step_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Settings.from_environment().stores == ()
    monkeypatch.setenv("TURNSTILE_PRIVATE_STORE", "s3://private")
    with pytest.raises(InputError, match="name those of embargoed and public too"):
        Settings.from_environment()
    for zone in ("EMBARGOED", "PUBLIC"):
        monkeypatch.setenv(f"TURNSTILE_{zone}_STORE", f"s3://{zone.lower()}/city")
    monkeypatch.setenv("TURNSTILE_PUBLIC_STORE_CREDENTIALS", str(tmp_path / "key"))
    assert [(store.zone, store.credentials) for store in Settings.from_environment().stores] == [
        ("private", None),
        ("embargoed", None),
        ("public", tmp_path / "key"),
    ]


@pytest.mark.parametrize(("given", "threads"), [({}, 1), ({"OPENBLAS_NUM_THREADS": "2"}, 2)])
def test_linear_algebra_has_one_thread_unless_the_deployment_says_otherwise(
    given: dict[str, str], threads: int
) -> None:
    code = (
        "import os, turnstile.settings, numpy; numpy.ones((400, 400)) @ numpy.ones((400, 400)); "
        "print(len(os.listdir('/proc/self/task')))"
    )
    inherited = {name: text for name, text in os.environ.items() if "_NUM_THREADS" not in name}  # noqa: TID251 - handed on
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code],
        env=inherited | given,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == min(threads, os.cpu_count() or 1)


def test_linear_algebra_of_these_tests_has_the_threads_that_the_product_asks_for() -> None:
    """Imported before the product, numpy takes all cores: estimates then cost ten times the CPU."""
    (library,) = Path(np.__file__).parents[1].glob("numpy.libs/libscipy_openblas*")
    threads = ctypes.CDLL(str(library)).scipy_openblas_get_num_threads64_()
    assert threads == min(int(os.environ["OPENBLAS_NUM_THREADS"]), os.cpu_count() or 1)  # noqa: TID251
