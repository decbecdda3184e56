package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/cli/manual"
)

// say runs a worker that gets no further than its command line.
func say(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs strings.Builder
	err = run(t.Context(), args, func(string) string { return "" }, &out, &errs)
	return out.String(), errs.String(), err
}

func TestHelpHasItsSectionsAndIsTrue(t *testing.T) {
	t.Parallel()
	page, err := manual.Parse(usage)
	if err != nil || page.Lacks() != nil {
		t.Fatalf("the usage lacks %q: the comment of package manual has the form; %v", page.Lacks(), err)
	}
	if out, errs, err := say(t, "-h"); out != usage || errs != "" || err != nil {
		t.Errorf("-h: %.40q, %q, %v", out, errs, err)
	}
	if out, _, err := say(t, "-version"); err != nil || !strings.HasPrefix(out, "worker ") {
		t.Errorf("-version: %q, %v", out, err)
	}
	documented := manual.Commands([]manual.Page{page})[0].Flags
	for _, want := range []string{"config", "stages", "healthy", "version"} {
		if !slices.ContainsFunc(documented, func(f manual.Flag) bool { return f.Name == want }) {
			t.Errorf("the help lacks -%s", want)
		}
	}
	for _, f := range documented {
		if _, _, err := say(t, "-config", "missing.yaml", "-"+f.Name); err != nil && strings.Contains(err.Error(), "not defined") {
			t.Errorf("the help has -%s: %v", f.Name, err)
		}
	}
}

func TestWrongUsageIsRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-stages", "nonsense"}, {"-nonsense"}, {"serve"}} {
		_, _, err := say(t, args...)
		if _, wrong := errors.AsType[usageError](err); !wrong {
			t.Errorf("%v: %v, want a usage error", args, err)
		}
	}
}
