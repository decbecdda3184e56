#!/bin/sh
# Mutation tests: gremlins changes one operator at a time, and the tests of the package have to fail.
#
#	sh tools/mutants.sh build/bin/gremlins [PACKAGE...]
#
# Fails if fewer than 85 % of a package's covered mutants are killed, or if one survives that
# tools/mutants.txt does not list with its reason.
set -eu
cd "$(dirname "$0")/.."
gremlins=$1
shift
tab=$(printf '\t')
mkdir -p build/mutants

# The packages, and the files that are mutated.
list='internal/failure .*
p4 allowlist|enforce|pathpattern
llm transport
redaction change|pipeline|text
activities .*
workflows .*
store .*'

# run mutates the files of a package. The flag --test-cpu of gremlins 0.6 breaks the call of go test: all mutants would count as killed.
run() {
	package=$1 files=$2
	set --
	for path in "$package"/*; do
		name=${path##*/}
		if [ -d "$path" ]; then
			set -- "$@" -E "(^|/)$name/"
		elif ! echo "$name" | grep -qE "^($files)\.go$"; then
			set -- "$@" -E "(^|/)$name\$"
		fi
	done
	log=build/mutants/$(echo "$package" | tr / -).txt
	"$gremlins" unleash "./$package" --workers 2 --timeout-coefficient 6 --threshold-efficacy 85 "$@" >"$log" 2>&1 || { tail -5 "$log" >&2 && return 1; }
	grep -aE '^(Killed|Test efficacy)' "$log" | sed "s|^|$package: |"
	! grep -a ' LIVED ' "$log" | sed -E 's/.*LIVED ([A-Z_]+) at ([^:]+):([0-9]+):.*/\1 \2 \3/' | {
		status=1
		while read -r mutator file line; do
			text=$(sed -n "${line}p" "$package/$file")
			grep "^$package/$file$tab$mutator$tab" tools/mutants.txt | while IFS=$tab read -r _ _ excerpt _; do
				case $text in *"$excerpt"*) echo listed ;; esac
			done | grep -q listed || { echo "$package/$file:$line: $mutator survives: $text" >&2 && status=0; }
		done
		exit $status
	}
}

failed=0
echo "$list" >build/mutants/list
while read -r package files; do
	case " $* " in *" $package "* | "  ") run "$package" "$files" || failed=1 ;; esac
done <build/mutants/list
exit $failed
