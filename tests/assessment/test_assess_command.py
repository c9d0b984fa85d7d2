"""`turnstile assess` on a package and on a external table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnstile.cli import main
from turnstile.errors import InputError
from turnstile.estimates.release_tables import measurements
from turnstile.ledger.encoding import encode_event
from turnstile.publishing.describe.manifest import MANIFEST, manifest_bytes
from turnstile.publishing.package_reader import Package, is_package, read_package
from turnstile.release.drawn import Drawn
from turnstile_lab.baselines import discrete_laplace, naive_laplace, uniforms
from turnstile_lab.package.comparison import compared
from turnstile_lab.package.of_package import assess_package

Build = Callable[..., Drawn]


@pytest.fixture
def package(release: Drawn, tmp_path: Path) -> Path:
    """A published package of the small release, as far as an attacker reads it."""
    folder = tmp_path / "r0"
    (folder / "measurements").mkdir(parents=True)
    for name, table in measurements(release).items():
        pq.write_table(table, folder / "measurements" / f"{name}.parquet")
    events = [encode_event(event) for event in release.events]
    (folder / "plan.json").write_text(json.dumps({"events": events}))
    content = manifest_bytes(folder, key="small/2016-W30/r0", sealed_digest="3" * 64)
    (folder / MANIFEST).write_bytes(content)
    return folder


def test_a_package_gives_back_its_declared_scales_and_no_flaw(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", str(package), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["kind"] == "package"
    assert content["flaws"] == []
    by_source: dict[str, list[dict[str, float]]] = {"negatives": [], "totals": []}
    for scale in content["scale"]:
        by_source[scale["source"]].append(scale)
    assert [scale["declared"] for scale in by_source["negatives"]] == [2, 2, 1]
    for scale in by_source["negatives"]:
        assert scale["p_value"] > 1e-9
        assert scale["scale"] == pytest.approx(scale["declared"], rel=0.6)
    assert len(by_source["totals"]) == 2
    for scale in by_source["totals"]:
        assert scale["over_declared"] == pytest.approx(1, abs=0.35)
    assert content["presence"][0]["proof_probability"] == {}
    assert len(content["differencing"]) == 2


def test_altered_numbers_and_a_false_declaration_are_flaws(package: Path) -> None:
    plan = json.loads((package / "plan.json").read_bytes())
    for event in plan["events"]:
        event["scale"] = "8"
    (package / "plan.json").write_text(json.dumps(plan))
    findings = assess_package(read_package(package))
    flaws = {finding.name for finding in findings if finding.is_flaw}
    assert {"bytes", "scale"} <= flaws


def test_the_gates_run_again_on_a_package_and_know_what_does_not_belong(package: Path) -> None:
    honest = assess_package(read_package(package))
    gates = {finding.figures["gate"]: finding for finding in honest if finding.name == "gate"}
    assert set(gates) == {
        "noised_zeros",
        "drawn_once",
        "declared_scale",
        "geometric_below_zero",
        "noise_kind",
    }
    assert not any(finding.is_flaw for finding in honest)
    path = package / "measurements/on_time_location.parquet"
    table = pq.read_table(path)
    counts = table.column("count").to_numpy()
    days = np.array([str(day) for day in table.column("service_date").to_pylist()])
    same = np.tile(counts[days == days[0]], len(set(days.tolist())))
    index = table.column_names.index("count")
    wider = table.set_column(index, "count", pa.array(same)).append_column("true", pa.array(counts))
    pq.write_table(wider, path)
    manifest = manifest_bytes(package, key="small/2016-W30/r0", sealed_digest="3" * 64)
    (package / MANIFEST).write_bytes(manifest)
    flaws = {
        finding.figures.get("gate", finding.name)
        for finding in assess_package(read_package(package))
        if finding.is_flaw
    }
    assert {"contents", "drawn_once"} <= flaws
    assert "bytes" not in flaws  # the manifest agrees


def test_two_packages_are_compared(package: Path, drawn_with: Build, tmp_path: Path) -> None:
    first = read_package(package)
    assert compared(first, first).figures["relation"] == "same_bytes"
    again = drawn_with(lambda label, x, scale, _: x + discrete_laplace(f"2 {label}", x.size, scale))
    second = Package(tmp_path / "r1", first.events, measurements(again))
    assert compared(first, second).figures["relation"] == "second_draw"
    shifted = drawn_with(lambda label, x, scale, _: 1 + x + discrete_laplace(label, x.size, scale))
    finding = compared(first, Package(tmp_path / "r1", first.events, measurements(shifted)))
    assert finding.is_flaw
    assert finding.figures["relation"] == "same_noise"


def test_a_folder_without_manifest_is_no_package_and_a_broken_one_is_refused(
    package: Path, tmp_path: Path
) -> None:
    assert not is_package(tmp_path)
    (package / "plan.json").write_text("{")
    with pytest.raises(InputError):
        read_package(package)
    assert main(["assess", str(tmp_path / "nothing")]) == 2


def test_a_external_table_is_assessed_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = np.repeat(2 + 4 * uniforms("bare", 300), 100)  # each by a hundred times
    raw = np.floor(np.exp(places + 2 * uniforms("bare times", 30_000) - 1))
    noisy = np.rint((raw + naive_laplace("bare noise", raw.size, 1.0))[raw > 0])
    lines = [
        f"bus,20160725,on,{n % 100:02},{n // 100},{int(count)}"
        for n, count in enumerate(noisy)
        if count >= 18
    ]
    path = tmp_path / "t.csv"
    path.write_text("mode,date,tap,time,loc,count\n" + "\n".join(lines) + "\n")
    assert main(["assess", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "! threshold" in shown
    assert "does not identify the scale" in shown
