"""A week of which a recovery declared several draws at once, on its way to the public and after it.

Two draws died and left their sealed bytes, the third was sealed; then the ledger was lost, and
nobody had a witness. Files alone say what was drawn: one entry charges all three.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
from deployment_fixtures import STEADY_ITMS, PublishedWeeks, with_home
from made_homes import MadeHome, MadeHomes
from small_deployment import WEEK, Deployment

from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.pipeline import before_charge
from turnstile.pipeline.draw import charged_draw
from turnstile.pipeline.steps import STEPS, step_named
from turnstile.publishing.carried import verify_losses
from turnstile.release.sealed import Artefact, encode

Cli = Callable[..., int]
WHO = ("--person", "olga", "--reason", "the disk")
KEY = f"itms/{WEEK}/r0"
COST_MICRO = 8_000_000  # of one draw, of a service day's buses
DIED = 2


def spent_micro(site: Deployment) -> int:
    """What the week's days have lost, by the ledger."""
    balances = site.ledger.balance("itms_buses")
    days = {account.spent.epsilon_micro for account in balances if str(account.unit) == "bus_day"}
    (amount,) = days
    assert amount is not None
    return amount


def declared(site: Deployment) -> Iterator[dict[str, object]]:
    """Bodies of the losses that were declared."""
    for entry in site.ledger.entries():
        if entry.kind is EntryKind.LOSS_DECLARED:
            yield dict(entry.body)


@pytest.fixture(scope="module")
def recovered_once(
    tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes, published_weeks: PublishedWeeks
) -> MadeHome:
    """The week waits for its publication under a ledger that came back from files alone."""
    root = tmp_path_factory.mktemp("recovered")
    begun = MadeHome(published_weeks.assessed.parent, ()).copy(root)
    folder = begun.home / "embargoed" / KEY
    (folder / "set-aside").mkdir()
    for number in range(DIED):
        (folder / f"set-aside/sealed-{number:016x}.parquet").write_bytes(b"noise of a draw")
    Deployment(begun.home, begun.include).lose_ledger()
    return homes.get(
        root,
        ("ledger", "recover", *WHO, "--family", "itms=itms_buses"),
        ("ledger", "verify"),  # the signing key is the ledger's again
        ("ledger", "confirm-clock", *WHO),
    )


@pytest.fixture
def recovered(deployment: Deployment, recovered_once: MadeHome) -> Deployment:
    return with_home(deployment, recovered_once.home)


@pytest.fixture
def public(deployment: Deployment, homes: MadeHomes, recovered_once: MadeHome) -> Path:
    """Its package, after the run went on."""
    went_on = homes.get(recovered_once.root, ("run", "itms", "--week", WEEK))
    return with_home(deployment, went_on.home).public / KEY


def test_one_entry_declares_all_draws_and_a_repeat_declares_none(
    recovered: Deployment, turnstile: Cli
) -> None:
    for _ in range(2):
        (entry,) = declared(recovered)
        assert (entry["draws"], entry["state"]) == (1 + DIED, "sealed")
        assert spent_micro(recovered) == (1 + DIED) * COST_MICRO
        assert turnstile("ledger", "verify") == 0
        assert turnstile("ledger", "recover", *WHO) == 0


def test_what_is_published_states_every_draw_and_readers_agree(
    deployment: Deployment, public: Path, turnstile: Cli, tmp_path: Path
) -> None:
    card = json.loads((public / "release_card.json").read_bytes())
    assert (card["burned_draws"], card["ledger"]["after_recoveries"]) == (DIED, 1)
    (of_all,) = (e for e in deployment.ledger.entries() if e.kind is EntryKind.LOSS_DECLARED)
    assert card["charges"] == [{"draws": 1 + DIED, "entry_sha256": of_all.hash}]
    assert spent_micro(deployment) == (1 + DIED) * COST_MICRO
    assert turnstile("ledger", "verify") == 0
    carried = public / "tools/verify_package.py"
    done = subprocess.run(  # noqa: S603 - the package's own program
        [
            sys.executable,
            carried,
            public,
            "--key",
            (deployment.home / "public/ledger.pub").read_text().strip(),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    export = tmp_path / "export"
    assert turnstile("ledger", "export", str(export)) == 0
    assert verify_losses.main([str(deployment.home / "public"), "--ledger", str(export)]) == 0


@pytest.mark.usefixtures("public")
def test_a_card_that_states_fewer_draws_than_were_declared_is_named(
    deployment: Deployment,
    public: Path,
    turnstile: Cli,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The negative control: one draw stated, three charged."""
    path = public / "release_card.json"
    card = json.loads(path.read_bytes())
    path.unlink()
    path.write_text(json.dumps(card | {"burned_draws": 0, "charges": [{"draws": 1}]}))
    export = tmp_path / "export"
    assert turnstile("ledger", "export", str(export)) == 0
    capsys.readouterr()
    assert verify_losses.main([str(deployment.home / "public"), "--ledger", str(export)]) == 1
    assert f"1 draws stated, {1 + DIED} charged in the export" in "".join(capsys.readouterr())


@pytest.mark.usefixtures("public")
def test_the_package_alone_proves_all_draws_when_the_ledger_is_lost_again(
    deployment: Deployment, turnstile: Cli
) -> None:
    """What draws that died left is gone with the home under embargo: the card says how many."""
    shutil.rmtree(deployment.home / "embargoed" / KEY / "set-aside")
    deployment.lose_ledger()
    assert turnstile("ledger", "recover", *WHO) == 0
    (entry,) = declared(deployment)
    assert (entry["draws"], entry["state"]) == (1 + DIED, "published")
    assert spent_micro(deployment) == (1 + DIED) * COST_MICRO
    assert turnstile("ledger", "verify") == 0


class Killed(BaseException):
    """A process that ends between the bytes of a draw and their seal."""


def killed(*_: object) -> None:
    raise Killed


def die_of_a_dear_plan(site: Deployment, turnstile: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a draw die that left its bytes; then the programme costs half of it."""
    shutil.copyfile(STEADY_ITMS, site.include / "programmes/itms.yaml")
    site.edit("itms", 'relation: add_remove, epsilon: "8"', 'relation: add_remove, epsilon: "12"')
    for name in STEPS[: STEPS.index("draw")]:  # a patch ends all sharing of what was found before
        step_named(name)("itms", WEEK, 0)
    with monkeypatch.context() as dying:
        dying.setattr(Ledger, "seal", killed)
        dying.setattr("turnstile.ledger.leases.LEASE_S", 0)  # of a minute ago
        with pytest.raises(Killed):
            step_named("draw")("itms", WEEK, 0)
    assert turnstile("ledger", "burn", KEY, *WHO) == 0
    site.edit("itms", '  epsilon: "8"\n  split', '  epsilon: "4"\n  split')


@pytest.mark.parametrize("place", [".", ".store/aside"])
def test_bytes_beside_a_cheaper_plan_under_which_nothing_was_drawn_are_charged_at_their_own(
    landed: Deployment, turnstile: Cli, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """They were taken for those of the plan beside them, at half of what they had cost."""
    die_of_a_dear_plan(landed, turnstile, monkeypatch)
    embargoed = landed.home / "embargoed"
    (drawn,) = (embargoed / KEY).glob("sealed-*")
    (embargoed / place / KEY).mkdir(parents=True, exist_ok=True)
    drawn.rename(embargoed / place / KEY / drawn.name)
    for name in STEPS[: STEPS.index("plan") + 1]:
        step_named(name)("itms", WEEK, 0)
    landed.lose_ledger()
    for _ in range(2):
        assert turnstile("ledger", "recover", *WHO, "--family", "itms=itms_buses") == 0
        assert spent_micro(landed) == COST_MICRO
        assert turnstile("ledger", "verify") == 0


def test_bytes_of_a_dearer_plan_are_charged_at_that_plan_from_files_alone(
    landed: Deployment, turnstile: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A programme was made cheaper after a draw died; its plan is kept beside what it left."""
    die_of_a_dear_plan(landed, turnstile, monkeypatch)
    for name in STEPS[: STEPS.index("draw") + 1]:
        step_named(name)("itms", WEEK, 0)
    assert spent_micro(landed) == COST_MICRO * 3 // 2
    landed.lose_ledger()
    for _ in range(2):
        assert turnstile("ledger", "recover", *WHO, "--family", "itms=itms_buses") == 0
        assert spent_micro(landed) == COST_MICRO * 3 // 2
        assert turnstile("ledger", "verify") == 0
    assert turnstile("ledger", "confirm-clock", *WHO) == 0
    assert turnstile("run", "itms", "--week", WEEK) == 0
    card = json.loads((landed.public / KEY / "release_card.json").read_bytes())
    assert [(of["draws"], "postings" in of) for of in card["charges"]] == [(1, True), (1, False)]
    export = landed.home.parent / "export"
    assert turnstile("ledger", "export", str(export)) == 0
    assert verify_losses.main([str(landed.public), "--ledger", str(export)]) == 0


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_week_is_not_planned_anew_while_it_is_drawn(
    landed: Deployment,
    turnstile: Cli,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    is_elsewhere: bool,
) -> None:
    """The cheaper plan lay beside bytes that had been charged at the dearer one.

    A worker that plans may have no private zone, and no lock of it.
    """
    private = landed.home / "private" / KEY
    plan, planning = landed.home / "embargoed" / KEY / "plan.json", list[Thread]()

    def encode_later(artefact: Artefact) -> bytes:
        before = plan.read_bytes()
        landed.edit("itms", '  epsilon: "8"\n  split', '  epsilon: "4"\n  split')
        if is_elsewhere:
            private.rename(landed.home / "of another worker")
        planning.append(Thread(target=step_named("plan"), args=("itms", WEEK, 0)))
        planning[0].start()
        planning[0].join(1)
        assert planning[0].is_alive()
        assert plan.read_bytes() == before
        if is_elsewhere:
            (landed.home / "of another worker").rename(private)
        return encode(artefact)

    shutil.copyfile(STEADY_ITMS, landed.include / "programmes/itms.yaml")
    monkeypatch.setattr(charged_draw, "encode", encode_later)
    monkeypatch.setattr(before_charge, "BEAT_S", 0.1)
    caplog.set_level("INFO")
    for name in STEPS[: STEPS.index("draw") + 1]:
        step_named(name)("itms", WEEK, 0)
    planning[0].join()
    assert f"waiting: another process draws {KEY} at this moment" in caplog.text
    (sealed,) = landed.ledger.attempts(ReleaseKey.parse(KEY))
    assert json.loads(plan.read_bytes())["plan_digest"] == sealed.plan_digest
    landed.lose_ledger()
    assert turnstile("ledger", "recover", *WHO, "--family", "itms=itms_buses") == 0
    assert spent_micro(landed) == COST_MICRO


def of_another_copy(package: Path, *, shares: bool) -> None:
    """Let a package be one that another copy of the deployment published, of bytes of its own.

    Args:
        package: its folder.
        shares: whether it parted from ours after the draws that died were declared.
    """
    manifest, path = package / "manifest.json", package / "release_card.json"
    stated, card = json.loads(manifest.read_bytes()), json.loads(path.read_bytes())
    if not shares:
        card["charges"] = [charge | {"entry_sha256": "f" * 64} for charge in card["charges"]]
    content = json.dumps(card).encode()
    facts = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    files = [file | (facts if file["path"] == path.name else {}) for file in stated["files"]]
    text = json.dumps({**stated, "sealed_sha256": "f" * 64, "files": files})
    for at, written in ((path, content), (manifest, text.encode())):
        at.unlink()
        at.write_bytes(written)


@pytest.mark.parametrize(("shares", "draws"), [(False, 1 + DIED), (True, 1)])
def test_a_foreign_package_of_several_draws_is_charged_once_for_all_of_them(
    deployment: Deployment,
    public: Path,
    turnstile: Cli,
    tmp_path: Path,
    *,
    shares: bool,
    draws: int,
) -> None:
    """At a key that has other bytes: what its ledger and ours both charged is charged already."""
    own = tmp_path / "own"
    shutil.copytree(public, own)
    of_another_copy(public, shares=shares)
    for _ in range(2):  # it lies there until people move it away
        assert turnstile("ledger", "recover", *WHO) == 0
        assert spent_micro(deployment) == (1 + DIED + draws) * COST_MICRO
    _, entry = declared(deployment)
    assert (entry["draws"], entry["proven_by"]) == (draws, "f" * 64)
    shutil.rmtree(public)
    shutil.copytree(own, public)
    assert turnstile("ledger", "recover", *WHO) == 0
    assert spent_micro(deployment) == (1 + DIED + draws) * COST_MICRO
    assert turnstile("ledger", "verify") == 0
    assert turnstile("run", "itms", "--week", WEEK) == 0
