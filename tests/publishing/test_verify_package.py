"""`verify_package.py`, as anybody runs it: Python alone, without ledger or home."""

from __future__ import annotations

import base64
import csv
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_deployment import WEEK

from turnstile.cli import main
from turnstile.ledger.custody import zone_index
from turnstile.ledger.custody.signed_note import Signer
from turnstile.ledger.custody.zone_index import is_in_work
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.tlog.checkpoints import checkpoint_text
from turnstile.publishing.carried import verify_package
from turnstile.publishing.describe.manifest import MANIFEST, manifest_bytes
from turnstile.publishing.describe.statement import STATEMENT, SUMS
from turnstile.settings import Settings


def _run(package: Path, *arguments: str) -> tuple[int, str]:
    command = [
        sys.executable,
        "-I",
        "-S",
        str(package / "tools/verify_package.py"),
    ]  # no site-packages
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [*command, str(package), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def _manifest_anew(package: Path) -> None:
    """Do what a forger would do: make digests agree again."""
    old = json.loads((package / MANIFEST).read_bytes())
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(package).as_posix()}\n"
        for path in sorted(package.rglob("*"))
        if path.is_file() and path.name not in (SUMS, MANIFEST)
    ]
    (package / SUMS).write_text("".join(lines))
    content = manifest_bytes(package, key=old["key"], sealed_digest=old["sealed_sha256"])
    (package / MANIFEST).write_bytes(content)


def test_a_package_as_published_verifies_without_anything_installed(package: Path) -> None:
    code, said = _run(package)
    assert code == 0, said
    assert "as published; signed\n" in said


def test_a_package_without_a_list_of_its_zone_is_said_to_stand_alone(copied: Path) -> None:
    """Whoever takes the list away may alter pages, series and the other packages."""
    code, said = _run(copied)
    assert code == 0, said
    assert "signed; alone: without a zone-index.txt" in said


@pytest.mark.parametrize("depth", range(3))
def test_a_zone_or_a_week_is_no_package_and_that_is_said(copied: Path, depth: int) -> None:
    command = [sys.executable, "-I", "-S", str(copied / "tools/verify_package.py")]
    given = [str(copied.parents[depth])]
    done = subprocess.run([*command, *given], capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stdout) == (2, "")
    assert "is no package: give the folder of a revision, such as " in done.stderr


def test_a_package_in_the_place_of_another_is_said_and_one_anywhere_else_is_not(
    copied: Path,
) -> None:
    release = "/".join(copied.parts[-3:])
    zone = copied.parents[2]
    places = ("other/2016-W30/r0", f"{copied.parts[-3]}/2016-W31/r0", "a/b/c/2016-W30/r1")
    for place in places:
        code, said = _run(shutil.copytree(copied, zone / place))
        assert code == 0, said
        named = place.removeprefix("a/b/c/")  # no zone is around it
        assert f"; it is {release}, and lies in the place of {named}\n" in said
    anywhere = [zone / "Downloads/xyz", zone / "a/b/Downloads/2016-W30/r0"]
    for folder in (copied, *(shutil.copytree(copied, folder) for folder in anywhere)):
        code, said = _run(folder)
        assert (code, "; it is " in said) == (0, False), said


def _card(change: Callable[[dict[str, object]], None]) -> Callable[[Path], None]:
    def alter(package: Path) -> None:
        path = package / "release_card.json"
        card = json.loads(path.read_bytes())
        change(card)
        path.write_text(json.dumps(card))

    return alter


def _less_loss(card: dict[str, object]) -> None:
    for figures in card["guarantee"]["units"].values():  # type: ignore[index]
        figures["rho"] = "0.001"


def _less_moved(card: dict[str, object]) -> None:
    for moved in card["draws"][0]["sensitivity"].values():  # type: ignore[index]
        if moved:
            moved["l1"] = 0


def _next_to_no_noise(card: dict[str, object]) -> None:
    """Its delta is a fraction of a milliard digits, which was made for minutes, in gigabytes."""
    for draw in card["draws"]:  # type: ignore[attr-defined]
        draw.update(noise="discrete_laplace", scale="0.0000001", threshold=50)


def _first(package: Path, pattern: str) -> Path:
    return min(package.glob(pattern))


def _one_more(package: Path) -> None:
    """Raise the value of one row of a coarse table."""
    path = package / "data/day.csv"
    if not path.is_file():
        pytest.skip("telemetry has no tables that add up")
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    rows[0]["value"] = str(float(rows[0]["value"]) + 1)
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _text_for_number(package: Path) -> None:
    path = _first(package, "data/[ls]*.csv")  # of places, or of buses: its last column is as drawn
    lines = path.read_text().splitlines()
    lines[1] = f"{lines[1].rpartition(',')[0]},many"
    path.write_text("\n".join(lines) + "\n")


def _graded_up(package: Path) -> None:
    """Call a number good that its interval does not."""
    path = next(p for p in sorted(package.glob("data/*.csv")) if '"poor"' in p.read_text())
    path.write_text(path.read_text().replace('"poor"', '"good"', 1))


FORGERIES: dict[str, tuple[Callable[[Path], None], str]] = {
    "loss": (_card(_less_loss), "rho 0.001 stated"),
    "noise": (
        _card(lambda card: card["draws"][0].update(scale="1")),  # type: ignore[index]
        "states other noise",
    ),
    "kind of noise": (
        _card(lambda card: card["draws"][0].update(noise="discrete_cauchy")),  # type: ignore[index]
        "states other noise",
    ),
    "sensitivity": (
        _card(_less_moved),
        "states other noise or sensitivities",
    ),
    "terms taken away": (
        _card(lambda card: card.pop("terms") and None),
        "does not hold every term",
    ),
    "made to look old": (
        _card(lambda card: card.pop("terms") and card.pop("data") and None),
        "does not hold every term",
    ),
    "nothing charged": (
        _card(lambda card: card.update(charges=[], burned_draws=-1)),
        "no draw under the card's own plan is charged",
    ),
    "next to no noise": (
        _card(_next_to_no_noise),
        "states other noise",
    ),
    "days without end": (
        _card(lambda card: card.update(service_days=7000 * card["service_days"])),  # type: ignore[operator]
        "more days or modes than any has",
    ),
    "sum": (_one_more, "is not the sum of"),
    "type": (_text_for_number, "holds what is no integer"),
    "grade": (_graded_up, "usable is not what an interval says"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_package_whose_digests_agree_is_still_found(copied: Path, name: str) -> None:
    forge, sentence = FORGERIES[name]
    forge(copied)
    _manifest_anew(copied)
    findings = verify_package.findings(copied)
    assert any(sentence in problem for problem in findings), findings
    assert any(STATEMENT in problem for problem in findings)  # what was signed is another file


@pytest.mark.parametrize("place", [MANIFEST, "release_card.json", "extra/pipe", "a link to one"])
def test_a_pipe_in_a_package_is_named_and_not_opened(
    copied: Path, place: str, tmp_path: Path
) -> None:
    """Whoever opens one waits for ever."""
    name = "a_link.csv" if place.startswith("a link") else place
    path = copied / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if name == place:
        os.mkfifo(path)
    else:
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
    code, said = _run(copied)
    assert code == 4
    assert f"{name} is no ordinary file, so nothing was opened" in said


def test_a_descriptor_that_leads_to_a_pipe_outside_is_named_and_not_followed(
    copied: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    path = copied / "datapackage.json"
    stated = json.loads(path.read_bytes())
    table = next(one for one in stated["resources"] if one["format"] == "csv" and "schema" in one)
    table["path"] = os.path.relpath(tmp_path / "pipe.csv", copied)
    path.write_text(json.dumps(stated))
    _manifest_anew(copied)
    code, said = _run(copied)
    assert code == 4
    assert f"datapackage.json names {table['path']}, which lies outside of the package" in said


@pytest.mark.parametrize("tool", ["sums.py", "draws.py"])
@pytest.mark.parametrize(
    "name", ["release_card.json", "data/{}.csv", "data/{}.csv.gz", "../../../zone-index.txt"]
)
def test_no_program_of_a_package_opens_a_pipe(copied: Path, tool: str, name: str) -> None:
    """They waited for ever."""
    table = "location" if (copied / "data/location.csv").exists() else "speed_buses"
    tap = ["tap=on"] if table == "location" else []
    path = copied / name.format(table)
    (copied / f"data/{table}.csv").unlink() if "data" in name else None
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-B", str(copied / "tools" / tool), table, *tap],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "zone-index" in name:  # as where it is not there
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 2
        assert f"{path.name} is no ordinary file, so it was not opened" in done.stderr


@pytest.mark.parametrize("name", ["ledger.pub", "zone-index.txt", "opal/note.txt"])
def test_a_pipe_in_the_zone_around_a_package_is_not_opened(copied_home: Path, name: str) -> None:
    package = copied_home / "public/opal" / WEEK / "r0"
    (copied_home / "public" / name).unlink(missing_ok=True)
    os.mkfifo(copied_home / "public" / name)
    code, said = _run(package)
    if name.startswith("opal/"):
        assert code == 4
        assert f"{name}, in the zone of the package, is not what zone-index.txt lists" in said
    else:  # as where it is not there
        assert "alone: " in said or "signature not checked" in said


def test_a_signature_of_another_key_is_found(copied: Path) -> None:
    other = shutil.copytree(copied, copied.parent / "r1")
    line = (copied.parents[2] / "ledger.pub").read_text()
    assert verify_package.findings(other, line) == []
    forged = line[:-6] + ("AAAAA" if line[-6:-1] != "AAAAA" else "BBBBB") + line[-1:]
    assert verify_package.findings(other, forged) == [f"{STATEMENT} is not signed by the given key"]
    (other / STATEMENT).unlink()
    _manifest_anew(other)
    assert f"{STATEMENT} is missing, so nothing is signed" in verify_package.findings(other, line)


def test_signatures_agree_with_the_library_on_good_and_bad_ones() -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public = key.public_key().public_bytes_raw()
    for n in range(3):
        message = bytes([n]) * n
        signature = key.sign(message)
        assert verify_package.is_signed(public, message, signature)
        assert not verify_package.is_signed(public, message + b"!", signature)
        assert not verify_package.is_signed(public, message, signature[:-1] + b"\x7f")
        assert not verify_package.is_signed(public[:-1], message, signature)


@pytest.fixture
def served(published: Path) -> Iterator[str]:
    """The public zone as a web server shows it."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(published))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_package_at_a_web_address_verifies_with_the_key_beside_it(
    package: Path, served: str, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"{served}/{package.parts[-3]}/{package.parts[-2]}/r0"
    assert main(["package", "verify", address]) == 0
    assert "as published; signed" in capsys.readouterr().out
    assert main(["package", "verify", f"{address}1"]) == 4


def test_what_is_no_package_is_a_slip_and_a_package_without_its_manifest_is_not(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(package, copied)
    for command in (["package", "verify"], ["estimates", "verify"]):
        assert main([*command, str(package.parent)]) == 2
        assert "folder of a revision" in capsys.readouterr().err
    (copied / MANIFEST).unlink()
    for command in (["package", "verify"], ["estimates", "verify"]):
        assert main([*command, str(copied)]) == 4
    with pytest.raises(SystemExit) as refused:
        main(["package", "verify", str(package), "--key", str(tmp_path / "none.pub")])
    assert refused.value.code == 2


def test_a_manifest_that_names_a_file_outside_is_refused(tmp_path: Path, served: str) -> None:
    hostile = json.dumps({"files": [{"path": "../../outside", "sha256": "0"}]}).encode()

    def read(_: str, below: str) -> bytes:
        return hostile if below == MANIFEST else b"x"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify_package, "read", read)
        with pytest.raises(ValueError, match="outside of the package"):
            verify_package.fetched(served, tmp_path / "a/b")
    assert not (tmp_path / "outside").exists()


def test_a_series_whose_cards_state_too_little_is_found(
    published: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each card agrees with its own terms: only together they state too little."""
    week = shutil.copytree(next(published.glob("opal/*/r0")), tmp_path / "one")
    again = shutil.copytree(week, tmp_path / "again")

    def later(card: dict[str, object]) -> None:  # a second week on the same account
        card["release"] = f"{str(card['release'])[:-1]}1"
        card["ledger"]["sequence"] += 1  # type: ignore[index]

    assert main(["package", "verify", str(week), str(again), "--series"]) == 0
    _card(later)(again)
    assert _losses_of(week) == _losses_of(again) == []
    monkeypatch.setattr(verify_package, "findings", lambda *_: [])  # somebody signed it all
    assert main(["package", "verify", str(week), str(again)]) == 0
    capsys.readouterr()
    assert main(["package", "verify", str(week), str(again), "--series"]) == 4
    assert "card, ever, all: rho" in capsys.readouterr().err


def test_a_series_over_a_ledger_that_was_lost_agrees(published: Path, tmp_path: Path) -> None:
    """One brought back from packages counts entries anew: its cards say so, and name lower ones."""
    week = next(published.glob("opal/*/r0"))
    first = json.loads((week / "release_card.json").read_bytes())
    again = json.loads(json.dumps(first))
    again["release"] = f"{first['release'][:-1]}1"
    again["ledger"] |= {"sequence": 1, "after_recoveries": 1}
    for line in again["cumulative"]:
        line["rho_before"] = line["rho_after"]
        line["rho_after"] = str(2 * Decimal(line["rho_after"]))
    for line in again["windows"]:
        line["rho"] = str(2 * Decimal(line["rho"]))

    def differing(card: dict[str, object]) -> list[str]:
        other = tmp_path / "other"
        shutil.rmtree(other, ignore_errors=True)
        (other / "data").mkdir(parents=True)
        (other / "release_card.json").write_text(json.dumps(card))
        return verify_package._losses([week, other])

    assert differing(again) == []
    # Negative controls: it is of the same ledger; it states itself alone; another card of the same.
    assert "ever, all: rho" in differing(again | {"ledger": first["ledger"]})[0]
    assert "ever, all: rho" in differing({**first, "release": again["release"]})[0]
    assert "two cards of it differ" in differing(first | {"burned_draws": 1})[0]


def _losses_of(package: Path) -> list[str]:
    return verify_package._losses([package])


def test_the_programs_that_it_needs_lie_beside_it(package: Path, tmp_path: Path) -> None:
    alone = shutil.copy(package / "tools/verify_package.py", tmp_path)
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-I", "-S", alone, package], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "sums.py is missing: it has to lie beside this program" in done.stderr


@pytest.fixture
def zone(published: Path, tmp_path: Path) -> Path:
    """A copy of a public zone that a test may alter."""
    return shutil.copytree(published, tmp_path / "zone", symlinks=True)


def _checked(zone: Path, *arguments: str) -> int:
    return main(["package", "verify", str(zone / f"opal/{WEEK}/r0"), *arguments])


def test_whoever_kept_a_checkpoint_sees_that_the_log_grew_from_it(
    zone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log,) = (zone / "ledger-log").iterdir()
    kept = min((log / "checkpoints").iterdir(), key=lambda path: int(path.name))
    assert kept.read_text() != (log / "checkpoint").read_text()
    assert _checked(zone, "--since", str(kept), "--log-key", str(log / "log.pub")) == 0
    assert "in a log that grew from yours" in capsys.readouterr().out


def test_a_rewritten_ledger_is_seen_though_every_folder_is_the_attackers(
    zone: Path, published: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (log,) = (zone / "ledger-log").iterdir()
    signer = Signer.load(published.parent / "log-key.pem")
    origin, size, _ = min((log / "checkpoints").iterdir()).read_text().split("\n")[:3]
    before = signer.note(origin, checkpoint_text(origin, int(size), bytes(32)))
    (tmp_path / "kept").write_text(before)
    assert _checked(zone, "--since", str(tmp_path / "kept")) == 4
    assert "its ledger was rewritten" in capsys.readouterr().err
    (tmp_path / "kept").write_text(before.replace(f"\n{size}\n", f"\n{int(size) + 1}\n"))
    assert _checked(zone, "--since", str(tmp_path / "kept")) == 4
    assert "not signed by the log's key" in capsys.readouterr().err


def _swap(zone: Path, name: str, other: str) -> None:
    (zone / name).write_bytes((zone / other).read_bytes())


ITMS, OPAL = f"itms/{WEEK}", f"opal/{WEEK}"
ALTERED: dict[str, tuple[Callable[[Path], None], str]] = {
    "proof of another entry": (
        lambda zone: _swap(zone, f"{OPAL}/proof-r0.tlog-proof", f"{ITMS}/proof-r0.tlog-proof"),
        "is of another entry than the note",
    ),
    "note of another release": (
        lambda zone: _swap(zone, f"{OPAL}/checkpoint-r0.note", f"{ITMS}/checkpoint-r0.note"),
        "is of another release",
    ),
    "list altered": (
        lambda zone: _rewritten(zone / "zone-index.txt", "r0/manifest", "r9/manifest"),
        "zone-index.txt is not signed",
    ),
    "newest checkpoint of before": (
        lambda zone: _older(next((zone / "ledger-log").iterdir())),
        "its ledger was rewritten",
    ),
}


def _rewritten(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def _older(log: Path) -> None:
    oldest = min((log / "checkpoints").iterdir(), key=lambda path: int(path.name))
    shutil.copy(oldest, log / "checkpoint")


@pytest.mark.parametrize("name", ALTERED)
def test_what_surrounds_a_package_is_checked_with_it(
    name: str, zone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = (zone / f"opal/{WEEK}/r0").as_uri()
    assert verify_package.main([address]) == 0
    alter, sentence = ALTERED[name]
    alter(zone)
    assert _checked(zone) == 4  # by the signed list, which is compared with the whole folder
    capsys.readouterr()
    assert verify_package.main([address]) == 4
    assert sentence in capsys.readouterr().err


def test_a_package_without_its_proof_is_no_answer_to_who_kept_a_checkpoint(
    zone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever strips statement and proof, and makes the digests agree, has proven nothing."""
    (log,) = (zone / "ledger-log").iterdir()
    package = zone / f"{OPAL}/r0"
    for name in (STATEMENT, "sealed.tlog-proof"):
        (package / name).unlink()
    _manifest_anew(package)
    assert _checked(zone) == 0  # as any package of before the log
    assert _checked(zone, "--since", str(log / "checkpoint")) == 4
    assert _checked(zone, "--log-key", str(log / "log.pub")) == 4
    assert "statement.intoto.json is missing" in capsys.readouterr().err


def _stripped(zone: Path) -> None:
    """Take away what is signed, alter a file, and make the digests agree."""
    package = zone / OPAL / "r0"
    for name in (STATEMENT, SUMS):
        (package / name).unlink()
    (package / "README.md").write_text("forged")
    old = json.loads((package / MANIFEST).read_bytes())
    content = manifest_bytes(package, key=old["key"], sealed_digest=old["sealed_sha256"])
    (package / MANIFEST).write_bytes(content)


def _of_another_log(zone: Path, *, is_true: bool = False) -> None:
    """Put a proof of publication in the place that a log of nobody signed."""
    path = zone / f"{OPAL}/proof-r0.tlog-proof"
    signer = Signer.make(zone.parent / "other.pem")
    head, _, note = path.read_text().partition("\n\n")
    _, size, root = note.split("\n")[:3]
    begun = signer.line_of("eve")
    path.write_text(f"{head}\n\n" + signer.note("eve", f"eve\n{size}\n{root}\n"))
    if is_true:
        (zone / "ledger-log" / begun.split("+")[1]).mkdir()
        (zone / "ledger-log" / begun.split("+")[1] / "log.pub").write_text(begun)


def _unsigned_note(zone: Path) -> None:
    path = zone / f"{OPAL}/checkpoint-r0.note"
    _, _, *said = path.read_text().partition("\n\n")[0].split("\n")
    path.write_text("\n".join(["evil", "1", *said]) + "\n\n")


def _without_list(zone: Path) -> None:
    for path in zone.glob("zone-index.*"):
        path.unlink()


def _planted(name: str) -> Callable[[Path], None]:
    def plant(zone: Path) -> None:
        (zone / name).parent.mkdir(parents=True, exist_ok=True)
        (zone / name).write_text("{}")

    return plant


def _in_the_log(name: str) -> Callable[[Path], None]:
    def plant(zone: Path) -> None:
        (log,) = (zone / "ledger-log").iterdir()
        _planted((log / name).relative_to(zone).as_posix())(zone)

    return plant


def _line_added(kind: str) -> Callable[[Path], None]:
    """Add what reads as a signature, and says what no log signed."""

    def add(zone: Path) -> None:
        (log,) = (zone / "ledger-log").iterdir()
        (path, *_) = sorted((log / kind).iterdir())
        with path.open("a") as file:
            file.write(f"— rows.example/4711 {base64.b64encode(b'card,time,place').decode()}\n")

    return add


def _latest_to_elsewhere(zone: Path) -> None:
    (zone / "opal/latest").unlink()
    (zone / "opal/latest").symlink_to("/")


FORGED_WITHOUT_A_KEY: dict[str, tuple[Callable[[Path], None], str]] = {
    "statement stripped": (_stripped, "statement.intoto.json is missing"),
    "publication proof of a log of nobody": (_of_another_log, "cannot be fetched"),
    "publication proof of a log of a stranger": (
        lambda zone: _of_another_log(zone, is_true=True),
        "not known to have begun",
    ),
    "note without signature": (_unsigned_note, "checkpoint-r0.note"),
    "list removed": (_without_list, "zone-index.txt"),
    "log removed": (lambda zone: shutil.rmtree(zone / "ledger-log"), "ledger-log"),
    "withdrawal forged": (_planted(f"{OPAL}/withdrawn-r0.json"), "withdrawn-r0.json"),
    "foreign file": (_planted("rows.csv"), "rows.csv"),
    "foreign file in the log": (_planted("ledger-log/rows.csv"), "ledger-log/rows.csv"),
    "rows as a checkpoint": (_in_the_log("checkpoints/1"), "/checkpoints/1, in the zone"),
    "rows as a step": (_in_the_log("steps/1"), "/steps/1, in the zone"),
    "a line in a checkpoint": (_line_added("checkpoints"), "/checkpoints/"),
    "a line in a step": (_line_added("steps"), "/steps/"),
    "rows as a cosignature": (_in_the_log("cosignatures/1.ab.2"), "/cosignatures/1.ab.2, in the"),
    "rows as a log of nobody": (_planted("ledger-log/ab12/checkpoint"), "ledger-log/ab12"),
    "link to a folder": (lambda zone: (zone / "opal/rows").symlink_to("/"), "opal/rows, in the"),
    "link of the newest to elsewhere": (_latest_to_elsewhere, "opal/latest, in the zone"),
    "hidden foreign file": (_planted("opal/.rows.csv"), "opal/.rows.csv"),
    "foreign file in a folder of no package": (
        _planted("opal/2016-W30/r9/rows.csv"),
        "opal/2016-W30/r9/rows.csv",
    ),
    "foreign file beside copies": (_planted(".store/rows.csv"), ".store/rows.csv"),
    "manifest removed": (
        lambda zone: (zone / f"{ITMS}/r0/manifest.json").unlink(),
        f"{ITMS}/r0/manifest.json",
    ),
    "series removed": (
        lambda zone: (zone / "opal/series/index.json").unlink(),
        "opal/series/index.json",
    ),
    "linked folder": (
        lambda zone: (zone / f"{OPAL}/r0/more").symlink_to(zone.parent),
        "cannot be read as a package",
    ),
}


OF_A_FOLDER = (
    "rows as a checkpoint",
    "rows as a step",
    "a line in a checkpoint",
    "a line in a step",
    "rows as a cosignature",
    "rows as a log of nobody",
    "link to a folder",
    "link of the newest to elsewhere",
    "foreign file",
    "foreign file in the log",
    "hidden foreign file",
    "foreign file in a folder of no package",
    "foreign file beside copies",
    "manifest removed",
    "series removed",
    "linked folder",
)
"""What a web address does not show."""


@pytest.mark.some(4)
@pytest.mark.parametrize("name", FORGED_WITHOUT_A_KEY)
def test_who_kept_key_and_checkpoint_sees_what_is_done_without_a_key(
    name: str, zone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found by a hostile reader, who altered packages and zones and got exit code 0."""
    (log,) = (zone / "ledger-log").iterdir()
    for path in (log / "checkpoint", log / "log.pub", zone / "ledger.pub"):
        shutil.copy(path, tmp_path / path.name)
    of_log = ("--since", str(tmp_path / "checkpoint"), "--log-key", str(tmp_path / "log.pub"))
    of_all = (*of_log, "--key", str(tmp_path / "ledger.pub"))
    assert _checked(zone, *of_all) == 0
    alter, sentence = FORGED_WITHOUT_A_KEY[name]
    alter(zone)
    package = zone / f"{OPAL}/r0"
    for kept in (of_log, of_all):
        said = ""
        for address in (str(package), package.as_uri()):
            code = verify_package.main([address, *kept])
            said += capsys.readouterr().err
            assert code == 4 or (name in OF_A_FOLDER and address != str(package))
        assert sentence in said


@pytest.mark.parametrize("less", [0, 1])
def test_a_zone_of_before_is_seen_by_the_log_that_grew_since(
    zone: Path,
    published: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    less: int,
) -> None:
    """A true list of before a publication, put back with the packages of its day."""
    monkeypatch.setenv("TURNSTILE_HOME", str(published.parent))
    (log,) = (zone / "ledger-log").iterdir()
    entries = int((log / "checkpoint").read_text().split("\n")[1]) - less
    digest = hashlib.sha256((zone / "zone-index.txt").read_bytes()).hexdigest()
    payload = json.dumps({"sha256": digest, "ledger_entries": entries}).encode()
    ledger = open_ledger(Settings.from_environment())
    _, signature = ledger.sign_payload(zone_index.KIND, payload)
    envelope = json.loads((zone / "zone-index.sig.json").read_bytes())
    envelope["payload"] = base64.b64encode(payload).decode()
    envelope["signatures"][0]["sig"] = base64.b64encode(signature).decode()
    (zone / "zone-index.sig.json").write_text(json.dumps(envelope))
    assert verify_package.main([str(zone / f"{OPAL}/r0")]) == 4 * less
    assert ("zone-index.txt is older than the log" in capsys.readouterr().err) == bool(less)


def test_a_publication_in_a_log_that_was_begun_since_is_proven_by_the_list(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of a stranger's log: the ledger's key vouches for this one."""
    home = shutil.copytree(published.parent, tmp_path / "home", symlinks=True)
    monkeypatch.setenv("TURNSTILE_HOME", str(home))
    zone = home / "public"
    (log,) = (zone / "ledger-log").iterdir()
    kept = ("--since", str(log / "checkpoint"), "--log-key", str(log / "log.pub"))
    (zone / f"{OPAL}/proof-r0.tlog-proof").unlink()
    assert main(["ledger", "begin-log", "--person", "ada", "--reason", "a drill"]) == 0
    assert len(list((zone / "ledger-log").iterdir())) == 2
    assert verify_package.main([str(zone / f"{OPAL}/r0"), *kept]) == 0
    assert main(["ledger", "verify"]) == 0


def test_no_tree_grows_by_hashes_of_other_lengths() -> None:
    """Two hashes parted elsewhere hash alike: a root may keep no entry in its place."""
    first, second, third, fourth = (bytes([n]) * 32 for n in range(4))

    def node(*parts: bytes) -> bytes:
        return hashlib.sha256(b"\x01" + b"".join(parts)).digest()

    pair = node(first, second)
    root, grown = node(pair, third), node(pair, node(third, fourth))
    assert verify_package.is_grown(3, root, 4, grown, [third, fourth, pair])
    both = pair + third
    forged = node(both[:10], node(both[10:], fourth))
    with pytest.raises(ValueError, match="32 bytes"):
        verify_package.is_grown(3, root, 4, forged, [both[10:], fourth, both[:10]])


_FOLDERS = st.sampled_from(["", "opal/", "opal/2025-W10/", "opal/2025-W10/.r0-0123abcd/"])


@given(_FOLDERS, st.from_regex(zone_index._IN_WORK, fullmatch=True))
def test_the_carried_verifier_takes_nothing_for_foreign_that_writers_leave_behind(
    folder: str, name: str
) -> None:
    """It imports nothing of ours, so the names of drafts stand in it a second time."""
    for of_writer in (name, folder + name):
        if is_in_work(of_writer) and "\n" not in of_writer:
            assert verify_package.UNLISTED.fullmatch(of_writer), of_writer


@pytest.mark.parametrize(
    "name",
    ["rows.csv", "opal/rows.csv", ".rows.csv", "opal/.cards/rows.csv", "opal/2025-W10/r0.note"],
)
def test_what_no_writer_leaves_behind_has_to_be_listed_for_both(name: str) -> None:
    assert not is_in_work(name)
    assert not verify_package.UNLISTED.fullmatch(name)
