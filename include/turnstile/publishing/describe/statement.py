"""The signed statement of a package's files (in-toto v1 in a DSSE envelope), and its SHA256SUMS.

The statement names every file that was written before it; the ledger's key signs it. The manifest,
whose digest the ledger holds, names the statement.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from turnstile.publishing.contents import Contents
from turnstile.publishing.written_text import json_bytes

PAYLOAD = "application/vnd.in-toto+json"
PREDICATE = "https://in-toto.io/attestation/release/v0.1"
STATEMENT = "statement.intoto.json"
SUMS = "SHA256SUMS"


def write(contents: Contents) -> bytes | None:
    """Return the signed statement; None where the ledger has no key."""
    if contents.sign is None:
        return None
    statement: dict[str, Any] = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": record.path, "digest": {"sha256": record.sha256}}
            for record in contents.records()
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "purl": f"pkg:generic/{contents.name}",
            "releaseId": str(contents.drawn.attempt.key),
            "sealed": {"sha256": contents.drawn.attempt.artefact_digest},
        },
    }
    payload = json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
    public_line, signature = contents.sign(PAYLOAD, payload)
    key_id = public_line.split("+")[1]
    return json_bytes(
        {
            "payloadType": PAYLOAD,
            "payload": base64.b64encode(payload).decode(),
            "signatures": [{"keyid": key_id, "sig": base64.b64encode(signature).decode()}],
        }
    )


def write_sums(contents: Contents) -> bytes:
    """Return the digest of every file before this one, as `sha256sum -c` reads them."""
    return "".join(f"{record.sha256}  {record.path}\n" for record in contents.records()).encode()
