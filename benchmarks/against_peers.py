"""CPU of one differentially private marginal: ours, and four peers, on the same rows.

`make bench-peers`. Each peer runs in an environment of its own (`peers/NAME.txt`, made once below
`var/peers`), in a process of its own, imports included: trips of cards, bounded to so many of a
card, counted by slot and place, with Laplace noise on every cell of a public list. PipelineDP and
smartnoise-sql bound cells of a card, the others trips: the work is alike, the errors are not
compared here. Fails when ours is not ahead by what the project says.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measured import Cost, Held, measured

PEERS = Path(__file__).with_name("peers")
SLOTS, PLACES = 96, 363
TRIPS_OF_A_CARD, AT_MOST, EPSILON = 3, 6, "1"
_AHEAD = {"tumult": 10.0, "opendp_frames": 1.2}


def write_trips(folder: Path, rows: int) -> None:
    """Write trips with few busy and many quiet places, and the public list of cells."""
    rng = np.random.default_rng(19)  # noqa: TID251 - made-up data, seeded
    cards = np.floor(rows / TRIPS_OF_A_CARD * rng.random(rows) ** 1.5).astype(np.int64)
    places = np.floor(PLACES * rng.random(rows) ** 3).astype(np.int32)
    slots = np.clip(rng.normal(48, 16, rows), 0, SLOTS - 1).astype(np.int32)
    trips = pa.table({"card_id": cards, "slot": slots, "place": places})
    pq.write_table(trips, folder / "trips.parquet")
    every = np.indices((SLOTS, PLACES)).reshape(2, -1).astype(np.int32)
    pq.write_table(pa.table({"slot": every[0], "place": every[1]}), folder / "cells.parquet")


def python_of(peer: str, environments: Path) -> str:
    """Return the interpreter of a peer's environment; make it if it is not there."""
    if peer == "ours":
        return sys.executable
    environment = environments / peer
    python = environment / "bin" / "python"
    if not (environment / ".installed").exists():
        uv = str(Path(sys.executable).with_name("uv"))
        made = [uv, "venv", "--quiet", "--clear", "--python", "3.11", environment]
        subprocess.run(made, check=True)  # noqa: S603 - our own tool
        wanted = ["--requirement", str(PEERS / f"{peer}.txt")]
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *wanted], check=True)  # noqa: S603 - our own tool
        (environment / ".installed").touch()
    return str(python)


def cost_of(peer: str, folder: Path, environments: Path, *, times: int) -> Cost:
    """Run a peer some times, look at what it released, and return the run of median CPU."""
    files = [str(folder / name) for name in ("trips.parquet", "cells.parquet", f"{peer}.parquet")]
    arguments = [str(PEERS / f"{peer}.py"), *files, str(AT_MOST), EPSILON]
    python = python_of(peer, environments)
    runs = [measured(arguments, folder, python=python) for _ in range(times)]
    released = pq.read_table(files[2]).num_rows
    if released != SLOTS * PLACES:
        sys.exit(f"{peer} released {released} cells; the public list has {SLOTS * PLACES}")
    median = statistics.median_low(run.cpu_s for run in runs)
    return next(run for run in runs if run.cpu_s == median)


def main() -> None:
    """Print a table, and fail where ours is not ahead by what is said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--peers", nargs="*", default=sorted(p.stem for p in PEERS.glob("*.txt")))
    parser.add_argument("--environments", type=Path, default=Path("var/peers").resolve())
    options = parser.parse_args()
    print(f"{options.rows:,} trips, {SLOTS * PLACES:,} cells, median of {options.times}")
    print(f"{'':14} {'wall s':>8} {'cpu s':>8} {'peak MiB':>9} {'cpu of ours':>12}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_trips(folder, options.rows)
        ours = cost_of("ours", folder, options.environments, times=options.times)
        held = []
        for peer in ("ours", *options.peers):
            cost = ours
            if peer != "ours":
                cost = cost_of(peer, folder, options.environments, times=options.times)
            ratio = cost.cpu_s / ours.cpu_s
            print(
                f"{peer:14} {cost.wall_s:8.1f} {cost.cpu_s:8.1f} {cost.peak_mib:9.0f} {ratio:12.1f}"
            )
            if peer in _AHEAD:
                held.append(Held(f"ours / {peer}", 1 / ratio, 1 / _AHEAD[peer]))
    print("", *held, sep="\n")
    if any(limit.is_passed for limit in held):
        sys.exit("a limit is passed")


if __name__ == "__main__":
    main()
