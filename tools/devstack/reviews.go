package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"sync/atomic"

	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// started is the output of the starter.
type started struct {
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	WorkflowID string            `json:"workflow_id"`
	RunID      string            `json:"run_id"`
	Duplicate  bool              `json:"duplicate"`
}

// reviewAll starts the review of every changelist as a trigger does, and waits for
// all results.
func (e *environment) reviewAll(ctx context.Context) ([]row, error) {
	db, err := store.Open(ctx, slog.New(slog.DiscardHandler), e.database, "")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	var done atomic.Int32
	state := func() string { return fmt.Sprintf("%d of %d done, ", done.Load(), len(e.changes)) }
	var rows []row
	err = e.out.watch(fmt.Sprintf("reviewing %d changelists", len(e.changes)), state, func() error {
		var all []started
		for _, c := range e.changes {
			one, err := e.trigger(ctx, c.changelist)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		for _, one := range all {
			r, err := e.await(ctx, db, one)
			if err != nil {
				return err
			}
			rows = append(rows, r)
			done.Add(1)
		}
		return nil
	})
	return rows, err
}

// trigger runs the starter as a change-commit trigger does, but with a longer
// timeout: this machine is busier than a Perforce server.
func (e *environment) trigger(ctx context.Context, cl review.Changelist) (started, error) {
	cmd := exec.CommandContext(ctx, e.command("starter"), "--config", e.config, "change-commit", "--json", "--timeout=1m", cl.String())
	cmd.Env = e.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if ctx.Err() != nil {
		return started{}, context.Cause(ctx)
	}
	if err != nil {
		return started{}, fmt.Errorf("start the review of changelist %d: %w: %s", cl, err, strings.TrimSpace(stderr.String()))
	}
	var one started
	if err := json.Unmarshal(text, &one); err != nil {
		return started{}, fmt.Errorf("read output of the starter for changelist %d: %w", cl, err)
	}
	return one, nil
}

// await waits for the end of a review and returns its result. A failed review is
// a row, not an error.
func (e *environment) await(ctx context.Context, db *store.DB, one started) (row, error) {
	r := row{Changelist: one.Changelist, Version: one.Version, WorkflowID: one.WorkflowID, RunID: one.RunID, earlier: one.Duplicate}
	var result review.Result
	err := e.temporal.GetWorkflow(ctx, one.WorkflowID, one.RunID).Get(ctx, &result)
	var failed *temporal.ApplicationError
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case errors.As(err, &failed):
		r.Outcome, r.failure = string(review.JobDeadLettered), failed.Type()
	case err != nil:
		return r, fmt.Errorf("wait for the review of changelist %d: %w", one.Changelist, err)
	default:
		r.Outcome, r.Findings = string(result.Job.Outcome), result.Job.Findings
		r.earlier = r.earlier || result.Duplicate
	}
	described, err := e.temporal.DescribeWorkflow(ctx, one.WorkflowID, one.RunID)
	if err != nil {
		return r, fmt.Errorf("time the review of changelist %d: %w", one.Changelist, err)
	}
	if closed := described.WorkflowCloseTime; closed != nil {
		r.Seconds = closed.Sub(described.WorkflowStartTime).Seconds()
	}
	// Without addresses it prepares nothing and returns what is there.
	deliveries, err := db.PrepareDeliveries(ctx, one.Changelist, one.Version, nil)
	if err != nil {
		return r, err
	}
	for _, d := range deliveries {
		r.Recipients = append(r.Recipients, d.Key.Recipient)
		r.MessageIDs = append(r.MessageIDs, d.NotificationID)
	}
	return r, nil
}
