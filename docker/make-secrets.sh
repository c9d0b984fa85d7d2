#!/bin/sh
# Makes every secret of docker-compose.yaml that is not there yet: one file each, from the kernel's
# random numbers. Files that stand stay as they are. The folder is the owner's alone; the files can
# be read by the users inside of the containers that are given them.
set -eu

folder=${1:-$(dirname "$0")/../secrets}
mkdir -p "$folder"
chmod 0700 "$folder"

random() { head -c 32 /dev/urandom | base64 | tr '+/' '-_'; }

make() {  # name, content
    if [ ! -e "$folder/$1" ]; then
        printf '%s' "$2" > "$folder/$1.new"
        chmod 0444 "$folder/$1.new"
        mv "$folder/$1.new" "$folder/$1"
    fi
}

for name in airflow_admin_password airflow_api_secret_key airflow_database_password \
    airflow_jwt_secret airflow_reader_password ledger_owner_password ledger_reader_password \
    ledger_writer_password postgres_password redis_password; do
    make "$name" "$(random | tr -d '=\n')"
done
make airflow_fernet_key "$(random)"
# Airflow connections as `airflow connections import` reads them: where alerts go (docs/RUNBOOK.md).
make airflow_connections '{}'
