package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// The identity and the reason of a termination are in the job, not in the log.
func TestLogHasNoReasonOfATermination(t *testing.T) {
	t.Parallel()
	n, _ := temporaltest.New(t)
	d := storetest.New(t)
	books := d.Open(t, store.RoleBookkeeping)
	req := review.Request{Changelist: 4711, Version: 1, ServerID: "p4", Key: "review-p4-4711-v1"}
	run, err := n.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: req.Key, TaskQueue: "no-worker"}, "Nothing")
	testkit.NoError(t, err)
	_, err = books.OpenJob(t.Context(), req, run.GetRunID())
	testkit.NoError(t, err)
	testkit.NoError(t, n.TerminateWorkflow(t.Context(), req.Key, "", "asked by olga@corp.test"))
	_, err = d.Conn(t).Exec(t.Context(), `update criticizer.jobs set updated_at = now() - interval '1 hour'`)
	testkit.NoError(t, err)
	var out bytes.Buffer
	r := &runtime{lg: slog.New(slog.NewTextHandler(&out, nil)), namespace: n}
	testkit.NoError(t, r.closeEnded(t.Context(), books))
	if log := out.String(); !strings.Contains(log, "state=canceled") || strings.Contains(log, "olga@corp.test") {
		t.Errorf("logged %s", log)
	}
	var how string
	testkit.NoError(t, d.Conn(t).QueryRow(t.Context(), `select closed_how from criticizer.jobs`).Scan(&how))
	if !strings.Contains(how, "olga@corp.test") {
		t.Errorf("the job was closed because %s", how)
	}
}
