"""Deployment settings: the only reader of the process environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from turnstile.errors import InputError

_INCLUDE = Path(__file__).resolve().parents[1]
ZONES = ("landing", "private", "embargoed", "public")
_CREDENTIALS = tuple(f"TURNSTILE_{zone.upper()}_STORE_CREDENTIALS" for zone in ZONES)
_PATHS = ("TURNSTILE_HOME", "TURNSTILE_INCLUDE", "TURNSTILE_LEDGER_KEY", *_CREDENTIALS)


@dataclass(frozen=True, slots=True)
class ZoneStore:
    """The object store of a zone, as it stands in the environment.

    Args:
        zone: one of ZONES.
        address: `s3://bucket/prefix`, with options (`turnstile_stores.address`).
        credentials: file that holds them; None: as boto3 finds them (profile, role).
    """

    zone: str
    address: str
    credentials: Path | None


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things are.

    Args:
        home: folder of the zones (`TURNSTILE_HOME`, default `var` of the checkout).
        ledger_url: database of the ledger (`TURNSTILE_LEDGER_URL`), with the password of the file
            `TURNSTILE_LEDGER_PASSWORD_FILE`, if that is set.
        witness: second places for signed checkpoints (`TURNSTILE_WITNESS`, separated by colons).
        counting_engine: which engine counts (`TURNSTILE_COUNTING_ENGINE`, default `duckdb`).
        memory_limit: the most that the embedded engine takes in a step (`TURNSTILE_MEMORY_LIMIT`,
            such as `800MB`; 2GB where it is not set); what does not fit spills to files.
        include: folder of `programmes/` and `domains/` (`TURNSTILE_INCLUDE`).
        ckan_token: of the API of CKAN portals (`TURNSTILE_CKAN_TOKEN`).
        adopted: examples that have a DAG here all the same (`TURNSTILE_ADOPTED`, separated by
            colons); `make release PROGRAMMES=...` adopts what it is asked for.
        ledger_key: the ledger's signing key (`TURNSTILE_LEDGER_KEY`, default `ledger-key.pem` of
            the home), for deployments whose home is several volumes.
        landing_from: from where connections of Airflow's fetch files (`TURNSTILE_LANDING_FROM`).
        stores: object stores of zones that this process may reach (`TURNSTILE_LANDING_STORE`, and
            so on for each of ZONES), with the credentials of the file
            `TURNSTILE_LANDING_STORE_CREDENTIALS`, if that is set. The folder of such a zone is a
            copy to work on.
    """

    home: Path
    ledger_url: str = field(repr=False)
    witness: tuple[Path, ...]
    include: Path
    counting_engine: str = "duckdb"
    memory_limit: str | None = None
    ckan_token: str | None = field(default=None, repr=False)
    adopted: frozenset[str] = frozenset()
    ledger_key: Path | None = None
    stores: tuple[ZoneStore, ...] = ()
    landing_from: str = ""

    @classmethod
    def from_environment(cls) -> Settings:
        """Read the environment once."""
        env = os.environ  # noqa: TID251 - the one place
        _require_whole(env)
        home = Path(env.get("TURNSTILE_HOME") or _INCLUDE.parent / "var").resolve()
        return cls(
            home=home,
            ledger_url=_ledger_url(env, home),
            witness=_witness(env, home),
            include=Path(env.get("TURNSTILE_INCLUDE") or _INCLUDE).resolve(),
            counting_engine=env.get("TURNSTILE_COUNTING_ENGINE") or "duckdb",
            memory_limit=_memory_limit(env.get("TURNSTILE_MEMORY_LIMIT")),
            ckan_token=env.get("TURNSTILE_CKAN_TOKEN") or None,
            adopted=frozenset(filter(None, env.get("TURNSTILE_ADOPTED", "").split(":"))),
            ledger_key=Path(key).resolve() if (key := env.get("TURNSTILE_LEDGER_KEY")) else None,
            stores=_stores(env),
            landing_from=env.get("TURNSTILE_LANDING_FROM", ""),
        )

    @property
    def ledger_file(self) -> Path | None:
        """File of the ledger's database; None of a server."""
        return sqlite_file(self.ledger_url)

    def store_of(self, zone: str) -> ZoneStore | None:
        """Return the store that a zone lies in; None where it is a folder, as far as is known."""
        return next((store for store in self.stores if store.zone == zone), None)

    @property
    def landing(self) -> Path:
        """Where the authority drops its files."""
        return self.home / "landing"

    @property
    def private(self) -> Path:
        """Zone that nothing leaves except through a charged mechanism."""
        return self.home / "private"

    @property
    def embargoed(self) -> Path:
        """Zone of sealed noisy bytes, before publication."""
        return self.home / "embargoed"

    @property
    def small_worlds(self) -> Path:
        """What was found in small worlds of programmes: nothing of any data."""
        return self.home / "small_worlds"

    @property
    def public(self) -> Path:
        """Zone of published packages."""
        return self.home / "public"


def _require_whole(env: Mapping[str, str]) -> None:
    """Refuse a path that is another place for whoever reads it next.

    A shell alone expands `~`; without it there is a folder of that name. A relative path begins
    where a command is run, and a task of Airflow runs elsewhere: it would find an empty home.
    """
    given = {name: [env.get(name, "")] for name in _PATHS}
    given["TURNSTILE_WITNESS"] = env.get("TURNSTILE_WITNESS", "").split(":")
    given["TURNSTILE_LEDGER_URL"] = [str(sqlite_file(env.get("TURNSTILE_LEDGER_URL", "")) or "")]
    pairs = ((name, path) for name, paths in given.items() for path in paths if path)
    for name, path in pairs:
        if not path.startswith("/"):
            why = f"{path} is elsewhere for each folder that a command is run in"
            why = "a shell alone knows what ~ is" if path.startswith("~") else why
            raise InputError(where="environment", field=name, rule=f"{why}; write the whole path")


def _witness(env: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """Return the second places; none of them lies in a zone, whose readers are others."""
    folders = tuple(map(Path, filter(None, env.get("TURNSTILE_WITNESS", "").split(":"))))
    zones = [(home / zone).resolve() for zone in ZONES]
    for folder in folders:
        if any(map(folder.resolve().is_relative_to, zones)):
            rule = f"{folder} lies in a zone; entries name people, so choose one outside of all"
            raise InputError(where="environment", field="TURNSTILE_WITNESS", rule=rule)
    return folders


def _stores(env: Mapping[str, str]) -> tuple[ZoneStore, ...]:
    """Return the stores of zones; every step reads what is public and what is under embargo."""
    stores = []
    for zone in ZONES:
        name = f"TURNSTILE_{zone.upper()}_STORE"
        if address := env.get(name):
            file = env.get(f"{name}_CREDENTIALS")
            stores.append(ZoneStore(zone, address, Path(file) if file else None))
    named = {store.zone for store in stores}
    if stores and not {"embargoed", "public"} <= named:
        rule = (
            f"only {', '.join(sorted(named))} have a store; name those of embargoed and public too"
        )
        raise InputError(where="environment", field="TURNSTILE_EMBARGOED_STORE", rule=rule)
    return tuple(stores)


def _memory_limit(given: str | None) -> str | None:
    """Return an amount of memory as the engine takes it."""
    if not given:
        return None
    if not re.fullmatch(r"[1-9][0-9]*(MB|GB|MiB|GiB)", given):
        rule = f"{given!r} is no amount of memory; write 800MB, or 4GB"
        raise InputError(where="environment", field="TURNSTILE_MEMORY_LIMIT", rule=rule)
    return given


def sqlite_file(url: str) -> Path | None:
    """Return the file of an SQLite database; None of a server.

    Examples:
        >>> sqlite_file("sqlite:////var/ledger.sqlite"), sqlite_file("postgresql://host/ledger")
        (PosixPath('/var/ledger.sqlite'), None)
        >>> sqlite_file("sqlite:////var/ledger.sqlite?timeout=60")
        PosixPath('/var/ledger.sqlite')
    """
    return Path(file) if (file := url.partition("sqlite:///")[2].partition("?")[0]) else None


def _ledger_url(env: Mapping[str, str], home: Path) -> str:
    """Return the ledger's database, with the password of the file that holds it.

    A container is given its password as a file: what stands in its environment is seen by whoever
    lists processes or inspects the container.
    """
    url = env.get("TURNSTILE_LEDGER_URL") or f"sqlite:///{home / 'ledger.sqlite'}"
    file = env.get("TURNSTILE_LEDGER_PASSWORD_FILE")
    if not file:
        return url
    scheme, _, place = url.partition("://")
    login, at, server = place.rpartition("@")
    try:
        password = Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        rule = f"{file} cannot be read ({error.strerror}); it has to hold the password of {login}"
        raise InputError(
            where="TURNSTILE_LEDGER_PASSWORD_FILE", field="password", rule=rule
        ) from None
    if not (login and at) or ":" in login:
        rule = "has to name a user and no password, as in postgresql+psycopg://user@host/database"
        raise InputError(where="TURNSTILE_LEDGER_URL", field="user", rule=rule)
    return f"{scheme}://{login}:{quote(password, safe='')}@{server}"


def system_clock() -> datetime:
    """Return the present instant, in UTC; passed to whatever needs the time."""
    return datetime.now(UTC)  # noqa: TID251 - the one place
