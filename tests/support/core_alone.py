"""A Python in which no extension is installed, or only those that are named: `make test-core`.

    python tests/support/core_alone.py FOLDER [EXTENSION...]

All else that the environment holds is there, by links.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import venv
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A test that asks for one itself by `importorskip` does not have its module left out with it.
_NAMES = re.compile(r'(?<!importorskip\(")\bturnstile_(design|lab|native|samples|spark|stores)\b')
_OF_OURS = ("turnstile_", "__editable__")
_SUPPORT = (Path(__file__).parent, ROOT / "tests/simulation", ROOT / "benchmarks")


def make(folder: Path, extensions: Sequence[str] = ()) -> Path:
    """Make the environment; return its Python."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    wanted = tuple(f"turnstile_{name}-" for name in extensions)
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        is_theirs = not entry.name.startswith(_OF_OURS) and entry.suffix != ".pth"
        link = site / entry.name
        if (is_theirs or entry.name.startswith(wanted)) and not link.exists():
            link.symlink_to(entry)
    for script in Path(sys.executable).parent.iterdir():
        if not (folder / "bin" / script.name).exists():
            (folder / "bin" / script.name).symlink_to(script)
    ours = [ROOT / "include", *(ROOT / "extensions" / name for name in extensions)]
    (site / "ours.pth").write_text("".join(f"{path}\n" for path in ours))
    return folder / "bin/python"


@cache
def is_installed(extension: str) -> bool:
    """Whether an extension is there."""
    return find_spec(f"turnstile_{extension}") is not None


@cache
def extensions_of(module: Path) -> frozenset[str]:
    """The extensions that a test names, or the support that it imports."""
    named, reached, todo = set[str](), {module}, [module]
    while todo:
        text = todo.pop().read_text(encoding="utf-8")
        named.update(_NAMES.findall(text))
        imported = re.findall(r"^\s*(?:from|import) (\w+)", text, re.MULTILINE)
        support = {at / f"{name}.py" for at in _SUPPORT for name in imported}
        todo += [path for path in support - reached if path.exists()]
        reached |= support
    return frozenset(named)


def lacks_an_extension(module: Path) -> bool:
    """Whether a test, or a folder by its conftest, is of an extension that is not here."""
    named = module / "conftest.py" if module.is_dir() else module
    return named.exists() and not all(map(is_installed, extensions_of(named)))


if __name__ == "__main__":
    python = make(Path(sys.argv[1]).resolve(), sys.argv[2:])
    print(f"{python}: {', '.join(sys.argv[2:]) or 'no extension'}")
