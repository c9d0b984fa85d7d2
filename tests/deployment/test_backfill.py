"""What is shown of a failed task: the last messages of its log."""

from __future__ import annotations

import json

from turnstile_native.backfill import log_tail


def test_the_tail_shows_messages_and_the_failures_sentence() -> None:
    failure = {"event": "Task failed", "error_detail": [{"exc_value": "asks for 2, 1 is left"}]}
    text = "\n".join([json.dumps({"event": "counted"}), json.dumps(failure), "no json", "[1]"])
    assert log_tail(text) == ("counted", "Task failed: asks for 2, 1 is left", "no json", "[1]")


def test_the_tail_is_short() -> None:
    lines = [json.dumps({"event": str(number)}) for number in range(100)]
    assert log_tail("\n".join(lines)) == tuple(str(number) for number in range(85, 100))
