#!/bin/sh
# progress.sh LABEL COMMAND... runs COMMAND and reports every ten seconds that it is
# running: a first build takes minutes, and the go command prints nothing.
label=$1
shift
echo "==> $label" >&2
(
	seconds=0
	while sleep 1; do
		seconds=$((seconds + 1))
		[ $((seconds % 10)) -ne 0 ] || echo "    still $label (${seconds}s)" >&2
	done
) &
ticker=$!
trap 'kill $ticker 2>/dev/null' EXIT
trap 'exit 130' INT TERM
"$@"
