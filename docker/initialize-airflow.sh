#!/usr/bin/env bash
# Runs to its end before any component starts: metadata schema, the ledger's pool, the first user.
set -euo pipefail

airflow db migrate
airflow pools set turnstile_ledger 1 "One charge at a time"
airflow users create --username admin --password "$AIRFLOW_ADMIN_PASSWORD" --role Admin \
    --firstname Airflow --lastname Admin --email admin@transport.example
