"""What a look is asked of: a programme with its landing zone, or any files with none."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from turnstile.errors import InputError, TurnstileError
from turnstile.look.asked import Asked
from turnstile.programme.domain.files import load_domain
from turnstile.programme.gtfs.timetable import read_calls
from turnstile.programme.key import UNDECIDED
from turnstile.programme.loading import programme_file
from turnstile.programme.problems import problems_of
from turnstile.programme.source_spec import DateForm, Feed
from turnstile.programme.spec import Programme
from turnstile.programme.yaml_text import compose, values_of
from turnstile.service_calendar import ServiceWeek, parse_period
from turnstile.settings import Settings
from turnstile.sources.ingest.snapshot import folder_of
from turnstile_design.first_programme.delivered_columns import look_at, renamed_columns
from turnstile_design.first_programme.new_programme import draft_of

_WEEK = re.compile(r"\d{4}-W\d{2}")
_LOOKS = "looks"
_OPEN_FEED = f"feed: {UNDECIDED}"
Opened = tuple[Asked, str, Path]


@contextmanager
def asked_of_programme(name: str, week: str | None, settings: Settings) -> Iterator[Opened]:
    """Open a programme, what nobody has decided in it yet mended, and the files of a week.

    Raises:
        InputError: there is no such programme, no file, or a fault that is no open decision.
    """
    file = programme_file(name, settings.include)
    programme, undecided = _mended(_with_feed(file.text, settings), file.path.name)
    if _OPEN_FEED in file.text:
        undecided |= {"source.feed"}
    period = parse_period(week or _last_week(programme, settings))
    try:
        domain = load_domain(programme, settings.include)
    except TurnstileError:  # its public files are for `check` to judge
        domain = None
    asked = Asked(
        programme=programme,
        undecided=undecided,
        week=period,
        landing=settings.landing,
        private=settings.private,
        domain=domain,
        timetable=read_calls(programme, settings.include, period.days),
        memory=settings.memory_limit,
    )
    yield asked, f"{name} {period}", folder_of(settings.private, name, str(period), "look")


@contextmanager
def asked_of_files(  # noqa: PLR0913, PLR0917 - as they are given
    files: Sequence[Path],
    feed: str | None,
    columns: list[str],
    zone: str | None,
    week: str | None,
    settings: Settings,
) -> Iterator[Opened]:
    """Open files that no programme names yet, under a draft of one.

    Raises:
        InputError: a file is not there, or fits no feed.
    """
    renamed = renamed_columns(columns)
    deliveries = [
        look_at(path, renamed, Feed(feed) if feed else None, private=settings.private)
        for path in files
    ]
    programme, undecided = _mended(draft_of(deliveries[0], zone), "look.yaml")
    undecided |= {"source.modes"}
    if feed is None and not deliveries[0].is_plain:
        undecided |= {"source.feed"}
    settings.private.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=".landing-", dir=settings.private) as folder:
        for number, path in enumerate(files):
            (Path(folder) / f"{number}-{path.name}").symlink_to(path.resolve())
        source = replace(programme.source, landing="*")
        asked = Asked(
            programme=replace(programme, source=source),
            undecided=undecided,
            week=None if week is None else ServiceWeek.parse(week),
            landing=Path(folder),
            private=settings.private,
            memory=settings.memory_limit,
        )
        title = ", ".join(path.name for path in files)
        yield asked, title, settings.private / _LOOKS / files[0].name.partition(".")[0]


def _with_feed(text: str, settings: Settings) -> str:
    """Return the text of a programme with the feed that its files fit, where nobody decided it."""
    if _OPEN_FEED not in text:
        return text
    source = values_of(compose(text, "programme.yaml")).get("source", {})
    columns = {
        key: str(column) for key, column in source.get("columns", {}).items() if column != UNDECIDED
    }
    files = sorted(settings.landing.glob(str(source.get("landing")).replace("{week}", "*")))
    for path in files[-1:]:
        delivery = look_at(path, columns, private=settings.private)
        return text.replace(_OPEN_FEED, f"feed: {delivery.feed}")
    return text


def _mended(text: str, file: str) -> tuple[Programme, frozenset[str]]:
    """Return a programme as far as it is decided, and the keys that nobody has decided.

    Raises:
        InputError: it has another fault.
    """
    undecided = frozenset(_undecided(values_of(compose(text, file)), ""))
    checked = problems_of(text, file)
    others = [problem for problem in checked.problems if problem.field not in undecided]
    if checked.programme is None or (others and not undecided):
        raise (others or list(checked.problems))[0]
    source = checked.programme.source  # where a column is not decided, an example stands for it
    columns = tuple(pair for pair in source.columns if f"source.columns.{pair[0]}" not in undecided)
    mode = None if "source.without_mode" in undecided else source.without_mode
    form = DateForm.ISO if "source.date_form" in undecided else source.date_form
    mended = replace(source, columns=columns, without_mode=mode, date_form=form)
    return replace(checked.programme, source=mended), undecided


def _undecided(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - YAML
    """Yield the paths that stand as `decide`."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _undecided(below, f"{path}.{key}" if path else str(key))
    elif value == UNDECIDED:
        yield path


def _last_week(programme: Programme, settings: Settings) -> str:
    """Return the last week of which the landing zone has files.

    Raises:
        InputError: there is none.
    """
    pattern = programme.source.landing
    paths = (str(path) for path in settings.landing.glob(pattern.replace("{week}", "*")))
    weeks: list[str] = sorted({week for path in paths for week in _WEEK.findall(path)})
    if not weeks:
        rule = f"no file is there; put a week's files into {settings.landing}/{pattern}"
        raise InputError(where=programme.name, field="source.landing", rule=rule)
    return weeks[-1]
