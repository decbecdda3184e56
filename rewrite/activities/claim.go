package activities

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// claim ends stale claims, routes jobs that need it, and returns the jobs of an earlier
// attempt of the run or else claims new ones, up to the run's limit, of the providers that
// accept a call. A job that cannot be read fails alone, by the name of the field.
func (a *Activities) claim(ctx context.Context, runID string, mode rewrite.ExecutionMode) (rewrite.Claim, []rewrite.Job, error) {
	c := rewrite.NewClaim(runID, a.parts.Name)
	held, err := a.parts.Queue.TakeOver(ctx, c)
	if err != nil {
		return c, nil, err
	}
	recovered, err := a.parts.Queue.RecoverStaleClaims(ctx, runID, a.cfg.Run.ClaimTimeout())
	if err != nil {
		return c, nil, err
	}
	if recovered > 0 {
		a.lg.WarnContext(ctx, "stale claims ended", "run_id", runID, "jobs", recovered)
	}
	standard, err := json.Marshal(a.parts.Standard)
	if err != nil {
		return c, nil, err
	}
	if err := a.parts.Queue.RouteJobs(ctx, standard, a.cfg.Run.MaxJobsPerRun); err != nil {
		return c, nil, err
	}
	if len(held) == 0 {
		refusing, err := a.refusing(ctx, runID, mode)
		if err != nil {
			return c, nil, err
		}
		if held, err = a.parts.Queue.Claim(ctx, c, mode, a.cfg.Run.MaxJobsPerRun, refusing); err != nil {
			return c, nil, err
		}
	}
	var faulty []rewrite.Outcome
	held = slices.DeleteFunc(held, func(job rewrite.Job) bool {
		fault := job.Fault()
		if fault != "" {
			a.lg.WarnContext(ctx, "rewrite job cannot be read", "job_id", job.ID, "run_id", runID, "field", fault)
			faulty = append(faulty, rewrite.Outcome{JobID: job.ID, Status: rewrite.Failed, Attempts: job.AttemptCount, Error: "unreadable_" + fault})
		}
		return fault != ""
	})
	return c, held, a.settle(ctx, c, "", faulty...)
}

// closed are the failures of a call for nothing after which a provider would refuse or fail every
// job. A key may lack the right to list models, and a server the list.
var closed = []failure.Class{
	failure.AuthDenied, failure.QuotaExhausted, failure.EndpointRefused, failure.RateLimited, failure.ServerBusy,
	failure.NetworkTimeout, failure.NetworkUnreachable, failure.UpstreamUnavailable,
}

// refusing asks each provider of the jobs that are due for its models, which costs nothing, and
// returns those that refuse or are not reachable: none of their jobs is claimed.
func (a *Activities) refusing(ctx context.Context, runID string, mode rewrite.ExecutionMode) (refusing []string, err error) {
	providers, err := a.parts.Queue.DueProviders(ctx, string(mode), a.cfg.Run.MaxJobsPerRun)
	if err != nil {
		return nil, err
	}
	var refusals []rewrite.Refusal
	for _, name := range providers {
		call, cancel := context.WithTimeout(ctx, a.cfg.CallTimeout)
		_, err := a.parts.Provider.Models(call, name)
		cancel()
		if class := failure.ClassOf(err); err != nil && slices.Contains(closed, class) {
			a.lg.WarnContext(ctx, "provider refuses calls: none of its jobs is claimed", "provider", name, "run_id", runID, "error_class", class, "error", err.Error())
			refusing, refusals = append(refusing, name), append(refusals, rewrite.Refusal{Provider: name, Class: string(class)})
		}
	}
	if len(refusals) > 0 {
		err = a.parts.Queue.RecordRefusals(ctx, refusals, runID)
	}
	return refusing, err
}

// extend keeps the claim from becoming stale until stop is called: a claim is stale only if
// its worker is dead or cannot reach the database.
func (a *Activities) extend(ctx context.Context, claim rewrite.Claim) (stop func()) {
	ctx, stop = context.WithCancel(context.WithoutCancel(ctx))
	go every(ctx, a.cfg.Run.ClaimTimeout()/4, func() {
		if err := a.parts.Queue.ExtendClaims(ctx, claim.Token); err != nil && ctx.Err() == nil {
			a.lg.WarnContext(ctx, "extension of a claim failed", "run_id", claim.RunID, "error_class", failure.ClassOf(err))
		}
	})
	return stop
}

// If err ends the run, release queues the jobs that were not begun and counts no attempt:
// otherwise their claims would become stale, which counts one. It returns err.
func (a *Activities) release(ctx context.Context, claim rewrite.Claim, err error) error {
	if failure.ClassOf(err).Retryable() && ctx.Err() == nil {
		return err
	}
	return errors.Join(err, a.releaseRest(ctx, claim))
}

// releaseRest queues the jobs of the claim that were not begun, even if the run was
// canceled.
func (a *Activities) releaseRest(ctx context.Context, claim rewrite.Claim) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	return a.parts.Queue.Release(ctx, claim, a.cfg.Run.OverflowBackoff())
}
