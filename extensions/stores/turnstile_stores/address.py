"""Reads where the store of a zone is, and the credentials that open it.

    s3://bucket/prefix      ?endpoint=https://s3.example    for other stores than Amazon's
                            &encryption=AES256              asked for with every object
                            &encryption=aws:kms&kms_key=ID

Credentials are a file in the form of `~/.aws/credentials`, section `default`. They never stand in
an address, so an address may be printed.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from turnstile.errors import InputError
from turnstile.settings import ZoneStore

_OPTIONS = frozenset({"endpoint", "encryption", "kms_key"})
_AMAZON = "https://s3.amazonaws.com"
_ENCRYPTIONS = frozenset({"AES256", "aws:kms"})
_KEYS = ("aws_access_key_id", "aws_secret_access_key")


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where a store is.

    Args:
        bucket: name.
        prefix: of every object; empty for none.
        endpoint: of the service; None for Amazon's.
        encryption: that the store is asked for, by the names of request parameters.
    """

    bucket: str
    prefix: str
    endpoint: str | None = None
    encryption: Mapping[str, str] | None = None

    @property
    def name(self) -> str:
        """What messages call the store."""
        return f"s3://{self.bucket}/{self.prefix}"

    def holds(self, other: StoreAddress) -> bool:
        """Return whether another store is this one, or lies in it."""
        within = f"{self.prefix}/" if self.prefix else ""
        is_same = (self._service, self.bucket) == (other._service, other.bucket)
        return is_same and f"{other.prefix}/".startswith(within)

    @property
    def _service(self) -> tuple[str, int]:
        """Host and port of the service, however its address is written."""
        with suppress(ValueError):  # of what is no address, which whoever opens it refuses
            place = urlsplit(self.endpoint or _AMAZON)
            return place.hostname or "", place.port or (80 if place.scheme == "http" else 443)
        return self.endpoint or "", 0


def store_address(store: ZoneStore) -> StoreAddress:
    """Read an address.

    Raises:
        InputError: it is none of a store, or holds credentials.
    """
    parts = urlsplit(store.address)
    options = dict(parse_qsl(parts.query))
    encryption = options.get("encryption")
    problem = None
    if "@" in parts.netloc:
        problem = "holds a name or password; put them into the file of credentials"
    elif parts.scheme != "s3" or not parts.netloc:
        problem = "is no store; write s3://bucket/prefix"
    elif unknown := sorted(options.keys() - _OPTIONS):
        problem = f"{unknown[0]!r} is no option; there are {', '.join(sorted(_OPTIONS))}"
    elif encryption not in {None, *_ENCRYPTIONS}:
        problem = f"encryption is one of {', '.join(sorted(_ENCRYPTIONS))}"
    elif "kms_key" in options and encryption != "aws:kms":
        problem = "kms_key needs encryption=aws:kms"
    if problem:
        raise InputError(where="environment", field=_variable(store), rule=problem)
    asked = {"ServerSideEncryption": encryption, "SSEKMSKeyId": options.get("kms_key")}
    return StoreAddress(
        parts.netloc,
        parts.path.strip("/"),
        options.get("endpoint"),
        {name: value for name, value in asked.items() if value},
    )


def credentials_of(store: ZoneStore) -> dict[str, str]:
    """Return what a client of a store is given; nothing where boto3 finds it by itself.

    Raises:
        InputError: the file cannot be read, or holds no credentials.
    """
    if store.credentials is None:
        return {}
    field, parser = f"{_variable(store)}_CREDENTIALS", configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(store.credentials.read_text(encoding="utf-8"))
        section = parser["default"]
        credentials = {name: section[name] for name in _KEYS}
    except OSError as error:
        rule = f"{store.credentials.name} cannot be read ({error.strerror})"
        raise InputError(where="environment", field=field, rule=rule) from None
    except (KeyError, configparser.Error, UnicodeDecodeError):
        rule = f"{store.credentials.name} needs a section [default] with {' and '.join(_KEYS)}"
        raise InputError(where="environment", field=field, rule=rule) from None
    token = section.get("aws_session_token")
    return credentials | ({"aws_session_token": token} if token else {})


def _variable(store: ZoneStore) -> str:
    """Name the variable that holds an address."""
    return f"TURNSTILE_{store.zone.upper()}_STORE"
