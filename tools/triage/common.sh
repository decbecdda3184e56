# shellcheck shell=sh
# common.sh has the functions that the scripts in this directory share.
#
# Exit codes of all scripts: 0 done, 1 failed, 2 wrong usage, 3 nothing to do
# because the review is not dead-lettered.
#
# A failed run stays in Temporal's list of failed runs until the end of its
# retention, also after a replay has succeeded. Therefore no script relies on that
# list: a review is dead-lettered if its *current* run failed with a dead letter.

me=$0
dir=$(dirname "$0")
tab=$(printf '\t')

# The error classes; the same as in docs/runbook.md.
classes='NETWORK_TIMEOUT NETWORK_UNREACHABLE UPSTREAM_UNAVAILABLE DATABASE_UNAVAILABLE REPLICA_BEHIND
ATTEMPT_TIMEOUT WORKER_STOPPED RATE_LIMITED SERVER_BUSY UPSTREAM_INTERNAL WRITE_CONFLICT DELIVERY_AMBIGUOUS
SCHEMA_INVALID INPUT_INVALID TOO_LARGE PROMPT_TRUNCATED ENDPOINT_REFUSED AUTH_DENIED PERMISSION_DENIED ARTIFACT_FOREIGN QUOTA_EXHAUSTED NOT_FOUND
ARTIFACT_EXPIRED CONTENT_POLICY PATH_NOT_ALLOWED REDACTION_BLOCKED REDACTION_OUTDATED RECIPIENT_REJECTED
ADAPTER_UNSUPPORTED CONFIG_INVALID ARTIFACT_UNREADABLE INVARIANT_VIOLATED UNKNOWN'
stages='fetch llm notify'

# ---- Messages

# print_error MESSAGE [HINT]
print_error() {
    printf '%s: error: %s\n' "$me" "$1" >&2
    [ -z "${2-}" ] || printf 'hint: %s\n' "$2" >&2
}

fail() {
    print_error "$@"
    exit 1
}

usage_error() {
    print_error "$1" "${2:-see $me -h}"
    exit 2
}

# ---- Arguments

check_class() {
    one_of "$1" "$classes" || usage_error "there is no error class '$1'" "criticizer help runbook.md lists the classes, such as AUTH_DENIED"
}

check_stage() {
    one_of "$1" "$stages" || usage_error "there is no stage '$1'" "the stages are: $stages"
}

check_number() {
    case $1 in
    '' | 0* | *[!0-9]* | ??????????*) usage_error "'$1' is not a number above 0" ;;
    esac
}

check_reason() {
    case $1 in
    *[![:space:]]*) ;;
    *) usage_error "no reason is given" "name with -r what was done about the cause, such as -r 'INC-42: key renewed'" ;;
    esac
}

# one_of WORD WORDS
one_of() {
    for word in $2; do
        [ "$1" != "$word" ] || return 0
    done
    return 1
}

# confirm QUESTION asks for confirmation, unless -y was given.
confirm() {
    [ -z "$yes" ] || return 0
    [ -t 0 ] || usage_error "there is no terminal for the confirmation" "confirm with -y, or use -n for a dry run"
    printf '%s [y/N] ' "$1" >&2
    read -r answer || answer=
    case $answer in
    y | Y | yes) ;;
    *) fail "not confirmed, nothing was changed" ;;
    esac
}

# ---- The command line of Temporal
#
# One function per command. Both clients read their own environment. tctl also
# gets the values of TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE.

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

# run_cli ARGUMENTS... runs the client.
run_cli() {
    "$cli" "$@" >"$scratch/answer" 2>"$scratch/errors" </dev/null || return 1
    cat "$scratch/answer"
}

# last_error prints in one line why the last call failed.
last_error() {
    awk '
        function rest(start, text) {
            text = substr($0, start)
            sub(/"(}|, "logging-call-at.*)?$/, "", text)
            gsub(/\\"/, "\"", text)
            return text
        }
        /^DEPRECATION NOTICE/ || !NF || /SHOW_STACKS/ { next }
        /^Error: / { message = rest(8); next }
        /^Error Details: / { message = rest(16); next }
        match($0, /(msg=|"error": )"/) { message = rest(RSTART + RLENGTH); next }
        { last = $0 }
        END { print message == "" ? last : message }' "$scratch/answer" "$scratch/errors"
}

# error_hint prints the hint for the last error.
error_hint() {
    case $(last_error) in
    *'not found for ID'*) echo "$dir/list prints the ids of dead-lettered reviews; Temporal deletes runs after the retention" ;;
    *) echo "check the address: TEMPORAL_ADDRESS is '${TEMPORAL_ADDRESS-}', TEMPORAL_NAMESPACE is '${TEMPORAL_NAMESPACE-}'" ;;
    esac
}

fail_unanswered() { fail "Temporal did not answer: $(last_error)" "$(error_hint)"; }

cli_failed_runs() { # QUERY LIMIT: one JSON object per line
    case $dialect in
    temporal) run_cli workflow list --query "$1" --limit "$2" --output jsonl ;;
    tctl) run_cli workflow list --query "$1" --pagesize "$2" --print_json ;;
    esac
}

cli_describe() { # WORKFLOW_ID: its current run
    case $dialect in
    temporal) run_cli workflow describe --workflow-id "$1" --output json ;;
    tctl) run_cli workflow describe --workflow_id "$1" ;;
    esac
}

cli_reset() { # WORKFLOW_ID RUN_ID TYPE REASON
    case $dialect in
    temporal) run_cli workflow reset --workflow-id "$1" --run-id "$2" --type "$3" --reason "$4" --output json ;;
    tctl) run_cli workflow reset --workflow_id "$1" --run_id "$2" --reset_type "$3" --reason "$4" ;;
    esac
}

# cli_letter WORKFLOW_ID RUN_ID prints the dead letter as JSON, for tctl, whose
# describe does not have it. It is the last payload of the history.
cli_letter() {
    run_cli workflow show --workflow_id "$1" --run_id "$2" --output_filename "$scratch/history" >/dev/null || return 1
    flatten <"$scratch/history" | awk -F "$tab" '
        $1 ~ /workflowExecutionFailedEventAttributes.failure.applicationFailureInfo.details.payloads.0.data$/ { print $2 }' | base64 -d
}

# ---- Facts about a review

here=$(dirname "$0")

# flatten turns JSON into lines "path TAB value".
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
        # Only tctl decodes these.
        $1 == "workflowExecutionInfo.searchAttributes.indexedFields.CriticizerErrorClass" && $2 != "" { put("error_class") }
        $1 == "workflowExecutionInfo.searchAttributes.indexedFields.CriticizerStage" { put("stage") }
        $1 == "workflowExecutionInfo.searchAttributes.indexedFields.CriticizerOutcome" { put("outcome") }')
}

# describe_letter WORKFLOW_ID adds the dead letter for tctl.
describe_letter() {
    [ "$dialect" = tctl ] || return 0
    letter=$(cli_letter "$1" "$(fact run)") || return 1
    facts=$(printf '%s\n' "$facts" && printf '%s\n' "$letter" | flatten)
}

# fact NAME prints the value of one of $facts, if there is one.
fact() {
    printf '%s\n' "$facts" | awk -F "$tab" -v name="$1" '$1 == name { print substr($0, length(name) + 2); exit }'
}

# is_dead reports whether the described review is dead-lettered.
is_dead() { [ "$(fact status)" = FAILED ] && [ -n "$(fact error_class)" ]; }

# state prints the state of the described review.
state() {
    case $(fact status) in
    FAILED)
        if is_dead; then echo "dead-lettered: $(fact error_class)"; else echo "failed without a dead letter: the request was invalid"; fi
        ;;
    COMPLETED)
        if [ "$(fact superseded)" = true ] || [ "$(fact outcome)" = superseded ]; then
            echo "done: superseded by an earlier success"
        else
            echo "done: $(fact outcome)"
        fi
        ;;
    RUNNING) echo "running: $(fact activity)" ;;
    *) fact status | tr '[:upper:]' '[:lower:]' ;;
    esac
}

# find_dead CLASS STAGE LIMIT puts lines "id TAB run TAB stage TAB class TAB
# attempts TAB since" into $found, and the number of the other reviews with failed
# runs into $repaired. CLASS and STAGE may be empty. LIMIT is the number of runs.
find_dead() {
    query='WorkflowType="ReviewChangelist" AND ExecutionStatus="Failed" AND CriticizerErrorClass IS NOT NULL'
    [ -z "$1" ] || query="$query AND CriticizerErrorClass=\"$1\""
    [ -z "$2" ] || query="$query AND CriticizerStage=\"$2\""
    runs=$(cli_failed_runs "$query" "$3") || fail_unanswered
    runs=$(printf '%s\n' "$runs" | flatten 1 | awk -F "$tab" '$1 ~ /^[0-9]+\.execution\.workflowId$/ { print $2 }')
    [ "$(printf '%s' "$runs" | grep -c '')" -lt "$3" ] ||
        printf '%s: only the newest %s failed runs were read: -l reads more\n' "$me" "$3" >&2
    found='' repaired=0
    while IFS= read -r id; do
        [ -n "$id" ] || continue
        describe "$id" || fail_unanswered
        if is_dead && matches "$1" "$2"; then
            found="$found$id$tab$(fact run)$tab$(fact stage)$tab$(fact error_class)$tab$(fact attempts)$tab$(fact closed)
"
        else
            repaired=$((repaired + 1))
        fi
    done <<END
$(printf '%s\n' "$runs" | awk '!seen[$0]++')
END
}

# matches CLASS STAGE reports whether the current run has the class and stage: it
# may have failed for another reason than the listed run.
matches() {
    { [ -z "$1" ] || [ "$1" = "$(fact error_class)" ]; } && { [ -z "$2" ] || [ "$2" = "$(fact stage)" ]; }
}

# ---- Replaying

# replay_now WORKFLOW_ID TYPE REASON resets the current run if it is dead-lettered
# and puts the id of the new run into $new_run. It returns 3 if the review is not
# dead-lettered and 1 if the reset fails.
replay_now() {
    describe "$1" || return 1
    is_dead || return 3
    answered=$(cli_reset "$1" "$(fact run)" "$2" "$3") || return 1
    # shellcheck disable=SC2034 # for the script that sources this
    new_run=$(printf '%s\n' "$answered" | flatten | awk -F "$tab" '$1 == "runId" { print $2 }')
}
