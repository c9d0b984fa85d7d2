#!/bin/sh
# Estimates of packages made again by an emulated 64-bit ARM processor, from public bytes alone.
#   other_processor.sh SCRATCH PACKAGE...      exit 0: every byte is the same
# Needs root's dpkg and debootstrap, qemu-aarch64-static (Debian: qemu-user-static), and the network
# for Debian's Python and the locked wheels of that processor. SCRATCH is kept for the next time.
set -eu
scratch=$1; shift
project=$(cd "$(dirname "$0")/../.." && pwd)
if [ ! -d "$scratch/wheels" ]; then
    debootstrap --arch=arm64 --foreign --variant=minbase --include=python3 bookworm "$scratch/root"
    for package in "$scratch"/root/var/cache/apt/archives/*.deb; do
        dpkg-deb -x "$package" "$scratch/root"
    done
    locked=$(grep -oE "^(numpy|pyarrow)==[^ ;]+|^scipy==[^ ;]+ ; python_full_version < '3.12'" \
        "$project/requirements.lock" | cut -d' ' -f1)
    for glibc in 2_17 2_27 2_28; do platforms="${platforms:-} --platform manylinux_${glibc}_aarch64"; done
    # shellcheck disable=SC2086 # lists of words
    "$project/.venv/bin/python" -m pip install --quiet --no-deps --only-binary=:all: \
        --implementation cp --python-version 3.11 $platforms --target "$scratch/wheels" $locked
fi
for package in "$@"; do
    qemu-aarch64-static -L "$scratch/root" -E PYTHONPATH="$scratch/wheels:$project/include" \
        -E OPENBLAS_NUM_THREADS=1 "$scratch/root/usr/bin/python3.11" - "$package" <<'PYTHON'
import platform, sys
from pathlib import Path
from turnstile.publishing.estimates_check import estimate_differences

folder = Path(sys.argv[1]).resolve()
found = estimate_differences(folder, folder.parents[2])
print(folder, platform.machine(), found or "the same bytes", sep=": ")
sys.exit(bool(found))
PYTHON
done
