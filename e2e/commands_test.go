package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// run runs one of the commands, with variables besides the rig's, and returns all
// that it said.
func (in *installation) run(env []string, name string, args ...string) (output string, err error) {
	cmd := exec.CommandContext(in.t.Context(), filepath.Join(binDir, name), args...)
	cmd.Env = append(slices.Clone(in.env), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// criticizer runs the operator's command, which must succeed.
func (in *installation) criticizer(args ...string) string {
	in.t.Helper()
	out, err := in.run(nil, "operator", args...)
	if err != nil {
		in.t.Fatalf("criticizer %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// refused runs the operator's command, which must fail and say so in one line
// that holds the text, with a hint.
func (in *installation) refused(text string, args ...string) {
	in.t.Helper()
	out, err := in.run(nil, "operator", args...)
	if err == nil || !strings.Contains(out, text) || !strings.Contains(out, "\nhint: ") {
		in.t.Errorf("criticizer %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// output runs one of the commands, which must succeed, and returns what it prints
// besides errors.
func (in *installation) output(name string, args ...string) string {
	in.t.Helper()
	cmd := exec.CommandContext(in.t.Context(), filepath.Join(binDir, name), args...)
	cmd.Env = in.env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		in.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, &errs)
	}
	return string(out)
}

// An answer is what starter --json prints.
type startResult struct {
	Changelist review.Changelist `json:"changelist"`
	WorkflowID string            `json:"workflow_id"`
	RunID      string            `json:"run_id"`
	Duplicate  bool              `json:"duplicate"`
	State      review.JobState   `json:"state"`
	Outcome    review.Outcome    `json:"outcome"`
	Findings   int               `json:"findings"`
}

// start runs starter change-commit with the patience of a busy machine, and
// returns what it says.
func (in *installation) start(args ...string) (startResult, error) {
	in.t.Helper()
	ctx, cancel := context.WithTimeout(in.t.Context(), testTimeout)
	defer cancel()
	starter := exec.CommandContext(ctx, filepath.Join(binDir, "starter"), append([]string{"change-commit", "--json", "--timeout=1m"}, args...)...)
	starter.Env = in.env
	var stderr bytes.Buffer
	starter.Stderr = &stderr
	out, err := starter.Output()
	if err != nil {
		return startResult{}, fmt.Errorf("starter %s: %w: %s", strings.Join(args, " "), err, &stderr)
	}
	var a startResult
	if err := json.Unmarshal(out, &a); err != nil {
		in.t.Fatalf("starter printed %q: %v", out, err)
	}
	return a, nil
}

func (in *installation) mustStart(args ...string) startResult {
	in.t.Helper()
	a, err := in.start(args...)
	if err != nil {
		in.t.Fatal(err)
	}
	return a
}
