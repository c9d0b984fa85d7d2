"""Commands in processes of their own that need not import anything anew: forked from a server."""

# ruff: noqa: TID251 - a process gets the environment of the test that asks for it
from __future__ import annotations

import multiprocessing
import os
import sys
from functools import cache
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess


def forked(words: tuple[str, ...]) -> BaseProcess:
    """Start a command in this process's environment.

    Args:
        words: of the command line.
    """
    process = _server().Process(target=_run, args=(words, dict(os.environ)))
    process.start()
    return process


@cache
def _server() -> ForkServerContext:
    """Return a server that imports once what commands import; it makes no thread."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["pytest", __name__, *_MODULES])
    return server


def _run(words: tuple[str, ...], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    from turnstile.cli import main

    sys.exit(main(list(words)))


_MODULES = (
    "turnstile.cli",
    "turnstile.commands.ledger",
    "turnstile.commands.ledger_facts",
    "turnstile.commands.run",
    "turnstile.pipeline.after_seal",
    "turnstile.pipeline.approvals",
    "turnstile.pipeline.assessing",
    "turnstile.pipeline.auditing",
    "turnstile.pipeline.before_charge",
    "turnstile.pipeline.draw.drawing",
    "turnstile.pipeline.draw.charged_draw",
    "turnstile.pipeline.estimating",
    "turnstile.pipeline.evidence",
    "turnstile.assessment.assessment",
    "turnstile.assessment.report.page",
    "turnstile.estimates.labelled",
    "turnstile.estimates.release_tables",
    "turnstile.ledger.database.store",
    "turnstile.counting.engines",
    "turnstile.privacy.mechanisms.dispatch",
    "turnstile.privacy.mechanisms.dense",
    "turnstile.publishing.package",
    "turnstile.publishing.series.writing",
    "turnstile.quality.checks",
)
"""What a week imports late; what of it is not there is imported by whoever needs it."""
