"""A public witness for tests: C2SP tlog-witness over HTTP, with the faults that one asks for."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from turnstile.ledger.custody.signed_note import key_id
from turnstile.ledger.tlog.checkpoints import LogCheckpoint, Verifier, parse_checkpoint, parse_step
from turnstile.ledger.tlog.merkle import is_consistent

NAME = "witness.example.net/w1"
SECONDS = 1_700_000_000
KIND = b"\x04"


@dataclass
class Witness:
    """What it knows, and how it answers.

    Args:
        log: verifier key of the log that it is enrolled for; None for none.
        fault: status that it answers with, whatever is asked; None for none.
    """

    log: str | None = None
    fault: int | None = None
    size: int = 0
    root: bytes = b""
    seconds: int = SECONDS
    url: str = ""
    asked: list[int] = field(default_factory=list)
    key: Ed25519PrivateKey = field(
        default_factory=lambda: Ed25519PrivateKey.from_private_bytes(bytes(range(0x20, 0x40)))
    )

    @property
    def vkey(self) -> str:
        raw = self.key.public_key().public_bytes_raw()
        encoded = base64.b64encode(KIND + raw).decode()
        return f"{NAME}+{key_id(NAME, KIND, raw).hex()}+{encoded}"

    @property
    def policy(self) -> str:
        return f"# who is asked\nwitness w1 {self.vkey} {self.url}\nquorum w1\n"

    def answer(self, body: str) -> tuple[int, str, str]:
        """Return status, content type and text (tlog-witness)."""
        old, proof, text = parse_step(body)
        self.asked.append(old)
        checkpoint = parse_checkpoint(text)
        if refusal := self._refusal(old, proof, checkpoint):
            return refusal, "text/plain", ""
        if old != self.size:
            return 409, "text/x.tlog.size", f"{self.size}\n"
        self.size, self.root = checkpoint.size, checkpoint.root
        self.seconds += 1
        said = f"cosignature/v1\ntime {self.seconds}\n{checkpoint.text}".encode()
        content = struct.pack(">Q", self.seconds) + self.key.sign(said)
        identity = key_id(NAME, KIND, self.key.public_key().public_bytes_raw())
        return 200, "text/plain", f"— {NAME} {base64.b64encode(identity + content).decode()}\n"

    def _refusal(self, old: int, proof: tuple[bytes, ...], checkpoint: LogCheckpoint) -> int | None:
        """Return the status of what it will not sign."""
        if self.fault is not None:
            return self.fault
        if self.log is None or checkpoint.origin != Verifier.of(self.log).name:
            return 404
        if not checkpoint.is_signed_by(Verifier.of(self.log)):
            return 403
        if old != self.size:
            return 400 if old > checkpoint.size else None
        if old == checkpoint.size:
            return 409 if checkpoint.root != self.root else None
        is_grown = not old or is_consistent(old, checkpoint.size, self.root, checkpoint.root, proof)
        return None if is_grown else 422


@contextmanager
def serving(witness: Witness) -> Iterator[Witness]:
    """Let it answer on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            status, kind, text = witness.answer(body)
            self.send_response(status if self.path == "/w/add-checkpoint" else 404)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    witness.url = f"http://127.0.0.1:{server.server_address[1]}/w/"
    try:
        yield witness
    finally:
        server.shutdown()
        server.server_close()
