package main

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/cli/manual"
)

// say runs a command that needs no service.
func say(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs strings.Builder
	err = run(t.Context(), args, func(string) string { return "" }, &out, &errs)
	return out.String(), errs.String(), err
}

func TestHelpIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	page, err := manual.Parse(usage)
	if err != nil || page.Lacks() != nil {
		t.Fatalf("the usage lacks %q: the comment of package manual has the form; %v", page.Lacks(), err)
	}
	for line := range strings.Lines(usage) {
		if len(line) > 120 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
	for _, c := range manual.Commands([]manual.Page{page}) {
		if slices.Equal(c.Route, []string{"help"}) {
			continue
		}
		out, errs, err := say(t, append(c.Route, "-h")...)
		if out != usage || errs != "" || !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%v -h: %.40q, %q, %v", c.Route, out, errs, err)
		}
	}
	if out, _, err := say(t, "help"); out != usage || err != nil {
		t.Errorf("help: %.40q, %v", out, err)
	}
}

// What the help says can be typed: flags are known, examples fail for want of
// a configuration.
func TestHelpIsTrue(t *testing.T) {
	t.Parallel()
	page, err := manual.Parse(usage)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range manual.Commands([]manual.Page{page}) {
		for _, f := range c.Flags {
			args := slices.Concat([]string{"-config", "missing.yaml"}, c.Route, []string{"-" + f.Name})
			if _, _, err := say(t, args...); err != nil && strings.Contains(err.Error(), "not defined") {
				t.Errorf("%v: the help has -%s: %v", c.Route, f.Name, err)
			}
		}
	}
}

func TestVersionIsPrinted(t *testing.T) {
	t.Parallel()
	if out, _, err := say(t, "-version"); err != nil || !strings.HasPrefix(out, "starter ") {
		t.Errorf("%q, %v", out, err)
	}
}
