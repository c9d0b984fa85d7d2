#!/usr/bin/env bash
# Stand-ins for the three official images that the deployment names, made of Debian's packages on a
# machine that can pull no image: the same programs, as far as docker-compose.yaml uses them. For
# tests alone. Needs debootstrap, root, and a running engine; takes about two minutes.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$root"
ln -s python3 "$root/usr/bin/python"
# What this machine trusts: its package index may have a certificate of its own.
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
rm -rf "$root"/var/cache/apt/archives/*.deb
tar -C "$root" -c . | docker import - python:3.11-slim-bookworm
for name in postgres:15 redis:7.2-bookworm; do
    docker build --network host --tag "$name" --file "$here/${name%%:*}.Dockerfile" "$here"
done
