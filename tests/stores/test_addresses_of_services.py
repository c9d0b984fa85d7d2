"""Addresses that are none of a service, and services that send on to a page."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from turnstile.cli import main
from turnstile.settings import ZoneStore
from turnstile_stores.address import store_address


class _Login(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(302)
        content = b"<html><body>Please log in</body></html>"
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def page() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Login)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def _check(endpoint: str, patch: pytest.MonkeyPatch) -> int:
    patch.setenv("AWS_ACCESS_KEY_ID", "none")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    for zone in ("embargoed", "public"):
        address = f"s3://{zone}/city?endpoint={endpoint}"
        patch.setenv(f"TURNSTILE_{zone.upper()}_STORE", address)
    return main(["stores", "check"])


@pytest.mark.parametrize("endpoint", ["s3.example", "https://user:hunter2@[bad"])
def test_an_endpoint_that_is_none_is_refused(
    endpoint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _check(endpoint, monkeypatch) == 2
    told = capsys.readouterr().err
    assert "endpoint: is no address of a service; write https://s3.example" in told
    assert "hunter2" not in told


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://s3.example", "https://S3.example:443/"),
        ("http://s3.example", "http://s3.example:80"),
    ],
)
def test_a_service_is_one_however_it_is_written(one: str, other: str) -> None:
    around = store_address(ZoneStore("public", f"s3://b/city?endpoint={one}", None))
    within = store_address(ZoneStore("embargoed", f"s3://b/city/e?endpoint={other}", None))
    elsewhere = store_address(ZoneStore("embargoed", f"s3://b/city/e?endpoint={one}:9000", None))
    assert around.holds(within)
    assert not within.holds(around)
    assert not around.holds(elsewhere)


def test_a_service_that_sends_on_and_on_does_not_answer(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _check(page, monkeypatch) == 1
    told = capsys.readouterr().err
    assert told.startswith("turnstile: s3://embargoed/city: index/: ")
    assert "run the same command again" in told
