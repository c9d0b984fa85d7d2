"""Reads the address of a portal.

file:///srv/www/open-data
s3://bucket/prefix                        ?endpoint=https://s3.example for other stores
ckan+https://data.example?organization=transport
                                          &files=https://files.example for links to large files
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit
from urllib.request import url2pathname

from turnstile.errors import InputError

FOLDER, S3, CKAN = "file", "s3", "ckan"
_OPTIONS: Mapping[str, frozenset[str]] = {
    FOLDER: frozenset(),
    S3: frozenset({"endpoint"}),
    CKAN: frozenset({"organization", "files"}),
}


@dataclass(frozen=True, slots=True)
class PortalAddress:
    """Where a portal is.

    Args:
        kind: FOLDER, S3 or CKAN.
        name: the address without its options; what the ledger calls the portal.
        host: bucket, or site with its scheme; empty for a folder.
        path: folder, or prefix of the bucket.
        options: by name.
    """

    kind: str
    name: str
    host: str
    path: str
    options: Mapping[str, str]

    @property
    def folder(self) -> Path:
        """The folder."""
        return Path(url2pathname(self.path))


def portal_address(text: str) -> PortalAddress:
    """Read an address.

    Raises:
        InputError: it is none of a portal, or holds a name and password.
    """
    parts = urlsplit(text)
    kind, _, scheme = parts.scheme.partition("+")
    problem = None
    options = dict(parse_qsl(parts.query))
    if kind not in _OPTIONS or (kind == CKAN) != (scheme in ("http", "https")):
        problem = "write file:///folder, s3://bucket/prefix or ckan+https://site?organization=NAME"
    elif parts.username or parts.password:
        problem = "holds a name or password; portals take them from the environment"
    elif unknown := sorted(options.keys() - _OPTIONS[kind]):
        problem = f"{unknown[0]} is no option; there are {', '.join(sorted(_OPTIONS[kind]))}"
    elif (kind == FOLDER) == bool(parts.netloc) or (kind == FOLDER and not parts.path.strip("/")):
        problem = "names no place; a folder has three slashes, a bucket or site has two"
    elif kind == CKAN and "organization" not in options:
        problem = "name the organization that owns the datasets: ?organization=NAME"
    if problem:
        raise InputError(where=text.partition("?")[0], field="portal", rule=problem)
    path = parts.path.rstrip("/")
    host = f"{scheme}://{parts.netloc}{path}" if kind == CKAN else parts.netloc
    return PortalAddress(kind, f"{parts.scheme}://{parts.netloc}{path}", host, path, options)
