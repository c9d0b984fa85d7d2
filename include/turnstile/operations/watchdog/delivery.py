"""Delivery of alerts: one digest for each address, each alert once, sent again if it did not go.

Addresses are Apprise URLs (mail, Slack, Teams, webhooks and more), sorted by severity; where they
come from is the caller's business.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from threading import Thread

from turnstile.ledger.entries import instant
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.operations.watchdog.alerts import Alert, Links, Severity, digest, runbook_link

Send = Callable[[Sequence[str], str, str, Severity], bool]
_KINDS = {
    Severity.CRITICAL: "failure",
    Severity.ERROR: "failure",
    Severity.WARN: "warning",
    Severity.NOTICE: "info",
}
"""What Apprise's channels know of gravity: color, sign or the webhook's field `type`."""
WITHIN_S = 60.0
_log = logging.getLogger("turnstile")


def deliver(  # noqa: PLR0913 - three of them by name only
    alerts: Iterable[Alert],
    addresses: Mapping[Severity, Sequence[str]],
    journal: Journal,
    *,
    send: Send,
    now: datetime,
    links: Links = runbook_link,
) -> tuple[Alert, ...]:
    """Send what nobody was notified of before, and return it.

    Alerts that nobody is named for are logged, and sent once somebody is.

    Args:
        alerts: to send.
        addresses: Apprise URLs for each severity.
        journal: remembers what was sent.
        send: delivers subject and text to URLs and says whether all took it.
        now: the present instant, aware.
        links: where to look and what to do, a line each.
    """
    new = [alert for alert in dict.fromkeys(alerts) if not _was_sent(journal, alert)]
    by_receivers: dict[tuple[str, ...], list[Alert]] = {}
    for alert in new:
        by_receivers.setdefault(tuple(addresses.get(alert.severity, ())), []).append(alert)
    sent: list[Alert] = []
    for urls, of_receiver in by_receivers.items():
        subject, text = digest(of_receiver, links)
        if not urls:
            _log.warning("nobody is named for these alerts:\n%s", text)
            continue
        gravest = min((new_alert.severity for new_alert in of_receiver), key=list(Severity).index)
        if not send(urls, subject, text, gravest):
            _log.error("alerts could not be delivered; they are tried again:\n%s", text)
            continue
        for alert in of_receiver:
            journal.write(_sent(alert, now))
        sent += of_receiver
    return tuple(sent)


def send_by_apprise(urls: Sequence[str], subject: str, text: str, severity: Severity) -> bool:
    """Send a message to every URL, as grave as it is; say whether all took it in time.

    A receiver that answers byte by byte is waited for no longer than one that does not answer; it
    may have taken the message, and is sent it again.
    """
    done: list[bool] = []

    def send() -> None:
        with suppress(Exception):  # whatever it is, its text may hold a secret of an address
            done.append(_send(urls, subject, text, severity))

    sending = Thread(target=send, daemon=True)
    sending.start()
    sending.join(WITHIN_S)
    return done == [True]


def _send(urls: Sequence[str], subject: str, text: str, severity: Severity) -> bool:
    """Send a message to every URL, however long each takes."""
    import apprise

    mail, others = apprise.Apprise(), apprise.Apprise()
    added = [(mail if url.startswith("mailto") else others).add(url) for url in urls]
    if not all(added):
        return False
    kind = _KINDS[severity]
    # Mail is HTML to Apprise: without a word it would run the lines together.
    plain = apprise.NotifyFormat.TEXT
    done = [not mail or mail.notify(title=subject, body=text, notify_type=kind, body_format=plain)]
    done += [not others or others.notify(title=subject, body=text, notify_type=kind)]
    return all(done)


def _was_sent(journal: Journal, alert: Alert) -> bool:
    """Look an alert up in the journal of its week."""
    return any(
        line.happening is Happening.NOTIFIED and line.details.get("identity") == alert.identity
        for line in journal.of_week(alert.programme, alert.week)
    )


def _sent(alert: Alert, now: datetime) -> Line:
    """Return the line that an alert was delivered."""
    details = {"identity": alert.identity, "severity": alert.severity.value}
    return Line(instant(now), Happening.NOTIFIED, alert.programme, alert.week, details=details)
