# Reports the tests that a run of `go test -json` skipped:
#
#	sh tools/skips.sh build/test.json
#
# With CI set, a skipped test that tools/skips.txt does not list fails the run: a test that
# silently skips proves nothing. So does a run without a test.
set -u

file=$1
tests=$(grep -cE '"Action":"(pass|fail)".*"Test":' "$1")
if [ "${tests:-0}" -eq 0 ]; then
	echo "skips: error: $1 has no test results" >&2
	exit 1
fi

# message PACKAGE TEST prints what the skipped test says, which is how to get what it lacks.
message() {
	grep -F "\"Package\":\"github.com/criticizer/criticizer/$1\",\"Test\":\"$2\",\"Output\":" "$file" |
		sed -n 's/.*_test\.go:[0-9]*: \(.*\)\\n"}$/\1/p' | tail -1
}

sed -n 's|.*"Action":"skip","Package":"github.com/criticizer/criticizer/\([^"]*\)","Test":"\([^"]*\)".*|\1 \2|p' "$1" | sort | {
	skipped=0 unlisted=0
	while read -r test; do
		skipped=$((skipped + 1))
		reason=$(grep "^$test " "$(dirname "$0")/skips.txt") || {
			unlisted=$((unlisted + 1))
			reason="$test: $(message "${test%% *}" "${test#* }")"
		}
		echo "SKIPPED $reason"
	done
	echo "$tests tests run, $skipped skipped, $unlisted of them not listed"
	[ "$unlisted" -eq 0 ] || [ -z "${CI:-}" ]
}
