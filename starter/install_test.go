package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/testkit"
)

// Each problem of a host is named, and the lines are printed as the table wants them.
func TestInstallNamesProblems(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	testkit.NoError(t, err)
	for name, tt := range map[string]struct {
		file            string
		mode, spoolMode os.FileMode
		args            string
		want, not       string // in the output or the error
	}{
		"a path":   {args: "--print --path //depot/a/...", want: "\tcriticizer change-commit //depot/a/... \"" + program + " --config FILE --trigger change-commit %changelist%\"\n", not: "shelve-commit"},
		"no print": {want: "0 of at most 10000 requests", not: "change-commit"},
		"shelves": {args: "--print --shelves", want: "\tcriticizer-shelf shelve-commit //depot/... \"" + program +
			" --config FILE --trigger shelve-commit %changelist%\"\n"},
		"an open spool":                          {spoolMode: 0o755, want: "spool          error: spool directory"},
		"a configuration that anybody may write": {mode: 0o666, want: "configuration  error: every account can write FILE"},
		"a path that needs quotes":               {file: "a b.yaml", want: "characters that need quotes"},
		"a path outside of a depot":              {args: "--path /tmp", want: "want a depot path"},
		"no connection":                          {want: "connection     error: reach Temporal at 127.0.0.1:1 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if tt.file == "" {
				tt.file = "starter.yaml"
			}
			file, spool := filepath.Join(dir, tt.file), filepath.Join(dir, "spool")
			text := fmt.Sprintf("temporal: {address: '127.0.0.1:1'}\nstarter: {spool_dir: %q}\n", spool)
			testkit.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			testkit.NoError(t, os.Chmod(file, 0o600|tt.mode))
			if tt.spoolMode != 0 {
				testkit.NoError(t, os.Mkdir(spool, tt.spoolMode))
			}
			var out strings.Builder
			err := run(t.Context(), append([]string{"--config", file, "install"}, strings.Fields(tt.args)...), func(string) string { return "" }, nil, &out, &out)
			if err == nil {
				t.Error("it succeeded without a connection")
			}
			text = out.String() + fmt.Sprint(err)
			if want := strings.ReplaceAll(tt.want, "FILE", file); !strings.Contains(text, want) || tt.not != "" && strings.Contains(text, tt.not) {
				t.Errorf("it wrote\n%s\nwant %q and not %q", text, want, tt.not)
			}
			if left, _ := filepath.Glob(filepath.Join(spool, "*")); len(left) > 0 {
				t.Errorf("the spool has %v", left)
			}
		})
	}
}

// The line sets the profile of the connection, because the Perforce server does not. Its paths are
// absolute even if those of the installer are not.
func TestInstallPrintsTheProfile(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	testkit.NoError(t, err)
	dir := t.TempDir()
	profiles, file := filepath.Join(dir, "temporal.toml"), filepath.Join(dir, "starter.yaml")
	testkit.NoError(t, os.WriteFile(profiles, []byte("[profile.starter]\naddress = \"127.0.0.1:1\"\n[profile.\"a b\"]\n"), 0o600))
	testkit.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "starter: {spool_dir: %q}\n", filepath.Join(dir, "spool")), 0o600))
	workDir, err := os.Getwd()
	testkit.NoError(t, err)
	relative, err := filepath.Rel(workDir, profiles)
	testkit.NoError(t, err)
	for profile, want := range map[string]string{
		"starter": `"/usr/bin/env TEMPORAL_CONFIG_FILE=` + profiles + " TEMPORAL_PROFILE=starter " + program + " --config " + file + " --trigger change-commit",
		"a b":     "characters that need quotes",
	} {
		vars := map[string]string{"TEMPORAL_CONFIG_FILE": relative, "TEMPORAL_PROFILE": profile}
		var out strings.Builder
		err := run(t.Context(), []string{"--config", file, "install", "--print"}, func(name string) string { return vars[name] }, nil, &out, &out)
		if text := out.String() + fmt.Sprint(err); !strings.Contains(text, want) {
			t.Errorf("%s: it wrote\n%s\nwant %q", profile, text, want)
		}
	}
}

// On Windows the lines set no variables: the output names those that the service needs.
func TestInstallNamesTheVariablesOfAService(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	i := installer{goos: "windows", depotPath: "//depot/...", stderr: &out}
	vars := map[string]string{"TEMPORAL_PROFILE": "starter"}
	lines, err := i.lines(&app{configPath: filepath.Join(t.TempDir(), "none.yaml"), getenv: func(name string) string { return vars[name] }})
	testkit.NoError(t, err)
	if strings.Contains(lines, "TEMPORAL") || !strings.Contains(out.String(), "TEMPORAL_PROFILE=starter: set each for the service") {
		t.Errorf("lines %q, output %q", lines, out.String())
	}
}

// execute runs a command that needs no service.
func execute(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out strings.Builder
	err = run(t.Context(), args, func(string) string { return "" }, nil, &out, io.Discard)
	return out.String(), err
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"", "nonsense", "change-commit", "change-commit 1 2", "change-commit --nonsense 1", "change-commit --timeout soon 1", "drain 1",
		"rewrite", "change-commit 0", "change-commit --review-version 0 1", "shelve-commit x",
	} {
		_, err := execute(t, append([]string{"--config", os.DevNull}, strings.Fields(args)...)...)
		if _, ok := errors.AsType[cli.UsageError](err); !ok {
			t.Errorf("%q: error is %v, want a usage error", args, err)
		}
	}
}

// A trigger must not fail, and prints at most one line.
func TestTriggerNeverFails(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "nonsense", "change-commit", "--nonsense", "change-commit --timeout=x 1", "--config missing.yaml change-commit 1"} {
		out, err := execute(t, append([]string{"--trigger"}, strings.Fields(args)...)...)
		if err != nil || strings.Count(out, "\n") != 1 {
			t.Errorf("%q: %q, %v", args, out, err)
		}
	}
}
