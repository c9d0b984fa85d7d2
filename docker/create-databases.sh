#!/usr/bin/env bash
# Runs once, when PostgreSQL makes its data folder: one role and database for Airflow, one for the
# ledger. Neither role can open the other's database.
set -euo pipefail

make_database() {  # name of role and database, password
    psql --set=ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
        --set=name="$1" --set=password="$2" <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
REVOKE CONNECT, TEMPORARY ON DATABASE :"name" FROM PUBLIC;
SQL
}

make_database airflow "$AIRFLOW_DB_PASSWORD"
make_database turnstile_ledger "$LEDGER_DB_PASSWORD"
