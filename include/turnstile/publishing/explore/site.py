"""`explore.html` of a programme and its data: small files of a week, of a place, of some days.

    explore.html                          the page; its program and style lie in explore/
    explore/index.js                      what there is: places, weeks, lines of the map
    explore/weeks/2016-W30-r0.js          all places of one package, made once
    explore/days/2016-W30-r0-0.js         hours of each day of some of its places, made once
    explore/places/17.js                  all weeks of one place

Data are JavaScript that hands over one JSON value, for a page that is opened from a disk may fetch
nothing. A published package never changes, so it is read once; files of places are put together
anew from the files of weeks.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from turnstile.errors import IntegrityError
from turnstile.ledger.weeks import PublishedRevision
from turnstile.programme.domain.files import load_domain
from turnstile.programme.spec import Programme
from turnstile.publishing.contents_check import unknown_in_explorer
from turnstile.publishing.explore.lines_of_map import Plane, corners_of, lines_of
from turnstile.publishing.explore.week_of_places import WeekOfPlaces, week_of_places
from turnstile.publishing.pages import rendered
from turnstile.publishing.series.index import EXPLORER, EXPLORER_PAGE
from turnstile.publishing.series.periods import Period
from turnstile.publishing.week.geography import Place, features_of, keys_of_rows
from turnstile.release.zones import digest_of

INDEX = f"{EXPLORER}/index.js"
FORMAT = 2  # 2: a week says what its rows count
PLACES_A_FILE = 25
_ASSETS = ("explore.js", "explore.css")
_TEMPLATES = files("turnstile.publishing") / "templates"
Record = Mapping[str, Any]
_ABOUT = ("what", "unit", "is_count", "slots")
_NO_PLACES: Record = {"places": [], "week": []}
Kept = tuple[int, str]
"""Size and digest of a file that is there as it should be."""
Files = dict[str, bytes | Kept]


def explorer_files(  # noqa: PLR0913, PLR0917 - what a series is made from
    programme: Programme,
    periods: Sequence[Period],
    in_force: Sequence[PublishedRevision],
    folder: Path,
    include: Path,
    known: Mapping[str, Kept],
) -> Iterator[tuple[str, bytes | Kept]]:
    """Yield the files of the explorer by path below the programme's folder, the page last.

    Where no package has numbers of places that have intervals nothing is yielded.

    Args:
        programme: as it is now.
        periods: in order.
        in_force: releases whose packages are there, in order.
        folder: of the programme in the public zone.
        include: folder of public files.
        known: files that the last publication left.

    Raises:
        IntegrityError: a file would hold what nothing declares.
    """
    earlier = _earlier(folder, known)
    stems: defaultdict[str, list[str]] = defaultdict(list)
    for path in known:
        stems[path.rpartition("-")[0]].append(path)
    weeks: dict[PublishedRevision, Record] = {}
    of_place: dict[Place, list[list[Any]]] = {}
    for revision in in_force:
        days = _path(revision, "days").removesuffix(".js")
        week_files = _kept(folder, (_path(revision), *stems[days]), known)
        record: Record = {}
        numbers = earlier.get(str(revision.key), {}) if week_files else {}
        if not numbers or revision is in_force[-1]:
            record, week_files = _read(folder, revision, week_files) or _made(
                programme, folder, revision
            )
            numbers = dict(zip(map(_place, record["places"]), record["week"], strict=True))
        if not numbers:
            continue
        yield from week_files.items()
        for place, number in numbers.items():
            of_place.setdefault(place, []).append([len(weeks), number])
        weeks[revision] = {name: record[name] for name in _ABOUT} if record else {}
    if not weeks:
        return
    places = sorted(of_place)
    for number, place in enumerate(places):
        path = f"{EXPLORER}/places/{number}.js"
        yield path, _script(path, {"weeks": of_place[place]})
    last = next(reversed(weeks))
    newest = weeks[last] or _handed_over((folder / _path(last)).read_bytes())
    index = _index(programme, include, newest, places, list(weeks), periods)
    if unknown := unknown_in_explorer(index):
        raise IntegrityError(f"{programme.name}: {INDEX} holds what nothing declares: {unknown}")
    yield INDEX, _script(INDEX, index)
    for asset in _ASSETS:
        yield f"{EXPLORER}/{asset}", _TEMPLATES.joinpath(asset).read_bytes()
    yield EXPLORER_PAGE, rendered("explore.html.j2", about=index).encode()


def _path(revision: PublishedRevision, part: str = "weeks", number: str = "") -> str:
    """Return where a file of a package lies."""
    return f"{EXPLORER}/{part}/{revision.key.period}-r{revision.key.revision}{number}.js"


def _place(cell: Sequence[Any]) -> Place:
    """Return mode and label of a place as a file lists it."""
    return str(cell[0]), str(cell[1])


def as_was(folder: Path, path: str, known: Mapping[str, Kept]) -> bytes | None:
    """Return a file as the last publication left it; None if it is not there so."""
    file = folder / path
    is_here = path in known and file.is_file() and not file.is_symlink()  # which may lead anywhere
    content = file.read_bytes() if is_here else None
    return content if content is not None and digest_of(content) == known[path][1] else None


def _earlier(folder: Path, known: Mapping[str, Kept]) -> dict[str, dict[Place, Any]]:
    """Return the number of each place in each release that the last publication knew.

    They stand in the files of places, so that ten years of weeks are not read again for one more.
    """
    content = as_was(folder, INDEX, known)
    index = _handed_over(content) if content else {}
    if index.get("format") != FORMAT:
        return {}
    numbers: dict[str, dict[Place, Any]] = {entry["release"]: {} for entry in index["weeks"]}
    for number, cell in enumerate(index["places"]):
        content = as_was(folder, f"{EXPLORER}/places/{number}.js", known)
        if content is None:
            return {}
        for week, value in _handed_over(content)["weeks"]:
            numbers[index["weeks"][week]["release"]][_place(cell)] = value
    return numbers


def _kept(folder: Path, names: Sequence[str], known: Mapping[str, Kept]) -> Files:
    """Return the files of a package that an earlier publication made; none unless all are there.

    Args:
        folder: of the programme.
        names: of the week's file, then of those of its days.
        known: files that the last publication left.
    """
    is_whole = all(as_was(folder, name, known) is not None for name in names)
    return {name: known[name] for name in names} if is_whole else {}


def _read(folder: Path, revision: PublishedRevision, kept: Files) -> tuple[Record, Files] | None:
    """Return what a kept file says of a package; None where none is kept, or of another form."""
    record = _handed_over((folder / _path(revision)).read_bytes()) if kept else {}
    return (record, kept) if record.get("format") == FORMAT else None


def _made(programme: Programme, folder: Path, revision: PublishedRevision) -> tuple[Record, Files]:
    """Read a package; nothing where it has no numbers of places."""
    week = week_of_places(programme, folder.parent / str(revision.key), revision.key.period)
    if week is None:
        return _NO_PLACES, {}
    made: Files = {}
    hours = list(week.hours_of_days.values())
    for number, first in enumerate(range(0, len(hours), PLACES_A_FILE)):
        path = _path(revision, "days", f"-{number}")
        made[path] = _script(path, {"hours": hours[first : first + PLACES_A_FILE]})
    record = _record(week, revision, len(made))
    return record, made | {_path(revision): _script(_path(revision), record)}


def _record(week: WeekOfPlaces, revision: PublishedRevision, blocks: int) -> dict[str, Any]:
    """Return the file of a week: a list a column, each in the order of the places."""
    columns = ("week", "test", "weekday", "weekend", "hours")
    return {
        "format": FORMAT,
        "release": str(revision.key),
        "manifest_sha256": revision.manifest_sha256,
        **week.about,
        "blocks": blocks,
        "places": [list(place) for place in week.places],
        **{name: [numbers[name] for numbers in week.places.values()] for name in columns},
    }


def _index(  # noqa: PLR0913, PLR0917 - what there is
    programme: Programme,
    include: Path,
    newest: Record,
    places: Sequence[Place],
    weeks: Sequence[PublishedRevision],
    periods: Sequence[Period],
) -> dict[str, Any]:
    """Return what there is; a week says by its place in the list which one a number is of."""
    features = features_of(programme, load_domain(programme, include), include)
    plane = Plane.around(corners_of(features)) if features else None
    at = {
        key: plane.place(feature.center)
        for feature in features
        if plane
        for key in keys_of_rows(feature.mode, feature.label)
    }
    return {
        "format": FORMAT,
        "programme": programme.name,
        "title": programme.title,
        "curator": programme.publish.curator,
        "licence": programme.publish.licence,
        **{name: newest[name] for name in _ABOUT},
        "places_a_file": PLACES_A_FILE,
        "places": [[*place, *at.get(place, ())] for place in places],
        "lines": lines_of(programme, include, plane) if plane else [],
        "weeks": [
            {"period": revision.key.period, "release": str(revision.key)} for revision in weeks
        ],
        "periods": [
            {"period": str(period.period), "state": period.state.value} for period in periods
        ],
    }


def _script(path: str, value: Record) -> bytes:
    """Return a file that hands a value to the page under its name."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return f'turnstile("{path}",{text});\n'.encode()


def _handed_over(content: bytes) -> Record:
    """Return the value of such a file."""
    text = content.decode()
    value: Record = json.loads(text[text.index(",") + 1 : text.rindex(")")])
    return value
