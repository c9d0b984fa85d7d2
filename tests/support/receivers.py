"""Receivers of alerts on this machine: a mail server, and HTTPS under the real names of services.

Slack and Teams are reached at fixed hosts. Here those names resolve to a server of the test's own,
with a certificate that the sender trusts: what it sends is what the services would get, over TLS.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from turnstile.settings import system_clock

READY_WITHIN_S = 120.0  # a busy machine may take its time; the libraries give up after 4 s or 5 s
SLACK = "hooks.slack.com"
TEAMS = "prod-01.australiaeast.logic.azure.com"
MATTERMOST = "chat.transport.example"
SLACK_URL = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
TEAMS_URL = f"workflows://{TEAMS}/0123456789abcdef0123456789abcdef/signature-of-the-flow"
MATTERMOST_URL = f"mmosts://{MATTERMOST}/3ccdd113474722377935511fc85d3dd4"


def _let_senders_wait() -> None:
    """Let what sends alerts wait for a busy machine; it is imported where something is sent."""
    from apprise import URLBase

    from turnstile.operations.watchdog import delivery

    delivery.WITHIN_S = READY_WITHIN_S
    URLBase.socket_connect_timeout = URLBase.socket_read_timeout = READY_WITHIN_S


class Inbox(Message):
    """Keeps what a mail server received."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[Any] = []

    def handle_message(self, message: Any) -> None:
        self.received.append(message)


class MailServer(Controller):
    """An SMTP server on a port that it holds from the start: nobody can take it before its use."""

    def __init__(self, handler: Message) -> None:
        _let_senders_wait()
        self._held = socket.create_server(("127.0.0.1", 0))
        port = self._held.getsockname()[1]
        super().__init__(handler, hostname="127.0.0.1", port=port, ready_timeout=READY_WITHIN_S)

    def _create_server(self) -> Any:
        return self.loop.create_server(self._factory_invoker, sock=self._held)


@contextmanager
def mail_server() -> Iterator[tuple[Inbox, int]]:
    """Run a real SMTP server on the loopback interface; give what it receives, and its port."""
    inbox = Inbox()
    server = MailServer(inbox)
    server.start()
    yield inbox, server.port
    server.stop()


def text_of(message: Any) -> str:
    """Return all text of a mail, decoded."""
    parts = [part.get_payload(decode=True) or b"" for part in message.walk()]
    return "\n".join([str(message["subject"]), *(part.decode() for part in parts)])


@dataclass
class Services:
    """What arrived at the services, by host: decoded JSON bodies, oldest first.

    Args:
        status: what every service answers.
    """

    status: int = 200
    received: dict[str, list[tuple[str, Any]]] = field(default_factory=dict)

    def texts(self, host: str) -> list[str]:
        """Return the bodies that a host got, as text."""
        return [json.dumps(body, ensure_ascii=False) for _, body in self.received.get(host, ())]


@contextmanager
def services(
    folder: Path, patching: pytest.MonkeyPatch, hosts: Sequence[str] = (SLACK, TEAMS, MATTERMOST)
) -> Iterator[Services]:
    """Run an HTTPS server that this process takes for some hosts.

    Args:
        folder: for the certificate.
        patching: undoes name and trust afterwards.
        hosts: names that resolve to it.
    """
    _let_senders_wait()
    receiver = Services()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(receiver))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(folder, hosts))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    look_up = socket.getaddrinfo

    def resolve(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        if host in hosts:
            return look_up("127.0.0.1", server.server_port, *rest, **more)
        return look_up(host, port, *rest, **more)

    patching.setattr(socket, "getaddrinfo", resolve)
    patching.setenv("REQUESTS_CA_BUNDLE", str(folder / "services.pem"))
    patching.setenv("NO_PROXY", "*")
    yield receiver
    server.shutdown()
    server.server_close()
    thread.join()


def _handler(receiver: Services) -> type[BaseHTTPRequestHandler]:
    """Make a handler that keeps every JSON body under the name it was sent to."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            host = self.headers["Host"].partition(":")[0]
            receiver.received.setdefault(host, []).append((self.path, json.loads(body)))
            self.send_response(receiver.status)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    return Handler


def _certificate(folder: Path, hosts: Sequence[str]) -> Path:
    """Write key and certificate of a server for some names, signed by itself."""
    key, now = ec.generate_private_key(ec.SECP256R1()), system_clock()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receivers of a test")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(h) for h in hosts]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "services.pem"
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(secret + certificate.public_bytes(pem))
    return path
