#!/bin/sh
# Run by the service logins of docker-compose.yml before each start: creates the databases
# and one login for each part, if they are missing, with the passwords in /run/secrets.
set -eu
PGPASSWORD=$(cat /run/secrets/postgres)
export PGPASSWORD PGHOST=postgres PGUSER=postgres PGDATABASE=postgres

run() {
    psql -v ON_ERROR_STOP=1 -qX "$@"
}

role() {
    run -v role="$1" <<'SQL'
select format('create role %I nologin', :'role') where not exists (select from pg_roles where rolname = :'role') \gexec
SQL
}

# login NAME [ROLE]
login() {
    role "$1"
    run -v name="$1" -v password="$(cat "/run/secrets/$1")" <<'SQL'
alter role :"name" login password :'password';
SQL
    if [ -n "${2:-}" ]; then
        role "$2"
        run -v role="$2" -v name="$1" <<'SQL'
grant :"role" to :"name";
SQL
    fi
}

login temporal
login criticizer
login worker_workflows criticizer_bookkeeping
login worker_fetch criticizer_fetch
login worker_redact criticizer_redact
login worker_llm criticizer_llm
login worker_notify criticizer_notify
login worker_retention criticizer_retention
login worker_operator criticizer_operator

# Temporal creates its own databases. The roles that no login here uses are created too, so
# that the owner needs no right to create roles.
for name in reader audit; do
    role "criticizer_$name"
done
run <<'SQL'
alter role temporal createdb;
select 'create database criticizer owner criticizer' where not exists (select from pg_database where datname = 'criticizer') \gexec
SQL

# The owner is a member of criticizer_audit for the first migration only (docs/install.md).
owner=$(echo "select tableowner from pg_tables where tablename = 'audit_log'" | run -At -d criticizer)
if [ "$owner" = criticizer_audit ]; then
    run -c 'revoke criticizer_audit from criticizer'
else
    run -c 'grant criticizer_audit to criticizer'
fi
