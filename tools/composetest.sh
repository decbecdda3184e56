#!/usr/bin/env bash
# make composetest: runs docker-compose.yml on a real engine, Debian's docker.io, with its
# own data directory in build/composetest, and stops the engine at the end. Needs root and
# the Debian packages docker.io, buildah, busybox-static and debootstrap.
#
# There is no image registry: images of the same names are assembled here. Ours are built
# from the Dockerfile by buildah, on a base with this machine's Go. Postgres is Debian's
# with a short copy of the image's start script; Temporal is the server of tools/temporal
# with the image's steps; the mail server is aiosmtpd with STARTTLS; the UI does nothing.
# So this test proves wiring, order, health checks, secrets, users, volumes, restarts,
# "down" and "up", and an upgrade. It does not prove the images of postgres,
# temporalio/auto-setup, temporalio/ui, axllent/mailpit and golang themselves.
# REUSE=1 takes our images of the last run. ARM64=1 also builds the image for arm64, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/build/composetest
cache=$work/cache
engine=$work/engine
compose_version=v2.40.3
export DOCKER_HOST=unix://$engine/docker.sock

say() { echo "composetest: $* ($((SECONDS - begun)) s)"; }
fail() {
    echo "composetest: FAILED: $*" >&2
    dc ps -a >&2 || true
    dc logs --no-color --tail 15 >&2 || true
    exit 1
}
begun=$SECONDS

# Compose, the base image and Temporal, once.
mkdir -p "$cache"
echo "module composetest" > "$work/go.mod" # so that ./... leaves it out
if [ ! -x "$cache/docker-compose" ]; then
    say "building compose, which takes minutes"
    module=$(cd "$cache" && go mod download -json "github.com/docker/compose/v2@$compose_version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    rm -rf "$cache/src" && cp -r "$module" "$cache/src" && chmod -R u+w "$cache/src"
    CGO_ENABLED=0 go build -C "$cache/src" -trimpath -ldflags "-s -w -X github.com/docker/compose/v2/internal.Version=$compose_version" -o "$cache/docker-compose" ./cmd
    rm -rf "$cache/src"
fi
if [ ! -e "$cache/root.tar" ]; then
    say "installing the base image"
    rm -rf "$cache/root"
    debootstrap --variant=minbase --include=ca-certificates,postgresql-15,gosu,openssl,python3-aiosmtpd bookworm "$cache/root" http://deb.debian.org/debian > "$cache/debootstrap.log"
    rm -rf "$cache"/root/var/cache/apt/archives/*.deb "$cache"/root/var/lib/apt/lists/*
    tar -C "$cache/root" --numeric-owner --one-file-system -cf "$cache/root.tar.new" .
    mv "$cache/root.tar.new" "$cache/root.tar"
    rm -rf "$cache/root"
fi
mkdir -p "$cache/temporal"
go build -C tools/temporal -o "$cache/temporal/" go.temporal.io/server/cmd/server github.com/temporalio/cli/cmd/temporal
go build -C tools/temporal -o "$cache/temporal/sql-tool" go.temporal.io/server/cmd/tools/sql
rm -rf "$cache/temporal/schema" && cp -r "$(go list -C tools/temporal -m -f '{{.Dir}}' go.temporal.io/server)/schema/postgresql/v12" "$cache/temporal/schema" && chmod -R u+w "$cache/temporal/schema"

# The engine. Nothing of it is left: containers, mounts, its bridge, its data.
start_engine() {
    mkdir -p "$engine"
    dockerd --data-root "$engine/data" --exec-root "$engine/run" --pidfile "$engine/pid" -H "$DOCKER_HOST" >> "$work/dockerd.log" 2>&1 &
    dockerd=$!
    for _ in $(seq 120); do
        docker version > /dev/null 2>&1 && return
        kill -0 "$dockerd" || break
        sleep 0.5
    done
    tail "$work/dockerd.log" >&2
    exit 1
}
unmount() { findmnt -rno TARGET | grep "^$work/" | sort -r | xargs -r -n1 umount -l || true; }
clean() {
    dc down -v -t 1 > /dev/null 2>&1 || true
    docker ps -aq | xargs -r docker rm -f > /dev/null 2>&1 || true
    kill "$dockerd" 2> /dev/null || true
    wait "$dockerd" 2> /dev/null || true
    unmount
    [ -n "$had_bridge" ] || ip link del docker0 2> /dev/null || true
    rm -rf "$engine" "$work/clone"
}
unmount && rm -rf "$engine" # of a run that was killed
had_bridge=$(ip -o link show docker0 2> /dev/null || true)
: > "$work/dockerd.log"
clone=$work/clone
files=(-f docker-compose.yml -f "$work/noports.yml")
dc() { (cd "$clone" && "$cache/docker-compose" "${files[@]}" "$@"); }
start_engine
trap clean EXIT
say "engine $(docker version --format '{{.Server.Version}}'), compose $("$cache/docker-compose" version --short)"

# Images.
docker import "$cache/root.tar" localbase > /dev/null
image() { # NAME DIRECTORY: standard input is the Dockerfile
    DOCKER_BUILDKIT=0 docker build -q -t "$1" -f - "$2" > "$work/build.log" 2>&1 || { cat "$work/build.log"; fail "$1"; }
}
mkdir -p "$work/empty" "$work/postgres"
cat > "$work/postgres/entrypoint.sh" <<'SH'
#!/bin/bash
# The steps of the image postgres: initialize an empty directory, then serve.
set -e
bin=/usr/lib/postgresql/15/bin
export PGDATA=/var/lib/postgresql/data
if [ "$(id -u)" = 0 ]; then
    POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    export POSTGRES_PASSWORD
    chown postgres "$PGDATA" && chmod 700 "$PGDATA"
    exec gosu postgres "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    $bin/initdb --username=postgres --pwfile=<(echo "$POSTGRES_PASSWORD") > /dev/null
    echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
    $bin/pg_ctl -w start -o "-c listen_addresses=''" && sleep 3 && $bin/pg_ctl -m fast -w stop
fi
exec $bin/postgres -c listen_addresses='*'
SH
chmod 755 "$work/postgres/entrypoint.sh"
image postgres:17.6 "$work/postgres" <<'DOCKERFILE'
FROM localbase
RUN rm -rf /var/lib/postgresql/15 && mkdir -p /var/lib/postgresql/data && ln -s /usr/lib/postgresql/15/bin/pg_isready /usr/lib/postgresql/15/bin/psql /usr/local/bin/ || true
COPY entrypoint.sh /
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
ENTRYPOINT ["/entrypoint.sh"]
DOCKERFILE
cat > "$cache/temporal/entrypoint.sh" <<'SH'
#!/bin/bash
# The steps of the image temporalio/auto-setup: databases, schema, server, namespace.
set -eu
: "${POSTGRES_PWD:?}"
[ "$1" = autosetup ]
export SQL_PASSWORD=$POSTGRES_PWD
ip=$(hostname -i)
store() {
    sql-tool --plugin "$DB" --ep "$POSTGRES_SEEDS" -u "$POSTGRES_USER" -p "$DB_PORT" --db "$1" "${@:2}"
}
for part in temporal visibility; do
    database=temporal
    [ $part = temporal ] || database=temporal_visibility
    store $database create
    store $database setup-schema -v 0.0
    store $database update-schema -d /etc/temporal/schema/$part/versioned
done
sql() { echo "{sql: {pluginName: $DB, databaseName: $1, connectAddr: '$POSTGRES_SEEDS:$DB_PORT', connectProtocol: tcp, user: $POSTGRES_USER, password: '$POSTGRES_PWD', maxConns: 20, maxIdleConns: 20}}"; }
rpc() { echo "{rpc: {grpcPort: $1, membershipPort: $2, bindOnIP: $ip}}"; }
cat > /tmp/server.yaml <<YAML
log: {stdout: true, level: warn}
persistence:
  defaultStore: default
  visibilityStore: visibility
  numHistoryShards: 4
  datastores: {default: $(sql temporal), visibility: $(sql temporal_visibility)}
global: {membership: {maxJoinDuration: 30s, broadcastAddress: $ip}}
services: {frontend: $(rpc 7233 6933), matching: $(rpc 7235 6935), history: $(rpc 7234 6934), worker: $(rpc 7239 6939)}
clusterMetadata:
  failoverVersionIncrement: 10
  masterClusterName: active
  currentClusterName: active
  clusterInformation: {active: {enabled: true, initialFailoverVersion: 1, rpcName: frontend, rpcAddress: '$ip:7233'}}
dcRedirectionPolicy: {policy: noop}
publicClient: {hostPort: '$ip:7233'}
dynamicConfigClient: {filepath: /etc/temporal/$DYNAMIC_CONFIG_FILE_PATH, pollInterval: 60s}
YAML
(
    until temporal operator cluster health --address "$ip:7233" 2> /dev/null | grep -q SERVING; do sleep 1; done
    temporal operator namespace describe --address "$ip:7233" --namespace "$DEFAULT_NAMESPACE" > /dev/null 2>&1 ||
        temporal operator namespace create --address "$ip:7233" --retention "$DEFAULT_NAMESPACE_RETENTION" --namespace "$DEFAULT_NAMESPACE"
) &
exec server --root / --config tmp --env server start
SH
chmod 755 "$cache/temporal/entrypoint.sh"
image temporalio/auto-setup:1.29.7 "$cache/temporal" <<'DOCKERFILE'
FROM localbase
RUN useradd -u 1000 temporal && mkdir -p /etc/temporal/config/dynamicconfig
COPY server sql-tool temporal /usr/local/bin/
COPY schema /etc/temporal/schema
COPY entrypoint.sh /etc/temporal/
USER temporal
ENTRYPOINT ["/etc/temporal/entrypoint.sh"]
CMD ["autosetup"]
DOCKERFILE
image temporalio/ui:2.49.1 "$work/empty" <<'DOCKERFILE'
FROM localbase
ENTRYPOINT ["sleep", "infinity"]
DOCKERFILE
image axllent/mailpit:v1.29.0 "$work/empty" <<'DOCKERFILE'
FROM localbase
ENTRYPOINT ["/bin/sh", "-c", "exec python3 -m aiosmtpd -n -l 0.0.0.0:1025 --tlscert $MP_SMTP_TLS_CERT --tlskey $MP_SMTP_TLS_KEY -c aiosmtpd.handlers.Mailbox /mail"]
DOCKERFILE

# The clone, and our images from its Dockerfile.
rm -rf "$clone" && mkdir -p "$clone"
git ls-files -z | xargs -0 tar -cf - | tar -C "$clone" -xf -
cat > "$work/noports.yml" <<'YAML'
services:
  temporal: {ports: !reset []}
  ui: {ports: !reset []}
  mailpit: {ports: !reset []}
YAML
ba() { buildah --root "$cache/buildah" --runroot "$engine/buildah" --storage-driver overlay "$@"; }
golang=$(sed -n 's/^FROM .*\(golang:[^ ]*\).*/\1/p' Dockerfile)
ba rm --all > /dev/null 2>&1 || true
if ! ba inspect --type image "docker.io/library/$golang" > /dev/null 2>&1; then
    container=$(ba from scratch)
    at=$(ba mount "$container")
    mkdir -p "$at"/{bin,etc/ssl/certs,tmp,root,usr/local} && chmod 1777 "$at/tmp"
    cp -a "$(go env GOROOT)" "$at/usr/local/go"
    cp /etc/ssl/certs/ca-certificates.crt "$at/etc/ssl/certs/"
    cp "$(command -v busybox)" "$at/bin/busybox"
    for tool in sh mkdir chmod chown cp printf; do ln -s busybox "$at/bin/$tool"; done
    echo root:x:0:0:root:/root:/bin/sh > "$at/etc/passwd"
    ba umount "$container" > /dev/null
    ba config --env PATH=/usr/local/go/bin:/bin "$container"
    ba commit -q "$container" "docker.io/library/$golang" > /dev/null
fi
build() { # ARGUMENT...
    local name args=()
    for name in GOPROXY GOMODCACHE GOCACHE; do
        args+=(--env "$name=$(go env $name)")
        [[ $(go env $name) != /* ]] || args+=(-v "$(go env $name):$(go env $name):O")
    done
    BUILDAH_ISOLATION=chroot ba build --layers --pull-never --format docker --network host "${args[@]}" "$@" "$clone" > "$work/build.log" 2>&1 || { tail -n 30 "$work/build.log"; fail "the Dockerfile"; }
}
go mod download && go build -C tools/lint -o /dev/null github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod # the cache is the lower layer of an overlay
if [ -z "${REUSE:-}" ]; then
    build --build-arg P4=sample -t criticizer:sample
    build --build-arg P4=sample --target standin -t criticizer-standin:sample
fi
for name in criticizer criticizer-standin; do
    ba push -q "localhost/$name:sample" "docker-archive:$engine/$name.tar:$name:sample"
    docker load -q -i "$engine/$name.tar" > /dev/null
done
say "size of the image with the stand-in p4: $(docker image inspect -f '{{.Size}}' criticizer:sample) bytes"
if [ -n "${ARM64:-}" ]; then
    build --platform linux/arm64 -t criticizer:arm64
    container=$(ba from criticizer:arm64)
    machine=$(od -An -tx1 -j18 -N2 "$(ba mount "$container")/criticizer-worker")
    [ "$machine" = " b7 00" ] || fail "the image for arm64 has a worker for machine $machine"
    say "built for arm64"
fi

# The check of versions names what is too old for the Dockerfile.
mkdir -p "$engine/bin"
# shellcheck disable=SC2016 # for the script
printf '#!/bin/sh\ncase $1 in compose) shift; exec "%s" "$@";; esac\nexec "%s" "$@"\n' "$cache/docker-compose" "$(command -v docker)" > "$engine/bin/docker"
chmod +x "$engine/bin/docker"
checked=$(PATH=$engine/bin:$PATH sh docs/deploy/check.sh 2>&1) || true
case $(docker version --format '{{.Server.Version}}') in
    1* | 20*) [[ $checked == *"version 23.0.0 or later is needed"* ]] || fail "check.sh: $checked" ;;
    *) [ -z "$checked" ] || fail "check.sh: $checked" ;;
esac

# poll SECONDS COMMAND...: until the command succeeds.
poll() {
    local end=$((SECONDS + $1))
    while ! "${@:2}"; do
        [ $SECONDS -lt $end ] || fail "timeout: ${*:2}"
        sleep 1
    done
}
workers="workflows fetch redact llm notify retention"
healthy() {
    local name
    for name in postgres temporal $workers; do
        [ "$(docker inspect -f '{{.State.Health.Status}}' "$(dc ps -q "$name")")" = healthy ] || return 1
    done
}
mails() { dc exec -T mailpit sh -c 'ls /mail/new 2> /dev/null | wc -l'; }
review() { # CHANGELIST
    local before
    before=$(mails)
    dc run --rm -T starter change-commit --wait --timeout 3m "$1" > "$work/review.log" 2>&1 || { cat "$work/review.log"; fail "the review of $1"; }
    dc run --rm -T criticizer status "$1" > "$work/status.log" 2>&1 || { cat "$work/status.log"; fail "the status of $1"; }
    [ "$(mails)" -gt "$before" ] || fail "no mail about $1"
}
no_restart() {
    local name
    for name in postgres temporal $workers; do
        [ "$(docker inspect -f '{{.RestartCount}}' "$(dc ps -q "$name")")" = 0 ] || fail "$1: $name was restarted"
    done
}
sql() { dc exec -T postgres psql -U postgres -d "$1" -Atc "$2"; }
keys() { docker run --rm -v "${project}_keys:/keys:ro" localbase sh -c 'sha256sum /keys/*'; }
project=criticizer-sample

say "up on a fresh clone"
dc up -d --no-build --wait --wait-timeout 300 > "$work/up.log" 2>&1 || { tail "$work/up.log"; fail "docker compose up -d --wait"; }
say "up"
no_restart up
review 103
say "the first review, right after up"
for name in $workers; do
    dc exec -T "$name" /criticizer doctor --roles "$name" > "$work/doctor.log" 2>&1 || { cat "$work/doctor.log"; fail "docker compose exec $name /criticizer doctor --roles $name"; }
done
say "doctor of each stage"

# Users, rights, secrets.
for name in $workers; do
    id=$(dc ps -q "$name")
    [ "$(docker inspect -f '{{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}' "$id")" = "65532:65532 true [ALL]" ] || fail "$name may do too much"
    [ "$(awk '/^Uid:/{print $2}' "/proc/$(docker inspect -f '{{.State.Pid}}' "$id")/status")" = 65532 ] || fail "$name runs as another user"
    login=$(sql postgres "select string_agg(distinct usename, ',') from pg_stat_activity where application_name <> 'psql' and client_addr = '$(docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$id")'")
    [ "$login" = "worker_$name" ] || fail "$name has the login $login"
done
given=$(docker run --rm -v "${project}_secrets-llm:/s:ro" localbase stat -c '%n %a %u' /s/answers-keyset /s/database-url /s/redacted-keyset /s/redaction-key /s/report-keyset)
[ "$(echo "$given" | awk '{print $2, $3}' | sort -u)" = "400 65532" ] || fail "the secrets of llm are $given"
[ "$(docker run --rm -v "${project}_secrets-llm:/s:ro" localbase ls /s | wc -l)" = 5 ] || fail "llm has other secrets"
say "users and secrets"

# A second up changes nothing.
before=$(dc ps -aq | sort) made=$(keys)
dc up -d --no-build --wait > "$work/up.log" 2>&1 || { tail "$work/up.log"; fail "the second up"; }
[ "$before" = "$(dc ps -aq | sort)" ] || fail "the second up replaced containers"
[ "$made" = "$(keys)" ] || fail "the second up made other keys"
[ "$(sql criticizer "select count(*) from pg_auth_members where roleid = 'criticizer_audit'::regrole and member = 'criticizer'::regrole")" = 0 ] || fail "the owner is a member of criticizer_audit"
say "a second up"

# A restart of each part. The health check notices that Temporal does not answer.
docker restart -t 5 "$(dc ps -q mailpit)" > /dev/null
review 104
docker pause "$(dc ps -q temporal)" > /dev/null
unhealthy() { [ "$(docker inspect -f '{{.State.Health.Status}}' "$(dc ps -q notify)")" = unhealthy ]; }
poll 120 unhealthy
docker unpause "$(dc ps -q temporal)" > /dev/null
poll 180 healthy
for name in temporal postgres; do docker restart -t 5 "$(dc ps -q $name)" > /dev/null; done
poll 180 healthy
review 105
say "restarts"

# down and up: everything is kept.
dc down -t 30 > "$work/up.log" 2>&1
dc up -d --no-build --wait --wait-timeout 300 >> "$work/up.log" 2>&1 || { tail "$work/up.log"; fail "up after down"; }
no_restart "up after down"
[ "$made" = "$(keys)" ] || fail "up after down made other keys"
dc run --rm -T criticizer status 103 > /dev/null 2>&1 || fail "down lost the review of 103"
review 108
say "down and up"

# The engine dies with all containers, and starts again.
kill -9 "$dockerd"
wait "$dockerd" 2> /dev/null || true
for child in $(pgrep -f "^[^ ]*containerd.* $engine/run|^containerd .*$engine|$engine/run/containerd" || true); do kill -9 "$child" 2> /dev/null || true; done
rm -f "$engine/pid" "$engine/run/containerd/containerd.pid"
start_engine
poll 240 healthy
review 107
say "the engine was killed"

# An upgrade: another image, the same volumes.
docker tag criticizer:sample criticizer:next
docker tag criticizer-standin:sample criticizer-standin:next
CRITICIZER_VERSION=next dc up -d --no-build --wait --wait-timeout 300 > "$work/up.log" 2>&1 || { tail "$work/up.log"; fail "the upgrade"; }
[ "$(docker inspect -f '{{.Config.Image}}' "$(dc ps -q fetch)")" = criticizer:next ] || fail "fetch has its old image"
export CRITICIZER_VERSION=next
review 109
unset CRITICIZER_VERSION
dc down -v -t 5 > /dev/null 2>&1
say "an upgrade"

# production.yml: nothing is reviewed before a person has applied the allow list.
files=(-f docker-compose.yml -f production.yml -f "$work/noports.yml")
sed -e '/mailpit/d' -i "$work/noports.yml"
docker tag criticizer:sample criticizer:1.0.0
sed -e "s/^CRITICIZER_VERSION=/&1.0.0/; s,^P4_DIRECTORY=,&/srv/p4,; s/^P4PORT=.*/P4PORT=ssl:p4sim:1666/; s/^OPENAI_API_KEY=/&sk-of-a-test/" docs/deploy/env.example > "$clone/.env"
sed -e 's,//depot/main/...,//depot/...,' docs/deploy/criticizer.yaml > "$clone/criticizer.yaml"
dc run --rm -T migrate > "$work/up.log" 2>&1 || { tail "$work/up.log"; fail "docker compose run --rm migrate"; }
if dc run --rm -T fetch --roles fetch > "$work/fetch.log" 2>&1; then fail "fetch runs without an allow list"; fi
grep -q "was never applied" "$work/fetch.log" || { cat "$work/fetch.log"; fail "fetch names another reason"; }
dc run --rm -T criticizer allowlist apply --reason "first installation" > "$work/up.log" 2>&1 || { tail "$work/up.log"; fail "allowlist apply"; }
dc up -d --no-build --wait --wait-timeout 300 > "$work/up.log" 2>&1 || { tail "$work/up.log"; fail "up in production"; }
no_restart production
[ -z "$(docker ps -q --filter name=standin --filter name=mailpit --filter name=allowlist)" ] || fail "the sample runs in production"
say "production"
echo "composetest: passed"
