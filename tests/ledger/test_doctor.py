"""`turnstile doctor`: each harm has its finding, each finding a repair that the runbook names."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest
from disaster_site import WHO, Site, lived_once
from tampers import Change, added, edited, guard_gone, removed

from conftest import Stores
from turnstile.cli import main
from turnstile.commands import doctor
from turnstile.commands.doctor import REPAIRS
from turnstile.settings import ZONES, Settings
from turnstile_native.native_environment import Secrets

RUNBOOK = Path(__file__).parents[2] / "docs/RUNBOOK.md"


@pytest.fixture(scope="module")
def lived(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A published week and a drawn one."""
    return lived_once(
        stores, tmp_path_factory.mktemp("lived"), lambda site: (site.publish(0), site.draw(1))
    )


def found(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    """Return what is found but the private zone's absence: the site's weeks had no rows."""
    capsys.readouterr()
    main(["doctor", "--json"])
    lines: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return [line for line in lines if "bounding.key is gone" not in line["problem"]]


def test_of_a_site_without_its_private_zone_nothing_else_is_said(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in site.home.rglob("*")}
    assert main(["doctor"]) == 4
    assert capsys.readouterr().out.startswith("private: private/bounding.key is gone")
    assert found(capsys) == []
    assert {path: path.stat().st_mtime_ns for path in site.home.rglob("*")} == before


def test_a_package_that_never_appeared_is_not_to_be_restored_from_a_backup(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever published it was killed between the ledger's entry and the package's folder."""
    (package,) = (site.home / "public/opal").glob("*/r0")
    shutil.rmtree(package)
    (finding,) = (line for line in found(capsys) if line["name"] == "manifest")
    assert finding["problem"].endswith(
        "is missing; turnstile run of its week publishes what is staged, 0 charged"
    )
    shutil.rmtree(site.home / "embargoed/opal" / package.parent.name / "r0/package")
    (finding,) = (line for line in found(capsys) if line["name"] == "manifest")
    assert finding["problem"].endswith("is missing; restore it")


def test_airflows_own_database_is_looked_at_where_make_ui_keeps_it(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", raising=False)
    monkeypatch.setattr(doctor, "_private", lambda *_: iter(()))  # the site has no rows
    assert main(["doctor"]) == 0
    assert "Airflow's database is no file here, so not read" in capsys.readouterr().out
    file = site.home / "airflow/airflow.db"
    file.parent.mkdir()
    file.write_bytes(b"no database")
    (finding,) = found(capsys)  # as a shell asks
    assert (finding["name"], str(file) in finding["problem"]) == ("airflow", True)
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{file}?timeout=60")
    assert [finding["name"] for finding in found(capsys)] == ["airflow"]  # as a task asks
    file.unlink()
    sqlite3.connect(file).execute("CREATE TABLE t (x)").connection.close()
    assert main(["doctor"]) == 0
    assert f"nor with {file}" in capsys.readouterr().out


@pytest.fixture
def without_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every setting of Airflow out of the environment."""
    for name in [name for name in os.environ if name.startswith("AIRFLOW_")]:  # noqa: TID251
        monkeypatch.delenv(name)
    monkeypatch.setattr(doctor, "_private", lambda *_: iter(()))  # the site has no rows


@pytest.mark.usefixtures("without_airflow", "site")
def test_settings_of_airflow_that_undo_what_we_rely_on_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert main(["doctor"]) == 0
    assert "Airflow's settings are not in this shell" in capsys.readouterr().out
    (tmp_path / "airflow/plugins").mkdir(parents=True)
    file = tmp_path / "airflow/airflow.cfg"
    file.write_text(
        "[core]\nfernet_key =\nsimple_auth_manager_all_admins = True  # of a trial\n"
        "[metrics]\notel_on = True\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_HOME", "~/airflow")
    assert [line["problem"].split()[1].strip(",") for line in found(capsys)] == [
        "fernet_key",
        "simple_auth_manager_all_admins",
        "otel_on",
        "plugins_folder",
    ]
    assert {line["name"] for line in found(capsys)} == {"airflow settings"}
    (tmp_path / "airflow/plugins/privacy_page.py").touch()
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY_CMD", "cat key")
    monkeypatch.setenv("AIRFLOW__METRICS__METRICS_ALLOW_LIST", "^turnstile")
    assert [line["problem"].split()[1] for line in found(capsys)] == [
        "simple_auth_manager_all_admins"
    ]
    monkeypatch.setenv("AIRFLOW__CORE__AUTH_MANAGER", "fab.FabAuthManager")  # which asks it nothing
    assert main(["doctor"]) == 0
    assert "shell" not in capsys.readouterr().out


@pytest.mark.usefixtures("without_airflow")
def test_another_airflow_of_the_machine_is_not_taken_for_that_of_make_ui(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "airflow.cfg").write_text("[core]\nfernet_key =\n")
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    assert len(found(capsys)) == 2
    Secrets.of_folder(site.home / "airflow")  # as `make ui` leaves it
    assert found(capsys) == []
    (site.home / "airflow/airflow.db").write_bytes(b"no database")
    assert [finding["name"] for finding in found(capsys)] == ["airflow"]


def test_a_worker_that_sees_nothing_of_the_private_zone_but_its_failures_misses_no_key(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `worker` of docker-compose.yaml; the zone itself is looked at where it is."""
    failures = site.home / "private/failures"
    failures.mkdir(parents=True)
    assert main(["doctor"]) == 4  # a zone that lost all else
    monkeypatch.setattr(Path, "is_mount", lambda path: path == failures)
    capsys.readouterr()
    assert main(["doctor"]) == 0
    assert "no private zone is here" in capsys.readouterr().out
    (site.home / "private/opal").mkdir()
    assert main(["doctor"]) == 4


@pytest.mark.usefixtures("without_airflow", "site")
def test_a_file_of_airflows_settings_that_nobody_can_read_is_named_without_what_it_holds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "airflow.cfg").write_text("[core]\nfernet_key\nhunter2\n[core\n")
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    (finding,) = found(capsys)
    assert finding["name"] == "airflow settings"
    assert "hunter2" not in finding["problem"]


@pytest.fixture
def disks(site: Site, monkeypatch: pytest.MonkeyPatch) -> dict[Path, str]:
    """Folders and the disk that each lies on, here its own, as under Compose; `full` is full."""
    monkeypatch.setattr(doctor, "_private", lambda *_: iter(()))  # the site has no rows
    keys, file = site.root / "keys", Settings.from_environment().ledger_file
    keys.mkdir()
    for key in site.home.glob("*.pem"):
        key.rename(keys / key.name)
    monkeypatch.setenv("TURNSTILE_LEDGER_KEY", str(keys / "ledger-key.pem"))
    zones = [site.home / zone for zone in (*ZONES, "private/failures", "operations")]
    folders = [site.home, keys, site.witness, *zones, *([file.parent] if file else [])]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    of = {folder: folder.name for folder in folders}
    stat = Path.stat

    def planted(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        kind, (values, named) = stat(path, follow_symlinks=follow_symlinks).__reduce__()
        device = hash(of.get(path, "another"))
        return kind((*values[:2], device, *values[3:]), named)

    def free(folder: Path) -> SimpleNamespace:
        return SimpleNamespace(free=(1 << 28) - (of[folder] == "full"))

    monkeypatch.setattr(Path, "stat", planted)
    monkeypatch.setattr(shutil, "disk_usage", free)
    return of


def test_each_disk_that_is_full_is_named_by_its_folder(
    disks: dict[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It was said of the home alone: each zone, keys and witness may have a disk of their own."""
    assert len(disks) >= 9
    assert found(capsys) == []
    for folder, disk in list(disks.items()):
        disks[folder] = "full"
        (finding,) = found(capsys)
        assert finding["name"] == "space"
        assert finding["problem"] == f"{folder}: less than 256 MiB are free"
        disks[folder] = disk


def test_folders_on_one_disk_are_named_once_and_one_that_is_away_not_at_all(
    site: Site, disks: dict[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (site.home / "embargoed", site.home / "public"):
        disks[folder] = "full"
    (finding,) = found(capsys)
    assert finding["problem"].startswith(f"{site.home}/embargoed: ")
    disks.update(dict.fromkeys(disks, "full"))
    (finding,) = found(capsys)
    assert finding["problem"].startswith(f"{site.home}: ")
    shutil.rmtree(site.home / "landing")
    shutil.rmtree(site.witness)
    assert {finding["name"] for finding in found(capsys)} == {"space", "witness"}


@pytest.mark.parametrize(
    ("harm", "name"),
    [
        (removed("home/ledger-key.pem"), "key"),
        (removed("witness"), "witness"),
        (removed("home/embargoed/*/*/r0/sealed-*"), "sealed"),
        (removed("home/embargoed/*/*/r0/plan.json"), "plan"),
        (removed("home/public/opal/*/r0"), "manifest"),
        (edited("home/public/opal/*/r0/tables/on_time.csv", "12", "13"), "package"),
        (added("home/public/opal/rows.csv"), "public zone"),
        (
            edited("home/public/opal/*/checkpoint-r0.note", "release opal", "release op"),
            "checkpoint",
        ),
        (guard_gone, "guard"),
    ],
)
def test_each_harm_has_its_repair(
    site: Site, stores: Stores, capsys: pytest.CaptureFixture[str], harm: Change, name: str
) -> None:
    harm(site, stores)
    names = [finding["name"] for finding in found(capsys)]
    assert name in names
    assert main(["doctor"]) == 4


@pytest.mark.parametrize("kept", ["backup", ""])
@pytest.mark.parametrize("week", [0, 1], ids=["public", "under embargo"])
def test_sealed_bytes_that_a_disk_cut_come_back_or_are_said_to_be_gone(
    site: Site, capsys: pytest.CaptureFixture[str], tmp_path: Path, kept: str, week: int
) -> None:
    """As the finding says: from a backup, else moved away and stated once; nothing is drawn."""
    folder = site.home / "embargoed" / str(site.request(week).key)
    (sealed,) = folder.glob("sealed-*.parquet")
    whole, entries = sealed.read_bytes(), [*site.ledger.entries()]
    sealed.chmod(0o600)
    sealed.write_bytes(whole[:-1])
    (cut,) = found(capsys)
    assert cut["name"] == "sealed"
    assert cut["do"].startswith("restore the file that is named")
    if kept:
        sealed.write_bytes(whole)
    else:
        assert "if there is none: move it away, then turnstile ledger recover" in cut["do"]
        sealed.rename(tmp_path / "cut")
        assert main(["ledger", "recover", *WHO]) == 0
    assert found(capsys) == []
    written = [*site.ledger.entries()][len(entries) :]
    assert [entry.kind.value for entry in written] == ([] if kept else ["recovered"])


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)  # a server looks after its files
def test_a_lost_and_a_damaged_database_and_a_mistyped_home_are_told_apart(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = Path(site.url.removeprefix("sqlite:///"))
    whole = file.read_bytes()
    file.write_bytes(b"\xab" * len(whole))
    assert [finding["name"] for finding in found(capsys)] == ["database"]
    shutil.rmtree(file.parent)
    (lost,) = found(capsys)
    assert (lost["name"], "ledger recover" in lost["do"]) == ("ledger", True)
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path / "hoem"))
    monkeypatch.setenv("TURNSTILE_LEDGER_URL", "")
    monkeypatch.delenv("TURNSTILE_LEDGER_URL")
    assert [finding["name"] for finding in found(capsys)] == ["home"]
    assert not (tmp_path / "hoem").exists()


def test_what_does_not_answer_is_not_called_lost(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is down, a disk that cannot be read: to recover there would do harm."""
    if site.url.startswith("sqlite:///"):
        file = Path(site.url.removeprefix("sqlite:///"))
        file.rename(file.with_name("elsewhere"))
        file.mkdir()
    else:
        monkeypatch.setenv("TURNSTILE_LEDGER_URL", "postgresql+psycopg://a:secret@127.0.0.1:1/x")
    (finding,) = found(capsys)
    assert finding["name"] == "access"
    assert "recover" not in finding["do"]
    assert "secret" not in finding["problem"]


def test_every_finding_has_a_row_in_the_runbook() -> None:
    text = RUNBOOK.read_text()
    section = text[text.index("## What `turnstile doctor` finds") :]
    rows = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
    assert set(REPAIRS) <= rows


def test_every_check_of_the_verification_has_a_repair() -> None:
    root = Path(__file__).parents[2] / "include/turnstile"
    rooms = (
        *(root / "ledger").rglob("*.py"),
        root / "pipeline/private_zone/private_verification.py",
    )
    text = "".join(path.read_text() for path in rooms)
    checks = {part.split('"')[1] for part in text.split("Finding(")[1:] if part[:1] == '"'}
    assert checks
    assert checks <= set(REPAIRS)
