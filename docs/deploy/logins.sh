#!/bin/sh
# Run by the Postgres of docker-compose.yml when its volume is new: creates the databases
# and one login for each part. The passwords are in the environment.
set -eu

run() {
    psql -v ON_ERROR_STOP=1 -qX -U "${POSTGRES_USER:-postgres}" -d postgres "$@"
}

# login NAME PASSWORD [ROLE]
login() {
    if [ -n "${3:-}" ]; then
        echo 'create role :"role" nologin;' | run -v role="$3"
    fi
    echo 'create role :"name" login password :'"'password'"';' | run -v name="$1" -v password="$2"
    if [ -n "${3:-}" ]; then
        echo 'grant :"role" to :"name";' | run -v role="$3" -v name="$1"
    fi
}

login temporal "$TEMPORAL_PASSWORD"
login criticizer "$OWNER_PASSWORD"
login worker_workflows "$WORKFLOWS_PASSWORD" criticizer_bookkeeping
login worker_fetch "$FETCH_PASSWORD" criticizer_fetch
login worker_redact "$REDACT_PASSWORD" criticizer_redact
login worker_llm "$LLM_PASSWORD" criticizer_llm
login worker_notify "$NOTIFY_PASSWORD" criticizer_notify
login worker_retention "$RETENTION_PASSWORD" criticizer_retention
login worker_operator "$OPERATOR_PASSWORD" criticizer_operator

# Temporal creates its own databases. The roles that no login here uses are created too, so
# that the owner needs no right to create roles. It is a member of criticizer_audit for the
# first migration only (docs/install.md).
run <<'SQL'
alter role temporal createdb;
create role criticizer_reader nologin;
create role criticizer_rewrite nologin;
create role criticizer_backend nologin;
create role criticizer_frontend nologin;
create role criticizer_audit nologin;
grant criticizer_audit to criticizer;
create database criticizer owner criticizer;
SQL
