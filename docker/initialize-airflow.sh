#!/usr/bin/env bash
# Runs to its end before any component starts: metadata schema, the ledger's pool, the first user,
# and the connections that alerts and approvals need. Safe to run at every start.
set -euo pipefail

secret() { cat "${SECRETS:-/run/secrets}/$1"; }

airflow db migrate
# One slot for each task that a worker runs at once: a draw that died holds its slot until Airflow
# sees it, and other programmes must not wait for that. What two draws may charge, the ledger decides.
airflow pools set turnstile_ledger 2 "Charges at a time; the ledger has a lock of its own"

# A password may begin with "-": only after "=" is it no option.
make_user() {  # name, role, password
    airflow users create --username "$1" --role "$2" --password="$3" \
        --firstname Airflow --lastname "$1" --email "$1@transport.example"
}

make_user admin Admin "$(secret airflow_admin_password)"

# Who cleared a run stands in Airflow's audit log, which the role Viewer may not read; its lines are shown
# to nobody who may not read their DAG. The watchdog asks for runs and their tasks as the same user.
airflow roles create "Audit log"
airflow roles add-perms "Audit log" --action can_read \
    --resource "Audit Logs" DAGs "DAG Runs" "Task Instances"
make_user audit_reader "Audit log" "$(secret airflow_reader_password)"

reader=$(mktemp --suffix .json)
printf '{"turnstile_airflow": {"conn_type": "http", "host": "api-server", "port": 8080,
    "login": "audit_reader", "password": "%s"}}' "$(secret airflow_reader_password)" > "$reader"
airflow connections import --overwrite "$reader"
rm "$reader"
given=$(mktemp --suffix .json)
secret airflow_connections > "$given"
airflow connections import --overwrite "$given"
rm "$given"
