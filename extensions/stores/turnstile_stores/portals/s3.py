"""A portal that is an S3 store: each file is created by a conditional put, so never overwritten.

Credentials are found as boto3 finds them (environment, profile, role). A bucket's Object Lock with
a default retention holds every file that is put.
"""

from __future__ import annotations

from typing import ClassVar

from turnstile.errors import StoreError
from turnstile_stores.address import StoreAddress
from turnstile_stores.bucket import Bucket
from turnstile_stores.portals.store import PortalError


class S3Store(Bucket):
    """Objects below a prefix of a portal's bucket."""

    ERROR: ClassVar[type[StoreError]] = PortalError

    def __init__(self, bucket: str, prefix: str, endpoint: str | None) -> None:
        super().__init__(StoreAddress(bucket, prefix, endpoint), {})
