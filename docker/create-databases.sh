#!/usr/bin/env bash
# Runs once, when PostgreSQL makes its data folder: a database and a role for Airflow, a database for
# the ledger with its owner, and the two logins that use the ledger. Neither side can open the
# other's database; who may do what inside the ledger is said by ledger/database/roles.sql.
set -euo pipefail

secret() { cat "${SECRETS:-/run/secrets}/$1"; }

run_sql() {
    psql --set=ON_ERROR_STOP=1 --quiet --username "$POSTGRES_USER" --dbname postgres "$@"
}

make_database() {  # name of owner and database, password
    run_sql --set=name="$1" --set=password="$2" <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
REVOKE CONNECT, TEMPORARY ON DATABASE :"name" FROM PUBLIC;
SQL
}

make_login() {  # name, password, group of the ledger's roles
    run_sql --set=name="$1" --set=password="$2" --set=group="$3" <<'SQL'
CREATE ROLE :"group" NOLOGIN;
GRANT CONNECT ON DATABASE turnstile_ledger TO :"group";
CREATE ROLE :"name" LOGIN PASSWORD :'password' IN ROLE :"group";
SQL
}

make_database airflow "$(secret airflow_database_password)"
make_database turnstile_ledger "$(secret ledger_owner_password)"
make_login turnstile_release "$(secret ledger_writer_password)" turnstile_writer
make_login turnstile_page "$(secret ledger_reader_password)" turnstile_reader
run_sql --command='ALTER ROLE turnstile_page SET default_transaction_read_only = on'
