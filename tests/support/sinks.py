"""Where alerts arrive in tests: a real SMTP server and a real webhook receiver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message as Mail

from pytest_httpserver import HTTPServer
from receivers import Inbox, MailServer


@dataclass(frozen=True)
class Sinks:
    """Both receivers, and the Apprise URLs that lead to them."""

    inbox: Inbox
    webhook: HTTPServer
    mail_url: str
    webhook_url: str

    @property
    def connection(self) -> str:
        """Airflow connection that sends every message to both."""
        paths = [{"path": self.mail_url}, {"path": self.webhook_url}]
        return json.dumps({"conn_type": "apprise", "extra": {"config": paths}})

    def mails(self) -> list[str]:
        return [_text(mail) for mail in self.inbox.received]

    def posts(self) -> list[str]:
        return [request.get_data(as_text=True) for request, _ in self.webhook.log]


@contextmanager
def sinks() -> Iterator[Sinks]:
    """Run both receivers on the loopback interface."""
    inbox = Inbox()
    server = MailServer(inbox)
    server.start()
    query = "from=turnstile@transport.example&to=officer@transport.example&mode=insecure"
    mail_url = f"mailto://127.0.0.1:{server.port}?smtp=127.0.0.1&{query}"
    try:
        with HTTPServer() as webhook:
            webhook.expect_request("/hook", method="POST").respond_with_data("ok")
            yield Sinks(inbox, webhook, mail_url, f"json://127.0.0.1:{webhook.port}/hook")
    finally:
        server.stop()


def _text(mail: Mail) -> str:
    """Return the headers and every decoded part of a mail."""
    parts = [mail.get_payload(decode=True) for mail in mail.walk() if not mail.is_multipart()]
    return "\n".join([mail.as_string(), *(part.decode() for part in parts if part)])
