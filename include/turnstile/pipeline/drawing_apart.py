"""The draw in a process of its own, which a task that is cleared, retried or killed leaves alone.

Whoever asked for it waits for its answer; whoever asks again meanwhile waits for its seal
(`drawing`). A draw is burned only where this very process dies between its charge and its seal.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from turnstile import errors
from turnstile.errors import TurnstileError
from turnstile.pipeline.steps import draw, step_named
from turnstile.settings import Settings

_ANSWER = "answer.json"
_SAID = "said.log"
_log = logging.getLogger("turnstile")


def draw_apart(programme: str, week: str, revision: int = 0) -> str:
    """Do the step `draw` in a process of its own; return what it returns.

    Raises:
        TurnstileError: whatever the step raised, by its kind and sentence; or its process died, or
            failed in a way that nobody foresaw, of which the private zone has a report.
    """
    settings = Settings.from_environment()
    work = settings.private / "draws"
    work.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = Path(tempfile.mkdtemp(dir=work))
    command = [sys.executable, "-m", __name__, programme, week, str(revision), str(folder)]
    with (folder / "errors.txt").open("wb") as stderr:
        # Not `subprocess.run`: whatever is raised here, such as a timeout, it would kill that one.
        process = subprocess.Popen(  # noqa: S603 - this very module
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
        exit_code = process.wait()
    for line in _lines(folder / _SAID):
        _log.info("%s", line)
    if not (folder / _ANSWER).exists():
        from turnstile.pipeline.context import open_release
        from turnstile.pipeline.drawing import report_death

        report_death(open_release(programme, week, revision))
    return _answer(folder, exit_code)


def _answer(folder: Path, exit_code: int) -> str:
    """Return what the process answered, or raise what it raised; what nobody needs goes."""
    path = folder / _ANSWER
    if not path.exists():
        how = signal.Signals(-exit_code).name if exit_code < 0 else f"exit {exit_code}"
        raise TurnstileError(
            f"the drawing process died ({how}); if it had charged, that stays charged: the budget "
            f"page says what another draw costs. An operator of the private zone reads draws/"
            f"{folder.name}"
        )
    answer = json.loads(path.read_bytes())
    if "report" in answer:
        raise TurnstileError(
            f"the draw failed ({answer['kind']}); an operator of the private zone reads draws/"
            f"{folder.name}"
        )
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    if "sentence" in answer:
        raise _raised(answer["kind"], answer["sentence"])
    return str(answer["answer"])


def _raised(kind: str, sentence: str) -> TurnstileError:
    """Return an error of ours as it was raised in the other process."""
    found = getattr(errors, kind, TurnstileError)
    error: TurnstileError = found.__new__(found)  # its sentence is made already
    error.args = (sentence,)
    return error


def _lines(path: Path) -> tuple[str, ...]:
    """Return what the step said, a line each."""
    return tuple(path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()


def _draw_here(programme: str, week: str, revision: str, folder: Path) -> None:
    """Draw, and leave answer or error in a folder of the private zone."""
    said = logging.FileHandler(folder / _SAID, encoding="utf-8")
    said.setFormatter(logging.Formatter("%(message)s"))
    _log.addHandler(said)
    _log.setLevel(logging.INFO)
    try:
        found = {"answer": step_named(draw.__name__)(programme, week, int(revision))}
    except TurnstileError as error:
        found = {"kind": type(error).__name__, "sentence": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever it is, its text may hold a raw value
        text = "".join(traceback.format_exception(error))
        found = {"kind": type(error).__name__, "report": text}
    unfinished = folder / "answer.unfinished"
    unfinished.write_text(json.dumps(found), encoding="utf-8")
    unfinished.rename(folder / _ANSWER)


if __name__ == "__main__":
    _draw_here(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
