"""A portal that is an S3 store: each file is created by a conditional put, so never overwritten.

Credentials are found as boto3 finds them (environment, profile, role). A bucket's Object Lock with
a default retention holds every file that is put.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from typing import TypeVar

from turnstile.publishing.portals.store import Found, PortalError

T = TypeVar("T")
_TAKEN = (409, 412)  # 409: another conditional put of the same key is under way
_ABSENT = 404
_TRIES, _CONNECT_S, _READ_S = 4, 10, 60
mimetypes.add_type("application/vnd.apache.parquet", ".parquet")
mimetypes.add_type("application/atom+xml", ".atom")
mimetypes.add_type("text/markdown", ".md")


class S3Store:
    """Objects below a prefix of a bucket."""

    def __init__(self, bucket: str, prefix: str, endpoint: str | None) -> None:
        import boto3
        from botocore.config import Config

        self._bucket, self._prefix = bucket, prefix
        self._name = f"s3://{bucket}/{prefix}"
        config = Config(
            connect_timeout=_CONNECT_S,
            read_timeout=_READ_S,
            retries={"mode": "standard", "total_max_attempts": _TRIES},
        )
        self._client = boto3.client("s3", endpoint_url=endpoint, config=config)

    def read(self, path: str) -> Found | None:
        """Return an object; None if there is none."""

        def act() -> Found | None:
            got = self._client.get_object(Bucket=self._bucket, Key=self._key(path))
            return Found(got["Body"].read(), got["ETag"])

        return self._asked(act, path, (_ABSENT,), None)

    def create(self, path: str, content: bytes) -> None:
        """Put an object unless one stands there."""
        self._asked(lambda: self._put(path, content, IfNoneMatch="*"), path, _TAKEN, False)

    def replace(self, path: str, content: bytes, tag: str | None) -> bool:
        """Put an object in the place of the version that was read."""
        condition = {"IfNoneMatch": "*"} if tag is None else {"IfMatch": tag}
        return self._asked(
            lambda: self._put(path, content, **condition),
            path,
            (*_TAKEN, _ABSENT),
            False,
        )

    def delete(self, path: str) -> None:
        """Delete an object."""
        self._asked(
            lambda: self._client.delete_object(Bucket=self._bucket, Key=self._key(path)),
            path,
            (_ABSENT,),
            None,
        )

    def _put(self, path: str, content: bytes, **condition: str) -> bool:
        """Put an object; the store refuses bytes that did not arrive as they were sent."""
        self._client.put_object(
            Bucket=self._bucket,
            Key=self._key(path),
            Body=content,
            ChecksumAlgorithm="SHA256",
            ContentType=mimetypes.guess_type(path)[0] or "application/octet-stream",
            **condition,
        )
        return True

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}" if self._prefix else path

    def _asked(self, act: Callable[[], T], path: str, answers: tuple[int, ...], meaning: T) -> T:
        """Ask the store; statuses that are answers have a meaning.

        Raises:
            PortalError: anything else but success.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return act()
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            code = error.response["Error"]["Code"]
            if status in answers and code != "NoSuchBucket":
                return meaning
            raise PortalError(self._name, f"{path}: {status} {code}") from None
        except BotoCoreError as error:
            raise PortalError(self._name, f"{path}: {type(error).__name__}") from None
