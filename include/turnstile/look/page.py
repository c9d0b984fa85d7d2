"""The page of a look: Markdown and JSON in the private zone, readable by their owner alone."""

from __future__ import annotations

import json
from pathlib import Path

from turnstile.durable_files import OWNER_ONLY, replace_durably
from turnstile.look.looking import Look

PAGE, RECORD = "look.md", "look.json"
_NOTICE = (
    "PRIVATE: exact counts and raw examples of delivered files. Nothing of this page leaves the "
    "private zone, but the lines of YAML that somebody decides to write down: their words become "
    "public."
)


def write_page(look: Look, title: str, folder: Path) -> Path:
    """Write page and record below a folder of the private zone; return the page.

    Args:
        look: what was found.
        title: programme and week, or names of files.
        folder: made if need be.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    record = {
        "title": title,
        "ready": look.is_ready,
        "decisions": [
            {"key": decision.key, "line": decision.line, "why": decision.why, "must": decision.must}
            for decision in look.decisions
        ],
        "sections": {name: list(lines) for name, lines in look.sections},
    }
    content = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    replace_durably(folder / RECORD, content.encode(errors="replace"), OWNER_ONLY)
    replace_durably(folder / PAGE, _text(look, title).encode(errors="replace"), OWNER_ONLY)
    return folder / PAGE


def _text(look: Look, title: str) -> str:
    parts = [f"# A look at {title}", _NOTICE]
    parts.append("## Ready" if look.is_ready else "## To decide")
    if not look.decisions:
        parts.append("Nothing is left to decide.")
    for decision in look.decisions:
        must = "" if decision.must else " (may stay as it is)"
        line = f"\n\n```yaml\n{decision.line}\n```" if decision.line else ""
        parts.append(f"**{decision.key}**{must}: {decision.why}{line}")
    for name, lines in look.sections:
        parts.append(f"## {name}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"
