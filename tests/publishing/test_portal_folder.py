"""Portals by address: a folder by the command and by a release, older and altered states."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from functools import partial
from hashlib import md5
from pathlib import Path
from threading import Barrier, BrokenBarrierError, current_thread, main_thread

import pytest
from small_deployment import WEEK
from small_package import KEY, write_package

from turnstile.cli import main
from turnstile.durable_files import sha256_of
from turnstile.errors import InputError, IntegrityError, RefusedError
from turnstile.ledger.of_deployment import open_ledger
from turnstile.programme.loading import load_programme
from turnstile.publishing.series.writing import write_series
from turnstile.settings import Settings
from turnstile_stores.bucket import Found
from turnstile_stores.portals.addresses import portal_address
from turnstile_stores.portals.folder import FolderStore
from turnstile_stores.portals.sending import send_release
from turnstile_stores.portals.site import send_site, verify_site
from turnstile_stores.portals.store import PortalError


@pytest.mark.parametrize(
    ("text", "kind", "name", "host", "path"),
    [
        ("file:///srv/www/", "file", "file:///srv/www", "", "/srv/www"),
        ("s3://bucket", "s3", "s3://bucket", "bucket", ""),
        ("s3://bucket/a/b?endpoint=http://x", "s3", "s3://bucket/a/b", "bucket", "/a/b"),
        (
            "ckan+https://data.example/sub?organization=o",
            "ckan",
            "ckan+https://data.example/sub",
            "https://data.example/sub",
            "/sub",
        ),
    ],
)
def test_addresses_are_read(text: str, kind: str, name: str, host: str, path: str) -> None:
    read = portal_address(text)
    assert (read.kind, read.name, read.host, read.path) == (kind, name, host, path)


@pytest.mark.parametrize(
    "text",
    [
        "/srv/www",
        "file://srv/www",
        "file:///",
        "s3:///prefix",
        "s3://key:secret@bucket",
        "s3://bucket?acl=public",
        "ckan+https://data.example",
        "ckan://data.example?organization=o",
        "https://data.example",
        "ftp://a/b",
    ],
)
def test_other_addresses_are_refused_and_no_secret_is_told(text: str) -> None:
    with pytest.raises(InputError) as refused:
        portal_address(text)
    assert "write" in str(refused.value) or "portal" in str(refused.value)


def test_a_release_goes_to_the_portals_of_its_programme(copied_home: Path) -> None:
    site = copied_home.parent / "site"
    programme = copied_home.parent / "include/programmes/opal.yaml"
    programme.write_text(
        programme.read_text().replace("publish:\n", f'publish:\n  to: ["{site.as_uri()}"]\n')
    )
    run = ["run", "opal", "--week", WEEK]
    assert main(run) == 0
    sent = {path: path.stat().st_mtime_ns for path in site.rglob("*") if path.is_file()}
    public = copied_home / "public"
    for path in public.rglob("*"):
        name = path.relative_to(public)
        is_sent = name.parts[0] in {"opal", "ledger.pub"} and path.name != ".series.lock"
        if path.is_file() and is_sent and name.parts[1:2] != ("latest",):
            assert (site / name).read_bytes() == path.read_bytes(), name
    assert main(run) == 0
    assert {path: path.stat().st_mtime_ns for path in sent} == sent
    assert main(["portal", "verify", "opal"]) == 0
    assert main(["portal", "verify", "opal", "--to", f"{site.as_uri()}-of-others"]) == 1
    assert main(["portal", "list", "opall"]) == 2
    (site / f"opal/{WEEK}/r0/README.md").write_text("planted")
    assert main(["portal", "verify", "opal"]) == 4
    (site / f"opal/{WEEK}/r0/README.md").unlink()
    assert main(["portal", "verify", "opal"]) == 1


@pytest.mark.parametrize("line", ['to: ["https://data.example"]', "holidays: domains/absent.csv"])
def test_check_finds_what_a_publication_would_stumble_over(copied_home: Path, line: str) -> None:
    programme = copied_home.parent / "include/programmes/itms.yaml"
    assert main(["check", "itms"]) == 0
    programme.write_text(programme.read_text().replace("publish:\n", f"publish:\n  {line}\n"))
    assert main(["check", "itms"]) == 2


def test_a_portal_that_is_no_place_fails_and_the_release_stays_public(copied_home: Path) -> None:
    place = copied_home.parent / "taken"
    place.write_text("a file")
    assert main(["portal", "send", "opal", "--to", place.as_uri()]) == 1
    assert main(["portal", "send", "opal"]) == 2  # none is named
    assert main(["portal", "send", "itms_month", "--to", place.as_uri()]) == 2  # nothing is public
    assert (copied_home / f"public/opal/{WEEK}/r0/manifest.json").is_file()


def test_a_broken_package_is_not_sent(tmp_path: Path) -> None:
    package = write_package(tmp_path / "package")
    (package / "README.md").write_text("altered")
    with pytest.raises(IntegrityError, match="nothing was sent"):
        send_release(FolderStore(tmp_path / "site"), "file", package, KEY)
    assert not (tmp_path / "site").exists()


def _named(public: Path) -> dict[str, str]:
    """Return the digest of everything in a zone, as a list that names it all."""
    files = (path for path in public.rglob("*") if path.is_file())
    return {path.relative_to(public).as_posix(): sha256_of(path) for path in files}


def test_an_older_state_never_takes_the_place_of_a_newer_one(
    published: Path, tmp_path: Path
) -> None:
    older = tmp_path / "older"
    shutil.copytree(published, older, symlinks=True)
    index = older / "opal/series/index.json"
    about = json.loads(index.read_bytes())
    index.write_text(json.dumps(about | {"ledger_sequence": 1}))
    store = FolderStore(tmp_path / "site")
    send_site(store, "file", older, "opal", partial(_named, older))
    send_site(store, "file", published, "opal", partial(_named, published))
    whole = (tmp_path / "site/opal/series/index.json").read_bytes()
    with pytest.raises(RefusedError, match="another publisher knows more"):
        send_site(store, "file", older, "opal", partial(_named, older))
    assert (tmp_path / "site/opal/series/index.json").read_bytes() == whole


def test_what_somebody_did_to_a_series_at_a_portal_is_put_right(
    copied_home: Path, tmp_path: Path
) -> None:
    """Its index alone was compared."""
    assert copied_home
    folder = tmp_path / "site/opal"
    to = ("opal", "--to", (tmp_path / "site").as_uri())
    assert main(["portal", "send", *to]) == 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    altered, gone = sorted((folder / "series").rglob("*.parquet"))[:2]
    altered.write_bytes(b"others")
    gone.unlink()
    for planted in ("series/data/rows.csv", "explore/rows.js"):
        (folder / planted).write_text("card,time")
    assert main(["portal", "verify", *to]) == 1
    assert main(["portal", "send", *to]) == 0
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (folder / "series/index.json").write_text("[")
    assert main(["portal", "send", *to]) == 0
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["portal", "verify", *to]) == 0


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["hidden", "dangling", "folder", "file", "index", "part", "whole"])
def test_links_and_hidden_files_at_a_portal_are_put_right(
    copied_home: Path, tmp_path: Path, kind: str
) -> None:
    assert copied_home
    series, aside = tmp_path / "site/opal/series", tmp_path / "aside"
    to = ("opal", "--to", (tmp_path / "site").as_uri())
    assert main(["portal", "send", *to]) == 0
    draft = series / ".days.csv.0123456789abcdef"  # of somebody who writes at this moment
    draft.write_text("day")
    before = {path: path.read_bytes() for path in series.rglob("*") if path.is_file()}
    if kind == "hidden":
        (series / ".rows.csv").write_text("card,time")
    elif kind == "dangling":
        (series / "rows.csv").symlink_to("/nowhere")
    elif kind == "folder":
        aside.mkdir()
        (aside / "rows.csv").write_text("card,time")
        (series / "more").symlink_to(aside)
    else:
        place = {
            "file": max(series.rglob("*.parquet")),
            "index": series / "index.json",
            "part": series / "data",
            "whole": series,
        }[kind]
        shutil.move(place, aside)
        place.symlink_to(aside)
    kept = {path: path.read_bytes() for path in (aside, *aside.rglob("*")) if path.is_file()}
    assert main(["portal", "send", *to]) == 0
    left = [path for path in (series, *series.rglob("*")) if path.is_symlink()]
    after = {path: path.read_bytes() for path in series.rglob("*") if path.is_file()}
    gone = {draft} if kind == "whole" else set()  # lies where the link led
    assert (left, after) == ([], {path: before[path] for path in before.keys() - gone})
    assert all(path.read_bytes() == content for path, content in kept.items())
    assert main(["portal", "verify", *to]) == 0


PAGES = ["explore.html", "index.html", "feed.atom", "feed.json", "../index.html", "../ledger.pub"]


@pytest.mark.some(3)
@pytest.mark.parametrize("is_other", [True, False], ids=["other bytes", "the same bytes"])
@pytest.mark.parametrize("page", PAGES)
def test_links_in_the_place_of_pages_at_a_portal_are_put_right(
    copied_home: Path, tmp_path: Path, page: str, *, is_other: bool
) -> None:
    """What it led to was taken for what was sent, for as long as it held the same."""
    sent, aside = copied_home / "public/opal" / page, tmp_path / "aside"
    to = ("opal", "--to", (tmp_path / "site").as_uri())
    assert main(["portal", "send", *to]) == 0
    place = tmp_path / "site/opal" / page
    place.rename(aside)
    if is_other:
        aside.write_text("of others")
    kept = aside.read_bytes()
    place.symlink_to(aside)
    assert main(["portal", "send", *to]) == 0
    assert not place.is_symlink()
    assert place.read_bytes() == sent.read_bytes()
    assert aside.read_bytes() == kept


def test_a_link_in_the_place_of_an_explorer_that_nobody_sends_goes(
    published: Path, tmp_path: Path
) -> None:
    public, site = tmp_path / "public", tmp_path / "site"
    shutil.copytree(published, public, symlinks=True)
    index = public / "opal/series/index.json"
    about = json.loads(index.read_bytes())
    about["files"] = [file for file in about["files"] if file["path"] != "explore.html"]
    index.write_text(json.dumps(about))
    (public / "opal/explore.html").unlink()
    (site / "opal").mkdir(parents=True)
    (site / "opal/explore.html").symlink_to("/nowhere")
    send_site(FolderStore(site), "file", public, "opal", partial(_named, public))
    assert not (site / "opal/explore.html").is_symlink()


class TaggedOtherwise(FolderStore):
    """A store whose list tags objects by no MD5, as buckets that encrypt by a key of KMS do."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.reading = Barrier(2)
        self.read_at_once = 0

    def tags(self, prefix: str) -> dict[str, str]:
        return dict.fromkeys(super().tags(prefix), '"of a key"')

    def read(self, path: str) -> Found | None:
        if path.endswith(".parquet") and current_thread() is not main_thread():
            with suppress(BrokenBarrierError):  # an odd one is alone
                self.reading.wait(5)
                self.read_at_once += 1
        return super().read(path)


def test_objects_of_a_store_without_digests_are_read_a_few_at_once(
    published: Path, tmp_path: Path
) -> None:
    """They were read one after the other: a second each, of years of weeks."""
    send_site(FolderStore(tmp_path), "file", published, "opal", partial(_named, published))
    store = TaggedOtherwise(tmp_path)
    send_site(store, "file", published, "opal", partial(_named, published))
    assert store.read_at_once >= 2
    store = TaggedOtherwise(tmp_path)
    verify_site(store, "file", "opal")
    assert store.read_at_once >= 2
    max((tmp_path / "opal/series").rglob("*.parquet")).write_text("others")
    with pytest.raises(PortalError, match="is not what the index says"):
        verify_site(TaggedOtherwise(tmp_path), "file", "opal")
    send_site(TaggedOtherwise(tmp_path), "file", published, "opal", partial(_named, published))
    verify_site(FolderStore(tmp_path), "file", "opal")


def test_a_file_named_like_sealed_bytes_at_a_portal_is_named_with_a_way_back(
    copied_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert copied_home
    to = ("opal", "--to", (tmp_path / "site").as_uri())
    planted = tmp_path / "site/opal/series/sealed-0123456789abcdef.parquet"
    assert main(["portal", "send", *to]) == 0
    planted.write_text("x")
    capsys.readouterr()
    assert main(["portal", "send", *to]) == 4
    said = "".join(capsys.readouterr())
    assert f"{planted} has the name of sealed bytes" in said
    assert "find out what it holds; take it away" in said
    assert planted.read_text() == "x"
    planted.rename(tmp_path / planted.name)
    assert main(["portal", "send", *to]) == 0


FORGED = [
    f"opal/{WEEK}/withdrawn-r0.json",
    "opal/2016-W31/no-release-r0.json",
    f"opal/{WEEK}/checkpoint-r7.note",
    f"opal/{WEEK}/proof-r7.tlog-proof",
    "ledger-log/0123456789abcdef/log.pub",
    "ledger-log/0123456789abcdef/checkpoint",
]


@pytest.mark.parametrize("forged", FORGED)
def test_what_the_signed_list_does_not_name_is_not_sent(
    copied_home: Path, tmp_path: Path, forged: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever lay there under the name of a record or a note became public."""
    site, planted = tmp_path / "site", copied_home / "public" / forged
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text("forged")
    assert main(["portal", "send", "opal", "--to", site.as_uri()]) == 0
    assert not (site / forged).exists()
    assert (site / f"opal/{WEEK}/checkpoint-r0.note").is_file()
    capsys.readouterr()
    assert main(["ledger", "verify"]) == 4
    assert str(planted if "log/" not in forged else planted.parent) in capsys.readouterr().out
    planted.unlink()
    said = ("--person", "ada", "--reason", "x")
    assert main(["ledger", "withdraw", f"opal/{WEEK}/r0", *said]) == 0
    assert main(["portal", "send", "opal", "--to", site.as_uri()]) == 0
    assert (site / FORGED[0]).is_file()  # which the ledger states


@pytest.mark.parametrize("kind", ["page", "feed", "note", "catalogue"])
def test_what_was_altered_since_it_was_signed_is_not_sent(
    copied_home: Path, tmp_path: Path, kind: str
) -> None:
    names = {
        "page": "opal/index.html",
        "feed": "opal/feed.json",
        "note": f"opal/{WEEK}/checkpoint-r0.note",
        "catalogue": "index.html",
    }
    site, altered = tmp_path / "site", copied_home / "public" / names[kind]
    signed = altered.read_bytes()
    altered.write_text("of others")
    of_all = kind == "catalogue"  # which another programme may be writing just now
    send = ("portal", "send", "opal", "--to", site.as_uri())
    assert main([*send]) == (0 if of_all else 1)
    assert not (site / names[kind]).exists()
    assert main(["ledger", "verify"]) == 4
    assert main(["ledger", "republish"]) == 0
    assert main([*send]) == 0
    assert (site / names[kind]).read_bytes() == altered.read_bytes()
    assert kind == "note" or altered.read_bytes() == signed


@pytest.mark.parametrize("name", ["ledger.pub", "proof"])
def test_a_key_or_proof_that_is_not_as_signed_is_not_sent(
    copied_home: Path, tmp_path: Path, name: str
) -> None:
    """Readers got the key of whoever had put it there."""
    public, site = copied_home / "public", tmp_path / "site"
    (altered,) = public.glob("ledger.pub" if name == "ledger.pub" else f"opal/{WEEK}/proof-r0.*")
    altered.write_text("of others")
    main(["portal", "send", "opal", "--to", site.as_uri()])
    assert not (site / altered.relative_to(public)).exists()
    assert not (site / "ledger-checkpoint.note").exists()  # nobody can tell whose it is, either


@pytest.mark.parametrize(
    "name", ["ledger-checkpoint.note", "ledger-log/*/checkpoint", "ledger-log/*/checkpoints/*"]
)
def test_a_forged_note_or_checkpoint_is_named_and_not_sent_and_the_rest_is(
    copied_home: Path, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    public, site = copied_home / "public", tmp_path / "site"
    send = ["portal", "send", "opal", "--to", site.as_uri()]
    assert main(send) == 0
    forged, *_ = public.glob(name)
    text = forged.read_text()
    sent = site / forged.relative_to(public)
    forged.chmod(0o600)
    forged.write_text(text[:-9] + ("A" if text[-9] != "A" else "B") + text[-8:])  # its signature
    (site / "zone-index.txt").unlink()
    assert main(send) == 0
    assert sent.read_text() == text
    assert f"{forged} is not what our keys signed, and was not sent" in caplog.text
    assert (site / "zone-index.txt").is_file()
    assert (site / "ledger.pub").read_bytes() == (public / "ledger.pub").read_bytes()


@pytest.mark.parametrize("name", ["evil.html", "5.01234567.170x", "5.01234567.1700000000"])
def test_what_is_no_cosignature_is_named_and_not_sent(
    copied_home: Path, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    public, site = copied_home / "public", tmp_path / "site"
    (log,) = public.glob("ledger-log/*/checkpoint")
    planted = log.with_name("cosignatures") / name
    planted.parent.mkdir(exist_ok=True)
    planted.write_text("forged")
    assert main(["portal", "send", "opal", "--to", site.as_uri()]) == 0
    assert not (site / planted.relative_to(public)).exists()
    assert f"{planted} is not what our keys signed, and was not sent" in caplog.text


@pytest.mark.parametrize("folder", ["steps", "checkpoints", "cosignatures"])
def test_a_draft_that_a_killed_process_left_is_neither_sent_nor_named(
    copied_home: Path, tmp_path: Path, folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It was named in every run, and `ledger verify`, to which people were sent, found nothing."""
    public, site = copied_home / "public", tmp_path / "site"
    (log,) = public.glob("ledger-log/*/checkpoint")
    draft = log.with_name(folder) / ".3.0123456789abcdef"
    draft.parent.mkdir(exist_ok=True)
    draft.write_text("old 3")
    assert main(["portal", "send", "opal", "--to", site.as_uri()]) == 0
    assert not (site / draft.relative_to(public)).exists()
    assert "was not sent" not in caplog.text


def test_a_forged_note_of_a_release_is_not_taken_for_a_note(copied_home: Path) -> None:
    note = copied_home / f"public/opal/{WEEK}/checkpoint-r0.note"
    settings = Settings.from_environment()
    programme = load_programme("opal", settings.include)
    path = f"opal/{WEEK}/checkpoint-r0.note"
    ledger = open_ledger(settings, read_only=True)
    written = write_series(programme, ledger, settings.public, settings.include)
    assert written[path] == sha256_of(note)
    note.unlink()
    note.write_text("card 4711")
    assert path not in write_series(programme, ledger, settings.public, settings.include)


def test_what_a_web_server_puts_beside_a_page_stays(published: Path, tmp_path: Path) -> None:
    """Lists of buckets are of names that begin alike."""
    store = PrefixStore(tmp_path)
    send_site(store, "file", published, "opal", partial(_named, published))
    (tmp_path / "opal/explore.html.gz").write_text("packed")
    send_site(store, "file", published, "opal", partial(_named, published))
    assert (tmp_path / "opal/explore.html.gz").exists()


class PrefixStore(FolderStore):
    """A folder that lists as buckets do."""

    def tags(self, prefix: str) -> dict[str, str]:
        above = super().tags(prefix.rpartition("/")[0])
        return {path: tag for path, tag in above.items() if path.startswith(prefix)}


@pytest.mark.parametrize("kind", ["altered", "link", "index"])
def test_a_series_that_is_not_as_signed_is_not_sent(
    copied_home: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    series, site = copied_home / "public/opal/series", tmp_path / "site"
    to = ("opal", "--to", site.as_uri())
    file = series / "index.json" if kind == "index" else max(series.rglob("*.parquet"))
    file.unlink()
    if kind == "link":
        (tmp_path / "rows.csv").write_text("card,time")
        file.symlink_to(tmp_path / "rows.csv")
    else:
        file.write_text("card,time")
    capsys.readouterr()
    assert main(["portal", "send", *to]) == 1
    assert "turnstile ledger republish" in capsys.readouterr().err
    there = (path.read_bytes() for path in site.rglob("*") if path.is_file())
    assert not [content for content in there if content.startswith(b"card,time")]
    assert main(["ledger", "republish"]) == 0
    assert main(["portal", "send", *to]) == 0
    assert (site / "opal/series/index.json").read_bytes() == (series / "index.json").read_bytes()


def test_another_package_than_the_ledger_names_is_not_sent(
    copied_home: Path, tmp_path: Path
) -> None:
    """It was sent, and the ledger told that the portal has the release."""
    package = copied_home / f"public/opal/{WEEK}/r0"
    shutil.move(package, tmp_path / "kept")
    write_package(package)
    send = ("portal", "send", "opal", "--to", (tmp_path / "site").as_uri())
    assert main([*send]) == 4
    assert not (tmp_path / f"site/opal/{WEEK}/r0").exists()
    shutil.rmtree(package)
    shutil.move(tmp_path / "kept", package)
    assert main([*send]) == 0


UNREADABLE = ["[]", "7", "null", "[", "[" * 100_000]
NO_NUMBERS = [f'{{"ledger_sequence": {n}, "files": 7}}' for n in ("1e999", "50.5", "-1", "true")]


@pytest.mark.some(3)
@pytest.mark.parametrize("text", UNREADABLE + NO_NUMBERS)
def test_an_index_that_is_none_shows_nothing_at_a_portal(
    copied_home: Path, tmp_path: Path, text: str
) -> None:
    assert copied_home
    index = tmp_path / "site/opal/series/index.json"
    to = ("opal", "--to", (tmp_path / "site").as_uri())
    assert main(["portal", "send", *to]) == 0
    whole = index.read_bytes()
    index.write_text(text)
    assert main(["portal", "verify", *to]) == 1
    assert main(["portal", "send", *to]) == 0
    assert index.read_bytes() == whole
    about = json.loads(whole)
    index.write_text(json.dumps({"ledger_sequence": about["ledger_sequence"] + 1}))
    assert main(["portal", "send", *to]) == 3  # which shows something


def test_what_another_publisher_takes_for_a_stray_is_put_again(
    published: Path, tmp_path: Path
) -> None:
    """B, who knows less, replaces the index; then A does, and only then B deletes what A has."""
    part = max((published / "opal/series").rglob("*.parquet")).relative_to(published).as_posix()
    about = json.loads((published / "opal/series/index.json").read_bytes())
    deleted = list[str]()

    class Tagged(FolderStore):
        """Says what files hold, as buckets do."""

        indexes = 0

        def tags(self, prefix: str) -> dict[str, str]:
            files = {path: self.read(path) for path in super().tags(prefix)}
            return {
                path: f'"{md5(file.content, usedforsecurity=False).hexdigest()}"'
                for path, file in files.items()
                if file
            }

        def replace(self, path: str, content: bytes, tag: str | None) -> bool:
            if not path.endswith("series/index.json"):
                return super().replace(path, content, tag)
            self.indexes += 1
            if self.indexes == 1:
                older = json.dumps(about | {"ledger_sequence": 1}).encode()
                return not super().replace(path, older, tag)
            is_ours = super().replace(path, content, tag)
            self.delete(part)
            deleted.append(part)
            return is_ours

    send_site(Tagged(tmp_path), "file", published, "opal", partial(_named, published))
    assert deleted == [part]
    assert (tmp_path / part).read_bytes() == (published / part).read_bytes()
    index = tmp_path / "opal/series/index.json"
    assert json.loads(index.read_bytes()) == about


def test_an_index_that_is_replaced_all_the_time_is_given_up(
    published: Path, tmp_path: Path
) -> None:
    class Contended(FolderStore):
        def replace(self, path: str, content: bytes, tag: str | None) -> bool:
            return not path.endswith("index.json") and super().replace(path, content, tag)

    with pytest.raises(PortalError, match="replaced by others"):
        send_site(Contended(tmp_path), "file", published, "opal", partial(_named, published))


def test_what_no_recovery_saw_is_not_replaced_after_a_second_one_either(
    copied_home: Path, tmp_path: Path
) -> None:
    """Found by a reviewer: each recovery forgot what the one before had not seen."""
    site = tmp_path / "site"
    sent = ["portal", "send", "opal", "--to", site.as_uri()]
    assert main(sent) == 0
    index = site / "opal/series/index.json"
    about = json.loads(index.read_bytes())
    about["ledger_sequence"] += 1000  # by a copy that lives on
    index.write_text(json.dumps(about))
    of_another = index.read_bytes()
    groups = ("--family", "opal=opal_cards", "--family", "itms=itms_buses")
    recover = ["ledger", "recover", *groups, "--person", "ada", "--reason", "lost"]
    for _ in range(2):
        for file in copied_home.glob("ledger.sqlite*"):
            file.unlink()
        assert main(recover) == 0
        assert main(sent) == 3
        assert index.read_bytes() == of_another
    shutil.copyfile(index, copied_home / "public/opal/series/index.json")
    assert main(recover) == 0  # a person had it looked at
    assert main(sent) == 0
    assert index.read_bytes() != of_another
