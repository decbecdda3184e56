# Reports the tests that a run of `go test -json` skipped:
#
#	sh tools/skips.sh build/test.json
#
# With CI set, a skipped test that tools/skips.txt does not list fails the run: a test that
# silently skips proves nothing. So does a run without a test.
set -u

tests=$(grep -cE '"Action":"(pass|fail)".*"Test":' "$1")
if [ "${tests:-0}" -eq 0 ]; then
	echo "skips: error: $1 has no test results" >&2
	exit 1
fi
sed -n 's|.*"Action":"skip","Package":"github.com/criticizer/criticizer/\([^"]*\)","Test":"\([^"]*\)".*|\1 \2|p' "$1" | sort | {
	skipped=0 unlisted=0
	while read -r test; do
		skipped=$((skipped + 1))
		reason=$(grep "^$test " "$(dirname "$0")/skips.txt") || {
			unlisted=$((unlisted + 1))
			reason="$test is NOT LISTED in tools/skips.txt"
		}
		echo "SKIPPED $reason"
	done
	echo "$tests tests run, $skipped skipped, $unlisted of them not listed"
	[ "$unlisted" -eq 0 ] || [ -z "${CI:-}" ]
}
