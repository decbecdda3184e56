#!/bin/sh
# Run by the service secrets of docker-compose.yml, as root, before anything else starts:
# makes a password for each login of the database and a certificate for the mail server
# of the sample, once, in the volume keys; and gives each service the secrets that it
# needs, and no others, in a volume of its own.
set -eu
umask 077

# put OWNER FILE: standard input becomes FILE, at once and with its mode.
put() {
    rm -f "$2.new" # of a run that was interrupted
    cat > "$2.new"
    sync "$2.new"
    chmod 400 "$2.new"
    chown "$1" "$2.new"
    mv "$2.new" "$2"
}

# password NAME: prints the password of a login.
password() {
    [ -e "/keys/password-$1" ] || od -An -v -N24 -tx1 /dev/urandom | tr -d ' \n' | put 0 "/keys/password-$1"
    cat "/keys/password-$1"
}

# ours SERVICE LOGIN KEY...: the database URL and the keys of a service with our image.
ours() {
    service=/secrets/$1 login=$2
    shift 2
    secret=$(password "$login")
    for key; do
        put 65532 "$service/$key" < "/keys/$key"
    done
    echo "postgres://$login:$secret@postgres:5432/criticizer?sslmode=disable" | put 65532 "$service/database-url"
    echo "$secret" | put 0 "/secrets/postgres/$login"
}

ours migrate criticizer
ours workflows worker_workflows
ours fetch worker_fetch raw-keyset
ours redact worker_redact raw-keyset redacted-keyset redaction-key
ours llm worker_llm redacted-keyset report-keyset answers-keyset redaction-key
ours notify worker_notify report-keyset evidence-key
ours retention worker_retention
ours criticizer worker_operator

for login in postgres temporal; do
    password "$login" > /dev/null
    put 0 "/secrets/postgres/$login" < "/keys/password-$login"
done
put 1000 /secrets/temporal/password < /keys/password-temporal # the user of Temporal's image

if [ ! -e /keys/mailpit.pem ]; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=mailpit \
        -addext subjectAltName=DNS:mailpit -keyout /keys/mailpit.key -out /keys/mailpit.pem.new 2> /dev/null
    sync /keys/mailpit.key /keys/mailpit.pem.new
    mv /keys/mailpit.pem.new /keys/mailpit.pem
fi
for file in mailpit.pem mailpit.key; do
    put 0 "/secrets/mailpit/$file" < "/keys/$file"
done
put 65532 /secrets/notify/mailpit.pem < /keys/mailpit.pem
