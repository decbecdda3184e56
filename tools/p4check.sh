#!/bin/sh
# p4check.sh compares a Perforce server with what Criticizer assumes of one. It
# only reads, and prints no content of a file. docs/perforce.md explains the lines.
#
# Usage: P4PORT=ssl:perforce:1666 P4USER=criticizer tools/p4check.sh //depot/project/...
#
# Run it as the account that reads changes, with one or more allowed paths. Each line
# begins with "ok", "differs" (Criticizer assumes something else), "note" (a fact that
# decides how Criticizer works) or "unseen" (this server has nothing to try it on).
# The exit status is 1 if something differs, 2 for wrong usage.
set -u
LC_ALL=C
export LC_ALL

if [ $# -eq 0 ]; then
	sed -n 's/^# Usage: /usage: /p' "$0" >&2
	exit 2
fi
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
status=0

say() { # say VERDICT TEXT
	printf '%-8s %s\n' "$1" "$2"
	[ "$1" != differs ] || status=1
}

# ask runs p4 with tagged output. Its output is $work/out, its messages are $work/err.
ask() {
	p4 -ztag "$@" >"$work/out" 2>"$work/err" </dev/null
}

# field prints the first value of a field of the output.
field() { sed -n "s/^\.\.\. $1 //p" "$work/out" | head -n 1; }

# first prints the first line of the messages.
first() { head -n 1 "$work/err"; }

# want says ok if two values are equal.
want() { # want WHAT EXPECTED GOT
	if [ "$2" = "$3" ]; then say ok "$1: $2"; else say differs "$1: expected '$2', got '$3'"; fi
}

digest_of() {
	{ md5sum <"$1" 2>/dev/null || openssl md5 -r <"$1"; } | cut -c 1-32 | tr '[:lower:]' '[:upper:]'
}

check_info() {
	if ! ask info -s; then
		say differs "info -s: $(first)"
		exit 1
	fi
	say note "server: $(field serverVersion), server id '$(field ServerID)'"
	case $(field caseHandling) in
	sensitive | insensitive) say ok "case handling: $(field caseHandling)" ;;
	'') say differs 'case handling: info hides it (dm.info.hide), so that a path must be allowed with and without case' ;;
	*) say differs "case handling: '$(field caseHandling)' is unknown to Criticizer: a path must be allowed with and without case" ;;
	esac
	case $(field serverServices) in
	standard | commit-server) say ok "services: $(field serverServices): nothing lags" ;;
	'') say differs 'services: info does not report them, so that the server counts as a replica' ;;
	*) say note "services: $(field serverServices): what lags is tried for four minutes" ;;
	esac
	[ -z "$(field brokerVersion)" ] || say note "a broker is in between: $(field brokerVersion)"
	[ -z "$(field proxyVersion)" ] || say note "a proxy is in between: $(field proxyVersion)"
	unicode=$(field unicode)
	say note "unicode mode: ${unicode:-no}"
}

check_account() {
	if ask login -s; then
		left=$(field TicketExpiration)
		say ok "login -s: the ticket expires in ${left:-an unlimited number of} seconds"
	else
		say differs "login -s: $(first)"
	fi
	for try in "users ${P4USER:-nobody}" "protects" "jobs -e Job=none" "reviews -c ${newest:-1}"; do
		# shellcheck disable=SC2086 # the words are constants, a user and a number
		if ask $try; then say ok "p4 $try is permitted"; else say differs "p4 $try: $(first)"; fi
	done
}

check_messages() {
	if ask describe 2147483647; then status_of=0; else status_of=1; fi
	want 'an unknown changelist' 'Change 2147483647 unknown. (1)' "$(first) ($status_of)"
	if p4 print -q "$1" >"$work/out" 2>"$work/err"; then status_of=0; else status_of=1; fi
	want 'an unknown file' "$1 - no such file(s). (0)" "$(first) ($status_of)"
	[ ! -s "$work/out" ] || say differs 'an unknown file: print has output'
	case $(p4 -G info -s | head -c 1) in
	'{') say ok 'p4 -G prints marshalled records' ;;
	*) say differs 'p4 -G does not print marshalled records' ;;
	esac
}

# check_changes compares the fields of describe, and tries the search of the catch-up.
check_changes() {
	ask changes -s submitted -m 1 "$1"
	change=$(field change)
	if [ -z "$change" ]; then
		say differs "$1: no submitted changelist: $(first)"
		return
	fi
	ask describe "$change"
	for name in change user client time status changeType depotFile0 action0 type0 rev0; do
		[ -n "$(field $name)" ] || say differs "describe $change: field $name is missing"
	done
	want "describe $change: status" submitted "$(field status)"
	[ -n "$(field path)" ] || say differs "describe $change: field path is missing: files that the account may not see are not noticed"
	case $(field action0) in
	*delete | purge | archive) ;;
	*) [ -n "$(field digest0)" ] || say note "describe $change: $(field depotFile0) of type $(field type0) has no digest" ;;
	esac
	from=$((newest > 1000 ? newest - 999 : 1))
	if ask changes -s submitted "$1@$from,@$newest"; then
		say ok "$1: a search of 1000 changelists is within the limits"
	else
		say differs "$1: a search of 1000 changelists: $(first)"
	fi
}

# check_files compares printed contents with the server's digests.
check_files() {
	if ! ask files -e -m 20 "$1" || [ ! -s "$work/out" ]; then
		say differs "$1: no file can be listed: $(first)"
		return
	fi
	awk '/^\.\.\. depotFile /{f=substr($0,15)} /^\.\.\. rev /{print f "#" $3}' "$work/out" >"$work/specs"
	while IFS= read -r spec; do
		ask filelog -m 1 "$spec"
		type=$(field type0) digest=$(field digest0)
		if ! p4 print -q "$spec" >"$work/content" 2>"$work/err" || [ -s "$work/err" ]; then
			say differs "$spec ($type): print: $(first)"
			continue
		fi
		printed=$(digest_of "$work/content")
		case $type:$digest in
		*:) say note "$spec ($type): the server has no digest" ;;
		*:"$printed") say ok "$spec ($type): the digest is that of the printed bytes" ;;
		*+*k*:*) say note "$spec ($type): the digest is not that of the printed bytes: keywords" ;;
		text*) say differs "$spec ($type): the digest is not that of the printed bytes: run p4 verify" ;;
		*) say note "$spec ($type): the digest is not that of the printed bytes" ;;
		esac
	done <"$work/specs"
	two=$(head -n 1 "$work/specs")
	printf '%s\n%s\n' "${two%#*}.no-such-file#1" "$two" | p4 -ztag -x - print >"$work/out" 2>"$work/err"
	want 'print goes on after a file that does not exist' "${two%#*}" "$(field depotFile)"
}

# check_shelf shows whether describe -S reports when a shelf was made.
check_shelf() {
	ask changes -s shelved -m 1
	shelf=$(field change)
	if [ -z "$shelf" ]; then
		say unseen 'no shelf: whether describe -S reports the time of the last shelve'
		return
	fi
	ask describe -S "$shelf"
	seconds=$(field time)
	ask change -o "$shelf"
	say note "shelf $shelf: describe -S reports the time $seconds, change -o reports shelveUpdate '$(field shelveUpdate)': Criticizer assumes that they are the same"
}

check_info
ask changes -s submitted -m 1
newest=$(field change)
newest=${newest:-1}
check_account
check_messages "${1%/...}/p4check-no-such-file"
for tree; do
	check_changes "$tree"
	check_files "$tree"
done
check_shelf
exit $status
