"""Zones in object storage: a bucket a zone, credentials by process, folders that get lost.

The server enforces what each user may do. Every step runs as its worker would, with that worker's
environment alone, on a folder of its own that is gone afterwards.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from deployment_fixtures import STEADY_ITMS, deployment_in
from object_store import USERS, ZONES, ObjectStore, bucket_of, may, object_store
from retention_days import NOW, WINDOW, act
from small_deployment import WEEK, Deployment
from stored_deployment import KEY, StoredDeployment

from turnstile.cli import main
from turnstile.commands.doctor import findings
from turnstile.durable_files import sha256_of
from turnstile.errors import InputError, IntegrityError, RefusedError, StoreError
from turnstile.ledger import verification
from turnstile.ledger.custody import zone_index
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.pipeline import after_seal
from turnstile.pipeline.draw import charged_draw
from turnstile.pipeline.landing.arrival import QUIET_FOR, arrival_of
from turnstile.pipeline.steps import STEPS, step_named
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings, system_clock
from turnstile_stores import zone_copies, zones
from turnstile_stores.bucket import Bucket
from turnstile_stores.opened import opened
from turnstile_stores.portals import sending
from turnstile_stores.portals.site import send_site
from turnstile_stores.public_zone import send_packages
from turnstile_stores.zone_stores import fetch_landing, plain_zone, refresh, unit_zone
from turnstile_stores.zones import StoredZones

pytestmark = pytest.mark.long

BEFORE_DRAW = STEPS[: STEPS.index("draw")]
BEFORE_PUBLISH = STEPS[STEPS.index("draw") : STEPS.index("publish")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("store") / "run") as made:
        yield made


@pytest.fixture(scope="module")
def reserved(
    store: ObjectStore, generated: Path, tmp_path_factory: pytest.TempPathFactory
) -> StoredDeployment:
    """A week up to its draw."""
    base = tmp_path_factory.mktemp("reserved")
    with pytest.MonkeyPatch.context() as environment:
        deployment = deployment_in(base, environment)
        deployment.make_siblings_examples("itms")
    shutil.copyfile(STEADY_ITMS, deployment.include / "programmes/itms.yaml")
    once = "{unit: bus_day, relation: add_remove, epsilon: "
    deployment.edit(
        "itms", f'{once}"8"', f'{once}"24"'
    )  # for draws that are killed, and corrections
    made = StoredDeployment(store, base, deployment.include)
    made.deliver(generated)
    made.steps(*BEFORE_DRAW)
    return made


@pytest.fixture(scope="module")
def assessed_week(
    reserved: StoredDeployment, tmp_path_factory: pytest.TempPathFactory
) -> StoredDeployment:
    """The same, up to its publication."""
    made = reserved.fork(tmp_path_factory.mktemp("assessed"))
    made.steps(*BEFORE_PUBLISH)
    return made


@pytest.fixture(scope="module")
def public_week(
    assessed_week: StoredDeployment, tmp_path_factory: pytest.TempPathFactory
) -> StoredDeployment:
    """The same, public and audited."""
    made = assessed_week.fork(tmp_path_factory.mktemp("public"))
    made.steps("publish", "audit")
    return made


RECOVER = ("ledger", "recover", "--person", "olga")


def command(place: StoredDeployment, *words: str, user: str = "worker") -> int:
    """Run a command on an empty folder."""
    with place.process(user):
        return main(list(words))


def test_a_week_is_released_by_workers_that_keep_nothing(
    public_week: StoredDeployment, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = public_week.fork(tmp_path / "copy")
    assert place.kinds().count("sealed") == place.kinds().count("published") == 1
    assert command(place, "ledger", "verify") == 0
    before, charged = place.objects("public"), place.ledger.balance()
    loose = {
        "index.html",
        "ledger.pub",
        "ledger-checkpoint.note",
        f"itms/{WEEK}/checkpoint-r0.note",
    }
    assert loose <= before.keys()
    with caplog.at_level(logging.INFO):
        place.steps()
    assert place.kinds().count("draw_begun") == 1
    assert place.ledger.balance() == charged
    package = {name for name in before if name.startswith(KEY)}
    assert len(package) > 20
    after = place.objects("public")
    assert {name: after[name] for name in package} == {name: before[name] for name in package}
    assert "secret-of-" not in caplog.text


def test_what_was_put_is_what_the_ledger_names(
    public_week: StoredDeployment, tmp_path: Path
) -> None:
    place = public_week.fork(tmp_path / "copy")
    index = json.loads(place.objects("embargoed")[f"index/{KEY}.json"])["files"]
    (sealed,) = [name for name in index if name.startswith("sealed-")]
    place.plant("embargoed", index[sealed][0], b"other noise")
    with pytest.raises(IntegrityError, match="is not what its index says"):
        place.step("reconcile")
    assert command(place, "ledger", "verify") == 4


@pytest.mark.parametrize("user", USERS)
def test_a_user_reaches_its_zones_and_no_other(store: ObjectStore, user: str) -> None:
    client: Any = store.client(user)
    for zone in ZONES:
        bucket = bucket_of(zone)
        store.client("root").put_object(Bucket=bucket, Key="doors/x", Body=b"x")
        actions: dict[str, Callable[[str], Any]] = {
            "s3:GetObject": lambda bucket: client.get_object(Bucket=bucket, Key="doors/x"),
            "s3:ListBucket": lambda bucket: client.list_objects_v2(Bucket=bucket, Prefix="doors/"),
            "s3:PutObject": lambda bucket: client.put_object(Bucket=bucket, Key="doors/y"),
            "s3:DeleteObject": lambda bucket: client.delete_object(Bucket=bucket, Key="doors/x"),
        }
        for name, attempt in actions.items():
            if name in may(user, zone):
                attempt(bucket)
            else:
                with pytest.raises(ClientError, match="AccessDenied"):
                    attempt(bucket)


def test_policies_are_as_the_zones_demand() -> None:
    readers, writers = (
        {zone: {user for user in USERS if action in may(user, zone)} for zone in ZONES}
        for action in ("s3:GetObject", "s3:PutObject")
    )
    assert readers["landing"] == readers["private"] == writers["private"] == {"worker-private"}
    assert writers["public"] == {"worker"}
    assert writers["landing"] == {"authority"}
    assert writers["embargoed"] == {"worker", "worker-private"}


def test_only_publish_writes_the_public_bucket(
    assessed_week: StoredDeployment, tmp_path: Path
) -> None:
    assert not assessed_week.objects("public")  # after all steps before it
    place = assessed_week.fork(tmp_path / "copy")
    with place.process("worker-private"), pytest.raises(StoreError, match="403 AccessDenied"):
        step_named("publish")("itms", WEEK, 0)
    assert not place.objects("public")
    place.step("publish")
    assert place.objects("public")


class Killed(BaseException):
    """The process is gone."""


def killing(function: Callable[..., Any], *, before: bool) -> Callable[..., Any]:
    """A function after which, or instead of which, the process is killed."""

    def killed(*arguments: Any, **named: Any) -> Any:
        if not before:
            function(*arguments, **named)
        raise Killed

    return killed


# where a draw is killed, and whether its bytes were in the store by then
DRAW_KILLS = (
    ((charged_draw, "write_once", False), 0),
    ((zone_copies.ZoneCopies, "keep", False), 1),
    ((Ledger, "seal", True), 1),
)
PUBLISH_KILLS = (
    (after_seal, "_stage", False),
    (zone_copies.ZoneCopies, "keep", False),
    (Ledger, "publish", False),
    (after_seal, "_appear", False),
    (sending, "_require_same", False),
    (zones, "send_packages", False),
)


@pytest.mark.parametrize("keeps_folder", [False, True])
@pytest.mark.parametrize(("kill", "put"), DRAW_KILLS)
def test_a_draw_that_is_killed_is_charged_and_never_used(
    reserved: StoredDeployment,
    tmp_path: Path,
    kill: tuple[Any, str, bool],
    put: int,
    *,
    keeps_folder: bool,
) -> None:
    place = reserved.fork(tmp_path / "copy")
    home, (where, name, before) = tmp_path / "home" if keeps_folder else None, kill
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, killing(getattr(where, name), before=before))
        with pytest.raises(Killed):
            place.step("draw", home)
    place.step("draw", home)
    assert (place.kinds().count("sealed"), place.kinds().count("burned")) == (1, 1)
    index = json.loads(place.objects("embargoed")[f"index/{KEY}.json"])["files"]
    assert len([name for name in index if name.startswith("sealed-")]) == 1
    assert len([name for name in index if name.startswith("set-aside/")]) == put


@pytest.mark.parametrize("is_away", [False, True])
def test_sealed_bytes_in_one_home_alone_reach_the_store_when_they_are_charged(
    reserved: StoredDeployment,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    is_away: bool,
) -> None:
    """Of a draw that died before it put them, and whose ledger is lost (seed 43)."""
    place, home = reserved.fork(tmp_path / "copy"), tmp_path / "home"
    said_by = ("--person", "olga", "--reason", "lost", "--family", "itms=itms_buses")
    recover = ["ledger", "recover", *said_by]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charged_draw, "write_once", killing(charged_draw.write_once, before=False))
        with pytest.raises(Killed):
            place.step("draw", home)
    (place.base / "ledger.sqlite").unlink()
    if is_away:
        with place.process("worker-private", home), pytest.MonkeyPatch.context() as patch:
            patch.setattr(Bucket, "put_file", away)
            assert main(recover) == 4
        said = capsys.readouterr().out
        assert f"sealed bytes in this home alone: {KEY}: s3://embargoed: away" in said
        with pytest.raises(IntegrityError):  # what a step sets aside there is put from there
            place.step("reconcile", home)
        assert list(home.glob(f"embargoed/.store/aside/{KEY}/*/sealed-*.parquet"))
    with place.process("worker-private", home):  # which may not write what is public
        assert main(recover) == 4  # the list is not signed
    said = capsys.readouterr().out
    assert "sealed bytes in this home alone: none" in said
    assert "403 AccessDenied" in said.partition("series not made: ")[2]
    assert command(place, "ledger", "republish") == 0
    assert command(place, "ledger", "verify") == 0
    place.steps(*BEFORE_PUBLISH, "publish")
    assert place.kinds().count("draw_begun") == 0
    assert command(place, "ledger", "verify") == 0


def away(*_: object) -> None:
    raise StoreError("s3://embargoed", "away")


@pytest.mark.parametrize("keeps_folder", [False, True])
def test_a_publication_that_is_killed_goes_on_to_the_same_bytes(
    assessed_week: StoredDeployment, tmp_path: Path, *, keeps_folder: bool
) -> None:
    place = assessed_week.fork(tmp_path / "copy")
    home = tmp_path / "home" if keeps_folder else None
    for where, name, before in PUBLISH_KILLS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(where, name, killing(getattr(where, name), before=before))
            with pytest.raises(Killed):
                place.step("publish", home)
    digest = place.step("publish", home)
    place.step("audit")
    assert place.kinds().count("published") == 1
    manifest = place.objects("public")[f"{KEY}/manifest.json"]
    assert digest == hashlib.sha256(manifest).hexdigest()
    assert command(place, "ledger", "verify") == 0


def test_of_two_publishers_one_package_is_public(
    assessed_week: StoredDeployment, tmp_path: Path
) -> None:
    place, slow = assessed_week.fork(tmp_path / "copy"), tmp_path / "slow"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            zone_copies.ZoneCopies, "keep", killing(zone_copies.ZoneCopies.keep, before=True)
        )
        with pytest.raises(Killed):
            place.step("publish", slow)  # it has built a package, and nobody has seen it
    digest = place.step("publish")
    assert place.step("publish", slow) == digest
    manifest = place.objects("public")[f"{KEY}/manifest.json"]
    assert digest == hashlib.sha256(manifest).hexdigest()
    assert place.kinds().count("published") == 1


def test_a_store_that_is_away_after_a_charge_is_waited_for(
    reserved: StoredDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, away = reserved.fork(tmp_path / "copy"), [True] * 3
    put_if = Bucket.put_if

    def sometimes(bucket: Bucket, path: str, content: bytes, tag: str | None) -> str | None:
        if path.startswith("index/") and "drew" in seen and away:
            away.pop()
            raise StoreError("s3://embargoed", "EndpointConnectionError")
        return put_if(bucket, path, content, tag)

    seen: set[str] = set()
    begin = Ledger.begin_draw
    monkeypatch.setattr(Ledger, "begin_draw", lambda *a, **k: (begin(*a, **k), seen.add("drew"))[0])
    monkeypatch.setattr(Bucket, "put_if", sometimes)
    monkeypatch.setattr(zone_copies, "AGAIN_AFTER_S", 0)
    place.step("draw")
    assert not away
    assert (place.kinds().count("sealed"), place.kinds().count("burned")) == (1, 0)


def test_a_store_that_takes_nothing_is_seen_before_the_charge(
    reserved: StoredDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = reserved.fork(tmp_path / "copy")
    with place.process("worker-private"):
        reader = str(place.store.credentials / "page")
        monkeypatch.setenv("TURNSTILE_EMBARGOED_STORE_CREDENTIALS", reader)
        with pytest.raises(StoreError, match="403 AccessDenied"):
            step_named("draw")("itms", WEEK, 0)
    assert "draw_begun" not in place.kinds()
    place.step("draw")


def test_another_object_in_place_of_a_public_file_is_never_overwritten(
    assessed_week: StoredDeployment, tmp_path: Path
) -> None:
    place = assessed_week.fork(tmp_path / "copy")
    name = f"{KEY}/report.html"
    place.plant("public", name, b"planted")
    with pytest.raises(IntegrityError, match=r"report.html holds other bytes"):
        place.step("publish")
    assert place.objects("public")[name] == b"planted"
    assert f"{KEY}/manifest.json" not in place.objects("public")
    place.root.delete_object(Bucket=bucket_of("public"), Key=f"{place.prefix}/{name}")
    place.step("publish")
    place.step("audit")


def test_files_that_arrive_in_the_bucket_are_waited_for(
    reserved: StoredDeployment, tmp_path: Path, generated: Path
) -> None:
    place = StoredDeployment(reserved.store, tmp_path, reserved.include)
    period = ServiceWeek.parse(WEEK)

    def arrival() -> Any:
        with place.process("worker-private", tmp_path / "home"):
            settings = Settings.from_environment()
            source = load_programme("itms", settings.include).source
            changed_at = fetch_landing(settings, source, period)
            return arrival_of(source, period, settings.landing, changed_at)

    assert arrival().missing
    begun = system_clock()
    place.deliver(generated)
    place.plant("landing", f"itms/{WEEK}/../../../escaped.csv", b"x")
    last_arrival = arrival()
    assert not last_arrival.missing
    assert not last_arrival.is_complete(begun)
    assert last_arrival.is_complete(system_clock() + QUIET_FOR + timedelta(seconds=1))
    assert not list(tmp_path.rglob("escaped.csv"))
    for name in place.objects("landing"):
        place.root.delete_object(Bucket=bucket_of("landing"), Key=f"{place.prefix}/{name}")
    assert arrival().missing


def test_a_public_bucket_that_lost_a_package_is_refused_and_every_copy_stays(
    public_week: StoredDeployment, tmp_path: Path
) -> None:
    place, home = public_week.fork(tmp_path / "copy"), tmp_path / "home"
    before = place.objects("public")

    def delete(*names: str) -> None:
        for name in names:
            key = f"{place.prefix}/{name}"
            place.root.delete_object(Bucket=bucket_of("public"), Key=key)

    def seen() -> set[str]:
        with place.process("worker", home):
            refresh(Settings.from_environment())
        return {name for name in before if (home / "public" / name).is_file()}

    assert seen() == before.keys()
    delete("index.html")  # a page, which the next publication makes again
    assert seen() == before.keys() - {"index.html"}
    delete(*before)
    with pytest.raises(IntegrityError, match=f"{KEY}/manifest.json is gone, which was there"):
        seen()
    with place.process("worker", home):
        assert main(["ledger", "verify"]) == 4
    for name in before.keys() - {"index.html"}:  # copied back from this very folder
        place.plant("public", name, (home / "public" / name).read_bytes())
    assert seen() == before.keys() - {"index.html"}
    assert command(place, "ledger", "verify") == 4, "the list names the page"
    place.steps("publish")
    assert command(place, "ledger", "verify") == 0


def test_a_public_bucket_put_back_to_yesterday_is_given_what_it_lost(
    public_week: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found by the simulated world: without this nobody could publish again."""
    place, home = public_week.fork(tmp_path / "copy"), tmp_path / "home"
    before, reader = place.objects("public"), tmp_path / "reader"
    for user, its in (("worker", home), ("worker-private", reader)):
        with place.process(user, its):
            refresh(Settings.from_environment(), ReleaseKey.parse(KEY))
    for name in before:
        if name.startswith(KEY):
            key = f"{place.prefix}/{name}"
            place.root.delete_object(Bucket=bucket_of("public"), Key=key)
    ledger = place.base / "ledger.sqlite"
    ledger.rename(tmp_path / "kept.sqlite")  # which is recovered from packages, once they are back
    with place.process("worker", home):
        assert main(["stores", "restore"]) == 0
        assert f"public: {KEY} is back in the store" in capsys.readouterr().out
    (tmp_path / "kept.sqlite").rename(ledger)
    for name in before:
        if name.startswith(KEY):
            key = f"{place.prefix}/{name}"
            place.root.delete_object(Bucket=bucket_of("public"), Key=key)
    index = f"index/{KEY}.json"
    place.root.delete_object(Bucket=bucket_of("embargoed"), Key=f"{place.prefix}/{index}")
    with place.process("worker-private", reader):  # which may not write what is public
        assert main(["stores", "restore"]) == 1
        assert "403 AccessDenied" in (said := capsys.readouterr().err)
        assert "under Compose: in worker" in said
    assert index in place.objects("embargoed"), "no store hides another"
    with place.process("worker", home):
        assert main(["ledger", "verify"]) == 4
        assert "turnstile stores restore" in capsys.readouterr().err
        assert main(["stores", "restore"]) == 0
        assert f"public: {KEY} is back in the store" in capsys.readouterr().out
        assert main(["stores", "restore"]) == 0
        assert "nothing to restore" in capsys.readouterr().out
    after = place.objects("public")
    package = {name: content for name, content in before.items() if name.startswith(KEY)}
    assert {name: after[name] for name in package} == package
    assert command(place, "ledger", "verify") == 0


def test_a_restore_tells_an_outage_as_one_and_what_is_gravest_last(
    public_week: StoredDeployment,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An outage was told as a matter of rights, and hid what is altered here."""
    place, home = public_week.fork(tmp_path / "copy"), tmp_path / "home"
    with place.process("root", home):
        refresh(Settings.from_environment(), ReleaseKey.parse(KEY))
    for name in place.objects("public", KEY):
        key = f"{place.prefix}/{name}"
        place.root.delete_object(Bucket=bucket_of("public"), Key=key)

    def is_away(bucket: Bucket, path: str, *_: object) -> None:
        raise StoreError(bucket.name, f"{path}: ProxyConnectionError: 403 by a gateway")

    with monkeypatch.context() as patch:
        for put in ("put_if", "put_file"):
            patch.setattr(Bucket, put, is_away)
        with place.process("root", home):
            assert main(["stores", "restore"]) == 1
        assert "run the same command again\n" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(
            "turnstile_stores.zone_stores.restore_units",
            lambda settings, zone: is_away(opened(settings.store_of(zone)), "index/"),
        )
        (home / "public" / KEY / "plan.json").chmod(0o600)
        (home / "public" / KEY / "plan.json").write_text("altered")
        with place.process("root", home):
            assert main(["stores", "restore"]) == 4
    said = capsys.readouterr().err.splitlines()
    assert all("ProxyConnectionError" in line for line in said[:-1])
    assert len(said) > 1
    assert "plan.json" in said[-1]


def test_a_withdrawn_package_is_taken_down_everywhere_and_restored_by_nobody(
    public_week: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, home = public_week.fork(tmp_path / "copy"), tmp_path / "home"
    with place.process("worker", home):
        refresh(Settings.from_environment())
    package = [name for name in place.objects("public") if name.startswith(f"{KEY}/")]
    withdraw = ("ledger", "withdraw", KEY, "--person", "olga", "--reason", "a leak")
    assert command(place, *withdraw) == 0
    for name in package:
        place.root.delete_object(Bucket=bucket_of("public"), Key=f"{place.prefix}/{name}")
    capsys.readouterr()
    with place.process("worker", home):
        assert main(["stores", "restore"]) == 0
        assert "nothing to restore" in capsys.readouterr().out
        refresh(Settings.from_environment())
    assert not [name for name in package if (home / "public" / name).exists()]
    assert not {*package} & place.objects("public").keys()
    assert command(place, "ledger", "verify") == 0


def _forged(path: Path) -> None:
    """Another's signature or key in the place of ours: a file of the same form."""
    signed = path.read_text()
    at = len(signed) - 9
    path.chmod(0o600)
    path.write_text(signed[:at] + ("A" if signed[at] != "A" else "B") + signed[at + 1 :])


OF_LOG = {"a step": "ledger-log/*/steps/*", "the key of the log": "ledger-log/*/log.pub"}


@pytest.mark.parametrize("is_forged", [True, False])
@pytest.mark.parametrize("what", OF_LOG)
def test_a_step_or_key_of_the_log_that_was_forged_as_it_was_signed_is_not_sent(
    public_week: StoredDeployment,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    what: str,
    *,
    is_forged: bool,
) -> None:
    """The store has lost it, so that it is written and sent again: an honest one is."""
    place, signs = public_week.fork(tmp_path / "copy"), Ledger.sign_public_zone
    (name,) = [name for name in place.objects("public") if Path(name).match(OF_LOG[what])]
    honest = place.objects("public")[name]
    key = f"{place.prefix}/{name}"
    place.root.delete_object(Bucket=bucket_of("public"), Key=key)

    def sign(ledger: Ledger, *series: Any) -> Any:
        answers = signs(ledger, *series)
        path = Settings.from_environment().public / name
        assert path.read_bytes() == honest
        if is_forged:
            _forged(path)
        return answers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "sign_public_zone", sign)
        place.step("publish")
    assert place.objects("public").get(name) == (None if is_forged else honest)
    assert ("is not what our keys signed, and was not sent" in caplog.text) is is_forged


@pytest.mark.parametrize("is_forged", [True, False])
def test_a_key_of_the_ledger_that_was_forged_before_the_list_is_not_sent(
    public_week: StoredDeployment,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    *,
    is_forged: bool,
) -> None:
    """The key goes before the list is signed; one that the ledger named a moment ago does."""
    place, home = public_week.fork(tmp_path / "copy"), tmp_path / "home"
    before = place.objects("public")["ledger.pub"]

    def planting(*arguments: Any) -> None:
        _forged(home / "public/ledger.pub")
        send_packages(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        if is_forged:
            patch.setattr(zones, "send_packages", planting)
            place.step("publish", home)
        else:
            with place.process("worker", home):
                assert (
                    main(["ledger", "rotate-key", "--person", "olga", "--reason", "a drill"]) == 0
                )
    after = place.objects("public")["ledger.pub"]
    assert after == before if is_forged else after.startswith(before) and len(after) > len(before)
    assert ("is not what our keys signed, and was not sent" in caplog.text) is is_forged


def test_what_recovery_set_aside_does_not_come_back_from_the_store(
    assessed_week: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An index that names the bytes of a draw that died beside the sealed ones."""
    place, home = assessed_week.fork(tmp_path / "copy"), tmp_path / "home"
    dead = b"noise of a draw that died"
    name = f"sealed-{hashlib.sha256(dead).hexdigest()[:16]}.parquet"
    with place.process("worker", home):
        zone = unit_zone(Settings.from_environment(), "embargoed")
        assert zone is not None
        with zone.working_on(KEY):
            zone.fetch((KEY,), lambda _: True)
            (zone.folder / KEY / name).write_bytes(dead)
            zone.put(KEY)
    index = f"index/{KEY}.json"
    assert name in json.loads(place.objects("embargoed")[index])["files"]
    assert command(place, "ledger", "verify") == 4
    assert f"{name} is not the sealed file" in capsys.readouterr().out
    assert command(place, *RECOVER, "--reason", "a drill", user="root") == 0
    files = json.loads(place.objects("embargoed")[index])["files"]
    assert name not in files
    digest = hashlib.sha256(dead).hexdigest()
    assert (
        [file for file, stored in files.items() if digest in stored]
        == [file for file in files if file.startswith("set-aside/")]
        != []
    )
    assert command(place, "ledger", "verify") == 0
    place.steps("publish", "audit")


@pytest.mark.parametrize("is_assessed", [True, False])
def test_what_was_drawn_is_recovered_from_a_store_on_a_machine_that_has_nothing(
    reserved: StoredDeployment,
    assessed_week: StoredDeployment,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    is_assessed: bool,
) -> None:
    """Found by a simulated world (seed 259): of a staged package only its manifest was here."""
    place = (assessed_week if is_assessed else reserved).fork(tmp_path / "copy")
    if not is_assessed:
        place.step("draw")  # and of this the plan lacked
    spent = {(row.scope, row.spent) for row in place.ledger.balance() if row.unit == "bus_day"}
    (place.base / "ledger.sqlite").unlink()
    said = ("--person", "olga", "--reason", "lost", "--family", "itms=itms_buses")
    assert command(place, "ledger", "recover", *said, user="root") == 0, capsys.readouterr().err
    assert f"losses declared: {KEY}\n" in capsys.readouterr().out
    again = {(row.scope, row.spent) for row in place.ledger.balance() if row.unit == "bus_day"}
    assert again == spent != set()
    place.steps(*STEPS[STEPS.index("draw") :])
    assert place.kinds().count("draw_begun") == 0
    assert command(place, "ledger", "verify") == 0


def test_a_recovery_knows_the_files_of_lost_releases_by_a_private_zone_in_a_store(
    assessed_week: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No record of them was fetched, and copies of them were another group's to charge."""
    place = assessed_week.fork(tmp_path / "copy")
    place.include = Path(shutil.copytree(place.include, tmp_path / "include"))
    text = (place.include / "programmes/itms.yaml").read_text()
    for old, new in {
        "name: itms\n": "name: itms_second\n",
        "family: itms_buses": "family: second_group",
        'landing: "itms/': 'landing: "other/',
    }.items():
        assert old in text
        text = text.replace(old, new, 1)
    (place.include / "programmes/itms_second.yaml").write_text(text)
    for name, content in place.objects("landing", "itms/").items():
        place.plant("landing", name.replace("itms/", "other/", 1), content)
    (place.base / "ledger.sqlite").unlink()
    said = ("--reason", "lost", "--family", "itms=itms_buses")
    assert command(place, *RECOVER, *said, user="root") == 0, capsys.readouterr().err
    (lost,) = (e for e in place.ledger.entries() if e.kind is EntryKind.LOSS_DECLARED)
    assert lost.body["files"]
    capsys.readouterr()
    who = ("--person", "olga", "--reason", "it is right")
    assert command(place, "ledger", "confirm-clock", *who, user="root") == 0
    assert command(place, "run", "itms_second", "--week", WEEK, user="root") == 3
    assert "admit-family second_group" in capsys.readouterr().err


@pytest.mark.parametrize("lost", ["rows", "files"])
def test_what_a_private_store_has_lost_for_good_holds_up_neither_recovery_nor_retention(
    assessed_week: StoredDeployment,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    lost: str,
) -> None:
    """A bucket was put back in part; who needs what is gone says so."""
    place = assessed_week.fork(tmp_path / "copy")
    index = json.loads(place.objects("private")[f"index/itms/{WEEK}.json"])["files"]
    end = "part-000.parquet" if lost == "rows" else "r0/files"
    gone = next(index[name][0] for name in index if name.endswith(end))
    key = f"{place.prefix}/{gone}"
    place.root.delete_object(Bucket=bucket_of("private"), Key=key)
    (place.base / "ledger.sqlite").unlink()
    said = ("--reason", "lost", "--family", "itms=itms_buses")
    assert command(place, *RECOVER, *said, user="root") == 0, capsys.readouterr().err
    unknown = f"itms/{WEEK}" if lost == "files" else "none"
    assert f"delivered files not known of: {unknown}\n" in capsys.readouterr().out
    assert command(place, "retention", "--delete", user="root") == 0, capsys.readouterr().err
    assert command(place, "ledger", "verify", "--private", user="root") != 0
    assert "which its index names, is not there" in capsys.readouterr().err


def test_a_private_zone_that_was_a_folder_and_is_lost_is_said_to_be_by_an_empty_one(
    assessed_week: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new machine, where only what is public and under embargo lies in stores."""
    place = assessed_week.fork(tmp_path / "copy")
    (place.base / "ledger.sqlite").unlink()
    with place.process("worker") as home:
        recover = [*RECOVER, "--reason", "the machine is gone", "--family", "itms=itms_buses"]
        assert main(recover) == 2
        assert f"was here and is lost for good, mkdir -p {home}/private" in capsys.readouterr().err
        (home / "private").mkdir(parents=True)
        assert main(recover) == 0
    assert place.kinds().count("loss_declared") == 1


def test_a_draw_whose_machine_died_before_an_index_named_it_is_charged_again(
    reserved: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found by a simulated world (seed 9400): of a lost ledger nothing knew of the object."""
    place, dead = reserved.fork(tmp_path / "copy"), b"noise of a draw that died"
    name = f"sealed-{hashlib.sha256(dead).hexdigest()[:16]}.parquet"
    place.plant("embargoed", f"files/{KEY}/{'ab' * 16}-{name}", dead)
    (place.base / "ledger.sqlite").unlink()
    said = ("--person", "olga", "--reason", "lost", "--family", "itms=itms_buses")
    assert command(place, "ledger", "recover", *said, user="root") == 0, capsys.readouterr().err
    assert f"losses declared: {KEY}\n" in capsys.readouterr().out
    assert place.kinds().count("loss_declared") == 1
    assert command(place, "ledger", "verify") == 0


def test_a_folder_that_was_the_zone_is_put_into_its_store(
    published: Deployment, store: ObjectStore, tmp_path: Path
) -> None:
    place = StoredDeployment(store, tmp_path / "adopted", published.include)
    place.base.mkdir()
    shutil.copyfile(published.home / "ledger.sqlite", place.base / "ledger.sqlite")
    shutil.copyfile(published.home / "ledger-key.pem", place.base / "key.pem")
    shutil.copyfile(published.home / "log-key.pem", place.base / "log-key.pem")
    with place.process("root", published.home):
        with pytest.raises(InputError, match="turnstile stores adopt"):
            refresh(Settings.from_environment())
        listed = published.home / "public" / zone_index.INDEX
        listed.rename(tmp_path / "listed")
        assert main(["stores", "adopt"]) == 2  # before the first file is in the store
        assert not place.objects("public") | place.objects("private") | place.objects("embargoed")
        (tmp_path / "listed").rename(listed)
        assert main(["stores", "adopt"]) == 0
        assert main(["stores", "check"]) == 0
        assert main(["stores", "adopt"]) == 2  # not empty any more
    assert command(place, "ledger", "verify") == 0
    place.steps(*STEPS[1:])
    assert place.kinds().count("draw_begun") == 1


def test_a_correction_by_hand_is_explained_in_the_store(
    public_week: StoredDeployment, tmp_path: Path
) -> None:
    place = public_week.fork(tmp_path / "copy")
    words = ["run", "itms", "--week", WEEK, "--revision", "1", "--reason", "files came again"]
    words.append("--although-nothing-changed")
    assert command(place, *words, user="root") == 0
    assert f"itms/{WEEK}/r1/manifest.json" in place.objects("public")
    assert command(place, "ledger", "verify") == 0


def test_what_a_command_states_is_public_too(public_week: StoredDeployment, tmp_path: Path) -> None:
    place = public_week.fork(tmp_path / "copy")
    words = ["ledger", "no-release", "itms/2016-W31/r0", "--reason", "strike"]
    assert command(place, *words, user="root") == 0
    assert "itms/2016-W31/no-release-r0.json" in place.objects("public")
    assert command(place, "ledger", "verify") == 0


def test_what_is_private_is_compared_from_a_home_that_holds_none_of_it(
    public_week: StoredDeployment, tmp_path: Path
) -> None:
    place = public_week.fork(tmp_path / "copy")
    assert command(place, "ledger", "verify", "--private", user="worker-private") == 0
    with place.process("worker-private"):
        assert [finding for finding in findings() if finding.name == "private"] == []
    exact = next(name for name in place.objects("private") if name.startswith("files/itms"))
    place.plant("private", exact, b"others")
    assert command(place, "ledger", "verify", "--private", user="worker-private") == 4


def test_a_new_signing_key_signs_the_list_in_the_bucket_too(
    public_week: StoredDeployment, tmp_path: Path
) -> None:
    place = public_week.fork(tmp_path / "copy")
    assert command(place, "ledger", "rotate-key", "--person", "olga", "--reason", "a year") == 0
    assert command(place, "ledger", "verify") == 0
    assert command(place, *RECOVER, "--reason", "a drill", user="root") == 0
    assert command(place, "ledger", "verify") == 0


def test_a_ledger_that_was_lost_and_brought_back_publishes_into_the_bucket_again(
    public_week: StoredDeployment, tmp_path: Path
) -> None:
    place = public_week.fork(tmp_path / "copy")
    index = "itms/series/index.json"
    first = before = json.loads(place.objects("public")[index])
    said = ("--person", "olga", "--reason", "the disk died")
    for times in (1, 2):  # the second time nothing but the index knows of the first
        (place.base / "ledger.sqlite").unlink()
        assert command(place, "ledger", "recover", *said, user="root") == 0
        after = json.loads(place.objects("public")[index])
        assert after["ledger_recoveries"] == times
        assert after["ledger_sequence"] < first["ledger_sequence"]
        assert command(place, "ledger", "verify") == 0
    place.plant("public", index, json.dumps(after | {"ledger_recoveries": 5}).encode())
    # of a history that nobody has
    assert command(place, "ledger", "recover", *said, user="root") == 0
    after = json.loads(place.objects("public")[index])
    assert after["ledger_recoveries"] == 6
    assert after["latest"] == before["latest"]
    with place.process("worker") as home:
        refresh(Settings.from_environment())
        (home / "public" / index).write_text(json.dumps(before))  # whoever was not recovered
        zone = plain_zone(Settings.from_environment(), "public")
        assert zone is not None
        named = {index: sha256_of(home / "public" / index)}
        with pytest.raises(RefusedError, match="turnstile ledger recover"):
            send_site(zone.bucket, zone.bucket.name, home / "public", "itms", lambda: named)


def test_a_recovery_that_did_not_see_what_another_published_does_not_win_over_it(
    public_week: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two copies without a witness in common: who was recovered oftener replaced the other's."""
    index, said = "itms/series/index.json", ("--person", "olga", "--reason", "a drill")
    drill, place = public_week.fork(tmp_path / "drill"), public_week.fork(tmp_path / "copy")
    (drill.base / "ledger.sqlite").unlink()
    assert command(drill, "ledger", "recover", *said, user="root") == 0
    assert command(drill, "ledger", "republish") == 0  # it has seen all that lay there
    assert command(place, "ledger", "no-release", "itms/2016-W29/r0", *said) == 0
    before = place.objects("public")[index]
    shutil.copyfile(place.base / "ledger.sqlite", tmp_path / "other.sqlite")
    shutil.copyfile(drill.base / "ledger.sqlite", place.base / "ledger.sqlite")
    shutil.copyfile(drill.base / "log-key.pem", place.base / "log-key.pem")
    capsys.readouterr()
    assert command(place, "ledger", "republish") == 4
    assert "was not seen when this ledger was brought back" in capsys.readouterr().out
    assert place.objects("public")[index] == before
    assert command(place, "ledger", "recover", *said, user="root") == 0  # a person looked at it
    after = json.loads(place.objects("public")[index])
    assert after["ledger_recoveries"] == 2
    assert dict(after["ledger_recovered_over"])[0] >= json.loads(before)["ledger_sequence"]
    assert command(place, "ledger", "republish") == 0


def test_an_index_of_older_code_is_replaced_where_all_that_it_shows_is_here(
    public_week: StoredDeployment, tmp_path: Path
) -> None:
    """Code that counted no recoveries published from a recovered ledger, and was upgraded again."""
    place = public_week.fork(tmp_path / "copy")
    index, said = "itms/series/index.json", ("--person", "olga", "--reason", "the disk died")
    (place.base / "ledger.sqlite").unlink()
    assert command(place, "ledger", "recover", *said, user="root") == 0
    after = json.loads(place.objects("public")[index])
    older = {name: value for name, value in after.items() if "recover" not in name}
    older["ledger_sequence"] = dict(after["ledger_recovered_over"])[0] + 1
    foreign = {"path": "series/data/speed/v1/2016-W99-r0.parquet", "bytes": 1, "sha256": "00"}
    for more, code in (([foreign], 4), ([], 0)):
        place.plant("public", index, json.dumps(older | {"files": after["files"] + more}).encode())
        assert command(place, "ledger", "republish") == code
    assert json.loads(place.objects("public")[index])["ledger_recoveries"] == 1


@pytest.mark.parametrize("name", [f"itms/{WEEK}/checkpoint-r0.note", "ledger-checkpoint.note"])
def test_a_note_that_is_gone_from_the_bucket_is_written_again(
    public_week: StoredDeployment, tmp_path: Path, name: str
) -> None:
    place = public_week.fork(tmp_path / "copy")
    shutil.copytree(place.include, tmp_path / "include")
    place.include = tmp_path / "include"
    text = (place.include / "programmes/itms.yaml").read_text()
    another = re.sub(r"^(programme|name): itms$", r"\1: aaa", text, flags=re.MULTILINE)
    (place.include / "programmes/aaa.yaml").write_text(another)
    stated = ("aaa/2016-W29/r0", "--person", "olga", "--reason", "strike")
    assert command(place, "ledger", "no-release", *stated) == 0  # which is sent before itms
    place.root.delete_object(Bucket=bucket_of("public"), Key=f"{place.prefix}/{name}")
    assert command(place, "ledger", "verify") == 4
    assert command(place, "ledger", "republish") == 0
    assert name in place.objects("public")
    assert command(place, "ledger", "verify") == 0


def _series_of(place: StoredDeployment) -> dict[str, bytes]:
    """What lies in the bucket of pages and series, but what each signature writes anew."""
    return place.objects("public", r"itms/(series|explore|[^/]+$)")


@pytest.fixture(scope="module")
def mended(
    public_week: StoredDeployment, tmp_path_factory: pytest.TempPathFactory
) -> StoredDeployment:
    """A copy in whose bucket each test puts right what it did."""
    return public_week.fork(tmp_path_factory.mktemp("mended"))


@pytest.mark.parametrize("kind", ["altered", "gone", "planted", "index"])
def test_what_somebody_did_to_a_series_in_the_bucket_is_named_and_put_right(
    mended: StoredDeployment, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """Its index alone was compared, so republish answered ok and put nothing."""
    place = mended
    before = _series_of(place)
    part = max(name for name in before if name.endswith(".parquet"))
    for repair in (["ledger", "republish"], None):
        if kind == "gone":
            key = f"{place.prefix}/{part}"
            place.root.delete_object(Bucket=bucket_of("public"), Key=key)
        else:
            flipped = before[part][:-9] + bytes([before[part][-9] ^ 1]) + before[part][-8:]
            names = {"altered": part, "planted": part + ".csv", "index": "itms/series/index.json"}
            place.plant("public", names[kind], flipped)
        capsys.readouterr()
        assert command(place, "ledger", "verify") == 4
        said = "".join(capsys.readouterr())
        assert "turnstile ledger republish makes all series anew" in said
        if repair:
            assert command(place, *repair) == 0
        else:
            place.step("publish")  # as the next one does
        assert _series_of(place) == before
        assert command(place, "ledger", "verify") == 0


def test_a_series_that_is_as_it_was_is_neither_put_nor_read_object_by_object(
    public_week: StoredDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = public_week.fork(tmp_path / "copy")
    read, put = list[str](), list[str]()
    ask, change = Bucket.read, Bucket.put_if
    monkeypatch.setattr(Bucket, "read", lambda *of: read.append(of[1]) or ask(*of))
    monkeypatch.setattr(Bucket, "put_if", lambda *of: put.append(of[1]) or change(*of))
    assert command(place, "ledger", "republish") == 0
    assert [name for name in read if "/series/" in name or "/explore/" in name] == [
        "itms/series/index.json"
    ]
    assert put == []


def test_a_publisher_whose_copy_is_older_lists_what_others_have_published(
    public_week: StoredDeployment, tmp_path: Path
) -> None:
    place = public_week.fork(tmp_path / "copy")
    with place.process("worker", tmp_path / "first"):
        refresh(Settings.from_environment())
    said = ("--person", "olga", "--reason", "no bus went")
    assert command(place, "ledger", "no-release", "itms/2016-W29/r0", *said) == 0
    with place.process("worker", tmp_path / "first"):
        settings = Settings.from_environment()
        ledger = open_ledger(settings)
        StoredZones(settings).send_public(ledger.sign_public_zone)
    assert command(place, "ledger", "verify") == 0


def withdraw(place: StoredDeployment, include: Path, *, has_file: bool = False) -> None:
    """Withdraw the week where its programme has its file, or has none any more."""
    place.include = shutil.copytree(place.include, include)
    if not has_file:
        (include / "programmes/itms.yaml").unlink()
    said = ("--person", "olga", "--reason", "a bus was counted twice")
    assert command(place, "ledger", "withdraw", KEY, *said) == 0


@pytest.mark.parametrize("is_made", [True, False], ids=["series made", "no programme file"])
def test_the_withdrawal_of_the_only_week_goes_out(
    public_week: StoredDeployment,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    is_made: bool,
) -> None:
    place = public_week.fork(tmp_path / "copy")
    before = _series_of(place)
    kept = (place.include / "programmes/itms.yaml").read_bytes()
    withdraw(place, tmp_path / "include", has_file=is_made)
    assert ("series stay as they were" in capsys.readouterr().err) is not is_made
    record = f"itms/{WEEK}/withdrawn-r0.json"
    assert place.objects("public", record)
    assert record in place.objects("public", "zone-index.txt")["zone-index.txt"].decode()
    assert (_series_of(place) == before) is not is_made
    assert command(place, "ledger", "verify") == 0
    (place.include / "programmes/itms.yaml").write_bytes(kept)
    assert command(place, "ledger", "republish") == 0
    assert place.objects("public", record)
    tables = [
        json.loads(of["itms/series/index.json"])["tables"] for of in (before, _series_of(place))
    ]
    assert tables[0]
    assert not tables[1]
    assert command(place, "ledger", "verify") == 0


def test_a_record_that_is_gone_is_sent_again_though_its_programme_file_is_gone(
    public_week: StoredDeployment, tmp_path: Path
) -> None:
    place = public_week.fork(tmp_path / "copy")
    withdraw(place, tmp_path / "include")
    record = f"itms/{WEEK}/withdrawn-r0.json"
    place.root.delete_object(Bucket=bucket_of("public"), Key=f"{place.prefix}/{record}")
    assert command(place, "ledger", "republish") == 4  # the series stay as they were
    assert place.objects("public", record)
    assert command(place, "ledger", "verify") == 0


def test_a_private_copy_without_its_store_is_no_zone(
    public_week: StoredDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, home = public_week.fork(tmp_path / "copy"), tmp_path / "home"
    with place.process("worker-private", home):
        assert main(["ledger", "verify", "--private"]) == 0
        monkeypatch.delenv("TURNSTILE_PRIVATE_STORE")
        with pytest.raises(InputError, match="PRIVATE_STORE: is not set, and .* is the copy"):
            step_named("ingest")("itms", WEEK, 0)


def test_a_foreign_object_without_a_name_stops_nothing_of_a_programme(
    public_week: StoredDeployment, tmp_path: Path
) -> None:
    place = public_week.fork(tmp_path / "copy")
    place.plant("landing", "notes//readme.txt", b"read me")
    assert command(place, "ledger", "verify", "--private", user="worker-private") == 0


def test_retention_deletes_in_the_buckets_too(
    public_week: StoredDeployment, tmp_path: Path
) -> None:
    place = public_week.fork(tmp_path / "copy")
    assert any(name.startswith(f"files/itms/{WEEK}/") for name in place.objects("private"))
    with place.process("worker-private"):
        assert set(act()) == {(WEEK, "rows"), (WEEK, "exact")}
    private = place.objects("private")
    assert json.loads(private[f"index/itms/{WEEK}.json"])["files"] == {}
    assert not [name for name in private if name.startswith("files/itms/")]
    assert any(name.startswith("files/zone/") for name in private)  # the bounding key stays
    assert [name for name in place.objects("landing") if name.startswith("itms/")]
    with place.process("worker-private"):
        assert (WEEK, "files") in act(NOW + WINDOW + timedelta(days=1))
    assert not [name for name in place.objects("landing") if name.startswith("itms/")]
    assert [name for name in place.objects("landing") if name.startswith("opal/")]
    assert command(place, "ledger", "verify") == 0


def kept_home(place: StoredDeployment, home: Path, *, whole: bool = False) -> Path:
    """A home that has fetched what an audit of everything reads, or all there is."""
    with place.process("root", home):
        assert main(["ledger", "verify", "--private"]) == 0
        if whole:
            refresh(Settings.from_environment(), ReleaseKey("itms", WEEK))
    return home


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_copy_of_one_store_is_adopted_into_another_whole_or_not_at_all(
    public_week: StoredDeployment,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    is_whole: bool,
) -> None:
    """It was said to be in the store, of which nothing was written."""
    place = public_week.fork(tmp_path / "copy")
    home = kept_home(place, tmp_path / "home", whole=is_whole)
    other = StoredDeployment(place.store, tmp_path / "other", place.include)
    shutil.copytree(place.base, other.base)
    with other.process("root", home):
        assert main(["stores", "adopt"]) == (0 if is_whole else 2)
    if not is_whole:
        assert "copy the objects of that store into this one" in capsys.readouterr().err
        assert not other.objects("private") | other.objects("embargoed") | other.objects("public")
        return
    for zone in ("private", "embargoed"):
        assert len(other.objects(zone)) == len(place.objects(zone))
    assert command(other, "ledger", "verify", "--private", user="root") == 0
    with other.process("root", home):
        assert main(["ledger", "verify", "--private"]) == 0


@pytest.mark.parametrize("puts", [10, 40, 150])
def test_folders_that_are_in_their_stores_in_part_go_on(
    public_week: StoredDeployment, tmp_path: Path, puts: int
) -> None:
    """The private zone was there, and the same command refused its store as not empty."""
    place = public_week.fork(tmp_path / "copy")
    home = kept_home(place, tmp_path / "home", whole=True)
    for zone in ZONES:
        shutil.rmtree(home / zone / ".store")
    other = StoredDeployment(place.store, tmp_path / "other", place.include)
    shutil.copytree(place.base, other.base)
    left, put = [puts], Bucket._of_put

    def of_put(bucket: Bucket, path: str) -> dict[str, str]:
        left[0] -= 1
        if left[0] < 0:
            away()
        return put(bucket, path)

    with other.process("root", home):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Bucket, "_of_put", of_put)
            assert main(["stores", "adopt"]) == 1
        assert main(["stores", "adopt"]) == 0
        assert main(["ledger", "verify", "--private"]) == 0
        assert main(["stores", "adopt"]) == 2
    for name in ("private", "embargoed", "public"):
        assert len(other.objects(name)) >= len(place.objects(name))
    assert command(other, "ledger", "verify", "--private", user="root") == 0


def test_a_public_bucket_of_the_day_before_a_withdrawal_is_named(
    public_week: StoredDeployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its list agrees with what lies there, and shows the release as good."""
    place, said = public_week.fork(tmp_path / "copy"), ("--person", "olga", "--reason", "a drill")
    before = place.objects("public")
    assert command(place, "ledger", "withdraw", KEY, *said) == 0
    assert command(place, "ledger", "no-release", "itms/2016-W29/r0", *said) == 0
    for name in place.objects("public").keys() - before.keys():
        place.root.delete_object(Bucket=bucket_of("public"), Key=f"{place.prefix}/{name}")
    for name, content in before.items():
        place.plant("public", name, content)
    monkeypatch.setattr(verification, "_IN_CHANGE", timedelta(0))  # an hour has passed
    records = [f"itms/{WEEK}/withdrawn-r0.json", "itms/2016-W29/no-release-r0.json"]
    for words in (["ledger", "verify"], ["doctor"]):
        assert command(place, *words) == 4
        told = capsys.readouterr().out
        for record in records:
            missing = f"{record} is missing, which the ledger states; turnstile ledger republish"
            assert missing in told
    assert command(place, "ledger", "republish") == 0
    assert {*records} <= place.objects("public").keys()
    assert command(place, "ledger", "verify") == 0


def test_a_copy_is_no_zone_while_no_store_is_named(
    assessed_week: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A package that was published into it went at the next fetch, and it was the only one."""
    place = assessed_week.fork(tmp_path / "copy")
    home = kept_home(place, tmp_path / "home")

    def without_stores(*words: str) -> int:
        with place.process("root", home), pytest.MonkeyPatch.context() as patch:
            for zone in ZONES:
                patch.delenv(f"TURNSTILE_{zone.upper()}_STORE")
            return main([*words])

    for words in (["run", "itms", "--week", WEEK], ["ledger", "verify"], ["doctor"]):
        assert without_stores(*words) in {2, 4}
        assert "Back to folders" in "".join(capsys.readouterr())
    assert "published" not in place.kinds()
    for zone in ZONES:  # as that chapter says
        shutil.rmtree(home / zone / ".store")
    assert without_stores("ledger", "verify", "--private") == 0
    assert without_stores("run", "itms", "--week", WEEK) == 0
    assert without_stores("ledger", "verify", "--private") == 0


@pytest.mark.parametrize("inner", ["{public}", "{public}/embargoed"])
def test_no_zone_lies_in_the_store_of_another(
    reserved: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str], inner: str
) -> None:
    place = reserved.fork(tmp_path / "copy")
    stores = place.store.environment("root", place.prefix)
    with place.process("root"), pytest.MonkeyPatch.context() as patch:
        address, _, options = stores["TURNSTILE_PUBLIC_STORE"].partition("?")
        named = f"{inner.format(public=address)}?{options}"
        patch.setenv("TURNSTILE_EMBARGOED_STORE", named)
        for words in (["stores", "check"], ["run", "itms", "--week", WEEK], ["doctor"]):
            assert main(words) in {2, 4}
            told = "".join(capsys.readouterr())
            assert "TURNSTILE_EMBARGOED_STORE: lies in the store of public" in told
    assert not place.objects("public")


@pytest.mark.parametrize("content", [None, b"bytes of another"], ids=["deleted", "altered"])
@pytest.mark.parametrize("zone", ["private", "embargoed"])
def test_an_object_that_somebody_deleted_or_altered_comes_back_from_a_home_that_has_it(
    assessed_week: StoredDeployment,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    zone: str,
    content: bytes | None,
) -> None:
    place = assessed_week.fork(tmp_path / "copy")
    home = kept_home(place, tmp_path / "home")
    unit, begin = (KEY, "sealed-") if zone == "embargoed" else (f"itms/{WEEK}", "r0/exact-")
    index = json.loads(place.objects(zone)[f"index/{unit}.json"])["files"]
    (name,) = [name for name in index if name.startswith(begin)]
    if content is None:
        key = f"{place.prefix}/{index[name][0]}"
        place.root.delete_object(Bucket=bucket_of(zone), Key=key)
    else:
        place.plant(zone, index[name][0], content)
    assert command(place, "doctor", user="worker-private") == 4
    told = capsys.readouterr().out
    assert "turnstile stores restore" in told
    assert "ledger recover" not in told  # of what could not be fetched nothing is missing
    with place.process("root", home):
        assert main(["stores", "restore"]) == 0
        assert f"{zone}: {unit}: 1 files are back in the store" in capsys.readouterr().out
        assert main(["stores", "restore"]) == 0
        assert "nothing to restore" in capsys.readouterr().out
    assert command(place, "ledger", "verify", "--private", user="worker-private") == 0
    with place.process("root", home):  # whose copies these are
        assert main(["doctor"]) == 0


def test_a_bounding_key_goes_into_a_private_zone_or_nowhere(
    public_week: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, said = public_week.fork(tmp_path / "copy"), ("--person", "olga", "--reason", "seen")
    assert command(place, "ledger", "rotate-bounding-key", *said) == 2
    assert "TURNSTILE_PRIVATE_STORE: is not named" in capsys.readouterr().err
    assert command(place, "ledger", "verify", "--private", user="worker-private") == 0
    assert command(place, "ledger", "rotate-bounding-key", *said, user="worker-private") == 0
    assert command(place, "ledger", "verify", "--private", user="worker-private") == 0


def test_doctor_looks_into_a_private_bucket_and_knows_its_repair(
    public_week: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = public_week.fork(tmp_path / "copy")
    home = kept_home(place, tmp_path / "home")
    for name in place.objects("private"):
        place.root.delete_object(Bucket=bucket_of("private"), Key=f"{place.prefix}/{name}")
    assert command(place, "doctor", user="worker-private") == 4
    assert "private: private/bounding.key is gone" in capsys.readouterr().out
    with place.process("worker-private", home):
        assert main(["doctor"]) == 4
        told = capsys.readouterr().out
        assert re.search(r"store: .* is gone, which was there", told)
        assert "ledger recover" not in told
        assert main(["stores", "restore"]) == 0
    assert command(place, "doctor", user="worker-private") == 0


@pytest.mark.parametrize("words", [["rotate-key"], ["begin-log", "--origin", "example.org/next"]])
def test_what_is_in_force_and_was_not_sent_is_not_asked_for_again(
    public_week: StoredDeployment,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    place, said = public_week.fork(tmp_path / "copy"), ("--person", "olga", "--reason", "a year")
    assert command(place, "ledger", *words, *said, user="page") == 1
    told = capsys.readouterr().err
    assert "is in force, and not public yet" in told
    assert "run the same command again" not in told
    assert command(place, "ledger", "republish") == 0
    assert command(place, "ledger", "verify") == 0


@pytest.mark.parametrize("name", [f"itms//{WEEK}/itms.csv", f"/itms/{WEEK}/itms.csv"])
def test_what_was_delivered_under_no_name_of_a_file_is_named(
    reserved: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    place = reserved.fork(tmp_path / "copy")
    place.plant("landing", f"itms/{WEEK}/", b"")  # the mark of a folder is no file
    place.step("ingest")
    place.plant("landing", name, b"x")
    assert command(place, "run", "itms", "--week", WEEK, user="root") == 2
    assert f"{name}: holds an empty name of a folder" in capsys.readouterr().err


def test_made_up_files_are_not_said_to_be_in_a_bucket(
    reserved: StoredDeployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = reserved.fork(tmp_path / "copy")
    words = ["sample", "itms", "--weeks", "2016-W33", "--rows", "200"]
    assert command(place, *words, user="worker-private") == 2
    assert "say --out FOLDER" in capsys.readouterr().err
    assert command(place, *words, "--out", str(tmp_path / "out"), user="worker-private") == 0


def test_a_portal_learns_of_a_withdrawal_though_the_programme_file_is_gone(
    public_week: StoredDeployment, tmp_path: Path
) -> None:
    place, portal = public_week.fork(tmp_path / "copy"), tmp_path / "portal"
    send = ["portal", "send", "itms", "--to", f"file://{portal}"]
    assert command(place, *send) == 0
    withdraw(place, tmp_path / "include")
    assert command(place, *send) == 0
    assert (portal / f"itms/{WEEK}/withdrawn-r0.json").is_file()
