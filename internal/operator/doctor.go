package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review/plain"
)

// A Check is one of the checks of a doctor. Run reports what it finds; an error that it
// returns is reported as a failure, with the hint of the error as the fix.
type Check struct {
	Name string
	Run  func(context.Context, *Findings) error
}

// A CheckStatus is the status of a result.
type CheckStatus string

// The statuses.
const (
	StatusOK   CheckStatus = "ok"
	StatusWarn CheckStatus = "warn" // works, but not for long or not as it should
	StatusFail CheckStatus = "fail"
)

// A CheckResult is one of the results of a check.
type CheckResult struct {
	Check  string      `json:"check"`
	Status CheckStatus `json:"status"`
	Detail string      `json:"detail"`
	Fix    string      `json:"fix,omitempty"`
}

// Findings are the results of one check.
type Findings []CheckResult

// OK reports what works.
func (f *Findings) OK(detail string, args ...any) {
	*f = append(*f, CheckResult{Status: StatusOK, Detail: fmt.Sprintf(detail, args...)})
}

// Warn reports what does not work for long, or not as it should.
func (f *Findings) Warn(fix, detail string, args ...any) {
	*f = append(*f, CheckResult{Status: StatusWarn, Detail: fmt.Sprintf(detail, args...), Fix: fix})
}

// Fail reports an error.
func (f *Findings) Fail(err error) {
	*f = append(*f, CheckResult{Status: StatusFail, Detail: err.Error(), Fix: HintOf(err)})
}

// RunChecks runs all checks in parallel, each within the timeout, and returns their results in
// the order of the checks. It abandons a check that ignores the end of its context.
func RunChecks(ctx context.Context, timeout time.Duration, all []Check) []CheckResult {
	results := make([]Findings, len(all))
	var running sync.WaitGroup
	for i, check := range all {
		running.Go(func() {
			ctx, stop := context.WithTimeout(ctx, timeout)
			defer stop()
			done := make(chan Findings, 1)
			go func() {
				var found Findings
				if err := check.Run(ctx, &found); err != nil {
					found.Fail(err)
				}
				done <- found
			}()
			select {
			case results[i] = <-done:
			case <-time.After(timeout + time.Second):
				results[i].Fail(cli.Advise(fmt.Errorf("no answer within %s", timeout), "check that the service responds, or raise --timeout"))
			}
			for n := range results[i] {
				results[i][n].Check = check.Name
			}
		})
	}
	running.Wait()
	return slices.Concat(results...)
}

// PrintResults prints results with their fixes.
func PrintResults(w io.Writer, found []CheckResult) {
	const indent = "                 "
	hanging := func(text string) string {
		return strings.ReplaceAll(strings.TrimRight(plain.Show(text), "\n"), "\n", "\n"+indent)
	}
	for _, r := range found {
		fmt.Fprintf(w, "%-5s %-10s %s\n", r.Status, r.Check, hanging(r.Detail))
		if r.Fix != "" {
			fmt.Fprintf(w, "%sfix: %s\n", indent, hanging(r.Fix))
		}
	}
}

// ErrReported ends a command that has reported its errors item by item.
var ErrReported = errors.New("some items failed")

// Failure returns [ErrReported] if a check failed.
func Failure(found []CheckResult) error {
	if slices.ContainsFunc(found, func(r CheckResult) bool { return r.Status == StatusFail }) {
		return ErrReported
	}
	return nil
}

// HintOf returns the hint of err itself, or else the hint of its class.
func HintOf(err error) string {
	hint := cli.HintOf(err)
	if class := failure.ClassOf(err); hint == "" && class != failure.Unknown {
		hint, _, _ = strings.Cut(class.Describe().Hint, ", then replay") // which is for dead letters only
	}
	return hint
}

// Report prints err, unless it is [ErrReported], and its hint, and returns the exit status.
func Report(stderr io.Writer, program string, err error) int {
	if errors.Is(err, ErrReported) {
		return 1
	}
	if hint := HintOf(err); err != nil && hint != "" {
		err = cli.Advise(err, hint)
	}
	return cli.Report(stderr, program, err)
}
