"""Files of the landing zone: which belong to a week, their digests, and whether they are complete.

A file is read in the form that its name promises (`.csv`, `.csv.gz`, `.zip` with such files inside,
`.parquet`, `.json`, `.json.gz`, `.ndjson`). What is inside is left to `reading`.
"""

from __future__ import annotations

import errno
import re
import zipfile
import zlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from turnstile.closed_folders import closed_folders, unread
from turnstile.durable_files import sha256_of
from turnstile.errors import InputError
from turnstile.service_calendar import ServicePeriod

_CHUNK_BYTES = 1 << 20
# Rows of a feed shrink to a tenth or a fiftieth. What shrinks further and is large is no feed.
_SUSPECT_BYTES = 256 << 20
_SHRINKS_AT_MOST = 200
_HIDDEN = re.compile(r"(^|/)(__MACOSX/|\.[^./])")  # members that nobody delivered


class FileForm(StrEnum):
    """How the bytes of a file are read."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ARROW = "arrow"
    WORKBOOK = "workbook"
    PROTOBUF = "protobuf"
    XML = "XML"
    ZIP = "zip"


_PACKED = ("", ".gz", ".zst")
BY_LINE = (".ndjson", ".geojsonl", ".geojsons")
_OF_JSON = ("json", "ndjson", "geojson", "geojsonl", "geojsons")
_FORMS = (
    *((f".{text}{packed}", FileForm.CSV) for text in ("csv", "txt", "tsv") for packed in _PACKED),
    *((f".{text}{packed}", FileForm.JSON) for text in _OF_JSON for packed in _PACKED),
    *((f".pb{packed}", FileForm.PROTOBUF) for packed in _PACKED),
    *((f".xml{packed}", FileForm.XML) for packed in _PACKED),
    (".parquet", FileForm.PARQUET),
    (".feather", FileForm.ARROW),
    (".arrow", FileForm.ARROW),
    (".xlsx", FileForm.WORKBOOK),
    (".zip", FileForm.ZIP),
)


@dataclass(frozen=True, slots=True)
class RawFile:
    """One file as it was delivered.

    Args:
        name: path below the landing zone, or `archive.zip/member.csv`; named in messages.
        path: where its bytes are.
        form: how they are read.
    """

    name: str
    path: Path
    form: FileForm


def form_of(name: str) -> FileForm:
    """Return the form that a file name promises.

    Raises:
        InputError: no form is known by that ending.
    """
    for ending, form in _FORMS:
        if name.lower().endswith(ending):
            return form
    endings = ", ".join(ending for ending, _ in _FORMS)
    rule = f"a landing file ends in one of {endings}; rename it or move it out of the folder"
    raise InputError(where=name, field="file name", rule=rule)


def packing_of(name: str) -> str:
    """Return how a file is packed, by its name.

    Examples:
        >>> packing_of("TRIPS.CSV.GZ"), packing_of("trips.csv")
        ('.gz', '')
    """
    return next(packed for packed in reversed(_PACKED) if name.lower().endswith(packed))


def find_files(landing: Path, pattern: str, week: ServicePeriod) -> tuple[RawFile, ...]:
    """List the files of a week in the order of their names; hidden files are passed over.

    Args:
        landing: landing zone.
        pattern: glob below it; `{week}` stands for each ISO week that the period touches.
        week: period asked for.

    Raises:
        InputError: no file, a file of an unknown form, or a folder that cannot be read.
    """
    globs = {pattern.replace("{week}", str(iso_week)) for iso_week in week.weeks}
    paths = sorted(path for glob in globs for path in data_files(landing, glob))
    if not paths:
        rule = f"no file of week {week} is there; deliver it, or correct source.landing"
        raise InputError(where=f"landing zone, {min(globs)}", field="files", rule=rule)
    names = [path.relative_to(landing).as_posix() for path in paths]
    return tuple(RawFile(n, path, form_of(n)) for n, path in zip(names, paths, strict=True))


def has_files(landing: Path, pattern: str, week: ServicePeriod) -> bool:
    """Return whether any file of a week is there, whatever its form."""
    globs = (pattern.replace("{week}", str(iso_week)) for iso_week in week.weeks)
    return any(data_files(landing, glob) for glob in globs)


def data_files(landing: Path, glob: str) -> list[Path]:
    """Return the files of a landing zone that are read; hidden ones are on their way.

    Raises:
        InputError: a folder cannot be read, so nobody knows which files there are.
    """
    for folder, error in closed_folders(landing, glob):
        place = folder.relative_to(landing.parent).as_posix()
        raise InputError(where="landing zone", field="files", rule=unread(place, error))
    return [p for p in landing.glob(glob) if p.is_file() and not p.name.startswith(".")]


def fingerprints(landing: Path, pattern: str, week: ServicePeriod) -> tuple[tuple[str, str], ...]:
    """Return name and SHA-256 of each file of a week, in the order of their names.

    Raises:
        InputError: no file, or a file of an unknown form.
    """
    return tuple((file.name, sha256_of(file.path)) for file in find_files(landing, pattern, week))


def unpack(file: RawFile, folder: Path) -> tuple[RawFile, ...]:
    """Return the files to read: the file itself, or the members of an archive, put in a folder.

    Members are written under new names, so a member's own path cannot lead out of the folder; the
    archive's checksums are compared on the way.

    Raises:
        InputError: empty file, damaged archive, or an archive without a file to read.
    """
    if file.path.stat().st_size == 0:
        rule = "the file is empty, not even a header; deliver it again"
        raise InputError(where=file.name, field="file", rule=rule)
    if file.form is not FileForm.ZIP:
        return (file,)
    try:
        members = _extract(file, folder)
    except (zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError, zlib.error):
        raise _damaged(file) from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # an archive that names a place before its own beginning
            raise
        raise _damaged(file) from None
    if not members:
        rule = "the archive holds no file; deliver it again"
        raise InputError(where=file.name, field="file", rule=rule)
    return members


def _damaged(file: RawFile) -> InputError:
    """Say that an archive cannot be unpacked."""
    rule = "the archive is cut off, damaged or encrypted; deliver it again"
    return InputError(where=file.name, field="file", rule=rule)


def refuse_bomb(name: str, packed_bytes: int, unpacked_bytes: int) -> None:
    """Refuse a file that unpacks to far more than rows do; called while it is unpacked.

    Raises:
        InputError: it would fill the disk.
    """
    if unpacked_bytes > _SUSPECT_BYTES and unpacked_bytes > packed_bytes * _SHRINKS_AT_MOST:
        rule = (
            f"unpacks to more than {_SHRINKS_AT_MOST} times its size, as rows never do; deliver it "
            "unpacked if it is right"
        )
        raise InputError(where=name, field="file", rule=rule)


def _extract(file: RawFile, folder: Path) -> tuple[RawFile, ...]:
    """Copy the members of an archive into a folder, one by one, in the order of their names.

    Hidden ones are passed over, as hidden files are, and what a Mac puts beside each (`__MACOSX/`).
    """
    members = []
    with zipfile.ZipFile(file.path) as archive:
        every = [info for info in archive.infolist() if not info.is_dir()]
        inside = [info for info in every if not _HIDDEN.search(info.filename)]
        for number, info in enumerate(sorted(inside, key=lambda info: info.filename)):
            member_name = f"{file.name}/{info.filename}"
            form = form_of(member_name)
            if form is FileForm.ZIP:
                rule = "an archive inside an archive is not read; unpack it"
                raise InputError(where=member_name, field="file", rule=rule)
            path = folder / f"member-{number}.{form}{packing_of(info.filename)}"
            with archive.open(info) as source, path.open("wb") as target:
                while chunk := source.read(_CHUNK_BYTES):
                    target.write(chunk)
                    refuse_bomb(member_name, info.compress_size, target.tell())
            members.append(RawFile(member_name, path, form))
    return tuple(members)
