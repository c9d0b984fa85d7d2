#!/usr/bin/env bash
set -euo pipefail
data=/var/lib/postgresql/data/pgdata
export POSTGRES_USER=postgres
as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }

chown postgres "$(dirname "$data")"
if [ ! -e "$data/PG_VERSION" ]; then
    password=$(mktemp)
    cat "$POSTGRES_PASSWORD_FILE" > "$password"
    chmod 0644 "$password"  # in a container whose only other user is the server's
    as_postgres initdb --pgdata "$data" --username postgres --pwfile "$password" \
        --auth-host scram-sha-256 --auth-local trust --encoding UTF8 --locale C.UTF-8 > /dev/null
    rm "$password"
    echo "host all all all scram-sha-256" >> "$data/pg_hba.conf"
    as_postgres pg_ctl --pgdata "$data" --wait --options "-c listen_addresses=" start
    for script in /docker-entrypoint-initdb.d/*.sh; do as_postgres bash "$script"; done
    as_postgres pg_ctl --pgdata "$data" --wait --mode fast stop
fi
cd /
exec setpriv --reuid=postgres --regid=postgres --clear-groups \
    postgres -D "$data" -c 'listen_addresses=*'
