package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// Exit statuses of the commands.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// A result is what a command printed and its exit status.
type result struct {
	stdout, stderr string
	status         int
}

// hasError reports whether the command failed with the status and printed an error
// with a hint.
func (r result) hasError(program string, status int) bool {
	return r.status == status && strings.HasPrefix(r.stderr, program+": error: ") && strings.Contains(r.stderr, "\nhint: ")
}

// decode reads the JSON that a command printed.
func (in *installation) decode(r result, v any) {
	in.t.Helper()
	if err := json.Unmarshal([]byte(r.stdout), v); err != nil {
		in.t.Fatalf("decode %q: %v\n%s", r.stdout, err, r.stderr)
	}
}

// execute runs one of the commands with additional environment variables.
func (in *installation) execute(env []string, name string, args ...string) result {
	in.t.Helper()
	ctx, cancel := context.WithTimeout(in.t.Context(), testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(in.bin, name), args...)
	cmd.Env = append(slices.Clone(in.env), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		in.t.Fatalf("%s %q: %v", name, args, err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// output runs one of the commands, which must succeed, and returns its standard output.
func (in *installation) output(name string, args ...string) string {
	in.t.Helper()
	r := in.execute(nil, name, args...)
	if r.status != exitOK {
		in.t.Fatalf("%s %q: status %d: %s", name, args, r.status, r.stderr)
	}
	return r.stdout
}

// criticizer runs the operator's command, which must succeed.
func (in *installation) criticizer(args ...string) string {
	in.t.Helper()
	return in.output("criticizer", args...)
}

// criticizerJSON runs the operator's command and decodes its JSON.
func (in *installation) criticizerJSON(v any, args ...string) {
	in.t.Helper()
	if err := json.Unmarshal([]byte(in.criticizer(append(args, "--json")...)), v); err != nil {
		in.t.Fatalf("criticizer %q: %v", args, err)
	}
}

// A startResult is what starter --json prints.
type startResult struct {
	Changelist review.Changelist `json:"changelist"`
	WorkflowID string            `json:"workflow_id"`
	RunID      string            `json:"run_id"`
	Duplicate  bool              `json:"duplicate"`
	Spooled    bool              `json:"spooled"`
	State      review.JobState   `json:"state"`
	Outcome    review.Outcome    `json:"outcome"`
	Findings   int               `json:"findings"`
}

// start runs starter change-commit with a timeout for a busy machine.
func (in *installation) start(args ...string) (started startResult, err error) {
	in.t.Helper()
	r := in.execute(nil, "starter", append([]string{"change-commit", "--json", "--timeout=1m"}, args...)...)
	if r.status != exitOK {
		return startResult{}, fmt.Errorf("starter %q: status %d: %s", args, r.status, r.stderr)
	}
	in.decode(r, &started)
	return started, nil
}

func (in *installation) mustStart(args ...string) startResult {
	in.t.Helper()
	started, err := in.start(args...)
	if err != nil {
		in.t.Fatal(err)
	}
	return started
}
