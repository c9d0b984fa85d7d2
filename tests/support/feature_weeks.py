"""Weeks that tests land and release, one of each feature: `bus_weeks` and `tap_weeks` tell them.

A story puts programme, public lists and files into a deployment; it is handed the package of the
released week, and holds it against what is true of the files by plain Python or pandas.
"""

import shutil
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

from small_deployment import WEEK, Deployment

PROGRAMMES = Path(__file__).parents[1] / "pipeline/programmes"
SURE = 6  # standard deviations
Story = Generator[None, Path, None]
Telling = Callable[[Deployment, Path], Story]


@dataclass(frozen=True)
class Feature:
    """A week.

    Args:
        tell: given a deployment and the folder of real data.
        hidden: what stands in the files, and may stand in no output.
        files: a landing folder that it shares with other tests.
        is_real: it needs real data.
        is_long: other weeks have its feed and measures; it is released when there is time.
    """

    programme: str
    tell: Telling
    hidden: tuple[str, ...]
    week: str
    files: str
    is_real: bool
    is_long: bool


FEATURES: dict[str, Feature] = {}


def feature(
    programme: str,
    *hidden: str,
    week: str = WEEK,
    files: str = "",
    is_real: bool = False,
    is_long: bool = False,
) -> Callable[[Telling], Telling]:
    """Let a function be the story of a feature, under its own name."""

    def noted(tell: Telling) -> Telling:
        FEATURES[tell.__name__] = Feature(programme, tell, hidden, week, files, is_real, is_long)
        return tell

    return noted


def add(deployment: Deployment, programme: str) -> None:
    shutil.copy(PROGRAMMES / f"{programme}.yaml", deployment.include / "programmes")


def write_list(deployment: Deployment, name: str, values: dict[str, str]) -> None:
    lines = ["value,label", *(f"{value},{label}" for value, label in values.items())]
    land_lines(deployment.include / "domains", f"{name}.csv", lines)


def land_lines(folder: Path, name: str, lines: Iterable[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(lines) + "\n")


def land_files(folder: Path, *files: Path) -> None:
    folder.mkdir(parents=True)
    for file in files:
        shutil.copyfile(file, folder / file.name)
