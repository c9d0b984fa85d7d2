"""TCP ports of this machine."""

from __future__ import annotations

import socket


def free_port(preferred: int = 0) -> int:
    """The preferred port of the loopback interface if it is free, else another."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no TCP port is free on 127.0.0.1")
