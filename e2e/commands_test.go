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
func (r *rig) run(env []string, name string, args ...string) (said string, err error) {
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(bin, name), args...)
	cmd.Env = append(slices.Clone(r.env), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// criticizer runs the operator's command, which must succeed.
func (r *rig) criticizer(args ...string) string {
	r.t.Helper()
	out, err := r.run(nil, "operator", args...)
	if err != nil {
		r.t.Fatalf("criticizer %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// refused runs the operator's command, which must fail and say so in one line
// that holds the text, with a hint.
func (r *rig) refused(text string, args ...string) {
	r.t.Helper()
	out, err := r.run(nil, "operator", args...)
	if err == nil || !strings.Contains(out, text) || !strings.Contains(out, "\nhint: ") {
		r.t.Errorf("criticizer %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// output runs one of the commands, which must succeed, and returns what it prints
// besides errors.
func (r *rig) output(name string, args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(bin, name), args...)
	cmd.Env = r.env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, &errs)
	}
	return string(out)
}

// An answer is what starter --json prints.
type answer struct {
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
func (r *rig) start(args ...string) (answer, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	starter := exec.CommandContext(ctx, filepath.Join(bin, "starter"), append([]string{"change-commit", "--json", "--timeout=1m"}, args...)...)
	starter.Env = r.env
	var stderr bytes.Buffer
	starter.Stderr = &stderr
	out, err := starter.Output()
	if err != nil {
		return answer{}, fmt.Errorf("starter %s: %w: %s", strings.Join(args, " "), err, &stderr)
	}
	var a answer
	if err := json.Unmarshal(out, &a); err != nil {
		r.t.Fatalf("starter printed %q: %v", out, err)
	}
	return a, nil
}

func (r *rig) mustStart(args ...string) answer {
	r.t.Helper()
	a, err := r.start(args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}
