#!/bin/sh
# Prints an address with a secret in the place of its %s: Airflow's *_CMD settings ask for it.
exec printf "$2" "$(cat "${SECRETS:-/run/secrets}/$1")"
