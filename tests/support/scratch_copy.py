"""A scratch copy of the source tree, for tests that do to it what a contributor would do.

Dimensions, mechanisms, gates, feeds ... are added to it, Python runs there as the product would,
and it says which source files had to be touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_AWAY = shutil.ignore_patterns("*.egg-info")  # compiled modules come along: nothing else is quick


@dataclass
class ScratchCopy:
    """A copy of `include/` and `extensions/`, and which of its files were changed or added.

    Args:
        root: an empty folder of the test.
    """

    root: Path
    touched: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        shutil.copytree(ROOT / "include", self.root / "include", ignore=_AWAY)
        shutil.copytree(ROOT / "extensions", self.root / "extensions", ignore=_AWAY)
        shutil.copy(ROOT / "pyproject.toml", self.root)

    def add(self, path: str, text: str) -> None:
        """Write a new file, named from the root: `include/turnstile/...`."""
        target = self.root / path
        assert not target.exists(), f"{path} is there already"
        target.write_text(text, encoding="utf-8")
        self.touched.add(path)

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace a text that stands exactly once in a file."""
        target = self.root / path
        text = target.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path} holds {text.count(old)} times: {old}"
        target.write_text(text.replace(old, new), encoding="utf-8")
        self.touched.add(path)

    @property
    def touched_sources(self) -> list[str]:
        """Changed and added modules, lists, pages; programme, domain and proof files are none."""
        sources = (p for p in self.touched if p.startswith(("include/turnstile", "extensions/")))
        return sorted(path for path in sources if path.endswith((".py", ".csv", ".txt", ".html")))

    @property
    def _python_path(self) -> list[Path]:
        """Where Python finds the copy's modules, before those that are installed."""
        of_extensions = sorted((self.root / "extensions").iterdir())
        return [self.root / "include", *of_extensions, ROOT / "tests/support"]

    def run(self, code: str) -> str:
        """Run Python over the copy and return what it prints."""
        kept = ("PATH", "LANG", "LC_ALL")
        environment = {name: os.environ[name] for name in kept if name in os.environ}  # noqa: TID251
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", code],
            cwd=self.root,
            env={
                **environment,
                "HOME": str(self.root),
                "TURNSTILE_HOME": str(self.root / "var"),
                "PYTHONPATH": ":".join(map(str, self._python_path)),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        return said
