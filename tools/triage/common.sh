# shellcheck shell=sh
# common.sh is what the scripts beside it share; they source it.
#
# Exit codes of all scripts: 0 done, 1 failed, 2 wrong usage, 3 nothing to do
# because what was asked for is not dead (any more).
#
# A run that failed stays in Temporal's list of failed runs for ever, also when
# a replay has long repaired the review. So no script trusts that list: a review
# is dead if its *current* run is a failed one with a dead letter.

me=tools/triage/${0##*/}
tab=$(printf '\t')

# The error classes; the same as in docs/failures.md.
classes='NETWORK_TIMEOUT NETWORK_UNREACHABLE UPSTREAM_UNAVAILABLE DATABASE_UNAVAILABLE REPLICA_BEHIND
ATTEMPT_TIMEOUT WORKER_STOPPED RATE_LIMITED SERVER_BUSY UPSTREAM_INTERNAL WRITE_CONFLICT DELIVERY_AMBIGUOUS
SCHEMA_INVALID INPUT_INVALID TOO_LARGE AUTH_DENIED PERMISSION_DENIED QUOTA_EXHAUSTED NOT_FOUND
ARTIFACT_EXPIRED CONTENT_POLICY PATH_NOT_ALLOWED REDACTION_BLOCKED RECIPIENT_REJECTED
ADAPTER_UNSUPPORTED CONFIG_INVALID INVARIANT_VIOLATED UNKNOWN'
stages='fetch llm notify'

# ---- Messages

# complain MESSAGE [HINT]
complain() {
    printf '%s: error: %s\n' "$me" "$1" >&2
    [ -z "${2-}" ] || printf 'hint: %s\n' "$2" >&2
}

fail() {
    complain "$@"
    exit 1
}

misused() {
    complain "$1" "${2:-$me -h explains}"
    exit 2
}

# ---- Arguments

check_class() {
    one_of "$1" "$classes" || misused "there is no error class '$1'" "docs/failures.md lists them, such as AUTH_DENIED"
}

check_stage() {
    one_of "$1" "$stages" || misused "there is no stage '$1'" "the stages are: $stages"
}

check_number() {
    case $1 in
    '' | 0* | *[!0-9]* | ??????????*) misused "'$1' is not a number above 0" ;;
    esac
}

check_reason() {
    case $1 in
    *[![:space:]]*) ;;
    *) misused "no reason is given" "say with -r what was done about the cause, such as -r 'INC-42: key renewed'" ;;
    esac
}

# one_of WORD WORDS
one_of() {
    for word in $2; do
        [ "$1" != "$word" ] || return 0
    done
    return 1
}

# confirm QUESTION: asks, unless -y was given.
confirm() {
    [ -z "$yes" ] || return 0
    [ -t 0 ] || misused "there is no terminal to ask on" "give -y to go ahead, or -n to only look"
    printf '%s [y/N] ' "$1" >&2
    read -r answer || answer=
    case $answer in
    y | Y | yes) ;;
    *) fail "not confirmed, nothing was changed" ;;
    esac
}

# ---- The command line of Temporal
#
# One function per command. Both clients read their own environment; tctl is
# also given what TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE say.

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

cli=${CRITICIZER_TRIAGE_COMMAND:-$(command -v temporal || command -v tctl || true)}
[ -n "$cli" ] || fail "neither temporal nor tctl is installed" "install the temporal command, or name it in CRITICIZER_TRIAGE_COMMAND"
command -v "$cli" >/dev/null || fail "there is no command $cli" "correct CRITICIZER_TRIAGE_COMMAND"
case ${cli##*/} in
tctl*)
    dialect=tctl
    export TEMPORAL_CLI_ADDRESS="${TEMPORAL_CLI_ADDRESS:-${TEMPORAL_ADDRESS:-127.0.0.1:7233}}"
    export TEMPORAL_CLI_NAMESPACE="${TEMPORAL_CLI_NAMESPACE:-${TEMPORAL_NAMESPACE:-default}}"
    ;;
*) dialect=temporal ;;
esac

# ask ARGUMENTS... runs the client.
ask() {
    "$cli" "$@" >"$scratch/answer" 2>"$scratch/errors" </dev/null || return 1
    cat "$scratch/answer"
}

# problem says in one line why the last call failed.
problem() {
    awk '
        function says(start, text) {
            text = substr($0, start)
            sub(/"(}|, "logging-call-at.*)?$/, "", text)
            gsub(/\\"/, "\"", text)
            return text
        }
        /^DEPRECATION NOTICE/ || !NF || /SHOW_STACKS/ { next }
        /^Error: / { said = says(8); next }
        /^Error Details: / { said = says(16); next }
        match($0, /(msg=|"error": )"/) { said = says(RSTART + RLENGTH); next }
        { last = $0 }
        END { print said == "" ? last : said }' "$scratch/answer" "$scratch/errors"
}

# explain is the hint that goes with the problem.
explain() {
    case $(problem) in
    *'not found for ID'*) echo "tools/triage/list shows the ids of what is dead; Temporal forgets runs after its retention" ;;
    *) echo "check where ${cli##*/} looks: TEMPORAL_ADDRESS is '${TEMPORAL_ADDRESS-}', TEMPORAL_NAMESPACE is '${TEMPORAL_NAMESPACE-}'" ;;
    esac
}

unanswered() { fail "Temporal did not answer: $(problem)" "$(explain)"; }

cli_failed_runs() { # QUERY LIMIT: one JSON object per line
    case $dialect in
    temporal) ask workflow list --query "$1" --limit "$2" --output jsonl ;;
    tctl) ask workflow list --query "$1" --pagesize "$2" --print_json ;;
    esac
}

cli_describe() { # WORKFLOW_ID: its current run
    case $dialect in
    temporal) ask workflow describe --workflow-id "$1" --output json ;;
    tctl) ask workflow describe --workflow_id "$1" ;;
    esac
}

cli_reset() { # WORKFLOW_ID RUN_ID TYPE REASON
    case $dialect in
    temporal) ask workflow reset --workflow-id "$1" --run-id "$2" --type "$3" --reason "$4" --output json ;;
    tctl) ask workflow reset --workflow_id "$1" --run_id "$2" --reset_type "$3" --reason "$4" ;;
    esac
}

# cli_letter WORKFLOW_ID RUN_ID: the dead letter as JSON, for tctl, which does
# not describe it. The last payload of the history is the letter.
cli_letter() {
    ask workflow show --workflow_id "$1" --run_id "$2" --output_filename "$scratch/history" >/dev/null || return 1
    flatten <"$scratch/history" | awk -F "$tab" '
        $1 ~ /workflowExecutionFailedEventAttributes.failure.applicationFailureInfo.details.payloads.0.data$/ { print $2 }' | base64 -d
}

# ---- What is known about a review

here=$(dirname "$0")

# flatten makes lines "path TAB value" of JSON.
flatten() { awk -v lines="${1:-0}" -f "$here/flatten.awk"; }

# describe WORKFLOW_ID puts lines "name TAB value" about the current run into $facts.
describe() {
    described=$(cli_describe "$1") || return 1
    facts=$(printf '%s\n' "$described" | flatten | awk -F "$tab" '
        function put(name) { print name "\t" substr($0, length($1) + 2) }
        BEGIN { letter = "closeEvent.workflowExecutionFailedEventAttributes.failure.applicationFailureInfo.details.0." }
        index($1, letter) == 1 { put(substr($1, length(letter) + 1)) }
        $1 == "workflowExecutionInfo.execution.runId" { put("run") }
        $1 == "workflowExecutionInfo.closeTime" { put("closed") }
        $1 == "workflowExecutionInfo.status" {
            sub(/^WORKFLOW_EXECUTION_STATUS_/, "", $2)
            print "status\t" toupper($2)
        }
        $1 == "result.job.outcome" { put("outcome") }
        $1 == "result.duplicate" { put("superseded") }
        $1 == "pendingActivities.0.activityType.name" { put("activity") }
        $1 == "pendingActivities.0.attempt" { put("attempt") }
        $1 == "pendingActivities.0.lastFailure.message" { put("last_failure") }
        # What only tctl decodes.
        $1 == "workflowExecutionInfo.searchAttributes.indexedFields.CriticizerErrorClass" && $2 != "" { put("error_class") }
        $1 == "workflowExecutionInfo.searchAttributes.indexedFields.CriticizerStage" { put("stage") }
        $1 == "workflowExecutionInfo.searchAttributes.indexedFields.CriticizerOutcome" { put("outcome") }')
}

# describe_letter WORKFLOW_ID adds the dead letter where describe does not see it.
describe_letter() {
    [ "$dialect" = tctl ] || return 0
    letter=$(cli_letter "$1" "$(fact run)") || return 1
    facts=$(printf '%s\n' "$facts" && printf '%s\n' "$letter" | flatten)
}

# fact NAME prints the value of one of $facts, nothing if there is none.
fact() {
    printf '%s\n' "$facts" | awk -F "$tab" -v name="$1" '$1 == name { print substr($0, length(name) + 2); exit }'
}

# dead: is the described review dead?
dead() { [ "$(fact status)" = FAILED ] && [ -n "$(fact error_class)" ]; }

# state says in words how the described review is.
state() {
    case $(fact status) in
    FAILED)
        if dead; then echo "dead: $(fact error_class)"; else echo "failed, but not dead-lettered: it was refused"; fi
        ;;
    COMPLETED)
        if [ "$(fact superseded)" = true ] || [ "$(fact outcome)" = superseded ]; then
            echo "done: superseded, it had been finished before"
        else
            echo "done: $(fact outcome)"
        fi
        ;;
    RUNNING) echo "running: $(fact activity)" ;;
    *) fact status | tr '[:upper:]' '[:lower:]' ;;
    esac
}

# find_dead CLASS STAGE LIMIT puts lines "id TAB run TAB stage TAB class TAB
# attempts TAB since" into $found, and the number of reviews whose failed runs
# are history into $repaired. CLASS and STAGE may be empty. LIMIT is of runs.
find_dead() {
    query='WorkflowType="ReviewChangelist" AND ExecutionStatus="Failed" AND CriticizerErrorClass IS NOT NULL'
    [ -z "$1" ] || query="$query AND CriticizerErrorClass=\"$1\""
    [ -z "$2" ] || query="$query AND CriticizerStage=\"$2\""
    runs=$(cli_failed_runs "$query" "$3") || unanswered
    runs=$(printf '%s\n' "$runs" | flatten 1 | awk -F "$tab" '$1 ~ /^[0-9]+\.execution\.workflowId$/ { print $2 }')
    [ "$(printf '%s' "$runs" | grep -c '')" -lt "$3" ] ||
        printf '%s: only the newest %s failed runs were looked at: -l looks at more\n' "$me" "$3" >&2
    found='' repaired=0
    while IFS= read -r id; do
        [ -n "$id" ] || continue
        describe "$id" || unanswered
        if dead && matches "$1" "$2"; then
            found="$found$id$tab$(fact run)$tab$(fact stage)$tab$(fact error_class)$tab$(fact attempts)$tab$(fact closed)
"
        else
            repaired=$((repaired + 1))
        fi
    done <<END
$(printf '%s\n' "$runs" | awk '!seen[$0]++')
END
}

# matches CLASS STAGE: the current run may have died of something else than the
# run that was listed.
matches() {
    { [ -z "$1" ] || [ "$1" = "$(fact error_class)" ]; } && { [ -z "$2" ] || [ "$2" = "$(fact stage)" ]; }
}

# ---- Replaying

# replay_now WORKFLOW_ID TYPE REASON resets the current run if it is dead and
# puts the new run's id into $new_run. It returns 3 if the review is not dead
# and 1 if Temporal refuses.
replay_now() {
    describe "$1" || return 1
    dead || return 3
    answered=$(cli_reset "$1" "$(fact run)" "$2" "$3") || return 1
    # shellcheck disable=SC2034 # for the script that sources this
    new_run=$(printf '%s\n' "$answered" | flatten | awk -F "$tab" '$1 == "runId" { print $2 }')
}
