#!/bin/sh
# Prints every image that is pulled, pinned by its digest, as lines for .env: asks the registry for
# each *_IMAGE of a file (.env.example). What is pinned stays the same bytes; run it again to move on.
set -eu

file=${1:-$(dirname "$0")/../.env.example}
grep -E '^[A-Z]+_IMAGE=' "$file" | while IFS='=' read -r variable name; do
    name=${name%@*}
    docker pull --quiet "$name" > /dev/null
    digest=$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$name" |
        sed -n 's/.*@//p' | head -n 1)
    case $digest in
        sha256:*) printf '%s=%s@%s\n' "$variable" "$name" "$digest" ;;
        *) echo "$name has no digest: was it built here instead of pulled?" >&2; exit 1 ;;
    esac
done
