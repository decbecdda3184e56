package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func someRows() []row {
	return []row{
		{
			Changelist: 7, Version: 1, Outcome: "findings", Findings: 3, Recipients: []string{"a@example.com", "b@example.com"},
			MessageIDs: []string{"one@example.com", ""}, WorkflowID: "review-x-7-v1", RunID: "run", Seconds: 1.23456,
		},
		{Changelist: 8, Version: 1, Outcome: "clean", Duplicate: true},
		{Changelist: 9, Version: 1, Outcome: "dead_lettered", failure: "AUTH_DENIED"},
	}
}

func TestWriteTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := writeTable(&out, someRows()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range [][]string{
		{"CHANGELIST", "OUTCOME", "FINDINGS", "SECONDS", "RECIPIENTS"},
		{"7", "findings", "3", "1.2", "a@example.com,", "b@example.com"},
		{"8", "clean", "0", "0.0", "none", "reviewed", "earlier"},
		{"9", "dead_lettered", "(AUTH_DENIED)", "0", "0.0", "none"},
		{},
		{"2", "reviewed", "now,", "1", "by", "an", "earlier", "run"},
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != strings.Join(want, " ") {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
}

// Scripts read this form.
const wantJSON = `{
  "reviews": [
    {
      "changelist": 7,
      "review_version": 1,
      "outcome": "findings",
      "findings": 3,
      "recipients": [
        "a@example.com",
        "b@example.com"
      ],
      "message_ids": [
        "one@example.com",
        ""
      ],
      "workflow_id": "review-x-7-v1",
      "run_id": "run",
      "seconds": 1.235,
      "duplicate": false
    },
    {
      "changelist": 8,
      "review_version": 1,
      "outcome": "clean",
      "findings": 0,
      "recipients": [],
      "message_ids": [],
`

func TestWriteJSON(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "demo.json")
	if err := writeJSON(path, someRows()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(got), wantJSON) {
		t.Errorf("got:\n%s\nwant it to begin:\n%s", got, wantJSON)
	}
}

func TestFailedReviewsFailTheDemo(t *testing.T) {
	t.Parallel()
	rows := someRows()
	if err := failuresIn(rows, "worker.log"); !errors.Is(err, errFailedReviews) {
		t.Errorf("got %v", err)
	}
	if err := failuresIn(rows[:2], "worker.log"); err != nil {
		t.Errorf("none failed, got %v", err)
	}
}
