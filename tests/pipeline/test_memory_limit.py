"""The engine keeps to the memory that a deployment gives it: too little says so, enough serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnstile.cli import main
from turnstile.errors import InputError, IntegrityError
from turnstile.pipeline.steps import step_named

pytestmark = pytest.mark.usefixtures("own_engines")
WEEK = "2016-W30"
LIMIT = "TURNSTILE_MEMORY_LIMIT"


def test_each_step_keeps_to_the_memory_that_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path))
    main(["sample", "opal", "--weeks", WEEK, "--rows", "20000", "--seed", "1"])
    monkeypatch.setenv(LIMIT, "1MB")
    with pytest.raises(InputError, match=LIMIT):
        step_named("ingest")("opal", WEEK, 0)
    monkeypatch.setenv(LIMIT, "200MB")
    step_named("ingest")("opal", WEEK, 0)
    step_named("validate")("opal", WEEK, 0)
    monkeypatch.setenv(LIMIT, "1MB")
    with pytest.raises(IntegrityError, match=LIMIT):
        step_named("count")("opal", WEEK, 0)
    monkeypatch.setenv(LIMIT, "200MB")
    step_named("count")("opal", WEEK, 0)


@pytest.mark.parametrize("amount", ["lots", "0MB", "2", "2GB; SET threads=1", "-1GB"])
def test_what_is_no_amount_of_memory_is_refused(
    amount: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT, amount)
    with pytest.raises(InputError, match="800MB"):
        step_named("plan")("opal", WEEK, 0)
