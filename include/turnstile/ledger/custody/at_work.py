"""Whether a process of this machine publishes a release at this moment, or did and is over."""

from __future__ import annotations

import fcntl
from pathlib import Path

PUBLISHING = ".publish.lock"
"""In the folder of a release under embargo: whoever publishes it holds this."""


def is_published_now(embargoed: Path | None, key: object) -> bool | None:
    """Return whether a process holds the publication of a release; None if none of here ever did.

    Nothing is written, and whoever asks for it meanwhile waits for a moment at most.

    Args:
        embargoed: zone.
        key: of the release.
    """
    if embargoed is None:
        return None
    try:
        with (embargoed / str(key) / PUBLISHING).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # another machine's, or it may not be read
        return None
    return False
