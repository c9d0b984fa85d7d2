"""The draw in a process of its own, which a task that is cleared, retried or killed leaves alone.

Whoever asked for it waits for its answer; whoever asks again meanwhile waits for its seal
(`drawing`). Before it charges it makes sure that somebody still waits; from its charge on it goes
to its seal, whatever becomes of who asked and whoever stops it (a machine that is shut down stops
every process). A draw is burned only where this very process is killed between its charge and its
seal.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from turnstile import errors
from turnstile.errors import DrawDied, RefusedError, TurnstileError
from turnstile.pipeline.steps import draw, step_named
from turnstile.settings import Settings, system_clock

_ANSWER = "answer.json"
_SAID = "said.log"
_log = logging.getLogger("turnstile")


def draw_apart(programme: str, week: str, revision: int = 0) -> str:
    """Do the step `draw` in a process of its own; return what it returns.

    Raises:
        TurnstileError: whatever the step raised, by its kind and sentence.
        DrawDied: its process died, or failed in a way that nobody foresaw, of which the private
            zone has a report.
    """
    private = Settings.from_environment().private
    for folder in (private / "draws", private / "failures"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = Path(tempfile.mkdtemp(dir=private / "draws"))
    # Named as retention knows the reports of failed tasks: it may hold a raw value.
    report = (
        private / "failures" / f"{programme}-{draw.__name__}-{system_clock():%Y%m%dT%H%M%S}.txt"
    )
    key = (programme, week, str(revision))
    with report.open("ab") as stderr:
        process = subprocess.Popen(  # noqa: S603 - this very module
            [sys.executable, "-m", __name__, *key, str(folder), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
    exit_code = process.wait()  # whatever ends this wait leaves the process alone
    said, answer = folder / _SAID, folder / _ANSWER
    for line in said.read_text(encoding="utf-8").splitlines() if said.exists() else ():
        _log.info("%s", line)
    reply = json.loads(answer.read_bytes()) if answer.exists() else {}
    shutil.rmtree(folder)
    if not reply:
        from turnstile.pipeline.context import open_release
        from turnstile.pipeline.draw.drawing import report_death

        report_death(open_release(programme, week, revision))
    if reply or not report.stat().st_size:
        report.unlink()
    if "sentence" in reply:
        raise _raised(reply["kind"], reply["sentence"])
    if "answer" in reply:
        return str(reply["answer"])
    how = signal.Signals(-exit_code).name if exit_code < 0 else f"exit {exit_code}"
    told = f"; an operator of the private zone reads {report.name}" if report.exists() else ""
    raise DrawDied(
        f"the drawing process died ({how}); if it had charged, that stays charged: the budget page "
        f"says what another draw costs{told}"
    )


def _raised(kind: str, sentence: str) -> TurnstileError:
    """Return an error of ours as it was raised in the other process."""
    error_class = getattr(errors, kind, TurnstileError)
    error: TurnstileError = error_class.__new__(error_class)  # its sentence is made already
    error.args = (sentence,)
    return error


def _draw_here(programme: str, week: str, revision: str, folder: Path, asker: int) -> None:
    """Draw, and leave the answer in a folder of the private zone; raise what nobody foresaw."""
    from turnstile.pipeline.draw.drawing import ASKED, stops_are_heard

    def require_asked() -> None:
        if os.getppid() != asker:
            raise RefusedError("whoever asked for this draw is gone; nothing was charged")
        if heard:
            raise DrawDied("this draw was stopped before its charge; nothing was charged by it")

    ASKED.set(require_asked)
    said = logging.FileHandler(folder / _SAID, encoding="utf-8")
    said.setFormatter(logging.Formatter("%(message)s"))
    _log.addHandler(said)
    _log.setLevel(logging.INFO)
    try:
        with stops_are_heard(_log.info) as heard:
            reply = {"answer": step_named(draw.__name__)(programme, week, int(revision))}
    except TurnstileError as error:
        reply = {"kind": type(error).__name__, "sentence": str(error)}
    finally:
        if os.getppid() != asker:  # nobody reads an answer
            shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        unfinished = folder / "answer.unfinished"
        unfinished.write_text(json.dumps(reply), encoding="utf-8")
        unfinished.rename(folder / _ANSWER)


if __name__ == "__main__":
    _draw_here(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), int(sys.argv[5]))
