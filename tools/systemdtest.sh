#!/usr/bin/env bash
# make systemdtest: installs Criticizer by the commands of docs/install.md and docs/trigger.md
# in a Debian container that systemd boots, with the units of docs/deploy as they are, and
# reviews changes under their filters. Needs root, git, and the Debian packages systemd-container
# and debootstrap.
#
# The container has a network of its own. Postgres, Temporal (its development server) and
# systemd are real; stand-ins take the place of Perforce and the model; aiosmtpd with
# STARTTLS stores the mails, so that they can be counted.
# The container is in build/systemdtest and is deleted at the end; the Debian root is kept.
# REUSE=1 takes the commands of the last run.
# shellcheck disable=SC2016 # commands in single quotes are for a shell in the container
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/build/systemdtest
cache=$work/cache
root=$work/root
bin=$work/bin
container='' leader=''

say() { echo "systemdtest: $* ($((SECONDS - begun)) s)"; }
fail() {
    echo "systemdtest: FAILED: $*" >&2
    exit 1
}
begun=$SECONDS

missing=
for entry in systemd-nspawn=systemd-container debootstrap=debootstrap git=git; do
    command -v "${entry%%=*}" > /dev/null || missing="$missing ${entry#*=}"
done
[ -z "$missing" ] || fail "these Debian packages are missing:$missing"
[ "$(id -u)" = 0 ] || fail "only root can boot a container"

mkdir -p "$cache" "$bin"
exec 9> "$work/lock"
flock -n 9 || fail "another run uses $work"

# inside COMMAND...: runs a command in the container, as its root, for 5 minutes at most.
inside() { timeout -k 5 "${limit:-300}" nsenter -t "$leader" -a -- env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin SYSTEMD_PAGER= "$@"; }
running() { [ -n "$container" ] && kill -0 "$container" 2> /dev/null; }
stop_container() {
    running || return 0
    # systemd stops at this signal as at "poweroff".
    [ -z "$leader" ] || kill -s RTMIN+4 "$leader" 2> /dev/null || true
    for _ in $(seq 90); do
        running || break
        sleep 1
    done
    kill -9 "$container" "$leader" 2> /dev/null || true
    wait "$container" 2> /dev/null || true
    container='' leader=''
}
# A failure shows the logs of the units.
clean() {
    local status=$?
    set +e
    trap - EXIT
    if [ $status != 0 ] && running && [ -n "$leader" ]; then
        inside systemctl --no-pager --failed >&2
        inside systemctl --no-pager status 'criticizer-*' temporal standin smtp >&2
        for unit in criticizer-worker@\* criticizer-drain temporal standin smtp; do
            echo "--- the end of the log of $unit" >&2
            inside journalctl --no-pager -n 40 -u "$unit" >&2
        done
    fi
    [ -n "$leader" ] && kill -9 "$leader" 2> /dev/null # nothing of it is needed any more
    stop_container
    rm -rf "$root" "$work/source"
    exit $status
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
rm -rf "$root" "$work/source" # of a run that was killed

# The Debian root, once.
echo "module systemdtest" > "$work/go.mod" # so that ./... leaves it out
if [ ! -e "$cache/root.complete" ]; then
    say "installing Debian"
    rm -rf "$cache/root"
    debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,ca-certificates,openssl,postgresql-15,python3-aiosmtpd,procps \
        bookworm "$cache/root" http://deb.debian.org/debian > "$cache/debootstrap.log" || { tail "$cache/debootstrap.log"; fail debootstrap; }
    rm -rf "$cache"/root/var/cache/apt/archives/*.deb "$cache"/root/var/lib/apt/lists/*
    touch "$cache/root.complete"
fi

# Our commands from the files as they are, and once more as another build, from a commit on top of them.
export CGO_ENABLED=0
build() { # DIRECTORY
    go build -buildvcs=true -trimpath -o "$1/" ./worker ./criticizer ./starter
    mv "$1/starter" "$1/criticizer-starter"
    mv "$1/worker" "$1/criticizer-worker"
}
if [ -z "${REUSE:-}" ]; then
    say "building"
    mkdir -p "$bin/next"
    build "$bin"
    go build -trimpath -o "$bin/p4" ./p4/p4sim
    go build -trimpath -o "$bin/" ./tools/standin
    go build -C tools/temporal -trimpath -o "$bin/temporal" github.com/temporalio/cli/cmd/temporal
    git clone -q . "$work/source"
    git ls-files -z --cached --others --exclude-standard | tar --ignore-failed-read --null -T - -cf - | tar -C "$work/source" -xf -
    git -C "$work/source" add -A
    git -C "$work/source" -c user.name=systemdtest -c user.email=systemdtest@example.com commit -q --allow-empty -m "another build"
    (cd "$work/source" && build "$bin/next")
    rm -rf "$work/source"
fi
version=$("$bin/criticizer-worker" --version) next_version=$("$bin/next/criticizer-worker" --version)
[ "$version" != "$next_version" ] || fail "both builds are $version"

# The host: a copy of the root, with the servers that install.md expects.
cp -a --reflink=auto "$cache/root" "$root"
clone=$root/root/clone
install -d "$clone/build/bin" "$clone/docs" "$root/usr/local/share" "$root/etc/aiosmtpd"
cp -r docs/deploy docs/workers.md "$clone/docs/"
install "$bin/criticizer-worker" "$bin/criticizer" "$bin/criticizer-starter" "$clone/build/bin/"
install "$bin/p4" "$bin/standin" "$bin/temporal" "$root/usr/local/bin/"
install -m 644 tools/devstack/harbor.txtar "$root/usr/local/share/"
printf 'P4SIM_DEPOT=/usr/local/share/harbor.txtar\nP4SIM_STATE=/tmp/p4sim\nP4SIM_MAIL_DOMAIN=example.com\n' > "$root/usr/local/bin/p4sim.conf"
echo systemdtest > "$root/etc/hostname"
printf '127.0.0.1 localhost systemdtest mail.example.com perforce.example.com\n' > "$root/etc/hosts"
rm -f "$root/etc/resolv.conf" "$root/etc/machine-id"
: > "$root/etc/machine-id"
mkdir -p "$root/etc/systemd/journald.conf.d"
printf '[Journal]\nStorage=persistent\nRateLimitIntervalSec=0\n' > "$root/etc/systemd/journald.conf.d/all.conf"
unit() { # NAME COMMAND: a server of the host
    printf '[Service]\nExecStart=%s\nUser=%s\nStateDirectory=%s\nRestart=no\n[Install]\nWantedBy=multi-user.target\n' "$2" "$1" "$1" > "$root/etc/systemd/system/$1.service"
    chroot "$root" useradd --system --no-create-home "$1"
    chroot "$root" systemctl enable -q "$1"
}
unit temporal "/usr/local/bin/temporal server start-dev --headless --ip 127.0.0.1 --db-filename /var/lib/temporal/db --log-level error"
unit standin /usr/local/bin/standin
unit smtp "/usr/bin/python3 -m aiosmtpd -n -l 127.0.0.1:2525 --tlscert /etc/aiosmtpd/cert.pem --tlskey /etc/aiosmtpd/key.pem -c aiosmtpd.handlers.Mailbox /var/lib/smtp/box"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=mail.example.com -addext subjectAltName=DNS:mail.example.com \
    -keyout "$root/etc/aiosmtpd/key.pem" -out "$root/etc/aiosmtpd/cert.pem" 2> /dev/null
chmod 644 "$root/etc/aiosmtpd/key.pem"
cp "$root/etc/aiosmtpd/cert.pem" "$root/usr/local/share/ca-certificates/mail.crt"
chroot "$root" update-ca-certificates > /dev/null 2>&1

# poll SECONDS COMMAND...: until the command succeeds.
poll() {
    local end=$((SECONDS + $1))
    while ! "${@:2}"; do
        running || fail "the container ended while it waited for: ${*:2}"
        [ $SECONDS -lt $end ] || fail "timeout: ${*:2}"
        sleep 1
    done
}
booted() {
    leader=$(pgrep -P "$container" | head -n 1)
    [ -n "$leader" ] && [[ $(limit=30 inside systemctl is-system-running 2> /dev/null) =~ ^(running|degraded)$ ]]
}
boot() {
    local options=()
    [ -d /run/systemd/system ] || options=(--register=no --keep-unit) # the host has another init
    systemd-nspawn -q --boot --private-network --machine=systemdtest --directory="$root" "${options[@]}" < /dev/null >> "$work/console.log" 2>&1 9>&- &
    container=$!
    poll 180 booted
    limit=30 poll 120 inside temporal operator cluster health --address 127.0.0.1:7233 > /dev/null 2>&1
    limit=30 poll 60 inside runuser -u postgres -- psql -qc 'select 1' > /dev/null 2>&1
}
: > "$work/console.log"
boot
say "booted: $(inside systemctl --version | head -n 1)"

# install.md, with passwords of our own, and with the stand-ins instead of the servers of its
# criticizer.yaml. The servers of steps 1 to 3 are ready: step 1 has no build.
password=planted-database-password model_key=sk-planted-model-key ticket=5EC2E7000000000000000000B1C4E7AA
blocks() { awk -v from="$2" -v to="$3" '/^```sh$/ {n++; on = 1; next} /^```$/ {on = 0} on && n >= from && n <= to' "$1"; }
[ "$(blocks docs/install.md 1 99 | grep -c '^make build$')" = 1 ] || fail "step 1 of docs/install.md is another"
{
    echo 'set -e; cd /root/clone'
    blocks docs/install.md 1 4 | sed -e '/^make build$/d' -e "s/password 'CHANGE-ME'/password '$password'/" -e "s/criticizer:CHANGE-ME@/criticizer:$password@/" -e "s/echo 'CHANGE-ME'/echo '$model_key'/"
    echo "umask 077; echo $ticket > /etc/criticizer/secrets/p4-ticket; chown criticizer: /etc/criticizer/secrets/p4-ticket; umask 022"
    echo 'echo CRITICIZER_P4_TICKET_FILE=/etc/criticizer/secrets/p4-ticket >> /etc/criticizer/worker-all.env'
    blocks docs/install.md 5 5 | sed -e 's,//depot/main/,//depot/,' -e 's,^  model: gpt-4.1$,  model: llmsim-1\n  base_url: http://127.0.0.1:8026/v1\n  stand_in: true,' -e 's,^  server: smtp://mail.example.com$,&:2525,'
    blocks docs/install.md 6 8
} > "$root/root/install.sh"
! grep -q CHANGE-ME "$root/root/install.sh" || fail "a password of docs/install.md was not replaced"
inside bash /root/install.sh > "$work/install.log" 2>&1 || { cat "$work/install.log" >&2; fail "the commands of docs/install.md"; }
worker=criticizer-worker@all
show() { inside systemctl show -p "$2" --value "$1"; } # UNIT PROPERTY
ready() { inside /opt/criticizer/criticizer-worker --config /etc/criticizer/criticizer.yaml --healthy > /dev/null 2>&1; }
operator() { inside bash -c 'set -a; . /etc/criticizer/worker-all.env; set +a; exec /opt/criticizer/criticizer "$@"' criticizer "$@"; }
start() { inside /opt/criticizer/criticizer-starter change-commit "$@" > "$work/start.log" 2>&1 || { cat "$work/start.log" >&2; fail "start the review of $*"; }; }
mails() { find "$root/var/lib/smtp/box/new" -type f -exec grep -l "^Subject: .* CL $1:" {} + | wc -l; } # CHANGELIST
succeeded() { operator status "$1" 2> /dev/null | grep -q "^changelist $1, version 1: succeeded"; }
reviewed() { # CHANGELIST: its review ends, with one mail
    poll 300 succeeded "$1"
    [ "$(mails "$1")" = 1 ] || fail "there are $(mails "$1") mails about $1"
}
# The model stops to answer, so that a review waits for it, and goes on.
freeze() { inside systemctl kill -s STOP standin; }
thaw() { inside systemctl kill -s CONT standin; }
at_model() { operator status "$1" 2> /dev/null | grep -Eq 'llm +running'; }
hold() { # CHANGELIST: starts its review, and returns while it waits for the model
    freeze
    start "$1"
    poll 120 at_model "$1"
}
log_of() { inside journalctl --no-pager -o cat "_SYSTEMD_UNIT=$1.service"; }
# logged WORD COUNT: whether the worker's log has so many lines with the text.
logged() { [ "$(log_of $worker | grep -c "$1")" -ge "$2" ]; }

ready || fail "systemctl returned before the worker was ready"
[ "$(show $worker ActiveState)/$(show $worker UnitFileState)" = active/enabled ] || fail "$worker is not active and enabled"
say "docs/install.md: doctor is content, $worker is active"

# The filters are in force, and not only configured.
in_force() { # PID
    [ "$(inside awk '/^(CapEff|CapBnd|NoNewPrivs|Seccomp):/ {printf "%s", $2}' "/proc/$1/status")" = 0000000000000000000000000000000012 ] || fail "process $1 has privileges, or no filter of system calls"
    ! inside nsenter -t "$1" -m -- touch /etc/written 2> /dev/null || fail "process $1 can write /etc"
    [ -z "$(inside nsenter -t "$1" -m -- ls -A /root)" ] || fail "process $1 sees /root"
    [ "$(inside cat "/proc/$1/uid_map" | wc -l)" = 2 ] || fail "process $1 has the users of the host"
}
in_force "$(show $worker MainPID)"
{ echo 'set -e'; blocks docs/install.md 9 9 | sed 's/4711/103/'; } > "$root/root/first.sh"
inside bash -c 'set -a; . /etc/criticizer/worker-all.env; set +a; exec bash /root/first.sh' > "$work/install.log" 2>&1 || { cat "$work/install.log" >&2; fail "step 9 of docs/install.md"; }
reviewed 103
say "the filters are in force, and a review under them is mailed once"

# systemctl reload: a rotated secret is used.
before=$(show $worker MainPID)
rotate() { # NAME VALUE
    inside bash -c 'umask 077; echo "$2" > "/etc/criticizer/secrets/$1.new"; chown criticizer: "/etc/criticizer/secrets/$1.new"; mv "/etc/criticizer/secrets/$1.new" "/etc/criticizer/secrets/$1"' rotate "$1" "$2"
}
rotate model-key "$model_key-2"
inside systemctl reload $worker
poll 30 logged '"msg":"secret reloaded".*OPENAI_API_KEY' 1
[ "$(show $worker MainPID)/$(show $worker NRestarts)" = "$before/0" ] || fail "the reload restarted the worker"
inside bash -c "systemctl restart $worker && systemctl reload $worker" # the worker must not end by a signal that comes too early
poll 60 ready
[ "$(show $worker NRestarts)" = 0 ] || fail "a reload ended the worker that was starting"
start --wait 104
reviewed 104
say "reload"

# systemctl stop while a review waits for the model.
hold 105
begin=$(date +%s%N)
inside systemctl stop $worker
took=$((($(date +%s%N) - begin) / 1000000))
[ "$(show $worker Result)" = success ] || fail "the worker did not stop within TimeoutStopSec: $(show $worker Result)"
[ $took -lt 25000 ] || fail "the stop took $took ms"
thaw
inside systemctl start $worker
reviewed 105
say "stop in the middle of a review took $took ms, and the review ended after the start"

# kill -9 while a review waits for the model.
hold 107
inside systemctl kill --kill-who=main -s KILL $worker
restarted() { [ "$(show $worker NRestarts)" = 1 ] && ready; }
poll 60 restarted
thaw
reviewed 107
say "kill -9: systemd started the worker again, and the review ended"

# Temporal and Postgres are away for longer than systemd's limit of starts.
inside systemctl stop temporal postgresql@15-main
! inside systemctl restart $worker 2> /dev/null || fail "a worker without Temporal and Postgres has started"
begin=$SECONDS
failing() { [ "$(show $worker NRestarts)" -ge 7 ] && [ $((SECONDS - begin)) -gt 30 ]; }
poll 180 failing
inside systemctl start temporal postgresql@15-main
poll 120 ready
start --wait 102
reviewed 102
say "the worker starts again and again while its servers are away"

# Credentials.
install -D -m 644 docs/deploy/credentials.conf "$root/etc/systemd/system/$worker.service.d/credentials.conf"
sed -i 's/^#\(.*p4-ticket\)$/\1/' "$root/etc/systemd/system/$worker.service.d/credentials.conf"
inside bash -ec "chown -R root: /etc/criticizer/secrets; systemctl daemon-reload; systemctl restart $worker"
poll 60 ready
credentials=/run/credentials/$worker.service
inside cat $credentials/model-key | grep -q "^$model_key-2$" || fail "$credentials has another model key"
for name in $(inside ls $credentials); do
    ! inside runuser -u nobody -- cat "$credentials/$name" > /dev/null 2>&1 || fail "nobody can read $credentials/$name"
    ! inside runuser -u criticizer -- cat "/etc/criticizer/secrets/$name" > /dev/null 2>&1 || fail "the worker's account can read the original of $name"
done
[ "$(inside ls $credentials | wc -l)" = 9 ] || fail "the worker has the credentials $(inside ls $credentials)"
in_force "$(show $worker MainPID)"
start --wait 110
reviewed 110
say "credentials"

# docs/trigger.md: a trigger stores its request while Temporal is away, and the timer starts it.
inside bash -ec '
useradd --system --no-create-home perforce
printf "temporal:\n  address: 127.0.0.1:7233\nstarter:\n  spool_dir: /var/lib/criticizer/spool\n" > /etc/criticizer/starter.yaml
install -d -m 0700 -o perforce /var/lib/criticizer/spool
cp /root/clone/docs/deploy/criticizer-drain.* /etc/systemd/system/
systemctl daemon-reload
runuser -u perforce -- /opt/criticizer/criticizer-starter --config /etc/criticizer/starter.yaml install --print
systemctl enable --now criticizer-drain.timer' > "$work/install.log" 2>&1 || { cat "$work/install.log" >&2; fail "the trigger's host"; }
next=$(($(inside date -d "$(show criticizer-drain.timer NextElapseUSecRealtime)" +%s) - $(date +%s)))
[[ $next -ge 0 && $next -le 391 ]] || fail "the timer elapses in $next s"
inside systemctl stop temporal
inside runuser -u perforce -- /opt/criticizer/criticizer-starter --config /etc/criticizer/starter.yaml --trigger change-commit 106 > "$work/start.log" 2>&1 || fail "the trigger failed"
spooled() { find "$root/var/lib/criticizer/spool" -name '*.json' | wc -l; }
[ "$(spooled)" = 1 ] || { cat "$work/start.log" >&2; fail "the trigger stored $(spooled) requests"; }
! inside systemctl start criticizer-drain 2> /dev/null || fail "the drain succeeded without Temporal"
[ "$(spooled)" = 1 ] || fail "the drain without Temporal lost the request"
inside systemctl start temporal
poll 120 ready
# The timer as it is, but every ten seconds.
mkdir -p "$root/etc/systemd/system/criticizer-drain.timer.d"
printf '[Timer]\nOnCalendar=\nOnCalendar=*:*:0/10\nRandomizedDelaySec=0\nAccuracySec=1s\n' > "$root/etc/systemd/system/criticizer-drain.timer.d/often.conf"
inside bash -ec 'systemctl daemon-reload; systemctl restart criticizer-drain.timer'
drained() { [ "$(spooled)" = 0 ]; }
poll 120 drained
reviewed 106
[ "$(show criticizer-drain Result)" = success ] || fail "the last drain: $(show criticizer-drain Result)"
say "the timer drained the spool"

# An upgrade by docs/upgrade.md while reviews wait for the model; one more starts while the worker is away.
operator doctor > "$work/doctor.log" 2>&1 || { cat "$work/doctor.log" >&2; fail "doctor before the upgrade"; }
for changelist in 108 111 112; do hold $changelist; done
install -d "$clone/next"
install "$bin/next/criticizer-worker" "$bin/next/criticizer" "$bin/next/criticizer-starter" "$clone/next/"
running_version() { inside bash -c "exec /proc/$(show $worker MainPID)/exe --version"; }
[ "$(running_version)" = "$version" ] || fail "the worker is $(running_version)"
inside bash -ec '
set -a; . /etc/criticizer/worker-all.env; set +a
cd /root/clone/next
./criticizer migrate
for command in criticizer-worker criticizer criticizer-starter; do
    install $command /opt/criticizer/$command.new
    mv /opt/criticizer/$command.new /opt/criticizer/$command
done' > "$work/install.log" 2>&1 || { cat "$work/install.log" >&2; fail "the upgrade"; }
inside systemctl restart $worker &
restarting=$!
stopping() { [[ $(show $worker ActiveState) != active || $(running_version) == "$next_version" ]]; }
poll 30 stopping
start 109
wait $restarting || fail "systemctl restart"
poll 60 ready
[ "$(running_version)" = "$next_version" ] || fail "the worker is $(running_version)"
thaw
for changelist in 108 109 111 112; do reviewed $changelist; done
operator doctor > "$work/doctor.log" 2>&1 || { cat "$work/doctor.log" >&2; fail "doctor after the upgrade"; }
say "an upgrade in the middle of three reviews"

# All processes of the host end at once; the units start again at boot.
hold 101
kill -9 "$leader"
wait "$container" 2> /dev/null || true
container='' leader=''
boot
poll 180 ready
reviewed 101
[ "$(show criticizer-drain.timer ActiveState)" = active ] || fail "the timer is not active after a boot"
say "a power cut"

# One worker per stage, by docs/workers.md: accounts, logins, secrets and addresses of their own.
inside systemctl disable -q --now $worker
cat > "$root/root/stages.sh" <<'SH'
set -e
mkdir -p /etc/systemd/system/criticizer-worker@.service.d
awk "/account.conf/ {on = 1} on && /^       \[Service\]/ {copy = 1} copy && !/^       / {exit} copy {print substr(\$0, 8)}" /root/clone/docs/workers.md > /etc/systemd/system/criticizer-worker@.service.d/account.conf
grep -q "^User=criticizer-%i$" /etc/systemd/system/criticizer-worker@.service.d/account.conf
printf "shelf:\n  quiet: 1s\n" >> /etc/criticizer/criticizer.yaml
port=9465
stage() { # STAGE ROLE [VARIABLE FILE]...
    local stage=$1 role=$2 dir=/etc/criticizer/secrets-$1 env=/etc/criticizer/worker-$1.env
    shift 2
    useradd --system --no-create-home criticizer-$stage
    install -d -m 700 $dir
    umask 077
    # By standard input: the journal has the arguments of runuser.
    (cd / && echo "create role ${role}_1 login password '$PASSWORD' in role $role" | runuser -u postgres -- psql -q -v ON_ERROR_STOP=1)
    echo "postgres://${role}_1:$PASSWORD@127.0.0.1:5432/criticizer" > $dir/database-url
    { echo CRITICIZER_WORKER_LISTEN=127.0.0.1:$port; echo CRITICIZER_DATABASE_URL_FILE=$dir/database-url; } > $env
    while [ $# -gt 0 ]; do
        cp /etc/criticizer/secrets/$2 $dir/
        echo $1_FILE=$dir/$2 >> $env
        shift 2
    done
    chown -R criticizer-$stage: $dir
    umask 022
    port=$((port + 1))
}
stage workflows criticizer_bookkeeping
stage fetch criticizer_fetch CRITICIZER_RAW_KEYSET raw-keyset CRITICIZER_P4_TICKET p4-ticket
stage redact criticizer_redact CRITICIZER_RAW_KEYSET raw-keyset CRITICIZER_REDACTED_KEYSET redacted-keyset CRITICIZER_REDACTION_KEY redaction-key
stage llm criticizer_llm CRITICIZER_REDACTED_KEYSET redacted-keyset CRITICIZER_REPORT_KEYSET report-keyset CRITICIZER_ANSWERS_KEYSET answers-keyset CRITICIZER_REDACTION_KEY redaction-key OPENAI_API_KEY model-key
stage notify criticizer_notify CRITICIZER_REPORT_KEYSET report-keyset CRITICIZER_EVIDENCE_KEY evidence-key
stage retention criticizer_retention
chown -R criticizer-fetch: /var/lib/criticizer/p4
systemctl daemon-reload
systemctl enable -q --now criticizer-worker@{workflows,fetch,redact,llm,notify,retention}
SH
inside env PASSWORD="$password" bash /root/stages.sh > "$work/install.log" 2>&1 || { cat "$work/install.log" >&2; fail "one worker per stage"; }
units=()
port=9465
for stage in workflows fetch redact llm notify retention; do
    units+=("criticizer-worker@$stage")
    poll 60 inside env CRITICIZER_WORKER_LISTEN=127.0.0.1:$port /opt/criticizer/criticizer-worker --config /etc/criticizer/criticizer.yaml --healthy > /dev/null 2>&1
    pid=$(show criticizer-worker@$stage MainPID)
    [ "$(inside stat -c %U "/proc/$pid")" = criticizer-$stage ] || fail "$stage runs as $(inside stat -c %U "/proc/$pid")"
    in_force "$pid"
    for other in workflows fetch redact llm notify retention; do
        [ $other = $stage ] || ! inside runuser -u criticizer-$stage -- cat "/etc/criticizer/secrets-$other/database-url" > /dev/null 2>&1 || fail "$stage can read the secrets of $other"
    done
    port=$((port + 1))
done
inside /opt/criticizer/criticizer-starter shelve-commit 113 > "$work/start.log" 2>&1 || { cat "$work/start.log" >&2; fail "the review of the shelf 113"; }
reviewed 113
say "one worker per stage"

# Ratings on the running systemd.
for unit in $worker criticizer-worker@llm criticizer-drain; do
    inside systemd-analyze security --no-pager --threshold=20 "$unit.service" > "$work/security.log" 2>&1 || { tail -n 1 "$work/security.log" >&2; fail "the exposure of $unit is above 2"; }
    say "$(sed -n 's/^→ //p' "$work/security.log")"
done

# The journal has the log of each unit under its name. No secret is in it, in the properties of the units or in an environment.
for unit in $worker "${units[@]}"; do
    [ "$(log_of "$unit" | grep -c '"msg":"worker ready"')" -ge 1 ] || fail "the journal has no log of $unit"
done
log_of criticizer-drain | grep -q . || fail "the journal has no log of criticizer-drain"
control=planted-control-$RANDOM$RANDOM
{
    printf '%s\n' "$password" "$model_key" "$ticket" "$control"
    cat "$root/etc/criticizer/secrets/redaction-key"
    cut -d' ' -f2 "$root/etc/criticizer/secrets/evidence-key"
    sed -n 's/.*"value":"\([^"]*\)".*/\1/p' "$root"/etc/criticizer/secrets/*-keyset
} > "$work/values"
[ "$(grep -c '^.\{16,\}$' "$work/values")" = 11 ] || fail "there are $(wc -l < "$work/values") secrets to search for"
inside systemd-cat -t control echo "$control"
inside journalctl --sync
inside bash -c 'journalctl --no-pager -o export; systemctl show "criticizer-*"; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr "\0" "\n"' 2> /dev/null > "$work/all.log"
found=$(grep -aFf "$work/values" "$work/all.log" || true)
rm -f "$work/values" "$work/all.log"
[ "$found" = "MESSAGE=$control" ] || fail "the journal, the units or an environment have a secret, or the search is broken; it found: $found"
say "log lines are under the units' names, and no secret is in the journal or a unit"

# At the end each changelist has one mail, and nothing waits.
for changelist in $(seq 101 113); do
    [ "$(mails "$changelist")" = 1 ] || fail "at the end there are $(mails "$changelist") mails about $changelist"
done
[ "$(find "$root/var/lib/smtp/box/new" -type f | wc -l)" = 13 ] || fail "there are other mails"
[ -z "$(inside systemctl list-units --failed --no-legend --plain 'criticizer-*')" ] || fail "a unit has failed"
say "13 reviews, 13 mails"
echo "systemdtest: passed"
