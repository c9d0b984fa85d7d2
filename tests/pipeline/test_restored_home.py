"""Last night's home over a published week, and packages that are not the ledger's own."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from small_deployment import WEEK, Deployment

from turnstile.ledger.ledger import Ledger
from turnstile.pipeline import after_seal
from turnstile.publishing.describe.manifest import manifest_bytes
from turnstile.publishing.written_text import json_bytes

Cli = Callable[..., int]
NEXT, AFTER = "2016-W31", "2016-W32"
WHO = ("--person", "olga", "--reason", "the disk of the night")


@pytest.fixture(autouse=True)
def steady_itms(deployment: Deployment) -> None:
    """These tests are about steps, so the shipped programme may change without them."""
    steady = Path(__file__).parents[1] / "support/programmes/itms.yaml"
    shutil.copyfile(steady, deployment.include / "programmes/itms.yaml")


def files(home: Path) -> dict[str, str]:
    """Digests of all public and embargoed files of releases."""
    return {
        path.relative_to(home).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for zone in ("public", "embargoed")
        for path in (home / zone).glob("*/*/r*/**/*")
        if path.is_file()
    }


def sealed_in(digests: dict[str, str]) -> set[str]:
    """Paths of sealed bytes."""
    return {path for path in digests if "/sealed-" in path}


def tar(how: str, home: Path) -> None:
    """Pack or unpack a home as operators do, over whatever stands there."""
    archive = home.parent / "night.tar"
    subprocess.run(["tar", how, archive, "-C", home.parent, home.name], check=True)  # noqa: S603,S607


@pytest.mark.long
@pytest.mark.parametrize("with_witness", [True, False], ids=["witness", "no witness"])
def test_last_nights_home_over_a_published_week_draws_and_deletes_nothing(
    landed: Deployment,
    turnstile: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    with_witness: bool,  # noqa: FBT001 - a parameter
) -> None:
    if with_witness:
        monkeypatch.setenv("TURNSTILE_WITNESS", str(tmp_path / "witness"))
    turnstile("sample", "itms", "--weeks", f"{NEXT}:{AFTER}", "--rows", 20_000)
    assert turnstile("run", "itms", "--week", WEEK) == 0
    tar("cf", landed.home)
    assert turnstile("run", "itms", "--week", NEXT) == 0
    before, spent = files(landed.home), landed.spent()

    tar("xf", landed.home)
    for week in (NEXT, AFTER):
        assert turnstile("run", "itms", "--week", week) == 4
    assert turnstile("ledger", "verify") == 4
    after = files(landed.home)  # refused runs leave plans, and no sealed bytes
    assert {path: after.get(path) for path in before} == before
    assert sealed_in(after) == sealed_in(before)

    assert turnstile("ledger", "recover", *WHO) == 0
    assert landed.spent() == spent
    assert turnstile("ledger", "verify") == 0
    assert turnstile("run", "itms", "--week", AFTER) == 0
    assert turnstile("run", "itms", "--week", NEXT) == 0
    after = files(landed.home)
    assert {path: after[path] for path in before} == before
    assert turnstile("ledger", "verify") == 0
    for week in (WEEK, NEXT, AFTER):
        assert turnstile("package", "verify", landed.public / "itms" / week / "r0") == 0


def test_a_package_of_other_bytes_or_of_another_ledger_is_not_published(
    assessed: Deployment,
    turnstile: Cli,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with monkeypatch.context() as death:
        death.setattr(Ledger, "publish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            turnstile("run", "itms", "--week", WEEK)
    staged = assessed.home / "embargoed/itms" / WEEK / "r0/package"
    kept = {
        path: path.read_bytes() for path in (staged / "manifest.json", staged / "release_card.json")
    }
    manifest, card = (json.loads(content) for content in kept.values())

    def altered(sealed: str, head: str) -> int:
        content = json.dumps(
            card | {"ledger": card["ledger"] | {"head_sha256": head}}, sort_keys=True
        )
        (staged / "release_card.json").write_text(content)
        (staged / "manifest.json").unlink()
        whole = manifest_bytes(staged, key=manifest["key"], sealed_digest=sealed)
        (staged / "manifest.json").write_bytes(whole)
        return turnstile("run", "itms", "--week", WEEK)

    hashes = (manifest["sealed_sha256"], card["ledger"]["head_sha256"])
    assert altered("0" * 64, hashes[1]) == 4
    assert altered(hashes[0], "0" * 64) == 4
    for path, content in kept.items():
        path.write_bytes(content)
    capsys.readouterr()
    planted(staged, "docs/GUIDE.md", "20123\n")
    assert turnstile("run", "itms", "--week", WEEK) == 4
    assert "statement.intoto.json is not signed" in capsys.readouterr().err
    assert not (assessed.public / "itms" / WEEK / "r0").exists()
    staged.rename(assessed.home / "aside")
    with monkeypatch.context() as window:  # between the writing of a package and its publication
        window.setattr(
            after_seal, "require_own", lambda *_, **__: planted(staged, "docs/GUIDE.md", "20123\n")
        )
        assert turnstile("run", "itms", "--week", WEEK) == 4
    assert "manifest.json is not what was written there" in capsys.readouterr().err
    assert not (assessed.home / "public/itms" / WEEK / "r0").exists()
    staged.rename(assessed.home / "aside too")
    assert turnstile("run", "itms", "--week", WEEK) == 0
    assert turnstile("ledger", "verify") == 0


def planted(staged: Path, name: str, words: str) -> None:
    """Write words at the end of a text of a package, and all that names the text's digest."""
    old = hashlib.sha256((staged / name).read_bytes()).hexdigest()
    with (staged / name).open("a") as text:
        text.write(words)
    new = hashlib.sha256((staged / name).read_bytes()).hexdigest()
    envelope = json.loads((staged / "statement.intoto.json").read_bytes())
    payload = base64.b64decode(envelope["payload"]).replace(old.encode(), new.encode())
    envelope["payload"] = base64.b64encode(payload).decode()
    (staged / "statement.intoto.json").write_bytes(json_bytes(envelope))
    names = [line[66:] for line in (staged / "SHA256SUMS").read_text().splitlines()]
    digests = (hashlib.sha256((staged / file).read_bytes()).hexdigest() for file in names)
    lines = (f"{digest}  {file}\n" for digest, file in zip(digests, names, strict=True))
    (staged / "SHA256SUMS").write_text("".join(lines))
    manifest = json.loads((staged / "manifest.json").read_bytes())
    (staged / "manifest.json").unlink()
    whole = manifest_bytes(staged, key=manifest["key"], sealed_digest=manifest["sealed_sha256"])
    (staged / "manifest.json").write_bytes(whole)


@pytest.mark.long
def test_folders_that_were_moved_aside_stop_no_week_and_are_named_by_its_audit(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    """Messages ask people to move folders aside; the next week stopped after its charge."""
    for zone in (published.public, published.home / "embargoed", published.home / "private"):
        release_folder = zone / "itms" / WEEK / "r0"
        shutil.copytree(release_folder, release_folder.with_name("r0.aside"), symlinks=True)
    assert turnstile("sample", "itms", "--weeks", NEXT, "--rows", "20000", "--seed", "4") == 0
    assert turnstile("run", "itms", "--week", NEXT) == 4
    assert f"itms/{WEEK}/r0.aside is no file of a release" in capsys.readouterr().err
    package = published.public / "itms" / NEXT / "r0"
    assert f'"itms/{WEEK}/r0"' in (package / "release_card.json").read_text()  # an earlier week
    shutil.rmtree(published.public / "itms" / WEEK / "r0.aside")
    assert turnstile("run", "itms", "--week", NEXT) == 0
    assert turnstile("estimates", "verify", package) == 0


def test_an_audit_names_more_than_its_first_finding(
    published: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    """One was named, so that whoever mended it was told the next: found by a simulated world."""
    planted = [published.public / name for name in ("rows.csv", "taps.csv")]
    for path in planted:
        path.write_text("card,time")
    capsys.readouterr()
    assert turnstile("run", "itms", "--week", WEEK) == 4
    said = capsys.readouterr().err
    assert [f"{path} is a file that nobody published" in said for path in planted] == [True, True]
    for path in planted:
        path.unlink()
    assert turnstile("run", "itms", "--week", WEEK) == 0
