package main

import (
	"bytes"
	"errors"
	"testing"
)

func someRows() []row {
	return []row{
		{
			Changelist: 7, Version: 1, outcome: "findings", findings: 3, recipients: []string{"a@example.com", "b@example.com"},
			messageIDs: []string{"one@example.com", ""}, seconds: 1.23456,
		},
		{Changelist: 8, Version: 1, outcome: "clean", Duplicate: true},
		{Changelist: 9, Version: 1, outcome: "dead_lettered", failure: "AUTH_DENIED"},
	}
}

func TestWriteTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := writeTable(&out, someRows()); err != nil {
		t.Fatal(err)
	}
	const want = `
CHANGELIST  OUTCOME                      FINDINGS  SECONDS  RECIPIENTS                    
7           findings                     3         1.2      a@example.com, b@example.com  
8           clean                        0         0.0      none                          reviewed earlier
9           dead_lettered (AUTH_DENIED)  0         0.0      none                          

2 reviewed now, 1 by an earlier run
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
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
