"""Delivery of alerts: one digest for each address, each alert once, told again if it did not go.

Addresses are Apprise URLs (mail, Slack, Teams, webhooks and more), sorted by severity; where they
come from is the caller's business.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from turnstile.operations.alerts import Alert, Severity, digest
from turnstile.operations.journal import Happening, Journal, Line, instant

Send = Callable[[Sequence[str], str, str], bool]
_log = logging.getLogger("turnstile")


def deliver(
    alerts: Iterable[Alert],
    addresses: Mapping[Severity, Sequence[str]],
    journal: Journal,
    *,
    send: Send,
    now: datetime,
) -> tuple[Alert, ...]:
    """Send what was not told before, and return it.

    Alerts that nobody is named for are logged, and told once somebody is.

    Args:
        alerts: to tell.
        addresses: Apprise URLs for each severity.
        journal: remembers what was told.
        send: delivers subject and text to URLs and says whether all took it.
        now: the present instant, aware.
    """
    new = [alert for alert in dict.fromkeys(alerts) if not _was_told(journal, alert)]
    groups: dict[tuple[str, ...], list[Alert]] = {}
    for alert in new:
        groups.setdefault(tuple(addresses.get(alert.severity, ())), []).append(alert)
    told: list[Alert] = []
    for urls, group in groups.items():
        subject, text = digest(group)
        if not urls:
            _log.warning("nobody is named for these alerts:\n%s", text)
            continue
        if not send(urls, subject, text):
            _log.error("alerts could not be delivered; they are tried again:\n%s", text)
            continue
        for alert in group:
            journal.write(_told(alert, now))
        told += group
    return tuple(told)


def send_by_apprise(urls: Sequence[str], subject: str, text: str) -> bool:
    """Send a message to every URL; say whether all took it."""
    import apprise

    channel = apprise.Apprise()
    added = [channel.add(url) for url in urls]
    if not all(added):
        return False
    return bool(channel.notify(title=subject, body=text))


def _was_told(journal: Journal, alert: Alert) -> bool:
    """Look an alert up in the journal of its week."""
    return any(
        line.happening is Happening.TOLD and line.told.get("identity") == alert.identity
        for line in journal.of_week(alert.programme, alert.week)
    )


def _told(alert: Alert, now: datetime) -> Line:
    """Return the line that an alert was delivered."""
    told = {"identity": alert.identity, "severity": alert.severity.value}
    return Line(instant(now), Happening.TOLD, alert.programme, alert.week, told=told)
