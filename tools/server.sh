#!/bin/sh
# Runs tests against a Temporal server on Postgres, as an installation has it:
#
#	sh tools/server.sh build VERSION          builds the server and its schema tool
#	sh tools/server.sh run VERSION COMMAND... runs COMMAND with the address of such a server
#
# run needs the variables of devstack exec: Postgres, and the temporal command. It creates two
# databases and drops them at the end. CRITICIZER_TEST_TEMPORAL_VERSION says to the tests that
# the server has fairness and pauses.
set -eu

action=$1 version=$2
shift 2
dir=$PWD/build/server/$version

build() {
	[ ! -x "$dir/server" ] || return 0
	GOBIN="$dir" go install "go.temporal.io/server/cmd/tools/sql@v$version" "go.temporal.io/server/cmd/server@v$version"
}

# part PATTERN prints what the group of PATTERN matches in the URL of Postgres.
part() {
	printf '%s\n' "$CRITICIZER_TEST_DATABASE_URL" | sed -E "s|^postgres(ql)?://$1.*|\\2|"
}

# create NAME SCHEMA creates a database.
create() {
	for command in "create-database --defaultdb postgres" "setup-schema -v 0.0" "update-schema --schema-name postgresql/v12/$2"; do
		# shellcheck disable=SC2086 # words
		"$dir/sql" --database "$1" $command >"$work/schema.log" 2>&1 || { cat "$work/schema.log" >&2 && return 1; }
	done
}

# configure BASE writes the configuration of a server with ports from BASE on. The dynamic
# settings are those of devstack, and the features to be tested.
configure() {
	store="pluginName: postgres12, connectAddr: '$SQL_HOST:$SQL_PORT', connectProtocol: tcp, user: '$SQL_USER', password: '$SQL_PASSWORD', maxConns: 10, maxIdleConns: 10"
	cat >"$work/server.yaml" <<-END
		log: {stdout: true, level: error}
		persistence:
		  defaultStore: default
		  visibilityStore: visibility
		  numHistoryShards: 4
		  datastores:
		    default: {sql: {$store, databaseName: $database}}
		    visibility: {sql: {$store, databaseName: ${database}_visibility}}
		global: {membership: {maxJoinDuration: 30s, broadcastAddress: 127.0.0.1}}
		services:
		  frontend: {rpc: {grpcPort: $1, membershipPort: $(($1 + 1)), bindOnLocalHost: true}}
		  matching: {rpc: {grpcPort: $(($1 + 2)), membershipPort: $(($1 + 3)), bindOnLocalHost: true}}
		  history: {rpc: {grpcPort: $(($1 + 4)), membershipPort: $(($1 + 5)), bindOnLocalHost: true}}
		  worker: {rpc: {grpcPort: $(($1 + 6)), membershipPort: $(($1 + 7)), bindOnLocalHost: true}}
		clusterMetadata:
		  failoverVersionIncrement: 10
		  masterClusterName: active
		  currentClusterName: active
		  clusterInformation: {active: {enabled: true, initialFailoverVersion: 1, rpcName: frontend, rpcAddress: '127.0.0.1:$1'}}
		dcRedirectionPolicy: {policy: noop}
		publicClient: {hostPort: '127.0.0.1:$1'}
		dynamicConfigClient: {filepath: $work/dynamic.yaml, pollInterval: 1h}
	END
	cat >"$work/dynamic.yaml" <<-END
		history.timerProcessorMaxTimeShift: [{value: 50ms}]
		system.forceSearchAttributesCacheRefreshOnRead: [{value: true}]
		matching.numTaskqueueReadPartitions: [{value: 1}]
		matching.numTaskqueueWritePartitions: [{value: 1}]
		history.transferProcessorMaxPollRPS: [{value: 100}]
		matching.enableFairness: [{value: true}]
		frontend.WorkflowPauseEnabled: [{value: true}]
	END
}

# serve starts the server. If it does not start, because one of its ports is in use, serve
# tries others, below those that Linux gives to connections.
serve() {
	for attempt in 1 2 3 4 5; do
		base=$((10000 + ($$ * 8 + attempt * 4096) % 20000))
		configure $base
		"$dir/server" --config-file "$work/server.yaml" --allow-no-auth start >"$work/server.log" 2>&1 &
		server=$! seconds=0
		while kill -0 $server 2>/dev/null && [ $seconds -lt 180 ]; do
			! "$CRITICIZER_TEST_TEMPORAL_COMMAND" operator cluster health --address 127.0.0.1:$base >"$work/health.log" 2>&1 || return 0
			sleep 1
			seconds=$((seconds + 1))
		done
		kill -9 $server 2>/dev/null || true
		echo "server.sh: Temporal $version does not start (attempt $attempt):" >&2
		tail -n 5 "$work/server.log" "$work/health.log" >&2
	done
	return 1
}

finish() {
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
	for name in "$database" "${database}_visibility"; do
		"$dir/sql" --database "$name" drop-database --defaultdb postgres --force >"$work/drop.log" 2>&1 || true
	done
	rm -rf "$work"
}

run() {
	SQL_PLUGIN=postgres12 SQL_USER=$(part '([^:]*)') SQL_PASSWORD=$(part '[^:]*:([^@]*)')
	SQL_HOST=$(part '[^@]*@([^:]*)') SQL_PORT=$(part '[^@]*@[^:]*:([0-9]*)')
	export SQL_PLUGIN SQL_USER SQL_PASSWORD SQL_HOST SQL_PORT
	work=$(mktemp -d) database=temporal_$$ server=
	trap finish EXIT
	trap 'exit 130' INT TERM
	create "$database" temporal
	create "${database}_visibility" visibility
	serve
	echo "==> Temporal $version on 127.0.0.1:$base"
	CRITICIZER_TEST_TEMPORAL_ADDRESS=127.0.0.1:$base CRITICIZER_TEST_TEMPORAL_VERSION=$version "$@"
}

case $action in
build | run) "$action" "$@" ;;
*) echo "server.sh: error: unknown action $action" >&2 && exit 2 ;;
esac
