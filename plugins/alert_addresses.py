"""Where alerts go: Airflow's connections, read as Apprise addresses.

`turnstile_alerts_critical`, `turnstile_alerts_error` and `turnstile_alerts_warn` each fall back to
`turnstile_alerts`. A connection is of type `smtp` (extra: `from_email`, `to`; TLS as in Airflow's
own mail provider), `http` or `https` (a webhook that takes JSON; extra: `path`), or any other type
whose extra holds `config: {"path": "<Apprise URL>"}` or a list of such, as Airflow's Apprise
provider has it: Slack, Teams, Mattermost and a hundred more.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

if TYPE_CHECKING:
    from turnstile.operations.watchdog.alerts import Severity

CONNECTION = "turnstile_alerts"
_log = logging.getLogger("turnstile")


def addresses_of(severity: Severity) -> tuple[str, ...]:
    """Return the Apprise URLs of a severity's connection; none where there is no connection."""
    for name in (f"{CONNECTION}_{severity}", CONNECTION):
        try:
            connection = Connection.get(name)
        except AirflowNotFoundException:
            continue
        except Exception as error:  # noqa: BLE001 - outside a task, or Airflow does not answer
            _log.warning("connection %s cannot be read: %s", name, type(error).__name__)
            continue
        try:
            return urls_of(connection)
        except (KeyError, TypeError, ValueError) as error:  # the text may hold a secret of it
            _log.error(
                "connection %s names no receiver (%s); docs/RUNBOOK.md says what it needs",
                name,
                type(error).__name__,
            )
    return ()


def urls_of(connection: Connection) -> tuple[str, ...]:
    """Return the Apprise URLs that a connection stands for.

    Raises:
        KeyError: its extra lacks what its type needs.
    """
    extra = connection.extra_dejson
    if "config" in extra:
        entries = [extra["config"]] if isinstance(extra["config"], dict) else extra["config"]
        return tuple(str(entry["path"]) for entry in entries)
    host = connection.host or "localhost"
    place = f"{host}:{connection.port}" if connection.port else host
    if connection.login:
        secret = quote(connection.password or "", safe="")
        place = f"{quote(connection.login, safe='')}:{secret}@{place}"
    if connection.conn_type == "smtp":
        query = {"from": extra["from_email"], "to": _together(extra["to"]), "smtp": host}
        return (f"mailto://{place}?{urlencode(query | {'mode': _mail_mode(extra)})}",)
    if connection.conn_type not in {"http", "https"}:
        raise KeyError("config")
    is_secure = connection.conn_type == "https" or connection.schema == "https"
    path = str(extra.get("path", "")).lstrip("/")
    return (f"{'jsons' if is_secure else 'json'}://{place}/{path}",)


def _together(receivers: object) -> str:
    """Write one receiver or a list of them as Apprise has them."""
    return ",".join(map(str, receivers)) if isinstance(receivers, list) else str(receivers)


def _mail_mode(extra: dict[str, object]) -> str:
    """Say how a mail server is spoken to, by the two switches of Airflow's mail provider."""
    if not extra.get("disable_ssl"):
        return "ssl"
    return "insecure" if extra.get("disable_tls") else "starttls"
