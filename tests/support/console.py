"""The console script in this process: what it ends with, what it says, and the week it releases."""

import contextlib
import io
import sys
from pathlib import Path

from small_deployment import WEEK, Deployment

from turnstile.cli import main


def ended(*arguments: object) -> tuple[int, str, str]:
    """Run a command; return its exit code and what it printed, which is printed on."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    sys.stdout.write(out.getvalue())
    sys.stderr.write(err.getvalue())
    return code, out.getvalue(), err.getvalue()


def tells(*arguments: object) -> str:
    """Return what a command that succeeds prints."""
    code, out, err = ended(*arguments)
    assert code == 0, (arguments, err)
    return out


def refuses(said: str, *arguments: object, code: int = 2) -> str:
    """See a command end with a code and a sentence; return all that it says on standard error."""
    exit_code, _, err = ended(*arguments)
    assert exit_code == code, (arguments, err)
    assert said in err
    assert "Traceback" not in err
    return err


def released(deployment: Deployment, programme: str, week: str = WEEK) -> Path:
    """Release a week and check it as anybody can; return its package."""
    tells("check", programme)
    tells("run", programme, "--week", week)
    package = deployment.public / programme / week / "r0"
    tells("package", "verify", package)
    tells("estimates", "verify", package)
    return package
