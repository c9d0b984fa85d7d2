"""The search through an image's layers finds what it is there to find."""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "containers"))

from layers import leaks_of_archive

SECRETS = {"redis_password": b"s3cr3t-of-redis"}


def _archive(files: dict[str, bytes]) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    packed.seek(0)
    return packed


def _image(first: dict[str, bytes], config: bytes = b"{}") -> io.BytesIO:
    """Return an image of two layers; the second removes every file of the first."""
    removed = {str(Path(name).with_name(f".wh.{Path(name).name}")): b"" for name in first}
    layers = {"1/layer.tar": _archive(first).read(), "2/layer.tar": _archive(removed).read()}
    return _archive({"manifest.json": b"[]", "c.json": config, **layers})


@pytest.mark.parametrize(
    ("files", "leaks"),
    [
        ({"opt/app.py": b"print()"}, set()),
        ({"opt/app.py": b"'s3cr3t-of-redis'"}, {"redis_password in opt/app.py"}),
        ({"root/.config/pip/pip.conf": b"[global]"}, {"root/.config/pip/pip.conf"}),
        ({"root/.netrc": b""}, {"root/.netrc"}),
    ],
)
def test_a_secret_or_a_package_index_is_found_in_a_layer_that_a_later_one_hides(
    files: dict[str, bytes], leaks: set[str]
) -> None:
    assert leaks_of_archive(_image(files), SECRETS) == leaks


def test_a_secret_in_a_build_argument_is_found() -> None:
    history = b'{"history": [{"created_by": "|1 PASSWORD=s3cr3t-of-redis sh"}]}'
    assert leaks_of_archive(_image({"a": b""}, history), SECRETS) == {"redis_password in c.json"}


def test_an_archive_without_a_layer_proves_nothing() -> None:
    with pytest.raises(AssertionError, match="shows nothing"):
        leaks_of_archive(_archive({"manifest.json": b"[]"}), SECRETS)
