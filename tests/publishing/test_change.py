"""What "Where a change goes" promises of a package's files and of feeds, done in a scratch copy."""

from __future__ import annotations

from pathlib import Path

from scratch_copy import ScratchCopy

_MODULE = '''"""`counts.txt`: how many tables there are."""

from __future__ import annotations

from turnstile.publishing.contents import Contents


def write(contents: Contents) -> bytes:
    """Return the number of tables."""
    return b"%d tables" % len(contents.tables)
'''
_ENTRY = """FILES: tuple[PackageFile, ...] = (
    PackageFile("counts.txt", "text/plain", "Tables", (Source.DECLARED,), counts.write),
"""
_ASK = """
import json
from pathlib import Path
from turnstile.publishing.contents_check import unknown_contents
from turnstile.publishing.files import FILES

class Contents:
    tables = (1, 2)

(file,) = [one for one in FILES if one.path == "counts.txt"]
folder = Path("package")
folder.mkdir()
(folder / "plan.json").write_text(json.dumps({"events": []}))
(folder / file.path).write_bytes(file.write(Contents()))
assert unknown_contents(folder) == (), unknown_contents(folder)
print((folder / file.path).read_text())
"""
_FEED = """
from turnstile.cli import main
from turnstile.pipeline.context import open_release
from turnstile.sources.ingest import ingest

weeks = ["--weeks", "2016-W30:2016-W30", "--rows", "300", "--seed", "1"]
assert main(["sample", "opal", *weeks]) == 0
release = open_release("opal", "2016-W30")
settings = release.settings
read = ingest(
    release.programme,
    release.week,
    landing=settings.landing,
    private=settings.private,
    progress=lambda _: None,
)
print(len(read.days), "days")
"""
_PROGRAMME = "include/programmes/opal.yaml"


def test_an_output_file_is_one_module_and_one_entry(tmp_path: Path) -> None:
    copy = ScratchCopy(tmp_path)
    copy.add("include/turnstile/publishing/counts.py", _MODULE)
    files = "include/turnstile/publishing/files.py"
    copy.replace(files, "FILES: tuple[PackageFile, ...] = (\n", _ENTRY)
    copy.replace(files, "    croissant,\n", "    counts,\n    croissant,\n")
    assert "2 tables" in copy.run(_ASK)
    assert len(copy.touched_sources) == 2


def test_a_file_without_an_entry_is_in_no_package(tmp_path: Path) -> None:
    assert "not enough values" in ScratchCopy(tmp_path).run(_ASK, expect_failure=True)


def test_a_feed_is_one_module_and_an_entry_in_two_registries(tmp_path: Path) -> None:
    copy = ScratchCopy(tmp_path)
    alike = "from turnstile.sources.opal_trips import LAYOUT\n\n__all__ = ['LAYOUT']\n"
    copy.add("include/turnstile/sources/ferry_trips.py", alike)
    spec, feeds = "include/turnstile/programme/source_spec.py", "include/turnstile/sources/feeds.py"
    name = '    OPAL_TRIPS = "opal_trips"\n'
    copy.replace(spec, name, f'{name}    FERRY_TRIPS = "ferry_trips"\n')
    copy.replace(feeds, "import (\n", "import (\n    ferry_trips,\n")
    layout = "    Feed.OPAL_TRIPS: opal_trips.LAYOUT,\n"
    copy.replace(feeds, layout, f"{layout}    Feed.FERRY_TRIPS: ferry_trips.LAYOUT,\n")
    copy.replace(_PROGRAMME, "feed: opal_trips", "feed: ferry_trips")
    assert "7 days" in copy.run(_FEED)
    assert len(copy.touched_sources) == 3


def test_without_them_the_feed_is_refused(tmp_path: Path) -> None:
    copy = ScratchCopy(tmp_path)
    copy.replace(_PROGRAMME, "feed: opal_trips", "feed: ferry_trips")
    assert "ferry_trips" in copy.run(_FEED, expect_failure=True)
