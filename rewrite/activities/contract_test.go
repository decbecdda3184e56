package activities

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/rewrite"
)

// A worker executes no job that it has lost between the claim and the call (rewrite 7.1).
func TestLostJobIsNotExecuted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Concurrency = 1
	ids := r.enqueue(t, 2, rewrite.Async)
	r.provider.answer = func(item rewrite.Item) (string, error) {
		r.edit(t, `update complaint_rewrite.jobs set status = 'canceled', claim_token = null where status = 'processing' and job_id <> '`+item.JobID+`'`)
		return "Kindly: " + item.Text.String(), nil
	}
	r.must(t, rewrite.AsyncLane)
	if got := r.statuses(t); got[rewrite.Completed] != 1 || got[rewrite.Canceled] != 1 {
		t.Errorf("jobs are %v", got)
	}
	if n := r.provider.executed[ids[0]] + r.provider.executed[ids[1]]; n != 1 {
		t.Errorf("%d jobs were executed, want the one that was held", n)
	}
}

// Each run logs the required fields (rewrite 10).
func TestRunIsLogged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueue(t, 1, rewrite.Async)
	r.must(t, rewrite.AsyncLane)
	for _, key := range []string{
		"run_id", "started_at", "finished_at", "max_jobs_per_run", "claimed_count", "succeeded_count", "failed_count",
		"requeued_count", "rate_limit_errors", "capacity_errors", "per_model",
	} {
		if !strings.Contains(r.log.String(), " "+key+"=") {
			t.Errorf("the log lacks %s", key)
		}
	}
}
