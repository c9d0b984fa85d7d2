"""A portal that is a CKAN catalogue: a dataset a release, a resource a file, by fixed names.

A dataset is private until every resource was read back. Whatever ran into a time-out is asked
again: names and ids follow from the release, so what was made already answers 409 and is compared.
Large files may be links to another portal, which then has to serve them.
"""

from __future__ import annotations

import json
import mimetypes
import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from turnstile.errors import IntegrityError
from turnstile.publishing.describe.manifest import MANIFEST
from turnstile.release.zones import digest_of
from turnstile_stores.portals.sending import files_of
from turnstile_stores.portals.store import PortalError

LINK_ABOVE_BYTES = 10 * 2**20
_TRIES, _TIMEOUT_S, _WAIT_S = 3, 60.0, 2.0
_NOT_FOUND, _CONFLICT, _FAILED = 404, 409, 500
Json = dict[str, Any]


class Ckan:
    """A catalogue.

    Args:
        address: of the site, `https://data.example`.
        organization: that owns the datasets.
        token: of its API; None where it asks for none.
        files: address under which another portal serves the packages; None to upload all.
        timeout_s: of one request.
        wait: called with seconds before a request is made again.
    """

    def __init__(  # noqa: PLR0913 - keyword-only, each a setting of the portal
        self,
        address: str,
        *,
        organization: str,
        token: str | None = None,
        files: str | None = None,
        timeout_s: float = _TIMEOUT_S,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._address, self._organization, self._files = address, organization, files
        self._wait = wait
        headers = {"Authorization": token} if token else {}
        self._client = httpx.Client(timeout=timeout_s, headers=headers, follow_redirects=True)

    def send_release(self, package: Path, key: str) -> None:
        """Make the dataset of a release, verify every resource, then show it.

        Raises:
            IntegrityError: the dataset or a resource is another one.
            PortalError: the catalogue does not answer, or does not hold what it took.
        """
        names, described = files_of(package), _described(package, key, self._organization)
        dataset = self._dataset(described)
        for name in names:
            self._resource(dataset["id"], package, key, name)
        self._verify(package, key, names)
        if dataset["private"]:
            self._asked("package_patch", {"id": dataset["id"], "private": False})
        if self._shown(described["name"])["private"]:
            raise PortalError(self._address, f"{described['name']} stays private")

    def verify_release(self, package: Path, key: str) -> None:
        """Read every resource back.

        Raises:
            IntegrityError: a resource holds other bytes.
            PortalError: the catalogue does not answer, or lacks one.
        """
        self._shown(_name(key))
        self._verify(package, key, files_of(package))

    def withdraw(self, key: str, reason: str) -> None:
        """Say on the dataset of a release that it was withdrawn, and why; its files stay.

        Raises:
            PortalError: the catalogue does not answer.
        """
        dataset = self._shown(_name(key))
        notes = f"**Withdrawn{': ' * bool(reason)}{reason}**"
        first, _, rest = str(dataset["notes"]).partition("\n\n")
        if first != notes:
            was_said = first.startswith("**Withdrawn")  # perhaps in words that nobody marked
            title = str(dataset["title"])
            patch = {
                "id": dataset["id"],
                "title": title if was_said else f"[withdrawn] {title}",
                "notes": f"{notes}\n\n{rest if was_said else dataset['notes']}",
            }
            self._asked("package_patch", patch)

    def _dataset(self, described: Json) -> Json:
        """Return the dataset of a release, made if need be.

        Raises:
            IntegrityError: a dataset of this name is of another release.
        """
        dataset = self._asked("package_show", {"id": described["name"]}, _NOT_FOUND)
        if dataset is None:
            dataset = self._asked("package_create", described, _CONFLICT) or self._shown(
                described["name"]
            )
        extras = {extra["key"]: extra["value"] for extra in dataset.get("extras", ())}
        wanted = {extra["key"]: extra["value"] for extra in described["extras"]}
        if extras.get("manifest_sha256") != wanted["manifest_sha256"]:
            raise IntegrityError(
                f"{self._address}: the dataset {described['name']} is of another release; "
                "find out who made it, rename it, then run this again"
            )
        return dataset

    def _shown(self, name: str) -> Json:
        """Return a dataset that is there."""
        dataset = self._asked("package_show", {"id": name}, _NOT_FOUND)
        if dataset is None:
            raise PortalError(self._address, f"the dataset {name} is not there")
        return dataset

    def _resource(self, dataset: str, package: Path, key: str, name: str) -> None:
        """Make the resource of a file unless there is one."""
        resource_id = _resource_id(key, name)
        if self._asked("resource_show", {"id": resource_id}, _NOT_FOUND) is not None:
            return
        content = (package / name).read_bytes()
        resource = {
            "id": resource_id,
            "package_id": dataset,
            "name": name,
            "format": Path(name).suffix.removeprefix(".").upper(),
            "mimetype": mimetypes.guess_type(name)[0] or "application/octet-stream",
            "hash": f"sha256:{digest_of(content)}",
        }
        if self._files and len(content) > LINK_ABOVE_BYTES:
            resource["url"] = f"{self._files.rstrip('/')}/{key}/{name}"
            self._asked("resource_create", resource, _CONFLICT)
        else:
            upload = {"upload": (Path(name).name, content)}
            self._asked("resource_create", resource, _CONFLICT, files=upload)

    def _verify(self, package: Path, key: str, names: tuple[str, ...]) -> None:
        """Download every resource and compare it."""
        for name in names:
            resource = self._asked("resource_show", {"id": _resource_id(key, name)}, _NOT_FOUND)
            if resource is None:
                raise PortalError(self._address, f"{key}/{name} is not there")
            got = self._tried(partial(self._client.get, resource["url"]), name)
            if got.status_code != httpx.codes.OK:
                raise PortalError(self._address, f"{key}/{name}: {got.status_code}")
            if got.content != (package / name).read_bytes():
                raise IntegrityError(
                    f"{self._address}: {key}/{name} holds other bytes than the release; find out "
                    "why, delete that resource, then run this again"
                )

    def _asked(
        self,
        action: str,
        values: Mapping[str, Any],
        means_none: int | None = None,
        files: Mapping[str, tuple[str, bytes]] | None = None,
    ) -> Json | None:
        """Call an action and return its result; None for the status that means it.

        Raises:
            PortalError: any other answer.
        """
        url = f"{self._address}/api/3/action/{action}"
        sent: Json = {"data": dict(values), "files": files} if files else {"json": dict(values)}
        got = self._tried(lambda: self._client.post(url, **sent), action)
        if got.status_code == means_none:
            return None
        try:
            answer = got.json()
        except json.JSONDecodeError:
            answer = {}
        if got.status_code != httpx.codes.OK or not answer.get("success"):
            kind = answer.get("error", {}).get("__type", "no answer of CKAN")
            raise PortalError(self._address, f"{action}: {got.status_code} {kind}")
        result: Json = answer["result"]
        return result

    def _tried(self, ask: Callable[[], httpx.Response], what: str) -> httpx.Response:
        """Ask again after a time-out or a failure of the server."""
        problem = ""
        for number in range(_TRIES):
            if number:
                self._wait(_WAIT_S * number)
            try:
                got = ask()
            except httpx.HTTPError as error:
                problem = type(error).__name__
                continue
            if got.status_code < _FAILED:
                return got
            problem = str(got.status_code)
        raise PortalError(self._address, f"{what}: {problem}, {_TRIES} times")


def _name(key: str) -> str:
    """Return the name of the dataset of a release."""
    return "".join(char if char.isalnum() else "-" for char in key.lower())


def _resource_id(key: str, name: str) -> str:
    """Return the id of a file's resource; it follows from the release."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"turnstile/{key}/{name}"))


def _described(package: Path, key: str, organization: str) -> Json:
    """Return the dataset of a release, from its card."""
    card = json.loads((package / "release_card.json").read_bytes())
    extras = {
        "release": key,
        "manifest_sha256": digest_of((package / MANIFEST).read_bytes()),
        "temporal_start": card["service_days"][0],
        "temporal_end": card["service_days"][-1],
    }
    return {
        "name": _name(key),
        "title": f"{card['title']}, {card['service_week']}",
        "notes": card["description"],
        "owner_org": organization,
        "license_id": card["licence"],
        "author": card["curator"],
        "version": key.rpartition("/")[2],
        "private": True,
        "extras": [{"key": name, "value": value} for name, value in extras.items()],
    }
