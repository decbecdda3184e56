package activities

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/rewrite"
)

// Batches are grouped by provider, model, prompt, policy, lane and languages (rewrite 9).
func TestBatchesAreGrouped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	edits := []func(*rewrite.Order){
		func(*rewrite.Order) {},
		func(o *rewrite.Order) { o.Routing.Provider = "other" },
		func(o *rewrite.Order) { o.Routing.Model = "m2" },
		func(o *rewrite.Order) { o.Routing.PromptVersion = "v2" },
		func(o *rewrite.Order) { o.Routing.PolicyVersion = "p2" },
		func(o *rewrite.Order) { o.Languages.To = "de" },
		func(o *rewrite.Order) { o.Languages = rewrite.LanguagePair{From: "de", To: "de"} },
	}
	var ids []string
	for range 2 {
		for _, edit := range edits {
			ids = append(ids, r.enqueue(t, 1, rewrite.Batch, edit)...)
		}
	}
	r.must(t, rewrite.Submitter)
	if len(r.provider.batches) != len(edits) {
		t.Errorf("%d batches, want %d", len(r.provider.batches), len(edits))
	}
	for _, b := range r.provider.batches {
		if len(b.items) != 2 {
			t.Errorf("batch %s has %d items, want 2", b.ID, len(b.items))
		}
	}
	r.all(t, rewrite.BatchSubmitted, ids)
	r.must(t, rewrite.Collector)
	r.all(t, rewrite.Completed, ids)
	r.executedOnce(t, ids)
	if want := 2 * len(edits); len(r.provider.deleted) != want { // input and output
		t.Errorf("%d files were deleted at the provider, want %d", len(r.provider.deleted), want)
	}
}

// Jobs for which the provider has no room return to the queue with a short wait, and no
// attempt is counted (rewrite 6.1).
func TestBatchesAreSplit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Limits = rewrite.BatchLimits{Requests: 2, Tokens: 50}
	ids := r.enqueue(t, 7, rewrite.Batch)
	r.must(t, rewrite.Submitter)
	if got := r.statuses(t); len(r.provider.batches) != 3 || got[rewrite.BatchSubmitted] != 5 || got[rewrite.Queued] != 2 {
		t.Fatalf("%d batches, jobs are %v", len(r.provider.batches), got)
	}
	last := r.job(t, ids[6])
	if wait := last.NotBeforeAt.Sub(last.UpdatedAt); wait <= 0 || wait > time.Minute || last.AttemptCount != 0 || lastError(last) != rewrite.NoCapacity || last.ClaimedBy != nil {
		t.Errorf("overflow job waits %s: %+v", wait, last)
	}
	r.later(t)
	r.must(t, rewrite.Submitter) // no room yet
	if got := r.statuses(t); got[rewrite.Queued] != 2 {
		t.Errorf("jobs are %v", got)
	}
	r.must(t, rewrite.Collector)
	r.later(t)
	r.must(t, rewrite.Submitter, rewrite.Collector)
	if got := r.statuses(t); got[rewrite.Completed] != 7 {
		t.Errorf("jobs are %v", got)
	}
}

// A worker crashes at every point of a submission; its run or another one continues. No
// job is lost or billed twice.
func TestSubmitterCrashes(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"ClaimJobs", "upload", "RecordUpload", "create", "ReleaseJobs"} {
		for _, when := range []string{" before", " after"} {
			t.Run(step+when, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				ids := r.enqueue(t, 3, rewrite.Batch)
				r.crash = step + when
				run := uuid.NewString()
				if dead, err := r.run(t, rewrite.Submitter, run); !dead {
					t.Fatalf("it did not crash: %v", err)
				}
				if _, err := r.run(t, rewrite.Submitter, run); err != nil { // Temporal's retry
					t.Fatal(err)
				}
				r.later(t)
				r.must(t, rewrite.Submitter, rewrite.Collector)
				r.all(t, rewrite.Completed, ids)
				r.executedOnce(t, ids)
				for _, id := range ids {
					if n := r.job(t, id).AttemptCount; n != 0 {
						t.Errorf("a crash of the worker counts as %d attempts", n)
					}
				}
			})
		}
	}
}

// A worker crashes at every point of a collection.
func TestCollectorCrashes(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"SettleJobs before", "SettleJobs after", "EndBatch before", "EndBatch after"} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ids := r.enqueue(t, 3, rewrite.Batch)
			r.must(t, rewrite.Submitter)
			r.crash = moment
			if dead, err := r.run(t, rewrite.Collector, uuid.NewString()); !dead {
				t.Fatalf("it did not crash: %v", err)
			}
			r.later(t)
			r.must(t, rewrite.Collector)
			r.all(t, rewrite.Completed, ids)
			r.executedOnce(t, ids)
			var open int
			testkit.NoError(t, r.scan(`select count(*) from complaint_rewrite.batches where state <> 'collected'`, &open))
			if open != 0 {
				t.Errorf("%d batches are open", open)
			}
		})
	}
}

// The provider names a job by its line. A worker that crashes after it has queued some of the
// other jobs leaves fewer jobs than lines: no other job is taken for the one at fault. If every line
// is called faulty, the refusal counts for the jobs that are left, too.
func TestCrashWithinAFaultyBatch(t *testing.T) {
	t.Parallel()
	lines := make([]int, flushSize+30)
	for i := range lines {
		lines[i] = i + 1
	}
	for name, tt := range map[string]struct {
		faulty          []int
		failed, refused int
	}{"one line": {lines[2:3], 1, 0}, "every line": {lines, 0, len(lines)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.cfg.Run.MaxJobsPerRun = len(lines)
			ids := r.enqueue(t, len(lines), rewrite.Batch)
			r.must(t, rewrite.Submitter)
			r.provider.onDone = func(b *batch) {
				b.Status, b.OutputFileID, b.FaultyLines = rewrite.BatchFailed, "", tt.faulty
			}
			r.crash = "SettleJobs after"
			if dead, err := r.run(t, rewrite.Collector, uuid.NewString()); !dead {
				t.Fatalf("it did not crash: %v", err)
			}
			r.later(t)
			r.must(t, rewrite.Collector)
			got, third := r.statuses(t), r.job(t, ids[2]).Status
			if (third == rewrite.Failed) != (tt.failed == 1) || got[rewrite.Failed] != tt.failed || got[rewrite.Queued] != len(ids)-tt.failed {
				t.Errorf("jobs are %v, the third is %s", got, third)
			}
			if n := r.number(t, `select count(*) from complaint_rewrite.jobs where capacity_rounds = 1`); n != tt.refused {
				t.Errorf("a refusal is counted for %d jobs, want %d", n, tt.refused)
			}
		})
	}
}

// If the result of a creation is unknown, the batch is searched and not created again.
func TestCreationWithUnknownResult(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.enqueue(t, 3, rewrite.Batch)
	r.provider.createErr = failure.Errorf(failure.NetworkTimeout, "timed out")
	r.must(t, rewrite.Submitter)
	r.all(t, rewrite.Processing, ids)
	r.must(t, rewrite.Submitter) // the lease has not expired
	r.provider.createErr, r.provider.findErr, r.provider.listed = nil, failure.Errorf(failure.UpstreamInternal, "the list goes on"), true
	r.later(t)
	r.must(t, rewrite.Submitter) // what is listed exists
	r.all(t, rewrite.BatchSubmitted, ids)
	r.provider.findErr = nil
	r.executedOnce(t, ids)

	r.must(t, rewrite.Collector)
	r.provider.createErr, r.provider.notCreated = failure.Errorf(failure.UpstreamUnavailable, "503"), true
	more := r.enqueue(t, 1, rewrite.Batch)[0]
	r.must(t, rewrite.Submitter)
	r.later(t)
	r.must(t, rewrite.Submitter)
	if job := r.job(t, more); job.Status != rewrite.Queued || job.AttemptCount != 0 || job.Rounds != 1 || lastError(job) != "UPSTREAM_UNAVAILABLE" {
		t.Errorf("job of a batch that the provider did not create: %+v", job)
	}
}

// A refused creation may have been executed: if it cannot be searched, the jobs stay bound until it
// can. A server without a list has only its refusal.
func TestRefusedCreationWithFailedSearch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.enqueue(t, 3, rewrite.Batch)
	r.provider.createErr = failure.Errorf(failure.EndpointRefused, "400")
	r.provider.findErr = failure.Errorf(failure.RateLimited, "429")
	r.must(t, rewrite.Submitter)
	r.all(t, rewrite.Processing, ids)
	r.provider.createErr, r.provider.findErr = nil, nil
	r.later(t)
	r.must(t, rewrite.Submitter)
	r.all(t, rewrite.BatchSubmitted, ids)
	r.executedOnce(t, ids)

	r.must(t, rewrite.Collector)
	r.provider.createErr, r.provider.notCreated = failure.Errorf(failure.EndpointRefused, "400"), true
	for _, class := range []failure.Class{failure.NotFound, failure.ConfigInvalid} { // 404, 405
		r.provider.findErr = failure.Errorf(class, "no list")
		more := r.enqueue(t, 1, rewrite.Batch)[0]
		r.must(t, rewrite.Submitter)
		if job := r.job(t, more); job.Status != rewrite.Queued {
			t.Errorf("job of a refused batch: %+v", job)
		}
	}
}

// The ends of a batch and the outcomes of its three jobs; the output lists them in reverse.
func TestEndsOfBatches(t *testing.T) {
	t.Parallel()
	type want struct {
		statuses map[rewrite.Status]int
		attempts int    // of the jobs that are queued again
		err      string // of those
		log      string // the counts of lines
	}
	done := map[rewrite.Status]int{rewrite.Completed: 3}
	for name, tt := range map[string]struct {
		onDone func(p *editedProvider, b *batch)
		want   want
	}{
		"lines twice, and strange ones": {func(p *editedProvider, b *batch) {
			file := b.OutputFileID
			second := p.lines[file][0]
			second.Answer = "nonsense"
			p.lines[file] = slices.Concat([]rewrite.Line{{JobID: "unknown"}, {JobID: uuid.NewString()}}, p.lines[file], []rewrite.Line{second})
		}, want{statuses: done, log: "unknown_lines=2 repeated_lines=1 missing_lines=0 read_lines=3"}},
		"a line is missing": {func(p *editedProvider, b *batch) { p.lines[b.OutputFileID], b.Lines = p.lines[b.OutputFileID][1:], 2 },
			want{map[rewrite.Status]int{rewrite.Completed: 2, rewrite.Queued: 1}, 1, "UPSTREAM_INTERNAL", "unknown_lines=0 repeated_lines=0 missing_lines=1 read_lines=2"}},
		"expired with a part of the results": {func(p *editedProvider, b *batch) {
			b.Status, b.ErrorFileID = rewrite.BatchExpired, "err"
			lines := p.lines[b.OutputFileID]
			p.lines[b.OutputFileID] = lines[:1]
			for _, l := range lines[1:] {
				p.lines["err"] = append(p.lines["err"], rewrite.Line{JobID: l.JobID, Err: failure.Errorf(failure.UpstreamUnavailable, "expired")})
			}
		}, want{map[rewrite.Status]int{rewrite.Completed: 1, rewrite.Queued: 2}, 1, "UPSTREAM_UNAVAILABLE", ""}},
		"cancelled without files": {func(_ *editedProvider, b *batch) { b.Status, b.OutputFileID, b.Lines = rewrite.BatchCancelled, "", 0 },
			want{map[rewrite.Status]int{rewrite.Queued: 3}, 1, "UPSTREAM_INTERNAL", ""}},
		"all lines failed, and no output file": {func(p *editedProvider, b *batch) {
			for _, l := range p.lines[b.OutputFileID] {
				p.lines["err"] = append(p.lines["err"], rewrite.Line{JobID: l.JobID, Err: failure.Errorf(failure.ContentPolicy, "no")})
			}
			b.OutputFileID, b.ErrorFileID = "", "err"
		}, want{statuses: map[rewrite.Status]int{rewrite.Failed: 3}}},
		"two different results of one job": {func(p *editedProvider, b *batch) {
			second := p.lines[b.OutputFileID][0]
			second.Answer = "Dear you: " + second.Answer
			p.lines[b.OutputFileID] = append(p.lines[b.OutputFileID], second)
		}, want{map[rewrite.Status]int{rewrite.Completed: 2, rewrite.Queued: 1}, 1, "SCHEMA_INVALID", ""}},
		"refused: no room for the tokens": {func(_ *editedProvider, b *batch) {
			b.Status, b.OutputFileID, b.Full = rewrite.BatchFailed, "", true
		}, want{map[rewrite.Status]int{rewrite.Queued: 3}, 0, rewrite.NoCapacity, ""}},
		"refused for one line": {func(_ *editedProvider, b *batch) {
			b.Status, b.OutputFileID, b.FaultyLines = rewrite.BatchFailed, "", []int{2}
		}, want{map[rewrite.Status]int{rewrite.Failed: 1, rewrite.Queued: 2}, 0, rewrite.Overflow, ""}},
		"refused for each line": {func(_ *editedProvider, b *batch) {
			b.Status, b.OutputFileID, b.FaultyLines = rewrite.BatchFailed, "", []int{1, 2, 3}
		}, want{map[rewrite.Status]int{rewrite.Queued: 3}, 0, "ENDPOINT_REFUSED", ""}},
		"refused for the model": {func(_ *editedProvider, b *batch) {
			b.Status, b.OutputFileID, b.Refused = rewrite.BatchFailed, "", true
		}, want{map[rewrite.Status]int{rewrite.Queued: 3}, 0, "ENDPOINT_REFUSED", ""}},
		"refused as a whole": {func(_ *editedProvider, b *batch) {
			b.Status, b.OutputFileID = rewrite.BatchFailed, ""
		}, want{map[rewrite.Status]int{rewrite.Queued: 3}, 0, rewrite.Bisected, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ids := r.enqueue(t, 3, rewrite.Batch)
			r.must(t, rewrite.Submitter)
			r.provider.onDone = func(b *batch) { tt.onDone(r.provider, b) }
			r.must(t, rewrite.Collector)
			got := r.statuses(t)
			if !strings.Contains(r.log.String(), tt.want.log) {
				t.Errorf("the log lacks %s", tt.want.log)
			}
			for _, status := range rewrite.Statuses() {
				if got[status] != tt.want.statuses[status] {
					t.Fatalf("jobs are %v, want %v", got, tt.want.statuses)
				}
			}
			for _, id := range ids {
				job := r.job(t, id)
				if job.Status == rewrite.Queued && (job.AttemptCount != tt.want.attempts || lastError(job) != tt.want.err || job.NotBeforeAt == nil) {
					t.Errorf("job is %+v, want %+v", job, tt.want)
				}
			}
		})
	}
}

// The results of an ended batch are paid: the collector asks for them until they are there,
// or for readTimeout, and deletes no file that it has not read.
func TestOutputThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]bool{"comes back": true, "is gone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ids := r.enqueue(t, 3, rewrite.Batch)
			other := r.enqueue(t, 1, rewrite.Batch, func(o *rewrite.Order) { o.Routing.Model = "m2" })
			r.must(t, rewrite.Submitter)
			var file string
			var lines []rewrite.Line
			r.provider.onDone = func(b *batch) {
				if len(b.items) == 3 {
					file, lines = b.OutputFileID, r.provider.lines[b.OutputFileID]
					delete(r.provider.lines, file)
				}
			}
			r.must(t, rewrite.Collector, rewrite.Collector)
			if got := r.statuses(t); got[rewrite.BatchSubmitted] != 3 || got[rewrite.Completed] != len(other) {
				t.Fatalf("jobs are %v: a 404 ended the batch, or kept the other one", got)
			}
			if back {
				r.provider.lines[file] = lines
				r.must(t, rewrite.Collector)
				r.all(t, rewrite.Completed, append(ids, other...))
				r.executedOnce(t, ids)
				return
			}
			r.edit(t, `update complaint_rewrite.batches set final_at = now() - interval '7 hours' where final_at is not null`)
			r.must(t, rewrite.Collector)
			if job := r.job(t, ids[0]); job.Status != rewrite.Queued || job.AttemptCount != 1 || lastError(job) != "NOT_FOUND" {
				t.Errorf("job is %+v", job)
			}
			if slices.Contains(r.provider.deleted, file) {
				t.Error("the file that was not read was deleted")
			}
		})
	}
}

// A batch fails for one of its jobs, and the status names no line: only that job fails.
// TestLyingProvider has refused uploads and creations.
func TestCulpritIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.enqueue(t, 10, rewrite.Batch)
	culprit := ids[6]
	r.provider.onDone = func(b *batch) {
		if slices.ContainsFunc(b.items, func(i rewrite.Item) bool { return i.JobID == culprit }) {
			b.Status, b.OutputFileID, b.Lines = rewrite.BatchFailed, "", 0
		}
	}
	for range 8 {
		r.must(t, rewrite.Submitter, rewrite.Collector)
		r.later(t)
	}
	for _, id := range ids {
		want := rewrite.Completed
		if id == culprit {
			want = rewrite.Failed
		}
		if job := r.job(t, id); job.Status != want || (want == rewrite.Completed && job.AttemptCount != 0) {
			t.Errorf("job %s: %s after %d attempts, %s", id, job.Status, job.AttemptCount, lastError(job))
		}
	}
}

// A database that was restored from a backup does not know a batch that its provider has: its jobs
// get the results that are paid. A batch without such jobs is reported and left alone, and that of
// another installation is left alone.
func TestBatchWithoutARow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	sim := llmsim.New(llmsim.Config{Clock: func() time.Time { return time.Now().Add(-72 * time.Hour) }})
	provider := newClient(t, r.pipeline, sim)
	r.lying = provider
	ids := r.enqueue(t, 3, rewrite.Batch)
	r.must(t, rewrite.Submitter)
	var batch string
	testkit.NoError(t, r.scan(`select provider_batch_id from complaint_rewrite.batches`, &batch))
	_, err := provider.Poll(t.Context(), decision(rewrite.Batch), batch)
	testkit.NoError(t, err)
	lose := func() {
		r.edit(t, `update complaint_rewrite.jobs set batch_id = null, status = case status when 'batch_submitted' then 'queued' else status end`)
		r.edit(t, `delete from complaint_rewrite.batches`)
		r.edit(t, `update complaint_rewrite.installation set looked_at = now() - interval '25 hours'`)
	}
	r.standard = rewrite.Batch
	lose()
	r.must(t, rewrite.Collector)
	r.all(t, rewrite.Queued, ids)
	r.edit(t, `update complaint_rewrite.installation set id = '`+installation+`'`)
	lose()
	r.must(t, rewrite.Collector)
	r.all(t, rewrite.Completed, ids)
	for job, n := range sim.Rewrites() {
		if n != 1 {
			t.Errorf("job %s was paid %d times", job, n)
		}
	}
	lose()
	r.must(t, rewrite.Collector)
	if !strings.Contains(r.log.String(), "restored_jobs=3") || !strings.Contains(r.log.String(), "restored_jobs=0") {
		t.Errorf("the log lacks the two searches")
	}
	if n := r.number(t, `select count(*) from complaint_rewrite.batches`); n != 0 {
		t.Errorf("%d rows were made of a batch without jobs", n)
	}
}

// A provider that rejects every batch without a reason rejects no job: its batches are not
// divided for ever, and no attempt is counted.
func TestRejectionOfEveryBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueue(t, 16, rewrite.Batch)
	r.provider.onDone = func(b *batch) { b.Status, b.OutputFileID, b.Lines = rewrite.BatchFailed, "", 0 }
	for range 10 {
		r.must(t, rewrite.Submitter, rewrite.Collector)
		r.later(t)
	}
	if n := r.number(t, `select sum(attempt_count) from complaint_rewrite.jobs`); n != 0 || r.statuses(t)[rewrite.Queued] != 16 {
		t.Errorf("%d attempts, jobs are %v", n, r.statuses(t))
	}
	if n := r.number(t, `select count(distinct batch_part) from complaint_rewrite.jobs`); n > 6 {
		t.Errorf("%d parts", n)
	}
	r.provider.onDone = nil
	for range 4 {
		r.must(t, rewrite.Submitter, rewrite.Collector)
		r.later(t)
	}
	if got := r.statuses(t); got[rewrite.Completed] != 16 {
		t.Errorf("jobs are %v", got)
	}
}

// A provider that has no room for a batch gets half of it, and the limit is remembered.
func TestLimitsAreLearned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.enqueue(t, 16, rewrite.Batch)
	most, refused := 5, 0
	r.provider.onDone = func(b *batch) {
		if len(b.items) > most {
			refused++
			b.Status, b.OutputFileID, b.Lines, b.Full = rewrite.BatchFailed, "", 0, true
		}
	}
	for range 8 {
		r.must(t, rewrite.Submitter, rewrite.Collector)
		r.later(t)
	}
	r.all(t, rewrite.Completed, ids)
	if refused > 3 { // 16, 8
		t.Errorf("%d batches were refused", refused)
	}
	for _, id := range ids {
		if job := r.job(t, id); job.AttemptCount != 0 {
			t.Errorf("%d attempts are counted", job.AttemptCount)
		}
	}
}

// A batch whose creation has an unknown result, and whose search always fails, ends after
// its time limit.
func TestSearchThatFailsEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.enqueue(t, 1, rewrite.Batch)[0]
	r.provider.createErr, r.provider.findErr = failure.Errorf(failure.NetworkTimeout, "no"), failure.Errorf(failure.UpstreamInternal, "no")
	r.must(t, rewrite.Submitter)
	r.later(t)
	r.must(t, rewrite.Submitter)
	r.all(t, rewrite.Processing, []string{id})
	r.later(t)
	r.edit(t, `update complaint_rewrite.batches set created_at = now() - interval '31 hours'`)
	r.must(t, rewrite.Submitter)
	if job := r.job(t, id); job.Status != rewrite.Queued || job.AttemptCount != 1 || lastError(job) != "UPSTREAM_INTERNAL" {
		t.Errorf("job is %+v", job)
	}
}

// The collector cancels a batch that an operator has abandoned, once.
func TestAbandonedBatchIsCanceled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueue(t, 1, rewrite.Batch)
	r.must(t, rewrite.Submitter)
	r.provider.running = true
	operator := r.db.Open(t, "complaint_rewrite_operator")
	open, err := operator.OpenBatches(t.Context())
	testkit.NoError(t, err)
	_, err = operator.AbandonBatch(t.Context(), open[0].BatchID, "ann", "T-1")
	testkit.NoError(t, err)
	r.must(t, rewrite.Collector, rewrite.Collector)
	if r.provider.canceled != 1 {
		t.Errorf("the batch was canceled %d times", r.provider.canceled)
	}
	if r.number(t, `select count(*) from complaint_rewrite.batches where state = 'abandoned' and cancel_asked_at is not null`) != 1 {
		t.Error("the batch is not abandoned and canceled")
	}
}

// A live claim is extended.
func TestLiveClaimIsExtended(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Run.ClaimTimeoutSeconds = 2
	id := r.enqueue(t, 1, rewrite.Async)[0]
	w := r.worker(t, uuid.NewString())
	claim, _, err := w.claim(t.Context(), uuid.NewString(), rewrite.Async)
	testkit.NoError(t, err)
	r.edit(t, `update complaint_rewrite.jobs set claimed_at = now() - interval '1 hour'`)
	stop := w.extend(t.Context(), claim)
	defer stop()
	for end := time.Now().Add(time.Minute); time.Since(*r.job(t, id).ClaimedAt) > time.Minute; {
		if time.Now().After(end) {
			t.Fatal("the claim was not extended")
		}
	}
}

// A late batch is canceled, and given up if the cancellation has no effect. The claim
// timeout does not apply to its jobs (rewrite 7.2).
func TestLateBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.enqueue(t, 2, rewrite.Batch)
	r.must(t, rewrite.Submitter)
	r.provider.running = true
	r.must(t, rewrite.Collector)
	r.later(t)
	r.must(t, rewrite.Submitter, rewrite.Collector)
	r.all(t, rewrite.BatchSubmitted, ids)
	if r.provider.canceled != 0 {
		t.Error("a batch was canceled before its time")
	}
	for range 2 {
		r.edit(t, `update complaint_rewrite.batches set submitted_at = now() - interval '31 hours'`)
		r.must(t, rewrite.Collector)
	}
	if r.provider.canceled != 1 {
		t.Errorf("a late batch was canceled %d times", r.provider.canceled)
	}
	r.edit(t, `update complaint_rewrite.batches set submitted_at = now() - interval '33 hours'`)
	r.must(t, rewrite.Collector)
	r.all(t, rewrite.Queued, ids)
}

// A job that an operator cancels stays canceled, whatever the result of its batch.
func TestCanceledJobStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.enqueue(t, 2, rewrite.Batch)
	r.must(t, rewrite.Submitter)
	r.edit(t, `update complaint_rewrite.jobs set status = 'canceled' where job_id = '`+ids[0]+`'`)
	r.must(t, rewrite.Collector)
	if got := r.statuses(t); got[rewrite.Canceled] != 1 || got[rewrite.Completed] != 1 {
		t.Errorf("jobs are %v", got)
	}
}
