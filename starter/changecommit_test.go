package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// The line that people read names the outcome, and does not look like an approval if no
// model read the change.
func TestLineOfAReview(t *testing.T) {
	t.Parallel()
	clean := answer{Changelist: 103, Version: 1, State: review.JobSucceeded, Outcome: review.OutcomeClean}
	simulated := clean
	simulated.StandIn = true
	for want, a := range map[string]answer{
		"review of changelist 103 version 1 ended: clean, 0 findings":                    clean,
		"review of changelist 103 version 1 ended: clean (no model read it), 0 findings": simulated,
	} {
		if got := a.line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A trigger prints each reason of a refused configuration, on its one line.
func TestTriggerPrintsTheWholeReason(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"CRITICIZER_CONFIG": "/dev/null", "CRITICIZER_TEMPORAL_ADDRESS": "http://127.0.0.1", "CRITICIZER_SHELF_QUIET": "-1s"}
	var said strings.Builder
	err := run(t.Context(), []string{"--trigger", "change-commit", "4711"}, func(name string) string { return vars[name] }, strings.NewReader(""), &said, io.Discard)
	testkit.NoError(t, err)
	for _, reason := range []string{"temporal.address: ", "without a scheme", "shelf.quiet: is not positive", "; "} {
		if !strings.Contains(said.String(), reason) || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("%q is missing, or it is not one line: %q", reason, said.String())
		}
	}
}

// A server passes the changelist as an argument, or in a dictionary on the standard input,
// with triggers.io=1. A renumbered changelist has its final number. Here Temporal is down: the
// request is in the spool.
func TestChangelistOfATrigger(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ args, stdin string }{
		"an argument":                       {"change-commit 4711", ""},
		"an argument and a dictionary":      {"change-commit 4711", "user:ann\nchangelist:9\n"},
		"a dictionary":                      {"change-commit", "user:ann\noldchangelist:38\nchangelist:4711\nclient:ann-ws\n"},
		"a variable that is not expanded":   {"change-commit %changelist%", "changelist: 4711\n"},
		"tagged lines":                      {"change-commit %changelist%", "... oldchangelist 38\n... changelist 4711\n"},
		"an equals sign and quotes":         {"change-commit %change%", "oldchange=\"38\"\r\nchange=\"4711\"\r\n"},
		"JSON, one member per line":         {"change-commit", "{\n  \"changelist\": \"4711\",\n  \"user\": \"ann\"\n}\n"},
		"the dictionary of a shelve-commit": {"shelve-commit", "changelist:4711\n"},
		"from an edge server":               {"change-commit", "serverid:commit-1\nsubmitserverid:edge-1\nintermediateService:yes\nchangelist:4711\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, spooled := triggerWhileTemporalIsDown(t, tt.args, strings.NewReader(tt.stdin))
			if len(spooled) != 1 || spooled[0].Changelist != 4711 || strings.Count(said, "\n") != 1 {
				t.Errorf("spooled %+v, said %q", spooled, said)
			}
		})
	}
	for name, tt := range map[string]struct{ args, stdin string }{
		"an empty dictionary":           {"change-commit %changelist%", ""},
		"the default changelist":        {"change-commit", "changelist:default\n"},
		"the number before the submit":  {"change-commit", "oldchangelist:38\n"},
		"a changelist in a description": {"change-commit", "desc:changelist:38\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if said, spooled := triggerWhileTemporalIsDown(t, tt.args, strings.NewReader(tt.stdin)); len(spooled) != 0 || strings.Count(said, "\n") != 1 {
				t.Errorf("spooled %+v, said %q", spooled, said)
			}
		})
	}
}

func triggerWhileTemporalIsDown(t *testing.T, args string, stdin io.Reader) (said string, spooled []review.Request) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "starter.yaml")
	testkit.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "temporal: {address: \"127.0.0.1:1\"}\nstarter: {spool_dir: %q}\n", filepath.Join(dir, "spool")), 0o600))
	var out strings.Builder
	testkit.NoError(t, run(t.Context(), append([]string{"--config", config, "--trigger"}, strings.Fields(args)...), func(string) string { return "" }, stdin, &out, io.Discard))
	files, err := filepath.Glob(filepath.Join(dir, "spool", "*.json"))
	testkit.NoError(t, err)
	for _, file := range files {
		body, err := os.ReadFile(file)
		testkit.NoError(t, err)
		var req review.Request
		testkit.NoError(t, json.Unmarshal(body, &req))
		spooled = append(spooled, req)
	}
	return out.String(), spooled
}
