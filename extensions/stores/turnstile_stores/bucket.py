"""A bucket as zones and portals use it: objects are created or replaced by conditional puts.

Every call raises StoreError where the store does not answer, with the store's name, the path and
the store's code: never a credential, never what an object holds.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from turnstile.durable_files import require_not_sealed, sha256_of
from turnstile.errors import InputError, StoreError
from turnstile_stores.address import StoreAddress

T = TypeVar("T")
_TAKEN = (409, 412)  # 409: another conditional put of the same key is under way
_ABSENT = 404
_TRIES, _CONNECT_S, _READ_S = 4, 10, 60
_BLOCK = 2**20
AT_ONCE = 8
"""Requests of one process that a store sees at a time."""
mimetypes.add_type("application/vnd.apache.parquet", ".parquet")
mimetypes.add_type("application/atom+xml", ".atom")
mimetypes.add_type("text/markdown", ".md")


class Found(NamedTuple):
    """A file as it stands in a store.

    Args:
        content: its bytes.
        tag: of this version; what `replace` compares.
    """

    content: bytes
    tag: str


class Listed(NamedTuple):
    """What a list says of an object.

    Args:
        tag: of this version.
        size: bytes.
        put_at: by the store's clock; aware.
    """

    tag: str
    size: int
    put_at: datetime


@lru_cache(maxsize=1)
def _described(folder: str | None) -> object:
    """Return what reads the descriptions of services: once in a process, not for each client."""
    from botocore.loaders import create_loader

    return create_loader(folder)


def _instant(text: str) -> datetime:
    """Return an instant as a store states it; botocore takes 27 times as long for a date of a list.

    Examples:
        >>> _instant("2016-07-25T10:00:00.000Z") == _instant("Mon, 25 Jul 2016 10:00:00 GMT")
        True
    """
    with suppress(ValueError):  # a header has another form
        return datetime.fromisoformat(text)
    from botocore.utils import parse_timestamp

    return cast("datetime", parse_timestamp(text))


class Bucket:
    """Objects below a prefix of a bucket.

    Args:
        address: where it is.
        credentials: of the client; empty: as boto3 finds them.
    """

    ERROR: ClassVar[type[StoreError]] = StoreError

    def __init__(self, address: StoreAddress, credentials: Mapping[str, str]) -> None:
        import boto3
        import botocore.session
        from botocore.config import Config

        self._address = address
        config = Config(
            connect_timeout=_CONNECT_S,
            read_timeout=_READ_S,
            retries={"mode": "standard", "total_max_attempts": _TRIES},
        )
        inner = botocore.session.get_session()
        described = _described(inner.get_config_variable("data_path"))
        inner.register_component("data_loader", described)
        in_answers = inner.get_component("response_parser_factory")
        in_answers.set_parser_defaults(timestamp_parser=_instant)
        session = boto3.Session(botocore_session=inner, **credentials)
        try:
            self._client = session.client(
                "s3",
                endpoint_url=address.endpoint,
                config=config,
                # a store with an endpoint of its own has no regions; a signature needs one
                region_name=session.region_name or "us-east-1",
            )
        except ValueError:
            rule = "is no address of a service; write https://s3.example"
            raise InputError(where=self.name, field="endpoint", rule=rule) from None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._address.name

    def listed(self, prefix: str) -> dict[str, Listed]:
        """Return every object below a path that ends in `/`, or all for none, by its path."""

        def act() -> dict[str, Listed]:
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._address.bucket, Prefix=self._key(prefix)
            )
            start = len(self._key(""))
            return {
                entry["Key"][start:]: Listed(entry["ETag"], entry["Size"], entry["LastModified"])
                for page in pages
                for entry in page.get("Contents", ())
            }

        return self._asked(act, prefix, (), {})

    def tags(self, prefix: str) -> dict[str, str]:
        """Return the tag of every object below a path: of most stores the MD5 of what was put."""
        return {path: entry.tag for path, entry in self.listed(prefix).items()}

    def read(self, path: str) -> Found | None:
        """Return an object; None if there is none."""
        return self._got(path, lambda got: Found(got["Body"].read(), got["ETag"]))

    def fetch(self, path: str, target: Path) -> str | None:
        """Write an object to a file; return the SHA-256 of what came, None if there is none."""

        def write(got: Mapping[str, Any]) -> str:
            with target.open("wb") as file:
                file.writelines(got["Body"].iter_chunks(_BLOCK))
            return sha256_of(target)

        return self._got(path, write)

    def read_back(self, path: str) -> tuple[str, datetime] | None:
        """Read an object; return its SHA-256 and when it was put, None if there is none."""

        def digest_of(got: Mapping[str, Any]) -> tuple[str, datetime]:
            digest = hashlib.sha256()
            for block in got["Body"].iter_chunks(_BLOCK):
                digest.update(block)
            return digest.hexdigest(), got["LastModified"]

        return self._got(path, digest_of)

    def create(self, path: str, content: bytes) -> None:
        """Put an object unless one stands there."""
        self.put_if(path, content, None)

    def put_file(self, path: str, file: Path) -> None:
        """Put a file under a path that nothing else uses."""

        def act() -> None:
            with file.open("rb") as body:
                self._client.put_object(Body=body, IfNoneMatch="*", **self._of_put(path))

        self._asked(act, path, _TAKEN, None)

    def replace(self, path: str, content: bytes, tag: str | None) -> bool:
        """Put an object in the place of the version that was read; None: of none.

        Returns:
            False if another version stands there meanwhile; nothing was written.
        """
        return self.put_if(path, content, tag) is not None

    def put_if(self, path: str, content: bytes, tag: str | None) -> str | None:
        """Put an object if a version stands there, None: if none does; return the new one's tag."""
        condition = {"IfNoneMatch": "*"} if tag is None else {"IfMatch": tag}

        def act() -> str | None:
            put = self._client.put_object(Body=content, **condition, **self._of_put(path))
            return str(put["ETag"])

        return self._asked(act, path, _TAKEN if tag is None else (*_TAKEN, _ABSENT), None)

    def delete(self, path: str, *, delivered: bool = False) -> None:
        """Delete an object; one that is not there changes nothing.

        Args:
            path: of the object.
            delivered: whether the store is the landing zone's, see `delete_for_good`.

        Raises:
            IntegrityError: it has the name of sealed bytes.
        """
        if not delivered:
            require_not_sealed(Path(path))

        def act() -> None:
            self._client.delete_object(Bucket=self._address.bucket, Key=self._key(path))

        self._asked(act, path, (_ABSENT,), None)

    def _of_put(self, path: str) -> dict[str, str]:
        """Return what every put asks for: the store refuses bytes that arrive otherwise."""
        return {
            "Bucket": self._address.bucket,
            "Key": self._key(path),
            "ChecksumAlgorithm": "SHA256",
            "ContentType": mimetypes.guess_type(path)[0] or "application/octet-stream",
            **(self._address.encryption or {}),
        }

    def _got(self, path: str, use: Callable[[Mapping[str, Any]], T]) -> T | None:
        """Return what is made of an object as it comes; None if there is none."""

        def act() -> T | None:
            return use(self._client.get_object(Bucket=self._address.bucket, Key=self._key(path)))

        return self._asked(act, path, (_ABSENT,), None)

    def _key(self, path: str) -> str:
        return f"{self._address.prefix}/{path}" if self._address.prefix else path

    def _asked(self, act: Callable[[], T], path: str, answers: tuple[int, ...], meaning: T) -> T:
        """Ask the store; statuses that are answers have a meaning.

        Raises:
            StoreError: anything else but success.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return act()
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            code = error.response["Error"]["Code"]
            if status in answers and code != "NoSuchBucket":
                return meaning
            raise self.ERROR(self.name, f"{path}: {status} {code}", status) from None
        except (BotoCoreError, RecursionError) as error:  # sent on and on, by a page to log in
            raise self.ERROR(self.name, f"{path}: {type(error).__name__}") from None
