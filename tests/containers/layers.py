"""What an image carries in its layers, searched for what nobody may find there."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import IO

# Where pip and its kin keep addresses and passwords of package indexes.
CONFIGURATION = {"pip.conf", "pip.ini", ".pip", ".pypirc", ".netrc", "uv.toml"}


def leaks_of(image: str, secrets: Mapping[str, bytes]) -> set[str]:
    """Return what an engine's image shows of some secrets, in any layer, removed files too.

    Args:
        image: name and tag.
        secrets: name to the bytes that may not be there.

    Returns:
        `NAME in PATH`, and the path of every file that configures a package index.
    """
    with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saving:
        assert saving.stdout is not None
        leaks = leaks_of_archive(saving.stdout, secrets)
    assert saving.returncode == 0, f"docker save {image} failed"
    return leaks


def leaks_of_archive(archive: IO[bytes], secrets: Mapping[str, bytes]) -> set[str]:
    """Return what an archive of `docker save` shows; see `leaks_of`."""
    leaks, files = set[str](), 0
    for path, content in _files_of(archive):
        files += 1
        leaks |= {f"{name} in {path}" for name, secret in secrets.items() if secret in content}
        if CONFIGURATION & set(PurePosixPath(path).parts):
            leaks.add(path)
    assert files > 1, "an archive without a layer shows nothing"
    return leaks


def _files_of(archive: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file of every layer, and of what describes the image."""
    with tarfile.open(fileobj=archive, mode="r|") as outer:
        for member in outer:
            file = outer.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            if file.peek(262)[257:262] != b"ustar":  # type: ignore[attr-defined] # it is buffered
                yield member.name, file.read()
                continue
            with tarfile.open(fileobj=file, mode="r|") as layer:
                for entry in layer:
                    content = layer.extractfile(entry) if entry.isfile() else None
                    if content is not None:
                        yield entry.name, content.read()
