# Runs every fuzz target of the module, two at once: sh tools/fuzz.sh 20s
set -eu
cd "$(dirname "$0")/.."
time=$1
targets=$(grep -rEo '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' --exclude-dir=build . |
	sed -E 's|/[^/]+:func | |' | sort)
[ -n "$targets" ] || { echo "tools/fuzz.sh: error: no fuzz target was found" >&2; exit 1; }
# shellcheck disable=SC2016 # the inner shell expands its arguments
echo "$targets" | xargs -P 2 -n 2 sh -c '
	if output=$(go test "$1" -run "^$" -fuzz "^$2\$" -fuzztime "$0" -parallel 1 2>&1); then
		echo "ok	$1	$2	$(echo "$output" | sed -n "s/.*execs: \([0-9]*\).*/\1 inputs/p" | tail -1)"
	else
		echo "$output"
		echo "FAIL	$1	$2"
		exit 1
	fi' "$time"
