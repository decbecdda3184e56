package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store"
)

func cancelRewriteJob(ctx context.Context, args []string, c console) error {
	return c.repairRewrite(ctx, "cancel", args, "canceled", store.Rewrites.Cancel)
}

func requeueRewriteJob(ctx context.Context, args []string, c console) error {
	return c.repairRewrite(ctx, "requeue", args, "queued: the next run may claim it", store.Rewrites.Requeue)
}

func (c console) repairRewrite(ctx context.Context, action string, args []string, done string,
	change func(q store.Rewrites, ctx context.Context, jobID, who, reason string) (rewrite.Job, error),
) error {
	flags := c.flags(action, rewriteUsage)
	reason := flags.String("reason", "", "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	id, err := rewriteJobID(action, rest)
	if err != nil {
		return err
	}
	why, err := statement("reason", *reason)
	if err != nil {
		return err
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := change(db.Rewrites(), ctx, id, c.operator(), why); err != nil {
		return refusedRepair(ctx, db, action, id, err)
	}
	fmt.Fprintf(c.stdout, "rewrite job %s is %s\n", id, done)
	return nil
}

// refusedRepair says why a job's status does not allow what was asked for.
func refusedRepair(ctx context.Context, db *store.DB, action, id string, err error) error {
	if failure.ClassOf(err) != failure.WriteConflict {
		return err
	}
	job, lookup := db.Rewrites().Job(ctx, id)
	switch {
	case lookup != nil:
		return adviseRewrite(lookup)
	case job.Status.Final():
		return advise(fmt.Errorf("%s rewrite job %s: it is %s, which is final", action, id, job.Status),
			"enqueue the message again under a new rewrite_request_id if it is still wanted")
	case job.BatchID != nil:
		return advise(fmt.Errorf("%s rewrite job %s: it is in batch %s, which its provider may have", action, id, *job.BatchID),
			"wait for the collector, or cancel the job")
	}
	return advise(errors.New(action+" rewrite job "+id+": it has no attempt left"), "it fails when its claim is stale")
}
