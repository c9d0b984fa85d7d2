-- Least privilege for the ledger on PostgreSQL 15. Run once, as the owner of the ledger's own
-- database, after the owner has made or migrated the tables (docker/initialize_ledger.py does both; a
-- new version of turnstile migrates when its owner opens the ledger):
--
--     psql --dbname=ledger --file=roles.sql
--
-- The owner runs migrations and nothing else. Releases connect as a member of turnstile_writer,
-- dashboards and auditors as a member of turnstile_reader. Nobody but the owner may change or
-- remove an entry, and for the owner the triggers and the witnesses stand in the way.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'turnstile_writer') THEN
        CREATE ROLE turnstile_writer NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'turnstile_reader') THEN
        CREATE ROLE turnstile_reader NOLOGIN;
    END IF;
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO turnstile_writer, turnstile_reader;

GRANT SELECT ON ledger_version, entry, head, family, caps, attempt, account, draw_lease
    TO turnstile_writer, turnstile_reader;

GRANT INSERT ON entry, family, caps, attempt, account, draw_lease TO turnstile_writer;
GRANT UPDATE (holder, ends_s) ON draw_lease TO turnstile_writer;
GRANT UPDATE (sequence, hash) ON head TO turnstile_writer;
GRANT UPDATE (turns) ON family TO turnstile_writer;
GRANT UPDATE (family, caps) ON caps TO turnstile_writer;
GRANT UPDATE (state, artefact_digest, manifest_digest, is_withdrawn) ON attempt
    TO turnstile_writer;
GRANT UPDATE (
    spent_epsilon_micro, spent_epsilon_unbounded, spent_rho_nano, spent_rho_unbounded,
    spent_delta_femto, held_epsilon_micro, held_epsilon_unbounded, held_rho_nano,
    held_rho_unbounded, held_delta_femto, cap_epsilon_micro, cap_rho_nano, cap_delta_femto
) ON account TO turnstile_writer;
