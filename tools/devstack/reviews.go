package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// reviewAll starts the review of each changelist as a trigger does, and waits for all
// results.
func (e *environment) reviewAll(ctx context.Context, db *store.DB, changes []submitted) ([]row, error) {
	var rows []row
	err := e.out.during(fmt.Sprintf("reviewing %d changelists", len(changes)), func() error {
		for _, c := range changes {
			r, err := e.trigger(ctx, c.changelist)
			if err != nil {
				return err
			}
			rows = append(rows, r)
		}
		for i := range rows {
			if err := e.await(ctx, db, &rows[i]); err != nil {
				return err
			}
			e.out.detail("reviewed changelist %d (%d of %d)", rows[i].Changelist, i+1, len(rows))
		}
		return nil
	})
	return rows, err
}

// trigger runs the starter as a change-commit trigger does, but with a longer
// timeout: this machine is busier than a Perforce server.
func (e *environment) trigger(ctx context.Context, cl review.Changelist) (r row, err error) {
	cmd := exec.CommandContext(ctx, e.command("starter"), "--config", e.config, "change-commit", "--json", "--timeout=1m", cl.String())
	cmd.Env = e.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if err != nil {
		return r, fmt.Errorf("start the review of changelist %d: %w: %s", cl, err, strings.TrimSpace(stderr.String()))
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read output of the starter for changelist %d: %w", cl, err)
	}
	return r, nil
}

// await waits for the end of the review r and completes its row. A failed review
// is a row, not an error.
func (e *environment) await(ctx context.Context, db *store.DB, r *row) error {
	var result review.Result
	err := e.temporal.GetWorkflow(ctx, r.WorkflowID, r.RunID).Get(ctx, &result)
	var failed *temporal.ApplicationError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &failed):
		r.outcome, r.failure = string(review.JobDeadLettered), failed.Type()
	case err != nil:
		return fmt.Errorf("wait for the review of changelist %d: %w", r.Changelist, err)
	default:
		r.outcome, r.findings = string(result.Job.Outcome), result.Job.Findings
		r.Duplicate = r.Duplicate || result.Duplicate
	}
	described, err := e.temporal.DescribeWorkflow(ctx, r.WorkflowID, r.RunID)
	if err != nil {
		return fmt.Errorf("time the review of changelist %d: %w", r.Changelist, err)
	}
	if closed := described.WorkflowCloseTime; closed != nil {
		r.seconds = closed.Sub(described.WorkflowStartTime).Seconds()
	}
	// Without addresses it prepares nothing and returns what is there.
	deliveries, err := db.PrepareDeliveries(ctx, r.Changelist, r.Version, nil)
	if err != nil {
		return err
	}
	for _, d := range deliveries {
		r.recipients = append(r.recipients, d.Key.Recipient)
		r.messageIDs = append(r.messageIDs, d.NotificationID)
	}
	return nil
}
