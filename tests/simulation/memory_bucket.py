"""A bucket in this process: what `turnstile_stores.bucket.Bucket` says and does, kept in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import ClassVar, NamedTuple

from turnstile.errors import StoreError
from turnstile_stores.bucket import Found, Listed

Around = Callable[[str, str, str], AbstractContextManager[None]]


class Kept(NamedTuple):
    """An object: its bytes, the tag of this version and when it was put."""

    content: bytes
    tag: str
    put_at: datetime
    digest: str


@dataclass
class MemoryBucket:
    """Objects by path.

    Args:
        name: what messages call it.
        around: what may happen before and after a request, by bucket, request and path.
        clock: of the store.
    """

    ERROR: ClassVar[type[StoreError]] = StoreError
    name: str
    around: Around
    clock: Callable[[], datetime]
    objects: dict[str, Kept] = field(default_factory=dict)
    versions: int = 0

    def listed(self, prefix: str) -> dict[str, Listed]:
        with self.around(self.name, "list", prefix):
            return {
                path: Listed(blob.tag, len(blob.content), blob.put_at)
                for path, blob in sorted(self.objects.items())
                if path.startswith(prefix)
            }

    def tags(self, prefix: str) -> dict[str, str]:
        return {path: entry.tag for path, entry in self.listed(prefix).items()}

    def read(self, path: str) -> Found | None:
        with self.around(self.name, "read", path):
            blob = self.objects.get(path)
            return blob and Found(blob.content, blob.tag)

    def fetch(self, path: str, target: Path) -> str | None:
        with self.around(self.name, "read", path):
            blob = self.objects.get(path)
            if blob is None:
                return None
            with target.open("wb") as file:
                file.write(blob.content)
            return hashlib.sha256(blob.content).hexdigest()

    def read_back(self, path: str) -> tuple[str, datetime] | None:
        with self.around(self.name, "read", path):
            blob = self.objects.get(path)
            return blob and (hashlib.sha256(blob.content).hexdigest(), blob.put_at)

    def create(self, path: str, content: bytes) -> None:
        self.put_if(path, content, None)

    def put_file(self, path: str, file: Path) -> None:
        self.put_if(path, file.read_bytes(), None)

    def replace(self, path: str, content: bytes, tag: str | None) -> bool:
        return self.put_if(path, content, tag) is not None

    def put_if(self, path: str, content: bytes, tag: str | None) -> str | None:
        with self.around(self.name, "put", path):
            blob = self.objects.get(path)
            if (blob and blob.tag) != tag:
                return None
            self.versions += 1
            made = Kept(
                content, f'"{self.versions}"', self.clock(), hashlib.sha256(content).hexdigest()
            )
            self.objects[path] = made
            return made.tag

    def delete(self, path: str, **_: bool) -> None:
        with self.around(self.name, "delete", path):
            self.versions += 1
            self.objects.pop(path, None)
