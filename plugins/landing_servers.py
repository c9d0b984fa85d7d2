"""The servers that landing files are fetched from, by Airflow's own hooks of each kind.

A hook belongs to a provider, which is installed where a connection needs it, and nowhere else.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from importlib import import_module
from socket import gaierror
from stat import S_ISDIR
from typing import TYPE_CHECKING, Any

from turnstile.errors import InputError, LandingAway, TurnstileError
from turnstile.pipeline.landing.fetching import SETTING, Address, Elsewhere, Server

if TYPE_CHECKING:
    from pathlib import Path

_NO_WAY = frozenset({errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH})
_TRIED_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_TRIED_AGAIN_OF_AMAZON = frozenset({"RequestTimeout", "Throttling", "ThrottlingException"})  # 400
_CHANGES_OF_AN_OBJECT = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})
_OF_AN_OBJECT = frozenset(
    {
        "",  # Google
        "404",  # Amazon, asked without an answer's body
        "NoSuchKey",
        "NoSuchVersion",
        "ConditionalRequestConflict",
        "OperationAborted",
        "BlobNotFound",  # Azure
        "BlobOverwritten",
        "ConditionNotMet",
    }
)
"""Codes of 404 and 409 about an object; others are of its bucket, or of one in an archive."""
_AWAY = frozenset(
    {
        "ConnectionError",  # Amazon, of botocore's own
        "HTTPClientError",
        "IncompleteReadError",
        "RetriesExceededError",
        "HTTPError",  # urllib3
        "HTTPException",  # http.client
        "DataCorruption",  # Google
        "RetryError",
        "TransportError",
        "SSHException",
        "ServiceRequestError",  # Azure
        "ServiceResponseError",
    }
)
_REFUSALS = frozenset(
    {
        "AirflowException",  # of a hook about its connection: none of the name, a field that lacks
        "AuthenticationException",  # SSH
        "BadHostKeyException",
        "IncompatiblePeer",
        "ClientAuthenticationError",  # Azure
        "DefaultCredentialsError",  # Google
        "RefreshError",
        "InvalidRegionError",  # Amazon
        "NoCredentialsError",
        "NoRegionError",
        "ParamValidationError",
        "PartialCredentialsError",
        "ProfileNotFound",
    }
)
"""Classes of the providers' libraries, none of which need be here; what is in no list fails."""
_OF_CERTIFICATES = "CERTIFICATE_VERIFY_FAILED"
"""What each library hands on of OpenSSL's words, in an error that else says that nobody answers."""
_OF_KEYS = ("known_hosts", "private key", "key file", "host key", "authentication methods")
"""What a plain SSHException says where settings are refused."""

_NAMED_BY = {
    "sftp": "host",
    "s3": "endpoint_url or region_name",
    "gs": "extra",
    "wasb": "host or the login",
}
"""What of a connection the name of its server is made from."""


class Sftp:
    """A folder of an SSH server."""

    def __init__(self, connection: str) -> None:
        self._hook = _hook("sftp", "sftp.hooks.sftp", "SFTPHook")(ssh_conn_id=connection)

    def files(self, folder: str) -> Iterator[Elsewhere]:
        """Yield the files of a folder; none of one that is not there yet."""
        try:
            entries = self._hook.list_directory_with_attr(folder)
        except FileNotFoundError:
            return
        for entry in entries:
            if not S_ISDIR(entry.st_mode):
                yield Elsewhere(entry.filename, entry.st_size, int(entry.st_mtime))

    def copy(self, folder: str, name: str, to: Path) -> None:
        """Write a file's bytes."""
        self._hook.retrieve_file(f"{folder}/{name}", str(to))


class S3:
    """A prefix of a bucket of S3."""

    def __init__(self, connection: str) -> None:
        hook = _hook("amazon", "amazon.aws.hooks.s3", "S3Hook")(aws_conn_id=connection)
        self._client = hook.get_conn()

    def files(self, folder: str) -> Iterator[Elsewhere]:
        """Yield the objects right below a prefix."""
        bucket, prefix = _of_bucket(folder)
        pages = self._client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=bucket, Prefix=prefix, Delimiter="/"):
            for s3_object in page.get("Contents", ()):
                changed = int(s3_object["LastModified"].timestamp())
                yield Elsewhere(s3_object["Key"].removeprefix(prefix), s3_object["Size"], changed)

    def copy(self, folder: str, name: str, to: Path) -> None:
        """Write an object's bytes."""
        bucket, prefix = _of_bucket(folder)
        self._client.download_file(bucket, prefix + name, str(to))


class Gcs:
    """A prefix of a bucket of Google Cloud Storage."""

    def __init__(self, connection: str) -> None:
        self._hook = _hook("google", "google.cloud.hooks.gcs", "GCSHook")(gcp_conn_id=connection)

    def files(self, folder: str) -> Iterator[Elsewhere]:
        """Yield the objects right below a prefix."""
        bucket, prefix = _of_bucket(folder)
        for blob in self._hook.get_conn().list_blobs(bucket, prefix=prefix, delimiter="/"):
            yield Elsewhere(
                blob.name.removeprefix(prefix), blob.size, int(blob.updated.timestamp())
            )

    def copy(self, folder: str, name: str, to: Path) -> None:
        """Write an object's bytes."""
        bucket, prefix = _of_bucket(folder)
        self._hook.download(bucket, prefix + name, filename=str(to))


class Wasb:
    """A prefix of a container of Azure Blob Storage."""

    def __init__(self, connection: str) -> None:
        hook_class = _hook("microsoft-azure", "microsoft.azure.hooks.wasb", "WasbHook")
        self._hook = hook_class(wasb_conn_id=connection)

    def files(self, folder: str) -> Iterator[Elsewhere]:
        """Yield the blobs right below a prefix."""
        container, prefix = _of_bucket(folder)
        client = self._hook.get_conn().get_container_client(container)
        for blob in client.walk_blobs(name_starts_with=prefix, delimiter="/"):
            if getattr(blob, "last_modified", None) is not None:  # else it is a folder
                changed = int(blob.last_modified.timestamp())
                yield Elsewhere(blob.name.removeprefix(prefix), blob.size, changed)

    def copy(self, folder: str, name: str, to: Path) -> None:
        """Write a blob's bytes."""
        container, prefix = _of_bucket(folder)
        self._hook.get_file(str(to), container, prefix + name)


_SERVERS: dict[str, Callable[[str], Server]] = {"sftp": Sftp, "s3": S3, "gs": Gcs, "wasb": Wasb}


def server_of(address: Address) -> Server:
    """Return the server of an address.

    Raises:
        InputError: no such kind is known, or its provider is not installed.
    """
    if address.kind not in _SERVERS:
        rule = f"{address.kind!r} is no kind of server; use one of {', '.join(_SERVERS)}"
        raise InputError(where="environment", field=SETTING, rule=rule)
    return _SERVERS[address.kind](address.connection)


def asked_at(address: Address) -> Server:
    """Return the server of an address; what comes of asking it, and nothing else, is told apart.

    Raises:
        LandingAway: it is away, now or when it is asked.
        InputError: it refuses what the connection or the address says, or its provider is missing.
    """
    with _told_apart(address, is_listed=False):
        return _Asked(address, server_of(address))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A server whose failures are told apart."""

    address: Address
    server: Server

    def files(self, folder: str) -> list[Elsewhere]:
        """Return the objects of a folder."""
        with _told_apart(self.address, is_listed=False):
            return [*self.server.files(folder)]

    def copy(self, folder: str, name: str, to: Path) -> None:
        """Write the bytes of an object that was listed."""
        with _told_apart(self.address, is_listed=True):
            self.server.copy(folder, name, to)


@contextmanager
def _told_apart(address: Address, *, is_listed: bool) -> Iterator[None]:
    """Tell a server that is away, which is waited for, from settings that no wait mends.

    What is neither, as a full disk here, or a fault of a hook, is raised as it comes.

    Args:
        address: of the server.
        is_listed: whether an object is asked for that it has just named.

    Raises:
        LandingAway: the server is away, or the object went.
        InputError: it refuses what the connection or the address says.
    """
    try:
        yield
    except TurnstileError:
        raise
    except Exception as error:
        kind, name = type(error).__name__, f"{address.kind}://{address.connection}"
        if is_listed and _is_gone(error):
            changes = "what it had listed is gone or other; the delivery changes while it is read"
            raise LandingAway(name, changes) from None
        if _is_refusal(error):
            rule = (
                f"what the connection {address.connection!r} ({address.kind}) says is refused "
                f"({kind}); see in Admin, Connections, that there is one of this name and that its "
                "credentials hold, that this worker trusts the server's certificate or keys, and "
                "that they may read bucket and folder of the address; then clear this task"
            )
            raise InputError(where="environment", field=SETTING, rule=rule) from None
        if _is_unresolved(error):
            raise LandingAway(name, _unresolved_words(address)) from None
        if _is_away(error):
            raise LandingAway(name, kind) from None
        raise


def _is_gone(error: Exception) -> bool:
    """Return whether a server has no such object, or another; of a file here it names the file."""
    if isinstance(error, OSError):
        return isinstance(error, FileNotFoundError) and error.filename is None
    if _status(error) in _CHANGES_OF_AN_OBJECT:
        return _code(error) in _OF_AN_OBJECT
    is_other = _status(error) == HTTPStatus.PRECONDITION_FAILED
    return is_other or _is_a(error, {"S3DownloadFailedError"})  # Amazon's, of the same answer


def _is_unresolved(error: BaseException | None) -> bool:
    """Return whether the name of a server has no address, however deep a library wraps that."""
    while error is not None and not isinstance(error, gaierror):
        error = error.__cause__ or error.__context__
    return error is not None


def _unresolved_words(address: Address) -> str:
    """Say where the name of a server is set."""
    return (
        "its name has no address: unless the name service is away, it is mistyped in the "
        f"{_NAMED_BY[address.kind]} of the connection {address.connection!r}, in Admin, Connections"
    )


def _is_refusal(error: Exception) -> bool:
    """Return whether a server, or the hook before it asks one, refuses what it is told."""
    if _OF_CERTIFICATES in str(error):
        return True
    if isinstance(error, OSError):  # of a file here it would name the file
        return isinstance(error, PermissionError) and error.filename is None
    if HTTPStatus.MULTIPLE_CHOICES <= _status(error) < HTTPStatus.INTERNAL_SERVER_ERROR:
        return not _is_tried_again(error)
    if getattr(error, "retryable", False):  # Google, of a refusal that is none
        return False
    is_of_keys = any(word in str(error) for word in _OF_KEYS) and _is_a(error, {"SSHException"})
    return is_of_keys or _is_a(error, _REFUSALS)


def _is_away(error: Exception) -> bool:
    """Return whether nobody answers, or not to the end."""
    if isinstance(error, OSError):
        is_network = isinstance(error, ConnectionError | TimeoutError)
        return is_network or error.errno is None or error.errno in _NO_WAY
    is_told = _status(error) >= HTTPStatus.INTERNAL_SERVER_ERROR or _is_tried_again(error)
    return is_told or isinstance(error, EOFError) or _is_a(error, _AWAY)


def _is_tried_again(error: Exception) -> bool:
    """Return whether an answer asks for patience."""
    is_late = getattr(error, "retryable", False) or _code(error) in _TRIED_AGAIN_OF_AMAZON
    return is_late or _status(error) in _TRIED_AGAIN


def _is_a(error: Exception, names: AbstractSet[str]) -> bool:
    """Return whether an error is of one of some classes, by name."""
    return any(kind.__name__ in names for kind in type(error).__mro__)


def _code(error: Exception) -> str:
    """Return the word that a server answered, as Amazon's and Azure's libraries tell it."""
    response = getattr(error, "response", None)
    of_amazon = response.get("Error", {}) if isinstance(response, dict) else {}
    told = of_amazon.get("Code") or getattr(error, "error_code", None) or ""
    return str(getattr(told, "value", told))  # Azure's is a member of an enumeration


def _status(error: Exception) -> int:
    """Return what a server answered, of HTTP, as Amazon's, Google's and Azure's libraries tell."""
    response = getattr(error, "response", None)
    of_amazon = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
    told = (getattr(error, "code", None), getattr(error, "status_code", None))
    numbers = (of_amazon.get("HTTPStatusCode"), *told)
    return next((number for number in numbers if isinstance(number, int)), 0)


def _hook(provider: str, module: str, name: str) -> Any:  # noqa: ANN401 - a hook's class
    """Return a hook of a provider.

    Raises:
        InputError: the provider is not installed.
    """
    try:
        return getattr(import_module(f"airflow.providers.{module}"), name)
    except ModuleNotFoundError as missing:
        rule = f"needs apache-airflow-providers-{provider}, of which {missing.name} is not here; "
        rule += "install it beside Airflow, on the workers of the queue `private`"
        raise InputError(where="environment", field=SETTING, rule=rule) from None


def _of_bucket(folder: str) -> tuple[str, str]:
    """Return bucket and prefix."""
    bucket, _, prefix = folder.partition("/")
    return bucket, f"{prefix}/" if prefix else ""
